//! The store that many instances share: Redis or Valkey, on one node, behind Sentinel, or as a Cluster.
//!
//! A record, its outcome, its place in the indexes and its audit events lie in one shard (`keys`) and change in one
//! script: the record is the truth. What leads to records from elsewhere, the slots and quotas (`reservations`), is
//! reserved before that and given up after it; whoever finds a slot asks the record whether it has it. Events wait in
//! their shard's outbox until an instance chains them into the one trail (`trail`).
//!
//! Nothing is ever deleted by being read, and no elicitation ends by a key's time to live: its keys have one, well past
//! the time at which a sweep has removed them, as a broom for what a crash left behind. The trail alone goes by it.

mod durable;
mod index;
mod keys;
mod reservations;
mod scripts;
mod trail;
mod visits;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use redis::{Cmd, FromRedisValue, Value, cmd};

use super::{Commit, Committed, Entry, Expect, Extent, Outcome, Store, Stored, Tag, Unavailable, Write};
use crate::domain::{ElicitationId, Random, Timestamp};
use crate::redis_client::{Error, RedisClient, Settings};
use durable::Durable;
use keys::{Keys, SHARDS, Shard, quota_field, slot_field};
use reservations::{HOLDS, Reserved};
use scripts::{Call, Scripts};
use visits::in_time;

/// The shared store.
pub struct Redis {
    client: RedisClient,
    /// Where commits go that must be on the server's disk.
    durable: Option<Durable>,
    keys: Keys,
    scripts: Scripts,
    random: Arc<dyn Random>,
    /// The name of this instance among those that share the store.
    instance: [u8; 16],
    kept: Kept,
    /// Spreads events of no record over the outboxes.
    turn: AtomicU8,
}

/// How long keys stay that nobody removes.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// Records and all that belongs to them. Longer than any record lives.
    pub records: Duration,
    /// The trail, counted from its last entry, in chunks.
    pub trail: Duration,
}

/// The channel on which every commit is announced, for a store with this prefix.
#[must_use]
pub fn channel(prefix: &str) -> String {
    format!("{prefix}:changes")
}

/// How many events may wait in an outbox; beyond that steps are refused, since there is no trail without them.
const OUTBOX: usize = 100_000;
/// For how long an instance sweeps without asking again.
const LEASE: Duration = Duration::from_secs(5);

