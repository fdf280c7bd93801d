//! Why a processor did not do what it was asked to do.

/// What it means for an order. Holds nothing that a processor wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It did not work, and may the next time.
    #[error("{}", .0.code())]
    Passing(Fault),
    /// The same call is under way elsewhere.
    #[error("the same call is under way")]
    Busy,
    /// It has failed, and will repeat that under this key, whatever it could do under another.
    #[error("what failed there is repeated for good")]
    Spent,
    /// It will never do that for this order.
    #[error("{}", .0.code())]
    Refused(Fault),
    /// It knows no such order.
    #[error("the order is not known there")]
    Unknown,
}

impl Failure {
    /// What to look at, where nothing but the configuration was tried.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Passing(Fault::NoAnswer) => "it does not answer at `api_base`",
            Self::Passing(Fault::Configuration) => "it does not accept these credentials",
            Self::Unknown => "it does not know the webhook of this id",
            Self::Passing(Fault::Unavailable) | Self::Busy => "it does not work right now",
            _ => "it does not answer as a processor of this kind; look at `api_base`",
        }
    }
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not answer.
    NoAnswer,
    /// It says that it does not work now.
    Unavailable,
    /// It does not accept us.
    Configuration,
    /// It does not accept the order.
    Order,
    /// Its answer makes no sense.
    Answer,
}

impl Fault {
    /// A stable word for the audit trail and the log.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoAnswer => "processor_no_answer",
            Self::Unavailable => "processor_unavailable",
            Self::Configuration => "processor_configuration",
            Self::Order => "processor_order",
            Self::Answer => "processor_answer",
        }
    }
}

/// What the status of an error means where nothing else is known of it.
pub(super) const fn of_status(status: u16) -> Failure {
    match status {
        401 | 403 => Failure::Passing(Fault::Configuration),
        408 | 429 | 500.. => Failure::Passing(Fault::Unavailable),
        404 => Failure::Unknown,
        409 => Failure::Busy,
        400..=499 => Failure::Refused(Fault::Order),
        _ => Failure::Passing(Fault::Answer),
    }
}
