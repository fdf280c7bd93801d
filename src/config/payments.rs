//! The sections `[[payments]]`: who takes payments.

use std::path::PathBuf;

use secrecy::ExposeSecret as _;
use serde::Deserialize;
use url::Url;

use super::ConfigError;
use super::identity::is_protected;
use super::store::password;
use crate::domain::order::Late;
use crate::domain::text::{Shape, plain};
use crate::upstream::payment::Settings;
use crate::upstream::payment::settings::{Account, PayPal, PayU, Stripe};

/// One section. Flat, so that an unknown or missing key is named; `processor` says which count.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Payment {
    pub id: String,
    pub processor: Processor,
    pub name: Option<String>,
    pub payee: Option<String>,
    pub api_base: Option<Url>,
    pub livemode: Option<bool>,
    #[serde(default)]
    pub late: Late,
    pub secret_key_file: Option<PathBuf>,
    pub webhook_secret_files: Option<Vec<PathBuf>>,
    pub client_id: Option<String>,
    pub client_secret_file: Option<PathBuf>,
    pub webhook_id: Option<String>,
    pub pos_id: Option<String>,
    pub second_key_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Processor {
    Stripe,
    Paypal,
    Payu,
    Manual,
}

impl Payment {
    /// What a server that nobody configured has: a page of its own.
    pub(super) fn local() -> Self {
        Self {
            id: "manual".to_owned(),
            processor: Processor::Manual,
            name: None,
            payee: None,
            api_base: None,
            livemode: None,
            late: Late::default(),
            secret_key_file: None,
            webhook_secret_files: None,
            client_id: None,
            client_secret_file: None,
            webhook_id: None,
            pos_id: None,
            second_key_file: None,
        }
    }

    /// The keys that are set and that not every processor has.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("api_base", self.api_base.is_some()),
            ("livemode", self.livemode.is_some()),
            ("secret_key_file", self.secret_key_file.is_some()),
            ("webhook_secret_files", self.webhook_secret_files.is_some()),
            ("client_id", self.client_id.is_some()),
            ("client_secret_file", self.client_secret_file.is_some()),
            ("webhook_id", self.webhook_id.is_some()),
            ("pos_id", self.pos_id.is_some()),
            ("second_key_file", self.second_key_file.is_some()),
        ];
        given.into_iter().filter_map(|(key, given)| given.then_some(key))
    }
}

impl Processor {
    const fn name(self) -> &'static str {
        match self {
            Self::Stripe => "Stripe",
            Self::Paypal => "PayPal",
            Self::Payu => "PayU",
            Self::Manual => "the test page",
        }
    }

    /// The keys that count for it.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Stripe => &["api_base", "livemode", "secret_key_file", "webhook_secret_files"],
            Self::Paypal => &["api_base", "livemode", "client_id", "client_secret_file", "webhook_id"],
            Self::Payu => {
                &["api_base", "livemode", "pos_id", "client_id", "client_secret_file", "second_key_file"]
            }
            Self::Manual => &[],
        }
    }
}

/// The sections, checked.
pub(super) fn checked(sections: Vec<Payment>) -> Result<Vec<Settings>, ConfigError> {
    let mut checked: Vec<Settings> = Vec::with_capacity(sections.len());
    for section in sections {
        let id = section.id.clone();
        let settings = one(section)
            .map_err(|problem| ConfigError::new(format!("payment processor `{id}`: {problem}")))?;
        if checked.iter().any(|other| other.id == settings.id) {
            return Err(ConfigError::new(format!("two payment processors have the id `{id}`")));
        }
        checked.push(settings);
    }
    Ok(checked)
}

fn one(section: Payment) -> Result<Settings, ConfigError> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if section.id.is_empty() || section.id.len() > 32 || !section.id.chars().all(good) {
        return Err(ConfigError::new("`id` must be 1 to 32 lower-case letters, digits, `-` or `_`"));
    }
    let processor = section.processor;
    if let Some(key) = section.given().find(|key| !processor.keys().contains(key)) {
        return Err(ConfigError::new(format!("`{key}` does not count for this `processor`; remove it")));
    }
    let shown = |key: &str, text: &str| {
        plain(key, text, Shape { longest: 60, lines: false })
            .map_err(|error| ConfigError::new(error.to_string()))
    };
    let needed = |key: &str| ConfigError::new(format!("`{key}` is needed"));
    let text = |key: &str, text: Option<String>| {
        text.filter(|text| !text.trim().is_empty()).ok_or_else(|| needed(key))
    };
    let secret = |key: &str, file: Option<PathBuf>| password(key, &file.ok_or_else(|| needed(key))?);
    let base = |usual: &str| {
        let base = section.api_base.clone().or_else(|| Url::parse(usual).ok());
        base.filter(is_protected).ok_or_else(|| ConfigError::new("`api_base` must be an https URL"))
    };
    let (account, live) = match processor {
        Processor::Stripe => {
            let secret_key = secret("secret_key_file", section.secret_key_file)?;
            let files = section.webhook_secret_files.unwrap_or_default();
            if files.is_empty() {
                return Err(ConfigError::new(
                    "`webhook_secret_files` is needed: without a secret anybody could send webhooks",
                ));
            }
            let webhook_secrets =
                files.iter().map(|file| password("webhook_secret_files", file)).collect::<Result<_, _>>()?;
            let live =
                ["sk_live_", "rk_live_"].iter().any(|prefix| secret_key.expose_secret().starts_with(prefix));
            (
                Account::Stripe(Stripe {
                    api_base: base("https://api.stripe.com")?,
                    secret_key,
                    webhook_secrets,
                }),
                live,
            )
        }
        Processor::Paypal => {
            let api_base = base("https://api-m.paypal.com")?;
            let live = matches!(api_base.host_str(), Some("api-m.paypal.com" | "api.paypal.com"));
            let account = PayPal {
                api_base,
                client_id: text("client_id", section.client_id)?,
                client_secret: secret("client_secret_file", section.client_secret_file)?,
                webhook_id: text("webhook_id", section.webhook_id)?,
            };
            (Account::PayPal(account), live)
        }
        Processor::Payu => {
            let api_base = base("https://secure.payu.com")?;
            let live = api_base.host_str() == Some("secure.payu.com");
            let pos_id = text("pos_id", section.pos_id)?;
            let account = PayU {
                api_base,
                client_id: section.client_id.unwrap_or_else(|| pos_id.clone()),
                pos_id,
                client_secret: secret("client_secret_file", section.client_secret_file)?,
                second_key: secret("second_key_file", section.second_key_file)?,
            };
            (Account::PayU(account), live)
        }
        Processor::Manual => (Account::Manual, false),
    };
    Ok(Settings {
        name: shown("name", section.name.as_deref().unwrap_or(processor.name()))?,
        payee: section.payee.map(|payee| shown("payee", &payee)).transpose()?,
        livemode: section.livemode.unwrap_or(live),
        late: section.late,
        account,
        id: section.id,
    })
}
