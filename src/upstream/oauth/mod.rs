//! OAuth providers: our own thin client (RFC 6749, 7636, 7009, 9126, 9207, 8707, 9449, JARM), as lenient as real providers
//! need it and no more. What a provider differs in is data ([`settings`]).
//!
//! An authorization in order: [`Provider::begin`] says where the browser goes; [`Provider::receive`] checks what it brings
//! back; [`Provider::exchange`] gets the tokens; [`Provider::refresh`] renews them; [`Provider::revoke`] ends them.

mod answer;
mod client;
mod dpop;
pub mod failure;
mod receive;
mod revoke;
pub mod settings;

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use url::Url;
use zeroize::Zeroizing;

pub use failure::{Failure, Fault};
pub use receive::{Returned, named_state};
pub use settings::Settings;

use super::Upstream;
use super::http::{Body, Incoming, Outgoing};
use super::keys::{KeySource, PublishedKeys};
use super::metadata::{Discovery, Issuer};
use super::token::{Failed, Verifier, check_id_token, text};
use crate::domain::binding::sha256;
use crate::domain::oauth::Tokens;
use crate::domain::text::{Shape, plain};
use crate::domain::{Clock, Random};
use answer::{Answer, Asked};

/// A provider that people can authorise.
pub struct Provider {
    settings: Settings,
    upstream: Arc<Upstream>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    discovery: Option<Discovery>,
    /// The keys that the settings name.
    keys: Option<PublishedKeys>,
    verifier: Option<Verifier>,
}

/// All providers, by id.
pub type Providers = HashMap<String, Arc<Provider>>;

/// What ties an answer to its request. Kept here; only `state`, `nonce` and a digest of `verifier` leave.
#[derive(Clone, Serialize, Deserialize)]
pub struct Ties {
    /// Comes back with the browser.
    pub state: String,
    /// Comes back in an ID token.
    pub nonce: String,
    /// Proves that it is we who asked (RFC 7636).
    pub verifier: String,
    /// Where the browser comes back to: the same string to the person, in the request and at the exchange (R12).
    pub redirect_uri: String,
    /// The scopes that were asked for.
    pub scopes: Vec<String>,
    /// For which resource (RFC 8707).
    pub resource: Option<String>,
    /// Whether the answer must be signed.
    pub signed: bool,
}

/// Where things are at a provider, by its settings and its metadata.
struct Places {
    authorization: Url,
    token: Url,
    refresh: Url,
    par: Option<Url>,
    revocation: Option<Url>,
    issuer: Option<Arc<Issuer>>,
}

impl Provider {
    /// The provider of these settings.
    #[must_use]
    pub fn new(
        settings: Settings,
        upstream: Arc<Upstream>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        let endpoints = &settings.endpoints;
        let all_known = endpoints.authorization.is_some() && endpoints.token.is_some();
        let discovery = settings
            .issuer
            .clone()
            .filter(|_| !all_known)
            .map(|issuer| Discovery::new(issuer, Arc::clone(&upstream), Arc::clone(&clock)));
        let keys = endpoints
            .jwks
            .clone()
            .map(|url| PublishedKeys::new(KeySource::Url(url), Arc::clone(&upstream), Arc::clone(&clock)));
        let verifier = settings
            .issuer
            .as_deref()
            .map(|issuer| Verifier::new(issuer, &settings.client_id, Arc::clone(&clock)));
        Self { settings, upstream, clock, random, discovery, keys, verifier }
    }

