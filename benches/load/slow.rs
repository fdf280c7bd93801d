//! Connections that send a byte now and then, and never a whole request: whether others wait for them.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// This many slow connections, each opened again when it is cut off. They end with this value.
pub(crate) struct Slow {
    _connections: JoinSet<()>,
}

impl Slow {
    pub(crate) async fn start(address: SocketAddr, count: usize) -> Self {
        let mut connections = JoinSet::new();
        for _ in 0..count {
            connections.spawn(async move {
                loop {
                    let _ = drip(address).await;
                }
            });
        }
        // Until all are there.
        tokio::time::sleep(Duration::from_secs(1)).await;
        Self { _connections: connections }
    }
}

async fn drip(address: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"POST /v1/rounds HTTP/1.1\r\nx-slow: ").await?;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        stream.write_all(b"a").await?;
    }
}
