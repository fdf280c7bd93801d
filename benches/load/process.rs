//! The processes that are measured.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
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

/// A service on the embedded store, with data of its own.
pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) key: String,
    data: tempfile::TempDir,
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
    pub(crate) async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidegate"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data.path()).stderr(Stdio::null());
        // What is measured is the service, not its limits; and a log line a request belongs to it.
        for limit in ["REQUESTS_PER_SECOND_PER_CLIENT", "REQUESTS_PER_SECOND_PER_ADDRESS"] {
            command.env(format!("SIDEGATE_LIMITS__{limit}"), "1000000000");
        }
        for limit in ["PENDING_PER_CLIENT", "PENDING_PER_SUBJECT"] {
            command.env(format!("SIDEGATE_LIMITS__{limit}"), "1000000000");
        }
        let process = Process::start(&mut command).await;
        let known: Value =
            serde_json::from_slice(&std::fs::read(data.path().join("dev.json")).unwrap()).unwrap();
        Self { process, key: known["apiKey"].as_str().unwrap().to_owned(), data }
    }

    pub(crate) fn memory(&self) -> u64 {
        self.process.memory()
    }

    /// The bytes of the store.
    pub(crate) fn disk(&self) -> u64 {
        size_of(self.data.path())
    }
}

impl Floor {
    pub(crate) async fn start(status: &Status) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self(Process::start(command.env(floor::VARIABLE, &status.body)).await)
    }
}

fn size_of(folder: &Path) -> u64 {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}
