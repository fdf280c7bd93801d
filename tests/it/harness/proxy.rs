//! A TCP proxy before a server, whose connections can be cut, muted and held up.

use std::sync::atomic::{AtomicBool, Ordering};
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
#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Manner {
    /// When a client has sent these bytes its connection gets no more answers.
    muted_by: Option<&'static [u8]>,
    /// When a client has sent these bytes its connection is held up with them.
    held_by: Option<&'static [u8]>,
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
                        let mute = AtomicBool::new(false);
                        tokio::join!(there(from, to, now, &mute), back(results, answers, &mute));
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

    /// From now on a client that sends these bytes gets no answer any more on that connection.
    pub(crate) fn mute(&self, bytes: &'static [u8]) {
        self.manner.send_replace(Manner { muted_by: Some(bytes), held_by: None });
    }

    /// From now on a connection on which a client sends these bytes is held up with them.
    pub(crate) fn hold(&self, bytes: &'static [u8]) {
        self.manner.send_replace(Manner { muted_by: None, held_by: Some(bytes) });
    }

    /// Passes everything on again, and what was held up.
    pub(crate) fn pass(&self) {
        self.manner.send_replace(Manner::default());
    }
}

async fn there(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut manner: watch::Receiver<Manner>,
    mute: &AtomicBool,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let sent = &buffer[..length];
        let holds = |bytes: Option<&[u8]>| {
            bytes.is_some_and(|bytes| sent.windows(bytes.len()).any(|part| part == bytes))
        };
        if holds(manner.borrow().muted_by) {
            mute.store(true, Ordering::SeqCst);
        }
        let _ = manner.wait_for(|manner| !holds(manner.held_by)).await;
        if to.write_all(sent).await.is_err() {
            return;
        }
    }
}

async fn back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mute: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if !mute.load(Ordering::SeqCst) && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
