//! A store that was opened for one test, by one or several instances of the service.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use sidegate::redis_client::{Address, Demands, Settings};
use sidegate::store::Store;
use sidegate::store::memory::Memory;
use sidegate::store::redis::{Kept, Redis};
use sidegate::store::sqlite::Sqlite;
use sidegate::system::SystemRandom;

use crate::harness::redis::{self, Cluster, Program, Watched};

/// An empty store. It is gone when this is dropped.
pub(super) struct Opened {
    /// One handle for each instance of the service that shares it.
    instances: Vec<Arc<dyn Store>>,
    /// Whatever must live as long as the store.
    _behind: Box<dyn Any + Send + Sync>,
}

impl Opened {
    pub(super) fn store(&self) -> &dyn Store {
        &*self.instances[0]
    }

    /// The handle that the `number`th of many tasks uses.
    pub(super) fn of_task(&self, number: usize) -> Arc<dyn Store> {
        self.instances[number % self.instances.len()].clone()
    }
}

pub(super) async fn memory() -> Opened {
    Opened { instances: vec![Arc::new(Memory::new())], _behind: Box::new(()) }
}

pub(super) async fn sqlite() -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("sidegate.db")).unwrap();
    Opened { instances: vec![Arc::new(store)], _behind: Box::new(folder) }
}

pub(super) async fn redis() -> Opened {
    let server = redis::Redis::start(Program::Redis, &[]).await;
    shared(&server.url(), Demands::default(), server).await
}

/// With commits that wait for the disk.
pub(super) async fn valkey() -> Opened {
    let server = redis::Redis::start(Program::Valkey, &["--appendonly", "yes"]).await;
    let demands = Demands { durability: sidegate::redis_client::Durability::Fsync, ..Demands::default() };
    shared(&server.url(), demands, server).await
}

pub(super) async fn cluster() -> Opened {
    let cluster = Cluster::start(&[]).await;
    shared(&cluster.url(), Demands::default(), cluster).await
}

pub(super) async fn sentinel() -> Opened {
    let watched = Watched::start(&[]).await;
    shared(&watched.url(), Demands::default(), watched).await
}

/// How long the stores of the tests keep what nobody removes.
pub(super) const KEPT: Kept = Kept { records: Duration::from_hours(1), trail: Duration::from_hours(3) };

/// A store on this server.
pub(super) async fn instance(url: &str, demands: Demands) -> Redis {
    let settings = Settings { address: Address::parse(url).unwrap(), demands };
    let store = Redis::start(&settings, "gate", KEPT, Arc::new(SystemRandom));
    store.client().first().await.unwrap();
    store
}

async fn shared(url: &str, demands: Demands, behind: impl Any + Send + Sync) -> Opened {
    let instances: [Arc<dyn Store>; 2] =
        [Arc::new(instance(url, demands).await), Arc::new(instance(url, demands).await)];
    Opened { instances: instances.into(), _behind: Box::new(behind) }
}
