//! The configuration: typed sections, read from a file and from `SIDEGATE_…` variables, checked in one pass.
//!
//! What is here can be used as it stands: [`Config::load`] refuses anything unknown, missing or unsafe with one
//! sentence that says what to change.

mod console;
mod file;
mod identity;
mod payments;
mod providers;
mod store;
mod validate;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

use crate::api_key::KeyDigest;
use crate::domain::{ClientId, Kind, OperatorId, Spans};
use crate::flow::Quotas;
use crate::flow::console::Role;
use crate::identity::handoff::HandoffSettings;
use crate::identity::oidc::OidcSettings;
use crate::identity::proxy::ProxySettings;
use crate::redis_client;

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the service listens and how it is reached.
    pub server: Server,
    /// A listener for the API alone, which is not on the other one then.
    pub api: Option<Api>,
    /// Where elicitations are kept.
    pub store: StoreSettings,
    /// The file of the key ring.
    pub key_file: PathBuf,
    /// Names of keys that are gone from it for good.
    pub lost_keys: Vec<String>,
    /// Whether a key file that is missing is made at the first start: so if the configuration names none.
    pub make_key_file: bool,
    /// The API clients.
    pub clients: Vec<ClientSettings>,
    /// The operators with keys.
    pub operators: Vec<OperatorSettings>,
    /// The operators' console.
    pub console: ConsoleSettings,
    /// The identity sources by name.
    pub identities: BTreeMap<String, IdentitySettings>,
    /// The providers that people can authorise.
    pub providers: Vec<crate::upstream::oauth::Settings>,
    /// The payment processors.
    pub payments: Vec<crate::upstream::payment::Settings>,
    /// Private networks that outgoing requests may reach.
    pub allow_addresses: Vec<IpNet>,
    /// How long things last.
    pub spans: Spans,
    /// How many elicitations may be pending.
    pub quotas: Quotas,
    /// How many requests may come.
    pub rates: Rates,
    /// How often the end of the audit trail is signed; never if not said.
    pub checkpoint_every: Option<Duration>,
    /// A listener for Prometheus alone, which asks for no key.
    pub metrics: Option<SocketAddr>,
    /// Where traces go.
    pub traces: Option<Traces>,
    /// What is logged.
    pub log_level: tracing::level_filters::LevelFilter,
}

/// Where the service listens and how it is reached.
#[derive(Debug, Clone)]
pub struct Server {
    /// What links are built from; absent on a loopback listener, where the bound address serves.
    pub public_url: Option<Url>,
    /// The listener's address; port 0 picks a free port.
    pub listen: SocketAddr,
    /// Certificate and key, both PEM files.
    pub tls: Option<TlsFiles>,
    /// Whose forwarded addresses count.
    pub trusted_proxies: Vec<IpNet>,
    /// Host names, with port if any, that are answered besides that of `public_url`.
    pub hosts: Vec<String>,
}

/// A listener for the API alone.
#[derive(Debug, Clone)]
pub struct Api {
    /// Its address.
    pub listen: SocketAddr,
    /// Whose certificates its callers must have, a PEM file; anybody may connect if there is none.
    pub client_ca: Option<PathBuf>,
}

/// Where traces go.
#[derive(Debug, Clone)]
pub struct Traces {
    /// A collector's URL, for OTLP over HTTP.
    pub endpoint: Url,
    /// Which part of the traces that begin here is taken, 0 to 1.
    pub ratio: f64,
}

/// Where elicitations are kept.
#[derive(Debug, Clone)]
pub enum StoreSettings {
    /// In a SQLite database, for this process alone.
    Embedded {
        /// The database file.
        file: PathBuf,
        /// How long the audit trail is kept; for ever if not said.
        trail_retention: Option<Duration>,
    },
    /// On a server that several instances share.
    Shared(Box<SharedStore>),
}

/// A store that several instances share.
#[derive(Debug, Clone)]
pub struct SharedStore {
    /// The server.
    pub server: redis_client::Settings,
    /// What the names of all keys begin with.
    pub prefix: String,
    /// How long the audit trail is kept, counted from the last entry of each part.
    pub trail_retention: Duration,
}

/// The files of a TLS certificate.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// One API client.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Its id.
    pub id: ClientId,
    /// What people read.
    pub name: String,
    /// The client's host, which the operator has verified.
    pub host: Option<String>,
    /// Digests of its keys: one, or two while one is replaced.
    pub api_keys: Vec<KeyDigest>,
    /// The name of its identity source.
    pub identity: String,
    /// What it may ask for.
    pub kinds: Vec<Kind>,
    /// Which providers its people may be asked to authorise or to pay at; all of them if it is not said.
    pub providers: Option<Vec<String>>,
    /// How many calls of one tool its MCP clients make before they give up.
    pub round_budget: u8,
    /// Where its server is told what becomes of its elicitations.
    pub webhook: Option<crate::upstream::webhook::Settings>,
}

/// One operator.
#[derive(Debug, Clone)]
pub struct OperatorSettings {
    /// The operator's id.
    pub id: OperatorId,
    /// What they may do.
    pub role: Role,
    /// Digests of the keys: one, or two while one is replaced.
    pub api_keys: Vec<KeyDigest>,
}

/// The operators' console.
#[derive(Debug, Clone)]
pub struct ConsoleSettings {
    /// Where operators sign in who have no key.
    pub door: Option<OperatorDoor>,
    /// More than so many are revoked at once only if a second operator agrees.
    pub two_persons_above: Option<u64>,
}

/// Where operators sign in, and who of those who can is one.
#[derive(Debug, Clone)]
pub struct OperatorDoor {
    /// The name of an identity source that is `oidc`.
    pub identity: String,
    /// The claim of the ID token that says so.
    pub claim: String,
    /// Its values that make a viewer.
    pub viewers: Vec<String>,
    /// Its values that make a revoker.
    pub revokers: Vec<String>,
}

/// One identity source.
#[derive(Debug, Clone)]
pub enum IdentitySettings {
    /// Whoever is at this computer.
    Loopback,
    /// A signed token from an identity-aware proxy.
    Proxy(ProxySettings),
    /// A sign-in at an OpenID Connect issuer.
    Oidc(Box<OidcSettings>),
    /// The MCP server's own login.
    Handoff(HandoffSettings),
    /// No login; the issuer of the subjects.
    Confirm(String),
}

/// How many requests may come: on average a second, with bursts of twice as many.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// From one client, with its key.
    pub per_client: NonZeroU32,
    /// From one address, without a key.
    pub per_address: NonZeroU32,
    /// Connections that are open at once.
    pub connections: NonZeroU32,
}

/// Why there is no configuration: one sentence that says what to change.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// A complaint.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl Config {
    /// Reads `file` and the environment; `data` is the folder for what the file does not place elsewhere.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(file: &Path, data: &Path) -> Result<Self, ConfigError> {
        validate::checked(file::read(Some(file))?, data)
    }

    /// The configuration of a server that nobody configured: one client and one operator with these keys, on
    /// loopback, with the store under `data`. The environment still counts.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn local(data: &Path, client: KeyDigest, operator: KeyDigest) -> Result<Self, ConfigError> {
        let mut file = file::read(None)?;
        file.add_local(client, operator);
        validate::checked(file, data)
    }

    /// The loopback address that is listened to by default.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8020);

    /// Listens elsewhere than configured.
    ///
    /// # Errors
    /// [`ConfigError`] if that address is not safe with the rest.
    pub fn listen_on(mut self, listen: SocketAddr) -> Result<Self, ConfigError> {
        self.server.listen = listen;
        validate::exposure(&self)?;
        Ok(self)
    }
}
