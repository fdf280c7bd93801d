//! The composition root: builds the service from a configuration. The only place that names concrete backends.

use std::net::{SocketAddr, TcpListener};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::{Config, ConfigError, IdentitySettings, SharedStore, StoreSettings};
use crate::domain::{Clock, Random};
use crate::flow::errands::Errands;
use crate::flow::issue::longest_kept;
use crate::flow::keys::{KeyWatch, KeysError, Missing};
use crate::flow::{Client, Clients, Gate};
use crate::identity::{
    IdentitySource, confirm::Confirm, handoff::Handoff, loopback::Loopback, oidc::Oidc, proxy::Proxy,
};
use crate::notify::local::Local;
use crate::notify::{self, Notify};
use crate::redis_client::{self, Listener};
use crate::store::metered::Metered;
use crate::store::sqlite::Sqlite;
use crate::store::{self, Store};
use crate::system::{SystemClock, SystemRandom};
use crate::telemetry;
use crate::upstream::Upstream;
use crate::upstream::oauth::{Provider, Providers, Settings};
use crate::upstream::payment::{self, Payment, Payments};
use crate::vault::{KeyFileError, create_key_file, load_key_file};
use crate::web::extract::caller::ApiKeys;
use crate::web::limits::Limits;
use crate::web::middleware::{guard::guard, headers::headers, log::log};
use crate::web::pages::Pages;
use crate::web::{Site, tls};

/// A service that is bound to its address and ready to run.
pub struct Application {
    server: Server,
    metrics: Option<Server>,
    gate: web::Data<Gate>,
    limits: web::Data<Limits>,
    public_url: Url,
    shutdown: CancellationToken,
}

