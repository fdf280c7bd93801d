//! Where elicitations are kept. The store is dumb and atomic: it knows sealed bytes, versions, times and
//! keyed tags, and nothing of states, people or secrets. The rules live in `domain`.
//!
//! A step of an elicitation is: [`Store::load`], a transition, [`Store::commit`] with the version that was
//! loaded. A commit does all that it lists or nothing.

pub mod memory;
pub mod metered;
pub mod redis;
pub mod sqlite;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

pub use crate::domain::Tag;
use crate::domain::ids::write_hex;
use crate::domain::{ElicitationId, Timestamp};

/// A sealed record as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Names the record.
    pub id: ElicitationId,
    /// Grows by one with each commit; a commit names the version that it builds on.
    pub version: u64,
    /// The sealed record.
    pub record: Vec<u8>,
}

/// One atomic change of one elicitation.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Which record.
    pub id: ElicitationId,
    /// What must be there for the commit to take place.
    pub expect: Expect,
    /// What is there afterwards.
    pub write: Write,
    /// Sealed audit events, appended to the trail in this order.
    pub events: Vec<Vec<u8>>,
}

/// The condition of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No record of this id.
    Absent,
    /// The record, at this version.
    Version(u64),
}

/// What a commit leaves behind.
#[derive(Debug, Clone)]
pub enum Write {
    /// The record, replaced or new.
    Record {
        /// The sealed record.
        record: Vec<u8>,
        /// When [`Store::due`] is to list it.
        due: Timestamp,
        /// What becomes of the sealed outcome beside it.
        outcome: Outcome,
        /// Slots that will lead to this record.
        take: Vec<Slot>,
        /// Slots that will be free, as far as this record holds them.
        release: Vec<Tag>,
        /// Quotas that this record counts against from now on.
        join: Vec<Quota>,
        /// Quotas that it no longer counts against.
        leave: Vec<Tag>,
    },
    /// Nothing: record, outcome, slots and quota memberships are gone.
    Erase {
        /// Slots that will be free, as far as this record holds them.
        release: Vec<Tag>,
        /// Quotas that it no longer counts against.
        leave: Vec<Tag>,
    },
}

/// What becomes of the outcome in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As it is.
    Keep,
    /// This sealed outcome, new or replaced.
    Put(Vec<u8>),
    /// Gone, and its bytes with it.
    Erase,
}

/// A name under which at most one record can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The name.
    pub tag: Tag,
    /// Whether the commit fails with [`Committed::Taken`] if another record has it. Otherwise the slot is
    /// taken if it is free and left alone if it is not.
    pub required: bool,
}

/// A count of records that must not pass a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Whose count.
    pub tag: Tag,
    /// The largest count; a commit that would pass it fails with [`Committed::Full`].
    pub limit: u64,
}

/// What a commit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It took place.
    Done,
    /// The record is not as expected; load it again.
    Conflict,
    /// A required slot leads to another record.
    Taken(ElicitationId),
    /// The quota with this tag is used up.
    Full(Tag),
}

/// An entry of the audit trail as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the trail, from 1, without gaps.
    pub number: u64,
    /// The sealed event.
    pub event: Vec<u8>,
    /// SHA-256 over the previous entry's hash (32 zero bytes before the first), the number (8 bytes, big
    /// endian) and the sealed event.
    pub hash: [u8; 32],
}

/// A place in the audit trail: after the entry of this number, which has this hash. Zeros at its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// The entry's number.
    pub number: u64,
    /// The entry's hash.
    pub hash: [u8; 32],
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, whose hash is ", self.number)?;
        write_hex(f, &self.hash)
    }
}

impl Entry {
    /// The place after it.
    #[must_use]
    pub const fn link(&self) -> Link {
        Link { number: self.number, hash: self.hash }
    }
}

/// From where to where the audit trail goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// What the oldest entry follows that is still kept.
    pub start: Link,
    /// The last entry.
    pub end: Link,
}

