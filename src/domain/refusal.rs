//! Why a step was not taken. A refused step changes nothing.

use super::StateName;

/// The reason for which a step was refused. The elicitation is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The person at the browser is not the subject.
    #[error("the person is not the subject")]
    WrongPerson,
    /// The subject or the operation differs from the one it was issued for.
    #[error("the subject or the operation differs")]
    BindingMismatch,
    /// It has ended, or was finished before.
    #[error("the elicitation is {0}")]
    Ended(StateName),
    /// There is no outcome yet.
    #[error("the elicitation is not completed")]
    NotCompleted,
    /// The person is done, and only the code is missing.
    #[error("the person is done with it")]
    Finished,
    /// Another attempt has claimed the outcome, or the same one came after the claim window.
    #[error("the outcome was already claimed")]
    AlreadyClaimed,
    /// Something was paid that is not what was asked for, and must be looked into first.
    #[error("what was paid is not what was asked for")]
    PaymentUnclear,
    /// It was tried to be paid more often than can go well.
    #[error("too many orders were begun for it")]
    TooManyOrders,
    /// It is paid, and revoking it needs a refund.
    #[error("it is paid, and revoking it needs a refund")]
    RefundNeeded,
    /// It has as much time as it may ever have.
    #[error("the deadline cannot be moved further")]
    NoMoreTime,
}

impl Refusal {
    /// A stable word for the audit trail.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::WrongPerson => "wrong_person",
            Self::BindingMismatch => "binding_mismatch",
            Self::Ended(_) => "ended",
            Self::NotCompleted => "not_completed",
            Self::Finished => "finished",
            Self::AlreadyClaimed => "already_claimed",
            Self::PaymentUnclear => "payment_unclear",
            Self::TooManyOrders => "too_many_orders",
            Self::RefundNeeded => "refund_needed",
            Self::NoMoreTime => "no_more_time",
        }
    }
}
