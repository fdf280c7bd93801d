//! What a browser brings back from a provider: checked, before anything is done with it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::failure::{Failure, Fault, of_authorization};
use super::{Places, Provider, Ties};
use crate::upstream::token::{Claims, Failed, text};

/// The parameters of an authorization response (RFC 6749 §4.1.2, RFC 9207, JARM §2.3).
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct Returned {
    /// The authorization code.
    pub code: Option<Zeroizing<String>>,
    /// Who says so.
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
    /// All of that, signed.
    pub response: Option<Zeroizing<String>>,
}

/// The `state` that a signed response names: not to be believed until the response was checked.
#[must_use]
pub fn named_state(response: &str) -> Option<String> {
    let payload = URL_SAFE_NO_PAD.decode(response.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    text(&claims, "state").map(str::to_owned)
}

impl Provider {
    /// Checks an answer, and takes the code from it.
    ///
    /// # Errors
    /// [`Failure::Refused`] if it is not this provider's answer to this request; else what its error means.
    pub async fn receive(&self, returned: &Returned, ties: &Ties) -> Result<Zeroizing<String>, Failure> {
        let places = self.places().await?;
        let Returned { code, iss, error, response } = returned;
        let (code, iss, error) = match (ties.signed, response) {
            (false, None) => (code.clone(), iss.clone(), error.clone()),
            (true, Some(response)) => {
                let claims = self.read_signed(&places, response, ties).await?;
                let claim = |name| text(&claims, name).map(str::to_owned);
                (claim("code").map(Zeroizing::new), claim("iss"), claim("error"))
            }
            // What was to be signed must be, and nothing else is looked at.
            _ => return Err(Failure::Refused(Fault::SignedAnswer)),
        };
        self.check_issuer(&places, iss.as_deref())?;
        match (error, code) {
            (Some(error), _) => {
                Err(self.logged("a provider answered with an error", of_authorization(&error)))
            }
            (None, Some(code)) => Ok(code),
            (None, None) => Err(Failure::Passing(Fault::Error)),
        }
    }

    /// RFC 9207 §2.4: the answer names the issuer that was asked, if it names any; and it must, where the metadata says so.
    fn check_issuer(&self, places: &Places, iss: Option<&str>) -> Result<(), Failure> {
        let advertised = places
            .issuer
            .as_ref()
            .is_some_and(|issuer| issuer.metadata.authorization_response_iss_parameter_supported);
        let right = match (iss, self.settings.issuer.as_deref()) {
            (Some(iss), Some(ours)) => iss == ours,
            // By a redirect URI of its own the provider is known all the same.
            (Some(_), None) => true,
            (None, _) => !advertised,
        };
        if right { Ok(()) } else { Err(Failure::Refused(Fault::Issuer)) }
    }

    /// The claims of a signed response (JARM §2.4).
    async fn read_signed(&self, places: &Places, response: &str, ties: &Ties) -> Result<Claims, Failure> {
        let refused = Failure::Refused(Fault::SignedAnswer);
        let (Some(keys), Some(verifier)) = (self.keys(places), &self.verifier) else { return Err(refused) };
        let claims = verifier.verify(response, keys).await.map_err(|failed| match failed {
            Failed::Refused(_) => refused,
            Failed::Unavailable => Failure::Passing(Fault::NoAnswer),
        })?;
        if text(&claims, "state") == Some(&ties.state) { Ok(claims) } else { Err(refused) }
    }
}
