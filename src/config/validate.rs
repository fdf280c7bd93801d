//! One pass over the whole configuration: what is missing, malformed or unsafe stops the start.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::ExposeSecret as _;
use url::{Host, Url};

use super::file::{Client, File, Lifetimes, Webhook};
use super::{Api, ClientSettings, Config, ConfigError, IdentitySettings, OperatorSettings, Rates, Server};
use super::{console, identity, payments, providers, store};
use crate::api_key::KeyDigest;
use crate::domain::text::{Shape, plain};
use crate::domain::{ClientId, Kind, OperatorId, Spans};
use crate::flow::Quotas;
use crate::upstream::payment::settings::Account;
use crate::upstream::webhook;

pub(super) fn checked(file: File, data: &Path) -> Result<Config, ConfigError> {
    let mut identities = BTreeMap::new();
    for (name, identity) in file.identity {
        let settings = identity::checked(&name, identity)?;
        identities.insert(name, settings);
    }
    let providers = providers::checked(file.providers)?;
    let payments = payments::checked(file.payments)?;
    let known: Vec<_> = providers
        .iter()
        .map(|provider| provider.id.as_str())
        .chain(payments.iter().map(|payment| payment.id.as_str()))
        .collect();
    let config = Config {
        server: Server {
            public_url: file.server.public_url.map(public_url).transpose()?,
            listen: file.server.listen,
            tls: file.server.tls,
            trusted_proxies: file.server.trusted_proxies,
            hosts: file.server.hosts,
        },
        api: file.api.map(|api| Api { listen: api.listen, client_ca: api.client_ca }),
        store: store::checked(file.store, data)?,
        make_key_file: file.keys.file.is_none(),
        lost_keys: file.keys.lost,
        key_file: file.keys.file.unwrap_or_else(|| data.join("keys.toml")),
        clients: clients(file.clients, &identities, &known)?,
        operators: file
            .operators
            .into_iter()
            .map(|operator| {
                let api_keys = api_keys("operator", &operator.id, operator.api_key_digests)?;
                let id = OperatorId::new(name("operators.id", operator.id)?);
                Ok(OperatorSettings { id, role: operator.role, api_keys })
            })
            .collect::<Result<_, ConfigError>>()?,
        console: console::checked(file.console, &identities)?,
        identities,
        providers,
        payments,
        allow_addresses: file.upstream.allow_addresses,
        spans: spans(&file.lifetimes)?,
        quotas: Quotas {
            per_client: file.limits.pending_per_client,
            per_subject: file.limits.pending_per_subject,
        },
        rates: Rates {
            per_client: file.limits.requests_per_second_per_client,
            per_address: file.limits.requests_per_second_per_address,
            connections: file.limits.connections,
        },
        checkpoint_every: match file.audit.checkpoint_every {
            0 => None,
            every => Some(seconds("audit.checkpoint_every", every, 1..=86_400)?),
        },
        traces: file.traces.map(traces).transpose()?,
        metrics: file.metrics.listen,
        log_level: file.log.level.parse().map_err(|_| {
            ConfigError::new("`log.level` must be one of off, error, warn, info, debug, trace")
        })?,
    };
    exposure(&config)?;
    Ok(config)
}

fn traces(section: super::file::Traces) -> Result<super::Traces, ConfigError> {
    let ratio = section.ratio.unwrap_or(1.0);
    if !cfg!(feature = "otel") {
        return Err(ConfigError::new("`[traces]` needs a build with traces: `cargo build --features otel`"));
    }
    if !matches!(section.endpoint.scheme(), "http" | "https") || !section.endpoint.has_host() {
        return Err(ConfigError::new("`traces.endpoint` must be an http or https URL"));
    }
    if !(0.0..=1.0).contains(&ratio) {
        return Err(ConfigError::new("`traces.ratio` must be 0 to 1"));
    }
    Ok(super::Traces { endpoint: section.endpoint, ratio })
}

/// In seconds.
const MONTH: u64 = 30 * 86_400;

