//! A service in a process of its own, on a free port and with data of its own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use reqwest::Url;
pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, Resource, Rlimit, kill_process, prlimit};
use serde_json::Value;
use sidegate::api_key::{self, Holder, KeyDigest};
use sidegate::system::SystemRandom;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::balancer::Balancer;
use super::issuer::Issuer;
use super::{Handler, Visitor};

/// The program under test.
pub(crate) fn sidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidegate"));
    command.kill_on_drop(true).stdin(Stdio::null());
    command
}

/// How a service is to be started.
pub(crate) struct Setup {
    config: Option<Config>,
    environment: Vec<(&'static str, String)>,
    prefix: &'static str,
    tls: bool,
}

/// A configuration with two clients, an operator, and people behind an identity-aware proxy.
struct Config {
    sections: String,
    keys: [String; 3],
}

impl Setup {
    /// A service without a configuration file: loopback, one client, one operator.
    pub(crate) const fn local() -> Self {
        Self { config: None, environment: Vec::new(), prefix: "", tls: false }
    }

    /// A service for the clients `weather` and `travel`, whose people `issuer` vouches for, and the operator
    /// `ops`.
    pub(crate) fn proxy(issuer: &Issuer) -> Self {
        let mut section = format!(
            "[identity.staff]\nsource = \"proxy\"\nheader = \"{}\"\nissuer = \"{}\"\naudience = \"{}\"\n{}\n",
            Issuer::HEADER,
            issuer.name(),
            Issuer::AUDIENCE,
            issuer.keys_setting(),
        );
        if issuer.is_served() {
            section.push_str(REACHES_LOOPBACK);
        }
        Self::configured(&section)
    }

    /// The same clients and operator; people sign in at the OpenID Connect issuer of this URL. `more` settings.
    pub(crate) fn oidc(issuer: &str, more: &str) -> Self {
        let section = format!(
            "[identity.staff]\nsource = \"oidc\"\nissuer = \"{issuer}\"\nclient_id = \"sidegate\"\n{more}\n{REACHES_LOOPBACK}"
        );
        Self::configured(&section)
    }

    /// The same clients and operator; `section` is the identity source `staff`, and whatever else.
    pub(crate) fn configured(section: &str) -> Self {
        let generate = |holder| {
            let key = api_key::generate(holder, &SystemRandom);
            secrecy::ExposeSecret::expose_secret(&key).to_owned()
        };
        let keys = [Holder::Client, Holder::Client, Holder::Operator].map(generate);
        let digests = keys.each_ref().map(|key| KeyDigest::of_text(key).to_string());
        let mut sections = String::new();
        for (id, name, digest) in
            [("weather", "Weather tools", &digests[0]), ("travel", "Travel tools", &digests[1])]
        {
            let _ = write!(
                sections,
                "[[clients]]\nid = \"{id}\"\nidentity = \"staff\"\nname = \"{name}\"\nhost = \"{id}.example\"\n\
                 kinds = [\"secret\"]\napi_key_digests = [\"{digest}\"]\n"
            );
        }
        let operator = &digests[2];
        let _ =
            write!(sections, "[[operators]]\nid = \"ops\"\napi_key_digests = [\"{operator}\"]\n{section}");
        let config = Some(Config { sections, keys });
        Self { config, environment: Vec::new(), prefix: "", tls: false }
    }

    /// With one setting more: `SIDEGATE_…`.
    pub(crate) fn with(mut self, variable: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((variable, value.into()));
        self
    }

    /// With these lines more at the end of the configuration.
    pub(crate) fn and(mut self, sections: &str) -> Self {
        let config = self.config.as_mut().expect("a local service has no configuration file");
        config.sections.push_str(sections);
        self
    }

    /// With other lines in the place of some of the configuration.
    pub(crate) fn replacing(mut self, lines: &str, others: &str) -> Self {
        let config = self.config.as_mut().expect("a local service has no configuration file");
        assert!(config.sections.contains(lines), "{}", config.sections);
        config.sections = config.sections.replacen(lines, others, 1);
        self
    }

    /// The first line of the configuration that begins so.
    pub(crate) fn line(&self, begins: &str) -> String {
        let config = self.config.as_ref().expect("a local service has no configuration file");
        config.sections.lines().find(|line| line.starts_with(begins)).unwrap().to_owned()
    }

    /// Over TLS, with a certificate of its own.
    pub(crate) const fn over_tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Behind this balancer, under whose URL it is known.
    pub(crate) fn behind(self, balancer: &Balancer) -> Self {
        self.with("SIDEGATE_SERVER__PUBLIC_URL", balancer.url())
    }

    /// Under this path, such as `/gate`.
    pub(crate) const fn under(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }
}

/// Lets the service ask servers of the test.
const REACHES_LOOPBACK: &str = "[upstream]\nallow_addresses = [\"127.0.0.0/8\"]\n";

/// A running service. It ends with the test.
pub(crate) struct Server {
    setup: Arc<Setup>,
    data: Arc<TempDir>,
    child: Child,
    port: u16,
    url: Url,
}

impl Server {
    /// Starts a service and waits until it accepts connections.
    pub(crate) async fn start(setup: Setup) -> Self {
        let data = Arc::new(tempfile::tempdir().unwrap());
        Self::run(Arc::new(setup), data, free_port()).await
    }

