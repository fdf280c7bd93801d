//! The configuration as it is written: unknown keys are refused here.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::error::Kind;
use figment::providers::{Env, Serialized};
use ipnet::IpNet;
use serde::Deserialize;
use url::Url;

use super::payments::Payment;
use super::{Config, ConfigError, TlsFiles};
use crate::api_key::KeyDigest;
use crate::domain::Kind as Asked;
use crate::flow::console::Role;
use crate::redis_client::Durability;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub server: Server,
    pub api: Option<Api>,
    #[serde(default)]
    pub store: Store,
    #[serde(default)]
    pub keys: Keys,
    #[serde(default)]
    pub clients: Vec<Client>,
    #[serde(default)]
    pub operators: Vec<Operator>,
    #[serde(default)]
    pub console: Console,
    #[serde(default)]
    pub identity: BTreeMap<String, Identity>,
    /// Read one by one, each upon its preset.
    #[serde(default)]
    pub providers: Vec<toml::Table>,
    #[serde(default)]
    pub payments: Vec<Payment>,
    #[serde(default)]
    pub upstream: Upstream,
    #[serde(default)]
    pub lifetimes: Lifetimes,
    #[serde(default)]
    pub limits: Limits,
    pub traces: Option<Traces>,
    #[serde(default)]
    pub audit: Audit,
    #[serde(default)]
    pub metrics: Metrics,
    #[serde(default)]
    pub log: Log,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Server {
    pub public_url: Option<Url>,
    pub listen: SocketAddr,
    pub tls: Option<TlsFiles>,
    pub trusted_proxies: Vec<IpNet>,
    pub hosts: Vec<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            public_url: None,
            listen: Config::DEFAULT_LISTEN,
            tls: None,
            trusted_proxies: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

/// A listener for the API alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Api {
    pub listen: SocketAddr,
    pub client_ca: Option<PathBuf>,
}

/// Everything but `url` is for a store that several instances share.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Store {
    pub url: Option<String>,
    pub prefix: Option<String>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    pub sentinel_password_file: Option<PathBuf>,
    pub tls: Option<StoreTls>,
    pub durability: Option<Durability>,
    pub allow_eviction: Option<bool>,
    /// In seconds.
    pub trail_retention: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoreTls {
    pub ca: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    pub file: Option<PathBuf>,
    #[serde(default)]
    pub lost: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    pub id: String,
    pub name: String,
    pub host: Option<String>,
    pub api_key_digests: Vec<KeyDigest>,
    pub identity: Option<String>,
    pub kinds: Option<Vec<Asked>>,
    pub providers: Option<Vec<String>>,
    #[serde(default = "round_budget")]
    pub round_budget: u8,
    pub webhook: Option<Webhook>,
}

/// Where a client's server is told what happens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Webhook {
    pub url: Url,
    pub secret_files: Vec<PathBuf>,
}

/// The fewest calls after which a known MCP client, or shim before one, gives up.
const fn round_budget() -> u8 {
    8
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operator {
    pub id: String,
    #[serde(default)]
    pub role: Role,
    pub api_key_digests: Vec<KeyDigest>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Console {
    pub identity: Option<String>,
    pub claim: Option<String>,
    #[serde(default)]
    pub viewers: Vec<String>,
    #[serde(default)]
    pub revokers: Vec<String>,
    pub two_persons_above: Option<u64>,
}

/// One section of `[identity.…]`. Flat, so that an unknown or missing key is named; `source` says which count.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    pub source: Source,
    pub issuer: Option<String>,
    pub subject_claim: Option<String>,
    pub header: Option<String>,
    pub audience: Option<String>,
    pub jwks_url: Option<Url>,
    pub jwks_file: Option<PathBuf>,
    pub client_id: Option<String>,
    pub client_secret_file: Option<PathBuf>,
    pub scopes: Option<Vec<String>>,
    pub prompt: Option<String>,
    pub switch_prompt: Option<String>,
    /// In seconds.
    pub max_age: Option<u64>,
    pub acr_values: Option<Vec<String>>,
    pub verify_url: Option<Url>,
}

impl Identity {
    const fn loopback() -> Self {
        Self {
            source: Source::Loopback,
            issuer: None,
            subject_claim: None,
            header: None,
            audience: None,
            jwks_url: None,
            jwks_file: None,
            client_id: None,
            client_secret_file: None,
            scopes: None,
            prompt: None,
            switch_prompt: None,
            max_age: None,
            acr_values: None,
            verify_url: None,
        }
    }

    /// The keys that are set.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("issuer", self.issuer.is_some()),
            ("subject_claim", self.subject_claim.is_some()),
            ("header", self.header.is_some()),
            ("audience", self.audience.is_some()),
            ("jwks_url", self.jwks_url.is_some()),
            ("jwks_file", self.jwks_file.is_some()),
            ("client_id", self.client_id.is_some()),
            ("client_secret_file", self.client_secret_file.is_some()),
            ("scopes", self.scopes.is_some()),
            ("prompt", self.prompt.is_some()),
            ("switch_prompt", self.switch_prompt.is_some()),
            ("max_age", self.max_age.is_some()),
            ("acr_values", self.acr_values.is_some()),
            ("verify_url", self.verify_url.is_some()),
        ];
        given.into_iter().filter_map(|(key, given)| given.then_some(key))
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    Loopback,
    Proxy,
    Oidc,
    Handoff,
    Confirm,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Upstream {
    #[serde(default)]
    pub allow_addresses: Vec<IpNet>,
}

/// All in seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Lifetimes {
    pub claim_by: u64,
    pub claim_window: u64,
    pub retention: u64,
    pub longest: u64,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { claim_by: 900, claim_window: 300, retention: 86_400, longest: 3_600 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub pending_per_client: u64,
    pub pending_per_subject: u64,
    pub requests_per_second_per_client: NonZeroU32,
    pub requests_per_second_per_address: NonZeroU32,
    pub connections: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending_per_client: 100_000,
            pending_per_subject: 1_000,
            requests_per_second_per_client: NonZeroU32::MIN.saturating_add(1_999),
            requests_per_second_per_address: NonZeroU32::MIN.saturating_add(199),
            connections: NonZeroU32::MIN.saturating_add(9_999),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traces {
    pub endpoint: Url,
    pub ratio: Option<f64>,
}

/// In seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Audit {
    pub checkpoint_every: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self { checkpoint_every: 300 }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metrics {
    pub listen: Option<SocketAddr>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned() }
    }
}

