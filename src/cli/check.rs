//! `sidegate check`: is everything there that the configuration names?

use std::sync::Arc;

use super::{Done, Failure, Place, block_on, say};
use crate::app::try_store;
use crate::config::{IdentitySettings, StoreSettings};
use crate::domain::{Clock, Random};
use crate::flow::authorize::redirect_uri;
use crate::flow::webhook::webhook_url;
use crate::identity::oidc::Oidc;
use crate::identity::proxy::Proxy;
use crate::system::{SystemClock, SystemRandom};
use crate::upstream::Upstream;
use crate::upstream::oauth::Provider;
use crate::upstream::payment;
use crate::vault::load_key_file;
use crate::web::tls;

pub(super) fn run(place: &Place) -> Done {
    let (config, _) = place.load()?;
    say(format!(
        "ok  configuration: {} client(s), {} operator(s)",
        config.clients.len(),
        config.operators.len()
    ))?;
    if config.make_key_file && !config.key_file.exists() {
        say("ok  key ring: will be made at the first start")?;
    } else {
        load_key_file(&config.key_file, Arc::new(SystemRandom))?;
        say(format!("ok  key ring: {}", config.key_file.display()))?;
    }
    match &config.store {
        StoreSettings::Embedded { file, .. } => say(format!("ok  store: {}", file.display()))?,
        StoreSettings::Shared(store) => {
            let report = block_on(try_store(&config, store))?;
            for sentence in report.sentences() {
                say(format!("ok  store: {sentence}"))?;
            }
        }
    }
    if let Some(files) = &config.server.tls {
        let certificates = Arc::new(tls::Certificates::load(files, SystemClock.now())?);
        tls::server_config(certificates, config.api.as_ref().and_then(|api| api.client_ca.as_deref()))?;
        say("ok  TLS certificate and key")?;
    }
    let upstream = Arc::new(Upstream::new(config.allow_addresses.clone())?);
    for (name, settings) in &config.identities {
        match settings {
            IdentitySettings::Proxy(settings) => {
                let proxy = Proxy::new(settings.clone(), Arc::clone(&upstream), Arc::new(SystemClock));
                block_on(proxy.check())?;
            }
            IdentitySettings::Oidc(settings) => {
                let oidc = Oidc::new((**settings).clone(), Arc::clone(&upstream), Arc::new(SystemClock));
                block_on(oidc.check()).map_err(|error| {
                    let (issuer, code) = (&settings.issuer, error.reason().code());
                    Failure::new(format!("identity source `{name}`: {issuer} cannot be used: {code}"))
                })?;
                let url = config.server.public_url.as_ref().map_or("", url::Url::as_str);
                let redirect = format!("{}/signin/{name}/callback", url.trim_end_matches('/'));
                say(format!("ok  identity source {name}: register the redirect URI {redirect}"))?;
            }
            IdentitySettings::Loopback | IdentitySettings::Handoff(_) | IdentitySettings::Confirm(_) => {}
        }
        say(format!("ok  identity source {name}"))?;
    }
    let listened = format!("http://{}", config.server.listen);
    let public_url = config.server.public_url.as_ref().map_or(listened.as_str(), url::Url::as_str);
    let public_url = public_url.trim_end_matches('/');
    for settings in &config.providers {
        let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandom));
        let provider = Provider::new(settings.clone(), Arc::clone(&upstream), clock, random);
        let id = &settings.id;
        block_on(provider.check())
            .map_err(|wrong| Failure::new(format!("provider `{id}` cannot be used: {wrong}")))?;
        say(format!("ok  provider {id}: register the redirect URI {}", redirect_uri(public_url, id)))?;
    }
    let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) = (Arc::new(SystemClock), Arc::new(SystemRandom));
    for settings in &config.payments {
        let (id, mode) = (&settings.id, if settings.livemode { "live" } else { "test" });
        let processor = payment::processor(settings, public_url, &upstream, &clock, &random);
        block_on(processor.check()).map_err(|wrong| {
            Failure::new(format!("payment processor `{id}` cannot be used: {}", wrong.sentence()))
        })?;
        let url = webhook_url(public_url, id);
        say(match processor.manual() {
            Some(_) => format!("ok  payment processor {id}: a page of its own, where nobody pays"),
            None => format!("ok  payment processor {id}, {mode} mode: register the webhook URL {url}"),
        })?;
    }
    if let Some(url) = &config.server.public_url {
        say(format!("ok  links begin with {}/e/", url.as_str().trim_end_matches('/')))?;
    }
    Ok(())
}
