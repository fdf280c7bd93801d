//! A server of the tests in a process of its own, run by Node: its first line is its URL; after that lines of JSON are asked
//! and answered.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The server. Ends when dropped.
pub(crate) struct Node {
    url: String,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Node {
    /// Starts a script in a folder of `tests`.
    pub(crate) async fn start(folder: &str, script: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let mut command = Command::new("node");
        command.current_dir(folder).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).kill_on_drop(true).spawn().expect("node is needed");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap();
        let url = url.expect("its packages are needed; `tests/run` installs what the tests need");
        let input = process.stdin.take().unwrap();
        Self { url, input, lines, _process: process }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks: the line that comes back.
    pub(crate) async fn ask(&mut self, command: &Value) -> String {
        self.input.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        self.lines.next_line().await.unwrap().expect("the server answers")
    }
}
