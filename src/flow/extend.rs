//! The person asks for more time.

use super::open::Guest;
use super::step::{Decision, Needs};
use super::{Error, Gate};

impl Gate {
    /// Gives the person their first span again, up to the longest life of an elicitation.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has ended or has all the time it can have, [`Error::Unavailable`].
    pub async fn extend(&self, guest: &Guest) -> Result<(), Error> {
        self.step(guest.id(), guest.actor(), Needs::Record, |found| {
            let extended = guest.take(found.elicitation)?.extend(&self.spans)?;
            Ok(Decision::change(extended, ()))
        })
        .await
    }
}