/// The hash of an entry that follows one with the hash `previous`.
#[must_use]
pub fn entry_hash(previous: &[u8; 32], number: u64, event: &[u8]) -> [u8; 32] {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    context.update(previous);
    context.update(&number.to_be_bytes());
    context.update(event);
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// The store cannot answer now. Nothing is known to have changed.
#[derive(Debug, thiserror::Error)]
#[error("the store is unavailable: {0}")]
pub struct Unavailable(pub String);

/// A place to keep sealed elicitations, their outcomes and the audit trail.
#[async_trait]
pub trait Store: Send + Sync {
    /// The record of this id.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn load(&self, id: ElicitationId) -> Result<Option<Stored>, Unavailable>;

    /// The record that this slot leads to.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn find(&self, slot: Tag) -> Result<Option<Stored>, Unavailable>;

    /// The sealed outcome beside the record of this id.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn outcome(&self, id: ElicitationId) -> Result<Option<Vec<u8>>, Unavailable>;

    /// Does all of `commit` or nothing of it. When it answers [`Committed::Done`] the change is durable.
    ///
    /// # Errors
    /// [`Unavailable`]: the change may or may not take place; load to find out.
    async fn commit(&self, commit: Commit) -> Result<Committed, Unavailable>;

    /// Keeps something sealed that belongs to a browser's visit, until a time, in the place of what this tag led to.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn put_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable>;

    /// Replaces what this tag leads to, and until when it is kept, if there is something: what was taken stays gone.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn renew_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable>;

    /// What this tag leads to, if its time is not over at `now`.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable>;

    /// The same, and it is gone then: of many that take it at once one gets it.
    ///
    /// # Errors
    /// [`Unavailable`]; it may be gone.
    async fn take_visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable>;

    /// Appends sealed events that belong to no change of a record.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn append(&self, events: Vec<Vec<u8>>) -> Result<(), Unavailable>;

    /// Records that are due at `now`, the longest waiting first, at most `limit`.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored>, Unavailable>;

    /// Has [`Store::due`] list a record at another time. Nothing else of it changes, its version neither; if it is not as
    /// it was found, nothing does.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn postpone(&self, stored: &Stored, due: Timestamp) -> Result<(), Unavailable>;

    /// Records in the order of their ids, those after `after`: `limit`, or all that there are if they are fewer.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn scan(&self, after: Option<ElicitationId>, limit: usize) -> Result<Vec<Stored>, Unavailable>;

    /// Entries of the audit trail with numbers greater than `after`, in order, at most `limit`; those up to the end that
    /// [`Store::trail`] told are there.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable>;

    /// From where to where the trail goes at this moment.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn trail(&self) -> Result<Extent, Unavailable>;

    /// Lets go of the entries of the audit trail up to that number, which is less than the last one's. A store that sees to that by
    /// itself does nothing.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn cut_trail(&self, _up_to: u64) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Notes that something may have to be opened until `until` that is sealed under the key of this name; unless a key
    /// was noted so whose time is not over at `now` and which is not among `known`: then nothing is noted, and that one's
    /// name is returned. A store that is not shared notes nothing: nobody else seals.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn agree_on_key(
        &self,
        _sealing: &str,
        _known: &[String],
        _now: Timestamp,
        _until: Timestamp,
    ) -> Result<Option<String>, Unavailable> {
        Ok(None)
    }

    /// Goes on putting events onto the trail that were committed but are not there yet, until none is left or the time is
    /// up. For the instance that sweeps.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn chain(&self, _for_at_most: Duration) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Does what the store has to do for itself from time to time; to be called about once a second. Returns whether this
    /// instance is the one that is to sweep, among those that share the store.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn tend(&self) -> Result<bool, Unavailable> {
        Ok(true)
    }

    /// Whether the store answers, reading and writing.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn ping(&self) -> Result<(), Unavailable>;

    /// Finishes what was asked for before, removes what is left of erased bytes, and lets go of the store. Nothing
    /// is to be asked of it after that.
    async fn close(&self);
}