impl File {
    /// What a server without a file has: one client, one operator, whoever is at this computer.
    pub(super) fn add_local(&mut self, client: KeyDigest, operator: KeyDigest) {
        let identity = "loopback".to_owned();
        self.identity.insert(identity.clone(), Identity::loopback());
        self.clients.push(Client {
            id: "local".to_owned(),
            name: "Local tools".to_owned(),
            host: None,
            api_key_digests: vec![client],
            identity: Some(identity),
            kinds: None,
            providers: None,
            round_budget: round_budget(),
            webhook: None,
        });
        self.payments.push(Payment::local());
        self.operators.push(Operator {
            id: "local".to_owned(),
            role: Role::Revoker,
            api_key_digests: vec![operator],
        });
    }
}

/// Reads the file, if there is one, and lays the environment over it: `SIDEGATE_SERVER__LISTEN` is
/// `listen` in `[server]`. No error quotes a value: it may be a password.
pub(super) fn read(file: Option<&Path>) -> Result<File, ConfigError> {
    let mut figment = Figment::new();
    if let Some(path) = file {
        let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                ConfigError::new(format!("there is no configuration file {}", path.display()))
            }
            _ => {
                ConfigError::new(format!("the configuration file {} cannot be read: {error}", path.display()))
            }
        })?;
        let table: toml::Table = toml::from_str(&text).map_err(|error| malformed(path, &text, &error))?;
        figment = figment.merge(Serialized::defaults(table));
    }
    figment.merge(Env::prefixed("SIDEGATE_").split("__")).extract().map_err(|error| {
        let place = error.path.join(".");
        let place = if place.is_empty() { "the configuration".to_owned() } else { format!("`{place}`") };
        let variable = error.metadata.as_ref().is_some_and(|metadata| metadata.name.contains("environment"));
        let source = match file {
            _ if variable => " (in an environment variable that begins with `SIDEGATE_`)".to_owned(),
            Some(file) => format!(" (in {})", file.display()),
            None => String::new(),
        };
        ConfigError::new(format!("{place}: {}{source}", wrong(&error.kind)))
    })
}

/// Says where a file is no TOML, without the line itself.
fn malformed(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let (line, column) =
        (before.matches('\n').count() + 1, before.rsplit('\n').next().map_or(0, str::len) + 1);
    let why = error.message();
    ConfigError::new(format!("{} is not TOML: line {line}, column {column}: {why}", path.display()))
}

/// What is wrong with a value, without the value.
fn wrong(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(_, expected)
        | Kind::InvalidValue(_, expected)
        | Kind::InvalidLength(_, expected) => match expected.as_str() {
            "a sequence" => "must be a list".to_owned(),
            "u64" | "u8" | "a nonzero u32" => "must be a whole number in range".to_owned(),
            section if section.starts_with("struct ") => "must be a section, with keys of its own".to_owned(),
            expected => format!("cannot be used: expected {expected}"),
        },
        Kind::UnknownVariant(_, known) => format!("must be one of {}", known.join(", ")),
        Kind::Unsupported(_)
        | Kind::UnsupportedKey(..)
        | Kind::ISizeOutOfRange(_)
        | Kind::USizeOutOfRange(_) => "cannot be used there".to_owned(),
        // What others say may end with the value, in quotation marks.
        Kind::Message(text) => {
            text.split('"').next().unwrap_or_default().trim_end_matches([':', ' ']).to_owned()
        }
        Kind::UnknownField(..) | Kind::MissingField(_) | Kind::DuplicateField(_) => kind.to_string(),
    }
}
