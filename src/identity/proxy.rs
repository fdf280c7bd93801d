//! A signed identity token that an identity-aware proxy puts into a header of every request. It is checked in full each
//! time.

use std::sync::Arc;

use async_trait::async_trait;

use super::keys::{KeySource, PublishedKeys};
use super::token::{self, Failed, SubjectClaim, Verifier};
use super::{Browser, EachRequest, Identified, IdentitySource, Nobody, Person, Reason, SessionId, Way};
use crate::domain::Clock;
use crate::upstream::{Upstream, UpstreamError};

const WORD: &str = "proxy";

/// How the proxy's tokens are recognised.
#[derive(Debug, Clone)]
pub struct ProxySettings {
    /// The header that carries the token.
    pub header: String,
    /// The `iss` of the tokens, and of the subjects.
    pub issuer: String,
    /// The `aud` of the tokens, or one of several.
    pub audience: String,
    /// Where the issuer's keys are.
    pub keys: KeySource,
    /// What is the person's id.
    pub subject_claim: SubjectClaim,
}

/// The identity source `proxy`.
pub struct Proxy {
    settings: ProxySettings,
    keys: PublishedKeys,
    verifier: Verifier,
}

impl Proxy {
    /// The source with these settings.
    #[must_use]
    pub fn new(settings: ProxySettings, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        let keys = PublishedKeys::new(settings.keys.clone(), upstream, Arc::clone(&clock));
        let verifier = Verifier::new(&settings.issuer, &settings.audience, clock);
        Self { settings, keys, verifier }
    }

    /// Whether the issuer's keys can be had now.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn check(&self) -> Result<(), UpstreamError> {
        self.keys.check().await
    }

    async fn verify(&self, token: &str) -> Result<Person, Failed> {
        let claims = self.verifier.verify(token, &self.keys).await?;
        let person = token::person(&claims, &self.settings.issuer, &self.settings.subject_claim);
        let (subject, name) = person.map_err(Failed::Refused)?;
        let session = SessionId::of(WORD, &subject);
        Ok(Person { subject, name, session })
    }
}

impl IdentitySource for Proxy {
    fn word(&self) -> &'static str {
        WORD
    }

    fn vouches_for(&self, issuer: &str) -> bool {
        issuer == self.settings.issuer
    }

    fn way(&self) -> Way<'_> {
        Way::EachRequest(self)
    }
}

#[async_trait(?Send)]
impl EachRequest for Proxy {
    async fn identify(&self, browser: &Browser<'_>) -> Identified {
        let tokens = (browser.header)(&self.settings.header);
        let token = match tokens.as_slice() {
            [] => return Identified::Nobody(Nobody::Absent),
            [token] => token.trim(),
            _ => return Identified::Nobody(Nobody::Refused(Reason::HeaderRepeated)),
        };
        let token = token.strip_prefix("Bearer ").unwrap_or(token);
        if token.is_empty() {
            return Identified::Nobody(Nobody::Absent);
        }
        match self.verify(token).await {
            Ok(person) => Identified::Person(person),
            Err(Failed::Refused(reason)) => Identified::Nobody(Nobody::Refused(reason)),
            Err(Failed::Unavailable) => Identified::Unavailable,
        }
    }
}
