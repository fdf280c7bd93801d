//! Commits that count only when they are on the server's disk (`store.durability = "fsync"`).
//!
//! `WAITAOF` holds up its whole connection until the disk has what was written on it, so these commits have a connection
//! of their own; what comes while one batch waits makes the next.

use redis::{Pipeline, Value, cmd};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;

use super::Unavailable;
use super::scripts::{Call, is_unknown};
use crate::redis_client::{Durability, Error, RedisClient, Settings};

/// The way to the server for commits that must be on its disk.
pub(super) struct Durable {
    client: RedisClient,
    queue: mpsc::Sender<Job>,
}

struct Job {
    by_hash: redis::Cmd,
    by_text: redis::Cmd,
    reply: oneshot::Sender<Result<Value, Error>>,
}

/// How many commits wait for the disk together: all that came while those before them waited. More are refused.
const BATCH: usize = 8_192;
/// How long the server may take to write, in milliseconds: less than a connection waits for an answer.
const WRITE_TIME: u64 = 2_000;

impl Durable {
    /// What the settings demand, if anything.
    pub(super) fn start(settings: &Settings) -> Option<Self> {
        if settings.demands.durability != Durability::Fsync {
            return None;
        }
        let client = RedisClient::start(settings.clone());
        let (queue, jobs) = mpsc::channel(BATCH);
        tokio::spawn(work(client.clone(), jobs));
        Some(Self { client, queue })
    }

    /// Whether the server must be waited for; otherwise it answers only what is on its disk.
    pub(super) fn waits(&self, other: &RedisClient) -> bool {
        other.report().or_else(|| self.client.report()).is_none_or(|report| report.waits())
    }

    /// Runs a script, and returns when what it wrote is on the disk.
    pub(super) async fn run(&self, call: &Call<'_>) -> Result<i64, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let job = Job { by_hash: call.by_hash(), by_text: call.by_text(), reply };
        self.queue.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Unavailable("too many steps wait for the server's disk".to_owned()),
            TrySendError::Closed(_) => gone(),
        })?;
        super::read(answer.await.map_err(|_| gone())??)
    }
}

async fn work(client: RedisClient, mut jobs: mpsc::Receiver<Job>) {
    let mut batch = Vec::new();
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        let unknown = carry_out(&client, batch.drain(..), |job| &job.by_hash).await;
        let unknown = carry_out(&client, unknown.into_iter(), |job| &job.by_text).await;
        for job in unknown {
            let _ = job.reply.send(Err(Error::Unreachable("the server forgets its scripts".to_owned())));
        }
    }
}

/// Carries out these jobs, waits for the disk, and replies; returns those whose script the server does not know.
async fn carry_out(
    client: &RedisClient,
    jobs: impl Iterator<Item = Job>,
    command: impl Fn(&Job) -> &redis::Cmd,
) -> Vec<Job> {
    let jobs: Vec<_> = jobs.collect();
    if jobs.is_empty() {
        return jobs;
    }
    let mut unknown = Vec::new();
    let results = run(client, jobs.iter().map(command)).await;
    for (index, job) in jobs.into_iter().enumerate() {
        let result = match &results {
            Ok(results) => results.get(index).cloned().unwrap_or_else(|| Err(short())),
            Err(error) => Err(error.clone()),
        };
        match result {
            Err(error) if is_unknown(&error) => unknown.push(job),
            result => drop(job.reply.send(result)),
        }
    }
    unknown
}

/// Runs these commands and waits for the disk.
async fn run(
    client: &RedisClient,
    commands: impl Iterator<Item = &redis::Cmd>,
) -> Result<Vec<Result<Value, Error>>, Error> {
    let mut pipeline = Pipeline::new();
    pipeline.ignore_errors();
    for command in commands {
        pipeline.add_command(command.clone());
    }
    pipeline.add_command(cmd("WAITAOF").arg(1).arg(0).arg(WRITE_TIME).clone());
    let mut results = client.run_all(&pipeline).await?;
    let written = results.pop().ok_or_else(short)??;
    match redis::from_redis_value::<(u64, u64)>(written) {
        Ok((here, _)) if here >= 1 => Ok(results),
        _ => Err(Error::Unreachable(
            "the server did not confirm that it is on its disk; it may be there, try again".to_owned(),
        )),
    }
}

fn gone() -> Unavailable {
    Unavailable("the connection for durable commits is gone".to_owned())
}

fn short() -> Error {
    Error::Unreachable("Redis gave fewer answers than there were commands".to_owned())
}
