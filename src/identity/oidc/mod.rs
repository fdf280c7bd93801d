//! The browser signs in at an OpenID Connect issuer: authorization code, PKCE, `state`, `nonce`
//! (OpenID Connect Core 1.0 §3.1, RFC 7636, RFC 9207).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use super::token::{self, SubjectClaim};
use super::{IdentitySource, Reason, Returned, SignIn, SignInError, SignedIn, Ties, Way};
use crate::domain::Clock;
use crate::domain::binding::sha256;
use crate::upstream::metadata::{Discovery, Issuer};
use crate::upstream::token::{Claims, Failed, SKEW, Verifier, check_id_token, moment, text};
use crate::upstream::{Upstream, UpstreamError};

/// How people sign in at an issuer.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    /// The issuer: the `iss` of its ID tokens, the `issuer` of subjects, and where its metadata is.
    pub issuer: String,
    /// Our name there.
    pub client_id: String,
    /// Our secret there, if we have one.
    pub client_secret: Option<SecretString>,
    /// What is asked for, `openid` among it.
    pub scopes: Vec<String>,
    /// What is the person's id.
    pub subject_claim: SubjectClaim,
    /// What the issuer is to ask the person (Core §3.1.2.1).
    pub prompt: Option<String>,
    /// The same, when the person says that it was somebody else who signed in.
    pub switch_prompt: String,
    /// How long ago the person may have signed in.
    pub max_age: Option<Duration>,
    /// By which means, any of these; empty for any.
    pub acr_values: Vec<String>,
}

/// The identity source `oidc`.
pub struct Oidc {
    settings: OidcSettings,
    discovery: Discovery,
    verifier: Verifier,
    upstream: Arc<Upstream>,
    clock: Arc<dyn Clock>,
}

/// What the token endpoint answers, as far as it is used.
#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
}

/// Whoever signs ID tokens publishes keys.
const NO_KEYS: SignInError = SignInError::Unavailable(Reason::Metadata);

impl Oidc {
    /// The source with these settings.
    #[must_use]
    pub fn new(settings: OidcSettings, upstream: Arc<Upstream>, clock: Arc<dyn Clock>) -> Self {
        let discovery = Discovery::new(settings.issuer.clone(), Arc::clone(&upstream), Arc::clone(&clock));
        let verifier = Verifier::new(&settings.issuer, &settings.client_id, Arc::clone(&clock));
        Self { settings, discovery, verifier, upstream, clock }
    }

    /// Whether the issuer's metadata and keys can be had now.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn check(&self) -> Result<(), SignInError> {
        let issuer = self.discovery.find().await?;
        let keys = issuer.keys.as_ref().ok_or(NO_KEYS)?;
        keys.check().await.map_err(|_| SignInError::Unavailable(Reason::KeysUnavailable))
    }

    async fn exchange(&self, issuer: &Issuer, code: &str, ties: &Ties) -> Result<SecretString, SignInError> {
        let id = self.settings.client_id.as_str();
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &ties.redirect_uri),
            ("code_verifier", &ties.verifier),
        ];
        let secret = self.settings.client_secret.as_ref().map(ExposeSecret::expose_secret);
        let takes_basic = issuer.metadata.takes_basic();
        let basic = secret.filter(|_| takes_basic).map(|secret| (id, secret));
        if basic.is_none() {
            form.push(("client_id", id));
            form.extend(secret.map(|secret| ("client_secret", secret)));
        }
        let answer = self.upstream.post_form(&issuer.metadata.token_endpoint, &form, basic).await;
        let tokens: Tokens = answer.map_err(|error| {
            if matches!(error, UpstreamError::Status(_, 400..=407 | 409..=428)) {
                tracing::warn!(%error, "an issuer did not accept an authorization code");
                SignInError::Refused(Reason::Code)
            } else {
                tracing::warn!(%error, "an issuer's token endpoint does not work");
                SignInError::Unavailable(Reason::TokenUnavailable)
            }
        })?;
        tokens.id_token.map(SecretString::from).ok_or(SignInError::Refused(Reason::TokenMissing))
    }

    /// What an ID token must say beside what any token must (Core §3.1.3.7).
    fn check_claims(&self, claims: &Claims, nonce: &str) -> Result<(), Reason> {
        check_id_token(claims, nonce, &self.settings.client_id).map_err(Reason::Token)?;
        if let Some(max_age) = self.settings.max_age {
            let long_ago = Reason::SignedInLongAgo;
            let signed_in = moment(claims, "auth_time").map_err(|()| long_ago)?.ok_or(long_ago)?;
            let latest = i64::try_from(max_age.as_secs()).unwrap_or(i64::MAX).saturating_add(SKEW);
            if self.clock.now().seconds().saturating_sub(signed_in) > latest {
                return Err(long_ago);
            }
        }
        let accepted = &self.settings.acr_values;
        let means = text(claims, "acr");
        if !accepted.is_empty() && !means.is_some_and(|means| accepted.iter().any(|acr| acr == means)) {
            return Err(Reason::Means);
        }
        Ok(())
    }
}

