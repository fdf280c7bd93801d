//! What the configuration names, made: stores, identity sources, clients, providers, processors.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::StartError;
use crate::api_key::KeyDigest;
use crate::config::{Config, ConfigError, IdentitySettings, SharedStore, StoreSettings};
use crate::domain::{ClientId, Clock, Random};
use crate::flow::checkpoint::TrailCare;
use crate::flow::console::{Console, Operator, OperatorDoor};
use crate::flow::issue::longest_kept;
use crate::flow::keys::Missing;
use crate::flow::{Client, Clients};
use crate::identity::{
    IdentitySource, confirm::Confirm, handoff::Handoff, loopback::Loopback, oidc::Oidc, proxy::Proxy,
};
use crate::notify::local::Local;
use crate::notify::{self, Notify};
use crate::redis_client::{self, Listener};
use crate::store::sqlite::Sqlite;
use crate::store::{self, Store};
use crate::system::{SystemClock, SystemRandom};
use crate::upstream::Upstream;
use crate::upstream::oauth::{Provider, Providers, Settings};
use crate::upstream::payment::{self, Payment, Payments};
use crate::upstream::webhook::Endpoint;
use crate::vault::load_key_file;
use crate::web::extract::caller::ApiKeys;

/// The store that the configuration names, and how its changes are told.
pub(super) async fn backends(
    config: &Config,
    random: &Arc<dyn Random>,
) -> Result<(Arc<dyn Store>, Arc<dyn Notify>), StartError> {
    match &config.store {
        StoreSettings::Embedded { file, .. } => Ok((Arc::new(Sqlite::open(file)?), Arc::new(Local::new()))),
        StoreSettings::Shared(settings) => {
            let store = shared_store(config, settings, random);
            // Of a server that cannot be reached the log has word, and every step is refused until it can.
            if let Err(error @ redis_client::Error::Unfit(_)) = store.client().first().await {
                return Err(StartError::Shared(error));
            }
            let channel = store::redis::channel(&settings.prefix);
            Ok((Arc::new(store), Arc::new(notify::redis::Redis::start(&settings.server, channel))))
        }
    }
}

fn shared_store(config: &Config, settings: &SharedStore, random: &Arc<dyn Random>) -> store::redis::Redis {
    let kept =
        store::redis::Kept { records: 2 * longest_kept(&config.spans), trail: settings.trail_retention };
    store::redis::Redis::start(&settings.server, &settings.prefix, kept, Arc::clone(random))
}

/// The store that the configuration names, to read from beside a service that runs.
///
/// # Errors
/// [`StartError`] if it cannot be opened or reached.
pub async fn open_to_read(config: &Config) -> Result<Arc<dyn Store>, StartError> {
    match &config.store {
        StoreSettings::Embedded { file, .. } => Ok(Arc::new(Sqlite::open_read_only(file)?)),
        StoreSettings::Shared(settings) => {
            let random: Arc<dyn Random> = Arc::new(SystemRandom);
            let store = shared_store(config, settings, &random);
            store.client().first().await.map_err(StartError::Shared)?;
            Ok(Arc::new(store))
        }
    }
}

/// Connects to the store that instances share, does there once what a service does, and hears of it. Returns what the
/// server does with what it is given. Changes nothing that other instances see.
///
/// # Errors
/// [`StartError`], also if the key ring lacks a key that other instances use.
pub async fn try_store(config: &Config, settings: &SharedStore) -> Result<redis_client::Report, StartError> {
    let random: Arc<dyn Random> = Arc::new(SystemRandom);
    let store = shared_store(config, settings, &random);
    let report = store.client().first().await.map_err(StartError::Shared)?;
    let channel = store::redis::channel(&settings.prefix);
    let (pushes, _heard) = tokio::sync::mpsc::unbounded_channel();
    Listener::connect(&settings.server, 0, &channel, pushes).await.map_err(StartError::Shared)?;
    store.ping().await.map_err(StartError::Store)?;
    if config.key_file.exists() {
        let ring = load_key_file(&config.key_file, random)?;
        let noted = store.sealing_keys(SystemClock.now()).await.map_err(StartError::Store)?;
        if let Some(missing) = Missing::among(noted, &ring, &config.lost_keys) {
            return Err(missing.into());
        }
    }
    Ok(report)
}

