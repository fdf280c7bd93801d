//! What an issuer publishes about itself (OpenID Connect Discovery 1.0, RFC 8414): fetched when it is needed, kept for a
//! while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use url::Url;

use super::keys::{KeySource, PublishedKeys};
use super::{Upstream, UpstreamError};
use crate::domain::{Clock, Timestamp};

/// After this time it is fetched again.
const FRESH: Duration = Duration::from_mins(10);
/// If it cannot be fetched, it serves for this long.
const USABLE: Duration = Duration::from_hours(1);
/// The least time between two attempts, after one that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// The members of the document that are used here, by their names in it.
#[expect(missing_docs, reason = "RFC 8414 §2 says what they are")]
#[derive(Debug, Deserialize)]
pub struct Metadata {
    pub issuer: String,
    pub authorization_endpoint: Url,
    pub token_endpoint: Url,
    pub jwks_uri: Option<Url>,
    pub revocation_endpoint: Option<Url>,
    pub pushed_authorization_request_endpoint: Option<Url>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub response_modes_supported: Option<Vec<String>>,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// An issuer, as far as it is known.
pub struct Issuer {
    /// What it says of itself.
    pub metadata: Metadata,
    /// Its keys, if it publishes any.
    pub keys: Option<PublishedKeys>,
    at: Timestamp,
}

/// Why an issuer is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// Its metadata cannot be had now.
    #[error("its metadata cannot be had")]
    Unavailable,
    /// The metadata is of another issuer, or names endpoints that must not be used.
    #[error("its metadata is not accepted")]
    NotAccepted,
}

/// Finds an issuer's metadata.
pub struct Discovery {
    issuer: String,
    upstream: Arc<Upstream>,
    clock: Arc<dyn Clock>,
    known: Mutex<Option<Arc<Issuer>>>,
    /// One fetch at a time. Holds what the last one came to, and when.
    failed: tokio::sync::Mutex<Option<(Timestamp, DiscoveryError)>>,
}

impl Discovery {
    /// Finds the metadata of the issuer of this name. Nothing is fetched yet.
    #[must_use]
    pub fn new(issuer: String, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        Self { issuer, upstream, clock, known: Mutex::new(None), failed: tokio::sync::Mutex::new(None) }
    }

    /// The issuer.
    ///
    /// # Errors
    /// [`DiscoveryError`].
    pub async fn find(&self) -> Result<Arc<Issuer>, DiscoveryError> {
        if let Some(issuer) = self.known(FRESH) {
            return Ok(issuer);
        }
        let mut failed = self.failed.lock().await;
        if let Some(issuer) = self.known(FRESH) {
            return Ok(issuer);
        }
        let now = self.clock.now();
        let error = match *failed {
            Some((at, error)) if now < at + AFTER_FAILURE => error,
            _ => match self.fetch().await {
                Ok(issuer) => {
                    *failed = None;
                    return Ok(self.keep(issuer));
                }
                Err(error) => {
                    *failed = Some((self.clock.now(), error));
                    error
                }
            },
        };
        self.known(USABLE).ok_or(error)
    }

    fn known(&self, for_at_most: Duration) -> Option<Arc<Issuer>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        (self.clock.now() < known.at + for_at_most).then_some(known)
    }

    fn keep(&self, issuer: Issuer) -> Arc<Issuer> {
        let issuer = Arc::new(issuer);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&issuer));
        issuer
    }

    async fn fetch(&self) -> Result<Issuer, DiscoveryError> {
        let metadata = self.document().await.map_err(|error| {
            tracing::warn!(%error, "an issuer's metadata cannot be had");
            match error {
                UpstreamError::Malformed(_) => DiscoveryError::NotAccepted,
                _ => DiscoveryError::Unavailable,
            }
        })?;
        let wrong = match metadata.endpoints().find_map(|url| self.upstream.permit(url).err()) {
            Some(error) => Some(error.to_string()),
            None if metadata.issuer != self.issuer => Some("it is another issuer's".to_owned()),
            None => None,
        };
        if let Some(error) = wrong {
            tracing::error!(error, "an issuer's metadata is not accepted");
            return Err(DiscoveryError::NotAccepted);
        }
        let keys = metadata.jwks_uri.clone().map(|url| {
            PublishedKeys::new(KeySource::Url(url), Arc::clone(&self.upstream), Arc::clone(&self.clock))
        });
        Ok(Issuer { metadata, keys, at: self.clock.now() })
    }

    /// By OpenID Connect Discovery §4, or where that is not there by RFC 8414 §3.
    async fn document(&self) -> Result<Metadata, UpstreamError> {
        let malformed = |_| UpstreamError::Malformed(self.issuer.clone());
        let base = self.issuer.trim_end_matches('/');
        let url = Url::parse(&format!("{base}/.well-known/openid-configuration")).map_err(malformed)?;
        match self.upstream.get_json(&url).await {
            Err(UpstreamError::Status(_, 400..500)) => {
                let mut url = Url::parse(base).map_err(malformed)?;
                let path =
                    format!("/.well-known/oauth-authorization-server{}", url.path().trim_end_matches('/'));
                url.set_path(&path);
                self.upstream.get_json(&url).await
            }
            other => other,
        }
    }
}

impl Metadata {
    /// Every URL in it that is used.
    fn endpoints(&self) -> impl Iterator<Item = &Url> {
        let always = [&self.authorization_endpoint, &self.token_endpoint];
        let more = [&self.jwks_uri, &self.revocation_endpoint, &self.pushed_authorization_request_endpoint];
        always.into_iter().chain(more.into_iter().flatten())
    }

    /// Whether the token endpoint takes HTTP Basic: the default where no method is named (RFC 8414 §2).
    #[must_use]
    pub fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}
