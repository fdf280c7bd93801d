//! The person says no: on the page, or in the MCP client.

use super::open::Guest;
use super::step::{Decision, Needs};
use super::{Client, Error, Gate};
use crate::domain::{Elicitation, ElicitationId, StateName};

impl Gate {
    /// The person declines on the page. Declining what was declined before is no change.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has ended otherwise or is finished, [`Error::Unavailable`].
    pub async fn decline(&self, guest: &Guest) -> Result<(), Error> {
        self.step(guest.id(), guest.actor(), Needs::Record, |found| {
            let theirs = guest.take(found.elicitation)?;
            if theirs.elicitation().state().name() == StateName::Declined {
                return Ok(Decision::Stay(()));
            }
            Ok(Decision::change(theirs.decline(found.now)?, ()))
        })
        .await
    }

    /// The MCP client answered that the person declined.
    pub(super) async fn decline_by_client(
        &self,
        client: &Client,
        id: ElicitationId,
    ) -> Result<Elicitation, Error> {
        self.step_of_client(client, id, |found| {
            let declined = found.elicitation.decline(found.now)?;
            Ok(Decision::change(declined.clone(), declined))
        })
        .await
    }
}
