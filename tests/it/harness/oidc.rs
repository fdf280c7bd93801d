//! A real OpenID Connect issuer: `oidc-provider`, in a process of its own.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The issuer. Ends when dropped.
pub(crate) struct OidcProvider {
    url: String,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

pub(crate) const SECRET: &str = "a secret of the tests alone, long enough";

impl OidcProvider {
    /// Takes a port; serves once it [knows](Self::knows) whom.
    pub(crate) async fn start() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/issuer");
        let mut command = Command::new("node");
        command.current_dir(folder).arg("issuer.mjs").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).kill_on_drop(true).spawn().expect("node is needed");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap();
        let url = url.expect("`oidc-provider` is needed; `tests/run` installs what the tests need");
        let input = process.stdin.take().unwrap();
        Self { url, input, lines, _process: process }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Serves the client `sidegate`, which may be returned to here.
    pub(crate) async fn knows(&mut self, redirect_uri: &str) {
        let client = json!({"redirectUris": [redirect_uri], "secret": SECRET});
        self.input.write_all(format!("{client}\n").as_bytes()).await.unwrap();
        assert_eq!(self.lines.next_line().await.unwrap().as_deref(), Some("ready"));
    }
}
