//! The audit trail: sealed events in an append-only, hash-chained list.

use super::{Error, Gate};
use crate::domain::Event;
use crate::store::{Store, entry_hash};
use crate::vault::{OpenError, Place, Ring};

/// How many entries are read at once.
const PAGE: usize = 1000;

impl Gate {
    pub(super) fn seal_event(&self, event: &Event) -> Result<Vec<u8>, Error> {
        let plain = serde_json::to_vec(event).map_err(|_| OpenError::Broken)?;
        Ok(self.ring.seal(Place::Event, &plain)?)
    }
}

/// What is wrong with an audit trail.
#[derive(Debug, thiserror::Error)]
pub enum TrailError {
    /// The hashes do not follow one another.
    #[error("entry {0} does not follow the one before it: the trail was changed there")]
    Broken(u64),
    /// An entry was not written by this service.
    #[error("entry {0} does not open: it was not written by this service")]
    Sealed(u64),
    /// The trail cannot be read.
    #[error(transparent)]
    Unavailable(#[from] crate::store::Unavailable),
}

/// Reads the whole trail in order, from the oldest entry that is kept, checks the chain, and hands each event with its number to `each`: `None` if
/// it was sealed under a key that has left the ring since. Returns how many there are.
///
/// # Errors
/// [`TrailError`] at the first entry that is wrong.
pub async fn read_trail(
    store: &dyn Store,
    ring: &Ring,
    mut each: impl FnMut(u64, Option<Event>),
) -> Result<u64, TrailError> {
    let (first, mut hash) = store.trail_start().await?;
    let mut number = first;
    loop {
        let page = store.entries(number, PAGE).await?;
        if page.is_empty() {
            return Ok(number - first);
        }
        for entry in page {
            if entry.number != number + 1 || entry.hash != entry_hash(&hash, entry.number, &entry.event) {
                return Err(TrailError::Broken(number + 1));
            }
            (number, hash) = (entry.number, entry.hash);
            let event = match ring.open(Place::Event, &entry.event) {
                Ok(plain) => Some(serde_json::from_slice(&plain).map_err(|_| TrailError::Sealed(number))?),
                Err(OpenError::UnknownKey(_)) => None,
                Err(OpenError::Broken) => return Err(TrailError::Sealed(number)),
            };
            each(number, event);
        }
    }
}
