//! The person submits a secret form.

use super::open::Guest;
use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::secret::{Accepted, FieldError};
use crate::domain::{Actor, Code, Outcome, Refusal, Request, StateName};
use crate::identity::Way;

/// What a submission came to.
#[derive(Debug)]
pub enum Submitted {
    /// The outcome is there: from this submission, or from the same form submitted before.
    Completed,
    /// Some fields need another look.
    Rejected(Vec<FieldError>),
}

impl Gate {
    /// Takes what the person entered; `entered` gives the value for a field's name.
    ///
    /// # Errors
    /// [`Error::Refused`] if the elicitation has ended, [`Error::Unavailable`] if nothing could be kept.
    pub async fn submit_secret<'a>(
        &self,
        guest: &Guest,
        entered: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Submitted, Error> {
        let Request::Secret(request) = &guest.elicitation().terms().request;
        let mut accepted = match request.accept(entered) {
            Ok(accepted) => Some(accepted),
            Err(errors) => return Ok(Submitted::Rejected(errors)),
        };
        self.step(guest.id(), Actor::Person, Needs::Record, |found| {
            let theirs = guest.take(found.elicitation)?;
            let state = theirs.elicitation().state().name();
            let done = theirs.elicitation().awaits_code().is_some();
            if done || matches!(state, StateName::Completed | StateName::Claimed) {
                // A double click: the first submission counts.
                return Ok(Decision::Stay(Submitted::Completed));
            }
            let Some(Accepted { values, trimmed }) = accepted.take() else {
                return Err(Refusal::Ended(state).into());
            };
            let completed = match guest.client().identity.way() {
                Way::Code => theirs.finish(trimmed, Code::fresh(&*self.random), found.now)?,
                _ => theirs.complete(trimmed, found.now, &self.spans)?,
            };
            let change = Change { outcome: Some(Outcome::Secret(values)), ..Change::from(completed) };
            Ok(Decision::change(change, Submitted::Completed))
        })
        .await
    }
}
