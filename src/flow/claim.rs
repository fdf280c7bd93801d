//! The handler claims an outcome, once.

use super::step::{Change, Decision, Needs};
use super::{Client, Error, Gate};
use crate::domain::oauth::Tokens;
use crate::domain::{Actor, Attempt, Binding, Claim, Digest, ElicitationId, Outcome, Refusal, Subject};
use crate::vault::Lookup;

/// An outcome, released.
#[derive(Debug)]
pub struct Claimed {
    /// What the person produced.
    pub outcome: Outcome,
    /// Whether the same attempt had it before.
    pub replay: bool,
}

impl Gate {
    /// Releases the outcome of elicitation `id` to the first attempt; the same attempt may repeat within the
    /// claim window. `attempt` is the caller's name for this try; without one, each call is a try of its own.
    ///
    /// # Errors
    /// [`Error::NotFound`] also for another client's; [`Error::Refused`] with `BindingMismatch`, `NotCompleted`,
    /// `AlreadyClaimed` or `Ended`; [`Error::Unavailable`].
    pub async fn claim(
        &self,
        client: &Client,
        id: ElicitationId,
        subject: Option<Subject>,
        digest: Digest,
        attempt: Option<&str>,
    ) -> Result<Claimed, Error> {
        // A subject that could not be named at issue cannot be the one it is bound to.
        let subject = match subject {
            Some(subject) => subject,
            None => client.subject(None)?,
        };
        let attempt_named = attempt.is_some();
        let attempt = attempt.map_or_else(|| Attempt::fresh(&*self.random), Attempt::named);
        // What is to be kept is kept before anybody has it without its refresh token.
        if let Some(claimed) = self.try_claim(client, id, &subject, digest, (attempt, attempt_named)).await? {
            return Ok(claimed);
        }
        self.ensure_kept(id).await?;
        let claimed = self.try_claim(client, id, &subject, digest, (attempt, attempt_named)).await?;
        claimed.ok_or_else(|| Error::Unavailable("what is to be kept could not be kept".to_owned()))
    }

    /// The same; `None` if its outcome is to be kept and is not yet.
    async fn try_claim(
        &self,
        client: &Client,
        id: ElicitationId,
        subject: &Subject,
        digest: Digest,
        (attempt, attempt_named): (Attempt, bool),
    ) -> Result<Option<Claimed>, Error> {
        self.step(id, Actor::Client(client.id.clone()), Needs::Outcome, |found| {
            let elicitation = found.elicitation;
            if elicitation.terms().client != client.id {
                return Err(Error::NotFound);
            }
            let binding = elicitation.terms().binding();
            let claim = elicitation.claim(subject, digest, attempt, found.now, &self.spans)?;
            let (claimed, replay) = match claim {
                Claim::First(claimed) => (claimed, false),
                Claim::Replay(claimed) => (claimed, true),
            };
            let stays = claimed.terms().keep.is_some();
            if stays && !found.kept {
                return Ok(Decision::Stay(None));
            }
            let outcome = found
                .outcome
                .ok_or_else(|| Error::Unavailable("a completed elicitation has no outcome".to_owned()))?;
            let slot = attempt_named
                .then(|| self.ring.tag(Lookup::Attempt(&binding, attempt.as_bytes())))
                .filter(|_| !replay);
            let change = Change { attempt: slot, ..Change::from(claimed) };
            let outcome = if stays { without_refresh(outcome) } else { outcome };
            Ok(Decision::change(change, Some(Claimed { outcome, replay })))
        })
        .await
    }

    /// The claim that belongs to a round, whose binding has been checked.
    pub(super) async fn claim_for(
        &self,
        client: &Client,
        id: ElicitationId,
        binding: &Binding,
        attempt: Option<&str>,
    ) -> Result<Claimed, Error> {
        let claimed = self.claim(client, id, Some(binding.subject.clone()), binding.digest, attempt).await;
        match claimed {
            Err(Error::Refused(Refusal::BindingMismatch)) => Err(Error::RequestStateInvalid),
            other => other,
        }
    }
}

/// An outcome that is kept here: its tokens are renewed here too, and by nobody else.
fn without_refresh(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::OAuth(tokens) => Outcome::OAuth(Box::new(Tokens { refresh_token: None, ..*tokens })),
        other @ (Outcome::Secret(_) | Outcome::Payment(_)) => other,
    }
}
