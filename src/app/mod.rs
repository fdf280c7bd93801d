//! The composition root: builds the service from a configuration. The only place that names concrete backends.
//!
//! `parts` makes what the configuration names; `upkeep` is what goes on beside the requests.

mod parts;
mod upkeep;

use std::net::{SocketAddr, TcpListener};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use tokio_util::sync::CancellationToken;
use url::Url;

use self::parts::{api_keys, backends, clients, console, payments, providers, sources, trail_care};
pub use self::parts::{open_to_read, try_store};
use self::upkeep::{keep_renewing, keep_sweeping};
use crate::config::{Config, ConfigError};
use crate::domain::{Clock, Random};
use crate::flow::Gate;
use crate::flow::errands::Errands;
use crate::flow::keys::{KeyWatch, KeysError};
use crate::store;
use crate::store::metered::Metered;
use crate::system::{SystemClock, SystemRandom};
use crate::telemetry;
use crate::upstream::Upstream;
use crate::vault::{KeyFileError, create_key_file, load_key_file};
use crate::web::Site;
use crate::web::limits::Limits;
use crate::web::middleware::{guard::guard, headers::headers, log::log};
use crate::web::pages::Pages;
use crate::web::tls::{self, Certificates};

/// A service that is bound to its address and ready to run.
pub struct Application {
    server: Server,
    metrics: Option<Server>,
    certificates: Option<Arc<Certificates>>,
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
        let sources = sources(config, &upstream, &clock);
        let clients = clients(config, &sources, &upstream)?;
        let providers = providers(config, &upstream, &clock, &random);
        let told = parts::told(&clients);
        let api_keys = web::Data::new(api_keys(config, &clients));

        let certificates = config.server.tls.as_ref().map(|files| Certificates::load(files, clock.now()));
        let certificates = certificates.transpose()?.map(Arc::new);
        let tls = |client_ca: Option<&Path>| {
            certificates.clone().map(|certificates| tls::server_config(certificates, client_ca)).transpose()
        };
        let (listener, bound) = bind(config.server.listen)?;
        let api = match &config.api {
            Some(api) => Some((bind(api.listen)?, tls(api.client_ca.as_deref())?)),
            None => None,
        };
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
            console: console(config, &sources),
            errands: Errands::new(told),
            public_url: links,
            spans: config.spans,
            quotas: config.quotas,
            last_stray: AtomicI64::new(0),
            trail_care: trail_care(config),
            shutdown: shutdown.clone(),
        });
        // Of a store that cannot be reached the log has word.
        if let Err(KeysError::Missing(missing)) = gate.look_at_keys().await {
            return Err(missing.into());
        }
        let site = web::Data::new(Site::new(
            public_url.clone(),
            config.server.hosts.clone(),
            api.as_ref().map(|((_, bound), _)| *bound),
        ));
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
        let (workers, connections) = shares(config.rates.connections);
        let http = HttpServer::new(factory)
            .disable_signals()
            // A handler that has hung up must not claim what it will never receive.
            .h1_allow_half_closed(false)
            .client_request_timeout(HEAD_TIME)
            .workers(workers)
            .max_connections(connections)
            .shutdown_timeout(SHUTDOWN_TIME);
        let serve = |http: HttpServer<_, _, _, _>, listener, bound, tls| {
            match tls {
                Some(tls) => http.listen_rustls_0_23(listener, tls),
                None => http.listen(listener),
            }
            .map_err(|error| StartError::Listen(bound, error))
        };
        let http = serve(http, listener, bound, tls(None)?)?;
        let http = match api {
            Some(((listener, bound), tls)) => serve(http, listener, bound, tls)?,
            None => http,
        };
        let server = http.run();
        let metrics = config.metrics.map(metrics).transpose()?;
        Ok(Self { server, metrics, certificates, gate, limits, public_url, shutdown })
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
        let renewer = self.certificates.map(|certificates| {
            let gate = self.gate.clone();
            actix_web::rt::spawn(async move { keep_renewing(&certificates, &gate).await })
        });
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
        if let Some(renewer) = renewer {
            renewer.abort();
        }
        // What is under way at a provider must not be lost.
        self.gate.errands.close();
        if tokio::time::timeout(ERRANDS_TIME, errands).await.is_err() {
            tracing::error!("a provider did not answer before the service stopped");
        }
        self.gate.store.close().await;
        result
    }
}

/// How many workers there are, and how many connections each may have open.
fn shares(connections: NonZero<u32>) -> (usize, usize) {
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let connections = usize::try_from(connections.get()).unwrap_or(usize::MAX);
    (workers, connections.div_ceil(workers))
}

/// A listener for Prometheus alone.
fn metrics(listen: SocketAddr) -> Result<Server, StartError> {
    let server = HttpServer::new(|| App::new().configure(crate::web::api::metrics_routes));
    let server = server.disable_signals().workers(1).client_request_timeout(HEAD_TIME).bind(listen);
    Ok(server.map_err(|error| StartError::Listen(listen, error))?.run())
}

fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listener = TcpListener::bind(listen).map_err(|error| StartError::Listen(listen, error))?;
    let bound = listener.local_addr().map_err(|error| StartError::Listen(listen, error))?;
    Ok((listener, bound))
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

fn public_url(config: &Config, bound: SocketAddr) -> Result<Url, ConfigError> {
    if let Some(url) = &config.server.public_url {
        return Ok(url.clone());
    }
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    Url::parse(&format!("{scheme}://{bound}"))
        .map_err(|_| ConfigError::new("`server.public_url` is needed for this `server.listen`"))
}