fn spans(lifetimes: &Lifetimes) -> Result<Spans, ConfigError> {
    let Lifetimes { claim_by, claim_window, retention, longest } = *lifetimes;
    Ok(Spans {
        claim_by: seconds("lifetimes.claim_by", claim_by, 1..=MONTH)?,
        claim_window: seconds("lifetimes.claim_window", claim_window, 1..=MONTH)?,
        retention: seconds("lifetimes.retention", retention, 1..=12 * MONTH)?,
        longest_life: seconds("lifetimes.longest", longest, 10..=MONTH)?,
    })
}

/// A time of so many seconds, if it is within bounds.
pub(super) fn seconds(key: &str, seconds: u64, within: RangeInclusive<u64>) -> Result<Duration, ConfigError> {
    if within.contains(&seconds) {
        return Ok(Duration::from_secs(seconds));
    }
    let (least, most) = within.into_inner();
    Err(ConfigError::new(format!("`{key}` must be {least} to {most} seconds")))
}

/// What is reachable from where must fit together.
pub(super) fn exposure(config: &Config) -> Result<(), ConfigError> {
    let server = &config.server;
    let local_listener = server.listen.ip().is_loopback();
    let proxied = !server.trusted_proxies.is_empty();
    let refuse = |sentence: &str| Err(ConfigError::new(sentence));
    if let Some(api) = &config.api {
        if api.client_ca.is_some() && server.tls.is_none() {
            return refuse("`api.client_ca` needs `server.tls`: without it nobody shows a certificate");
        }
        if !api.listen.ip().is_loopback() && server.tls.is_none() && !proxied {
            return refuse(
                "`api.listen` can be reached by others without TLS; set `server.tls`, or name the proxy in `server.trusted_proxies`, or listen on 127.0.0.1",
            );
        }
    }
    let Some(url) = &server.public_url else {
        return if local_listener {
            Ok(())
        } else {
            refuse(
                "`server.public_url` is needed with a listener that others can reach; set it to the https URL under which people open links",
            )
        };
    };
    let local_host = is_loopback_host(url);
    if url.scheme() == "http" && !local_host {
        return refuse("`server.public_url` is plain HTTP with a public host; make it https");
    }
    if url.scheme() == "https" && !local_host && server.tls.is_none() && !proxied {
        return refuse(
            "`server.public_url` is https, but there is neither `server.tls` nor a proxy in `server.trusted_proxies` to provide it; set one of them",
        );
    }
    if url.scheme() == "http" && server.tls.is_some() {
        return refuse("`server.tls` is set, but `server.public_url` is http; make it https");
    }
    if !local_listener && server.tls.is_none() && !proxied {
        return refuse(
            "`server.listen` can be reached by others without TLS; set `server.tls`, or name the proxy in `server.trusted_proxies`, or listen on 127.0.0.1",
        );
    }
    let exposed = !local_listener || !local_host || proxied;
    if let Some(payment) = config.payments.iter().find(|payment| matches!(payment.account, Account::Manual))
        && exposed
    {
        return Err(ConfigError::new(format!(
            "payment processor `{}` is `manual`, where nobody pays; it needs a loopback `server.listen` and `server.public_url` and no `server.trusted_proxies`",
            payment.id
        )));
    }
    for (name, identity) in &config.identities {
        if matches!(identity, IdentitySettings::Loopback) && exposed {
            return Err(ConfigError::new(format!(
                "identity source `{name}` is `loopback`, which trusts whoever connects from this computer; it needs a loopback `server.listen` and `server.public_url` and no `server.trusted_proxies`"
            )));
        }
    }
    Ok(())
}

pub(super) fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}

fn public_url(url: Url) -> Result<Url, ConfigError> {
    let clean = url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if matches!(url.scheme(), "http" | "https") && url.has_host() && clean {
        Ok(url)
    } else {
        Err(ConfigError::new(
            "`server.public_url` must be an http or https URL with a host and at most a path, such as https://gate.example.com",
        ))
    }
}

