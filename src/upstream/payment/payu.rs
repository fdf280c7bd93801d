//! `PayU`, REST API 2.1: an order is opened with a redirect, paid on their page, and told of by signed notifications.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use md5::{Digest as _, Md5};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::{Access, Credentials, Sent};
use super::failure::of_status;
use super::settings::PayU as Account;
use super::{Closing, Failure, Fault, NewOrder, Notice, Processor, Unverified, Webhook, safe, word};
use crate::domain::binding::sha256;
use crate::domain::money::{Currency, Money};
use crate::domain::order::{Opened, Paid, Statement, Status};
use crate::domain::{Clock, Timestamp};
use crate::upstream::Upstream;
use crate::upstream::http::{Body, Incoming, Outgoing};

/// `PayU` wants the person's address; it is not passed on.
const ADDRESS: &str = "127.0.0.1";

/// The client.
pub struct PayU {
    account: Account,
    access: Access,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    redirect_uri: String,
    order_id: String,
}

#[derive(Deserialize)]
struct Orders {
    orders: Vec<Order>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    #[serde(rename = "orderId")]
    id: String,
    ext_order_id: Option<String>,
    status: String,
    total_amount: Value,
    currency_code: String,
}

/// What a refund's notification has not is an order.
#[derive(Deserialize)]
struct Notification {
    order: Option<Notified>,
}

#[derive(Deserialize)]
struct Notified {
    #[serde(rename = "orderId")]
    id: String,
}

#[derive(Deserialize)]
struct Refunds {
    refunds: Vec<Refund>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refund {
    ext_refund_id: Option<String>,
    status: String,
}

impl PayU {
    /// A client in the name of this account.
    #[must_use]
    pub fn new(account: Account, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        let credentials = Credentials {
            api_base: account.api_base.clone(),
            path: "pl/standard/user/oauth/authorize",
            id: account.client_id.clone(),
            secret: account.client_secret.clone(),
            sent: Sent::Body,
        };
        Self { account, access: Access::new(credentials, upstream, Arc::clone(&clock)), clock }
    }

    async fn call(&self, path: &str, body: Option<&Value>, deletes: bool) -> Result<Incoming, Failure> {
        let url = self.access.url(path)?;
        let mut request = match body {
            None => Outgoing::get(&url),
            Some(body) => Outgoing::post(&url, Body::Json(body)),
        };
        request.deletes = deletes;
        self.access.send(request).await
    }
}

#[async_trait]
impl Processor for PayU {
    fn lives(&self) -> (Duration, Duration) {
        (Duration::from_mins(10), Duration::from_hours(24))
    }

    fn takes(&self, money: Money) -> Result<(), &'static str> {
        match money.in_units_of(decimals(money.currency)) {
            None => Err("cannot be paid at PayU to the last unit, and is not rounded"),
            Some(_) => Ok(()),
        }
    }

    async fn open(&self, order: &NewOrder<'_>) -> Result<Opened, Failure> {
        let request = order.request;
        let money = request.money;
        let amount =
            money.in_units_of(decimals(money.currency)).ok_or(Failure::Refused(Fault::Order))?.to_string();
        let lasts = order.closes_at.seconds() - self.clock.now().seconds();
        let body = json!({
            "merchantPosId": self.account.pos_id,
            "customerIp": ADDRESS,
            "extOrderId": order.name,
            "description": request.description,
            "additionalDescription": request.reference,
            "currencyCode": money.currency.code(),
            "totalAmount": amount,
            "validityTime": lasts.max(1).to_string(),
            "continueUrl": order.return_url,
            "notifyUrl": order.webhook_url,
            "products": [{"name": request.description, "unitPrice": amount, "quantity": "1"}],
        });
        let answer = self.call("api/v2_1/orders", Some(&body), false).await?;
        // It redirects, which is not followed: the answer says the same.
        if !matches!(answer.status, 200..=302) {
            return Err(match code(&answer).as_deref() {
                // Opened before under this name, and what was answered then is lost: nobody was sent there, and nobody can be.
                Some("ORDER_NOT_UNIQUE" | "ERROR_ORDER_NOT_UNIQUE") => {
                    if let Some(id) = word(&answer, "/orderId") {
                        self.close(&id).await?;
                    }
                    Failure::Refused(Fault::Order)
                }
                _ => of_status(answer.status),
            });
        }
        let created: Created =
            serde_json::from_slice(&answer.body).map_err(|_| Failure::Passing(Fault::Answer))?;
        Ok(Opened { id: created.order_id, url: created.redirect_uri })
    }

