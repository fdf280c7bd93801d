//! The elicitation and its life, as a state machine (design: pending → in progress → completed → claimed,
//! or one of the ways to end).
//!
//! Each state carries its own data. A transition consumes the elicitation and returns the next one, or says
//! why not; it also notes what happened, so that no state changes unrecorded. What only the person may do is
//! on [`Theirs`], which exists only after the person has been found to be the subject.

mod paying;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::paying::Heard;
use super::kept::{Again, Keep};
use super::order::Order;
use super::{
    Attempt, Binding, ClientId, Code, Digest, ElicitationId, Happening, Kind, Operation, OperatorId, Refusal,
    Request, State, StateName, Subject, Tag, Timestamp, What,
};

/// What was agreed when the elicitation was issued. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Names the elicitation, in the API and in the link.
    pub id: ElicitationId,
    /// Who issued it.
    pub client: ClientId,
    /// The person it was made for.
    pub subject: Subject,
    /// The operation it was made for.
    pub operation: Operation,
    /// The client's sentence to the person: what is needed and why.
    pub message: String,
    /// What is asked for.
    pub request: Request,
    /// When it was issued.
    pub created_at: Timestamp,
    /// How much time the person was given at first; also what one extension adds.
    pub lifetime: Duration,
    /// Under which name the outcome is kept, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Why it is asked for although it was kept before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

impl Terms {
    /// What it asks for, in one word.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.request.kind()
    }

    /// The whole binding.
    #[must_use]
    pub fn binding(&self) -> Binding {
        Binding {
            client: self.client.clone(),
            subject: self.subject.clone(),
            digest: self.operation.digest,
            kind: self.kind(),
        }
    }
}

/// One request for one thing from one person, bound to one operation, with a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elicitation {
    terms: Terms,
    expires_at: Timestamp,
    opened_at: Option<Timestamp>,
    /// Fields of a completed form from which white space around the value was removed.
    trimmed: Vec<String>,
    /// What the provider calls the account of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// Digest of what the browser has that answered, where nobody knows who that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered_in: Option<Tag>,
    /// What processors were asked to let the person pay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    orders: Vec<Order>,
    state: State,
    #[serde(skip)]
    happened: Vec<Happening>,
}

/// A claim that was granted.
#[derive(Debug)]
pub enum Claim {
    /// This attempt is the first: the elicitation is now claimed.
    First(Elicitation),
    /// This attempt had claimed it before and asks again in time.
    Replay(Elicitation),
}

/// What came of a code that was entered.
#[derive(Debug)]
pub enum Confirmation {
    /// It is the right one: the elicitation is now completed.
    Right(Elicitation),
    /// It is not.
    Wrong {
        /// The elicitation, which remembers it.
        elicitation: Elicitation,
        /// How many more may be tried.
        tries_left: u8,
    },
    /// It was not, and no more may be tried: the elicitation has failed.
    Destroyed(Elicitation),
    /// One was right before.
    Before,
}

/// How many codes may be tried.
const TRIES: u8 = 5;
/// How long the code counts.
const CODE_TIME: Duration = Duration::from_mins(10);

/// How long things last after the person is done.
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    /// How long a completed outcome waits for its claim.
    pub claim_by: Duration,
    /// How long the winning attempt may ask again.
    pub claim_window: Duration,
    /// How long an ended elicitation stays readable.
    pub retention: Duration,
    /// The longest life that extensions can reach, counted from issue.
    pub longest_life: Duration,
}

impl Elicitation {
    /// A new, pending elicitation.
    #[must_use]
    pub fn issue(terms: Terms) -> Self {
        Self {
            expires_at: terms.created_at + terms.lifetime,
            opened_at: None,
            trimmed: Vec::new(),
            account: None,
            answered_in: None,
            orders: Vec::new(),
            state: State::Pending,
            happened: vec![Happening { what: What::Issued, from: None, to: StateName::Pending }],
            terms,
        }
    }

    /// What was agreed at issue.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The elicitation's id.
    #[must_use]
    pub const fn id(&self) -> ElicitationId {
        self.terms.id
    }

    /// When the person's time ends.
    #[must_use]
    pub const fn expires_at(&self) -> Timestamp {
        match self.state {
            State::Unconfirmed { until, .. } => until,
            _ => self.expires_at,
        }
    }

