//! Stripe Checkout, hosted: a session is an order.
//!
//! Four endpoints and no more; of every answer and event only what is used is read, so that other versions of Stripe's API
//! break nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::hmac;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::failure::of_status;
use super::settings::Stripe as Account;
use super::{
    Closing, Failure, Fault, NewOrder, Notice, Processor, Unverified, Webhook, below, safe, send, word,
};
use crate::domain::Timestamp;
use crate::domain::money::{Currency, Money};
use crate::domain::order::{Opened, Paid, Statement, Status};
use crate::upstream::Upstream;
use crate::upstream::http::{Authorization, Body, Incoming, Outgoing};

/// The version of the API that is asked for.
const VERSION: &str = "2026-08-26.dahlia";
/// How far the time of a webhook may be from ours, on either side.
const TOLERANCE: i64 = 300;
/// The largest amount, in Stripe's units.
const MOST: u64 = 99_999_999;
/// The metadata by which an order is known as ours.
const OURS: &str = "sidegate_order";

/// The client.
pub struct Stripe {
    account: Account,
    upstream: Arc<Upstream>,
}

#[derive(Deserialize)]
struct Session {
    id: String,
    status: Option<String>,
    payment_status: Option<String>,
    amount_total: Option<u64>,
    currency: Option<String>,
    payment_intent: Option<String>,
    livemode: Option<bool>,
    url: Option<String>,
    #[serde(default)]
    metadata: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Intent {
    status: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    livemode: Option<bool>,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    id: Option<String>,
}

impl Stripe {
    /// A client in the name of this account.
    #[must_use]
    pub const fn new(account: Account, upstream: Arc<Upstream>) -> Self {
        Self { account, upstream }
    }

    async fn get(&self, path: &str) -> Result<Incoming, Failure> {
        let url = below(&self.account.api_base, path)?;
        self.send(Outgoing::get(&url), None).await
    }

    async fn post(
        &self,
        path: &str,
        form: &[(&str, &str)],
        key: Option<String>,
    ) -> Result<Incoming, Failure> {
        let url = below(&self.account.api_base, path)?;
        self.send(Outgoing::post(&url, Body::Form(form)), key).await
    }

    async fn send(&self, mut request: Outgoing<'_>, key: Option<String>) -> Result<Incoming, Failure> {
        let secret = self.account.secret_key.expose_secret();
        request.authorization = Authorization::Bearer(Zeroizing::new(secret.to_owned()));
        request.headers.push(("Stripe-Version", VERSION.to_owned()));
        request.headers.extend(key.map(|key| ("Idempotency-Key", key)));
        send(&self.upstream, request).await
    }

    async fn session(&self, id: &str) -> Result<Session, Failure> {
        success(&self.get(&format!("v1/checkout/sessions/{}", safe(id)?)).await?)
    }
}

#[async_trait]
impl Processor for Stripe {
    fn lives(&self) -> (Duration, Duration) {
        // Stripe's bounds, with a little time for the request to arrive.
        (Duration::from_mins(31), Duration::from_mins(24 * 60 - 1))
    }

    fn takes(&self, money: Money) -> Result<(), &'static str> {
        match units(money) {
            None => Err("cannot be paid at Stripe to the last unit, and is not rounded"),
            Some(units) if units > MOST => Err("is more than Stripe takes at once"),
            Some(_) => Ok(()),
        }
    }

    async fn open(&self, order: &NewOrder<'_>) -> Result<Opened, Failure> {
        let request = order.request;
        let amount = units(request.money).ok_or(Failure::Refused(Fault::Order))?.to_string();
        let currency = request.money.currency.code().to_ascii_lowercase();
        let expires_at = order.closes_at.seconds().to_string();
        let form = [
            ("mode", "payment"),
            ("line_items[0][quantity]", "1"),
            ("line_items[0][price_data][currency]", &currency),
            ("line_items[0][price_data][unit_amount]", &amount),
            ("line_items[0][price_data][product_data][name]", &request.description),
            ("client_reference_id", &request.reference),
            ("metadata[sidegate_order]", order.name),
            ("payment_intent_data[metadata][sidegate_order]", order.name),
            ("payment_intent_data[metadata][reference]", &request.reference),
            ("success_url", &order.return_url),
            ("cancel_url", &order.cancel_url),
            ("expires_at", &expires_at),
            // Else the person may be charged in another currency.
            ("adaptive_pricing[enabled]", "false"),
        ];
        let opened = self.post("v1/checkout/sessions", &form, Some(format!("{}-open", order.name))).await?;
        let session: Session = success(&opened)?;
        let url = session.url.ok_or(Failure::Passing(Fault::Answer))?;
        Ok(Opened { id: session.id, url })
    }

