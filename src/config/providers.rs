//! The sections `[[providers]]`: who can be authorised by OAuth. A preset is the same section, filled in as far as it is known
//! beforehand (`presets.toml`); what the configuration says counts more.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use url::Url;

use super::ConfigError;
use super::identity::is_protected;
use super::store::{password, read};
use crate::domain::oauth::checked_scopes;
use crate::domain::text::{Shape, plain};
use crate::upstream::oauth::holds_reserved;
use crate::upstream::oauth::settings::{
    Authentication, ClientProof, Endpoints, RESERVED, Revocation, Separator, Settings, TokenBody,
};

const PRESETS: &str = include_str!("presets.toml");

/// One section, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Provider {
    pub id: String,
    pub preset: Option<String>,
    pub name: Option<String>,
    pub client_id: String,
    pub client_secret_file: Option<PathBuf>,
    pub private_key_file: Option<PathBuf>,
    pub private_key_id: Option<String>,
    pub client_authentication: Option<Authentication>,
    pub assertion_audience: Option<String>,
    pub issuer: Option<String>,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub refresh_endpoint: Option<String>,
    pub pushed_authorization_request_endpoint: Option<String>,
    pub jwks_uri: Option<String>,
    #[serde(default)]
    pub scopes: Vec<String>,
    pub offline_scope: Option<String>,
    #[serde(default)]
    pub scope_separator: Separator,
    pub scope_parameter: Option<String>,
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    #[serde(default)]
    pub refresh_parameters: BTreeMap<String, String>,
    #[serde(default)]
    pub token_body: TokenBody,
    /// In seconds.
    pub token_lifetime: Option<u64>,
    pub places: Option<Vec<String>>,
    #[serde(default)]
    pub extra: Vec<String>,
    #[serde(default)]
    pub account: Vec<String>,
    pub pkce: Option<bool>,
    pub par: Option<bool>,
    pub jarm: Option<bool>,
    #[serde(default)]
    pub form_post: bool,
    #[serde(default)]
    pub dpop: bool,
    pub revocation: Option<Revocation>,
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
}

/// A part of a URL that a configuration fills in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    pattern: String,
    default: Option<String>,
}

/// The sections, checked.
pub(super) fn checked(sections: Vec<toml::Table>) -> Result<Vec<Settings>, ConfigError> {
    let presets: toml::Table =
        toml::from_str(PRESETS).map_err(|error| ConfigError::new(format!("the presets: {error}")))?;
    let mut checked: Vec<Settings> = Vec::with_capacity(sections.len());
    for section in sections {
        let settings = one(section, &presets)?;
        if checked.iter().any(|other| other.id == settings.id) {
            return Err(ConfigError::new(format!("two providers have the id `{}`", settings.id)));
        }
        checked.push(settings);
    }
    Ok(checked)
}

fn one(section: toml::Table, presets: &toml::Table) -> Result<Settings, ConfigError> {
    let called = section.get("id").and_then(toml::Value::as_str).unwrap_or("(without an `id`)").to_owned();
    let wrong = |what: String| ConfigError::new(format!("provider `{called}`: {what}"));
    let preset = section.get("preset").and_then(toml::Value::as_str);
    let mut merged = match preset {
        None => toml::Table::new(),
        Some(name) => presets.get(name).and_then(toml::Value::as_table).cloned().ok_or_else(|| {
            let known = presets.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            wrong(format!("`preset` must be one of {known}"))
        })?,
    };
    let variables = match merged.remove("variables") {
        Some(variables) => variables.try_into().map_err(|_| wrong("the preset is malformed".to_owned()))?,
        None => BTreeMap::new(),
    };
    // A preset's way to revoke is its own servers': what is issued elsewhere is not sent there.
    if section.contains_key("token_endpoint") {
        merged.remove("revocation");
    }
    merged.extend(section);
    let section: Provider = serde_path_to_error::deserialize(merged).map_err(|error| {
        let key = error.path().to_string();
        // What is wrong with a value, without the value.
        let why =
            error.into_inner().message().split(['"', '\n']).next().unwrap_or_default().trim().to_owned();
        wrong(if key == "." { why } else { format!("`{key}`: {why}") })
    })?;
    settings(section, &variables).map_err(|what| wrong(what.to_string()))
}

