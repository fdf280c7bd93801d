//! Tells a provider that tokens are not needed any more: by RFC 7009, or in its own way.

use serde_json::Value;
use url::Url;
use zeroize::Zeroizing;

use super::failure::{Failure, Fault, UNAVAILABLE};
use super::settings::{
    ClientProof, Revocation, RevocationAuthentication, RevocationBody, RevocationMethod, WhichToken,
};
use super::{Places, Provider, answer};
use crate::domain::oauth::Tokens;
use crate::upstream::http::{Authorization, Body, Incoming, Outgoing};
use secrecy::ExposeSecret as _;

impl Provider {
    /// Whether there is a way to revoke anything there, as far as the settings tell.
    #[must_use]
    pub fn may_revoke(&self) -> bool {
        self.settings.revocation.is_some() || self.discovery.is_some()
    }

    /// Revokes tokens. Those that do not count any more are no failure.
    ///
    /// # Errors
    /// [`Failure::Passing`] if it is to be tried again.
    pub async fn revoke(&self, tokens: &Tokens) -> Result<(), Failure> {
        let places = self.places().await?;
        if let Some(recipe) = &self.settings.revocation {
            return self.revoke_by(&places, recipe, tokens).await;
        }
        let Some(url) = &places.revocation else { return Ok(()) };
        // The refresh token first: most providers end all that came of it.
        let named =
            [("refresh_token", tokens.refresh_token.as_ref()), ("access_token", Some(&tokens.access_token))];
        for (hint, token) in named {
            let Some(token) = token else { continue };
            let mut form = vec![
                ("token".to_owned(), token.clone()),
                ("token_type_hint".to_owned(), Zeroizing::new(hint.to_owned())),
            ];
            done(&self.post(&places, url, &mut form, None).await?, false)?;
        }
        Ok(())
    }

    async fn revoke_by(&self, places: &Places, recipe: &Revocation, tokens: &Tokens) -> Result<(), Failure> {
        let (access, refresh) = (&tokens.access_token, tokens.refresh_token.as_ref());
        let token = match recipe.token {
            WhichToken::Access => access,
            WhichToken::Refresh => refresh.unwrap_or(access),
        };
        let id = &self.settings.client_id;
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let url = recipe.url.replace("{client_id}", &encoded(id)).replace("{token}", &encoded(token));
        let url = Url::parse(&url).map_err(|_| Failure::Final(Fault::Configuration))?;
        let mut form: Vec<(String, Zeroizing<String>)> = recipe
            .parameters
            .iter()
            .map(|(name, value)| (name.clone(), Zeroizing::new(filled(value, id, tokens))))
            .collect();
        if !recipe.field.is_empty() && recipe.body != RevocationBody::None {
            form.push((recipe.field.clone(), token.clone()));
        }
        let authorization = match (recipe.authentication, &self.settings.proof) {
            (RevocationAuthentication::Client, _) => self.authenticate(places, &mut form)?,
            (RevocationAuthentication::Basic, ClientProof::Secret(secret)) => {
                Authorization::basic(id, secret.expose_secret())
            }
            (RevocationAuthentication::Bearer, _) => Authorization::Bearer(token.clone()),
            (RevocationAuthentication::Basic | RevocationAuthentication::None, _) => Authorization::None,
        };
        let pairs: Vec<(&str, &str)> =
            form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let json = pairs.iter().copied().collect::<Value>();
        let body = match recipe.body {
            RevocationBody::Form => Body::Form(&pairs),
            RevocationBody::Json => Body::Json(&json),
            RevocationBody::None => Body::Nothing { posts: true },
        };
        let mut request = Outgoing::post(&url, body);
        request.authorization = authorization;
        request.deletes = recipe.method == RevocationMethod::Delete;
        let incoming = self.upstream.send(request).await.map_err(|error| {
            tracing::warn!(provider = self.settings.id, %error, "a provider cannot be told to revoke");
            Failure::Passing(Fault::NoAnswer)
        })?;
        done(&incoming, recipe.authentication == RevocationAuthentication::Bearer)
    }
}

/// What an answer means: a token that is not known there does not count any more, which is what was wanted. `by_token`: the
/// token itself was the authorization, so that it is that which is refused.
fn done(incoming: &Incoming, by_token: bool) -> Result<(), Failure> {
    let error = answer::members(incoming).as_ref().and_then(answer::error_of);
    match (incoming.status, error.as_deref()) {
        (408 | 429 | 500.., _) => Err(Failure::Passing(Fault::Unavailable)),
        (_, Some(error)) if UNAVAILABLE.contains(&error) => Err(Failure::Passing(Fault::Unavailable)),
        (_, Some("invalid_client" | "unauthorized_client")) => Err(Failure::Passing(Fault::Configuration)),
        (401 | 403, _) if by_token => Ok(()),
        (300..=399 | 401 | 403, _) => Err(Failure::Passing(Fault::Configuration)),
        _ => Ok(()),
    }
}

fn filled(value: &str, client_id: &str, tokens: &Tokens) -> String {
    let mut value = value.replace("{client_id}", client_id);
    for (name, extra) in &tokens.extra {
        if let Some(text) = extra.as_str() {
            value = value.replace(&format!("{{extra.{name}}}"), text);
        }
    }
    value
}