    /// What is known of it.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where the browser of a person goes, and whether the answer will be signed.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn begin(&self, ties: &mut Ties) -> Result<Url, Failure> {
        let places = self.places().await?;
        let settings = &self.settings;
        let mode = self.response_mode(&places);
        ties.signed = mode.is_some_and(|mode| mode.ends_with("jwt"));
        let mut asked = ties.scopes.clone();
        asked.extend(settings.offline_scope.clone().filter(|scope| !asked.contains(scope)));
        let mut parameters: Vec<(&str, String)> = vec![
            ("response_type", "code".to_owned()),
            ("client_id", settings.client_id.clone()),
            ("redirect_uri", ties.redirect_uri.clone()),
            ("state", ties.state.clone()),
        ];
        if settings.pkce {
            let challenge = URL_SAFE_NO_PAD.encode(sha256(ties.verifier.as_bytes()));
            parameters.extend([("code_challenge", challenge), ("code_challenge_method", "S256".to_owned())]);
        }
        parameters.extend(
            settings.scope_separator.join(&asked).map(|scope| (settings.scope_parameter.as_str(), scope)),
        );
        if asked.iter().any(|scope| scope == "openid") {
            parameters.push(("nonce", ties.nonce.clone()));
        }
        parameters.extend(ties.resource.clone().map(|resource| ("resource", resource)));
        parameters.extend(mode.map(|mode| ("response_mode", mode.to_owned())));
        parameters.extend(settings.parameters.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let mut url = places.authorization.clone();
        match &places.par {
            None => {
                url.query_pairs_mut().extend_pairs(&parameters);
            }
            Some(par) => {
                let request_uri = self.push(&places, par, parameters).await?;
                url.query_pairs_mut()
                    .append_pair("client_id", &settings.client_id)
                    .append_pair("request_uri", &request_uri);
            }
        }
        Ok(url)
    }

    /// Pushes a request (RFC 9126 §2): the name under which the provider knows it.
    async fn push(
        &self,
        places: &Places,
        par: &Url,
        parameters: Vec<(&str, String)>,
    ) -> Result<String, Failure> {
        #[derive(Deserialize)]
        struct Pushed {
            request_uri: String,
        }
        let mut form: Vec<_> =
            parameters.into_iter().map(|(name, value)| (name.to_owned(), Zeroizing::new(value))).collect();
        let incoming = self.post(places, par, &mut form, None).await?;
        let body = answer::members(&incoming);
        let error = body.as_ref().and_then(answer::error_of);
        if error.is_some() || !incoming.is_success() {
            let failure = error.as_deref().map_or(Failure::Passing(Fault::Error), failure::of_authorization);
            return Err(self.logged("a pushed authorization request was not accepted", failure));
        }
        let pushed = body.and_then(|body| serde_json::from_value::<Pushed>(body).ok());
        Ok(pushed.ok_or(Failure::Passing(Fault::Answer))?.request_uri)
    }

