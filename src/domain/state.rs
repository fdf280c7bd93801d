//! The states of an elicitation. Each carries its own data; `elicitation` has the transitions between them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::binding::sha256;
use super::{Code, OperatorId, Random, Timestamp};

/// Where an elicitation is in its life, with what belongs to that moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum State {
    /// Nobody has done anything yet.
    Pending,
    /// The person set out to complete it.
    InProgress {
        /// When the person set out.
        started_at: Timestamp,
    },
    /// The person has paid in a way that takes a while. To the handler it is still in progress, and it does not expire.
    Processing {
        /// Since when.
        since: Timestamp,
    },
    /// The person is done, but nobody knows who that was: the outcome counts once the code that the page shows has
    /// come back through the MCP client. To the handler it is still in progress.
    Unconfirmed {
        /// When the person was done.
        at: Timestamp,
        /// What must come back.
        code: Code,
        /// How often another came.
        wrong: u8,
        /// When it is too late.
        until: Timestamp,
    },
    /// The outcome waits for its claim.
    Completed {
        /// When it was completed.
        at: Timestamp,
        /// When an outcome that nobody has claimed is destroyed.
        claim_by: Timestamp,
    },
    /// The outcome was released to one attempt, which may ask again until `replay_until`.
    Claimed {
        /// When it was first claimed.
        at: Timestamp,
        /// Who won.
        attempt: Attempt,
        /// Until when the winner may ask again.
        replay_until: Timestamp,
    },
    /// The person said no, on the page or in the MCP client.
    Declined {
        /// When.
        at: Timestamp,
    },
    /// The handler or the MCP client called it off.
    Cancelled {
        /// When.
        at: Timestamp,
    },
    /// A deadline passed: the person's, or the one for claiming.
    Expired {
        /// When.
        at: Timestamp,
    },
    /// A provider ended it for good.
    Failed {
        /// When.
        at: Timestamp,
    },
    /// An operator ended it.
    Revoked {
        /// When.
        at: Timestamp,
        /// Who.
        by: OperatorId,
        /// Why, in the operator's words.
        reason: String,
    },
}

/// The name of a state, as the API writes it; [`State`] says what each means.
#[expect(missing_docs, reason = "the states are described where they carry their data")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    Pending,
    InProgress,
    Completed,
    Claimed,
    Declined,
    Cancelled,
    Expired,
    Failed,
    Revoked,
}

impl StateName {
    /// Every state there is.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::InProgress,
        Self::Completed,
        Self::Claimed,
        Self::Declined,
        Self::Cancelled,
        Self::Expired,
        Self::Failed,
        Self::Revoked,
    ];

    /// The word for it in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Claimed => "claimed",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Failed => "failed",
            Self::Revoked => "revoked",
        }
    }

    /// Whether it has not come to an outcome or an end: `pending` or `in_progress`.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// Whether nothing can change it any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !self.is_live() && !matches!(self, Self::Completed)
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl State {
    /// Since when it is so; `None` for the first.
    #[must_use]
    pub const fn since(&self) -> Option<Timestamp> {
        match *self {
            Self::Pending => None,
            Self::InProgress { started_at: at }
            | Self::Processing { since: at }
            | Self::Unconfirmed { at, .. }
            | Self::Completed { at, .. }
            | Self::Claimed { at, .. }
            | Self::Declined { at }
            | Self::Cancelled { at }
            | Self::Expired { at }
            | Self::Failed { at }
            | Self::Revoked { at, .. } => Some(at),
        }
    }

    /// The state's name.
    #[must_use]
    pub const fn name(&self) -> StateName {
        match self {
            Self::Pending => StateName::Pending,
            Self::InProgress { .. } | Self::Processing { .. } | Self::Unconfirmed { .. } => {
                StateName::InProgress
            }
            Self::Completed { .. } => StateName::Completed,
            Self::Claimed { .. } => StateName::Claimed,
            Self::Declined { .. } => StateName::Declined,
            Self::Cancelled { .. } => StateName::Cancelled,
            Self::Expired { .. } => StateName::Expired,
            Self::Failed { .. } => StateName::Failed,
            Self::Revoked { .. } => StateName::Revoked,
        }
    }
}

/// One try of a handler to claim. Two claims with equal attempts are the same try, asked twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt(#[serde(with = "super::ids::hex")] [u8; 32]);

impl Attempt {
    /// The attempt that a caller named; only a digest of the name is kept.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(sha256(name.as_bytes()))
    }

    /// An attempt like no other, for callers that named none.
    #[must_use]
    pub fn fresh(random: &dyn Random) -> Self {
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        Self(bytes)
    }

    /// The 256 bits.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}