    async fn fetch(&self, id: &str) -> Result<Statement, Failure> {
        let session = self.session(id).await?;
        let status = match (session.status.as_deref(), session.payment_status.as_deref()) {
            (Some("open"), _) => Status::Open,
            (Some("expired"), _) => Status::Closed,
            (Some("complete"), Some("paid")) => {
                Status::Paid(session.payment_intent.clone().ok_or(Failure::Passing(Fault::Answer))?)
            }
            // In flight, or it came to nothing: the session does not say.
            (Some("complete"), Some("unpaid")) => {
                let intent = session.payment_intent.as_deref().ok_or(Failure::Passing(Fault::Answer))?;
                let path = format!("v1/payment_intents/{}", safe(intent)?);
                let said: Intent = success(&self.get(&path).await?)?;
                match said.status.as_str() {
                    "requires_payment_method" | "canceled" => Status::Closed,
                    _ => Status::Processing,
                }
            }
            _ => return Err(Failure::Passing(Fault::Answer)),
        };
        let currency = session.currency.and_then(|code| code.parse().ok());
        let money = currency.zip(session.amount_total);
        Ok(Statement {
            name: session.metadata.and_then(|mut metadata| metadata.remove(OURS)),
            status,
            money: money.and_then(|(currency, units)| Money::from_units(units, decimals(currency), currency)),
            livemode: session.livemode,
        })
    }

    async fn close(&self, id: &str) -> Result<Closing, Failure> {
        let path = format!("v1/checkout/sessions/{}/expire", safe(id)?);
        let answer = self.post(&path, &[], None).await?;
        match answer.status {
            200..=299 => Ok(Closing::Closed),
            // It is not open: it may just have been paid.
            400 => Ok(Closing::LookAgain),
            status => Err(of_status(status)),
        }
    }

    async fn refund(&self, paid: &Paid, key: &str) -> Result<(), Failure> {
        let form = [("payment_intent", paid.payment.as_str()), ("metadata[sidegate_refund]", key)];
        let answer = self.post("v1/refunds", &form, Some(key.to_owned())).await?;
        if answer.is_success() {
            return match word(&answer, "/status").as_deref() {
                Some("failed" | "canceled") => Err(Failure::Refused(Fault::Order)),
                _ => Ok(()),
            };
        }
        match word(&answer, "/error/code").as_deref() {
            Some("charge_already_refunded") => Ok(()),
            _ => Err(error(&answer)),
        }
    }

    async fn verify(&self, webhook: &Webhook<'_>, now: Timestamp) -> Result<Vec<Notice>, Unverified> {
        let header = (webhook.header)("stripe-signature").ok_or(Unverified::Missing)?;
        let parts = || header.split(',').filter_map(|part| part.trim().split_once('='));
        let time = parts().find(|(name, _)| *name == "t").map(|(_, time)| time).ok_or(Unverified::Missing)?;
        let signed = [time.as_bytes(), b".", webhook.body].concat();
        let holds = |signature: &str| {
            let Some(signature) = from_hex(signature) else { return false };
            self.account.webhook_secrets.iter().any(|secret| {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
                hmac::verify(&key, &signed, &signature).is_ok()
            })
        };
        if !parts().any(|(name, _)| name == "v1") {
            return Err(Unverified::Missing);
        }
        if !parts().any(|(name, signature)| name == "v1" && holds(signature)) {
            return Err(Unverified::Wrong);
        }
        // Only now: whoever has no secret learns nothing about our clock.
        let time: i64 = time.parse().map_err(|_| Unverified::Missing)?;
        if now.seconds().abs_diff(time) > TOLERANCE.unsigned_abs() {
            return Err(Unverified::Old);
        }
        let Ok(event) = serde_json::from_slice::<Event>(webhook.body) else { return Ok(Vec::new()) };
        let about = event.kind.starts_with("checkout.session.").then_some(event.data.object.id).flatten();
        Ok(about.into_iter().map(|id| Notice { id, livemode: event.livemode }).collect())
    }

    async fn check(&self) -> Result<(), Failure> {
        // Of a session that cannot be; a key that is accepted gets no further than that.
        match self.session("cs_sidegate_check").await {
            Ok(_) | Err(Failure::Unknown | Failure::Refused(_)) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

/// What a success says, or what its error means.
fn success<T: serde::de::DeserializeOwned>(answer: &Incoming) -> Result<T, Failure> {
    if !answer.is_success() {
        return Err(error(answer));
    }
    serde_json::from_slice(&answer.body).map_err(|_| Failure::Passing(Fault::Answer))
}

fn error(answer: &Incoming) -> Failure {
    match (answer.status, word(answer, "/error/type").as_deref()) {
        (409, _) => Failure::Busy,
        // Stripe keeps what it answered first to a key, its own failures included.
        (500.., _) if answer.replayed => Failure::Spent,
        // Under a key that Stripe has with other parameters: what was opened under it is not ours to find.
        (_, Some("idempotency_error")) => Failure::Refused(Fault::Order),
        (status, _) => of_status(status),
    }
}

/// How many decimals Stripe counts: not always as ISO 4217 does.
const fn decimals(currency: Currency) -> u8 {
    match currency.code().as_bytes() {
        b"MGA" => 0,
        // Sent as if they had cents.
        b"ISK" | b"UGX" => 2,
        _ => currency.decimals(),
    }
}

/// An amount in Stripe's units. Of currencies with three decimals the last must be 0.
fn units(money: Money) -> Option<u64> {
    let units = money.in_units_of(decimals(money.currency))?;
    (money.currency.decimals() != 3 || units.is_multiple_of(10)).then_some(units)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    bytes.chunks_exact(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}