    /// When it ends by itself, if it does while it stands as it stands: not while money is on its way.
    #[must_use]
    pub const fn deadline(&self) -> Option<Timestamp> {
        match self.state {
            State::Pending | State::InProgress { .. } | State::Unconfirmed { .. } => Some(self.expires_at()),
            State::Completed { claim_by, .. } => Some(claim_by),
            _ => None,
        }
    }

    /// The code that must come back before the outcome counts, if the person is done and that is all that is left.
    #[must_use]
    pub const fn awaits_code(&self) -> Option<&Code> {
        match &self.state {
            State::Unconfirmed { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether somebody has answered whom nobody knows.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.answered_in.is_some()
    }

    /// Whether it was the browser with this digest that answered, where nobody knows who that was. It alone is shown the
    /// code.
    #[must_use]
    pub fn was_answered_in(&self, digest: [u8; 32]) -> bool {
        self.answered_in == Some(Tag(digest))
    }

    /// When the verified subject first saw the page.
    #[must_use]
    pub const fn opened_at(&self) -> Option<Timestamp> {
        self.opened_at
    }

    /// Names of the fields from which surrounding white space was removed at submission.
    #[must_use]
    pub fn trimmed(&self) -> &[String] {
        &self.trimmed
    }

    /// What the provider calls the account with which the person authorised it.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// Where it is in its life.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Applies the passing of time. Everything that reads a stored elicitation begins with this.
    #[must_use]
    pub fn settle(self, now: Timestamp) -> Self {
        let Some(deadline) = self.deadline().filter(|deadline| *deadline <= now) else { return self };
        self.moved(What::Expired, State::Expired { at: deadline })
    }

    /// Says whether `person` is the one it was made for, and lets that person act.
    ///
    /// # Errors
    /// [`Refusal::WrongPerson`].
    pub fn opened_by(self, person: &Subject) -> Result<Theirs, Refusal> {
        if self.terms.subject == *person { Ok(Theirs(self)) } else { Err(Refusal::WrongPerson) }
    }

    /// Releases the outcome to `attempt`: the first one wins, and may repeat within the window.
    ///
    /// # Errors
    /// [`Refusal::BindingMismatch`] if subject or operation differ, [`Refusal::NotCompleted`] while there is no
    /// outcome, [`Refusal::AlreadyClaimed`] for any other attempt, [`Refusal::Ended`] if it ended otherwise.
    pub fn claim(
        self,
        subject: &Subject,
        digest: Digest,
        attempt: Attempt,
        now: Timestamp,
        spans: &Spans,
    ) -> Result<Claim, Refusal> {
        if self.terms.subject != *subject || self.terms.operation.digest != digest {
            return Err(Refusal::BindingMismatch);
        }
        match &self.state {
            State::Completed { .. } => {
                let state = State::Claimed { at: now, attempt, replay_until: now + spans.claim_window };
                Ok(Claim::First(self.moved(What::Claimed, state)))
            }
            State::Claimed { attempt: winner, replay_until, .. } => {
                if *winner == attempt && now < *replay_until {
                    Ok(Claim::Replay(self.noted(What::Replayed)))
                } else {
                    Err(Refusal::AlreadyClaimed)
                }
            }
            State::Pending
            | State::InProgress { .. }
            | State::Processing { .. }
            | State::Unconfirmed { .. } => Err(Refusal::NotCompleted),
            other => Err(Refusal::Ended(other.name())),
        }
    }

    /// A code came back through the MCP client.
    ///
    /// # Errors
    /// [`Refusal::NotCompleted`] while the person is not done, [`Refusal::Ended`] if it has ended.
    pub fn confirm(mut self, entered: &Code, now: Timestamp, spans: &Spans) -> Result<Confirmation, Refusal> {
        let right = match &mut self.state {
            State::Unconfirmed { code, wrong, .. } => {
                let right = code.is(entered);
                *wrong += u8::from(!right);
                right.then_some(()).ok_or(TRIES.saturating_sub(*wrong))
            }
            State::Pending | State::InProgress { .. } | State::Processing { .. } => {
                return Err(Refusal::NotCompleted);
            }
            State::Completed { .. } | State::Claimed { .. } => return Ok(Confirmation::Before),
            other => return Err(Refusal::Ended(other.name())),
        };
        Ok(match right {
            Ok(()) => {
                let state = State::Completed { at: now, claim_by: now + spans.claim_by };
                Confirmation::Right(self.moved(What::Completed, state))
            }
            Err(0) => {
                let told = self.noted(What::WrongCode);
                Confirmation::Destroyed(told.moved(What::Failed, State::Failed { at: now }))
            }
            Err(tries_left) => Confirmation::Wrong { elicitation: self.noted(What::WrongCode), tries_left },
        })
    }

    /// The MCP client answered that the person declined.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live.
    pub fn decline(self, now: Timestamp) -> Result<Self, Refusal> {
        self.live()?;
        Ok(self.moved(What::Declined, State::Declined { at: now }))
    }

    /// The handler, or the MCP client, calls it off.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live.
    pub fn cancel(self, now: Timestamp) -> Result<Self, Refusal> {
        self.live()?;
        Ok(self.moved(What::Cancelled, State::Cancelled { at: now }))
    }

    /// An operator ends it. A completed outcome is destroyed; `refund` says that what was paid is to be paid back.
    ///
    /// # Errors
    /// [`Refusal::Ended`] if it has ended, [`Refusal::RefundNeeded`] if it is paid and nothing is to be paid back.
    pub fn revoke(
        mut self,
        by: OperatorId,
        reason: String,
        refund: bool,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        if self.state.name().is_terminal() {
            return Err(Refusal::Ended(self.state.name()));
        }
        if self.is_paid() {
            if !refund {
                return Err(Refusal::RefundNeeded);
            }
            self.refund_if_paid();
        }
        Ok(self.moved(What::Revoked, State::Revoked { at: now, by, reason }))
    }

    /// A provider ended it for good.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live.
    pub fn fail(self, now: Timestamp) -> Result<Self, Refusal> {
        self.live()?;
        Ok(self.moved(What::Failed, State::Failed { at: now }))
    }

    /// Whether an outcome may exist for it at `now`. Where this is false, the stored outcome must be gone.
    #[must_use]
    pub fn holds_outcome(&self, now: Timestamp) -> bool {
        match self.state {
            State::Unconfirmed { .. } | State::Completed { .. } => true,
            State::Claimed { replay_until, .. } => now < replay_until,
            _ => false,
        }
    }

    /// When something must next happen to it because of time alone: its expiry, the end of its outcome, or its
    /// erasure.
    #[must_use]
    pub fn due(&self, now: Timestamp, spans: &Spans) -> Timestamp {
        match self.state {
            State::Pending | State::InProgress { .. } | State::Unconfirmed { .. } => self.expires_at(),
            // It does not end by itself while money is on its way.
            State::Processing { .. } => self.orders_due().unwrap_or(self.expires_at),
            State::Completed { claim_by, .. } => claim_by,
            State::Claimed { replay_until, .. } if now < replay_until => replay_until,
            State::Claimed { at, .. }
            | State::Declined { at }
            | State::Cancelled { at }
            | State::Expired { at }
            | State::Failed { at }
            | State::Revoked { at, .. } => at + spans.retention,
        }
    }

    /// What the transitions since the last [`Elicitation::take_happened`] did, in order.
    #[must_use]
    pub fn happened(&self) -> &[Happening] {
        &self.happened
    }

    /// The same, and it is forgotten here.
    #[must_use]
    pub fn take_happened(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happened)
    }

    fn live(&self) -> Result<(), Refusal> {
        let name = self.state.name();
        if name.is_live() { Ok(()) } else { Err(Refusal::Ended(name)) }
    }

    fn moved(mut self, what: What, state: State) -> Self {
        let before = std::mem::replace(&mut self.state, state);
        self.happened.push(Happening { what, from: Some(before.name()), to: self.state.name() });
        self.orders_follow(&before);
        self
    }

    fn noted(mut self, what: What) -> Self {
        let name = self.state.name();
        self.happened.push(Happening { what, from: Some(name), to: name });
        self
    }
}

/// An elicitation in the hands of the person it was made for.
#[derive(Debug, Clone)]
pub struct Theirs(Elicitation);

impl Theirs {
    /// The elicitation, to read.
    #[must_use]
    pub const fn elicitation(&self) -> &Elicitation {
        &self.0
    }

