//! An operator ends one elicitation, or all that match.

use std::ops::Add;

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::console::Revoker;
use super::console::query::Query;
use super::search::Filter;
use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::text::{Shape, plain};
use crate::domain::{Actor, Elicitation, ElicitationId, OperatorId, Refusal, StateName};

/// Why an operator revokes; kept on the record and on the audit trail, and never shown to the person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reason(String);

impl Reason {
    /// A reason of one line.
    ///
    /// # Errors
    /// [`crate::domain::Invalid`] at `reason`.
    pub fn new(text: &str) -> Result<Self, crate::domain::Invalid> {
        plain("reason", text, Shape { longest: 200, lines: false }).map(Self)
    }

    /// The same, with who else agreed.
    pub(super) fn agreed_to_by(&self, second: &OperatorId) -> Self {
        Self(format!("{} (agreed to by {second})", self.0))
    }

    /// The operator's words.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.0
    }
}

/// What became of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many were revoked.
    pub revoked: u64,
    /// How many were left because they are paid.
    pub paid: u64,
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { revoked: self.revoked + other.revoked, paid: self.paid + other.paid }
    }
}

/// How many are revoked at the same time, so that the store can commit them together, and others are served between.
const AT_ONCE: usize = 32;
/// How many matches are looked up before they are revoked.
const PAGE: usize = 1000;

impl Gate {
    /// Revokes one. From the moment that this returns no submission is accepted and no outcome released. What is paid and not
    /// claimed is revoked only with `refund`, and then paid back. Revoking what was revoked before is no change.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Refused`] if it has ended otherwise or needs a refund, [`Error::Unavailable`].
    pub async fn revoke(
        &self,
        revoker: Revoker<'_>,
        id: ElicitationId,
        reason: &Reason,
        refund: bool,
    ) -> Result<Elicitation, Error> {
        let ended = self.step(id, Actor::Operator(revoker.id().clone()), Needs::Record, |found| {
            if found.elicitation.state().name() == StateName::Revoked {
                return Ok(Decision::Stay(found.elicitation));
            }
            let ended =
                found.elicitation.revoke(revoker.id().clone(), reason.0.clone(), refund, found.now)?;
            let change = Change { reason: Some(reason.0.clone()), ..Change::from(ended.clone()) };
            Ok(Decision::change(change, ended))
        });
        let ended = ended.await?;
        self.drop_kept_of(&ended).await?;
        Ok(ended)
    }

    /// Revokes all that match and have not ended; those that are paid and not claimed only with `refund`.
    ///
    /// # Errors
    /// [`Error::SecondOperator`] if there are more than one operator may revoke alone; [`Error::Unavailable`]: some may have
    /// been revoked by then.
    pub async fn revoke_matching(
        &self,
        revoker: Revoker<'_>,
        filter: &Filter,
        reason: &Reason,
        refund: bool,
    ) -> Result<Tally, Error> {
        self.one_is_enough(&Query::Links(filter.clone())).await?;
        let (mut after, mut sum) = (None, Tally::default());
        loop {
            let (tally, next) = self.revoke_part(revoker, filter, after, PAGE, reason, refund).await?;
            sum = sum + tally;
            after = next;
            if after.is_none() {
                return Ok(sum);
            }
        }
    }

    /// The same for the next `limit` after the id `after`. Returns what became of them, and where to go on.
    pub(super) async fn revoke_part(
        &self,
        revoker: Revoker<'_>,
        filter: &Filter,
        after: Option<ElicitationId>,
        limit: usize,
        reason: &Reason,
        refund: bool,
    ) -> Result<(Tally, Option<ElicitationId>), Error> {
        let page = self.search(&filter.that_can_be_revoked(), after, limit).await?;
        let mut results = stream::iter(page.found.into_iter().map(|elicitation| async move {
            match self.revoke(revoker, elicitation.id(), reason, refund).await {
                Ok(_) => Ok(Tally { revoked: 1, paid: 0 }),
                Err(Error::Refused(Refusal::RefundNeeded)) => Ok(Tally { revoked: 0, paid: 1 }),
                // It ended, or was erased, on its own a moment ago.
                Err(Error::Refused(Refusal::Ended(_)) | Error::NotFound) => Ok(Tally::default()),
                Err(error) => Err(error),
            }
        }))
        .buffer_unordered(AT_ONCE);
        let mut sum = Tally::default();
        while let Some(result) = results.next().await {
            sum = sum + result?;
        }
        Ok((sum, page.next))
    }
}
