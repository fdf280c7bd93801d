//! The audit trail: sealed events in an append-only, hash-chained list.

use super::{Error, Gate};
use crate::domain::Event;
use crate::store::{Extent, Link, Store, entry_hash};
use crate::vault::{OpenError, Place, Ring};

/// How many entries are read at once.
const PAGE: usize = 1000;

impl Gate {
    pub(super) fn seal_event(&self, event: &Event) -> Result<Vec<u8>, Error> {
        // Whatever is done has an event: nothing is, while others could not open what is sealed here.
        self.keys.fits()?;
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
    /// The trail ends before its end, or has a gap.
    #[error("entries {0} to {1} are missing, or a part of them: the trail was cut there")]
    Missing(u64, u64),
    /// An entry was not written by this service.
    #[error("entry {0} does not open: it was not written by this service")]
    Sealed(u64),
    /// The trail cannot be read.
    #[error(transparent)]
    Unavailable(#[from] crate::store::Unavailable),
}

/// Reads the whole trail in order, from the oldest entry that is kept to the last one now, checks the chain, and hands each event
/// with its number and hash to `each`: `None` if it was sealed under a key that has left the ring since. Returns from where to
/// where it went.
///
/// # Errors
/// [`TrailError`] at the first entry that is wrong.
pub async fn read_trail(
    store: &dyn Store,
    ring: &Ring,
    mut each: impl FnMut(Link, Option<Event>),
) -> Result<Extent, TrailError> {
    let Extent { start, end } = store.trail().await?;
    let mut last = start;
    loop {
        let left = end.number.saturating_sub(last.number);
        if left == 0 {
            return Ok(Extent { start, end });
        }
        let page = store.entries(last.number, usize::try_from(left).unwrap_or(PAGE).min(PAGE)).await?;
        if page.is_empty() {
            return Err(TrailError::Missing(last.number + 1, end.number));
        }
        for entry in page {
            let (number, link) = (last.number + 1, entry.link());
            let follows =
                entry.number == number && entry.hash == entry_hash(&last.hash, number, &entry.event);
            if !follows || (number == end.number && link != end) {
                return Err(TrailError::Broken(number));
            }
            last = link;
            let event = match ring.open(Place::Event, &entry.event) {
                Ok(plain) => Some(serde_json::from_slice(&plain).map_err(|_| TrailError::Sealed(number))?),
                Err(OpenError::UnknownKey(_)) => None,
                Err(OpenError::Broken) => return Err(TrailError::Sealed(number)),
            };
            each(link, event);
        }
    }
}
