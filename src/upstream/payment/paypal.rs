//! `PayPal` Orders v2. What the person approves is not paid yet: we must capture it, and a capture can take a while.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::{Access, Credentials, Sent};
use super::failure::of_status;
use super::settings::PayPal as Account;
use super::{Closing, Failure, Fault, NewOrder, Notice, Processor, Unverified, Webhook, safe, word};
use crate::domain::money::{Currency, Money};
use crate::domain::order::{Opened, Paid, Statement, Status};
use crate::domain::{Clock, Timestamp};
use crate::upstream::Upstream;
use crate::upstream::http::{Body, Incoming, Outgoing};

/// How far the time of a webhook may be from ours, on either side: `PayPal` sends one for three days, each time with the time of
/// that try.
const TOLERANCE: i64 = 300;

/// The client.
pub struct PayPal {
    account: Account,
    access: Access,
}

#[derive(Deserialize)]
struct Order {
    id: String,
    status: Option<String>,
    #[serde(default)]
    purchase_units: Vec<Unit>,
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Unit {
    custom_id: Option<String>,
    amount: Option<Amount>,
    #[serde(default)]
    payments: Payments,
}

#[derive(Default, Deserialize)]
struct Payments {
    #[serde(default)]
    captures: Vec<Capture>,
}

#[derive(Deserialize)]
struct Capture {
    id: String,
    status: String,
    amount: Option<Amount>,
}

#[derive(Deserialize)]
struct Amount {
    currency_code: String,
    value: String,
}

#[derive(Deserialize)]
struct Link {
    rel: String,
    href: String,
}

impl PayPal {
    /// A client in the name of this account.
    #[must_use]
    pub fn new(account: Account, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        let credentials = Credentials {
            api_base: account.api_base.clone(),
            path: "v1/oauth2/token",
            id: account.client_id.clone(),
            secret: account.client_secret.clone(),
            sent: Sent::Header,
        };
        Self { account, access: Access::new(credentials, upstream, clock) }
    }

    async fn call(&self, path: &str, body: Option<Body<'_>>, key: Option<&str>) -> Result<Incoming, Failure> {
        let url = self.access.url(path)?;
        let mut request = match body {
            None => Outgoing::get(&url),
            Some(body) => Outgoing::post(&url, body),
        };
        request.headers.extend(key.map(|key| ("PayPal-Request-Id", key.to_owned())));
        // Else an answer to a change is not the whole order.
        request.headers.push(("Prefer", "return=representation".to_owned()));
        self.access.send(request).await
    }
}

#[async_trait]
impl Processor for PayPal {
    fn lives(&self) -> (Duration, Duration) {
        // It does not say, and is not told: whoever does not capture is not paid.
        (Duration::from_mins(10), Duration::from_hours(3))
    }

    fn takes(&self, money: Money) -> Result<(), &'static str> {
        let decimals = decimals(money.currency).ok_or("is in a currency that PayPal does not take")?;
        match money.in_units_of(decimals) {
            None => Err("cannot be paid at PayPal to the last unit, and is not rounded"),
            Some(_) => Ok(()),
        }
    }

    async fn open(&self, order: &NewOrder<'_>) -> Result<Opened, Failure> {
        let request = order.request;
        let money = request.money;
        let value = decimals(money.currency)
            .and_then(|decimals| money.to_decimal(decimals))
            .ok_or(Failure::Refused(Fault::Order))?;
        let body = json!({
            "intent": "CAPTURE",
            "purchase_units": [{
                "description": request.description,
                // The books show it: our name for it, and the client's.
                "custom_id": format!("{} {}", order.name, request.reference),
                "amount": {"currency_code": money.currency.code(), "value": value},
            }],
            "payment_source": {"paypal": {"experience_context": {
                "return_url": order.return_url,
                "cancel_url": order.cancel_url,
                "user_action": "PAY_NOW",
                "shipping_preference": "NO_SHIPPING",
            }}},
        });
        let key = format!("{}-open", order.name);
        let answer = self.call("v2/checkout/orders", Some(Body::Json(&body)), Some(&key)).await?;
        let opened: Order = success(&answer)?;
        let to_person = |link: &Link| matches!(link.rel.as_str(), "payer-action" | "approve");
        let link = opened.links.into_iter().find(to_person).ok_or(Failure::Passing(Fault::Answer))?;
        Ok(Opened { id: opened.id, url: link.href })
    }

    async fn fetch(&self, id: &str) -> Result<Statement, Failure> {
        let answer = self.call(&format!("v2/checkout/orders/{}", safe(id)?), None, None).await?;
        let order: Order = success(&answer)?;
        let unit = order.purchase_units.into_iter().next().ok_or(Failure::Passing(Fault::Answer))?;
        let captures = unit.payments.captures;
        // The last try counts; one that came to nothing leaves room for another.
        let capture = captures.iter().find(|capture| capture.status != "DECLINED").or(captures.last());
        let status = match (order.status.as_deref(), capture) {
            (_, Some(capture)) => match capture.status.as_str() {
                "COMPLETED" | "PARTIALLY_REFUNDED" => Status::Paid(capture.id.clone()),
                "REFUNDED" => Status::Refunded,
                "PENDING" => Status::Processing,
                "DECLINED" | "FAILED" => Status::Closed,
                _ => return Err(Failure::Passing(Fault::Answer)),
            },
            (Some("CREATED" | "SAVED" | "PAYER_ACTION_REQUIRED"), None) => Status::Open,
            (Some("APPROVED"), None) => Status::Approved,
            (Some("VOIDED"), None) => Status::Closed,
            _ => return Err(Failure::Passing(Fault::Answer)),
        };
        let amount = capture.and_then(|capture| capture.amount.as_ref()).or(unit.amount.as_ref());
        let custom = unit.custom_id.unwrap_or_default();
        Ok(Statement {
            name: custom.split(' ').next().filter(|name| !name.is_empty()).map(str::to_owned),
            status,
            money: amount
                .and_then(|amount| Money::from_decimal(&amount.value, amount.currency_code.parse().ok()?)),
            livemode: None,
        })
    }