    /// A service without a configuration file.
    pub(crate) async fn local() -> Self {
        Self::start(Setup::local()).await
    }

    async fn run(setup: Arc<Setup>, data: Arc<TempDir>, port: u16) -> Self {
        // With this signal ignored, a file that may not grow is an error and not the end, as on a full disk.
        let mut command = Command::new("sh");
        command.kill_on_drop(true).stdin(Stdio::null()).args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]);
        command.arg(env!("CARGO_BIN_EXE_sidegate")).arg("serve").arg("--data").arg(data.path());
        command.arg("--listen").arg(format!("127.0.0.1:{port}"));
        if let Some(config) = &setup.config {
            let file = data.path().join("sidegate.toml");
            let scheme = if setup.tls { "https" } else { "http" };
            let url = format!("{scheme}://127.0.0.1:{port}{}", setup.prefix);
            let tls = if setup.tls { certificate(data.path()) } else { String::new() };
            let server = format!("[server]\npublic_url = \"{url}\"\n{tls}");
            std::fs::write(&file, server + &config.sections).unwrap();
            command.arg("--config").arg(file);
        } else if !setup.prefix.is_empty() {
            let url = format!("http://127.0.0.1:{port}{}", setup.prefix);
            command.env("SIDEGATE_SERVER__PUBLIC_URL", url);
        }
        for (variable, value) in &setup.environment {
            command.env(variable, value);
        }
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(data.path().join("log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next_line().await.unwrap();
        let Some(url) = first.as_deref().and_then(|line| line.strip_prefix("listening on ")) else {
            panic!(
                "the service did not start: {}",
                std::fs::read_to_string(data.path().join("log")).unwrap()
            );
        };
        let url = Url::parse(&format!("{url}/")).unwrap();
        Self { setup, data, child, port, url }
    }

    /// Where the service is: with the path prefix, if it has one, and a slash at the end.
    pub(crate) const fn base(&self) -> &Url {
        &self.url
    }

    /// A URL of the service by its path below the prefix, without a slash at its start.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Where it listens, whatever its public URL is.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The folder with the service's data.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.data().join("sidegate.db")
    }

    /// What the service has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data().join("log")).unwrap()
    }

    /// The audit trail, as the command line exports it.
    pub(crate) async fn audit(&self) -> Vec<Value> {
        let mut export = sidegate();
        export.args(["audit", "export", "--data"]).arg(self.data());
        if self.setup.config.is_some() {
            export.arg("--config").arg(self.data().join("sidegate.toml"));
        }
        let output = export.envs(self.setup.environment.iter().cloned()).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The reasons of the refusals on the audit trail.
    pub(crate) async fn refusals(&self) -> Vec<String> {
        let refused = self.audit().await.into_iter().filter(|event| event["what"] == "refused");
        refused.map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// The first client: `local`, or `weather`.
    pub(crate) fn handler(&self) -> Handler {
        Handler::new(self.url.clone(), &self.key("apiKey", 0))
    }

    /// The client `travel`.
    pub(crate) fn other_handler(&self) -> Handler {
        Handler::new(self.url.clone(), &self.key("", 1))
    }

    /// The operator.
    pub(crate) fn operator(&self) -> Handler {
        Handler::new(self.url.clone(), &self.key("operatorKey", 2))
    }

    /// The first client's key.
    pub(crate) fn api_key(&self) -> String {
        self.key("apiKey", 0)
    }

    /// The operator's key.
    pub(crate) fn operator_key(&self) -> String {
        self.key("operatorKey", 2)
    }

    /// A person without a proxy's token.
    pub(crate) fn visitor(&self) -> Visitor {
        Visitor::new(&self.url)
    }

    fn key(&self, name: &str, index: usize) -> String {
        if let Some(config) = &self.setup.config {
            return config.keys[index].clone();
        }
        let file = std::fs::read(self.data().join("dev.json")).unwrap();
        let known: Value = serde_json::from_slice(&file).unwrap();
        known[name].as_str().unwrap().to_owned()
    }

    /// The process's resident memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Lets no file grow beyond this many bytes, as a full disk would; `None` gives the space back.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    }

    /// Waits for the process to end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        self.child.wait().await.unwrap()
    }

    /// Stops the service in good order.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// Starts a new process on the port and the data of one that has ended.
    pub(crate) async fn start_again(&self) -> Self {
        Self::run(Arc::clone(&self.setup), Arc::clone(&self.data), self.port).await
    }

    /// Starts another instance, with the same keys; their store must be one that can be shared.
    pub(crate) async fn beside(&self) -> Self {
        Self::run(Arc::clone(&self.setup), Arc::clone(&self.data), free_port()).await
    }

    /// Ends the process without warning and starts a new one on the same data.
    pub(crate) async fn crash(&mut self) -> Self {
        self.signal(Signal::KILL);
        self.ended().await;
        self.start_again().await
    }
}

/// Sends a process of ours a signal.
pub(super) fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Makes a certificate for loopback; the setting that names it.
pub(super) fn certificate(folder: &Path) -> String {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    if !certificate.exists() {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    }
    format!("tls = {{ certificate = \"{}\", key = \"{}\" }}\n", certificate.display(), key.display())
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