    /// How the answer is to come; `None` for the usual way.
    fn response_mode(&self, places: &Places) -> Option<&'static str> {
        let settings = &self.settings;
        let (plain, signed) =
            if settings.form_post { (Some("form_post"), "form_post.jwt") } else { (None, "query.jwt") };
        let modes =
            places.issuer.as_ref().and_then(|issuer| issuer.metadata.response_modes_supported.as_ref());
        let offered = modes.is_some_and(|modes| modes.iter().any(|mode| mode == signed));
        if settings.jarm.unwrap_or(offered) { Some(signed) } else { plain }
    }

    /// Exchanges a code for tokens (RFC 6749 §4.1.3).
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn exchange(&self, code: &str, ties: &Ties) -> Result<Tokens, Failure> {
        let places = self.places().await?;
        let secret = |text: &str| Zeroizing::new(text.to_owned());
        let mut form = vec![
            ("grant_type".to_owned(), secret("authorization_code")),
            ("code".to_owned(), secret(code)),
            ("redirect_uri".to_owned(), secret(&ties.redirect_uri)),
        ];
        if self.settings.pkce {
            form.push(("code_verifier".to_owned(), secret(&ties.verifier)));
        }
        form.extend(ties.resource.as_deref().map(|resource| ("resource".to_owned(), secret(resource))));
        let key = if self.settings.dpop {
            Some(dpop::fresh_key().ok_or(Failure::Passing(Fault::Configuration))?)
        } else {
            None
        };
        let asked = Asked { scopes: &ties.scopes, refreshes: false, now: self.clock.now() };
        let Answer { mut tokens, id_token } = self
            .ask_for_tokens(&places, &places.token, form, key.as_deref().map(String::as_str), &asked)
            .await?;
        tokens.resource.clone_from(&ties.resource);
        tokens.dpop_key = key.filter(|_| tokens.token_type == "DPoP");
        if let Some(id_token) = id_token {
            let read = self.read_id_token(&places, &id_token, &ties.nonce, &mut tokens).await;
            if let Err(failure) = read {
                // Nobody will have them.
                if let Err(error) = self.revoke(&tokens).await {
                    tracing::warn!(provider = self.settings.id, %error, "unneeded tokens were not revoked");
                }
                return Err(failure);
            }
        }
        Ok(tokens)
    }

    /// Renews tokens (RFC 6749 §6). What the provider does not say again stays as it was.
    ///
    /// # Errors
    /// [`Failure`]; `Final(Fault::RefreshToken)` if it will never work again.
    pub async fn refresh(&self, old: &Tokens) -> Result<Tokens, Failure> {
        let places = self.places().await?;
        let token = old.refresh_token.clone().ok_or(Failure::Final(Fault::RefreshToken))?;
        let secret = |text: &str| Zeroizing::new(text.to_owned());
        let mut form = vec![
            ("grant_type".to_owned(), secret("refresh_token")),
            ("refresh_token".to_owned(), token.clone()),
        ];
        form.extend(old.resource.as_deref().map(|resource| ("resource".to_owned(), secret(resource))));
        form.extend(
            self.settings.refresh_parameters.iter().map(|(name, value)| (name.clone(), secret(value))),
        );
        let asked = Asked { scopes: &old.scopes, refreshes: true, now: self.clock.now() };
        let key = old.dpop_key.as_deref().map(String::as_str);
        let Answer { tokens, .. } = self.ask_for_tokens(&places, &places.refresh, form, key, &asked).await?;
        let mut extra = old.extra.clone();
        extra.extend(tokens.extra);
        Ok(Tokens {
            refresh_token: tokens.refresh_token.or(Some(token)),
            id_token_claims: old.id_token_claims.clone(),
            extra,
            account: tokens.account.or_else(|| old.account.clone()),
            dpop_key: old.dpop_key.clone(),
            resource: old.resource.clone(),
            ..tokens
        })
    }

    async fn ask_for_tokens(
        &self,
        places: &Places,
        url: &Url,
        mut form: Vec<(String, Zeroizing<String>)>,
        key: Option<&str>,
        asked: &Asked<'_>,
    ) -> Result<Answer, Failure> {
        let incoming = self.post(places, url, &mut form, key).await?;
        answer::read(&incoming, &self.settings, asked)
            .map_err(|failure| self.logged("a provider gave no tokens", failure))
    }

    /// Posts to an endpoint that wants to know who we are; once more if it wants a nonce of its own in the proof
    /// (RFC 9449 §8).
    async fn post(
        &self,
        places: &Places,
        url: &Url,
        form: &mut Vec<(String, Zeroizing<String>)>,
        key: Option<&str>,
    ) -> Result<Incoming, Failure> {
        let authorization = self.authenticate(places, form)?;
        let mut nonce = String::new();
        let mut again = true;
        let pairs: Vec<(&str, &str)> =
            form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let json = match self.settings.token_body {
            settings::TokenBody::Json => Some(pairs.iter().copied().collect::<serde_json::Value>()),
            settings::TokenBody::Form => None,
        };
        loop {
            let body = json.as_ref().map_or(Body::Form(&pairs), Body::Json);
            let mut request = Outgoing::post(url, body);
            request.authorization = authorization.clone();
            if let Some(key) = key {
                let claim =
                    dpop::Claim { url, nonce: &nonce, id: self.name(), now: self.clock.now().seconds() };
                let proof = dpop::proof(key, &claim).ok_or(Failure::Passing(Fault::Configuration))?;
                request.headers.push(("DPoP", proof));
            }
            let incoming = self.upstream.send(request).await.map_err(|error| {
                tracing::warn!(provider = self.settings.id, %error, "a provider cannot be asked");
                Failure::Passing(Fault::NoAnswer)
            })?;
            if !again || key.is_none() || incoming.dpop_nonce.is_empty() || incoming.is_success() {
                return Ok(incoming);
            }
            again = false;
            nonce.clone_from(&incoming.dpop_nonce);
        }
    }

    /// Takes the claims of an ID token that holds. It came from the token endpoint over TLS, and is checked all the same;
    /// where nobody's keys are known it is left alone.
    async fn read_id_token(
        &self,
        places: &Places,
        id_token: &str,
        nonce: &str,
        tokens: &mut Tokens,
    ) -> Result<(), Failure> {
        let (Some(keys), Some(verifier)) = (self.keys(places), &self.verifier) else { return Ok(()) };
        let refused = |code: &'static str| {
            tracing::warn!(provider = self.settings.id, reason = code, "an ID token is not accepted");
            Failure::Refused(Fault::IdToken)
        };
        let claims = verifier.verify(id_token, keys).await.map_err(|failed| match failed {
            Failed::Refused(rejected) => refused(rejected.code()),
            Failed::Unavailable => Failure::Passing(Fault::NoAnswer),
        })?;
        check_id_token(&claims, nonce, &self.settings.client_id)
            .map_err(|rejected| refused(rejected.code()))?;
        let names = ["email", "preferred_username", "name", "sub"].into_iter();
        let shape = Shape { longest: 200, lines: false };
        let mut names = names.filter_map(|name| plain("account", text(&claims, name)?, shape).ok());
        tokens.account = tokens.account.take().or_else(|| names.next());
        tokens.id_token_claims = Some(claims);
        Ok(())
    }

    fn keys<'a>(&'a self, places: &'a Places) -> Option<&'a PublishedKeys> {
        self.keys.as_ref().or_else(|| places.issuer.as_ref()?.keys.as_ref())
    }

    /// Whether the provider's metadata can be had, and agrees with what is configured.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub async fn check(&self) -> Result<(), String> {
        let places = self.places().await.map_err(|failure| failure.to_string())?;
        if let Some(keys) = self.keys(&places) {
            keys.check().await.map_err(|error| error.to_string())?;
        }
        for url in [&places.authorization, &places.token, &places.refresh] {
            self.upstream.reach(url).await.map_err(|error| error.to_string())?;
        }
        let Some(issuer) = &self.settings.issuer else { return Ok(()) };
        // Where endpoints are given by hand the metadata can still tell whether they are right.
        let discovery = Discovery::new(issuer.clone(), Arc::clone(&self.upstream), Arc::clone(&self.clock));
        let published = discovery.find().await.map_err(|error| error.to_string())?;
        let named = &published.metadata;
        for (what, ours, theirs) in [
            ("authorization_endpoint", &places.authorization, &named.authorization_endpoint),
            ("token_endpoint", &places.token, &named.token_endpoint),
        ] {
            if ours != theirs {
                return Err(format!("`{what}` is {ours}, and its metadata says {theirs}"));
            }
        }
        Ok(())
    }

    async fn places(&self) -> Result<Places, Failure> {
        let endpoints = &self.settings.endpoints;
        let issuer = match &self.discovery {
            None => None,
            Some(discovery) => {
                let found = discovery.find().await;
                Some(found.map_err(|_| Failure::Passing(Fault::Metadata))?)
            }
        };
        let metadata = issuer.as_ref().map(|issuer| &issuer.metadata);
        let authorization =
            endpoints.authorization.as_ref().or_else(|| Some(&metadata?.authorization_endpoint));
        let token = endpoints.token.as_ref().or_else(|| Some(&metadata?.token_endpoint));
        let (authorization, token) = authorization.zip(token).ok_or(Failure::Final(Fault::Configuration))?;
        let offered = metadata.and_then(|metadata| metadata.pushed_authorization_request_endpoint.as_ref());
        let par = endpoints.par.as_ref().or(offered).filter(|_| self.settings.par.unwrap_or(true));
        if holds_reserved(authorization) {
            tracing::error!(
                provider = self.settings.id,
                "its authorization endpoint sets what is ours to set"
            );
            return Err(Failure::Final(Fault::Configuration));
        }
        Ok(Places {
            authorization: authorization.clone(),
            token: token.clone(),
            refresh: endpoints.refresh.as_ref().unwrap_or(token).clone(),
            par: par.cloned(),
            revocation: metadata.and_then(|metadata| metadata.revocation_endpoint.clone()),
            issuer,
        })
    }

    /// A name like no other.
    fn name(&self) -> String {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Tells the operator of a failure that is theirs to mend.
    fn logged(&self, what: &'static str, failure: Failure) -> Failure {
        let provider = &self.settings.id;
        match failure {
            Failure::Final(Fault::Configuration) | Failure::Passing(Fault::Configuration) => {
                tracing::error!(provider, reason = %failure, "{what}: it does not accept our client id, secret, redirect URI or scopes");
            }
            _ => tracing::warn!(provider, reason = %failure, "{what}"),
        }
        failure
    }
}

/// Whether a URL's own query sets what only we may set (R14).
#[must_use]
pub fn holds_reserved(url: &Url) -> bool {
    url.query_pairs().any(|(name, _)| settings::RESERVED.contains(&name.as_ref()))
}
