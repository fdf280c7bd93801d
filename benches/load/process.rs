//! The processes that are measured.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::floor;
use super::lives::Status;

/// A process that answers at an address. It ends with this value.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// What stands behind a service.
pub(crate) enum Backing {
    /// SQLite, in the service's folder.
    Embedded,
    /// A Redis of its own.
    Shared(Box<Redis>),
}

/// A Redis that writes to its disk every second.
pub(crate) struct Redis {
    _child: Child,
    pub(crate) url: String,
    _data: tempfile::TempDir,
}

impl Backing {
    pub(crate) async fn shared() -> Self {
        let data = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir"]).arg(data.path());
        command.args(["--port", &port.to_string()]).kill_on_drop(true).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        let url = format!("redis://127.0.0.1:{port}");
        let client = redis::Client::open(url.as_str()).unwrap();
        while client.get_multiplexed_async_connection().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self::Shared(Box::new(Redis { _child: child, url, _data: data }))
    }
}

impl Redis {
    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.url.as_str()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }
}

/// A service, with data of its own.
pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) key: String,
    data: Arc<tempfile::TempDir>,
}

/// A bare handler.
pub(crate) struct Floor(pub(crate) Process);

impl Process {
    async fn start(command: &mut Command) -> Self {
        let mut child = command.kill_on_drop(true).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().expect("it says where it listens");
        let address = line.rsplit(['/', ' ']).next().unwrap().parse().unwrap();
        Self { child, address }
    }

    /// The processor time that it has used.
    pub(crate) fn processor(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id().unwrap())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // User and system time in clock ticks, of which Linux shows a hundred a second.
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    /// Its resident memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Service {
    pub(crate) async fn start(backing: &Backing) -> Self {
        Self::run(backing, Arc::new(tempfile::tempdir().unwrap())).await
    }

    /// Another instance, with the same keys and the same store.
    pub(crate) async fn beside(&self, backing: &Backing) -> Self {
        Self::run(backing, Arc::clone(&self.data)).await
    }

    async fn run(backing: &Backing, data: Arc<tempfile::TempDir>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidegate"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data.path()).stderr(Stdio::null());
        // What is measured is the service, not its limits; and a log line a request belongs to it.
        for limit in ["REQUESTS_PER_SECOND_PER_CLIENT", "REQUESTS_PER_SECOND_PER_ADDRESS"] {
            command.env(format!("SIDEGATE_LIMITS__{limit}"), "1000000000");
        }
        for limit in ["PENDING_PER_CLIENT", "PENDING_PER_SUBJECT"] {
            command.env(format!("SIDEGATE_LIMITS__{limit}"), "1000000000");
        }
        if let Backing::Shared(redis) = backing {
            command.env("SIDEGATE_STORE__URL", &redis.url);
        }
        let process = Process::start(&mut command).await;
        let known: Value =
            serde_json::from_slice(&std::fs::read(data.path().join("dev.json")).unwrap()).unwrap();
        Self { process, key: known["apiKey"].as_str().unwrap().to_owned(), data }
    }

    pub(crate) fn memory(&self) -> u64 {
        self.process.memory()
    }

    /// The bytes of the store: on the disk, or in the memory of Redis.
    pub(crate) async fn store_size(&self, backing: &Backing) -> u64 {
        match backing {
            Backing::Embedded => size_of(self.data.path()),
            Backing::Shared(redis) => {
                let info: String = redis.ask(&["INFO", "memory"]).await;
                info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().parse().unwrap()
            }
        }
    }
}

impl Floor {
    /// One that answers what the status call is answered, after a `GET` of as much on this Redis.
    pub(crate) async fn start(status: &Status, redis: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(floor::BODY, &status.body);
        if let Some(url) = redis {
            let client = redis::Client::open(url).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            let mut set = redis::cmd("SET");
            set.arg(floor::KEY).arg(vec![7_u8; 1500]).query_async::<()>(&mut connection).await.unwrap();
            command.env(floor::REDIS, url);
        }
        Self(Process::start(&mut command).await)
    }
}

fn size_of(folder: &Path) -> u64 {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}
