//! The store that many instances share: Redis or Valkey, on one node, behind Sentinel, or as a Cluster.
//!
//! A record, its outcome, its place in the indexes and its audit events lie in one shard (`keys`) and change in one
//! script: the record is the truth. What leads to records from elsewhere, the slots and quotas (`reservations`), is
//! reserved before that and given up after it; whoever finds a slot asks the record whether it has it. Events wait in
//! their shard's outbox until an instance chains them into the one trail (`trail`).
//!
//! Nothing is ever deleted by being read, and nothing ends by a key's time to live: every key has one, well past the
//! time at which a sweep has removed it, as a broom for what a crash left behind.

mod durable;
mod keys;
mod reservations;
mod scripts;
mod trail;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{join_all, try_join_all};
use redis::{Cmd, FromRedisValue, Value, cmd};

use super::{Commit, Committed, Entry, Expect, Outcome, Store, Stored, Tag, Unavailable, Write};
use crate::domain::{ElicitationId, Random, Timestamp};
use crate::redis_client::{Error, RedisClient, Settings};
use durable::Durable;
use keys::{Keys, SHARDS, Shard, quota_field, slot_field};
use reservations::Reserved;
use scripts::{Call, Scripts};

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
        taken: &[Tag],
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
            Write::Erase { .. } => call.arg(expected).number(self.kept()).arg(self.keys.changes()),
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
                let coming: Vec<_> = taken
                    .iter()
                    .map(|tag| slot_field(*tag))
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
                    .number(going.len())
                    .number(coming.len())
                    .args(going)
                    .args(coming)
            }
        }
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
        let mut nonce = [0; 16];
        self.random.fill(&mut nonce);
        let reserved = match &write {
            Write::Record { take, join, .. } => match self.reserve(id, &nonce, take, join).await? {
                Ok(reserved) => reserved,
                Err(refused) => return Ok(refused),
            },
            Write::Erase { .. } => Reserved::default(),
        };
        let call = self.change(id, expect, &nonce, &write, &reserved.slots()).args(events);
        match self.changed(&call).await? {
            1 => {}
            0 => {
                self.give_back(id, &nonce, &reserved).await;
                return Ok(Committed::Conflict);
            }
            _ => {
                self.give_back(id, &nonce, &reserved).await;
                return Err(Unavailable("too many audit events wait for the trail".to_owned()));
            }
        }
        let (Write::Record { release, leave, .. } | Write::Erase { release, leave }) = &write;
        self.confirm(id, &nonce, &reserved).await?;
        let slots = reserved.slots();
        self.free(id, release.iter().filter(|tag| !slots.contains(tag)), leave).await;
        Ok(Committed::Done)
    }

    async fn append(&self, events: Vec<Vec<u8>>) -> Result<(), Unavailable> {
        let shard = Shard::numbered(self.turn.fetch_add(1, Ordering::Relaxed));
        let call = self
            .scripts
            .append
            .call()
            .key(self.keys.outbox(shard))
            .key(self.keys.clock(shard))
            .number(self.kept())
            .number(OUTBOX)
            .args(events);
        let done: i64 = read(call.run_once(&self.client).await?)?;
        if done == 1 {
            Ok(())
        } else {
            Err(Unavailable("too many audit events wait for the trail".to_owned()))
        }
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        let shards = Shard::all().map(|shard| async move {
            let mut command = cmd("ZRANGE");
            command.arg(self.keys.due(shard)).arg("-inf").arg(now.millis()).arg("BYSCORE");
            command.arg("LIMIT").arg(0).arg(limit).arg("WITHSCORES");
            self.run::<Vec<(Vec<u8>, f64)>>(&command).await
        });
        let mut due = of_those_there(join_all(shards).await)?;
        due.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        due.truncate(limit);
        self.stored(due.into_iter().map(|(id, _)| id)).await
    }

    async fn scan(&self, after: Option<ElicitationId>, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        let mut ids: Vec<Vec<u8>> = Vec::new();
        let first = after.map(Shard::of);
        for shard in Shard::all().filter(|shard| first.is_none_or(|first| *shard >= first)) {
            let from = match after {
                Some(after) if Some(shard) == first => [b"(", &after.as_bytes()[..]].concat(),
                _ => b"-".to_vec(),
            };
            let mut command = cmd("ZRANGE");
            command.arg(self.keys.ids(shard)).arg(from).arg("+").arg("BYLEX");
            command.arg("LIMIT").arg(0).arg(limit - ids.len());
            ids.extend(self.run::<Vec<Vec<u8>>>(&command).await?);
            if ids.len() >= limit {
                break;
            }
        }
        self.stored(ids).await
    }

    async fn trail_start(&self) -> Result<(u64, [u8; 32]), Unavailable> {
        self.oldest_entry_kept().await
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        self.drain().await?;
        self.read_entries(after, limit).await
    }

    async fn tend(&self) -> Result<bool, Unavailable> {
        let lease = self.scripts.lease.call().key(self.keys.sweeper());
        let lease = lease.arg(self.instance.to_vec()).number(LEASE.as_millis());
        // Where the lease is out of reach every instance sweeps: they cost each other conflicts and nothing else.
        let lease = self.call::<i64>(&lease).await;
        if lease.as_ref().is_ok_and(|held| *held == 1) {
            // Also tells every instance that it still hears what is published.
            self.run::<i64>(cmd("PUBLISH").arg(self.keys.changes()).arg("")).await?;
            self.drain().await?;
        }
        Ok(lease.is_err() || lease.is_ok_and(|held| held == 1))
    }

    async fn ping(&self) -> Result<(), Unavailable> {
        // On a Cluster that lost some of its nodes, most elicitations can still be served.
        let probes = Shard::all().step_by(usize::from(SHARDS / 8)).map(|shard| async move {
            let mut command = cmd("SET");
            command.arg(self.keys.probe(shard)).arg("").arg("PX").arg(60_000);
            self.run::<Value>(&command).await
        });
        let answers = join_all(probes).await;
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        match answers.into_iter().find_map(Result::err) {
            Some(error) if failed * 2 > usize::from(SHARDS / 8) => Err(error),
            _ => Ok(()),
        }
    }

    async fn close(&self) {
        // The next instance need not wait for the lease to end.
        let lease = self.scripts.release.call().key(self.keys.sweeper()).arg(self.instance.to_vec());
        if let Err(error) = self.call::<i64>(&lease).await {
            tracing::debug!(%error, "the lease was not given back");
        }
    }
}

impl Redis {
    /// The records of these ids. An index that names what is not there is mended.
    async fn stored(&self, ids: impl IntoIterator<Item = Vec<u8>>) -> Result<Vec<Stored>, Unavailable> {
        let ids =
            ids.into_iter().filter_map(|id| <[u8; 16]>::try_from(id).ok().map(ElicitationId::from_bytes));
        let records = try_join_all(ids.map(|id| async move {
            let found = self.load(id).await?;
            if found.is_none() {
                let shard = Shard::of(id);
                let call = self.scripts.repair.call().key(self.keys.record(id));
                let call = call.key(self.keys.due(shard)).key(self.keys.ids(shard));
                self.call::<i64>(&call.arg(id.as_bytes().to_vec())).await?;
            }
            Ok::<_, Unavailable>(found)
        }));
        Ok(records.await?.into_iter().flatten().collect())
    }
}
