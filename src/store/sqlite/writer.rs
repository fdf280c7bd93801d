//! The thread that writes. It takes what has queued up and commits it together: one flush to disk serves
//! everybody who waited.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, never, select};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::recent::{Recent, Written};
use super::schema::BUSY_TIMEOUT;
use crate::domain::{ElicitationId, Timestamp};
use crate::store::{
    Commit, Committed, Expect, Outcome, Quota, Slot, Stored, Tag, Unavailable, Write, entry_hash,
};

pub(super) type Reply<T> = oneshot::Sender<Result<T, Unavailable>>;

/// What the thread is told.
pub(super) enum Order {
    Write(Job),
    /// After all that was ordered before. Answered when the database is closed.
    Close(oneshot::Sender<()>),
}

/// One thing to write.
pub(super) enum Job {
    Commit(Box<Commit>, Reply<Committed>),
    Append(Vec<Vec<u8>>, Reply<()>),
    /// Up to the entry of this number.
    CutTrail(u64, Reply<()>),
    PutVisit {
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
        reply: Reply<()>,
    },
    RenewVisit {
        tag: Tag,
        sealed: Vec<u8>,
        until: Timestamp,
        reply: Reply<()>,
    },
    TakeVisit {
        tag: Tag,
        now: Timestamp,
        reply: Reply<Option<Vec<u8>>>,
    },
    Postpone {
        id: ElicitationId,
        version: u64,
        due: Timestamp,
        reply: Reply<()>,
    },
    Ping(Reply<()>),
}

/// How many jobs one transaction holds at most.
const BATCH: usize = 512;
/// How soon erased bytes are also removed from the write-ahead log, however busy it is.
const CLEANING: Duration = Duration::from_millis(500);
/// How long that may hold up those who wait to write.
const CLEANING_PATIENCE: Duration = Duration::from_millis(20);

/// Starts the thread; it ends when all senders are gone and everything queued is done.
pub(super) fn start(connection: Connection, recent: Recent) -> (Sender<Order>, JoinHandle<()>) {
    let (sender, queue) = crossbeam_channel::unbounded();
    // What a crash left in the log may hold erased bytes.
    let cleaning = Some(after(CLEANING));
    let thread = std::thread::spawn(move || Writer { connection, recent, last: None, cleaning }.run(&queue));
    (sender, thread)
}

struct Writer {
    connection: Connection,
    recent: Recent,
    /// As far as it is known: nobody else writes.
    last: Option<Last>,
    /// Fires when erased bytes that may stand in the write-ahead log are to be removed from it.
    cleaning: Option<Receiver<Instant>>,
}

/// What a transaction did, beside its answers.
#[derive(Default)]
struct Effects {
    written: Vec<Written>,
    /// How many rows of bytes are gone.
    erased: usize,
    /// The audit trail's last entry, once something was appended.
    last: Option<Last>,
}

/// Number and hash of the audit trail's last entry.
type Last = (u64, [u8; 32]);

/// An answer that waits for the transaction to be durable.
enum Answer {
    Committed(Reply<Committed>, Committed),
    Taken(Reply<Option<Vec<u8>>>, Option<Vec<u8>>),
    Done(Reply<()>),
}

impl Writer {
    fn run(mut self, queue: &Receiver<Order>) {
        loop {
            select! {
                recv(queue) -> first => {
                    let Ok(first) = first else { break };
                    let (jobs, close) = queued(first, queue);
                    if !jobs.is_empty() {
                        self.batch(jobs);
                    }
                    if let Some(reply) = close {
                        self.truncate_log();
                        drop(self.connection);
                        // Nobody need be there any more.
                        let _ = reply.send(());
                        return;
                    }
                }
                recv(self.cleaning.as_ref().unwrap_or(&never())) -> _ => self.truncate_log(),
            }
        }
        self.truncate_log();
    }

    /// Erased bytes are overwritten in the database, but the log keeps their old pages until it is truncated.
    fn truncate_log(&mut self) {
        // A reader that takes its time, or a full disk, puts it off to the next time.
        let busy = self.connection.busy_timeout(CLEANING_PATIENCE).and_then(|()| {
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        });
        let put_off =
            self.connection.busy_timeout(BUSY_TIMEOUT).is_err() || !busy.is_ok_and(|busy| busy == 0);
        self.cleaning = put_off.then(|| after(CLEANING));
    }

    fn batch(&mut self, jobs: Vec<Job>) {
        let mut answers = Vec::with_capacity(jobs.len());
        let mut waiting = jobs.into_iter();
        let mut effects = Effects { last: self.last, ..Effects::default() };
        let result = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for job in waiting.by_ref() {
                answers.push(perform(&transaction, job, &mut effects)?);
            }
            transaction.commit()
        })();
        match result {
            Ok(()) => {
                if effects.erased > 0 {
                    self.cleaning.get_or_insert_with(|| after(CLEANING));
                }
                self.recent.note(effects.written);
                self.last = effects.last;
                answers.into_iter().for_each(Answer::send);
            }
            // The whole transaction is undone, so nobody got anything.
            Err(error) => {
                let error = error.to_string();
                tracing::error!(error, "the store could not commit");
                self.recent.forget();
                for answer in answers {
                    answer.fail(&error);
                }
                for job in waiting {
                    job.fail(&error);
                }
            }
        }
    }
}

