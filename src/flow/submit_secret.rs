//! The person submits a secret form.

use super::finish::{Given, Submitted};
use super::open::Guest;
use super::{Error, Gate};
use crate::domain::{Outcome, Request};

impl Gate {
    /// Takes what the person entered in the form of one render of the page; `entered` gives the value for a field's name.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what asks for no secret, [`Error::Refused`] if the elicitation has ended,
    /// [`Error::Unavailable`] if nothing could be kept.
    pub async fn submit_secret<'a>(
        &self,
        guest: &Guest,
        render: &str,
        entered: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Submitted, Error> {
        let Request::Secret(request) = &guest.elicitation().terms().request else {
            return Err(Error::NotFound);
        };
        let mut given = match request.accept(entered) {
            Ok(accepted) => Given {
                outcome: Some(Outcome::Secret(accepted.values)),
                trimmed: accepted.trimmed,
                account: None,
            },
            // Whoever comes too late is told that, and not what is wrong with their form.
            Err(_) if guest.elicitation().is_answered() => Given::default(),
            Err(errors) => return Ok(Submitted::Rejected(errors)),
        };
        self.finish(guest, render, &mut given).await
    }
}
