//! What happened to an elicitation, for the audit trail.
//!
//! A transition records its own [`Happening`]s, so a state cannot change without one. An [`Event`] is a
//! happening together with who did it. Neither holds a subject, a message, an argument or an outcome.

use serde::{Deserialize, Serialize};

use super::{ClientId, ElicitationId, GrantId, Kind, OperatorId, StateName, Timestamp};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A client asked for it and it was created.
    Issued,
    /// The verified subject saw the page for the first time.
    Opened,
    /// The person set out to complete it.
    Started,
    /// The provider sent the person back to try again.
    Retried,
    /// The person got more time.
    Extended,
    /// The person is done; a code must come back.
    Finished,
    /// Another code came back.
    WrongCode,
    /// An order was begun at a payment processor.
    Ordered,
    /// The person has paid in a way that takes a while.
    Processing,
    /// What was paid is not what was asked for.
    PaidWrong,
    /// It was paid when it was too late.
    PaidLate,
    /// What was paid has been paid back.
    Refunded,
    /// What was paid could not be paid back: an operator must see to it.
    NotRefunded,
    /// The outcome is there.
    Completed,
    /// The outcome was released to a handler.
    Claimed,
    /// The same attempt received the outcome once more.
    Replayed,
    /// The person said no.
    Declined,
    /// The handler or the MCP client called it off.
    Cancelled,
    /// A deadline passed.
    Expired,
    /// A provider ended it for good.
    Failed,
    /// An operator ended it.
    Revoked,
    /// A step was refused; `reason` says why.
    Refused,
    /// A credential is kept from now on.
    Kept,
    /// A kept credential was released to a handler.
    Used,
    /// A kept credential was renewed at its provider.
    Refreshed,
    /// A kept credential is kept no longer; `reason` says why.
    Dropped,
    /// The provider was told that tokens are not needed any more.
    RevokedThere,
    /// The provider could not be told that.
    NotRevokedThere,
    /// The client's server could not be told what became of it.
    NotTold,
}

impl What {
    /// The word for it on the audit trail.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Issued => "issued",
            Self::Opened => "opened",
            Self::Started => "started",
            Self::Retried => "retried",
            Self::Extended => "extended",
            Self::Finished => "finished",
            Self::WrongCode => "wrong_code",
            Self::Ordered => "ordered",
            Self::Processing => "processing",
            Self::PaidWrong => "paid_wrong",
            Self::PaidLate => "paid_late",
            Self::Refunded => "refunded",
            Self::NotRefunded => "not_refunded",
            Self::Completed => "completed",
            Self::Claimed => "claimed",
            Self::Replayed => "replayed",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Failed => "failed",
            Self::Revoked => "revoked",
            Self::Refused => "refused",
            Self::Kept => "kept",
            Self::Used => "used",
            Self::Refreshed => "refreshed",
            Self::Dropped => "dropped",
            Self::RevokedThere => "revoked_there",
            Self::NotRevokedThere => "not_revoked_there",
            Self::NotTold => "not_told",
        }
    }
}

/// Who did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "id", rename_all = "snake_case")]
pub enum Actor {
    /// The MCP server, by its API key.
    Client(ClientId),
    /// The verified subject at the browser.
    Person,
    /// Somebody at a browser who is not, or not yet, the verified subject.
    Visitor,
    /// An operator, by key.
    Operator(OperatorId),
    /// A payment processor, in answer to a question.
    Processor,
    /// Sidegate itself: a deadline.
    Clock,
}

/// One thing that a transition did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening {
    /// What it was.
    pub what: What,
    /// The state before; absent when it was created.
    pub from: Option<StateName>,
    /// The state after.
    pub to: StateName,
}

/// One entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub what: What,
    /// To which elicitation; absent, with all that belongs to one, for what was refused before any was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationId>,
    /// Whose elicitation it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    /// Which kept credential it is about, if about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// What it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Who did it.
    pub actor: Actor,
    /// The state before; absent when it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StateName>,
    /// The state after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<StateName>,
    /// Why: a stable word for a refusal, the operator's own words for a revocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
