//! The way to a Redis or Valkey server: one node, one that Sentinel names, or a Cluster.
//!
//! One task, the keeper (`keeper`), connects, looks at how the server keeps what it is given (`durability`), and
//! connects again whenever the connection breaks. Whoever has a command takes the connection that there is
//! now; without one the answer is an error at once, so that nothing waits for a server that is not there.

mod address;
mod connect;
pub mod durability;
mod keeper;
mod listener;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::{mpsc, watch};

pub use address::{Address, AddressError, Tls, Topology};
pub use durability::{Demands, Durability, Report};
pub use listener::Listener;

/// How the server is reached, and what is asked of it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is.
    pub address: Address,
    /// What the server must do with what it is given.
    pub demands: Demands,
}

/// A server, as far as it can be reached. Cheap to clone; all clones share one connection.
#[derive(Clone)]
pub struct RedisClient {
    state: watch::Receiver<State>,
    broken: mpsc::UnboundedSender<u64>,
}

#[derive(Clone)]
enum State {
    /// The first attempt, or the first after a connection broke, is under way.
    Connecting,
    /// There is a connection. The number grows with each new one.
    Up { number: u64, connection: Connection, report: Report },
    /// The last attempt failed; the keeper goes on trying.
    Down(Error),
}

/// A connection that carries the commands of many callers at once.
#[derive(Clone)]
pub enum Connection {
    /// To one node.
    Node(MultiplexedConnection),
    /// To every node of a Cluster.
    Cluster(ClusterConnection),
}

impl Connection {
    async fn run(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        match self {
            Self::Node(node) => command.query_async(node).await,
            Self::Cluster(cluster) => command.query_async(cluster).await,
        }
    }

    async fn run_all(&mut self, commands: &Pipeline) -> Result<Vec<RedisResult<Value>>, RedisError> {
        match self {
            Self::Node(node) => commands.query_async(node).await,
            Self::Cluster(cluster) => commands.query_async(cluster).await,
        }
    }
}

/// Why a command has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no connection, or it broke. The command may or may not have been carried out.
    #[error("{0}")]
    Unreachable(String),
    /// The server does not do what is asked of it: one sentence that says what to change.
    #[error("{0}")]
    Unfit(String),
    /// The server answered with an error: its code and its text.
    #[error("{code} {text}")]
    Server {
        /// For example `NOSCRIPT`.
        code: String,
        /// The rest of the error.
        text: String,
    },
}

impl Error {
    fn late() -> Self {
        Self::Unreachable("Redis did not answer in time".to_owned())
    }
}

/// How long a caller waits for a connection that is being made.
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// How long a server may take for an answer before the connection is given up.
const RESPONSE_TIME: Duration = Duration::from_secs(3);
const CONNECT_TIME: Duration = Duration::from_secs(3);

impl RedisClient {
    /// Starts to connect; must be called within a tokio runtime, on which the connection lives from then on.
    #[must_use]
    pub fn start(settings: Settings) -> Self {
        let (states, state) = watch::channel(State::Connecting);
        let (broken, reports) = mpsc::unbounded_channel();
        tokio::spawn(keeper::keep(settings, states, reports, broken.downgrade()));
        Self { state, broken }
    }

    /// What the first attempt to connect came to.
    ///
    /// # Errors
    /// [`Error`]; unless it is [`Error::Unfit`] a later attempt may succeed.
    pub async fn first(&self) -> Result<Report, Error> {
        let mut state = self.state.clone();
        let found = state.wait_for(|state| !matches!(state, State::Connecting)).await;
        match found.as_deref() {
            Ok(State::Up { report, .. }) => Ok(report.clone()),
            Ok(State::Down(error)) => Err(error.clone()),
            Ok(State::Connecting) | Err(_) => Err(gone()),
        }
    }

    /// What was found about the server, if there is a connection.
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        match &*self.state.borrow() {
            State::Up { report, .. } => Some(report.clone()),
            State::Connecting | State::Down(_) => None,
        }
    }

    /// Carries out a command that may be carried out twice: if the connection breaks it is sent again, once.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn run(&self, command: &Cmd) -> Result<Value, Error> {
        let (number, result) = self.attempt(0, command).await?;
        match result {
            Err(error) if breaks(&error) && !error.is_timeout() => self.attempt(number, command).await?.1,
            result => result,
        }
        .map_err(|error| told(&error))
    }

    /// Carries out commands in order, none of another caller between them, and gives each one's answer. Not on a
    /// Cluster, unless all are for one node.
    ///
    /// # Errors
    /// [`Error`] of the connection; that of a command stands in its place.
    pub async fn run_all(&self, commands: &Pipeline) -> Result<Vec<Result<Value, Error>>, Error> {
        let (number, mut connection) = self.connection(0).await?;
        let results = connection.run_all(commands).await;
        self.look_at(number, results.as_ref().err());
        let results = results.map_err(|error| told(&error))?.into_iter().map(|result| {
            self.look_at(number, result.as_ref().err());
            result.map_err(|error| told(&error))
        });
        Ok(results.collect())
    }

    /// One attempt, on a connection later than number `after`.
    async fn attempt(&self, after: u64, command: &Cmd) -> Result<(u64, Result<Value, RedisError>), Error> {
        let (number, mut connection) = self.connection(after).await?;
        let result = connection.run(command).await;
        self.look_at(number, result.as_ref().err());
        Ok((number, result))
    }

    /// Has the connection replaced if the error says that it is of no more use.
    fn look_at(&self, number: u64, error: Option<&RedisError>) {
        if error.is_some_and(breaks) {
            let _ = self.broken.send(number);
        }
    }

    async fn connection(&self, after: u64) -> Result<(u64, Connection), Error> {
        if let State::Up { number, connection, .. } = &*self.state.borrow()
            && *number > after
        {
            return Ok((*number, connection.clone()));
        }
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| match state {
            State::Connecting => false,
            State::Up { number, .. } => *number > after,
            State::Down(_) => true,
        });
        match tokio::time::timeout(CONNECT_WAIT, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Up { number, connection, .. } => Ok((*number, connection.clone())),
                State::Down(error) => Err(error.clone()),
                State::Connecting => Err(gone()),
            },
            Ok(Err(_)) | Err(_) => Err(gone()),
        }
    }
}

fn gone() -> Error {
    Error::Unreachable("there is no connection to Redis yet".to_owned())
}

/// Whether a connection that gave this error is to be replaced: it broke, it does not answer, or it leads to a server
/// that no longer is the one to write to.
fn breaks(error: &RedisError) -> bool {
    let moved = matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown | ServerErrorKind::BusyLoading
        )
    );
    moved || error.is_io_error() || error.is_unrecoverable_error()
}

fn told(error: &RedisError) -> Error {
    match error.code() {
        Some(code) => {
            Error::Server { code: code.to_owned(), text: error.detail().unwrap_or_default().to_owned() }
        }
        None if error.is_timeout() => Error::late(),
        None => Error::Unreachable(format!("Redis cannot be reached: {error}")),
    }
}