impl IdentitySource for Oidc {
    fn word(&self) -> &'static str {
        "oidc"
    }

    fn vouches_for(&self, issuer: &str) -> bool {
        issuer == self.settings.issuer
    }

    fn way(&self) -> Way<'_> {
        Way::SignIn(self)
    }
}

#[async_trait(?Send)]
impl SignIn for Oidc {
    async fn begin(&self, ties: &Ties, again: bool) -> Result<Url, SignInError> {
        let issuer = self.discovery.find().await?;
        let settings = &self.settings;
        let mut url = issuer.metadata.authorization_endpoint.clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &settings.client_id)
            .append_pair("redirect_uri", &ties.redirect_uri)
            .append_pair("scope", &settings.scopes.join(" "))
            .append_pair("state", &ties.state)
            .append_pair("nonce", &ties.nonce)
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(sha256(ties.verifier.as_bytes())))
            .append_pair("code_challenge_method", "S256");
        let prompt = if again { Some(settings.switch_prompt.as_str()) } else { settings.prompt.as_deref() };
        if let Some(prompt) = prompt.filter(|prompt| !prompt.is_empty()) {
            query.append_pair("prompt", prompt);
        }
        if let Some(max_age) = settings.max_age {
            query.append_pair("max_age", &max_age.as_secs().to_string());
        }
        if !settings.acr_values.is_empty() {
            query.append_pair("acr_values", &settings.acr_values.join(" "));
        }
        drop(query);
        Ok(url)
    }

    async fn finish(&self, returned: Returned<'_>, ties: &Ties) -> Result<SignedIn, SignInError> {
        let issuer = self.discovery.find().await?;
        let must_name = issuer.metadata.authorization_response_iss_parameter_supported;
        let right = returned.iss.map_or(!must_name, |iss| iss == self.settings.issuer);
        if !right {
            return Err(SignInError::Refused(Reason::AnsweringIssuer));
        }
        let code = match (returned.error, returned.code) {
            (Some("access_denied"), _) => return Err(SignInError::Refused(Reason::Denied)),
            (Some("server_error" | "temporarily_unavailable"), _) => {
                return Err(SignInError::Unavailable(Reason::IssuerError));
            }
            (None, Some(code)) => code,
            _ => return Err(SignInError::Refused(Reason::IssuerError)),
        };
        let token = self.exchange(&issuer, code, ties).await?;
        let claims =
            self.verifier.verify(token.expose_secret(), issuer.keys.as_ref().ok_or(NO_KEYS)?).await.map_err(
                |failed| match failed {
                    Failed::Refused(rejected) => SignInError::Refused(Reason::Token(rejected)),
                    Failed::Unavailable => SignInError::Unavailable(Reason::KeysUnavailable),
                },
            )?;
        self.check_claims(&claims, &ties.nonce).map_err(SignInError::Refused)?;
        let (subject, name) = token::person(&claims, &self.settings.issuer, &self.settings.subject_claim)
            .map_err(SignInError::Refused)?;
        Ok(SignedIn { subject, name, claims })
    }
}
