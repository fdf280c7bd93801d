//! Many are revoked at once: counted first, agreed to by a second operator where that is asked for, done in parts, and told how
//! far it is. What is left of one that was cut off can be gone on with.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::query::Query;
use super::{Operator, Revoker};
use crate::domain::{ElicitationId, OperatorId, Timestamp};
use crate::flow::revoke::{Reason, Tally};
use crate::flow::visit::Visit;
use crate::flow::{Error, Gate};

/// Many that are, or were, or are to be revoked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bulk {
    /// Which.
    pub query: Query,
    /// Why.
    pub reason: Reason,
    /// Whether what is paid is to be paid back.
    pub refund: bool,
    /// Who wants it.
    pub by: OperatorId,
    /// How many there were when they asked.
    pub count: u64,
    /// How far it is.
    pub stage: Stage,
}

/// How far it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A second operator must agree.
    Proposed,
    /// One did not.
    Rejected(OperatorId),
    /// It is being done.
    Running(Progress),
    /// It is done.
    Done(Progress),
}

/// What was done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Progress {
    /// Who agreed, if somebody had to.
    pub with: Option<OperatorId>,
    /// What became of those that were looked at.
    pub tally: Tally,
    /// Whether it was stopped because there were more than one operator may revoke.
    pub stopped: bool,
    /// Where to go on.
    after: Option<ElicitationId>,
    /// When it last went on.
    beat: Timestamp,
}

impl Visit for Bulk {
    const KIND: &'static str = "bulk";
}

/// How long it can be looked at.
const REMEMBERED: Duration = Duration::from_hours(24);
/// After how long without a sign of life it may be gone on with.
const DEAD: Duration = Duration::from_secs(30);
/// How many are revoked between two signs of life.
const PART: usize = 250;
/// How many are counted at most.
pub const COUNTED: u64 = 1_000_000;

impl Bulk {
    /// Whether this operator may agree to it, or not: whoever wants it may not.
    #[must_use]
    pub fn may_decide(&self, operator: &Operator) -> bool {
        matches!(self.stage, Stage::Proposed) && operator.revoker().is_ok() && self.by != operator.id
    }

    /// Whether whatever did it has died.
    #[must_use]
    pub fn is_stuck(&self, now: Timestamp) -> bool {
        matches!(&self.stage, Stage::Running(progress) if progress.beat + DEAD <= now)
    }
}

impl Progress {
    fn begun(with: Option<OperatorId>, now: Timestamp) -> Self {
        Self { with, tally: Tally::default(), stopped: false, after: None, beat: now }
    }
}

