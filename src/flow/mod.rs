//! The use cases, one file a step, in the order of the story:
//! [`issue`], [`round`], [`open`] ([`sign_in`], [`handoff`], [`session`]), [`submit_secret`] or [`authorize`] and
//! [`callback`] or [`pay`] and
//! [`webhook`], [`finish`], [`decline`], [`extend`], [`confirm`], [`poll`], [`claim`], [`cancel`], [`revoke`], [`expire`];
//! then what is kept: `keep`, [`kept`], `refresh`, [`mine`], [`withdraw`]; [`search`], [`console`], [`trail`] and [`checkpoint`] for operators;
//! [`errands`] and `undo` for what is done at providers; and [`keys`] for instances that share a store.
//!
//! All of them are methods of [`Gate`]. Each change of an elicitation goes through `step`: load, transition,
//! commit if nobody else was faster.

pub mod authorize;
pub mod callback;
pub mod cancel;
pub mod checkpoint;
pub mod claim;
pub mod client;
pub mod confirm;
pub mod console;
pub mod decline;
pub mod departure;
pub mod errands;
pub mod expire;
pub mod extend;
pub mod finish;
pub mod form;
pub mod handoff;
pub mod issue;
mod keep;
pub mod kept;
pub mod keys;
pub mod manual;
pub mod mine;
pub mod notices;
pub mod open;
mod orders;
pub mod page;
pub mod pay;
pub mod poll;
mod record;
mod refresh;
pub mod revoke;
pub mod round;
pub mod search;
pub mod session;
pub mod sign_in;
mod step;
pub mod submit_secret;
pub mod trail;
mod undo;
mod visit;
pub mod webhook;
pub mod withdraw;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use client::{Client, Clients};

use crate::domain::{Clock, ElicitationId, Invalid, Random, Refusal, Spans, Timestamp};
use crate::notify::Notify;
use crate::store::{Store, Unavailable};
use crate::upstream::oauth::Providers;
use crate::upstream::payment::Payments;
use crate::vault::{OpenError, Ring};

/// Everything a use case needs; the composition root fills it in.
pub struct Gate {
    /// Where elicitations are kept.
    pub store: Arc<dyn Store>,
    /// How waiting polls are woken.
    pub notify: Arc<dyn Notify>,
    /// Seals and opens.
    pub ring: Ring,
    /// Whether that can open what other instances seal.
    pub keys: keys::KeyWatch,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids and attempts.
    pub random: Arc<dyn Random>,
    /// The API clients.
    pub clients: Clients,
    /// The providers that people can authorise.
    pub providers: Providers,
    /// The payment processors.
    pub payments: Payments,
    /// How operators come in.
    pub console: console::Console,
    /// What is to be done at both.
    pub errands: errands::Errands,
    /// What every link begins with: `public_url` without a slash at its end.
    pub public_url: String,
    /// How long things last.
    pub spans: Spans,
    /// How many elicitations may be pending at once.
    pub quotas: Quotas,
    /// The second in which the last stray was noted.
    pub last_stray: AtomicI64,
    /// How the audit trail is looked after.
    pub trail_care: checkpoint::TrailCare,
    /// Cancelled when the service shuts down: waiting polls answer with what they know.
    pub shutdown: CancellationToken,
}

/// How many elicitations may be pending at once.
#[derive(Debug, Clone, Copy)]
pub struct Quotas {
    /// For one client.
    pub per_client: u64,
    /// For one person at one client.
    pub per_subject: u64,
}

impl Gate {
    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The URL of an elicitation's page: built from `public_url` and the id alone (R02).
    #[must_use]
    pub fn link(&self, id: ElicitationId) -> String {
        format!("{}/e/{id}", self.public_url)
    }

    /// Whether steps can be taken now.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn ready(&self) -> Result<(), Error> {
        if self.shutdown.is_cancelled() {
            return Err(Error::Unavailable("the service is shutting down".to_owned()));
        }
        self.keys.fits()?;
        Ok(self.store.ping().await?)
    }
}

/// Why a use case did not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such elicitation, or not this client's.
    #[error("there is no such elicitation")]
    NotFound,
    /// The rules of the elicitation forbid it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A part of the request cannot be accepted.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The client is not configured for this kind.
    #[error("this client may not ask for this kind")]
    KindNotAllowed,
    /// This operator may look, and not revoke.
    #[error("this operator may not revoke")]
    NotRevoker,
    /// There are more than one operator may revoke alone; at most so many.
    #[error("a second operator must agree")]
    SecondOperator(u64),
    /// The idempotency key was used with another body.
    #[error("the idempotency key was used with another body")]
    IdempotencyMismatch,
    /// The request state is forged, expired, or made for something else.
    #[error("the request state is not valid here")]
    RequestStateInvalid,
    /// A form came from elsewhere, or its token was made for another page.
    #[error("the form does not belong to this page")]
    FormRefused,
    /// Nothing is kept in that slot.
    #[error("nothing is kept there")]
    NotKept,
    /// What is kept in that slot does not allow all that is asked for.
    #[error("what is kept there does not allow that")]
    ScopesMissing,
    /// Too many elicitations are pending.
    #[error("too many elicitations are pending for this {whose}")]
    Full {
        /// `client` or `subject`.
        whose: &'static str,
        /// When to try again.
        retry_after: Duration,
    },
    /// Whoever called has stopped waiting for the answer.
    #[error("the caller has gone")]
    CallerGone,
    /// The store or the key ring cannot do its work now. The step was not taken, or must be looked at again.
    #[error("{0}")]
    Unavailable(String),
}

impl From<Unavailable> for Error {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::Unavailable(format!("a record is {error}"))
    }
}
