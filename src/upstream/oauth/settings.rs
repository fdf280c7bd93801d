//! What is known of a provider: its endpoints, and in what it differs from the specification. All of it is data; most comes
//! from a preset.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey};
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

/// A provider as configured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names it in requests, and in the redirect URI.
    pub id: String,
    /// What people read.
    pub name: String,
    /// Which preset it is made from: whose words for scopes are shown.
    pub preset: Option<String>,
    /// Our name there.
    pub client_id: String,
    /// How we prove that it is we.
    pub proof: ClientProof,
    /// How that is brought; if absent, as the metadata says.
    pub authentication: Option<Authentication>,
    /// The `aud` of an assertion of ours, if it is not the issuer or the token endpoint.
    pub assertion_audience: Option<String>,
    /// The issuer: of its metadata where endpoints are missing, of its ID tokens, and of its answers (RFC 9207).
    pub issuer: Option<String>,
    /// Where it is reached; what is missing comes from the metadata.
    pub endpoints: Endpoints,
    /// What is asked for when a request names no scopes.
    pub scopes: Vec<String>,
    /// A scope that is asked for beside the others, for a refresh token.
    pub offline_scope: Option<String>,
    /// What stands between scopes.
    pub scope_separator: Separator,
    /// The parameter that has the scopes.
    pub scope_parameter: String,
    /// More parameters of an authorization request.
    pub parameters: Vec<(String, String)>,
    /// More parameters of a refresh request.
    pub refresh_parameters: Vec<(String, String)>,
    /// How requests for tokens are written.
    pub token_body: TokenBody,
    /// How long a token lasts of which the provider does not say it.
    pub token_lifetime: Option<Duration>,
    /// JSON pointers (RFC 6901) to the object with the tokens, the first that has any counts.
    pub places: Vec<String>,
    /// JSON pointers to what else is released with the tokens.
    pub extra: Vec<String>,
    /// JSON pointers to what the account is called.
    pub account: Vec<String>,
    /// Whether PKCE is used (RFC 7636): unless the provider breaks.
    pub pkce: bool,
    /// Whether requests are pushed (RFC 9126); if absent, where it is offered.
    pub par: Option<bool>,
    /// Whether answers are to be signed (JARM); if absent, where it is offered.
    pub jarm: Option<bool>,
    /// Whether answers come as a form.
    pub form_post: bool,
    /// Whether tokens are bound to a key (RFC 9449).
    pub dpop: bool,
    /// How tokens are revoked; if absent, by RFC 7009 where the metadata says where.
    pub revocation: Option<Revocation>,
}

/// Where a provider is reached.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// Where the browser goes.
    pub authorization: Option<Url>,
    /// Where a code is exchanged.
    pub token: Option<Url>,
    /// Where a token is renewed, if elsewhere.
    pub refresh: Option<Url>,
    /// Where a request is pushed.
    pub par: Option<Url>,
    /// Where the provider's keys are.
    pub jwks: Option<Url>,
}

/// How we prove to a provider that it is we.
#[derive(Clone)]
pub enum ClientProof {
    /// Not at all: a public client.
    None,
    /// By a secret.
    Secret(SecretString),
    /// By signing with a key of ours.
    Key {
        /// The key.
        key: Arc<EncodingKey>,
        /// How it signs.
        algorithm: Algorithm,
        /// Its name in the key set that we have registered.
        id: Option<String>,
    },
}

impl ClientProof {
    /// The private key in these PEM bytes: RSA, elliptic curve or Ed25519. `None` if it is none of them.
    #[must_use]
    pub fn key(pem: &[u8], id: Option<String>) -> Option<Self> {
        let (key, algorithm) = EncodingKey::from_rsa_pem(pem)
            .map(|key| (key, Algorithm::RS256))
            .or_else(|_| EncodingKey::from_ec_pem(pem).map(|key| (key, Algorithm::ES256)))
            .or_else(|_| EncodingKey::from_ed_pem(pem).map(|key| (key, Algorithm::EdDSA)))
            .ok()?;
        Some(Self::Key { key: Arc::new(key), algorithm, id })
    }
}

impl fmt::Debug for ClientProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Secret(_) => "Secret(…)",
            Self::Key { .. } => "Key(…)",
        })
    }
}

/// How a client proves to a token endpoint who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authentication {
    /// HTTP Basic, both parts form-encoded (RFC 6749 §2.3.1).
    Basic,
    /// HTTP Basic without that encoding.
    BasicRaw,
    /// Name and secret in the body.
    Post,
    /// The name alone, in the body.
    None,
    /// A signed assertion (RFC 7523).
    PrivateKeyJwt,
}

/// What stands between scopes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Separator {
    /// A space, as RFC 6749 §3.3 has it.
    #[default]
    Space,
    /// A comma.
    Comma,
    /// A plus sign.
    Plus,
    /// The provider knows no scopes.
    None,
}

impl Separator {
    /// The scopes in one text; `None` if there is nothing to send.
    #[must_use]
    pub fn join(self, scopes: &[String]) -> Option<String> {
        let between = match self {
            Self::Space => " ",
            Self::Comma => ",",
            Self::Plus => "+",
            Self::None => return None,
        };
        (!scopes.is_empty()).then(|| scopes.join(between))
    }
}

/// How a request for tokens is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenBody {
    /// As a form.
    #[default]
    Form,
    /// As JSON.
    Json,
}

/// A provider's own way to revoke.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// Where; `{client_id}` and `{token}` are filled in.
    pub url: String,
    /// By which method.
    #[serde(default)]
    pub method: RevocationMethod,
    /// Which token is named.
    #[serde(default)]
    pub token: WhichToken,
    /// How the body is written.
    #[serde(default)]
    pub body: RevocationBody,
    /// The member that has the token; empty if none has.
    #[serde(default = "token_field")]
    pub field: String,
    /// In whose name.
    #[serde(default)]
    pub authentication: RevocationAuthentication,
    /// More members; `{client_id}` and `{extra.NAME}` are filled in.
    #[serde(default)]
    pub parameters: std::collections::BTreeMap<String, String>,
}

fn token_field() -> String {
    "token".to_owned()
}

/// See [`Revocation::method`].
#[expect(missing_docs, reason = "HTTP methods")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RevocationMethod {
    #[default]
    Post,
    Delete,
}

/// See [`Revocation::token`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichToken {
    /// The access token, or the other if there is none.
    #[default]
    Access,
    /// The refresh token, or the other if there is none.
    Refresh,
}

/// See [`Revocation::body`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevocationBody {
    /// A form.
    #[default]
    Form,
    /// JSON.
    Json,
    /// Nothing.
    None,
}

/// See [`Revocation::authentication`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevocationAuthentication {
    /// As at the token endpoint.
    #[default]
    Client,
    /// Our name and secret by HTTP Basic, whatever the token endpoint takes.
    Basic,
    /// The token itself.
    Bearer,
    /// Nobody's name.
    None,
}

/// Parameters of an authorization request that nothing else may set (R14).
pub const RESERVED: [&str; 13] = [
    "scope",
    "response_type",
    "response_mode",
    "client_id",
    "client_secret",
    "redirect_uri",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "request",
    "request_uri",
    "resource",
];
