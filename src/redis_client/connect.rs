//! Makes connections, by the redis crate, in RESP3.

use std::time::Duration;

use redis::cluster::ClusterClientBuilder;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError, TlsCertificates, TlsMode,
};
use secrecy::ExposeSecret as _;

use super::{Address, CONNECT_TIME, Connection, RESPONSE_TIME, Tls, Topology};

/// Takes what a server sends unasked, a lost connection among it.
pub(super) type PushReceiver = Box<dyn Fn(PushInfo) + Send + Sync>;

/// How long a node of a Cluster may take to accept a connection: while the client tries one that is lost, it has no
/// time for the others.
const NODE_CONNECT_TIME: Duration = Duration::from_millis(500);

/// Connects to the server that the address leads to now.
pub(super) async fn connect(address: &Address, pushes: PushReceiver) -> Result<Connection, RedisError> {
    match &address.topology {
        Topology::Standalone => {
            let node = address.nodes.first().cloned().unwrap_or_default();
            node_connection(address, &node, pushes).await
        }
        Topology::Sentinel { master } => {
            let mut sentinels = sentinels(address, master)?;
            let node = sentinels.get_async_connection_with_config(&config(pushes)).await?;
            Ok(Connection::Node(node))
        }
        Topology::Cluster => Ok(Connection::Cluster(cluster(address)?.get_async_connection().await?)),
    }
}

/// Connects to one node that hears everything that is published: any node of a Cluster does, since they pass on to each
/// other what is published. `turn` chooses among several.
pub(super) async fn connect_to_hear(
    address: &Address,
    turn: usize,
    pushes: PushReceiver,
) -> Result<Connection, RedisError> {
    match (&address.topology, address.nodes.get(turn % address.nodes.len().max(1))) {
        (Topology::Cluster, Some(node)) => node_connection(address, node, pushes).await,
        _ => connect(address, pushes).await,
    }
}

async fn node_connection(
    address: &Address,
    node: &(String, u16),
    pushes: PushReceiver,
) -> Result<Connection, RedisError> {
    let info = connection_info(address, node)?;
    let client = match &address.tls {
        Some(tls) => Client::build_with_tls(info, certificates(tls))?,
        None => Client::open(info)?,
    };
    let node = client.get_multiplexed_async_connection_with_config(&config(pushes)).await?;
    Ok(Connection::Node(node))
}

fn config(pushes: PushReceiver) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIME))
        .set_response_timeout(Some(RESPONSE_TIME))
        .set_push_sender(move |push| {
            pushes(push);
            Ok::<(), redis::aio::SendError>(())
        })
}

fn cluster(address: &Address) -> Result<redis::cluster::ClusterClient, RedisError> {
    let nodes: Result<Vec<_>, _> = address.nodes.iter().map(|node| connection_info(address, node)).collect();
    let mut builder = ClusterClientBuilder::new(nodes?)
        .use_protocol(ProtocolVersion::RESP3)
        .connection_timeout(NODE_CONNECT_TIME)
        .response_timeout(RESPONSE_TIME)
        .overall_response_timeout(Some(RESPONSE_TIME))
        .retries(2);
    if let Some(username) = &address.username {
        builder = builder.username(username);
    }
    if let Some(password) = &address.password {
        builder = builder.password(password.expose_secret());
    }
    if let Some(tls) = &address.tls {
        builder = builder.certs(certificates(tls));
    }
    builder.build()
}

fn sentinels(address: &Address, master: &str) -> Result<redis::sentinel::SentinelClient, RedisError> {
    let nodes: Vec<_> = address.nodes.iter().map(|node| connection_addr(address, node)).collect();
    let mut builder = SentinelClientBuilder::new(nodes, master, SentinelServerType::Master)?
        .set_client_to_redis_db(address.database)
        .set_client_to_redis_protocol(ProtocolVersion::RESP3);
    if let Some(username) = &address.username {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = &address.password {
        builder = builder.set_client_to_redis_password(password.expose_secret());
    }
    if let Some(password) = &address.sentinel_password {
        builder = builder.set_client_to_sentinel_password(password.expose_secret());
    }
    if let Some(tls) = &address.tls {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_redis_certificates(certificates(tls))
            .set_client_to_sentinel_certificates(certificates(tls));
    }
    builder.build()
}

fn connection_addr(address: &Address, (host, port): &(String, u16)) -> ConnectionAddr {
    match address.tls {
        Some(_) => {
            ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
        }
        None => ConnectionAddr::Tcp(host.clone(), *port),
    }
}

fn connection_info(address: &Address, node: &(String, u16)) -> Result<ConnectionInfo, RedisError> {
    let mut settings =
        RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3).set_db(address.database);
    if let Some(username) = &address.username {
        settings = settings.set_username(username);
    }
    if let Some(password) = &address.password {
        settings = settings.set_password(password.expose_secret());
    }
    Ok(connection_addr(address, node).into_connection_info()?.set_redis_settings(settings))
}

fn certificates(tls: &Tls) -> TlsCertificates {
    TlsCertificates {
        client_tls: tls
            .client
            .clone()
            .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key }),
        root_cert: tls.ca.clone(),
    }
}