impl Gate {
    /// How many match a query and have not ended.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn count(&self, query: &Query) -> Result<u64, Error> {
        let (mut after, mut count) = (None, 0_usize);
        loop {
            let (found, next) = match query {
                Query::Links(filter) => {
                    let page = self.search(&filter.that_can_be_revoked(), after, PART).await?;
                    (page.found.len(), page.next)
                }
                Query::Kept(filter) => {
                    let page = self.search_kept(filter, after, PART).await?;
                    (page.found.len(), page.next)
                }
            };
            count += found;
            after = next;
            let count = u64::try_from(count).unwrap_or(COUNTED);
            if after.is_none() || count >= COUNTED {
                return Ok(count);
            }
        }
    }

    /// Whether that many may be revoked by one operator alone.
    #[must_use]
    pub fn one_may_revoke(&self, count: u64) -> bool {
        self.console.two_persons_above.is_none_or(|most| count <= most)
    }

    /// Refuses to have one operator alone revoke more than one may.
    pub(in crate::flow) async fn one_is_enough(&self, query: &Query) -> Result<(), Error> {
        let Some(most) = self.console.two_persons_above else { return Ok(()) };
        if self.one_may_revoke(self.count(query).await?) { Ok(()) } else { Err(Error::SecondOperator(most)) }
    }

    /// An operator wants all that match to be revoked. It is to be done at once ([`Gate::run_bulk`]) unless a second operator
    /// must agree. Returns its name, and whether it is to be done now.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn begin_bulk(
        &self,
        revoker: Revoker<'_>,
        query: Query,
        reason: Reason,
        refund: bool,
    ) -> Result<(String, bool), Error> {
        let count = self.count(&query).await?;
        let now = self.one_may_revoke(count);
        let stage = if now { Stage::Running(Progress::begun(None, self.now())) } else { Stage::Proposed };
        let name = self.fresh_name();
        let bulk = Bulk { query, reason, refund, by: revoker.id().clone(), count, stage };
        self.remember(&name, &bulk, REMEMBERED).await?;
        Ok((name, now))
    }

    /// How far it is.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn bulk(&self, name: &str) -> Result<Bulk, Error> {
        self.recall::<Bulk>(name).await?.ok_or(Error::NotFound)
    }

    /// A second operator agrees, or does not. Returns whether it is to be done now.
    ///
    /// # Errors
    /// [`Error::NotRevoker`] also for whoever wants it themselves, [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn decide_bulk(&self, operator: &Operator, name: &str, agrees: bool) -> Result<bool, Error> {
        if !self.bulk(name).await?.may_decide(operator) {
            return Err(Error::NotRevoker);
        }
        let stage = if agrees {
            Stage::Running(Progress::begun(Some(operator.id.clone()), self.now()))
        } else {
            Stage::Rejected(operator.id.clone())
        };
        Ok(self.move_bulk(name, |bulk| bulk.may_decide(operator).then_some(stage)).await? && agrees)
    }

    /// Whether somebody who wants it to go on lets it: only if whatever did it has died.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn resume_bulk(&self, _revoker: Revoker<'_>, name: &str) -> Result<bool, Error> {
        let now = self.now();
        self.move_bulk(name, |bulk| match &bulk.stage {
            Stage::Running(progress) if bulk.is_stuck(now) => {
                Some(Stage::Running(Progress { beat: now, ..progress.clone() }))
            }
            _ => None,
        })
        .await
    }

    /// Moves it on, if it can be moved on so. Of many who do at once one does.
    async fn move_bulk(&self, name: &str, to: impl FnOnce(&Bulk) -> Option<Stage>) -> Result<bool, Error> {
        let mut bulk = self.take::<Bulk>(name).await?.ok_or(Error::NotFound)?;
        let stage = to(&bulk);
        let moved = stage.is_some();
        bulk.stage = stage.unwrap_or(bulk.stage);
        self.remember(name, &bulk, REMEMBERED).await?;
        Ok(moved)
    }

    /// Does it, part by part, until it is done or the service stops.
    pub async fn run_bulk(&self, name: &str) {
        if let Err(error) = self.work_at_bulk(name).await {
            tracing::error!(%error, "many were to be revoked at once, and that was cut off");
        }
    }

    async fn work_at_bulk(&self, name: &str) -> Result<(), Error> {
        let mut bulk = self.bulk(name).await?;
        let Stage::Running(mut progress) = bulk.stage.clone() else { return Ok(()) };
        // It was a revoker who began it, and may have been another who agreed.
        let revoker = Revoker(&bulk.by);
        let reason = match &progress.with {
            Some(second) => bulk.reason.agreed_to_by(second),
            None => bulk.reason.clone(),
        };
        loop {
            let (tally, next) = match &bulk.query {
                Query::Links(filter) => {
                    self.revoke_part(revoker, filter, progress.after, PART, &reason, bulk.refund).await?
                }
                Query::Kept(filter) => {
                    self.withdraw_part(revoker, filter, progress.after, PART, &reason).await?
                }
            };
            progress.tally = progress.tally + tally;
            progress.after = next;
            progress.beat = self.now();
            // More came since they were counted than one operator may revoke.
            let too_many = progress.with.is_none() && !self.one_may_revoke(progress.tally.revoked);
            progress.stopped = next.is_some() && too_many;
            let done = next.is_none() || too_many;
            let stage = if done { Stage::Done } else { Stage::Running };
            bulk.stage = stage(progress.clone());
            self.renew(name, &bulk, REMEMBERED).await?;
            if done || self.shutdown.is_cancelled() {
                return Ok(());
            }
        }
    }
}
