//! The person submits a secret form.

use std::time::Duration;

use super::open::Guest;
use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::binding::sha256;
use crate::domain::secret::{Accepted, FieldError};
use crate::domain::{Code, Elicitation, ElicitationId, Outcome, Refusal, Request, StateName, Timestamp};
use crate::identity::Browser;
use crate::vault::Lookup;

/// What a submission came to.
#[derive(Debug)]
pub enum Submitted {
    /// The outcome is there: from this submission, or from the same form submitted before.
    Completed,
    /// The same, and nobody knows who it was: this code must come back before the outcome counts.
    Finished {
        /// The code, for this browser.
        code: Code,
        /// How long it counts.
        left: Duration,
        /// What tells that browser again, if it has not got it yet: a cookie, name and value.
        cookie: Option<(String, String)>,
    },
    /// Somebody else has answered before, who is not known either.
    AnsweredElsewhere,
    /// Some fields need another look.
    Rejected(Vec<FieldError>),
}

impl Gate {
    /// Takes what the person entered in the form of one render of the page; `entered` gives the value for a field's name.
    ///
    /// # Errors
    /// [`Error::Refused`] if the elicitation has ended, [`Error::Unavailable`] if nothing could be kept.
    pub async fn submit_secret<'a>(
        &self,
        guest: &Guest,
        render: &str,
        entered: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Submitted, Error> {
        let Request::Secret(request) = &guest.elicitation().terms().request;
        // Whoever comes too late is told that, and not what is wrong with their form.
        let late = guest.elicitation().is_answered();
        let mut accepted = match request.accept(entered) {
            Ok(accepted) => Some(accepted),
            Err(_) if late => None,
            Err(errors) => return Ok(Submitted::Rejected(errors)),
        };
        // The same for the same form sent twice, and like no other.
        let marks: Vec<_> =
            self.ring.tags(Lookup::Render(guest.id(), render)).map(|tag| tag.to_string()).collect();
        let mark = marks.first().cloned().unwrap_or_default();
        let finished = |elicitation: &Elicitation, now: Timestamp| {
            let mark = marks.iter().find(|mark| elicitation.was_answered_in(sha256(mark.as_bytes())));
            if mark.is_none() && !guest.finished_here() {
                return Submitted::AnsweredElsewhere;
            }
            match elicitation.awaits_code() {
                Some(code) => Submitted::Finished {
                    code: code.clone(),
                    left: now.until(elicitation.expires_at()),
                    cookie: mark.map(|mark| (code_cookie(elicitation.id()), mark.clone())),
                },
                None => Submitted::Completed,
            }
        };
        self.step(guest.id(), guest.actor(), Needs::Record, |found| {
            let theirs = guest.take(found.elicitation)?;
            let state = theirs.elicitation().state().name();
            let settled = state.is_terminal() && !matches!(state, StateName::Claimed);
            if theirs.elicitation().is_answered() && !settled {
                return Ok(Decision::Stay(finished(theirs.elicitation(), found.now)));
            }
            if matches!(state, StateName::Completed | StateName::Claimed) {
                // A double click: the first submission counts.
                return Ok(Decision::Stay(Submitted::Completed));
            }
            let Some(Accepted { values, trimmed }) = accepted.take() else {
                return Err(Refusal::Ended(state).into());
            };
            let (elicitation, answer) = if guest.is_unknown() {
                let unconfirmed =
                    theirs.finish(trimmed, Code::fresh(&*self.random), sha256(mark.as_bytes()), found.now)?;
                let answer = finished(&unconfirmed, found.now);
                (unconfirmed, answer)
            } else {
                (theirs.complete(trimmed, found.now, &self.spans)?, Submitted::Completed)
            };
            let change = Change { outcome: Some(Outcome::Secret(values)), ..Change::from(elicitation) };
            Ok(Decision::change(change, answer))
        })
        .await
    }
}

/// The cookie that tells the browser whose form it was that waits for its code.
fn code_cookie(id: ElicitationId) -> String {
    format!("__Host-sidegate-code-{id}")
}

/// Whether it was this browser that answered, where nobody knows who that was.
pub(super) fn finished_in(elicitation: &Elicitation, browser: &Browser<'_>) -> bool {
    elicitation.is_answered()
        && (browser.cookie)(&code_cookie(elicitation.id()))
            .is_some_and(|mark| elicitation.was_answered_in(sha256(mark.as_bytes())))
}
