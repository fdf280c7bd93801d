//! What an issuer publishes about itself (OpenID Connect Discovery 1.0, RFC 8414): fetched when it is needed, kept for a
//! while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use url::Url;

use crate::domain::{Clock, Timestamp};
use crate::identity::keys::{KeySource, PublishedKeys};
use crate::identity::{Reason, SignInError};
use crate::upstream::{Upstream, UpstreamError};

/// After this time it is fetched again.
const FRESH: Duration = Duration::from_mins(10);
/// If it cannot be fetched, it serves for this long.
const USABLE: Duration = Duration::from_hours(1);
/// The least time between two attempts, after one that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// The members of the document that are used here.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub issuer: String,
    pub authorization_endpoint: Url,
    pub token_endpoint: Url,
    pub jwks_uri: Url,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether every answer names its issuer (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// An issuer, as far as it is known.
pub(super) struct Issuer {
    pub metadata: Metadata,
    pub keys: PublishedKeys,
    at: Timestamp,
}

/// Finds an issuer's metadata.
pub(super) struct Discovery {
    issuer: String,
    upstream: Arc<Upstream>,
    clock: Arc<dyn Clock>,
    known: Mutex<Option<Arc<Issuer>>>,
    /// One fetch at a time. Holds what the last one came to, and when.
    failed: tokio::sync::Mutex<Option<(Timestamp, SignInError)>>,
}

impl Discovery {
    pub(super) fn new(issuer: String, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        Self { issuer, upstream, clock, known: Mutex::new(None), failed: tokio::sync::Mutex::new(None) }
    }

    /// The issuer.
    pub(super) async fn find(&self) -> Result<Arc<Issuer>, SignInError> {
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

    async fn fetch(&self) -> Result<Issuer, SignInError> {
        let metadata = self.document().await.map_err(|error| {
            tracing::warn!(%error, "an issuer's metadata cannot be had");
            match error {
                UpstreamError::Malformed(_) => SignInError::Unavailable(Reason::Metadata),
                _ => SignInError::Unavailable(Reason::MetadataUnavailable),
            }
        })?;
        let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint, &metadata.jwks_uri];
        let wrong = match endpoints.into_iter().find_map(|url| self.upstream.permit(url).err()) {
            Some(error) => Some(error.to_string()),
            None if metadata.issuer != self.issuer => Some("it is another issuer's".to_owned()),
            None => None,
        };
        if let Some(error) = wrong {
            tracing::error!(error, "an issuer's metadata is not accepted");
            return Err(SignInError::Unavailable(Reason::Metadata));
        }
        let source = KeySource::Url(metadata.jwks_uri.clone());
        let keys = PublishedKeys::new(source, Arc::clone(&self.upstream), Arc::clone(&self.clock));
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
