//! Payment processors: what each can do, behind one trait.
//!
//! The truth about an order is what [`Processor::fetch`] says. Everything that is sent to a processor can be sent again,
//! unchanged, and does not happen twice: each call that does something takes a key.

mod access;
mod failure;
pub mod manual;
pub mod paypal;
pub mod payu;
pub mod settings;
pub mod stripe;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use url::Url;

pub use self::failure::{Failure, Fault};
pub use self::settings::Settings;
use super::http::{Incoming, Outgoing};
use super::{Upstream, UpstreamError};
use crate::domain::money::Money;
use crate::domain::order::{Opened, Paid, Statement};
use crate::domain::payment::PaymentRequest;
use crate::domain::{Clock, Random, Timestamp};

/// The processors that a service knows, by id.
pub type Payments = BTreeMap<String, Payment>;

/// A processor, as it is configured.
pub struct Payment {
    /// What the configuration says.
    pub settings: Settings,
    /// Who does it.
    pub processor: Arc<dyn Processor>,
}

/// What is to be ordered. Sent again it is the same to the letter.
pub struct NewOrder<'a> {
    /// Our name for it, also the key of the call.
    pub name: &'a str,
    /// What is to be paid.
    pub request: &'a PaymentRequest,
    /// When it is to be closed.
    pub closes_at: Timestamp,
    /// Where the browser comes back to when it is paid.
    pub return_url: String,
    /// Where the browser comes back to when the person turns back.
    pub cancel_url: String,
    /// Where webhooks go, where an order names that.
    pub webhook_url: String,
}

/// What came of closing an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Nobody can pay it any more.
    Closed,
    /// It cannot be closed as it stands: look again.
    LookAgain,
}

/// What a webhook is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The processor's name for the order.
    pub id: String,
    /// Whether it is about money, where it says so.
    pub livemode: Option<bool>,
}

/// Why a webhook is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverified {
    /// It has no signature, or none that can be read.
    Missing,
    /// Its signature does not hold.
    Wrong,
    /// It was signed too long ago, or in the future.
    Old,
    /// Whoever could verify it does not answer.
    Unavailable,
}

impl Unverified {
    /// A stable word for the audit trail and the log.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "webhook_unsigned",
            Self::Wrong => "webhook_signature",
            Self::Old => "webhook_age",
            Self::Unavailable => "webhook_unverified",
        }
    }
}

/// A webhook as it came. Hostile until it is verified.
pub struct Webhook<'a> {
    /// A header's value, by its name in small letters.
    pub header: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// The body, byte for byte.
    pub body: &'a [u8],
}

/// Somebody who takes payments.
#[async_trait]
pub trait Processor: Send + Sync {
    /// The shortest and the longest time that an order can be open.
    fn lives(&self) -> (Duration, Duration);

    /// Whether it can take an amount.
    ///
    /// # Errors
    /// What is wrong, to be read after the field's name.
    fn takes(&self, money: Money) -> Result<(), &'static str>;

    /// Opens an order, or tells again of the one that was opened under its name.
    ///
    /// # Errors
    /// [`Failure`].
    async fn open(&self, order: &NewOrder<'_>) -> Result<Opened, Failure>;

    /// How an order stands.
    ///
    /// # Errors
    /// [`Failure`].
    async fn fetch(&self, id: &str) -> Result<Statement, Failure>;

    /// Takes the money of an order that the person has approved. What came of it [`Processor::fetch`] says.
    ///
    /// # Errors
    /// [`Failure`].
    async fn settle(&self, _id: &str, _key: &str) -> Result<(), Failure> {
        Ok(())
    }

    /// Closes an order, so that nobody can pay it.
    ///
    /// # Errors
    /// [`Failure`].
    async fn close(&self, id: &str) -> Result<Closing, Failure>;

    /// Pays everything back. What was paid back before is no failure.
    ///
    /// # Errors
    /// [`Failure`].
    async fn refund(&self, paid: &Paid, key: &str) -> Result<(), Failure>;

    /// Which orders a webhook is about, if it is genuine; none if it is about something else.
    ///
    /// # Errors
    /// [`Unverified`].
    async fn verify(&self, webhook: &Webhook<'_>, now: Timestamp) -> Result<Vec<Notice>, Unverified>;

    /// Whether the credentials are accepted there.
    ///
    /// # Errors
    /// [`Failure`].
    async fn check(&self) -> Result<(), Failure>;

    /// The page of ours that plays the processor's, if there is one.
    fn manual(&self) -> Option<&manual::Manual> {
        None
    }
}

/// How long a call of a processor may take.
const TIME: Duration = Duration::from_secs(20);

/// The processor that these settings describe. `public_url` is where the service is reached.
#[must_use]
pub fn processor(
    settings: &Settings,
    public_url: &str,
    upstream: &Arc<Upstream>,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
) -> Arc<dyn Processor> {
    use settings::Account;
    let upstream = Arc::clone(upstream);
    match &settings.account {
        Account::Stripe(account) => Arc::new(stripe::Stripe::new(account.clone(), upstream)),
        Account::PayPal(account) => {
            Arc::new(paypal::PayPal::new(account.clone(), upstream, Arc::clone(clock)))
        }
        Account::PayU(account) => Arc::new(payu::PayU::new(account.clone(), upstream, Arc::clone(clock))),
        Account::Manual => {
            let pages = format!("{public_url}/manual/{}", settings.id);
            Arc::new(manual::Manual::new(pages, Arc::clone(clock), Arc::clone(random)))
        }
    }
}

/// A URL below the base of an API; parts of the path must be safe in one.
fn below(base: &Url, path: &str) -> Result<Url, Failure> {
    let joined = format!("{}/{path}", base.as_str().trim_end_matches('/'));
    Url::parse(&joined).map_err(|_| Failure::Refused(Fault::Answer))
}

/// A processor's name for something, if it may stand in a path of its API.
fn safe(id: &str) -> Result<&str, Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let safe = (1..=255).contains(&id.len()) && id.bytes().all(good) && !id.starts_with('.');
    if safe { Ok(id) } else { Err(Failure::Refused(Fault::Answer)) }
}

/// Sends a request, with the time that a payment takes.
async fn send(upstream: &Upstream, mut request: Outgoing<'_>) -> Result<Incoming, Failure> {
    request.time = TIME;
    upstream.send(request).await.map_err(|error| match error {
        UpstreamError::Forbidden(_) | UpstreamError::NotHttps(_) => {
            tracing::error!(%error, "a payment processor cannot be reached as it is configured");
            Failure::Passing(Fault::Configuration)
        }
        _ => Failure::Passing(Fault::NoAnswer),
    })
}

/// The word at a place of an answer, whatever its status (RFC 6901).
fn word(incoming: &Incoming, place: &str) -> Option<String> {
    let said: serde_json::Value = serde_json::from_slice(&incoming.body).ok()?;
    said.pointer(place).and_then(serde_json::Value::as_str).map(str::to_owned)
}
