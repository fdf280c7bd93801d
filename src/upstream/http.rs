//! The guarded HTTP client: no redirects, no proxy from the environment, a time limit, a size limit, and only
//! addresses that may be reached, whether they come from a name or stand in the URL (R17).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use reqwest::Method;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use tracing::Instrument as _;
use url::{Host, Url};
use zeroize::Zeroizing;

use super::address::may_reach;
use crate::telemetry::traces;

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

/// A request to somebody else.
pub struct Outgoing<'a> {
    /// Whether its method is DELETE; else it follows from the body.
    pub deletes: bool,
    /// Where to.
    pub url: &'a Url,
    /// What is sent.
    pub body: Body<'a>,
    /// In whose name.
    pub authorization: Authorization,
    /// Headers besides, by name.
    pub headers: Vec<(&'static str, String)>,
    /// How long it may take, all in all.
    pub time: Duration,
}

/// What a request brings.
pub enum Body<'a> {
    /// Nothing, by POST or by GET.
    Nothing {
        /// Whether by POST.
        posts: bool,
    },
    /// A form.
    Form(&'a [(&'a str, &'a str)]),
    /// A JSON document.
    Json(&'a serde_json::Value),
    /// A JSON document that is written already.
    JsonText(String),
}

/// In whose name a request is made.
#[derive(Clone)]
pub enum Authorization {
    /// Nobody's.
    None,
    /// By HTTP Basic: name and secret, exactly as they stand there.
    Basic(String, Zeroizing<String>),
    /// By a bearer token.
    Bearer(Zeroizing<String>),
}

impl Authorization {
    /// HTTP Basic as OAuth writes it: both parts form-encoded first (RFC 6749 §2.3.1).
    #[must_use]
    pub fn basic(name: &str, secret: &str) -> Self {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        Self::Basic(encoded(name), Zeroizing::new(encoded(secret)))
    }
}

impl<'a> Outgoing<'a> {
    /// A GET request.
    #[must_use]
    pub fn get(url: &'a Url) -> Self {
        Self::post(url, Body::Nothing { posts: false })
    }

    /// A POST request, in nobody's name.
    #[must_use]
    pub fn post(url: &'a Url, body: Body<'a>) -> Self {
        let (authorization, headers) = (Authorization::None, Vec::new());
        Self { deletes: false, url, body, authorization, headers, time: TIME }
    }
}

/// An answer of any status. Its body is wiped when dropped.
pub struct Incoming {
    host: String,
    /// The status.
    pub status: u16,
    /// `Content-Type`, as it was written.
    pub media_type: String,
    /// `DPoP-Nonce`; empty if there was none.
    pub dpop_nonce: String,
    /// `Retry-After`, where it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// Whether it says that it answered the same before (`Idempotent-Replayed`).
    pub replayed: bool,
    /// The body.
    pub body: Zeroizing<Vec<u8>>,
}

impl Incoming {
    /// Whether the status is one of success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The JSON document of a success.
    ///
    /// # Errors
    /// [`UpstreamError::Status`], [`UpstreamError::Malformed`].
    pub fn json<T: DeserializeOwned>(self) -> Result<T, UpstreamError> {
        if !self.is_success() {
            return Err(UpstreamError::Status(self.host, self.status));
        }
        serde_json::from_slice(&self.body).map_err(|_| UpstreamError::Malformed(self.host))
    }
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
        self.send(Outgoing::get(url)).await?.json()
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
        let mut request = Outgoing::post(url, Body::Form(form));
        if let Some((name, secret)) = basic {
            request.authorization = Authorization::basic(name, secret);
        }
        self.send(request).await?.json()
    }

    /// Sends a request, and takes whatever comes back, errors too.
    ///
    /// # Errors
    /// [`UpstreamError`] if nothing comes back, or more than is read.
    pub async fn send(&self, request: Outgoing<'_>) -> Result<Incoming, UpstreamError> {
        let Outgoing { deletes, url, body, authorization, headers, time } = request;
        self.permit(url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let method = match (deletes, &body) {
            (true, _) => Method::DELETE,
            (false, Body::Nothing { posts: false }) => Method::GET,
            (false, _) => Method::POST,
        };
        let request =
            self.client.request(method, url.clone()).timeout(time).header("Accept", "application/json");
        let request = match body {
            // Some want the length of a body that they do not want.
            Body::Nothing { posts: true } => request.header("Content-Length", "0"),
            Body::Nothing { posts: false } => request,
            Body::Form(form) => request.form(form),
            Body::Json(value) => request.json(value),
            Body::JsonText(text) => request.header("Content-Type", "application/json").body(text),
        };
        let request = match &authorization {
            Authorization::None => request,
            Authorization::Basic(name, secret) => request.basic_auth(name, Some(secret.as_str())),
            Authorization::Bearer(token) => request.bearer_auth(token.as_str()),
        };
        let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let asked = request.send().instrument(traces::asked(&host));
        let mut answer = asked.await.map_err(|_| UpstreamError::NoAnswer(host.clone()))?;
        let header = |name: &str| {
            answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let (status, media_type, dpop_nonce) =
            (answer.status().as_u16(), header("content-type"), header("dpop-nonce"));
        let retry_after = header("retry-after").parse().ok().map(Duration::from_secs);
        let replayed = header("idempotent-replayed") == "true";
        let mut body = Zeroizing::new(Vec::new());
        while let Some(chunk) = answer.chunk().await.map_err(|_| UpstreamError::NoAnswer(host.clone()))? {
            if body.len() + chunk.len() > LARGEST {
                return Err(UpstreamError::TooLarge(host, LARGEST));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Incoming { host, status, media_type, dpop_nonce, retry_after, replayed, body })
    }

    /// Whether somebody answers there, whatever they say.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn reach(&self, url: &Url) -> Result<(), UpstreamError> {
        self.send(Outgoing::get(url)).await.map(drop)
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
