//! A store that was opened for one test, by one or several instances of the service.

use std::sync::Arc;

use sidegate::store::Store;
use sidegate::store::memory::Memory;
use sidegate::store::sqlite::Sqlite;
use tempfile::TempDir;

/// An empty store. It is gone when this is dropped.
pub(super) struct Opened {
    /// One handle for each instance of the service that shares it.
    instances: Vec<Arc<dyn Store>>,
    _folder: Option<TempDir>,
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
    Opened { instances: vec![Arc::new(Memory::new())], _folder: None }
}

pub(super) async fn sqlite() -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("sidegate.db")).unwrap();
    Opened { instances: vec![Arc::new(store)], _folder: Some(folder) }
}