    async fn fetch(&self, id: &str) -> Result<Statement, Failure> {
        let answer = self.call(&format!("api/v2_1/orders/{}", safe(id)?), None, false).await?;
        if !answer.is_success() {
            return Err(of_status(answer.status));
        }
        let said: Orders =
            serde_json::from_slice(&answer.body).map_err(|_| Failure::Passing(Fault::Answer))?;
        let order = said.orders.into_iter().next().ok_or(Failure::Passing(Fault::Answer))?;
        let status = match order.status.as_str() {
            "NEW" | "PENDING" => Status::Open,
            "WAITING_FOR_CONFIRMATION" => Status::Approved,
            "COMPLETED" => Status::Paid(order.id),
            "CANCELED" => Status::Closed,
            _ => return Err(Failure::Passing(Fault::Answer)),
        };
        let units = match &order.total_amount {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.as_u64(),
            _ => None,
        };
        let currency: Option<Currency> = order.currency_code.parse().ok();
        let money = currency.zip(units);
        Ok(Statement {
            name: order.ext_order_id,
            status,
            money: money.and_then(|(currency, units)| Money::from_units(units, decimals(currency), currency)),
            livemode: None,
        })
    }

    async fn settle(&self, id: &str, _key: &str) -> Result<(), Failure> {
        let path = format!("api/v2_1/orders/{}/captures", safe(id)?);
        let answer = self.call(&path, Some(&json!({})), false).await?;
        match (answer.status, code(&answer).as_deref()) {
            (200..=299, Some("SUCCESS")) => Ok(()),
            (200..=299, _) => Err(Failure::Refused(Fault::Order)),
            (status, _) => Err(of_status(status)),
        }
    }

    async fn close(&self, id: &str) -> Result<Closing, Failure> {
        let answer = self.call(&format!("api/v2_1/orders/{}", safe(id)?), None, true).await?;
        match (answer.status, code(&answer).as_deref()) {
            (200..=299, Some("SUCCESS")) => Ok(Closing::Closed),
            // It says no with success, too: it may just have been paid.
            (200..=299 | 400 | 409 | 422, _) => Ok(Closing::LookAgain),
            (status, _) => Err(of_status(status)),
        }
    }

    async fn refund(&self, paid: &Paid, key: &str) -> Result<(), Failure> {
        let path = format!("api/v2_1/orders/{}/refunds", safe(&paid.id)?);
        // An answer may have been lost.
        let known = self.call(&path, None, false).await?;
        if let Ok(known) = serde_json::from_slice::<Refunds>(&known.body) {
            let ours = |refund: &Refund| refund.ext_refund_id.as_deref() == Some(key);
            if known.refunds.iter().any(|refund| ours(refund) && refund.status != "CANCELED") {
                return Ok(());
            }
        }
        // The same to the letter each time, which is not done twice.
        let body = json!({"refund": {"description": "Refund", "extRefundId": key}});
        let answer = self.call(&path, Some(&body), false).await?;
        match (answer.status, word(&answer, "/refund/status").as_deref()) {
            (200..=299, Some("CANCELED")) => Err(Failure::Refused(Fault::Order)),
            (200..=299, _) => Ok(()),
            (status, _) => Err(of_status(status)),
        }
    }

    /// A hash over the body and the second key. It tells no time, so an old one verifies as well: what it is about is asked for
    /// anew.
    async fn verify(&self, webhook: &Webhook<'_>, _now: Timestamp) -> Result<Vec<Notice>, Unverified> {
        let header = ["openpayu-signature", "x-openpayu-signature"].into_iter().find_map(webhook.header);
        let header = header.ok_or(Unverified::Missing)?;
        let part = |name: &str| {
            let parts = header.split(';').filter_map(|part| part.trim().split_once('='));
            parts.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let signature = part("signature").ok_or(Unverified::Missing)?;
        let signed = [webhook.body, self.account.second_key.expose_secret().as_bytes()].concat();
        let expected = match part("algorithm") {
            Some("MD5") => hex(&Md5::digest(&signed)),
            Some("SHA-256" | "SHA256") => hex(&sha256(&signed)),
            _ => return Err(Unverified::Missing),
        };
        if verify_slices_are_equal(signature.to_ascii_lowercase().as_bytes(), expected.as_bytes()).is_err() {
            return Err(Unverified::Wrong);
        }
        let Ok(said) = serde_json::from_slice::<Notification>(webhook.body) else { return Ok(Vec::new()) };
        Ok(said.order.map(|order| Notice { id: order.id, livemode: None }).into_iter().collect())
    }

    async fn check(&self) -> Result<(), Failure> {
        self.access.token().await.map(drop)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `PayU`'s own word for what was wrong.
fn code(answer: &Incoming) -> Option<String> {
    word(answer, "/status/codeLiteral").or_else(|| word(answer, "/status/statusCode"))
}

/// How many decimals `PayU` counts: always two.
const fn decimals(_currency: Currency) -> u8 {
    2
}
