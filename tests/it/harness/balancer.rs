//! A load balancer before several instances of one service: what a browser knows is one host, and each request may come to
//! another instance. Every request has a connection of its own, so that none is tied to where the one before it went.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Server;

/// The balancer. Ends when dropped.
pub(crate) struct Balancer {
    url: String,
    plan: Arc<Mutex<Plan>>,
    _serving: JoinSet<()>,
}

/// Where requests go, and where they went.
#[derive(Default)]
struct Plan {
    /// The ports that take turns.
    turns: Vec<u16>,
    /// Paths that begin so go to this port, out of turn.
    rules: Vec<(&'static str, u16)>,
    /// Where each request went, and what it was: `GET /path`.
    served: Vec<(u16, String)>,
}

impl Plan {
    fn port(&mut self, line: &str) -> Option<u16> {
        let mut words = line.split(' ');
        let (method, path) = (words.next()?, words.next()?.split('?').next()?);
        let rule = self.rules.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, port)| *port);
        let turn = self.served.len().checked_rem(self.turns.len()).map(|turn| self.turns[turn]);
        let port = rule.or(turn)?;
        self.served.push((port, format!("{method} {path}")));
        Some(port)
    }
}

impl Balancer {
    /// Takes a port; passes requests on once it knows [where to](Self::between).
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let plan = Arc::<Mutex<Plan>>::default();
        let mut serving = JoinSet::new();
        let known = Arc::clone(&plan);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(pass(stream, Arc::clone(&known)));
            }
        });
        Self { url, plan, _serving: serving }
    }

    /// Its URL, which is the service's public one.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// From now on these take turns, request by request.
    pub(crate) fn between(&self, servers: &[&Server]) {
        self.plan.lock().unwrap().turns = servers.iter().map(|server| server.port()).collect();
    }

    /// From now on what is under this path goes to this one alone.
    pub(crate) fn send(&self, path: &'static str, server: &Server) {
        self.plan.lock().unwrap().rules.push((path, server.port()));
    }

    /// What this one was asked, in order: `GET /path`, without queries.
    pub(crate) fn served(&self, server: &Server) -> Vec<String> {
        let plan = self.plan.lock().unwrap();
        plan.served.iter().filter(|(port, _)| *port == server.port()).map(|(_, what)| what.clone()).collect()
    }
}

/// Passes one request on, with its answer.
async fn pass(mut from: TcpStream, plan: Arc<Mutex<Plan>>) {
    let mut read = Vec::new();
    let head = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        match from.read_buf(&mut read).await {
            Ok(1..) => {}
            // A browser opens connections before it has a use for them.
            Ok(0) | Err(_) => return,
        }
    };
    let (head, rest) = read.split_at(head);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.trim_end().split("\r\n");
    let first = lines.next().unwrap_or_default();
    let port = plan.lock().unwrap().port(first);
    let to = match port {
        Some(port) => TcpStream::connect(("127.0.0.1", port)).await.ok(),
        None => None,
    };
    let Some(mut to) = to else {
        let answer = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = from.write_all(answer.as_bytes()).await;
        return;
    };
    let tied = |line: &&str| line.to_ascii_lowercase().starts_with("connection:");
    let mut sent: Vec<_> = [first].into_iter().chain(lines.filter(|line| !tied(line))).collect();
    // The instance ends the connection after its answer, and with it the browser's.
    sent.extend(["connection: close", "", ""]);
    let sent = sent.join("\r\n");
    if to.write_all(&[sent.as_bytes(), rest].concat()).await.is_ok() {
        let _ = copy_bidirectional(&mut from, &mut to).await;
    }
}
