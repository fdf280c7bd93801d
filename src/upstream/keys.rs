//! The issuer's published keys: fetched when they are needed, kept for a while, fetched again when they age or
//! when a token names a key that is not among them, but not more often than once a minute.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jsonwebtoken::jwk::{Jwk, JwkSet, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use url::Url;

use super::{Upstream, UpstreamError};
use crate::domain::{Clock, Timestamp};

/// After this time keys are fetched again, so that withdrawn ones stop working.
const FRESH: Duration = Duration::from_mins(10);
/// If they cannot be fetched, they serve for this long.
const USABLE: Duration = Duration::from_hours(1);
/// The least time between two fetches, and after one that failed.
const BETWEEN: Duration = Duration::from_mins(1);
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Where a JSON Web Key Set (RFC 7517) is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// At a URL.
    Url(Url),
    /// In a file.
    File(PathBuf),
}

/// What came of looking for a key.
pub enum FoundKey {
    /// The key.
    Key(Arc<DecodingKey>),
    /// The key is for another algorithm.
    WrongAlgorithm,
    /// There is none of that name.
    Unknown,
    /// Nobody knows now.
    Unavailable,
}

/// The keys of one issuer.
pub struct PublishedKeys {
    source: KeySource,
    upstream: Arc<Upstream>,
    clock: Arc<dyn Clock>,
    known: Mutex<Option<Known>>,
    /// One fetch at a time; those who find their key do not come here. Holds when the next may begin.
    next_fetch: tokio::sync::Mutex<Timestamp>,
}

#[derive(Clone)]
struct Known {
    keys: Arc<[Published]>,
    at: Timestamp,
}

struct Published {
    id: Option<String>,
    algorithm: Option<KeyAlgorithm>,
    key: Arc<DecodingKey>,
}

impl PublishedKeys {
    /// The keys that are published there. Nothing is fetched yet.
    #[must_use]
    pub fn new(source: KeySource, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        let next_fetch = tokio::sync::Mutex::new(Timestamp::from_millis(0));
        Self { source, upstream, clock, known: Mutex::new(None), next_fetch }
    }

    /// The key that a token with this header was signed with.
    pub async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> FoundKey {
        let fresh = self.known(FRESH);
        if let Some(key) = fresh.as_ref().and_then(|known| known.find(id)) {
            return key.fitting(algorithm);
        }
        self.refresh(fresh.map(|known| known.at)).await;
        match self.known(USABLE) {
            None => FoundKey::Unavailable,
            Some(known) => known.find(id).map_or(FoundKey::Unknown, |key| key.fitting(algorithm)),
        }
    }

    /// Whether the keys can be had now.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn check(&self) -> Result<(), UpstreamError> {
        self.fetch().await.map(drop)
    }

    fn known(&self, for_at_most: Duration) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        (self.clock.now() < known.at + for_at_most).then_some(known)
    }

    /// Fetches the keys, unless somebody else has since `seen`, or just tried.
    async fn refresh(&self, seen: Option<Timestamp>) {
        let mut next_fetch = self.next_fetch.lock().await;
        let newer = self.known(FRESH).is_some_and(|known| Some(known.at) != seen);
        if newer || self.clock.now() < *next_fetch {
            return;
        }
        match self.fetch().await {
            Ok(keys) => {
                let at = self.clock.now();
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Known { keys, at });
                *next_fetch = at + BETWEEN;
            }
            Err(error) => {
                tracing::warn!(%error, "an issuer's keys cannot be had");
                *next_fetch = self.clock.now() + AFTER_FAILURE;
            }
        }
    }

    async fn fetch(&self) -> Result<Arc<[Published]>, UpstreamError> {
        let set: JwkSet = match &self.source {
            KeySource::Url(url) => self.upstream.get_json(url).await?,
            KeySource::File(path) => {
                let name = path.display().to_string();
                let text = tokio::fs::read(path).await.map_err(|_| UpstreamError::NoAnswer(name.clone()))?;
                serde_json::from_slice(&text).map_err(|_| UpstreamError::Malformed(name))?
            }
        };
        Ok(set.keys.iter().filter_map(Published::of).collect())
    }
}

impl Known {
    /// The key with this id; without an id, the only key there is.
    fn find(&self, id: Option<&str>) -> Option<&Published> {
        match (id, &*self.keys) {
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}

impl Published {
    /// A key that may verify signatures; others in the set are not looked at.
    fn of(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        let for_signing =
            common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
        let for_verifying = common
            .key_operations
            .as_ref()
            .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        let key = DecodingKey::from_jwk(jwk).ok().filter(|_| for_signing && for_verifying)?;
        Some(Self { id: common.key_id.clone(), algorithm: common.key_algorithm, key: Arc::new(key) })
    }

    fn fitting(&self, algorithm: Algorithm) -> FoundKey {
        let same_family = self.key.family() == algorithm.family();
        let named = self.algorithm.as_ref().is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
        if same_family && named { FoundKey::Key(Arc::clone(&self.key)) } else { FoundKey::WrongAlgorithm }
    }
}
