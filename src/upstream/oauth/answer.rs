//! Reads what a token endpoint answers. Providers differ: form or JSON, an error in a success, scopes as a list, tokens a
//! level down, no type, no lifetime.

use std::time::Duration;

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::failure::{Failure, Fault, of_token};
use super::settings::Settings;
use crate::domain::Timestamp;
use crate::domain::oauth::Tokens;
use crate::domain::text::{Shape, plain};
use crate::upstream::http::Incoming;

/// What an answer has, before its ID token is looked at.
pub(super) struct Answer {
    pub tokens: Tokens,
    pub id_token: Option<Zeroizing<String>>,
}

/// What was asked for, as far as an answer is read by it.
pub(super) struct Asked<'a> {
    pub scopes: &'a [String],
    /// Whether it was to renew a token.
    pub refreshes: bool,
    pub now: Timestamp,
}

/// Ten years.
const LONGEST: Duration = Duration::from_hours(10 * 366 * 24);
const LONGEST_ACCOUNT: Shape = Shape { longest: 200, lines: false };

/// Reads an answer.
pub(super) fn read(incoming: &Incoming, settings: &Settings, asked: &Asked<'_>) -> Result<Answer, Failure> {
    let body = members(incoming);
    // The error first: it may come with any status.
    let error = body.as_ref().and_then(error_of);
    let said = body.filter(|_| error.is_none() && incoming.is_success());
    let Some(body) = said else {
        if incoming.is_success() && error.is_none() {
            return Err(Failure::Passing(Fault::Answer));
        }
        return Err(of_token(incoming.status, error.as_deref(), asked.refreshes));
    };
    let place = settings.places.iter().find_map(|place| {
        let object = body.pointer(place)?.as_object()?;
        text(object, "access_token").map(|token| (object, token))
    });
    let (object, access_token) = place.ok_or(Failure::Passing(Fault::Answer))?;
    let expires_at = lifetime(object)?.or(settings.token_lifetime).map(|lasts| asked.now + lasts);
    let named = |pointer: &String| {
        let name = pointer.rsplit('/').next()?.to_owned();
        Some((name, body.pointer(pointer)?.clone()))
    };
    let account = settings.account.iter().find_map(|pointer| {
        let name = body.pointer(pointer)?.as_str()?;
        plain("account", name, LONGEST_ACCOUNT).ok()
    });
    Ok(Answer {
        tokens: Tokens {
            access_token: Zeroizing::new(access_token.to_owned()),
            token_type: token_type(object),
            scopes: scopes(object).unwrap_or_else(|| asked.scopes.to_vec()),
            expires_at,
            refresh_token: text(object, "refresh_token").map(|token| Zeroizing::new(token.to_owned())),
            id_token_claims: None,
            extra: settings.extra.iter().filter_map(named).collect(),
            account,
            dpop_key: None,
            resource: None,
        },
        id_token: text(object, "id_token").map(|token| Zeroizing::new(token.to_owned())),
    })
}

/// The error that an answer has, whatever its status: `error`, or `ok: false` (Slack), or `status` in an error's place
/// (`HubSpot`).
pub(super) fn error_of(body: &Value) -> Option<String> {
    let unnamed = || "error".to_owned();
    match body.get("error") {
        None | Some(Value::Null) => {}
        Some(error) => {
            let code = error.as_str().or_else(|| error.get("code")?.as_str());
            return Some(code.map_or_else(unnamed, str::to_owned));
        }
    }
    if body.get("ok") == Some(&Value::Bool(false)) {
        return Some(unnamed());
    }
    let status = body.get("status").and_then(Value::as_str);
    status.filter(|_| body.get("access_token").is_none()).map(str::to_owned)
}

/// An answer's members: of JSON, or of a form, whichever it is. What it calls itself counts less than how it begins.
pub(super) fn members(incoming: &Incoming) -> Option<Value> {
    let body = incoming.body.trim_ascii();
    let is_form = incoming.media_type.to_ascii_lowercase().contains("x-www-form-urlencoded");
    if body.starts_with(b"{") || !is_form && !looks_like_form(body) {
        return serde_json::from_slice(body).ok();
    }
    let pairs = form_urlencoded::parse(body);
    let members: Map<String, Value> =
        pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into_owned()))).collect();
    Some(Value::Object(members))
}

/// GitHub answers `text/plain` or nothing when it forgets to say.
fn looks_like_form(body: &[u8]) -> bool {
    body.starts_with(b"access_token=") || body.starts_with(b"error=")
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// How long the token lasts, if that is said. Less than nothing is no answer.
fn lifetime(object: &Map<String, Value>) -> Result<Option<Duration>, Failure> {
    let seconds = match object.get("expires_in") {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    match seconds {
        Some(seconds) if seconds < 0.0 => Err(Failure::Passing(Fault::Answer)),
        // Longer than anybody means: as good as not said.
        Some(seconds) => Ok(Duration::try_from_secs_f64(seconds).ok().filter(|lasts| *lasts <= LONGEST)),
        None => Ok(None),
    }
}

/// Slack says whose token it is; it is a bearer token all the same.
fn token_type(object: &Map<String, Value>) -> String {
    match text(object, "token_type") {
        None => "Bearer".to_owned(),
        Some(named) if named.eq_ignore_ascii_case("dpop") => "DPoP".to_owned(),
        Some(named) if ["bearer", "user", "bot"].iter().any(|word| named.eq_ignore_ascii_case(word)) => {
            "Bearer".to_owned()
        }
        Some(other) => other.to_owned(),
    }
}

/// The scopes that were granted: a list, or a text with spaces, commas or plus signs between them; `None` if it is not said.
fn scopes(object: &Map<String, Value>) -> Option<Vec<String>> {
    let split = |text: &str| {
        let parts = text.split([' ', ',', '+', '\t']).filter(|scope| !scope.is_empty());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    match object.get("scope").or_else(|| object.get("scopes"))? {
        Value::String(text) => Some(split(text)),
        Value::Array(list) => Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => None,
    }
}
