//! Where a server is, as `store.url` writes it:
//! `redis://[user[:password]@]host[:port][/database]`, `redis+sentinel://host[:port][,host[:port]…]/master[/database]`,
//! `redis+cluster://host[:port][,host[:port]…]`; with `rediss` in the place of `redis` for TLS.

use percent_encoding::percent_decode_str;
use secrecy::SecretString;

/// Where a server is, and how one gets in.
#[derive(Debug, Clone)]
pub struct Address {
    /// What stands behind the nodes.
    pub topology: Topology,
    /// Host and port of each node that is named.
    pub nodes: Vec<(String, u16)>,
    /// The database's number; 0 on a Cluster.
    pub database: i64,
    /// The ACL user.
    pub username: Option<String>,
    /// That user's password.
    pub password: Option<SecretString>,
    /// The password of the Sentinels themselves.
    pub sentinel_password: Option<SecretString>,
    /// Absent: plain TCP.
    pub tls: Option<Tls>,
}

/// What stands behind the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Standalone,
    /// The nodes are Sentinels, which know where the server of this name is now.
    Sentinel {
        /// The name under which the Sentinels watch it.
        master: String,
    },
    /// The nodes belong to a Cluster.
    Cluster,
}

/// How TLS is done.
#[derive(Clone, Default)]
pub struct Tls {
    /// Who signs the server's certificate, PEM; absent: whoever the operating system trusts.
    pub ca: Option<Vec<u8>>,
    /// Our certificate and its key, PEM both.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ca, client } = self;
        f.debug_struct("Tls").field("ca", &ca.is_some()).field("client", &client.is_some()).finish()
    }
}

/// What is wrong with an address. Never repeats it, since there may be a password in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not one of the six schemes.
    #[error("must begin with redis://, redis+sentinel:// or redis+cluster://, or rediss for TLS")]
    Scheme,
    /// No host, or a port that is no number.
    #[error("must name at least one node as host or host:port")]
    Node,
    /// Several nodes where one is meant.
    #[error("names several nodes; write redis+sentinel:// or redis+cluster://")]
    SeveralNodes,
    /// No name after the Sentinels.
    #[error(
        "must end with the name under which the Sentinels watch the server, as in redis+sentinel://host:26379/mymaster"
    )]
    Master,
    /// Not a number, or one on a Cluster.
    #[error("must have a database's number after the last slash, or nothing; on a Cluster nothing")]
    Database,
    /// What stands before `@`.
    #[error("has a user or password that is not percent-encoded UTF-8")]
    Credentials,
}

impl Address {
    /// Whether a `store.url` is meant for this module.
    #[must_use]
    pub fn is_meant(url: &str) -> bool {
        url.starts_with("redis")
    }

    /// Reads a URL.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = url.split_once("://").ok_or(AddressError::Scheme)?;
        let (transport, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match transport {
            "redis" => None,
            "rediss" => Some(Tls::default()),
            _ => return Err(AddressError::Scheme),
        };
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let default_port = if kind == "sentinel" { 26379 } else { 6379 };
        let nodes = hosts.split(',').map(|host| node(host, default_port)).collect::<Result<Vec<_>, _>>()?;
        let (topology, database) = match kind {
            "" if nodes.len() > 1 => return Err(AddressError::SeveralNodes),
            "" => (Topology::Standalone, path),
            "sentinel" => {
                let (master, database) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err(AddressError::Master);
                }
                (Topology::Sentinel { master: master.to_owned() }, database)
            }
            "cluster" if path.is_empty() => (Topology::Cluster, ""),
            "cluster" => return Err(AddressError::Database),
            _ => return Err(AddressError::Scheme),
        };
        let database =
            if database.is_empty() { Some(0) } else { database.parse::<u16>().ok().map(i64::from) };
        let (username, password) = credentials.map_or(Ok((None, None)), user)?;
        Ok(Self {
            topology,
            nodes,
            database: database.ok_or(AddressError::Database)?,
            username,
            password,
            sentinel_password: None,
            tls,
        })
    }
}

fn node(text: &str, default_port: u16) -> Result<(String, u16), AddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(AddressError::Node)?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| AddressError::Node)?,
        None if port.is_empty() => default_port,
        None => return Err(AddressError::Node),
    };
    let odd = |c: char| c.is_whitespace() || "/?#@".contains(c);
    if host.is_empty() || host.contains(odd) { Err(AddressError::Node) } else { Ok((host.to_owned(), port)) }
}

type User = (Option<String>, Option<SecretString>);

fn user(text: &str) -> Result<User, AddressError> {
    let decoded = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8().map_err(|_| AddressError::Credentials)?;
        Ok(if decoded.is_empty() { None } else { Some(decoded.into_owned()) })
    };
    let (username, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((decoded(username)?, decoded(password)?.map(SecretString::from)))
}
