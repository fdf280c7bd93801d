//! The example servers in their languages, and MCP clients of the official SDKs that call them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// In which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    TypeScript,
    Python,
}

impl Language {
    /// How its example is started: program, arguments, folder.
    fn command(self) -> (String, Vec<String>, PathBuf) {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        match self {
            Self::TypeScript => {
                let arguments = ["--import", "tsx", "server.ts"].map(str::to_owned);
                ("node".to_owned(), arguments.to_vec(), examples.join("typescript"))
            }
            Self::Python => ("python3".to_owned(), vec!["server.py".to_owned()], examples.join("python")),
        }
    }
}

/// Where `tests/run` puts Python's packages.
fn packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.tools/mcp")
}

/// What an example server is told of its Sidegate, by name and value.
pub(crate) type Told = Vec<(&'static str, String)>;

/// An example server over Streamable HTTP. Ends when dropped.
pub(crate) struct Example {
    url: String,
    log: PathBuf,
    _child: Child,
    _folder: TempDir,
}

impl Example {
    pub(crate) async fn start(language: Language, told: &Told) -> Self {
        let (program, arguments, folder) = language.command();
        let kept = tempfile::tempdir().unwrap();
        let log = kept.path().join("log");
        let mut command = Command::new(program);
        command.args(arguments).args(["--http", "0"]).current_dir(folder).envs(told.iter().cloned());
        command.env("PYTHONPATH", packages()).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        command.stderr(std::fs::File::create(&log).unwrap());
        let child = command.spawn().expect("`tests/run` installs what the examples need");
        let url = super::eventually("the example listens", async || {
            let log = std::fs::read_to_string(&log).unwrap();
            let ours = log.lines().find_map(|line| line.strip_prefix("listening on ")).map(str::to_owned);
            let (_, theirs) = log.split_once("Uvicorn running on ").unzip();
            ours.or_else(|| Some(format!("{}/mcp", theirs?.split_once(' ')?.0)))
        });
        Self { url: url.await, log, _child: child, _folder: kept }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

/// How a client reaches its server.
#[derive(Clone, Copy)]
pub(crate) enum Reach<'a> {
    /// It starts it, and speaks over its standard streams.
    Stdio(Language, &'a Told),
    /// The first call, and all later ones.
    Http([&'a Example; 2]),
}

/// An MCP client that makes one call, and whose user is the test. Ends when dropped.
pub(crate) struct Desk {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    transcript: tempfile::NamedTempFile,
}

impl Desk {
    /// Calls a tool. `tokens`: whose the first call is, and whose all later ones.
    pub(crate) fn call(
        reach: Reach<'_>,
        era: &str,
        (tool, arguments): (&str, Value),
        tokens: [&str; 2],
        more: &Value,
    ) -> Self {
        let transcript = tempfile::NamedTempFile::new().unwrap();
        let mut input = json!({
            "era": era, "tool": tool, "arguments": arguments, "tokens": tokens, "transcript": transcript.path(),
        });
        match reach {
            Reach::Http(servers) => input["urls"] = servers.map(Example::url).to_vec().into(),
            Reach::Stdio(language, told) => {
                let (program, arguments, folder) = language.command();
                input["command"] = program.into();
                input["args"] = arguments.into();
                input["cwd"] = folder.to_str().unwrap().into();
                input["env"] = told.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            }
        }
        for (name, value) in more.as_object().unwrap() {
            input[name] = value.clone();
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp");
        let mut command = Command::new("node");
        command.env("PYTHONPATH", packages()).env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(folder).args(["client.mjs", &input.to_string()]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { _child: child, stdin, lines: BufReader::new(stdout).lines(), transcript }
    }

    /// What happens next.
    pub(crate) async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(std::time::Duration::from_secs(100), self.lines.next_line()).await;
        let line = line.expect("the client says nothing").unwrap().expect("the client has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// The link that the user is shown.
    pub(crate) async fn link(&mut self) -> String {
        let said = self.next().await;
        said["asked"]["url"].as_str().unwrap_or_else(|| panic!("no link: {said}")).to_owned()
    }

    /// The user answers.
    pub(crate) async fn answers(&mut self, action: &str) {
        let line = format!("{}\n", json!({"action": action}));
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    /// Everything that went over the wire.
    pub(crate) fn transcript(&self) -> String {
        std::fs::read_to_string(self.transcript.path()).unwrap()
    }
}
