//! The way to an API that wants an access token, which it gives for our name and secret (client credentials, RFC 6749 §4.4).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::failure::of_status;
use super::{Failure, Fault, below, send};
use crate::domain::{Clock, Timestamp};
use crate::upstream::Upstream;
use crate::upstream::http::{Authorization, Body, Incoming, Outgoing};

/// An access token is used until so long before its end.
const EARLY: Duration = Duration::from_mins(2);

/// Sends requests with an access token, which it asks for when it has none that counts.
pub(super) struct Access {
    credentials: Credentials,
    upstream: Arc<Upstream>,
    clock: Arc<dyn Clock>,
    /// The access token, and until when it is used.
    token: Mutex<Option<(Zeroizing<String>, Timestamp)>>,
}

/// Who we are at an API, and where it is.
pub(super) struct Credentials {
    /// Where the API is.
    pub api_base: Url,
    /// Where tokens are, below that.
    pub path: &'static str,
    /// Our name.
    pub id: String,
    /// Our secret.
    pub secret: SecretString,
    /// Where it wants both.
    pub sent: Sent,
}

/// Where an API wants name and secret.
pub(super) enum Sent {
    /// As `client_secret_basic`.
    Header,
    /// As `client_secret_post`.
    Body,
}

#[derive(Deserialize)]
struct Token {
    access_token: Zeroizing<String>,
    expires_in: u64,
}

impl Access {
    pub(super) const fn new(
        credentials: Credentials,
        upstream: Arc<Upstream>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { credentials, upstream, clock, token: Mutex::new(None) }
    }

    /// Where something is at the API.
    pub(super) fn url(&self, path: &str) -> Result<Url, Failure> {
        below(&self.credentials.api_base, path)
    }

    /// Sends a request with an access token. One that is refused is not used again.
    pub(super) async fn send(&self, mut request: Outgoing<'_>) -> Result<Incoming, Failure> {
        request.authorization = Authorization::Bearer(self.token().await?);
        let answer = send(&self.upstream, request).await?;
        if answer.status == 401 {
            self.token.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        Ok(answer)
    }

    /// The access token.
    pub(super) async fn token(&self) -> Result<Zeroizing<String>, Failure> {
        let now = self.clock.now();
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((token, until)) = known
            && now < until
        {
            return Ok(token);
        }
        let Credentials { path, id, secret, sent, .. } = &self.credentials;
        let (url, secret) = (self.url(path)?, secret.expose_secret());
        let mut form = vec![("grant_type", "client_credentials")];
        let authorization = match sent {
            Sent::Header => Authorization::Basic(id.clone(), Zeroizing::new(secret.to_owned())),
            Sent::Body => {
                form.extend([("client_id", id.as_str()), ("client_secret", secret)]);
                Authorization::None
            }
        };
        let mut request = Outgoing::post(&url, Body::Form(&form));
        request.authorization = authorization;
        let answer = send(&self.upstream, request).await?;
        if !answer.is_success() {
            return Err(of_status(answer.status));
        }
        let token: Token =
            serde_json::from_slice(&answer.body).map_err(|_| Failure::Passing(Fault::Answer))?;
        let until = now + Duration::from_secs(token.expires_in).saturating_sub(EARLY);
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((token.access_token.clone(), until));
        Ok(token.access_token)
    }
}
