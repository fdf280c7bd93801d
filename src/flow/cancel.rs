//! The handler, or the MCP client, calls an elicitation off.

use super::step::{Decision, Found, Needs};
use super::{Client, Error, Gate};
use crate::domain::{Actor, Elicitation, ElicitationId, StateName};

impl Gate {
    /// Cancels an elicitation of `client`. Cancelling what was cancelled before is no change.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Refused`] if it has ended otherwise or is finished, [`Error::Unavailable`].
    pub async fn cancel(&self, client: &Client, id: ElicitationId) -> Result<Elicitation, Error> {
        self.step_of_client(client, id, |found| {
            if found.elicitation.state().name() == StateName::Cancelled {
                return Ok(Decision::Stay(found.elicitation));
            }
            let cancelled = found.elicitation.cancel(found.now)?;
            Ok(Decision::change(cancelled.clone(), cancelled))
        })
        .await
    }

    /// As [`Gate::cancel`], for a function pointer in `round`.
    pub(super) async fn cancel_by_client(
        &self,
        client: &Client,
        id: ElicitationId,
    ) -> Result<Elicitation, Error> {
        self.cancel(client, id).await
    }

    /// A step that only the elicitation's own client may take; for any other it does not exist.
    pub(super) async fn step_of_client<T>(
        &self,
        client: &Client,
        id: ElicitationId,
        mut decide: impl FnMut(Found) -> Result<Decision<T>, Error>,
    ) -> Result<T, Error> {
        self.step(id, Actor::Client(client.id.clone()), Needs::Record, |found| {
            if found.elicitation.terms().client != client.id {
                return Err(Error::NotFound);
            }
            decide(found)
        })
        .await
    }
}