/// What has queued up to be written together, and who wants it closed after that.
fn queued(first: Order, queue: &Receiver<Order>) -> (Vec<Job>, Option<oneshot::Sender<()>>) {
    let mut jobs = Vec::new();
    for order in std::iter::once(first).chain(queue.try_iter()).take(BATCH) {
        match order {
            Order::Write(job) => jobs.push(job),
            Order::Close(reply) => return (jobs, Some(reply)),
        }
    }
    (jobs, None)
}

impl Answer {
    fn send(self) {
        // A caller that has gone away needs no answer.
        match self {
            Self::Committed(reply, committed) => drop(reply.send(Ok(committed))),
            Self::Taken(reply, taken) => drop(reply.send(Ok(taken))),
            Self::Done(reply) => drop(reply.send(Ok(()))),
        }
    }

    fn fail(self, error: &str) {
        match self {
            Self::Committed(reply, _) => drop(reply.send(Err(Unavailable(error.to_owned())))),
            Self::Taken(reply, _) => drop(reply.send(Err(Unavailable(error.to_owned())))),
            Self::Done(reply) => drop(reply.send(Err(Unavailable(error.to_owned())))),
        }
    }
}

impl Job {
    fn fail(self, error: &str) {
        match self {
            Self::Commit(_, reply) => drop(reply.send(Err(Unavailable(error.to_owned())))),
            Self::TakeVisit { reply, .. } => drop(reply.send(Err(Unavailable(error.to_owned())))),
            Self::Append(_, reply)
            | Self::CutTrail(_, reply)
            | Self::PutVisit { reply, .. }
            | Self::RenewVisit { reply, .. }
            | Self::Postpone { reply, .. }
            | Self::Ping(reply) => {
                drop(reply.send(Err(Unavailable(error.to_owned()))));
            }
        }
    }
}

/// Does one job within the transaction. If it fails, its caller learns so when its reply is dropped.
fn perform(db: &Transaction<'_>, job: Job, effects: &mut Effects) -> Result<Answer, rusqlite::Error> {
    match job {
        Job::Commit(job, reply) => Ok(Answer::Committed(reply, commit(db, *job, effects)?)),
        Job::Append(events, reply) => {
            append(db, events, effects)?;
            Ok(Answer::Done(reply))
        }
        Job::CutTrail(up_to, reply) => {
            cut_trail(db, up_to)?;
            Ok(Answer::Done(reply))
        }
        Job::PutVisit { tag, sealed, now, until, reply } => {
            effects.erased += run(db, "DELETE FROM visits WHERE until <= ?1", [now.millis()])?;
            let sql = "INSERT INTO visits VALUES (?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET until = ?2, sealed = ?3";
            run(db, sql, params![tag.0, until.millis(), sealed])?;
            Ok(Answer::Done(reply))
        }
        Job::RenewVisit { tag, sealed, until, reply } => {
            let sql = "UPDATE visits SET until = ?2, sealed = ?3 WHERE tag = ?1";
            run(db, sql, params![tag.0, until.millis(), sealed])?;
            Ok(Answer::Done(reply))
        }
        Job::TakeVisit { tag, now, reply } => {
            let sql = "DELETE FROM visits WHERE tag = ?1 RETURNING sealed, until > ?2";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, bool>(1)?));
            let taken = db.prepare_cached(sql)?.query_row(params![tag.0, now.millis()], row).optional()?;
            effects.erased += usize::from(taken.is_some());
            let taken = taken.and_then(|(sealed, in_time)| in_time.then_some(sealed));
            Ok(Answer::Taken(reply, taken))
        }
        Job::Postpone { id, version, due, reply } => {
            let sql = "UPDATE records SET due = ?3 WHERE id = ?1 AND version = ?2";
            run(db, sql, params![id.as_bytes(), version, due.millis()])?;
            Ok(Answer::Done(reply))
        }
        Job::Ping(reply) => {
            run(db, "INSERT INTO pings VALUES (1, 1) ON CONFLICT DO UPDATE SET count = count + 1", [])?;
            Ok(Answer::Done(reply))
        }
    }
}

