//! The embedded store: SQLite in WAL mode, every commit on disk before it is answered.
//!
//! One thread writes and commits together what has queued up (`writer`); a few threads read beside it
//! (`reader`), for what is not among the records written lately (`recent`). Callers wait on channels, so no worker of the service is ever blocked.

mod reader;
mod recent;
mod schema;
mod writer;

use std::path::Path;

use async_trait::async_trait;
use crossbeam_channel::Sender;
use tokio::sync::oneshot;

pub use schema::OpenError;

use super::{Commit, Committed, Entry, Extent, Store, Stored, Tag, Unavailable};
use crate::domain::{ElicitationId, Timestamp};
use reader::Read;
use recent::Recent;
use writer::{Job, Order};

/// The embedded store.
pub struct Sqlite {
    // Dropped in this order: readers end, the writer ends, and only then may another process open the file.
    reads: Option<Sender<Read>>,
    orders: Option<Sender<Order>>,
    recent: Recent,
    threads: Vec<std::thread::JoinHandle<()>>,
    _lock: Option<schema::Lock>,
}

/// How many threads read.
const READERS: usize = 2;

impl Sqlite {
    /// Opens the database at `path` for this process alone; makes it if it is missing.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let lock = schema::lock(path)?;
        let recent = Recent::new();
        let (orders, thread) = writer::start(schema::writer(path)?, recent.clone());
        let mut store =
            Self { reads: None, orders: Some(orders), recent, threads: vec![thread], _lock: Some(lock) };
        store.start_readers(path)?;
        Ok(store)
    }

    /// Opens the database at `path` to read, also while another process has it open. Every write is refused.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        // Without a writer nothing is ever noted, and every read is from the file.
        let mut store =
            Self { reads: None, orders: None, recent: Recent::new(), threads: Vec::new(), _lock: None };
        store.start_readers(path)?;
        Ok(store)
    }

    fn start_readers(&mut self, path: &Path) -> Result<(), OpenError> {
        let (reads, queue) = crossbeam_channel::unbounded();
        for _ in 0..READERS {
            self.threads.push(reader::start(schema::reader(path)?, queue.clone()));
        }
        self.reads = Some(reads);
        Ok(())
    }

    async fn read<T>(&self, read: impl FnOnce(reader::Reply<T>) -> Read) -> Result<T, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let sent = self.reads.as_ref().is_some_and(|reads| reads.send(read(reply)).is_ok());
        if !sent {
            return Err(gone());
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn write<T>(&self, job: impl FnOnce(writer::Reply<T>) -> Job) -> Result<T, Unavailable> {
        let orders =
            self.orders.as_ref().ok_or_else(|| Unavailable("it was opened to read only".to_owned()))?;
        let (reply, answer) = oneshot::channel();
        if orders.send(Order::Write(job(reply))).is_err() {
            return Err(gone());
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.reads = None;
        self.orders = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn gone() -> Unavailable {
    Unavailable("it could not do this; the log says why".to_owned())
}

#[async_trait]
impl Store for Sqlite {
    async fn load(&self, id: ElicitationId) -> Result<Option<Stored>, Unavailable> {
        match self.recent.get(id) {
            Some(stored) => Ok(Some(stored)),
            None => self.read(|reply| Read::Load(id, reply)).await,
        }
    }

    async fn find(&self, slot: Tag) -> Result<Option<Stored>, Unavailable> {
        self.read(|reply| Read::Find(slot, reply)).await
    }

    async fn outcome(&self, id: ElicitationId) -> Result<Option<Vec<u8>>, Unavailable> {
        self.read(|reply| Read::Outcome(id, reply)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Unavailable> {
        self.write(|reply| Job::Commit(Box::new(commit), reply)).await
    }

    async fn put_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        self.write(|reply| Job::PutVisit { tag, sealed, now, until, reply }).await
    }

    async fn renew_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        _now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        self.write(|reply| Job::RenewVisit { tag, sealed, until, reply }).await
    }

    async fn visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        self.read(|reply| Read::Visit(tag, now, reply)).await
    }

    async fn take_visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        self.write(|reply| Job::TakeVisit { tag, now, reply }).await
    }

    async fn append(&self, events: Vec<Vec<u8>>) -> Result<(), Unavailable> {
        self.write(|reply| Job::Append(events, reply)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        self.read(|reply| Read::Due(now, limit, reply)).await
    }

    async fn postpone(&self, stored: &Stored, due: Timestamp) -> Result<(), Unavailable> {
        let (id, version) = (stored.id, stored.version);
        self.write(|reply| Job::Postpone { id, version, due, reply }).await
    }

    async fn scan(&self, after: Option<ElicitationId>, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        self.read(|reply| Read::Scan(after, limit, reply)).await
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        self.read(|reply| Read::Entries(after, limit, reply)).await
    }

    async fn cut_trail(&self, up_to: u64) -> Result<(), Unavailable> {
        self.write(|reply| Job::CutTrail(up_to, reply)).await
    }

    async fn trail(&self) -> Result<Extent, Unavailable> {
        self.read(Read::Trail).await
    }

    async fn ping(&self) -> Result<(), Unavailable> {
        self.write(Job::Ping).await
    }

    async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.orders.as_ref().is_some_and(|orders| orders.send(Order::Close(reply)).is_ok()) {
            let _ = closed.await;
        }
    }
}
