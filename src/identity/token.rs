//! Signed tokens that say who somebody is (JWT): a fixed list of algorithms, the issuer's published key, `iss`, `aud`,
//! `exp`, `nbf` (RFC 7519, RFC 8725). A minute of clock skew is allowed.

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::Reason;
use super::keys::{FoundKey, PublishedKeys};
use crate::domain::{Clock, Subject};

/// What a token says.
pub(super) type Claims = Map<String, Value>;

const LONGEST_TOKEN: usize = 16 * 1024;
/// Clock skew that is allowed, in seconds.
pub(super) const SKEW: i64 = 60;
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

/// Checks tokens of one issuer for one audience.
pub(super) struct Verifier {
    validation: Validation,
    clock: Arc<dyn Clock>,
}

/// Why a token says nothing.
#[derive(Debug)]
pub(super) enum Failed {
    Refused(Reason),
    /// The issuer's keys cannot be had.
    Unavailable,
}

impl Verifier {
    pub(super) fn new(issuer: &str, audience: &str, clock: Arc<dyn Clock>) -> Self {
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_required_spec_claims(&["iss", "aud", "exp"]);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        // The library would ask the system's clock; `check_time` asks ours.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        Self { validation, clock }
    }

    /// What `token` says, if one of `keys` signed it.
    pub(super) async fn verify(&self, token: &str, keys: &PublishedKeys) -> Result<Claims, Failed> {
        if token.len() > LONGEST_TOKEN {
            return Err(Failed::Refused(Reason::Malformed));
        }
        let header = decode_header(token).map_err(|error| match error.kind() {
            // `none`, and whatever else is no algorithm that is known.
            ErrorKind::Json(_) | ErrorKind::InvalidAlgorithmName => Failed::Refused(Reason::Algorithm),
            _ => Failed::Refused(Reason::Malformed),
        })?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(Failed::Refused(Reason::Algorithm));
        }
        let key = match keys.find(header.kid.as_deref(), header.alg).await {
            FoundKey::Key(key) => key,
            FoundKey::WrongAlgorithm => return Err(Failed::Refused(Reason::Algorithm)),
            FoundKey::Unknown => return Err(Failed::Refused(Reason::KeyUnknown)),
            FoundKey::Unavailable => return Err(Failed::Unavailable),
        };
        // The library wants algorithms of the key's family alone; this one is of our list and fits the key.
        let validation = Validation { algorithms: vec![header.alg], ..self.validation.clone() };
        let claims = decode::<Claims>(token, &key, &validation)
            .map_err(|error| Failed::Refused(reason(error.kind())))?
            .claims;
        self.check_time(&claims).map_err(Failed::Refused)?;
        Ok(claims)
    }

    fn check_time(&self, claims: &Claims) -> Result<(), Reason> {
        let now = self.clock.now().seconds();
        let time = |name: &str| moment(claims, name).map_err(|()| Reason::Time);
        let (expires, begins, issued) = (time("exp")?.ok_or(Reason::Time)?, time("nbf")?, time("iat")?);
        let begun = |moment: Option<i64>| moment.is_none_or(|moment| moment <= now + SKEW);
        if now < expires.saturating_add(SKEW) && begun(begins) && begun(issued) {
            Ok(())
        } else {
            Err(Reason::Time)
        }
    }
}

/// The seconds of a claim that is a time; an error if it is something else.
pub(super) fn moment(claims: &Claims, name: &str) -> Result<Option<i64>, ()> {
    // A NumericDate may have a fraction (RFC 7519 §2).
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the fraction does not matter, and the cast saturates"
    )]
    let seconds = |claim: &Value| claim.as_f64().map(|seconds| seconds as i64);
    claims.get(name).map(|claim| seconds(claim).ok_or(())).transpose()
}

/// Which claims name the person, for example `sub`, or `tid+oid` for two that are joined by a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectClaim(Vec<String>);

impl SubjectClaim {
    /// Reads the setting. `None` if a part of it is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.split('+').map(str::to_owned).collect();
        parts.iter().all(|part| !part.is_empty()).then_some(Self(parts))
    }

    /// The person's id, if every claim is there. What is joined must not hold a colon itself.
    fn find(&self, claims: &Claims) -> Option<String> {
        let parts: Option<Vec<_>> = self.0.iter().map(|name| text(claims, name)).collect();
        let parts = parts?;
        (parts.len() == 1 || parts.iter().all(|part| !part.contains(':'))).then(|| parts.join(":"))
    }
}

/// Whom verified claims name, and what to call them.
pub(super) fn person(
    claims: &Claims,
    issuer: &str,
    claim: &SubjectClaim,
) -> Result<(Subject, String), Reason> {
    let id = claim.find(claims).ok_or(Reason::SubjectMissing)?;
    // Anybody can claim an address that the issuer has not verified.
    let unverified = claims.get("email_verified").is_some_and(|verified| *verified == false);
    let said =
        ["email", "name", "preferred_username"].into_iter().filter(|name| !(unverified && *name == "email"));
    let name = super::shown_name(said.filter_map(|name| text(claims, name)), &id);
    Ok((Subject { issuer: issuer.to_owned(), id }, name))
}

/// The claim of this name, if it is a text that is not empty.
pub(super) fn text<'a>(claims: &'a Claims, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str().filter(|text| !text.trim().is_empty())
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