fn clients(
    clients: Vec<Client>,
    identities: &BTreeMap<String, IdentitySettings>,
    providers: &[&str],
) -> Result<Vec<ClientSettings>, ConfigError> {
    if clients.is_empty() {
        return Err(ConfigError::new(
            "there is no client; add a [[clients]] section with the lines that `sidegate client new --id ID` prints",
        ));
    }
    let mut checked: Vec<ClientSettings> = Vec::with_capacity(clients.len());
    for client in clients {
        let id = client.id;
        if checked.iter().any(|other| other.id.as_str() == id) {
            return Err(ConfigError::new(format!("two clients have the id `{id}`")));
        }
        let identity = client.identity.ok_or_else(|| {
            ConfigError::new(format!(
                "client `{id}` has no identity source, so nobody could tell who opens its links; add `identity = \"NAME\"` and a section [identity.NAME]"
            ))
        })?;
        if !identities.contains_key(&identity) {
            return Err(ConfigError::new(format!(
                "client `{id}` names the identity source `{identity}`, which does not exist; add a section [identity.{identity}]"
            )));
        }
        if !(2..=100).contains(&client.round_budget) {
            return Err(ConfigError::new(format!("`round_budget` of client `{id}` must be 2 to 100")));
        }
        let unknown = |id: &&String| !providers.contains(&id.as_str());
        if let Some(provider) = client.providers.iter().flatten().find(unknown) {
            return Err(ConfigError::new(format!(
                "client `{id}` names the provider `{provider}`, which does not exist; add a [[providers]] or [[payments]] section with that `id`"
            )));
        }
        let shown = plain("name", &client.name, Shape { longest: 80, lines: false })
            .map_err(|error| ConfigError::new(format!("client `{id}`: {error}")))?;
        let webhook = client.webhook.map(|section| webhook(&id, section)).transpose()?;
        let kinds = kinds(&id, client.kinds, identities.get(&identity))?;
        checked.push(ClientSettings {
            kinds,
            api_keys: api_keys("client", &id, client.api_key_digests)?,
            id: ClientId::new(name("clients.id", id)?),
            name: shown,
            host: client.host,
            identity,
            providers: client.providers,
            round_budget: client.round_budget,
            webhook,
        });
    }
    Ok(checked)
}

/// What a client may ask for: all that its identity source allows, if it is not said. Where nobody finds out who answers,
/// nobody is asked to pay.
fn kinds(
    id: &str,
    kinds: Option<Vec<Kind>>,
    identity: Option<&IdentitySettings>,
) -> Result<Vec<Kind>, ConfigError> {
    let unknown = matches!(identity, Some(IdentitySettings::Confirm(_)));
    let Some(kinds) = kinds else {
        return Ok(Kind::ALL.into_iter().filter(|kind| !unknown || *kind != Kind::Payment).collect());
    };
    if unknown && kinds.contains(&Kind::Payment) {
        return Err(ConfigError::new(format!(
            "client `{id}` may ask for payments, but its identity source is `confirm`, which finds out nobody; use another source, or take `payment` out of its `kinds`"
        )));
    }
    Ok(kinds)
}

/// Where a client's server is told what happens.
fn webhook(id: &str, section: Webhook) -> Result<webhook::Settings, ConfigError> {
    let wrong = |what: &str| ConfigError::new(format!("client `{id}`: {what}"));
    if !identity::is_protected(&section.url) {
        return Err(wrong("`webhook.url` must be an https URL"));
    }
    let secret = |file: &PathBuf| {
        let text = store::password("webhook.secret_files", file)?;
        webhook::read_secret(text.expose_secret()).ok_or_else(|| {
            wrong("`webhook.secret_files` must each hold `whsec_` and 24 to 64 bytes in base64")
        })
    };
    let secrets = section.secret_files.iter().map(secret).collect::<Result<Vec<_>, _>>()?;
    if secrets.is_empty() {
        return Err(wrong("`webhook.secret_files` must list one file, or two while a secret is replaced"));
    }
    Ok(webhook::Settings { url: section.url, secrets })
}

fn api_keys(whose: &str, id: &str, digests: Vec<KeyDigest>) -> Result<Vec<KeyDigest>, ConfigError> {
    if (1..=2).contains(&digests.len()) {
        Ok(digests)
    } else {
        Err(ConfigError::new(format!(
            "`api_key_digests` of {whose} `{id}` must list one key, or two while one is replaced"
        )))
    }
}

fn name(field: &str, name: String) -> Result<String, ConfigError> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(good) {
        Ok(name)
    } else {
        Err(ConfigError::new(format!(
            "`{field}` must be 1 to 64 lower-case letters, digits, `-`, `_` or `.`"
        )))
    }
}
