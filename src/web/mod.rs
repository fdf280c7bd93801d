//! HTTP: the API, the pages, and what stands before both.
//!
//! [`routes`] is the table of everything that is answered. A handler takes what it needs from the request
//! ([`extract`]), calls one use case of `flow`, and maps the answer ([`problem`] for programs, [`pages`] for
//! people).

pub mod address;
pub mod api;
pub mod assets;
pub mod console;
pub mod extract;
pub mod limits;
pub mod middleware;
pub mod pages;
pub mod problem;
pub mod tls;

use std::net::SocketAddr;

use actix_web::web;
use url::Url;

/// What handlers need to know of how the service is reached.
pub struct Site {
    /// What links are built from.
    pub public_url: Url,
    /// The path of `public_url` without a slash at its end: what every route and link begins with.
    pub prefix: String,
    /// Host names, with port if any, that are answered.
    pub hosts: Vec<String>,
    /// Where the API is answered and nothing else, if that is a listener of its own.
    pub api: Option<SocketAddr>,
}

impl Site {
    /// The site under `public_url`, which also answers under the names `more_hosts`; `api` is the listener of the API, if it has
    /// one of its own.
    #[must_use]
    pub fn new(public_url: Url, more_hosts: Vec<String>, api: Option<SocketAddr>) -> Self {
        let prefix = public_url.path().trim_end_matches('/').to_owned();
        let host = public_url.host_str().unwrap_or_default();
        let mut hosts = more_hosts;
        match (public_url.port(), public_url.port_or_known_default()) {
            (Some(port), _) => hosts.push(format!("{host}:{port}")),
            // The port that goes without saying may be said.
            (None, Some(port)) => hosts.extend([host.to_owned(), format!("{host}:{port}")]),
            (None, None) => hosts.push(host.to_owned()),
        }
        if let Some(address) = api {
            hosts.push(address.to_string());
        }
        Self { public_url, prefix, hosts, api }
    }

    /// Whether people reach the service by TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.public_url.scheme() == "https"
    }
}

/// Everything that is answered. `prefix` is the path of `public_url`.
pub fn routes(config: &mut web::ServiceConfig, prefix: &str) {
    config.configure(api::health_routes);
    if prefix.is_empty() {
        config.configure(api::routes).configure(pages::routes).configure(console::routes);
    } else {
        config.service(
            web::scope(prefix).configure(api::routes).configure(pages::routes).configure(console::routes),
        );
    }
    config.default_service(web::to(pages::not_found));
}
