//! An operator ends one elicitation, or all that match.

use futures_util::{StreamExt as _, stream};

use super::search::Filter;
use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::text::{Shape, plain};
use crate::domain::{Actor, Elicitation, ElicitationId, OperatorId, Refusal, StateName};

/// Why an operator revokes; kept on the record and on the audit trail, and never shown to the person.
#[derive(Debug, Clone)]
pub struct Reason(String);

impl Reason {
    /// A reason of one line.
    ///
    /// # Errors
    /// [`crate::domain::Invalid`] at `reason`.
    pub fn new(text: &str) -> Result<Self, crate::domain::Invalid> {
        plain("reason", text, Shape { longest: 200, lines: false }).map(Self)
    }

    /// The operator's words.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.0
    }
}

/// How many are revoked at the same time, so that the store can commit them together.
const AT_ONCE: usize = 64;
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
        operator: &OperatorId,
        id: ElicitationId,
        reason: &Reason,
        refund: bool,
    ) -> Result<Elicitation, Error> {
        let revoked = self.step(id, Actor::Operator(operator.clone()), Needs::Record, |found| {
            if found.elicitation.state().name() == StateName::Revoked {
                return Ok(Decision::Stay(found.elicitation));
            }
            let revoked = found.elicitation.revoke(operator.clone(), reason.0.clone(), refund, found.now)?;
            let change = Change { reason: Some(reason.0.clone()), ..Change::from(revoked.clone()) };
            Ok(Decision::change(change, revoked))
        });
        let revoked = revoked.await?;
        self.drop_kept_of(&revoked).await?;
        Ok(revoked)
    }

    /// Revokes all that match and have not ended; those that are paid and not claimed only with `refund`. Returns how many it
    /// revoked, and how many it left because they are paid.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; some may have been revoked by then.
    pub async fn revoke_matching(
        &self,
        operator: &OperatorId,
        filter: &Filter,
        reason: &Reason,
        refund: bool,
    ) -> Result<(u64, u64), Error> {
        let (mut after, mut revoked, mut paid) = (None, 0, 0);
        loop {
            let page = self.search(filter, after, PAGE).await?;
            let mut results = stream::iter(page.found.into_iter().map(|elicitation| async move {
                match self.revoke(operator, elicitation.id(), reason, refund).await {
                    Ok(_) => Ok((1, 0)),
                    Err(Error::Refused(Refusal::RefundNeeded)) => Ok((0, 1)),
                    // It ended, or was erased, on its own a moment ago.
                    Err(Error::Refused(Refusal::Ended(_)) | Error::NotFound) => Ok((0, 0)),
                    Err(error) => Err(error),
                }
            }))
            .buffer_unordered(AT_ONCE);
            while let Some(result) = results.next().await {
                let (ended, left) = result?;
                revoked += ended;
                paid += left;
            }
            after = page.next;
            if after.is_none() {
                return Ok((revoked, paid));
            }
        }
    }
}
