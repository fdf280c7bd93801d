//! The configuration as it is written: unknown keys are refused here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format as _, Toml};
use ipnet::IpNet;
use serde::Deserialize;
use url::Url;

use super::{Config, ConfigError, TlsFiles};
use crate::api_key::KeyDigest;
use crate::domain::Kind;
use crate::redis_client::Durability;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub server: Server,
    #[serde(default)]
    pub store: Store,
    #[serde(default)]
    pub keys: Keys,
    #[serde(default)]
    pub clients: Vec<Client>,
    #[serde(default)]
    pub operators: Vec<Operator>,
    #[serde(default)]
    pub identity: BTreeMap<String, Identity>,
    #[serde(default)]
    pub upstream: Upstream,
    #[serde(default)]
    pub lifetimes: Lifetimes,
    #[serde(default)]
    pub limits: Limits,
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    pub id: String,
    pub name: String,
    pub host: Option<String>,
    pub api_key_digests: Vec<KeyDigest>,
    pub identity: Option<String>,
    #[serde(default = "every_kind")]
    pub kinds: Vec<Kind>,
    #[serde(default = "round_budget")]
    pub round_budget: u8,
}

fn every_kind() -> Vec<Kind> {
    Kind::ALL.to_vec()
}

/// The fewest calls after which a known MCP client, or shim before one, gives up.
const fn round_budget() -> u8 {
    8
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operator {
    pub id: String,
    pub api_key_digests: Vec<KeyDigest>,
}

/// One section of `[identity.…]`. Flat, so that an unknown or missing key is named; `source` says which count.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    pub source: Source,
    pub header: Option<String>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
    pub jwks_url: Option<Url>,
    pub jwks_file: Option<PathBuf>,
    pub subject_claim: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    Loopback,
    Proxy,
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending_per_client: 100_000,
            pending_per_subject: 1_000,
            requests_per_second_per_client: NonZeroU32::MIN.saturating_add(1_999),
            requests_per_second_per_address: NonZeroU32::MIN.saturating_add(199),
        }
    }
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
        let source = Identity {
            source: Source::Loopback,
            header: None,
            issuer: None,
            audience: None,
            jwks_url: None,
            jwks_file: None,
            subject_claim: None,
        };
        self.identity.insert(identity.clone(), source);
        self.clients.push(Client {
            id: "local".to_owned(),
            name: "Local tools".to_owned(),
            host: None,
            api_key_digests: vec![client],
            identity: Some(identity),
            kinds: every_kind(),
            round_budget: round_budget(),
        });
        self.operators.push(Operator { id: "local".to_owned(), api_key_digests: vec![operator] });
    }
}

/// Reads the file, if there is one, and lays the environment over it: `SIDEGATE_SERVER__LISTEN` is
/// `listen` in `[server]`.
pub(super) fn read(file: Option<&Path>) -> Result<File, ConfigError> {
    let mut figment = Figment::new();
    if let Some(path) = file {
        if !path.is_file() {
            return Err(ConfigError::new(format!("there is no configuration file {}", path.display())));
        }
        figment = figment.merge(Toml::file_exact(path));
    }
    figment.merge(Env::prefixed("SIDEGATE_").split("__")).extract().map_err(|error| {
        let place = error.path.join(".");
        let place = if place.is_empty() { "the configuration".to_owned() } else { format!("`{place}`") };
        let source = error.metadata.as_ref().map(|metadata| match &metadata.source {
            Some(file) => format!(" (in {file})"),
            None => " (in an environment variable that begins with `SIDEGATE_`)".to_owned(),
        });
        let source = source.unwrap_or_default();
        ConfigError::new(format!("{place}: {}{source}", error.kind))
    })
}