/// The identity source that these settings describe.
fn identity_source(
    settings: &IdentitySettings,
    upstream: &Arc<Upstream>,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn IdentitySource> {
    match settings {
        IdentitySettings::Loopback => Arc::new(Loopback::new()),
        IdentitySettings::Proxy(settings) => {
            Arc::new(Proxy::new(settings.clone(), Arc::clone(upstream), Arc::clone(clock)))
        }
        IdentitySettings::Oidc(settings) => {
            Arc::new(Oidc::new((**settings).clone(), Arc::clone(upstream), Arc::clone(clock)))
        }
        IdentitySettings::Handoff(settings) => Arc::new(Handoff::new(settings.clone())),
        IdentitySettings::Confirm(issuer) => Arc::new(Confirm::new(issuer.clone())),
    }
}

/// The identity sources, by name.
pub(super) type Sources = BTreeMap<String, Arc<dyn IdentitySource>>;

pub(super) fn sources(config: &Config, upstream: &Arc<Upstream>, clock: &Arc<dyn Clock>) -> Sources {
    let source = |(name, settings): (&String, &IdentitySettings)| {
        (name.clone(), identity_source(settings, upstream, clock))
    };
    config.identities.iter().map(source).collect()
}

/// How the audit trail is looked after. A shared store lets go of its old parts by itself.
pub(super) fn trail_care(config: &Config) -> TrailCare {
    let retention = match &config.store {
        StoreSettings::Embedded { trail_retention, .. } => *trail_retention,
        StoreSettings::Shared(_) => None,
    };
    TrailCare::new(config.checkpoint_every, retention)
}

/// How operators come in.
pub(super) fn console(config: &Config, sources: &Sources) -> Console {
    let door = config.console.door.as_ref().and_then(|door| {
        Some(OperatorDoor {
            source: door.identity.clone(),
            identity: Arc::clone(sources.get(&door.identity)?),
            claim: door.claim.clone(),
            viewers: door.viewers.clone(),
            revokers: door.revokers.clone(),
        })
    });
    Console {
        keys: operators(config).map(|(digest, operator)| (digest.to_bytes(), operator)).collect(),
        door,
        two_persons_above: config.console.two_persons_above,
    }
}

pub(super) fn clients(
    config: &Config,
    sources: &Sources,
    upstream: &Arc<Upstream>,
) -> Result<Clients, StartError> {
    config
        .clients
        .iter()
        .map(|client| {
            let identity = sources.get(&client.identity).ok_or_else(|| {
                ConfigError::new(format!(
                    "client `{}`: `identity` names no `[identity.…]` section",
                    client.id
                ))
            })?;
            Ok(Client {
                id: client.id.clone(),
                name: client.name.clone(),
                host: client.host.clone(),
                kinds: client.kinds.clone(),
                providers: client.providers.clone(),
                source: client.identity.clone(),
                identity: Arc::clone(identity),
                round_budget: client.round_budget,
                endpoint: client
                    .webhook
                    .clone()
                    .map(|settings| Arc::new(Endpoint::new(settings, Arc::clone(upstream)))),
            })
        })
        .collect()
}

pub(super) fn providers(
    config: &Config,
    upstream: &Arc<Upstream>,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
) -> Providers {
    let provider = |settings: &Settings| {
        let (upstream, clock, random) = (Arc::clone(upstream), Arc::clone(clock), Arc::clone(random));
        (settings.id.clone(), Arc::new(Provider::new(settings.clone(), upstream, clock, random)))
    };
    config.providers.iter().map(provider).collect()
}

pub(super) fn payments(
    config: &Config,
    public_url: &str,
    upstream: &Arc<Upstream>,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
) -> Payments {
    let payment = |settings: &payment::Settings| {
        let processor = payment::processor(settings, public_url, upstream, clock, random);
        (settings.id.clone(), Payment { settings: settings.clone(), processor })
    };
    config.payments.iter().map(payment).collect()
}

/// The clients whose servers are told what becomes of their elicitations.
pub(super) fn told(clients: &Clients) -> Vec<ClientId> {
    clients.all().filter(|client| client.endpoint.is_some()).map(|client| client.id.clone()).collect()
}

pub(super) fn api_keys(config: &Config, clients: &Clients) -> ApiKeys {
    let of_clients = config.clients.iter().flat_map(|settings| {
        let client = clients.find(&settings.id);
        settings.api_keys.iter().filter_map(move |digest| Some((*digest, Arc::clone(client?))))
    });
    ApiKeys::new(of_clients, operators(config))
}

/// The operators with keys, by key.
fn operators(config: &Config) -> impl Iterator<Item = (KeyDigest, Operator)> {
    config.operators.iter().flat_map(|operator| {
        let who = Operator { id: operator.id.clone(), role: operator.role };
        operator.api_keys.iter().map(move |digest| (*digest, who.clone()))
    })
}