    /// The elicitation, when the person's part is over.
    #[must_use]
    pub fn into_inner(self) -> Elicitation {
        self.0
    }

    /// The person sees the page. Only the first time is noted, and only while it is live.
    #[must_use]
    pub fn open(mut self, now: Timestamp) -> Self {
        if self.0.opened_at.is_none() && self.0.state.name().is_live() {
            self.0.opened_at = Some(now);
            self.0 = self.0.noted(What::Opened);
        }
        self
    }

    /// The person sets out to complete it. Going on after a start is no change.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live, [`Refusal::Finished`] if the person is done and only the code is missing, or the
    /// money.
    pub fn start(self, now: Timestamp) -> Result<Self, Refusal> {
        self.0.live()?;
        Ok(match self.0.state {
            State::Unconfirmed { .. } | State::Processing { .. } => return Err(Refusal::Finished),
            State::Pending => Self(self.0.moved(What::Started, State::InProgress { started_at: now })),
            _ => self,
        })
    }

    /// The provider sent the person back, and they may try again.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live.
    pub fn retry(self) -> Result<Self, Refusal> {
        self.0.live()?;
        Ok(match self.0.state {
            State::InProgress { .. } => Self(self.0.moved(What::Retried, State::Pending)),
            _ => self,
        })
    }

