//! Kind `oauth`: what is asked of a third party, and the tokens that come of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;
use zeroize::Zeroizing;

use super::{Invalid, Timestamp};

/// What the person is asked to authorise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthRequest {
    /// The provider, by its id in the configuration.
    pub provider: String,
    /// The scopes that the handler needs.
    pub scopes: Vec<String>,
    /// For which resource the token is to be (RFC 8707).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

const MOST_SCOPES: usize = 50;
const LONGEST_SCOPE: usize = 256;
const LONGEST_RESOURCE: usize = 2048;

impl OAuthRequest {
    /// Checks what a caller asks for. Whether there is such a provider is not known here.
    ///
    /// # Errors
    /// [`Invalid`] at `oauth.…`.
    pub fn new(provider: String, scopes: Vec<String>, resource: Option<String>) -> Result<Self, Invalid> {
        let scopes = checked_scopes("oauth.scopes", scopes)?;
        if let Some(resource) = &resource {
            let absolute = Url::parse(resource).is_ok_and(|url| url.fragment().is_none() && url.has_host());
            if !absolute || resource.len() > LONGEST_RESOURCE {
                let problem = "must be an absolute URL without a fragment (RFC 8707)";
                return Err(Invalid::new("oauth.resource", problem));
            }
        }
        Ok(Self { provider, scopes, resource })
    }
}

/// Scopes as RFC 6749 §3.3 writes them, each once.
///
/// # Errors
/// [`Invalid`] at `field`.
pub fn checked_scopes(field: &str, scopes: Vec<String>) -> Result<Vec<String>, Invalid> {
    if scopes.len() > MOST_SCOPES {
        return Err(Invalid::new(field, format!("must list at most {MOST_SCOPES} scopes")));
    }
    let mut checked: Vec<String> = Vec::with_capacity(scopes.len());
    for (index, scope) in scopes.into_iter().enumerate() {
        let good = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        if scope.is_empty() || scope.len() > LONGEST_SCOPE || !scope.bytes().all(good) {
            let problem =
                format!("must have 1 to {LONGEST_SCOPE} visible ASCII characters but `\"` and `\\`");
            return Err(Invalid::new(format!("{field}[{index}]"), problem));
        }
        if !checked.contains(&scope) {
            checked.push(scope);
        }
    }
    Ok(checked)
}

/// What a provider issued. Wiped from memory when dropped; `Debug` shows no token.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tokens {
    /// The access token (RFC 6749 §1.4).
    pub access_token: Zeroizing<String>,
    /// How it is to be used: `Bearer`, or `DPoP`.
    pub token_type: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// When it ends, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// For another access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Zeroizing<String>>,
    /// What a verified ID token says (OpenID Connect Core §2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token_claims: Option<Map<String, Value>>,
    /// What else is needed to use the token at this provider.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// What the provider calls the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The private key (JWK) that a token of type `DPoP` is bound to (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<Zeroizing<String>>,
    /// For which resource it is (RFC 8707).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

impl Tokens {
    /// Whether the access token allows all of these scopes.
    #[must_use]
    pub fn cover(&self, scopes: &[String]) -> bool {
        scopes.iter().all(|scope| self.scopes.contains(scope))
    }

    /// The credential as the API releases it, without `refreshToken` if it stays here.
    #[must_use]
    pub const fn credential(&self) -> Credential<'_> {
        Credential(self)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

/// `{"accessToken", "tokenType", "scopes", "expiresAt"?, "refreshToken"?, "idTokenClaims"?, "extra"?, "dpopKey"?}`.
pub struct Credential<'a>(&'a Tokens);

impl Serialize for Credential<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Members<'a> {
            access_token: &'a str,
            token_type: &'a str,
            scopes: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            expires_at: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            refresh_token: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            id_token_claims: Option<&'a Map<String, Value>>,
            #[serde(skip_serializing_if = "Map::is_empty")]
            extra: &'a Map<String, Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            dpop_key: Option<Value>,
        }
        let tokens = self.0;
        Members {
            access_token: &tokens.access_token,
            token_type: &tokens.token_type,
            scopes: &tokens.scopes,
            expires_at: tokens.expires_at.map(|at| at.to_string()),
            refresh_token: tokens.refresh_token.as_deref().map(String::as_str),
            id_token_claims: tokens.id_token_claims.as_ref(),
            extra: &tokens.extra,
            dpop_key: tokens.dpop_key.as_ref().and_then(|key| serde_json::from_str(key).ok()),
        }
        .serialize(serializer)
    }
}
