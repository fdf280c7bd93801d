//! A store in memory, for tests: the same rules, nothing durable.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{
    Commit, Committed, Entry, Expect, Extent, Link, Outcome, Store, Stored, Tag, Unavailable, Write,
    entry_hash,
};
use crate::domain::{ElicitationId, Timestamp};

/// A store in memory.
#[derive(Default)]
pub struct Memory(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    records: BTreeMap<ElicitationId, Row>,
    outcomes: HashMap<ElicitationId, Vec<u8>>,
    slots: HashMap<Tag, ElicitationId>,
    counts: HashMap<Tag, u64>,
    trail: Vec<Entry>,
    /// What the oldest entry follows.
    trail_start: Link,
    visits: HashMap<Tag, (Timestamp, Vec<u8>)>,
}

struct Row {
    version: u64,
    due: Timestamp,
    record: Vec<u8>,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn stored(&self, id: ElicitationId) -> Option<Stored> {
        let row = self.records.get(&id)?;
        Some(Stored { id, version: row.version, record: row.record.clone() })
    }

    fn commit(&mut self, commit: Commit) -> Committed {
        let Commit { id, expect, write, events } = commit;
        let version = self.records.get(&id).map(|row| row.version);
        match (expect, version) {
            (Expect::Absent, None) => {}
            (Expect::Version(expected), Some(found)) if expected == found => {}
            _ => return Committed::Conflict,
        }
        match write {
            Write::Record { record, due, outcome, take, release, join, leave } => {
                let holder = |tag| self.slots.get(&tag).copied().filter(|holder| *holder != id);
                if let Some(holder) =
                    take.iter().filter(|slot| slot.required).find_map(|slot| holder(slot.tag))
                {
                    return Committed::Taken(holder);
                }
                let count = |tag| self.counts.get(&tag).copied().unwrap_or(0);
                if let Some(full) = join.iter().find(|quota| count(quota.tag) >= quota.limit) {
                    return Committed::Full(full.tag);
                }
                self.release(id, &release, &leave);
                for slot in take {
                    self.slots.entry(slot.tag).or_insert(id);
                }
                for quota in join {
                    *self.counts.entry(quota.tag).or_default() += 1;
                }
                match outcome {
                    Outcome::Keep => {}
                    Outcome::Put(sealed) => drop(self.outcomes.insert(id, sealed)),
                    Outcome::Erase => drop(self.outcomes.remove(&id)),
                }
                self.records.insert(id, Row { version: version.unwrap_or(0) + 1, due, record });
            }
            Write::Erase { release, leave } => {
                self.release(id, &release, &leave);
                self.outcomes.remove(&id);
                self.records.remove(&id);
            }
        }
        self.append(events);
        Committed::Done
    }

    fn release(&mut self, id: ElicitationId, slots: &[Tag], quotas: &[Tag]) {
        self.slots.retain(|tag, holder| *holder != id || !slots.contains(tag));
        for tag in quotas {
            let left = self.counts.get(tag).copied().unwrap_or(0).saturating_sub(1);
            if left == 0 {
                self.counts.remove(tag);
            } else {
                self.counts.insert(*tag, left);
            }
        }
    }

    fn append(&mut self, events: Vec<Vec<u8>>) {
        for event in events {
            let last = self.trail.last().map_or(self.trail_start, Entry::link);
            let number = last.number + 1;
            let hash = entry_hash(&last.hash, number, &event);
            self.trail.push(Entry { number, event, hash });
        }
    }
}

#[async_trait]
impl Store for Memory {
    async fn load(&self, id: ElicitationId) -> Result<Option<Stored>, Unavailable> {
        Ok(self.tables().stored(id))
    }

    async fn find(&self, slot: Tag) -> Result<Option<Stored>, Unavailable> {
        let tables = self.tables();
        Ok(tables.slots.get(&slot).and_then(|id| tables.stored(*id)))
    }

    async fn outcome(&self, id: ElicitationId) -> Result<Option<Vec<u8>>, Unavailable> {
        Ok(self.tables().outcomes.get(&id).cloned())
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Unavailable> {
        Ok(self.tables().commit(commit))
    }

    async fn put_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        let visits = &mut self.tables().visits;
        visits.retain(|_, (until, _)| *until > now);
        visits.insert(tag, (until, sealed));
        Ok(())
    }

    async fn renew_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        _now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        if let Some(visit) = self.tables().visits.get_mut(&tag) {
            *visit = (until, sealed);
        }
        Ok(())
    }

    async fn visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        Ok(self.tables().visits.get(&tag).filter(|(until, _)| *until > now).map(|(_, sealed)| sealed.clone()))
    }

    async fn take_visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        let taken = self.tables().visits.remove(&tag);
        Ok(taken.filter(|(until, _)| *until > now).map(|(_, sealed)| sealed))
    }

    async fn append(&self, events: Vec<Vec<u8>>) -> Result<(), Unavailable> {
        self.tables().append(events);
        Ok(())
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        let tables = self.tables();
        let mut due: Vec<_> =
            tables.records.iter().filter(|(_, row)| row.due <= now).map(|(id, row)| (row.due, *id)).collect();
        due.sort_unstable();
        Ok(due.into_iter().take(limit).filter_map(|(_, id)| tables.stored(id)).collect())
    }

    async fn postpone(&self, stored: &Stored, due: Timestamp) -> Result<(), Unavailable> {
        if let Some(row) =
            self.tables().records.get_mut(&stored.id).filter(|row| row.version == stored.version)
        {
            row.due = due;
        }
        Ok(())
    }

    async fn scan(&self, after: Option<ElicitationId>, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        let tables = self.tables();
        let ids = tables.records.keys().filter(|id| after.is_none_or(|after| **id > after));
        Ok(ids.take(limit).filter_map(|id| tables.stored(*id)).collect())
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        Ok(self.tables().trail.iter().filter(|entry| entry.number > after).take(limit).cloned().collect())
    }

    async fn cut_trail(&self, up_to: u64) -> Result<(), Unavailable> {
        let mut tables = self.tables();
        let last = tables.trail.last().map_or(0, |entry| entry.number);
        let start = tables.trail.iter().find(|entry| entry.number == up_to && up_to < last).map(Entry::link);
        if let Some(start) = start {
            tables.trail.retain(|entry| entry.number > up_to);
            tables.trail_start = start;
        }
        Ok(())
    }

    async fn trail(&self) -> Result<Extent, Unavailable> {
        let tables = self.tables();
        let start = tables.trail_start;
        Ok(Extent { start, end: tables.trail.last().map_or(start, Entry::link) })
    }

    async fn ping(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    async fn close(&self) {}
}
