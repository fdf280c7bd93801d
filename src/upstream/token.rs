//! Signed tokens that say who somebody is (JWT): a fixed list of algorithms, the issuer's published key, `iss`, `aud`,
//! `exp`, `nbf` (RFC 7519, RFC 8725). A minute of clock skew is allowed.

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::keys::{FoundKey, PublishedKeys};
use crate::domain::Clock;

/// What a token says.
pub type Claims = Map<String, Value>;

const LONGEST_TOKEN: usize = 16 * 1024;
/// Clock skew that is allowed, in seconds.
pub const SKEW: i64 = 60;
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
pub struct Verifier {
    validation: Validation,
    clock: Arc<dyn Clock>,
}

/// What is wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// No signed token.
    Malformed,
    /// An algorithm that is not on the list, or not the key's.
    Algorithm,
    /// A key that the issuer does not publish.
    KeyUnknown,
    /// The signature does not hold.
    Signature,
    /// Another issuer's.
    Issuer,
    /// For another audience.
    Audience,
    /// No longer, or not yet, valid.
    Time,
    /// It was made for another sign-in.
    Nonce,
    /// It was handed to another party.
    AuthorizedParty,
}

impl Rejected {
    /// A stable word for the audit trail.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "token_malformed",
            Self::Algorithm => "token_algorithm",
            Self::KeyUnknown => "token_key_unknown",
            Self::Signature => "token_signature",
            Self::Issuer => "token_issuer",
            Self::Audience => "token_audience",
            Self::Time => "token_time",
            Self::Nonce => "token_nonce",
            Self::AuthorizedParty => "token_azp",
        }
    }
}

/// Why a token says nothing.
#[derive(Debug)]
pub enum Failed {
    /// It is not accepted.
    Refused(Rejected),
    /// The issuer's keys cannot be had.
    Unavailable,
}

impl Verifier {
    /// A verifier of `issuer`'s tokens for `audience`.
    #[must_use]
    pub fn new(issuer: &str, audience: &str, clock: Arc<dyn Clock>) -> Self {
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
    ///
    /// # Errors
    /// [`Failed`].
    pub async fn verify(&self, token: &str, keys: &PublishedKeys) -> Result<Claims, Failed> {
        if token.len() > LONGEST_TOKEN {
            return Err(Failed::Refused(Rejected::Malformed));
        }
        let header = decode_header(token).map_err(|error| match error.kind() {
            // `none`, and whatever else is no algorithm that is known.
            ErrorKind::Json(_) | ErrorKind::InvalidAlgorithmName => Failed::Refused(Rejected::Algorithm),
            _ => Failed::Refused(Rejected::Malformed),
        })?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(Failed::Refused(Rejected::Algorithm));
        }
        let key = match keys.find(header.kid.as_deref(), header.alg).await {
            FoundKey::Key(key) => key,
            FoundKey::WrongAlgorithm => return Err(Failed::Refused(Rejected::Algorithm)),
            FoundKey::Unknown => return Err(Failed::Refused(Rejected::KeyUnknown)),
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

    fn check_time(&self, claims: &Claims) -> Result<(), Rejected> {
        let now = self.clock.now().seconds();
        let time = |name: &str| moment(claims, name).map_err(|()| Rejected::Time);
        let (expires, begins, issued) = (time("exp")?.ok_or(Rejected::Time)?, time("nbf")?, time("iat")?);
        let begun = |moment: Option<i64>| moment.is_none_or(|moment| moment <= now + SKEW);
        if now < expires.saturating_add(SKEW) && begun(begins) && begun(issued) {
            Ok(())
        } else {
            Err(Rejected::Time)
        }
    }
}

/// What an ID token must say beside what any token must (OpenID Connect Core §3.1.3.7): it answers the request with this
/// `nonce`, and was made for `client_id` alone.
///
/// # Errors
/// [`Rejected::Nonce`], [`Rejected::AuthorizedParty`].
pub fn check_id_token(claims: &Claims, nonce: &str, client_id: &str) -> Result<(), Rejected> {
    if text(claims, "nonce") != Some(nonce) {
        return Err(Rejected::Nonce);
    }
    let several = claims.get("aud").and_then(|aud| aud.as_array()).is_some_and(|aud| aud.len() > 1);
    match claims.get("azp") {
        None if !several => Ok(()),
        Some(azp) if azp.as_str() == Some(client_id) => Ok(()),
        _ => Err(Rejected::AuthorizedParty),
    }
}

/// The seconds of a claim that is a time; an error if it is something else.
///
/// # Errors
/// If it is something else.
#[expect(clippy::result_unit_err, reason = "there is nothing more to say of it")]
pub fn moment(claims: &Claims, name: &str) -> Result<Option<i64>, ()> {
    // A NumericDate may have a fraction (RFC 7519 §2).
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the fraction does not matter, and the cast saturates"
    )]
    let seconds = |claim: &Value| claim.as_f64().map(|seconds| seconds as i64);
    claims.get(name).map(|claim| seconds(claim).ok_or(())).transpose()
}

/// The claim of this name, if it is a text that is not empty.
#[must_use]
pub fn text<'a>(claims: &'a Claims, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

fn reason(kind: &ErrorKind) -> Rejected {
    match kind {
        ErrorKind::InvalidSignature => Rejected::Signature,
        ErrorKind::InvalidIssuer => Rejected::Issuer,
        ErrorKind::InvalidAudience => Rejected::Audience,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidKeyFormat => Rejected::Algorithm,
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "iss" => Rejected::Issuer,
            "aud" => Rejected::Audience,
            _ => Rejected::Time,
        },
        _ => Rejected::Malformed,
    }
}
