//! The trail: events leave their shard's outbox in the order of their stamps and become entries, each with the hash of all
//! before it. Any instance may chain; the trail's end says how far each outbox was drained, and changes in the same
//! script that appends, so no event is chained twice and none is lost.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use redis::cmd;
use tokio::time::timeout;

use super::keys::Shard;
use super::{Redis, Unavailable, of_those_there};
use crate::store::{Entry, Extent, Link, entry_hash};

/// How many events one script chains, and how many one outbox contributes.
const BATCH: usize = 512;
/// How many entries a chunk of the trail has.
const CHUNK: u64 = 1024;
/// How often a batch is tried against other instances that chain.
const TRIES: usize = 64;
/// A stamp is the time of a change and the place of an event in it (`scripts/note.lua`).
const STAMP: usize = 22;
const TIME: usize = 16;
/// How many chunks are asked for at once whether they are there.
const ASKED: usize = 1000;
/// How many seconds before its time a part may be gone.
const GRACE: u64 = 60;

/// The trail's end as it was read.
struct End {
    number: u64,
    hash: [u8; 32],
    /// Until when the part is kept that was written to last, in milliseconds of the server's clock.
    until: u64,
    /// For each shard, the stamp up to which its outbox was drained.
    drained: Vec<Vec<u8>>,
}

/// An event that waits in an outbox.
struct Waiting {
    shard: Shard,
    stamp: Vec<u8>,
    event: Vec<u8>,
}

impl Redis {
    /// Chains what waits in the outboxes, until nothing does or the time is up.
    pub(super) async fn drain(&self, for_at_most: Duration) -> Result<(), Unavailable> {
        // It may be broken off anywhere: what a script has not done is done the next time.
        timeout(for_at_most, self.drain_all()).await.unwrap_or(Ok(()))
    }

    async fn drain_all(&self) -> Result<(), Unavailable> {
        let mut tries = 0;
        // Where other instances are always faster it is they who do it.
        while tries < TRIES {
            let end = self.end().await?;
            let waiting = self.waiting(&end).await?;
            if waiting.is_empty() {
                break;
            }
            if !self.chain(&end, &waiting).await? {
                tries += 1;
            }
        }
        Ok(())
    }

    async fn end(&self) -> Result<End, Unavailable> {
        let mut command = cmd("HMGET");
        command.arg(self.keys.trail_end()).arg("number").arg("until").arg("hash");
        for shard in Shard::all() {
            command.arg(shard.name());
        }
        let mut fields = self.run::<Vec<Option<Vec<u8>>>>(&command).await?.into_iter();
        let mut number = || fields.next().flatten().as_deref().and_then(decimal).unwrap_or(0);
        let (number, until) = (number(), number());
        let hash = fields.next().flatten().and_then(|hash| hash.try_into().ok()).unwrap_or([0; 32]);
        Ok(End { number, hash, until, drained: fields.map(Option::unwrap_or_default).collect() })
    }

    /// The next events in the order of their stamps, as many as fit into a batch and a chunk.
    async fn waiting(&self, end: &End) -> Result<Vec<Waiting>, Unavailable> {
        let outboxes = join_all(Shard::all().zip(&end.drained).map(|(shard, drained)| async move {
            let mut command = cmd("LRANGE");
            command.arg(self.keys.outbox(shard)).arg(0).arg(BATCH - 1);
            let listed: Vec<Vec<u8>> = self.run(&command).await?;
            let mut waiting: Vec<_> = listed.into_iter().filter_map(|bytes| split(shard, bytes)).collect();
            if waiting.first().is_some_and(|first| first.stamp <= *drained) {
                // An instance chained them and did not come to trimming.
                self.trim(shard, drained).await?;
                waiting.retain(|event| event.stamp > *drained);
            }
            Ok::<_, Unavailable>(waiting)
        }));
        let mut waiting = of_those_there(outboxes.await)?;
        // What was written together has one time, and stands together.
        let order = |event: &Waiting| {
            let (time, place) = event.stamp.split_at(TIME.min(event.stamp.len()));
            (time.to_vec(), event.shard, place.to_vec())
        };
        waiting.sort_by_cached_key(order);
        let room = usize::try_from(CHUNK - end.number % CHUNK).unwrap_or(BATCH).min(BATCH);
        waiting.truncate(room);
        Ok(waiting)
    }