/// Why the service does not start: one sentence that says what to change.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The key file.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// The key ring lacks a key that other instances use.
    #[error("`keys.file`: {0}")]
    Keys(#[from] crate::flow::keys::Missing),
    /// The embedded store.
    #[error(transparent)]
    Embedded(#[from] crate::store::sqlite::OpenError),
    /// The shared store.
    #[error("`store.url`: {0}")]
    Shared(crate::redis_client::Error),
    /// The shared store is there and does not do what is needed.
    #[error("`store.url`: {0}; if something is not permitted, docs/SCALING.md says what the user needs")]
    Store(store::Unavailable),
    /// The HTTP client.
    #[error(transparent)]
    Upstream(#[from] crate::upstream::UpstreamError),
    /// The page texts.
    #[error(transparent)]
    Text(#[from] crate::web::pages::text::TextError),
    /// The listener.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
}

/// Slow clients are cut off: this long for a request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a shutdown waits for answers that are under way, in seconds.
const SHUTDOWN_TIME: u64 = 20;
/// How long it waits for what is under way at providers.
const ERRANDS_TIME: Duration = Duration::from_secs(15);
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const FORGET_EVERY: Duration = Duration::from_mins(1);

impl Application {
    /// Builds the service and binds its address. Must be called within an actix system.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn build(config: &Config) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let upstream = Arc::new(Upstream::new(config.allow_addresses.clone())?);
        let clients = clients(config, &upstream, &clock)?;
        let providers = providers(config, &upstream, &clock, &random);
        let api_keys = web::Data::new(api_keys(config, &clients));

        let tls = config.server.tls.as_ref().map(tls::server_config).transpose()?;
        let listen = config.server.listen;
        let listener = TcpListener::bind(listen).map_err(|error| StartError::Listen(listen, error))?;
        let bound = listener.local_addr().map_err(|error| StartError::Listen(listen, error))?;
        let public_url = public_url(config, bound)?;
        let links = public_url.as_str().trim_end_matches('/').to_owned();
        let payments = payments(config, &links, &upstream, &clock, &random);

        if config.make_key_file && !config.key_file.exists() {
            create_key_file(&config.key_file, &*random, clock.now())?;
        }
        telemetry::start_metrics();
        let shutdown = CancellationToken::new();
        let (store, notify) = backends(config, &random).await?;
        let gate = web::Data::new(Gate {
            store: Arc::new(Metered(store)),
            notify,
            ring: load_key_file(&config.key_file, Arc::clone(&random))?,
            keys: KeyWatch::new(config.lost_keys.clone()),
            clock,
            random,
            clients,
            providers,
            payments,
            errands: Errands::default(),
            public_url: links,
            spans: config.spans,
            quotas: config.quotas,
            last_stray: AtomicI64::new(0),
            shutdown: shutdown.clone(),
        });
        // Of a store that cannot be reached the log has word.
        if let Err(KeysError::Missing(missing)) = gate.look_at_keys().await {
            return Err(missing.into());
        }
        let site = web::Data::new(Site::new(public_url.clone(), config.server.hosts.clone()));
        let pages = web::Data::new(Pages::new(&site)?);
        let limits = web::Data::new(Limits::new(
            config.rates.per_client,
            config.rates.per_address,
            config.server.trusted_proxies.clone(),
        ));

        let factory = {
            let (gate, limits) = (gate.clone(), limits.clone());
            move || {
                App::new()
                    .app_data(gate.clone())
                    .app_data(limits.clone())
                    .app_data(site.clone())
                    .app_data(pages.clone())
                    .app_data(api_keys.clone())
                    .wrap(from_fn(guard))
                    .wrap(from_fn(headers))
                    .wrap(from_fn(log))
                    .configure(|routes| crate::web::routes(routes, &site.prefix))
            }
        };
        let http = HttpServer::new(factory)
            .disable_signals()
            // A handler that has hung up must not claim what it will never receive.
            .h1_allow_half_closed(false)
            .client_request_timeout(HEAD_TIME)
            .shutdown_timeout(SHUTDOWN_TIME);
        let http = match tls {
            Some(tls) => http.listen_rustls_0_23(listener, tls),
            None => http.listen(listener),
        };
        let server = http.map_err(|error| StartError::Listen(bound, error))?.run();
        let metrics = config.metrics.map(metrics).transpose()?;
        Ok(Self { server, metrics, gate, limits, public_url, shutdown })
    }

    /// What links begin with.
    #[must_use]
    pub const fn public_url(&self) -> &Url {
        &self.public_url
    }

    /// Stops the service from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { server: self.server.handle(), shutdown: self.shutdown.clone() }
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn run(self) -> std::io::Result<()> {
        let errands = {
            let gate = self.gate.clone();
            actix_web::rt::spawn(async move { gate.run_errands().await })
        };
        let sweeper = actix_web::rt::spawn(keep_sweeping(self.gate.clone(), self.shutdown.clone()));
        let limits = self.limits.clone();
        let forgetter = actix_web::rt::spawn(async move {
            loop {
                tokio::time::sleep(FORGET_EVERY).await;
                limits.forget_idle();
                telemetry::upkeep();
            }
        });
        let metrics = self.metrics.map(|server| (server.handle(), actix_web::rt::spawn(server)));
        let result = self.server.await;
        if let Some((handle, server)) = metrics {
            handle.stop(false).await;
            let _ = server.await;
        }
        sweeper.abort();
        forgetter.abort();
        // What is under way at a provider must not be lost.
        self.gate.errands.close();
        if tokio::time::timeout(ERRANDS_TIME, errands).await.is_err() {
            tracing::error!("a provider did not answer before the service stopped");
        }
        self.gate.store.close().await;
        result
    }
}

/// A listener for Prometheus alone.
fn metrics(listen: SocketAddr) -> Result<Server, StartError> {
    let server = HttpServer::new(|| App::new().configure(crate::web::api::metrics_routes));
    let server = server.disable_signals().workers(1).client_request_timeout(HEAD_TIME).bind(listen);
    Ok(server.map_err(|error| StartError::Listen(listen, error))?.run())
}

/// Stops a service: waiting polls answer with what they know, what is under way is finished.
#[derive(Clone)]
pub struct Stopper {
    server: ServerHandle,
    shutdown: CancellationToken,
}

impl Stopper {
    /// Stops the service and waits until it has stopped.
    pub async fn stop(&self) {
        self.shutdown.cancel();
        self.server.stop(true).await;
    }
}

/// Sweeps until shutdown, whatever happens: what has expired must not stay because of one bad moment.
async fn keep_sweeping(gate: web::Data<Gate>, shutdown: CancellationToken) {
    while AssertUnwindSafe(sweep(&gate, &shutdown)).catch_unwind().await.is_err() {
        tracing::error!("the sweep broke off where it never should; it begins again");
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

async fn sweep(gate: &Gate, shutdown: &CancellationToken) {
    while !shutdown.is_cancelled() {
        match gate.tend().await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(SWEEP_EVERY).await,
            Err(error) => {
                tracing::error!(%error, "what is due could not be done; it will be tried again");
                tokio::time::sleep(2 * SWEEP_EVERY).await;
            }
        }
    }
}

/// The store that the configuration names, and how its changes are told.
async fn backends(
    config: &Config,
    random: &Arc<dyn Random>,
) -> Result<(Arc<dyn Store>, Arc<dyn Notify>), StartError> {
    match &config.store {
        StoreSettings::Embedded(file) => Ok((Arc::new(Sqlite::open(file)?), Arc::new(Local::new()))),
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
        StoreSettings::Embedded(file) => Ok(Arc::new(Sqlite::open_read_only(file)?)),
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

fn clients(config: &Config, upstream: &Arc<Upstream>, clock: &Arc<dyn Clock>) -> Result<Clients, StartError> {
    let sources: std::collections::BTreeMap<&String, Arc<dyn IdentitySource>> = config
        .identities
        .iter()
        .map(|(name, settings)| (name, identity_source(settings, upstream, clock)))
        .collect();
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
            })
        })
        .collect()
}

fn providers(
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

fn payments(
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

fn api_keys(config: &Config, clients: &Clients) -> ApiKeys {
    let of_clients = config.clients.iter().flat_map(|settings| {
        let client = clients.find(&settings.id);
        settings.api_keys.iter().filter_map(move |digest| Some((*digest, Arc::clone(client?))))
    });
    let of_operators = config
        .operators
        .iter()
        .flat_map(|operator| operator.api_keys.iter().map(|digest| (*digest, operator.id.clone())));
    ApiKeys::new(of_clients, of_operators)
}

fn public_url(config: &Config, bound: SocketAddr) -> Result<Url, ConfigError> {
    if let Some(url) = &config.server.public_url {
        return Ok(url.clone());
    }
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    Url::parse(&format!("{scheme}://{bound}"))
        .map_err(|_| ConfigError::new("`server.public_url` is needed for this `server.listen`"))
}
