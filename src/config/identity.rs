//! The sections `[identity.…]`: who says who is at the browser.

use url::Url;

use super::file::{Identity, Source};
use super::store::password;
use super::validate::is_loopback_host;
use super::{ConfigError, IdentitySettings};
use crate::identity::SubjectClaim;
use crate::identity::handoff::HandoffSettings;
use crate::identity::oidc::OidcSettings;
use crate::identity::proxy::ProxySettings;
use crate::upstream::keys::KeySource;

const SCOPES: [&str; 3] = ["openid", "profile", "email"];
const MAX_AGES: std::ops::RangeInclusive<u64> = 0..=31_536_000;

/// What a section needs, and what else it may have.
const fn keys(source: Source) -> (&'static str, &'static [&'static str], &'static [&'static str]) {
    match source {
        Source::Loopback => ("loopback", &[], &[]),
        Source::Proxy => {
            ("proxy", &["header", "issuer", "audience"], &["jwks_url", "jwks_file", "subject_claim"])
        }
        Source::Oidc => (
            "oidc",
            &["issuer", "client_id"],
            &[
                "client_secret_file",
                "scopes",
                "subject_claim",
                "prompt",
                "switch_prompt",
                "max_age",
                "acr_values",
            ],
        ),
        Source::Handoff => ("handoff", &["issuer", "verify_url"], &[]),
        Source::Confirm => ("confirm", &["issuer"], &[]),
    }
}

pub(super) fn checked(name: &str, section: Identity) -> Result<IdentitySettings, ConfigError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.len() > 32 || !name.chars().all(good) {
        return Err(ConfigError::new(format!(
            "the name of `[identity.{name}]` must be 1 to 32 letters, digits, `-` or `_`"
        )));
    }
    let (word, needed, more) = keys(section.source);
    let given: Vec<_> = section.given().collect();
    if let Some(key) = needed.iter().find(|key| !given.contains(key)) {
        return Err(ConfigError::new(format!("identity source `{name}` is `{word}` and needs `{key}`")));
    }
    if let Some(key) = given.iter().find(|key| !needed.contains(key) && !more.contains(key)) {
        return Err(ConfigError::new(format!(
            "identity source `{name}` is `{word}` and takes no `{key}`; remove it"
        )));
    }
    let text = |key: &str, value: Option<String>| {
        value
            .filter(|value| !value.trim().is_empty())
            .ok_or_else(|| ConfigError::new(format!("`{key}` of identity source `{name}` must not be empty")))
    };
    let claim = section.subject_claim.as_deref().unwrap_or("sub");
    let subject_claim = SubjectClaim::parse(claim).ok_or_else(|| {
        ConfigError::new(format!(
            "`subject_claim` of identity source `{name}` must be the name of a claim, or names joined by `+`"
        ))
    })?;
    Ok(match section.source {
        Source::Loopback => IdentitySettings::Loopback,
        Source::Proxy => IdentitySettings::Proxy(ProxySettings {
            header: text("header", section.header)?,
            issuer: text("issuer", section.issuer)?,
            audience: text("audience", section.audience)?,
            keys: match (section.jwks_url, section.jwks_file) {
                (Some(url), None) => KeySource::Url(url),
                (None, Some(file)) => KeySource::File(file),
                _ => {
                    return Err(ConfigError::new(format!(
                        "identity source `{name}` is `proxy` and needs `jwks_url` or `jwks_file`"
                    )));
                }
            },
            subject_claim,
        }),
        Source::Oidc => {
            let issuer = text("issuer", section.issuer)?;
            if !Url::parse(&issuer).is_ok_and(|url| is_protected(&url) && url.query().is_none()) {
                return Err(ConfigError::new(format!(
                    "`issuer` of identity source `{name}` must be an https URL"
                )));
            }
            let scopes = section.scopes.unwrap_or_else(|| SCOPES.map(str::to_owned).to_vec());
            if !scopes.iter().any(|scope| scope == "openid") {
                return Err(ConfigError::new(format!(
                    "`scopes` of identity source `{name}` must have `openid` among them"
                )));
            }
            let max_age =
                section.max_age.map(|age| super::validate::seconds("max_age", age, MAX_AGES)).transpose()?;
            IdentitySettings::Oidc(Box::new(OidcSettings {
                issuer,
                client_id: text("client_id", section.client_id)?,
                client_secret: section
                    .client_secret_file
                    .map(|file| password(&format!("identity.{name}.client_secret_file"), &file))
                    .transpose()?,
                scopes,
                subject_claim,
                prompt: section.prompt,
                switch_prompt: section.switch_prompt.unwrap_or_else(|| "login".to_owned()),
                max_age,
                acr_values: section.acr_values.unwrap_or_default(),
            }))
        }
        Source::Handoff => {
            let verify_url = section.verify_url.filter(is_protected).ok_or_else(|| {
                ConfigError::new(format!("`verify_url` of identity source `{name}` must be an https URL"))
            })?;
            IdentitySettings::Handoff(HandoffSettings { issuer: text("issuer", section.issuer)?, verify_url })
        }
        Source::Confirm => IdentitySettings::Confirm(text("issuer", section.issuer)?),
    })
}

/// Whether what goes there cannot be read or changed on its way.
pub(super) fn is_protected(url: &Url) -> bool {
    (url.scheme() == "https" && url.has_host() || url.scheme() == "http" && is_loopback_host(url))
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
}
