//! Records that were written lately, in memory: most reads are of these, and need neither a thread nor a file.
//!
//! Only the writer puts records here, after their commit and before it is acknowledged. So whoever reads after an
//! acknowledgement reads that version or a later one, as from the database.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::domain::ElicitationId;
use crate::store::Stored;

/// How many bytes of records are kept.
const CAPACITY: u64 = 32 << 20;
/// What a record of usual size has, in bytes.
const USUAL: u64 = 2048;

/// Records that were written lately.
#[derive(Clone)]
pub(super) struct Recent(Arc<Cache<ElicitationId, Arc<Stored>, Size>>);

#[derive(Clone)]
struct Size;

impl Weighter<ElicitationId, Arc<Stored>> for Size {
    fn weight(&self, _: &ElicitationId, stored: &Arc<Stored>) -> u64 {
        size_of::<Stored>() as u64 + stored.record.len() as u64
    }
}

/// What a transaction did to a record.
pub(super) enum Written {
    Record(Stored),
    Erased(ElicitationId),
}

impl Recent {
    pub(super) fn new() -> Self {
        let usually = usize::try_from(CAPACITY / USUAL).unwrap_or(usize::MAX);
        Self(Arc::new(Cache::with_weighter(usually, CAPACITY, Size)))
    }

    pub(super) fn get(&self, id: ElicitationId) -> Option<Stored> {
        self.0.get(&id).map(|stored| Stored::clone(&stored))
    }

    /// Takes note of what was committed.
    pub(super) fn note(&self, written: Vec<Written>) {
        for written in written {
            match written {
                Written::Record(stored) => self.0.insert(stored.id, Arc::new(stored)),
                Written::Erased(id) => drop(self.0.remove(&id)),
            }
        }
    }

    /// Knows nothing any more: where it is not known what was committed, the database is asked.
    pub(super) fn forget(&self) {
        self.0.clear();
    }
}
