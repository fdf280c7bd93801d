//! A signed identity token that an identity-aware proxy puts into a header of every request. It is checked in full each
//! time.

use std::sync::Arc;

use async_trait::async_trait;

use super::token::{self, SubjectClaim};
use super::{Browser, EachRequest, Identified, IdentitySource, Nobody, Person, Reason, SessionId, Way};
use crate::domain::Clock;
use crate::upstream::keys::{KeySource, PublishedKeys};
use crate::upstream::token::{Failed, Verifier};
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

    async fn verify(&self, token: &str) -> Identified {
        let claims = match self.verifier.verify(token, &self.keys).await {
            Ok(claims) => claims,
            Err(Failed::Refused(rejected)) => {
                return Identified::Nobody(Nobody::Refused(Reason::Token(rejected)));
            }
            Err(Failed::Unavailable) => return Identified::Unavailable,
        };
        match token::person(&claims, &self.settings.issuer, &self.settings.subject_claim) {
            Ok((subject, name)) => {
                let session = SessionId::of(WORD, &subject);
                Identified::Person(Person { subject, name, session })
            }
            Err(reason) => Identified::Nobody(Nobody::Refused(reason)),
        }
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
        self.verify(token).await
    }
}
