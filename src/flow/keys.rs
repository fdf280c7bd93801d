//! The keys of the ring among the instances that share a store: none may seal what another cannot open.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::issue::longest_kept;
use super::{Error, Gate};
use crate::domain::Timestamp;
use crate::store::Unavailable;
use crate::vault::Ring;

/// How often the store is asked.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// The same, after it did not answer.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What is known about the keys that seal.
#[derive(Debug, Default)]
pub struct KeyWatch {
    /// Ids of keys that are gone for good, as the operator says: what they sealed stays closed.
    lost: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    ask_at: Option<Timestamp>,
    answer: Answer,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Answer {
    /// The store has not been heard yet.
    #[default]
    NotYet,
    /// This instance can open whatever the others seal.
    Fits,
    Missing(Missing),
}

/// A key that other instances seal under, or did lately, is not in the ring of this one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store holds what was sealed under the key `{0}`, which is not in this instance's key file; give all instances the same key file, and before a new key seals let all of them know it (`sidegate keys rotate --prepare`)"
)]
pub struct Missing(String);

impl Missing {
    /// The first of the noted names that is neither in the ring nor lost.
    #[must_use]
    pub fn among(noted: Vec<String>, ring: &Ring, lost: &[String]) -> Option<Self> {
        let known = ring.names();
        noted.into_iter().find(|name| !known.contains(name) && !is_lost(name, lost)).map(Self)
    }
}

/// Whether the operator says that this key is gone.
fn is_lost(name: &str, lost: &[String]) -> bool {
    lost.iter().any(|id| name.split(':').next() == Some(id) || name == id)
}

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
    /// A watch that does not miss the keys of these ids.
    #[must_use]
    pub fn new(lost: Vec<String>) -> Self {
        Self { lost, seen: Mutex::default() }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it is known that no key is missing.
    pub(super) fn fits(&self) -> Result<(), Error> {
        match self.with(|seen| seen.answer.clone()) {
            Answer::Fits => Ok(()),
            Answer::NotYet => {
                Err(Error::Unavailable("the store has not said yet which keys are in use".to_owned()))
            }
            Answer::Missing(missing) => Err(Error::Unavailable(missing.to_string())),
        }
    }
}

impl Gate {
    /// Tells the store which key this instance seals under, unless it lacks one that another was noted for: that is an
    /// error, and nothing is noted. Asks the store at most every few seconds.
    ///
    /// # Errors
    /// [`KeysError`].
    pub async fn look_at_keys(&self) -> Result<(), KeysError> {
        let now = self.now();
        let due = self.keys.with(|seen| seen.ask_at.is_none_or(|at| at <= now));
        if due {
            let missing = match self.missing(now).await {
                Ok(missing) => missing,
                Err(error) => {
                    self.keys.with(|seen| seen.ask_at = Some(now + ASK_AGAIN));
                    return Err(error.into());
                }
            };
            let before = self.keys.with(|seen| {
                seen.ask_at = Some(now + ASK_EVERY);
                std::mem::replace(&mut seen.answer, missing.clone().map_or(Answer::Fits, Answer::Missing))
            });
            match (&missing, before) {
                (Some(missing), Answer::Missing(before)) if *missing == before => {}
                (Some(missing), _) => tracing::error!("{missing}"),
                (None, Answer::Missing(_)) => {
                    tracing::info!("every key that the store names is in the key file");
                }
                (None, _) => {}
            }
        }
        self.keys.with(|seen| match &seen.answer {
            Answer::Missing(missing) => Err(missing.clone().into()),
            Answer::Fits | Answer::NotYet => Ok(()),
        })
    }

    /// Tells the store that what this instance seals now is kept until then.
    pub(super) async fn note_key_until(&self, until: Timestamp) -> Result<(), Error> {
        let known = self.ring.names();
        let Some(sealing) = known.first() else { return Ok(()) };
        // A key that is missing here is found out by `look_at_keys`, and nothing is sealed then.
        self.store.agree_on_key(sealing, &known, self.now(), until).await?;
        Ok(())
    }

    /// Notes the key that seals, or says which key stands against it.
    async fn missing(&self, now: Timestamp) -> Result<Option<Missing>, Unavailable> {
        let until = now + longest_kept(&self.spans);
        let mut known = self.ring.names();
        let Some(sealing) = known.first().cloned() else { return Ok(None) };
        loop {
            match self.store.agree_on_key(&sealing, &known, now, until).await? {
                Some(name) if is_lost(&name, &self.keys.lost) && !known.contains(&name) => known.push(name),
                name => return Ok(name.map(Missing)),
            }
        }
    }
}