fn settings(section: Provider, variables: &BTreeMap<String, Variable>) -> Result<Settings, ConfigError> {
    let refuse = |what: &str| Err(ConfigError::new(what.to_owned()));
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if section.id.is_empty() || section.id.len() > 32 || !section.id.chars().all(good) {
        return refuse("`id` must be 1 to 32 lower-case letters, digits, `-` or `_`");
    }
    if section.client_id.trim().is_empty() {
        return refuse("`client_id` must not be empty");
    }
    let values = filled_in(&section.variables, variables)?;
    let url = |key: &str, text: Option<String>| text.map(|text| endpoint(key, &text, &values)).transpose();
    let endpoints = Endpoints {
        authorization: url("authorization_endpoint", section.authorization_endpoint)?,
        token: url("token_endpoint", section.token_endpoint)?,
        refresh: url("refresh_endpoint", section.refresh_endpoint)?,
        par: url("pushed_authorization_request_endpoint", section.pushed_authorization_request_endpoint)?,
        jwks: url("jwks_uri", section.jwks_uri)?,
    };
    let issuer = section.issuer.map(|issuer| fill(&issuer, &values));
    if let Some(issuer) = &issuer
        && !Url::parse(issuer).is_ok_and(|url| is_protected(&url) && url.query().is_none())
    {
        return refuse("`issuer` must be an https URL");
    }
    if issuer.is_none() && (endpoints.authorization.is_none() || endpoints.token.is_none()) {
        return refuse(
            "`preset`, or `issuer`, or both `authorization_endpoint` and `token_endpoint` must say where it is",
        );
    }
    for (key, names) in
        [("parameters", &section.parameters), ("refresh_parameters", &section.refresh_parameters)]
    {
        let scope = section.scope_parameter.as_deref().unwrap_or("scope");
        let reserved = |name: &&String| RESERVED.contains(&name.as_str()) || *name == scope;
        if let Some(name) = names.keys().find(reserved) {
            return Err(ConfigError::new(format!("`{key}.{name}` is set by Sidegate alone; remove it")));
        }
    }
    let proof = proof(section.client_secret_file, section.private_key_file, section.private_key_id)?;
    // Most of those that have a preset want both in the body; of others the metadata tells.
    let authentication =
        section.client_authentication.or_else(|| section.preset.as_ref().map(|_| Authentication::Post));
    if section.jarm == Some(true) && issuer.is_none() {
        return refuse("`jarm` needs `issuer`: whose signed answers are they?");
    }
    let secret_needed = matches!(
        authentication,
        Some(Authentication::Basic | Authentication::BasicRaw | Authentication::Post)
    );
    let fits = match &proof {
        ClientProof::Secret(_) => {
            !matches!(authentication, Some(Authentication::None | Authentication::PrivateKeyJwt))
        }
        // A preset names what most use; a key of one's own is used as such.
        ClientProof::Key { .. } => true,
        ClientProof::None => section.preset.is_some() || !secret_needed,
    };
    if !fits {
        return refuse(
            "`client_authentication` and what is given as `client_secret_file` do not fit together",
        );
    }
    let name = section.name.unwrap_or_else(|| section.id.clone());
    let name = plain("name", &name, Shape { longest: 60, lines: false })
        .map_err(|error| ConfigError::new(error.to_string()))?;
    let revocation = section.revocation.map(|mut revocation| {
        revocation.url = fill(&revocation.url, &values);
        revocation
    });
    if let Some(revocation) = &revocation {
        let plain = revocation.url.replace("{client_id}", "x").replace("{token}", "x");
        endpoint("revocation.url", &plain, &values)?;
    }
    Ok(Settings {
        id: section.id,
        name,
        preset: section.preset,
        client_id: section.client_id,
        proof,
        authentication,
        assertion_audience: section.assertion_audience,
        issuer,
        endpoints,
        scopes: checked_scopes("scopes", section.scopes)
            .map_err(|error| ConfigError::new(error.to_string()))?,
        offline_scope: section.offline_scope,
        scope_separator: section.scope_separator,
        scope_parameter: section.scope_parameter.unwrap_or_else(|| "scope".to_owned()),
        parameters: section.parameters.into_iter().collect(),
        refresh_parameters: section.refresh_parameters.into_iter().collect(),
        token_body: section.token_body,
        token_lifetime: section.token_lifetime.map(Duration::from_secs),
        places: section.places.unwrap_or_else(|| vec![String::new()]),
        extra: section.extra,
        account: section.account,
        pkce: section.pkce.unwrap_or(true),
        par: section.par,
        jarm: section.jarm,
        form_post: section.form_post,
        dpop: section.dpop,
        revocation,
    })
}

/// How we prove who we are.
fn proof(
    secret: Option<PathBuf>,
    key: Option<PathBuf>,
    key_id: Option<String>,
) -> Result<ClientProof, ConfigError> {
    Ok(match (secret, key) {
        (Some(_), Some(_)) => {
            return Err(ConfigError::new(
                "`client_secret_file` and `private_key_file` stand side by side; remove one",
            ));
        }
        (Some(file), None) => ClientProof::Secret(password("client_secret_file", &file)?),
        (None, Some(file)) => {
            let pem = zeroize::Zeroizing::new(read("private_key_file", &file)?);
            ClientProof::key(&pem, key_id).ok_or_else(|| {
                ConfigError::new("`private_key_file` must be a private key in PEM: RSA, P-256 or Ed25519")
            })?
        }
        (None, None) => ClientProof::None,
    })
}

/// The value of each variable of a preset's URLs.
fn filled_in(
    given: &BTreeMap<String, String>,
    known: &BTreeMap<String, Variable>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    if let Some(name) = given.keys().find(|name| !known.contains_key(*name)) {
        return Err(ConfigError::new(format!("`variables.{name}` is not used; remove it")));
    }
    known
        .iter()
        .map(|(name, variable)| {
            let value = given.get(name).or(variable.default.as_ref()).ok_or_else(|| {
                ConfigError::new(format!("`variables.{name}` is needed: it stands in the provider's URLs"))
            })?;
            let fits =
                Regex::new(&format!("^(?:{})$", variable.pattern)).is_ok_and(|regex| regex.is_match(value));
            if !fits {
                let pattern = &variable.pattern;
                return Err(ConfigError::new(format!("`variables.{name}` must match {pattern}")));
            }
            Ok((name.clone(), value.clone()))
        })
        .collect()
}

fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn endpoint(key: &str, text: &str, values: &BTreeMap<String, String>) -> Result<Url, ConfigError> {
    let filled = fill(text, values);
    let url = Url::parse(&filled).ok().filter(|url| is_protected(url) && !filled.contains(['{', '}']));
    let url = url.ok_or_else(|| ConfigError::new(format!("`{key}` must be an https URL")))?;
    if holds_reserved(&url) {
        return Err(ConfigError::new(format!(
            "the query of `{key}` sets what Sidegate alone sets; remove it"
        )));
    }
    Ok(url)
}
