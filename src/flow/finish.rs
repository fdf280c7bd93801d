//! The person is done: the outcome is there, sealed, and the elicitation completed; or, where nobody knows who it was, a
//! code must come back first.

use std::time::Duration;

use super::open::Guest;
use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::binding::sha256;
use crate::domain::secret::FieldError;
use crate::domain::{Code, Elicitation, ElicitationId, Outcome, Refusal, StateName, Timestamp};
use crate::identity::Browser;
use crate::vault::Lookup;

/// What the person gave.
#[derive(Default)]
pub(super) struct Given {
    /// The outcome; gone once it was taken.
    pub outcome: Option<Outcome>,
    /// Names of the fields whose values lost surrounding white space.
    pub trimmed: Vec<String>,
    /// What the provider calls the account.
    pub account: Option<String>,
}

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
    /// Completes the elicitation of `guest` with what they gave in one render of its page, and keeps it where it is to be kept.
    /// The outcome is taken from `given` if it is this one that counts.
    pub(super) async fn finish(
        &self,
        guest: &Guest,
        render: &str,
        given: &mut Given,
    ) -> Result<Submitted, Error> {
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
        let mut counts = false;
        let submitted = self
            .step(guest.id(), guest.actor(), Needs::Record, |found| {
                counts = false;
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
                // A step may be decided more than once.
                let outcome = given.outcome.clone().ok_or(Refusal::Ended(state))?;
                let (theirs, trimmed) = (theirs.as_account(given.account.clone()), given.trimmed.clone());
                let (elicitation, answer) = if guest.is_unknown() {
                    let (code, mark) = (Code::fresh(&*self.random), sha256(mark.as_bytes()));
                    let unconfirmed = theirs.finish(trimmed, code, mark, found.now)?;
                    let answer = finished(&unconfirmed, found.now);
                    (unconfirmed, answer)
                } else {
                    (theirs.complete(trimmed, found.now, &self.spans)?, Submitted::Completed)
                };
                counts = true;
                let change = Change { outcome: Some(outcome), ..Change::from(elicitation) };
                Ok(Decision::change(change, answer))
            })
            .await?;
        if counts {
            given.outcome = None;
            self.ensure_kept(guest.id()).await?;
        }
        Ok(submitted)
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
