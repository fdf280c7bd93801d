//! The audit trail is looked after: from time to time its end is signed and told in the log, so that whoever keeps the log
//! elsewhere can tell later that the trail was cut or written anew; and what is older than it is to be kept goes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::{Error, Gate};
use crate::domain::binding::length_prefixed;
use crate::domain::ids::hex;
use crate::domain::{Event, Timestamp};
use crate::store::Link;
use crate::vault::{OpenError, Place, Ring};

/// That the trail went as far as this, signed (Ed25519, RFC 8032) with a key of the ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last entry's number.
    pub number: u64,
    /// The last entry's hash.
    #[serde(with = "hex")]
    pub hash: [u8; 32],
    /// When that was, in milliseconds since the Unix epoch.
    pub at: Timestamp,
    /// The id of the ring's key.
    pub key: String,
    /// Base64url.
    pub signature: String,
}

impl Checkpoint {
    /// Signs that the trail went so far at that moment.
    ///
    /// # Errors
    /// [`OpenError::Broken`] only if the cryptographic library refuses to work.
    pub fn sign(ring: &Ring, link: Link, at: Timestamp) -> Result<Self, OpenError> {
        let (key, signature) = ring.sign(&covered(link, at))?;
        let signature = URL_SAFE_NO_PAD.encode(signature);
        Ok(Self { number: link.number, hash: link.hash, at, key: key.to_owned(), signature })
    }

    /// Whether it was signed with a key of this ring.
    #[must_use]
    pub fn is_ours(&self, ring: &Ring) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(&self.signature) else { return false };
        ring.signed(&self.key, &covered(self.link(), self.at), &signature)
    }

    /// Where the trail ended.
    #[must_use]
    pub const fn link(&self) -> Link {
        Link { number: self.number, hash: self.hash }
    }
}

fn covered(link: Link, at: Timestamp) -> Vec<u8> {
    length_prefixed(&[b"checkpoint", &link.number.to_be_bytes(), &link.hash, &at.millis().to_be_bytes()])
}

/// How the trail is looked after.
#[derive(Debug)]
pub struct TrailCare {
    /// How often its end is signed; never if not said.
    pub checkpoint_every: Option<Duration>,
    /// How long entries are kept where the store does not see to that itself; for ever if not said.
    pub retention: Option<Duration>,
    last: Mutex<Last>,
}

/// When what was last done.
#[derive(Debug, Default)]
struct Last {
    checkpoint: Option<(Timestamp, u64)>,
    cut: Option<Timestamp>,
}

/// How often it is looked for what is too old.
const CUT_EVERY: Duration = Duration::from_mins(10);
/// How many entries go in one turn at most.
const CUT_AT_ONCE: u64 = 5_000;

impl TrailCare {
    /// To be done so often, and kept so long.
    #[must_use]
    pub fn new(checkpoint_every: Option<Duration>, retention: Option<Duration>) -> Self {
        Self { checkpoint_every, retention, last: Mutex::default() }
    }

    fn with_last<T>(&self, look: impl FnOnce(&mut Last) -> T) -> T {
        look(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Gate {
    /// Does what is due. For the instance that sweeps.
    pub(super) async fn care_for_trail(&self) -> Result<(), Error> {
        let (now, care) = (self.now(), &self.trail_care);
        let due = |last: Option<Timestamp>, every: Duration| last.is_none_or(|last| last + every <= now);
        if let Some(every) = care.checkpoint_every
            && care.with_last(|last| due(last.checkpoint.map(|(at, _)| at), every))
        {
            self.checkpoint(now).await?;
        }
        if let Some(retention) = care.retention
            && care.with_last(|last| due(last.cut, CUT_EVERY))
        {
            let start = self.store.trail().await?.start.number;
            let up_to = self.trail_up_to(now - retention).await?;
            self.store.cut_trail(up_to.min(start + CUT_AT_ONCE)).await?;
            if up_to <= start + CUT_AT_ONCE {
                care.with_last(|last| last.cut = Some(now));
            }
        }
        Ok(())
    }

    /// Signs the end of the trail, if it has moved, and tells it in the log.
    pub(super) async fn checkpoint(&self, now: Timestamp) -> Result<(), Error> {
        let end = self.store.trail().await?.end;
        let known = self.trail_care.with_last(|last| last.checkpoint.map(|(_, number)| number));
        self.trail_care.with_last(|last| last.checkpoint = Some((now, end.number)));
        if end.number == 0 || known == Some(end.number) {
            return Ok(());
        }
        let checkpoint = Checkpoint::sign(&self.ring, end, now)?;
        let text = serde_json::to_string(&checkpoint).map_err(|_| OpenError::Broken)?;
        tracing::info!(checkpoint = text, "the audit trail goes as far as this");
        Ok(())
    }

    /// The number of the last entry before which, and with which, all are older than this: found by halving.
    async fn trail_up_to(&self, moment: Timestamp) -> Result<u64, Error> {
        let extent = self.store.trail().await?;
        // The last entry stays: the next one follows it.
        let (mut low, mut high) = (extent.start.number, extent.end.number.saturating_sub(1));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let entry = self.store.entries(middle - 1, 1).await?.pop();
            let at = entry.and_then(|entry| self.opened(&entry.event)).map(|event| event.at);
            // What does not open any more is older than the oldest key.
            if at.is_none_or(|at| at < moment) { low = middle } else { high = middle - 1 }
        }
        Ok(low)
    }

    /// A sealed event, if a key of the ring opens it.
    pub(super) fn opened(&self, sealed: &[u8]) -> Option<Event> {
        let plain = self.ring.open(Place::Event, sealed).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}
