//! Tells a client's server what happened: Standard Webhooks, signed, thin, with ids and states alone.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretSlice};
use url::Url;

use super::Upstream;
use super::http::{Body, Outgoing};
use crate::domain::Timestamp;

/// What is configured of an endpoint.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is.
    pub url: Url,
    /// With what messages are signed: several while one is replaced.
    pub secrets: Vec<SecretSlice<u8>>,
}

/// An endpoint of a client's server.
pub struct Endpoint {
    settings: Settings,
    upstream: Arc<Upstream>,
    /// It is gone and wants nothing more (410).
    gone: AtomicBool,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// The endpoint does not answer, or not with success; when it wants the next try, if it says so.
    #[error("the endpoint did not take it")]
    Failed(Option<Duration>),
    /// The endpoint wants nothing more.
    #[error("the endpoint is gone")]
    Gone,
}

/// How long the endpoint may take.
const TIME: Duration = Duration::from_secs(20);
/// The longest pause that an endpoint may ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// How long a secret may be, in bytes.
const SECRET: std::ops::RangeInclusive<usize> = 24..=64;

/// The bytes of a secret `whsec_…`.
#[must_use]
pub fn read_secret(text: &str) -> Option<SecretSlice<u8>> {
    let bytes = STANDARD.decode(text.trim().strip_prefix("whsec_")?).ok()?;
    SECRET.contains(&bytes.len()).then(|| SecretSlice::from(bytes))
}

impl Endpoint {
    /// An endpoint with these settings.
    #[must_use]
    pub const fn new(settings: Settings, upstream: Arc<Upstream>) -> Self {
        Self { settings, upstream, gone: AtomicBool::new(false) }
    }

    /// Whether it wants nothing more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Delivers a message. `id` is the same at each try.
    ///
    /// # Errors
    /// [`Undelivered`].
    pub async fn deliver(&self, id: &str, body: String, now: Timestamp) -> Result<(), Undelivered> {
        let mut request = Outgoing::post(&self.settings.url, Body::JsonText(body.clone()));
        request.time = TIME;
        request.headers = vec![
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", now.seconds().to_string()),
            ("webhook-signature", self.signatures(id, now, &body)),
        ];
        let answer = self.upstream.send(request).await.map_err(|_| Undelivered::Failed(None))?;
        match answer.status {
            200..=299 => Ok(()),
            410 => {
                self.gone.store(true, Ordering::Relaxed);
                Err(Undelivered::Gone)
            }
            _ => Err(Undelivered::Failed(answer.retry_after.map(|after| after.min(LONGEST_PAUSE)))),
        }
    }

    fn signatures(&self, id: &str, now: Timestamp, body: &str) -> String {
        let signed = format!("{id}.{}.{body}", now.seconds());
        let sign = |secret: &SecretSlice<u8>| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret());
            format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())))
        };
        self.settings.secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
    }
}
