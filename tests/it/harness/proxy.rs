//! A TCP proxy before a server, whose connections can be cut, muted and held up.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes on whatever it gets. Ends when dropped.
pub(crate) struct Proxy {
    port: u16,
    connections: Arc<Mutex<JoinSet<()>>>,
    manner: watch::Sender<Manner>,
    _accepting: JoinSet<()>,
}

/// What it does with what it gets.
#[derive(Default, Clone, PartialEq, Eq)]
struct Manner {
    /// Answers of the server are thrown away.
    mute: bool,
    /// What a client sends is held up from the moment at which it holds these bytes.
    held: Option<&'static [u8]>,
}

impl Proxy {
    /// Before the server on this port of loopback.
    pub(crate) async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let (manner, now) = watch::channel(Manner::default());
        let mut accepting = JoinSet::new();
        let passed_on = Arc::clone(&connections);
        accepting.spawn(async move {
            loop {
                let (from, _) = listener.accept().await.unwrap();
                let now = now.clone();
                passed_on.lock().unwrap().spawn(async move {
                    if let Ok(to) = TcpStream::connect(("127.0.0.1", server)).await {
                        let ((from, answers), (results, to)) = (from.into_split(), to.into_split());
                        tokio::join!(there(from, to, now.clone()), back(results, answers, now));
                    }
                });
            }
        });
        Self { port, connections, manner, _accepting: accepting }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection that there is, wherever it stands.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }

    /// From now on answers are lost.
    pub(crate) fn mute(&self) {
        self.manner.send_replace(Manner { mute: true, held: None });
    }

    /// From now on a connection on which a client sends these bytes is held up with them.
    pub(crate) fn hold(&self, bytes: &'static [u8]) {
        self.manner.send_replace(Manner { mute: false, held: Some(bytes) });
    }

    /// Passes everything on again, and what was held up.
    pub(crate) fn pass(&self) {
        self.manner.send_replace(Manner::default());
    }
}

async fn there(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut manner: watch::Receiver<Manner>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let sent = &buffer[..length];
        let holds = |manner: &Manner| {
            manner.held.is_some_and(|bytes| sent.windows(bytes.len()).any(|part| part == bytes))
        };
        let _ = manner.wait_for(|manner| !holds(manner)).await;
        if to.write_all(sent).await.is_err() {
            return;
        }
    }
}

async fn back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, manner: watch::Receiver<Manner>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let mute = manner.borrow().mute;
        if !mute && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