    /// Appends these events if the trail still ends there; `false` if another instance was faster.
    async fn chain(&self, end: &End, waiting: &[Waiting]) -> Result<bool, Unavailable> {
        let (mut number, mut hash) = (end.number, end.hash);
        let mut entries = Vec::with_capacity(waiting.len());
        for Waiting { event, .. } in waiting {
            number += 1;
            hash = entry_hash(&hash, number, event);
            entries.push([&hash[..], event].concat());
        }
        let drained: Vec<(Shard, &Vec<u8>, &Vec<u8>)> = Shard::all()
            .zip(&end.drained)
            .filter_map(|(shard, before)| {
                let last = waiting.iter().rfind(|event| event.shard == shard)?;
                Some((shard, before, &last.stamp))
            })
            .collect();
        let mut call = self
            .scripts
            .chain
            .call()
            .key(self.keys.trail_end())
            .key(self.keys.trail_chunk(end.number / CHUNK))
            .number(end.number)
            .arg(hash.to_vec())
            .number(number)
            .arg(end.hash.to_vec())
            .number(self.kept.trail.as_millis())
            .number(drained.len());
        for (shard, before, after) in &drained {
            call = call.arg(shard.name()).arg((*before).clone()).arg((*after).clone());
        }
        if self.call::<i64>(&call.args(entries)).await? == 0 {
            return Ok(false);
        }
        try_join_all(drained.iter().map(|(shard, _, after)| self.trim(*shard, after))).await?;
        Ok(true)
    }

    async fn trim(&self, shard: Shard, stamp: &[u8]) -> Result<(), Unavailable> {
        let call = self.scripts.trim.call().key(self.keys.outbox(shard));
        self.call::<i64>(&call.arg(stamp.to_vec()).number(BATCH)).await.map(drop)
    }

    /// From where to where the trail goes. What should still be there counts, whether it is there or not: so a part that
    /// was removed is missed, and is not taken for one whose time was over.
    pub(super) async fn extent(&self) -> Result<Extent, Unavailable> {
        let end = self.end().await?;
        let (seconds, _): (u64, u64) = self.run(&cmd("TIME")).await?;
        let over = |until: u64| until <= (seconds + GRACE) * 1000;
        let last = Link { number: end.number, hash: end.hash };
        let chunks: Vec<_> = (0..end.number.div_ceil(CHUNK)).collect();
        for asked in chunks.chunks(ASKED) {
            let mut exist = cmd("EXISTS");
            exist.arg(asked.iter().map(|chunk| self.keys.trail_chunk(*chunk)).collect::<Vec<_>>());
            if self.run::<u64>(&exist).await? == 0 {
                continue;
            }
            for chunk in asked {
                let head = cmd("LINDEX").arg(self.keys.trail_chunk(*chunk)).arg(0).clone();
                let Some(head) = self.run::<Option<Vec<u8>>>(&head).await? else { continue };
                let (hash, until) = head.split_first_chunk::<32>().ok_or_else(broken)?;
                let until = decimal(until).ok_or_else(broken)?;
                let start = Link { number: chunk * CHUNK, hash: *hash };
                return Ok(Extent { start: if over(until) { start } else { Link::default() }, end: last });
            }
        }
        Ok(Extent { start: if over(end.until) { last } else { Link::default() }, end: last })
    }

    pub(super) async fn read_entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        let mut entries = Vec::new();
        let mut number = after;
        while entries.len() < limit {
            // Element 0 of a chunk is what it follows, so an entry's number within it is its index.
            let (chunk, index) = (number / CHUNK, number % CHUNK + 1);
            let last = index + (limit - entries.len()) as u64 - 1;
            let mut command = cmd("LRANGE");
            command.arg(self.keys.trail_chunk(chunk)).arg(index).arg(last);
            let listed: Vec<Vec<u8>> = self.run(&command).await?;
            if listed.is_empty() {
                break;
            }
            for bytes in listed {
                number += 1;
                let (hash, event) = bytes.split_first_chunk::<32>().ok_or_else(broken)?;
                entries.push(Entry { number, event: event.to_vec(), hash: *hash });
            }
        }
        Ok(entries)
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn split(shard: Shard, mut bytes: Vec<u8>) -> Option<Waiting> {
    let event = (bytes.len() >= STAMP).then(|| bytes.split_off(STAMP))?;
    Some(Waiting { shard, stamp: bytes, event })
}

fn broken() -> Unavailable {
    Unavailable("an entry of the trail is too short".to_owned())
}