/// How long whoever reads the trail, or closes, waits for what is on its way there.
const DRAIN_FOR_READERS: Duration = Duration::from_secs(5);
impl Redis {
    /// A store on this server, whose keys begin with `prefix`. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(settings: &Settings, prefix: &str, kept: Kept, random: Arc<dyn Random>) -> Self {
        let mut instance = [0; 16];
        random.fill(&mut instance);
        Self {
            client: RedisClient::start(settings.clone()),
            durable: Durable::start(settings),
            keys: Keys::new(prefix.to_owned()),
            scripts: Scripts::new(),
            random,
            instance,
            kept,
            turn: AtomicU8::new(instance[0]),
        }
    }

    /// The server's connection, to ask what the first attempt came to.
    #[must_use]
    pub const fn client(&self) -> &RedisClient {
        &self.client
    }

    async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Unavailable> {
        read(self.client.run(command).await?)
    }

    async fn call<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, Unavailable> {
        read(call.run(&self.client).await?)
    }

    fn kept(&self) -> u128 {
        self.kept.records.as_millis()
    }

    fn trail_kept(&self) -> u64 {
        u64::try_from(self.kept.trail.as_millis()).unwrap_or(u64::MAX)
    }

    /// The names of the keys under which something may be sealed that is still kept.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn sealing_keys(&self, now: Timestamp) -> Result<Vec<String>, Unavailable> {
        let mut command = cmd("ZRANGE");
        command.arg(self.keys.sealing_keys()).arg(format!("({}", now.millis())).arg("+inf").arg("BYSCORE");
        self.run(&command).await
    }

    /// How long an event may wait for the trail: no shorter than it would be kept there.
    fn events_kept(&self) -> u128 {
        self.kept.records.max(self.kept.trail).as_millis()
    }

    /// The record's version and bytes, and whether it has each of `fields`.
    async fn look(&self, id: ElicitationId, field: Option<Vec<u8>>) -> Result<Option<Look>, Unavailable> {
        let mut command = cmd("HMGET");
        command.arg(self.keys.record(id)).arg("version").arg("record").arg(field.unwrap_or_default());
        let (version, record, mark): (Option<u64>, Option<Vec<u8>>, Option<Value>) =
            self.run(&command).await?;
        Ok(version.zip(record).map(|(version, record)| Look {
            stored: Stored { id, version, record },
            has_field: mark.is_some(),
        }))
    }

    /// The script that does the middle of a commit: the record, in its shard.
    fn change(
        &self,
        id: ElicitationId,
        expect: Expect,
        nonce: &[u8; 16],
        write: &Write,
        reserved: &Reserved,
    ) -> Call<'_> {
        let expected = match expect {
            Expect::Absent => String::new(),
            Expect::Version(version) => version.to_string(),
        };
        let (shard, id_bytes) = (Shard::of(id), id.as_bytes().to_vec());
        let script = match (write, expect) {
            (Write::Erase { .. }, _) => &self.scripts.erase,
            (Write::Record { .. }, Expect::Absent) => &self.scripts.issue,
            (Write::Record { .. }, Expect::Version(_)) => &self.scripts.commit,
        };
        let call = script
            .call()
            .key(self.keys.record(id))
            .key(self.keys.outcome(id))
            .key(self.keys.due(shard))
            .key(self.keys.ids(shard))
            .key(self.keys.outbox(shard))
            .key(self.keys.clock(shard))
            .arg(id_bytes);
        match write {
            Write::Erase { .. } => call.arg(expected).arg(self.keys.changes()).number(self.events_kept()),
            Write::Record { record, due, outcome, take: _, release, join, leave } => {
                let (verb, sealed) = match outcome {
                    Outcome::Keep => ("keep", &[][..]),
                    Outcome::Put(sealed) => ("put", sealed.as_slice()),
                    Outcome::Erase => ("erase", &[][..]),
                };
                let going: Vec<_> = release
                    .iter()
                    .map(|tag| slot_field(*tag))
                    .chain(leave.iter().map(|tag| quota_field(*tag)))
                    .collect();
                let coming: Vec<_> = reserved
                    .slots()
                    .into_iter()
                    .map(slot_field)
                    .chain(join.iter().map(|quota| quota_field(quota.tag)))
                    .collect();
                call.arg(nonce.to_vec())
                    .arg(expected)
                    .number(self.kept())
                    .number(due.millis())
                    .arg(record.clone())
                    .arg(verb)
                    .arg(sealed.to_vec())
                    .arg(self.keys.changes())
                    .number(OUTBOX)
                    .number(self.events_kept())
                    .arg(reserved.since().map(|since| since.to_string()).unwrap_or_default())
                    .number(HOLDS.as_millis())
                    .number(going.len())
                    .number(coming.len())
                    .args(going)
                    .args(coming)
            }
        }
    }

    fn nonce(&self) -> [u8; 16] {
        let mut nonce = [0; 16];
        self.random.fill(&mut nonce);
        nonce
    }

    async fn changed(&self, call: &Call<'_>) -> Result<i64, Unavailable> {
        match &self.durable {
            Some(durable) if durable.waits(&self.client) => durable.run(call).await,
            _ => self.call(call).await,
        }
    }
}

