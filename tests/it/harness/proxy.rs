//! A TCP proxy before a server, whose connections can be cut.

use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Passes on whatever it gets. Ends when dropped.
pub(crate) struct Proxy {
    port: u16,
    connections: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// Before the server on this port of loopback.
    pub(crate) async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let mut accepting = JoinSet::new();
        let passed_on = Arc::clone(&connections);
        accepting.spawn(async move {
            loop {
                let (mut from, _) = listener.accept().await.unwrap();
                passed_on.lock().unwrap().spawn(async move {
                    if let Ok(mut to) = TcpStream::connect(("127.0.0.1", server)).await {
                        let _ = copy_bidirectional(&mut from, &mut to).await;
                    }
                });
            }
        });
        Self { port, connections, _accepting: accepting }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection that there is, wherever it stands.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}