    async fn settle(&self, id: &str, key: &str) -> Result<(), Failure> {
        let path = format!("v2/checkout/orders/{}/capture", safe(id)?);
        let answer = self.call(&path, Some(Body::Json(&json!({}))), Some(key)).await?;
        if answer.is_success() {
            return Ok(());
        }
        match issue(&answer).as_deref() {
            Some("ORDER_ALREADY_CAPTURED") => Ok(()),
            // The person is to choose another way to pay.
            Some("INSTRUMENT_DECLINED" | "ORDER_NOT_APPROVED" | "PAYER_ACTION_REQUIRED") => {
                Err(Failure::Refused(Fault::Order))
            }
            _ => Err(of_status(answer.status)),
        }
    }

    async fn close(&self, _id: &str) -> Result<Closing, Failure> {
        // Nothing is taken that we do not capture, and we capture nothing for what has ended.
        Ok(Closing::Closed)
    }

    async fn refund(&self, paid: &Paid, key: &str) -> Result<(), Failure> {
        let path = format!("v2/payments/captures/{}/refund", safe(&paid.payment)?);
        let answer = self.call(&path, Some(Body::Json(&json!({}))), Some(key)).await?;
        if answer.is_success() {
            return match word(&answer, "/status").as_deref() {
                Some("FAILED" | "CANCELLED") => Err(Failure::Refused(Fault::Order)),
                _ => Ok(()),
            };
        }
        match issue(&answer).as_deref() {
            Some("CAPTURE_FULLY_REFUNDED") => Ok(()),
            _ => Err(of_status(answer.status)),
        }
    }

    async fn verify(&self, webhook: &Webhook<'_>, now: Timestamp) -> Result<Vec<Notice>, Unverified> {
        let header = |name: &str| (webhook.header)(name).ok_or(Unverified::Missing);
        let time = header("paypal-transmission-time")?;
        let members = json!({
            "transmission_id": header("paypal-transmission-id")?,
            "transmission_time": time,
            "transmission_sig": header("paypal-transmission-sig")?,
            "cert_url": header("paypal-cert-url")?,
            "auth_algo": header("paypal-auth-algo")?,
            "webhook_id": self.account.webhook_id,
        });
        let event: Value = serde_json::from_slice(webhook.body).map_err(|_| Unverified::Wrong)?;
        let written: Timestamp = time.parse().map_err(|_| Unverified::Missing)?;
        if now.seconds().abs_diff(written.seconds()) > TOLERANCE.unsigned_abs() {
            return Err(Unverified::Old);
        }
        // The event goes there as it came, to the letter: that is what was signed.
        let text = std::str::from_utf8(webhook.body).map_err(|_| Unverified::Wrong)?;
        let members = members.to_string();
        let members = members.strip_suffix('}').unwrap_or_default();
        let body = Body::JsonText(format!("{members},\"webhook_event\":{text}}}"));
        let path = "v1/notifications/verify-webhook-signature";
        let answer = self.call(path, Some(body), None).await.map_err(|_| Unverified::Unavailable)?;
        if !answer.is_success() {
            return Err(if answer.status == 400 { Unverified::Wrong } else { Unverified::Unavailable });
        }
        if word(&answer, "/verification_status").as_deref() != Some("SUCCESS") {
            return Err(Unverified::Wrong);
        }
        let place = match event.get("resource_type").and_then(Value::as_str) {
            Some("checkout-order") => "/resource/id",
            Some("capture" | "refund") => "/resource/supplementary_data/related_ids/order_id",
            _ => return Ok(Vec::new()),
        };
        let id = event.pointer(place).and_then(Value::as_str);
        Ok(id.map(|id| Notice { id: id.to_owned(), livemode: None }).into_iter().collect())
    }

    async fn check(&self) -> Result<(), Failure> {
        self.access.token().await?;
        let path = format!("v1/notifications/webhooks/{}", safe(&self.account.webhook_id)?);
        success::<Value>(&self.call(&path, None, None).await?).map(drop)
    }
}

fn success<T: serde::de::DeserializeOwned>(answer: &Incoming) -> Result<T, Failure> {
    if !answer.is_success() {
        return Err(of_status(answer.status));
    }
    serde_json::from_slice(&answer.body).map_err(|_| Failure::Passing(Fault::Answer))
}

/// The word for what was wrong with a request that could not be processed.
fn issue(answer: &Incoming) -> Option<String> {
    word(answer, "/details/0/issue")
}

/// How many decimals `PayPal` counts; `None` for currencies that it does not take.
fn decimals(currency: Currency) -> Option<u8> {
    match currency.code() {
        "HUF" | "JPY" | "TWD" => Some(0),
        "AUD" | "BRL" | "CAD" | "CNY" | "CZK" | "DKK" | "EUR" | "HKD" | "ILS" | "MYR" | "MXN" | "NZD"
        | "NOK" | "PHP" | "PLN" | "GBP" | "SGD" | "SEK" | "CHF" | "THB" | "USD" => Some(2),
        _ => None,
    }
}