/// What the shards answered, as far as they can be reached: a Cluster that lost a node goes on with the others.
fn of_those_there<T>(answers: Vec<Result<Vec<T>, Unavailable>>) -> Result<Vec<T>, Unavailable> {
    let mut all = Vec::new();
    let (mut there, mut failed) = (0, None);
    for answer in answers {
        match answer {
            Ok(part) => {
                there += 1;
                all.extend(part);
            }
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if there == 0 => Err(error),
        _ => Ok(all),
    }
}

/// A record as it was found.
struct Look {
    stored: Stored,
    has_field: bool,
}

fn read<T: FromRedisValue>(value: Value) -> Result<T, Unavailable> {
    redis::from_redis_value(value).map_err(|_| Unavailable("Redis gave an answer of another kind".to_owned()))
}

fn full() -> Unavailable {
    Unavailable("too many audit events wait for the trail".to_owned())
}

fn late() -> Unavailable {
    Unavailable("this step came too late after it was prepared; try it again".to_owned())
}

impl From<Error> for Unavailable {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[async_trait]
impl Store for Redis {
    async fn load(&self, id: ElicitationId) -> Result<Option<Stored>, Unavailable> {
        let mut command = cmd("HMGET");
        command.arg(self.keys.record(id)).arg("version").arg("record");
        let (version, record): (Option<u64>, Option<Vec<u8>>) = self.run(&command).await?;
        Ok(version.zip(record).map(|(version, record)| Stored { id, version, record }))
    }

    async fn find(&self, slot: Tag) -> Result<Option<Stored>, Unavailable> {
        let value: Option<Vec<u8>> = self.run(cmd("GET").arg(self.keys.slot(slot))).await?;
        let Some(id) = value.as_deref().and_then(reservations::holder) else { return Ok(None) };
        let look = self.look(id, Some(slot_field(slot))).await?;
        Ok(look.filter(|look| look.has_field).map(|look| look.stored))
    }

    async fn outcome(&self, id: ElicitationId) -> Result<Option<Vec<u8>>, Unavailable> {
        self.run(cmd("GET").arg(self.keys.outcome(id))).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Unavailable> {
        let Commit { id, expect, write, events } = commit;
        let nonce = self.nonce();
        let reserved = match &write {
            Write::Record { take, join, .. } => match self.reserve(id, &nonce, take, join).await? {
                Ok(reserved) => reserved,
                Err(refused) => return Ok(refused),
            },
            Write::Erase { .. } => Reserved::default(),
        };
        let call = self.change(id, expect, &nonce, &write, &reserved).args(events);
        match self.changed(&call).await? {
            1 => {}
            0 => {
                self.give_back(id, &nonce, &reserved).await;
                return Ok(Committed::Conflict);
            }
            refused => {
                self.give_back(id, &nonce, &reserved).await;
                return Err(if refused == -2 { late() } else { full() });
            }
        }
        let (Write::Record { release, leave, .. } | Write::Erase { release, leave }) = &write;
        self.confirm(id, &nonce, &reserved).await?;
        let slots = reserved.slots();
        self.free(id, release.iter().filter(|tag| !slots.contains(tag)), leave).await;
        Ok(Committed::Done)
    }

    async fn put_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        self.run::<Value>(&self.set_visit(tag, &sealed, now, until)).await.map(drop)
    }

    async fn renew_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        self.run::<Value>(self.set_visit(tag, &sealed, now, until).arg("XX")).await.map(drop)
    }

    async fn visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        let value: Option<Vec<u8>> = self.run(cmd("GET").arg(self.keys.visit(tag))).await?;
        Ok(value.and_then(|value| in_time(value, now)))
    }

    async fn take_visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        let value: Option<Vec<u8>> = self.run(cmd("GETDEL").arg(self.keys.visit(tag))).await?;
        Ok(value.and_then(|value| in_time(value, now)))
    }

    async fn append(&self, events: Vec<Vec<u8>>) -> Result<(), Unavailable> {
        let shard = Shard::numbered(self.turn.fetch_add(1, Ordering::Relaxed));
        let call = self
            .scripts
            .append
            .call()
            .key(self.keys.outbox(shard))
            .key(self.keys.clock(shard))
            .arg(self.nonce())
            .number(self.events_kept())
            .number(OUTBOX)
            .args(events);
        if self.call::<i64>(&call).await? == 1 { Ok(()) } else { Err(full()) }
    }

    async fn postpone(&self, stored: &Stored, due: Timestamp) -> Result<(), Unavailable> {
        let call = self.scripts.postpone.call().key(self.keys.record(stored.id));
        let call = call.key(self.keys.due(Shard::of(stored.id))).arg(stored.id.as_bytes().to_vec());
        self.call::<i64>(&call.number(stored.version).number(due.millis())).await.map(drop)
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        let shards = Shard::all().map(|shard| async move {
            let mut command = cmd("ZRANGE");
            command.arg(self.keys.due(shard)).arg("-inf").arg(now.millis()).arg("BYSCORE");
            command.arg("LIMIT").arg(0).arg(limit).arg("WITHSCORES");
            self.run::<Vec<([u8; 16], f64)>>(&command).await
        });
        let mut due = of_those_there(join_all(shards).await)?;
        due.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        due.truncate(limit);
        self.stored(due.into_iter().map(|(id, _)| ElicitationId::from_bytes(id))).await
    }

    async fn scan(&self, after: Option<ElicitationId>, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        let (mut found, mut after) = (Vec::new(), after);
        // The index may name what is not there any more.
        while found.len() < limit {
            let ids = self.ids(after, limit - found.len()).await?;
            let Some(last) = ids.last() else { break };
            after = Some(*last);
            found.extend(self.stored(ids).await?);
        }
        Ok(found)
    }

    async fn trail(&self) -> Result<Extent, Unavailable> {
        self.drain(DRAIN_FOR_READERS).await?;
        self.extent().await
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        self.read_entries(after, limit).await
    }

    async fn chain(&self, for_at_most: Duration) -> Result<(), Unavailable> {
        self.drain(for_at_most).await
    }

    async fn agree_on_key(
        &self,
        sealing: &str,
        known: &[String],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<String>, Unavailable> {
        let call = self.scripts.keys.call().key(self.keys.sealing_keys()).arg(sealing);
        let call = call.number(until.millis()).number(now.millis()).number(self.kept());
        let unknown: String =
            self.call(&call.args(known.iter().map(|name| name.clone().into_bytes()))).await?;
        Ok(Some(unknown).filter(|name| !name.is_empty()))
    }

    async fn tend(&self) -> Result<bool, Unavailable> {
        let lease = self.scripts.lease.call().key(self.keys.sweeper());
        let lease = lease.arg(self.instance.to_vec()).number(LEASE.as_millis());
        let lease = self.call::<i64>(&lease).await;
        if lease.as_ref().is_ok_and(|held| *held == 1) {
            // Tells every instance that it still hears what is published; and the trail's end outlives a quiet time.
            let keep = cmd("PEXPIRE").arg(self.keys.trail_end()).arg(self.trail_kept()).clone();
            let heartbeat = cmd("PUBLISH").arg(self.keys.changes()).arg("").clone();
            let (kept, beaten) = join(self.run::<i64>(&keep), self.run::<i64>(&heartbeat)).await;
            if let Err(error) = kept.and(beaten) {
                tracing::warn!(%error, "the other instances were not told that they are heard");
            }
        }
        // Where the lease is out of reach every instance sweeps: they cost each other conflicts and nothing else.
        Ok(lease.is_err() || lease.is_ok_and(|held| held == 1))
    }

    async fn ping(&self) -> Result<(), Unavailable> {
        let probes = Shard::all().step_by(usize::from(SHARDS / 8)).map(|shard| async move {
            let probe = self.scripts.probe.call().key(self.keys.probe(shard)).arg(self.keys.changes());
            self.call::<i64>(&probe).await
        });
        let answers = join_all(probes).await;
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        match answers.into_iter().find_map(Result::err) {
            // On a Cluster that lost some of its nodes, most elicitations can still be served.
            Some(error) if failed * 2 > usize::from(SHARDS / 8) => Err(error),
            _ => Ok(()),
        }
    }

    async fn close(&self) {
        if let Err(error) = self.drain(DRAIN_FOR_READERS).await {
            tracing::warn!(%error, "audit events were left on their way to the trail; the next instance puts them there");
        }
        // The next instance need not wait for the lease to end.
        let lease = self.scripts.release.call().key(self.keys.sweeper()).arg(self.instance.to_vec());
        if let Err(error) = self.call::<i64>(&lease).await {
            tracing::debug!(%error, "the lease was not given back");
        }
    }
}
