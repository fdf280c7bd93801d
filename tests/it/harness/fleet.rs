//! A service as it is deployed: one instance with the embedded store, or two that share a Redis.

use super::redis::{Program, Redis};
use super::server::{Server, Setup};

/// What stands behind a service.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Backing {
    /// One instance, SQLite.
    Embedded,
    /// Two instances, one Redis.
    Shared,
}

/// The instances of one service.
pub(crate) struct Fleet {
    servers: Vec<Server>,
    redis: Option<Redis>,
}

impl Fleet {
    pub(crate) async fn start(backing: Backing, setup: Setup) -> Self {
        match backing {
            Backing::Embedded => Self { servers: vec![Server::start(setup).await], redis: None },
            Backing::Shared => Self::on(Redis::start(Program::Redis, &[]).await, setup).await,
        }
    }

    /// Two instances on this server.
    pub(crate) async fn on(redis: Redis, setup: Setup) -> Self {
        let url = redis.url();
        Self { redis: Some(redis), ..Self::at_url(&url, setup).await }
    }

    /// Two instances whose store is at this URL.
    pub(crate) async fn at_url(url: &str, setup: Setup) -> Self {
        let first = Server::start(setup.with("SIDEGATE_STORE__URL", url)).await;
        let second = first.beside().await;
        Self { servers: vec![first, second], redis: None }
    }

    /// The instance of this number, counted round and round.
    pub(crate) fn at(&self, number: usize) -> &Server {
        &self.servers[number % self.servers.len()]
    }

    /// The same link, served by another instance.
    pub(crate) fn link(&self, url: &str, number: usize) -> String {
        let from = self.servers.iter().map(|server| server.url("")).find(|base| url.starts_with(base));
        let path = &url[from.expect("a link of one of the instances").len()..];
        self.at(number).url(path)
    }

    pub(crate) fn redis(&mut self) -> &mut Redis {
        self.redis.as_mut().expect("a shared store")
    }

    /// Stops an instance in good order and starts it again.
    pub(crate) async fn restart(&mut self, number: usize) {
        self.servers[number].stop().await;
        self.servers[number] = self.servers[number].start_again().await;
    }

    /// Ends an instance without warning and starts it again.
    pub(crate) async fn crash(&mut self, number: usize) {
        self.servers[number] = self.servers[number].crash().await;
    }
}