    /// Notes what the provider calls the account of the person, before it is done.
    #[must_use]
    pub fn as_account(mut self, account: Option<String>) -> Self {
        self.0.account = account;
        self
    }

    /// Whoever has the link is done, and nobody knows who that is: `code` must come back before the outcome counts. It is
    /// shown to the browser alone whose digest this is.
    ///
    /// # Errors
    /// As [`Theirs::start`].
    pub fn finish(
        self,
        trimmed: Vec<String>,
        code: Code,
        browser: [u8; 32],
        now: Timestamp,
    ) -> Result<Elicitation, Refusal> {
        let mut started = self.start(now)?.0;
        started.trimmed = trimmed;
        started.answered_in = Some(Tag(browser));
        let state = State::Unconfirmed { at: now, code, wrong: 0, until: now + CODE_TIME };
        Ok(started.moved(What::Finished, state))
    }

    /// The outcome is there. `trimmed` names the fields whose values lost surrounding white space.
    ///
    /// # Errors
    /// As [`Theirs::start`].
    pub fn complete(
        self,
        trimmed: Vec<String>,
        now: Timestamp,
        spans: &Spans,
    ) -> Result<Elicitation, Refusal> {
        let mut started = self.start(now)?.0;
        started.trimmed = trimmed;
        Ok(started.moved(What::Completed, State::Completed { at: now, claim_by: now + spans.claim_by }))
    }

    /// The person says no.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live.
    pub fn decline(self, now: Timestamp) -> Result<Elicitation, Refusal> {
        self.0.decline(now)
    }

    /// The provider says that this can never work.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live.
    pub fn fail(self, now: Timestamp) -> Result<Elicitation, Refusal> {
        self.0.fail(now)
    }

    /// Gives the person their first span once more, up to the longest life.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live, [`Refusal::NoMoreTime`] if that would add less than a second or only the
    /// code is missing.
    pub fn extend(mut self, spans: &Spans) -> Result<Elicitation, Refusal> {
        self.0.live()?;
        if !self.can_extend(spans) {
            return Err(Refusal::NoMoreTime);
        }
        self.0.expires_at = self.extended(spans);
        Ok(self.0.noted(What::Extended))
    }

    /// Whether [`Theirs::extend`] would add at least a second.
    #[must_use]
    pub fn can_extend(&self, spans: &Spans) -> bool {
        self.0.awaits_code().is_none()
            && !self.0.is_processing()
            && self.0.state.name().is_live()
            && self.extended(spans) >= self.0.expires_at + Duration::from_secs(1)
    }

    fn extended(&self, spans: &Spans) -> Timestamp {
        let terms = &self.0.terms;
        let longest = terms.created_at + spans.longest_life.max(terms.lifetime);
        (self.0.expires_at + terms.lifetime).min(longest)
    }
}
