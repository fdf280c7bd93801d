//! The command line: one file a command.

mod audit;
mod check;
mod credentials;
mod demo;
mod keys;
mod links;
mod local;
mod serve;

use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::Config;
use local::Local;

/// The side gate of an MCP server: where a person hands over what must never pass through the MCP client.
#[derive(Parser)]
#[command(name = "sidegate", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service
    Serve(serve::Serve),
    /// Play a tool handler that needs a secret, against a server of its own
    Demo(demo::Demo),
    /// Check the configuration and what it names, without serving
    Check(Place),
    /// Make or rotate the key ring
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Make a key for an API client
    #[command(subcommand)]
    Client(credentials::Client),
    /// Make a key for an operator
    #[command(subcommand)]
    Operator(credentials::Operator),
    /// See and revoke links, as an operator of a running service
    #[command(subcommand)]
    Links(Box<links::Links>),
    /// Read the audit trail
    #[command(subcommand)]
    Audit(audit::Audit),
}

/// Which service is meant.
#[derive(Args)]
struct Place {
    /// The configuration file; without one, a local service for this computer alone
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder for what the configuration does not place elsewhere
    #[arg(long, value_name = "DIR", default_value = "./sidegate-data")]
    data: PathBuf,
}

impl Place {
    /// The configuration, and the keys of a local service, which are made at its first start.
    fn load(&self) -> Result<(Config, Option<Local>), Failure> {
        if let Some(file) = &self.config {
            return Ok((Config::load(file, &self.data)?, None));
        }
        let local = Local::load_or_make(&self.data)?;
        Ok((Config::local(&self.data, local.client(), local.operator())?, Some(local)))
    }
}

/// Why a command ends: a sentence on standard error and an exit code.
struct Failure {
    sentence: String,
    code: u8,
}

impl Failure {
    fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), code: 1 }
    }

    fn with_code(code: u8, sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), code }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

type Done = Result<(), Failure>;

/// Runs the command that the process was started with.
#[must_use]
pub fn run() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(serve) => serve.run(),
        Command::Demo(demo) => demo.run(),
        Command::Check(place) => check::run(&place),
        Command::Keys(keys) => keys.run(),
        Command::Client(client) => client.run(),
        Command::Operator(operator) => operator.run(),
        Command::Links(links) => links.run(),
        Command::Audit(audit) => audit.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { sentence, code }) => {
            let _ = writeln!(io::stderr(), "sidegate: {sentence}");
            ExitCode::from(code)
        }
    }
}

/// Writes a line to standard output.
fn say(line: impl AsRef<str>) -> Result<(), io::Error> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", line.as_ref())?;
    out.flush()
}

/// Runs a future to its end on an actix system.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    actix_web::rt::System::new().block_on(future)
}

/// The text at a place (RFC 6901) of a JSON document.
fn text<'a>(document: &'a serde_json::Value, place: &str) -> Option<&'a str> {
    document.pointer(place)?.as_str()
}
