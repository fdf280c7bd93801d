//! An order at a payment processor: what the processor was asked to let the person pay.
//!
//! It is stored before the processor hears of it, under a name that goes there with it, and goes on after its elicitation has
//! ended, until it is certain that nobody pays it, or what was paid has been paid back. The rules of how an elicitation and
//! its orders move together are in [`super::elicitation`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use super::money::Money;

/// One order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Our name for it, which the processor is told: unguessable, and the beginning of every idempotency key.
    pub name: String,
    /// When it was begun.
    pub begun_at: Timestamp,
    /// The service's public URL at that time, below which the browser comes back. It never changes either.
    pub from: String,
    /// When the processor is to close it by itself. It never changes: a call that is repeated must not differ.
    pub closes_at: Timestamp,
    /// What becomes of money that nothing may be done for.
    pub late: Late,
    /// How far it is.
    pub stage: Stage,
    /// Since when.
    pub(super) since: Timestamp,
    /// When it must be looked at again, if ever.
    pub(super) look_at: Option<Timestamp>,
    /// How often that was done in this stage.
    pub(super) tries: u32,
}

/// What becomes of a payment that came too late, or that is not what was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// It is paid back.
    #[default]
    Refund,
    /// It stays until an operator decides.
    Hold,
}

/// How far an order is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The processor has been asked, or will be: nobody has been sent there.
    Opening,
    /// The person can pay.
    Open {
        /// The processor's name for the order.
        id: String,
        /// Where the person pays.
        url: String,
    },
    /// The person has paid in a way that takes a while.
    Processing {
        /// The processor's name for the order.
        id: String,
    },
    /// Nobody has paid it, and nobody can.
    Closed,
    /// It is paid, and that is the outcome of its elicitation.
    Paid(Paid),
    /// It is being paid back.
    Refunding(Paid, Why),
    /// It has been paid back.
    Refunded(Paid, Why),
    /// It is paid, and waits for an operator.
    Held(Paid, Why),
}

/// What was paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paid {
    /// The processor's name for the order.
    pub id: String,
    /// The processor's name for the payment.
    pub payment: String,
}

/// Why a payment is no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The elicitation had ended, or had been paid by another order.
    Late,
    /// It is not what was asked for: the amount, the currency, the mode, our name for it.
    Mismatch,
    /// Nobody claimed it, or an operator revoked it before anybody did.
    Unclaimed,
}

/// What a processor says of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Our name for it, as the processor has it.
    pub name: Option<String>,
    /// How it stands there.
    pub status: Status,
    /// How much is to be paid, or was.
    pub money: Option<Money>,
    /// Whether it is money, where the processor says so.
    pub livemode: Option<bool>,
}

/// How an order stands at the processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It can be paid.
    Open,
    /// The person has agreed, and we must take the money.
    Approved,
    /// Paid in a way that takes a while.
    Processing,
    /// Paid: the processor's name for the payment.
    Paid(String),
    /// Not paid, and it cannot be any more.
    Closed,
    /// Paid, and all of it paid back.
    Refunded,
}

/// What was opened at a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The processor's name for the order.
    pub id: String,
    /// Where the person pays.
    pub url: String,
}

/// How soon an order is looked at that was to be opened: later than the call that opens it takes.
const OPENING: Duration = Duration::from_secs(30);
/// The shortest time between two looks.
const SOON: Duration = Duration::from_secs(10);
/// For how long money is tried to be paid back, and something is waited for that is in flight.
const LONGEST: Duration = Duration::from_hours(30 * 24);

impl Stage {
    /// The word for it in the API.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Open { .. } => "open",
            Self::Processing { .. } => "processing",
            Self::Closed => "closed",
            Self::Paid(_) => "paid",
            Self::Refunding(..) => "refunding",
            Self::Refunded(..) => "refunded",
            Self::Held(..) => "held",
        }
    }
}

impl Order {
    /// An order that is about to be opened.
    #[must_use]
    pub const fn new(name: String, from: String, closes_at: Timestamp, late: Late, now: Timestamp) -> Self {
        Self {
            name,
            begun_at: now,
            from,
            closes_at,
            late,
            stage: Stage::Opening,
            since: now,
            look_at: Some(now),
            tries: 0,
        }
    }

    /// The processor's name for it, once that is known.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match &self.stage {
            Stage::Open { id, .. } | Stage::Processing { id } => Some(id),
            Stage::Paid(paid)
            | Stage::Refunding(paid, _)
            | Stage::Refunded(paid, _)
            | Stage::Held(paid, _) => Some(&paid.id),
            Stage::Opening | Stage::Closed => None,
        }
    }

    /// The processor's name for the payment, and why it is no outcome, if it is none.
    #[must_use]
    pub const fn payment(&self) -> Option<(&str, Option<Why>)> {
        match &self.stage {
            Stage::Paid(paid) => Some((paid.payment.as_str(), None)),
            Stage::Refunding(paid, why) | Stage::Refunded(paid, why) | Stage::Held(paid, why) => {
                Some((paid.payment.as_str(), Some(*why)))
            }
            Stage::Opening | Stage::Open { .. } | Stage::Processing { .. } | Stage::Closed => None,
        }
    }

    /// Whether it may still be paid.
    #[must_use]
    pub const fn is_payable(&self) -> bool {
        matches!(self.stage, Stage::Opening | Stage::Open { .. } | Stage::Processing { .. })
    }

    /// When it must be looked at again, if ever.
    #[must_use]
    pub const fn look_at(&self) -> Option<Timestamp> {
        self.look_at
    }

    /// Whether it has stood as it stands for as long as anything is waited for.
    #[must_use]
    pub fn is_hopeless(&self, now: Timestamp) -> bool {
        self.since + LONGEST <= now
    }

    pub(super) fn enter(&mut self, stage: Stage, now: Timestamp) {
        self.look_at = match &stage {
            Stage::Opening => Some(now + OPENING),
            Stage::Open { .. } | Stage::Processing { .. } => Some(now + SOON),
            Stage::Refunding(..) => Some(now),
            Stage::Closed | Stage::Paid(_) | Stage::Refunded(..) | Stage::Held(..) => None,
        };
        self.tries = 0;
        self.since = now;
        self.stage = stage;
    }

    /// Notes that it is looked at now: next time it is after a longer while.
    pub(super) fn looked(&mut self, now: Timestamp) {
        let longest = match self.stage {
            Stage::Opening | Stage::Open { .. } => Duration::from_mins(1),
            Stage::Processing { .. } => Duration::from_mins(10),
            _ => Duration::from_hours(1),
        };
        let pause = SOON.saturating_mul(1 << self.tries.min(12)).min(longest);
        self.tries = self.tries.saturating_add(1);
        self.look_at = Some(now + pause);
    }
}
