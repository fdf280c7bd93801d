//! A signed identity token that an identity-aware proxy puts into a header of every request.
//!
//! The token is checked in full each time: one header, a fixed list of algorithms, the issuer's published key,
//! `iss`, `aud`, `exp`, `nbf` (RFC 7519, RFC 8725). A minute of clock skew is allowed.

mod keys;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value};
use url::Url;

use super::{Browser, Identified, IdentitySource, Nobody, Person, Reason, Session};
use crate::domain::{Clock, Subject};
use crate::upstream::{Upstream, UpstreamError};
use keys::{FoundKey, PublishedKeys};

const WORD: &str = "proxy";
const LONGEST_TOKEN: usize = 16 * 1024;
/// Clock skew that is allowed, in seconds.
const SKEW: i64 = 60;
/// Public-key signatures only: with a shared secret, whoever can check a token can also make one.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

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
    /// The claim that is the person's id.
    pub subject_claim: String,
}

/// Where a JSON Web Key Set (RFC 7517) is.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// At a URL.
    Url(Url),
    /// In a file.
    File(PathBuf),
}

/// The identity source `proxy`.
pub struct Proxy {
    settings: ProxySettings,
    keys: PublishedKeys,
    validation: Validation,
    clock: Arc<dyn Clock>,
}

impl Proxy {
    /// The source with these settings.
    #[must_use]
    pub fn new(settings: ProxySettings, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_required_spec_claims(&["iss", "aud", "exp"]);
        validation.set_issuer(&[&settings.issuer]);
        validation.set_audience(&[&settings.audience]);
        // The library would ask the system's clock; `check_time` asks ours.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let keys = PublishedKeys::new(settings.keys.clone(), upstream, Arc::clone(&clock));
        Self { settings, keys, validation, clock }
    }

    /// Whether the issuer's keys can be had now.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn check(&self) -> Result<(), UpstreamError> {
        self.keys.check().await
    }

    async fn verify(&self, token: &str) -> Result<Person, Failed> {
        let header = decode_header(token).map_err(|error| match error.kind() {
            // `none`, and whatever else is no algorithm that is known.
            ErrorKind::Json(_) | ErrorKind::InvalidAlgorithmName => Failed::Refused(Reason::Algorithm),
            _ => Failed::Refused(Reason::Malformed),
        })?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(Failed::Refused(Reason::Algorithm));
        }
        let key = match self.keys.find(header.kid.as_deref(), header.alg).await {
            FoundKey::Key(key) => key,
            FoundKey::WrongAlgorithm => return Err(Failed::Refused(Reason::Algorithm)),
            FoundKey::Unknown => return Err(Failed::Refused(Reason::KeyUnknown)),
            FoundKey::Unavailable => return Err(Failed::Unavailable),
        };
        // The library wants algorithms of the key's family alone; this one is of our list and fits the key.
        let validation = Validation { algorithms: vec![header.alg], ..self.validation.clone() };
        let claims = decode::<Map<String, Value>>(token, &key, &validation)
            .map_err(|error| Failed::Refused(reason(error.kind())))?
            .claims;
        self.check_time(&claims).map_err(Failed::Refused)?;
        self.person(&claims).ok_or(Failed::Refused(Reason::SubjectMissing))
    }

    fn check_time(&self, claims: &Map<String, Value>) -> Result<(), Reason> {
        let now = self.clock.now().seconds();
        // A NumericDate may have a fraction (RFC 7519 §2).
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the fraction does not matter, and the cast saturates"
        )]
        let seconds = |claim: &Value| claim.as_f64().map(|seconds| seconds as i64);
        let time = |name: &str| claims.get(name).map(|claim| seconds(claim).ok_or(Reason::Time)).transpose();
        let (expires, begins, issued) = (time("exp")?.ok_or(Reason::Time)?, time("nbf")?, time("iat")?);
        let begun = |moment: Option<i64>| moment.is_none_or(|moment| moment <= now + SKEW);
        if now < expires.saturating_add(SKEW) && begun(begins) && begun(issued) {
            Ok(())
        } else {
            Err(Reason::Time)
        }
    }

    fn person(&self, claims: &Map<String, Value>) -> Option<Person> {
        let text = |name: &str| claims.get(name)?.as_str().filter(|text| !text.trim().is_empty());
        let id = text(&self.settings.subject_claim)?.to_owned();
        let name =
            ["email", "name", "preferred_username"].into_iter().find_map(text).unwrap_or(&id).to_owned();
        let subject = Subject { issuer: self.settings.issuer.clone(), id };
        let session = Session::of(WORD, &subject);
        Some(Person { subject, name, session })
    }
}

enum Failed {
    Refused(Reason),
    Unavailable,
}

fn reason(kind: &ErrorKind) -> Reason {
    match kind {
        ErrorKind::InvalidSignature => Reason::Signature,
        ErrorKind::InvalidIssuer => Reason::Issuer,
        ErrorKind::InvalidAudience => Reason::Audience,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidKeyFormat => Reason::Algorithm,
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "iss" => Reason::Issuer,
            "aud" => Reason::Audience,
            _ => Reason::Time,
        },
        _ => Reason::Malformed,
    }
}

#[async_trait(?Send)]
impl IdentitySource for Proxy {
    fn word(&self) -> &'static str {
        WORD
    }

    fn vouches_for(&self, issuer: &str) -> bool {
        issuer == self.settings.issuer
    }

    fn default_subject(&self) -> Option<Subject> {
        None
    }

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
        if token.len() > LONGEST_TOKEN {
            return Identified::Nobody(Nobody::Refused(Reason::Malformed));
        }
        match self.verify(token).await {
            Ok(person) => Identified::Person(person),
            Err(Failed::Refused(reason)) => Identified::Nobody(Nobody::Refused(reason)),
            Err(Failed::Unavailable) => Identified::Unavailable,
        }
    }
}
