//! The keys of the ring among the instances that share a store: none may seal what another cannot open.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::issue::LONGEST_LIFETIME;
use super::{Error, Gate};
use crate::domain::Timestamp;
use crate::store::Unavailable;

/// How often the store is asked.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// What is known about the keys that seal.
#[derive(Debug, Default)]
pub struct KeyWatch {
    /// Keys that are gone for good, as the operator says: what they sealed stays closed.
    lost: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    ask_again: Option<Timestamp>,
    missing: Option<Missing>,
}

/// A key that other instances seal under, or did lately, is not in the ring of this one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store holds what was sealed under the key `{0}`, which is not in this instance's key file; give all instances the same key file, and before a new key seals let all of them know it (`sidegate keys rotate --prepare`)"
)]
pub struct Missing(String);

/// Why it is not known that this instance can open what the store holds.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// It cannot.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The store did not say.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl KeyWatch {
    /// A watch that does not miss the keys of these names.
    #[must_use]
    pub fn new(lost: Vec<String>) -> Self {
        Self { lost, seen: Mutex::default() }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether no key is known to be missing.
    pub(super) fn fits(&self) -> Result<(), Error> {
        match self.with(|seen| seen.missing.clone()) {
            Some(missing) => Err(Error::Unavailable(missing.to_string())),
            None => Ok(()),
        }
    }
}

impl Gate {
    /// Tells the store which key this instance seals under, and makes sure that its ring has all the others that were
    /// told so. Asks the store at most every few seconds.
    ///
    /// # Errors
    /// [`KeysError`].
    pub async fn look_at_keys(&self) -> Result<(), KeysError> {
        let now = self.now();
        let due = self.keys.with(|seen| {
            let due = seen.ask_again.is_none_or(|at| at <= now);
            if due {
                seen.ask_again = Some(now + ASK_EVERY);
            }
            due
        });
        if due {
            let longest = self.spans.longest_life.max(LONGEST_LIFETIME);
            let until = now + longest + self.spans.claim_by + self.spans.retention;
            let used = self.store.seals_under(self.ring.sealing_key(), now, until).await?;
            let missing = used.into_iter().find(|key| !self.ring.has(key) && !self.keys.lost.contains(key));
            let missing = missing.map(Missing);
            let before = self.keys.with(|seen| std::mem::replace(&mut seen.missing, missing.clone()));
            match &missing {
                Some(missing) if before.as_ref() != Some(missing) => tracing::error!("{missing}"),
                None if before.is_some() => {
                    tracing::info!("every key that the store names is in the key file");
                }
                _ => {}
            }
        }
        self.keys.with(|seen| seen.missing.clone()).map_or(Ok(()), |missing| Err(missing.into()))
    }
}
