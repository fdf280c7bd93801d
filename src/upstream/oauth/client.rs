//! Who we are to a provider: exactly one method, and nothing that is empty.

use std::time::Duration;

use jsonwebtoken::{Header, encode};
use secrecy::ExposeSecret as _;
use serde_json::json;
use zeroize::Zeroizing;

use super::failure::{Failure, Fault};
use super::settings::{Authentication, ClientProof};
use super::{Places, Provider};
use crate::upstream::http::Authorization;

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// How long an assertion of ours counts.
const ASSERTION_TIME: Duration = Duration::from_mins(1);

impl Provider {
    /// The header that says who we are, or else the members of the body that do.
    pub(super) fn authenticate(
        &self,
        places: &Places,
        form: &mut Vec<(String, Zeroizing<String>)>,
    ) -> Result<Authorization, Failure> {
        let id = &self.settings.client_id;
        let member = |name: &str, value: &str| (name.to_owned(), Zeroizing::new(value.to_owned()));
        // A pushed request has it already, and keeps it whatever the method (RFC 9126 §2.1).
        let named = form.iter().any(|(name, _)| name == "client_id");
        let own = (!named).then(|| member("client_id", id));
        match (self.authentication(places), &self.settings.proof) {
            (Authentication::Basic, ClientProof::Secret(secret)) => {
                Ok(Authorization::basic(id, secret.expose_secret()))
            }
            (Authentication::BasicRaw, ClientProof::Secret(secret)) => {
                Ok(Authorization::Basic(id.clone(), Zeroizing::new(secret.expose_secret().to_owned())))
            }
            (Authentication::Post, ClientProof::Secret(secret)) => {
                form.extend(own);
                form.push(member("client_secret", secret.expose_secret()));
                Ok(Authorization::None)
            }
            (_, ClientProof::Key { .. }) => {
                form.extend(own);
                form.push(member("client_assertion_type", ASSERTION));
                form.push(("client_assertion".to_owned(), self.assertion(places)?));
                Ok(Authorization::None)
            }
            _ => {
                form.extend(own);
                Ok(Authorization::None)
            }
        }
    }

    fn authentication(&self, places: &Places) -> Authentication {
        self.settings.authentication.unwrap_or_else(|| {
            let basic = places.issuer.as_ref().is_none_or(|issuer| issuer.metadata.takes_basic());
            if basic { Authentication::Basic } else { Authentication::Post }
        })
    }

    /// A signed assertion (RFC 7523 §3).
    fn assertion(&self, places: &Places) -> Result<Zeroizing<String>, Failure> {
        let wrong = Failure::Passing(Fault::Configuration);
        let ClientProof::Key { key, algorithm, id } = &self.settings.proof else { return Err(wrong) };
        let issuer = self.settings.issuer.as_deref();
        let audience = self.settings.assertion_audience.as_deref().or(issuer);
        let now = self.clock.now();
        let claims = json!({
            "iss": self.settings.client_id,
            "sub": self.settings.client_id,
            "aud": audience.unwrap_or(places.token.as_str()),
            "jti": self.name(),
            "iat": now.seconds(),
            "exp": (now + ASSERTION_TIME).seconds(),
        });
        let header = Header { kid: id.clone(), ..Header::new(*algorithm) };
        encode(&header, &claims, key).map(Zeroizing::new).map_err(|_| wrong)
    }
}