fn commit(db: &Transaction<'_>, commit: Commit, effects: &mut Effects) -> Result<Committed, rusqlite::Error> {
    let Commit { id, expect, write, events } = commit;
    let key = id.as_bytes();
    let version: Option<u64> = db
        .prepare_cached("SELECT version FROM records WHERE id = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    match (expect, version) {
        (Expect::Absent, None) => {}
        (Expect::Version(expected), Some(found)) if expected == found => {}
        _ => return Ok(Committed::Conflict),
    }
    match write {
        Write::Record { record, due, outcome, take, release, join, leave } => {
            if let Some(committed) = obstacle(db, id, &take, &join)? {
                return Ok(committed);
            }
            free(db, id, &release, &leave)?;
            for slot in take {
                run(
                    db,
                    "INSERT INTO slots VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                    params![slot.tag.0, key],
                )?;
            }
            for quota in join {
                let sql = "INSERT INTO counts VALUES (?1, 1) ON CONFLICT DO UPDATE SET count = count + 1";
                run(db, sql, [quota.tag.0])?;
            }
            let version = version.unwrap_or(0) + 1;
            let sql = "INSERT INTO records VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT DO UPDATE SET version = ?2, due = ?3, record = ?4";
            run(db, sql, params![key, version, due.millis(), record])?;
            effects.written.push(Written::Record(Stored { id, version, record }));
            match outcome {
                Outcome::Keep => {}
                Outcome::Put(sealed) => {
                    let sql = "INSERT INTO outcomes VALUES (?1, ?2) ON CONFLICT DO UPDATE SET sealed = ?2";
                    run(db, sql, params![key, sealed])?;
                }
                // Also what the record itself held before may be what is to be gone.
                Outcome::Erase => effects.erased += 1 + run(db, "DELETE FROM outcomes WHERE id = ?1", [key])?,
            }
        }
        Write::Erase { release, leave } => {
            free(db, id, &release, &leave)?;
            effects.erased += run(db, "DELETE FROM outcomes WHERE id = ?1", [key])?;
            effects.erased += run(db, "DELETE FROM records WHERE id = ?1", [key])?;
            effects.written.push(Written::Erased(id));
        }
    }
    append(db, events, effects)?;
    Ok(Committed::Done)
}

/// What stands in the way of a commit. Looked for before anything is written.
fn obstacle(
    db: &Transaction<'_>,
    id: ElicitationId,
    take: &[Slot],
    join: &[Quota],
) -> Result<Option<Committed>, rusqlite::Error> {
    for slot in take.iter().filter(|slot| slot.required) {
        let holder: Option<[u8; 16]> = db
            .prepare_cached("SELECT id FROM slots WHERE tag = ?1")?
            .query_row([slot.tag.0], |row| row.get(0))
            .optional()?;
        if let Some(holder) = holder.map(ElicitationId::from_bytes).filter(|holder| *holder != id) {
            return Ok(Some(Committed::Taken(holder)));
        }
    }
    for quota in join {
        let count: Option<u64> = db
            .prepare_cached("SELECT count FROM counts WHERE tag = ?1")?
            .query_row([quota.tag.0], |row| row.get(0))
            .optional()?;
        if count.unwrap_or(0) >= quota.limit {
            return Ok(Some(Committed::Full(quota.tag)));
        }
    }
    Ok(None)
}

fn free(
    db: &Transaction<'_>,
    id: ElicitationId,
    slots: &[Tag],
    quotas: &[Tag],
) -> Result<(), rusqlite::Error> {
    for tag in slots {
        run(db, "DELETE FROM slots WHERE tag = ?1 AND id = ?2", params![tag.0, id.as_bytes()])?;
    }
    for tag in quotas {
        run(db, "UPDATE counts SET count = count - 1 WHERE tag = ?1", [tag.0])?;
        run(db, "DELETE FROM counts WHERE tag = ?1 AND count <= 0", [tag.0])?;
    }
    Ok(())
}

fn append(db: &Transaction<'_>, events: Vec<Vec<u8>>, effects: &mut Effects) -> Result<(), rusqlite::Error> {
    if events.is_empty() {
        return Ok(());
    }
    let (mut number, mut hash) = match effects.last {
        Some(last) => last,
        None => db
            .prepare_cached("SELECT number, hash FROM trail ORDER BY number DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
            .unwrap_or_default(),
    };
    for event in events {
        number += 1;
        hash = entry_hash(&hash, number, &event);
        run(db, "INSERT INTO trail VALUES (?1, ?2, ?3)", params![number, event, hash])?;
    }
    effects.last = Some((number, hash));
    Ok(())
}

/// The entry after these still says what it follows. The last one stays: the next follows it.
fn cut_trail(db: &Transaction<'_>, up_to: u64) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO trail_start SELECT 1, number, hash FROM trail
               WHERE number = ?1 AND number < (SELECT MAX(number) FROM trail)
               ON CONFLICT DO UPDATE SET number = excluded.number, hash = excluded.hash";
    if run(db, sql, [up_to])? > 0 {
        run(db, "DELETE FROM trail WHERE number <= ?1", [up_to])?;
    }
    Ok(())
}

fn run(db: &Transaction<'_>, sql: &str, parameters: impl rusqlite::Params) -> Result<usize, rusqlite::Error> {
    db.prepare_cached(sql)?.execute(parameters)
}
