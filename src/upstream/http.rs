//! The guarded HTTP client: no redirects, no proxy from the environment, a time limit, a size limit, and only
//! addresses that may be reached, whether they come from a name or stand in the URL (R17).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use url::{Host, Url};
use zeroize::Zeroizing;

use super::address::may_reach;

/// The HTTP client for everything that is asked of others.
pub struct Upstream {
    client: reqwest::Client,
    allowed: Arc<[IpNet]>,
}

/// Why an outgoing request gave nothing. Holds no body, no query and no header.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot start")]
    Client,
    /// The URL leads to where requests must not go.
    #[error(
        "{0} is not an address that may be reached; list it in `upstream.allow_addresses` if it should be"
    )]
    Forbidden(String),
    /// Only https is spoken, and http to listed addresses.
    #[error("{0} must be reached by https")]
    NotHttps(String),
    /// No answer, or one that broke off.
    #[error("{0} does not answer")]
    NoAnswer(String),
    /// An answer other than success.
    #[error("{0} answered with status {1}")]
    Status(String, u16),
    /// More than is read.
    #[error("{0} answered with more than {1} bytes")]
    TooLarge(String, usize),
    /// Not what was expected.
    #[error("{0} answered with something else than expected")]
    Malformed(String),
}

const TIME: Duration = Duration::from_secs(5);
const LARGEST: usize = 1 << 20;

impl Upstream {
    /// A client that may also reach the networks in `allowed`.
    ///
    /// # Errors
    /// [`UpstreamError::Client`].
    pub fn new(allowed: Vec<IpNet>) -> Result<Self, UpstreamError> {
        let allowed: Arc<[IpNet]> = allowed.into();
        let client = builder()
            .connect_timeout(TIME)
            .timeout(TIME)
            .dns_resolver(Arc::new(Resolver { allowed: Arc::clone(&allowed) }))
            .build()
            .map_err(|_| UpstreamError::Client)?;
        Ok(Self { client, allowed })
    }

    /// Gets a JSON document.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn get_json<T: DeserializeOwned>(&self, url: &Url) -> Result<T, UpstreamError> {
        self.permit(url)?;
        self.json(url, self.client.get(url.clone())).await
    }

    /// Posts a form, with HTTP Basic credentials as OAuth writes them (RFC 6749 §2.3.1) if there are any, and takes a JSON
    /// document.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn post_form<T: DeserializeOwned>(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        basic: Option<(&str, &str)>,
    ) -> Result<T, UpstreamError> {
        self.permit(url)?;
        let request = self.client.post(url.clone()).form(form);
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let request = match basic {
            Some((name, secret)) => request.basic_auth(encoded(name), Some(encoded(secret))),
            None => request,
        };
        self.json(url, request).await
    }

    async fn json<T: DeserializeOwned>(
        &self,
        url: &Url,
        request: reqwest::RequestBuilder,
    ) -> Result<T, UpstreamError> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let sent = request.header("Accept", "application/json").send().await;
        let mut answer = sent.map_err(|_| UpstreamError::NoAnswer(host.clone()))?;
        if !answer.status().is_success() {
            return Err(UpstreamError::Status(host, answer.status().as_u16()));
        }
        let mut body = Zeroizing::new(Vec::new());
        while let Some(chunk) = answer.chunk().await.map_err(|_| UpstreamError::NoAnswer(host.clone()))? {
            if body.len() + chunk.len() > LARGEST {
                return Err(UpstreamError::TooLarge(host, LARGEST));
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|_| UpstreamError::Malformed(host))
    }

    /// Checks what can be checked of a URL before a connection: names are checked when they are resolved.
    ///
    /// # Errors
    /// [`UpstreamError::Forbidden`], [`UpstreamError::NotHttps`].
    pub fn permit(&self, url: &Url) -> Result<(), UpstreamError> {
        let name = url.host_str().unwrap_or_default().to_owned();
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) => None,
            None => return Err(UpstreamError::Forbidden(name)),
        };
        if literal.is_some_and(|address| !may_reach(address, &self.allowed)) {
            return Err(UpstreamError::Forbidden(name));
        }
        let listed = |address: IpAddr| self.allowed.iter().any(|network| network.contains(&address));
        match url.scheme() {
            "https" => Ok(()),
            "http" if literal.is_some_and(listed) => Ok(()),
            _ => Err(UpstreamError::NotHttps(name)),
        }
    }
}

/// Resolves a name once, and gives the connection only addresses that may be reached: all of them, or none.
struct Resolver {
    allowed: Arc<[IpNet]>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.allowed);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if found.iter().all(|address| may_reach(address.ip(), &allowed)) {
                Ok(Box::new(found.into_iter()) as Addrs)
            } else {
                Err(UpstreamError::Forbidden(name.as_str().to_owned()).into())
            }
        })
    }
}

/// A client for calls to a service of one's own: the command line's.
///
/// # Errors
/// [`UpstreamError::Client`].
pub fn plain() -> Result<reqwest::Client, UpstreamError> {
    builder().build().map_err(|_| UpstreamError::Client)
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().redirect(Policy::none()).no_proxy().user_agent("sidegate")
}
