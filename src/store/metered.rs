//! A store whose work is measured: how long each of its operations takes, how many fail, and how many commits came too late.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tracing::Instrument as _;

use super::{Commit, Committed, Entry, Extent, Store, Stored, Unavailable};
use crate::domain::{ElicitationId, Tag, Timestamp};
use crate::telemetry::{self, Stopwatch};

/// The store that does the work, with the measurements around it.
pub struct Metered(pub Arc<dyn Store>);

/// Measures one operation.
async fn measured<T>(
    operation: &'static str,
    work: impl Future<Output = Result<T, Unavailable>>,
) -> Result<T, Unavailable> {
    let stopwatch = Stopwatch::start();
    let result = work.instrument(telemetry::traces::store(operation)).await;
    telemetry::store_did(operation, stopwatch, result.is_ok());
    result
}

#[async_trait]
impl Store for Metered {
    async fn load(&self, id: ElicitationId) -> Result<Option<Stored>, Unavailable> {
        measured("load", self.0.load(id)).await
    }

    async fn find(&self, slot: Tag) -> Result<Option<Stored>, Unavailable> {
        measured("find", self.0.find(slot)).await
    }

    async fn outcome(&self, id: ElicitationId) -> Result<Option<Vec<u8>>, Unavailable> {
        measured("outcome", self.0.outcome(id)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Unavailable> {
        let committed = measured("commit", self.0.commit(commit)).await;
        if let Ok(Committed::Conflict) = committed {
            telemetry::store_conflict();
        }
        committed
    }

    async fn put_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        measured("put_visit", self.0.put_visit(tag, sealed, now, until)).await
    }

    async fn renew_visit(
        &self,
        tag: Tag,
        sealed: Vec<u8>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Unavailable> {
        measured("renew_visit", self.0.renew_visit(tag, sealed, now, until)).await
    }

    async fn visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        measured("visit", self.0.visit(tag, now)).await
    }

    async fn take_visit(&self, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, Unavailable> {
        measured("take_visit", self.0.take_visit(tag, now)).await
    }

    async fn append(&self, events: Vec<Vec<u8>>) -> Result<(), Unavailable> {
        measured("append", self.0.append(events)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        measured("due", self.0.due(now, limit)).await
    }

    async fn postpone(&self, stored: &Stored, due: Timestamp) -> Result<(), Unavailable> {
        measured("postpone", self.0.postpone(stored, due)).await
    }

    async fn scan(&self, after: Option<ElicitationId>, limit: usize) -> Result<Vec<Stored>, Unavailable> {
        measured("scan", self.0.scan(after, limit)).await
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        measured("entries", self.0.entries(after, limit)).await
    }

    async fn cut_trail(&self, up_to: u64) -> Result<(), Unavailable> {
        measured("cut_trail", self.0.cut_trail(up_to)).await
    }

    async fn trail(&self) -> Result<Extent, Unavailable> {
        measured("trail", self.0.trail()).await
    }

    async fn agree_on_key(
        &self,
        sealing: &str,
        known: &[String],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<String>, Unavailable> {
        measured("agree_on_key", self.0.agree_on_key(sealing, known, now, until)).await
    }

    async fn chain(&self, for_at_most: Duration) -> Result<(), Unavailable> {
        self.0.chain(for_at_most).await
    }

    async fn tend(&self) -> Result<bool, Unavailable> {
        measured("tend", self.0.tend()).await
    }

    async fn ping(&self) -> Result<(), Unavailable> {
        measured("ping", self.0.ping()).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
