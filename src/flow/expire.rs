//! What time alone does: elicitations expire, outcomes and old records go.
//!
//! Every reader applies the time by itself, so nothing here is needed for an answer to be right. It puts on
//! record what has happened, and it removes bytes.

use std::time::Duration;

use futures_util::future::join;
use futures_util::{StreamExt as _, stream};

use super::keys::KeysError;
use super::record::{Held, Record};
use super::step::{Change, Decision, Marks, Needs};
use super::{Error, Gate};
use crate::domain::{Actor, ElicitationId};
use crate::store::{Commit, Committed, Expect, Stored, Write};

/// How many due records are taken at once.
const BATCH: usize = 512;
/// How long one turn lasts: shorter than a store's lease.
const TURN: Duration = Duration::from_secs(2);
/// How long a record that cannot be opened is left alone.
const POSTPONED: Duration = Duration::from_hours(1);

impl Gate {
    /// Does what is due. Returns how many records were due, up to a number that is done at once.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn sweep(&self) -> Result<usize, Error> {
        let due = self.store.due(self.now(), BATCH).await?;
        let count = due.len();
        let mut results =
            stream::iter(due.into_iter().map(|stored| self.tidy(stored))).buffer_unordered(BATCH);
        // One that fails does not keep the others from their turn.
        let mut failed = Ok(count);
        while let Some(result) = results.next().await {
            failed = failed.and_then(|count| result.map(|()| count));
        }
        failed
    }

    /// What is to be done about once a second: the store's own housekeeping, and, if it is for this instance to do, what
    /// is due, for a few seconds at most. Returns whether some may be left, so that it is to be done again at once.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn tend(&self) -> Result<bool, Error> {
        match self.look_at_keys().await {
            Ok(()) => {}
            // Who cannot open what others sealed leaves the sweeping to them. The trail needs no key.
            Err(KeysError::Missing(_)) => {
                self.store.chain(TURN).await?;
                return Ok(false);
            }
            Err(KeysError::Unavailable(error)) => self.keys.fits().map_err(|_| error)?,
        }
        if !self.store.tend().await? {
            return Ok(false);
        }
        self.care_for_trail().await?;
        // Neither keeps the other from its turn, however much there is to do.
        let (chained, left) = join(self.store.chain(TURN), self.sweep_for(TURN)).await;
        if let Err(error) = chained {
            tracing::error!(%error, "audit events wait on their way to the trail; it will be tried again");
        }
        left
    }

    /// Sweeps until nothing is due or the time is up; whether something may be left.
    async fn sweep_for(&self, at_most: Duration) -> Result<bool, Error> {
        let end = self.now() + at_most;
        while self.sweep().await? == BATCH {
            if self.now() >= end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts the expiry of one elicitation on record, if it is so.
    pub(super) async fn expire(&self, id: ElicitationId) -> Result<(), Error> {
        let result = self
            .step(id, Actor::Clock, Needs::Record, |found| {
                // `step` has applied the time; committing what it found is all there is to do.
                Ok(Decision::change(found.elicitation, ()))
            })
            .await;
        match result {
            Err(Error::NotFound) => Ok(()),
            other => other,
        }
    }

    async fn tidy(&self, stored: Stored) -> Result<(), Error> {
        let now = self.now();
        let record = match self.open_held(&stored) {
            Ok(Held::Elicitation(record)) => *record,
            Ok(Held::Kept(record)) => return self.tidy_kept(&stored, *record).await,
            Err(error) => {
                tracing::error!(%error, "a record that is due cannot be opened; it is left for an hour");
                return Ok(self.store.postpone(&stored, now + POSTPONED).await?);
            }
        };
        if record.filing.undo.due.is_some_and(|due| due <= now) {
            return self.take_undo(&stored).await;
        }
        if record.filing.notices.due().is_some_and(|due| due <= now) {
            return self.take_notices(&stored, record).await;
        }
        let (mut elicitation, orders) = record.elicitation.clone().settle(now).look_at_orders(now);
        let ended = elicitation.state().name().is_terminal();
        let unneeded = self.lost_tokens(&record, &elicitation, now).await?;
        // What is still to be revoked or told elsewhere is not forgotten, and no order that may be paid or must be paid back.
        let filing = &record.filing;
        let told = filing.undo.is_empty() && unneeded.is_empty() && !filing.notices.wait();
        let forgotten = told && elicitation.orders_due().is_none();
        let marks = Marks::of(&elicitation);
        let commit = if ended && forgotten && elicitation.due(now, &self.spans) <= now {
            // It may have expired long ago, while nobody was there to say so.
            let events = self.seal_events(&mut elicitation, &Actor::Clock, None, now)?;
            erase(&stored, &record, events)
        } else {
            let change = Change { unneeded, ..Change::from(elicitation) };
            self.prepare(&stored, record, change, &Actor::Clock, now)?
        };
        // On a conflict somebody else changed it: it will be due again when it is.
        if self.store.commit(commit).await? == Committed::Done {
            marks.count();
            // Without room they are due again in a while.
            self.errands.look_at(stored.id, orders);
        }
        self.notify.publish(stored.id);
        Ok(())
    }
}

/// Retention is over: nothing remains.
fn erase(stored: &Stored, record: &Record, events: Vec<Vec<u8>>) -> Commit {
    let filing = &record.filing;
    let release = filing
        .bindings()
        .chain(filing.idempotencies())
        .chain(filing.attempt)
        .chain(filing.orders.iter().copied());
    let was_live = record.elicitation.state().name().is_live();
    Commit {
        id: stored.id,
        expect: Expect::Version(stored.version),
        write: Write::Erase {
            release: release.collect(),
            leave: if was_live { filing.quotas.to_vec() } else { Vec::new() },
        },
        events,
    }
}
