//! Commits for tests, in few words.

use sidegate::domain::{ElicitationId, Timestamp};
use sidegate::store::{
    Commit, Committed, Entry, Expect, Outcome, Quota, Slot, Store, Stored, Tag, Write, entry_hash,
};

/// When records come due unless a test says otherwise.
pub(super) const LATER: Timestamp = Timestamp::from_millis(1_000_000);

pub(super) fn tag(number: u8) -> Tag {
    Tag([number; 32])
}

/// A commit to be completed by the methods below.
pub(super) struct Change(Commit);

/// A new record.
pub(super) fn create(id: ElicitationId) -> Change {
    change(id, Expect::Absent)
}

/// The record's successor, if it is still at this version.
pub(super) fn replace(id: ElicitationId, version: u64) -> Change {
    change(id, Expect::Version(version))
}

fn change(id: ElicitationId, expect: Expect) -> Change {
    let write = Write::Record {
        record: b"record".to_vec(),
        due: LATER,
        outcome: Outcome::Keep,
        take: Vec::new(),
        release: Vec::new(),
        join: Vec::new(),
        leave: Vec::new(),
    };
    Change(Commit { id, expect, write, events: Vec::new() })
}

/// The end of the record, if it is still at this version.
pub(super) fn erase(id: ElicitationId, version: u64, release: Vec<Tag>, leave: Vec<Tag>) -> Change {
    let write = Write::Erase { release, leave };
    Change(Commit { id, expect: Expect::Version(version), write, events: Vec::new() })
}

/// Does something to one part of the record's commit.
macro_rules! with {
    ($change:ident, $part:ident => $do:expr) => {{
        let Write::Record { $part, .. } = &mut $change.0.write else { panic!("an erasure has no such part") };
        $do;
        $change
    }};
}

impl Change {
    pub(super) fn record(mut self, bytes: &[u8]) -> Self {
        with!(self, record => *record = bytes.to_vec())
    }

    pub(super) fn due(mut self, at: i64) -> Self {
        with!(self, due => *due = Timestamp::from_millis(at))
    }

    pub(super) fn outcome(mut self, becomes: Outcome) -> Self {
        with!(self, outcome => *outcome = becomes)
    }

    pub(super) fn put(self, sealed: &[u8]) -> Self {
        self.outcome(Outcome::Put(sealed.to_vec()))
    }

    pub(super) fn requires(mut self, tag: Tag) -> Self {
        with!(self, take => take.push(Slot { tag, required: true }))
    }

    pub(super) fn wants(mut self, tag: Tag) -> Self {
        with!(self, take => take.push(Slot { tag, required: false }))
    }

    pub(super) fn releases(mut self, tag: Tag) -> Self {
        with!(self, release => release.push(tag))
    }

    pub(super) fn joins(mut self, tag: Tag, limit: u64) -> Self {
        with!(self, join => join.push(Quota { tag, limit }))
    }

    pub(super) fn leaves(mut self, tag: Tag) -> Self {
        with!(self, leave => leave.push(tag))
    }

    pub(super) fn event(mut self, event: &[u8]) -> Self {
        self.0.events.push(event.to_vec());
        self
    }

    pub(super) async fn on(self, store: &dyn Store) -> Committed {
        store.commit(self.0).await.unwrap()
    }

    pub(super) async fn done(self, store: &dyn Store) {
        assert_eq!(self.on(store).await, Committed::Done);
    }

    pub(super) fn commit(self) -> Commit {
        self.0
    }
}

pub(super) async fn version(store: &dyn Store, id: ElicitationId) -> Option<u64> {
    store.load(id).await.unwrap().map(|stored| stored.version)
}

/// Whose record a slot leads to.
pub(super) async fn holder(store: &dyn Store, tag: Tag) -> Option<ElicitationId> {
    store.find(tag).await.unwrap().map(|stored| stored.id)
}

pub(super) fn ids(listed: &[Stored]) -> Vec<ElicitationId> {
    listed.iter().map(|stored| stored.id).collect()
}

/// Every entry of the trail, after making sure that none is missing or out of order and that the hashes chain.
pub(super) async fn verified_trail(store: &dyn Store) -> Vec<Entry> {
    let end = store.trail().await.unwrap().end;
    let mut trail: Vec<Entry> = Vec::new();
    loop {
        let page = store.entries(trail.len() as u64, 1000).await.unwrap();
        if page.is_empty() {
            assert_eq!(trail.last().map(Entry::link).unwrap_or_default(), end);
            return trail;
        }
        for entry in page {
            let previous = trail.last().map_or([0; 32], |entry| entry.hash);
            assert_eq!(entry.number, trail.len() as u64 + 1);
            assert_eq!(
                entry.hash,
                entry_hash(&previous, entry.number, &entry.event),
                "entry {}",
                entry.number
            );
            trail.push(entry);
        }
    }
}
