//! One call for one round of a tool call: find or issue, wait, claim.
//!
//! MCP clients retry at once, give up after a fixed number of calls, and prompt the person again whenever the
//! URL is sent again. So a first call answers at once with the URL; a retry waits here and is then answered
//! without the URL; and before the calls are used up the answer is [`Round::Unfinished`].

use std::time::Duration;

use super::confirm::Confirmed;
use super::issue::{Ask, Insertion};
use super::{Client, Error, Gate};
use crate::domain::{
    Attempt, Binding, Code, Elicitation, ElicitationId, Outcome, Refusal, Request, State, StateName,
};
use crate::identity::Way;
use crate::vault::Lookup;

/// One round, as the handler describes it.
#[derive(Debug)]
pub struct RoundCall {
    /// What is needed.
    pub ask: Ask,
    /// Whether the MCP client declared that it can open URLs.
    pub url_mode: bool,
    /// Whether the MCP client declared that it can show a form.
    pub form_mode: bool,
    /// How the MCP client's retry carries on: by an echoed request state, or not at all.
    pub echoes_state: bool,
    /// How long a retry may wait here.
    pub wait: Duration,
    /// The handler's own name for this claim, if it wants to survive a lost answer.
    pub attempt: Option<String>,
    /// What the MCP client echoed.
    pub request_state: Option<String>,
    /// What the MCP client said of the person's reaction to the URL.
    pub action: Option<Action>,
    /// What somebody entered there as the code, if one was asked for.
    pub code: Option<Entered>,
}

impl RoundCall {
    /// Whether the person said no in the MCP client.
    const fn declines(&self) -> bool {
        matches!(self.action, Some(Action::Decline | Action::Cancel))
    }
}

/// The MCP client's answer to a request to open a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The person agreed to open it, no more.
    Accept,
    /// The person said no.
    Decline,
    /// The person dismissed it.
    Cancel,
}

/// What somebody entered as a code.
#[derive(Debug)]
pub enum Entered {
    /// A code.
    Code(Code),
    /// Something else, which costs no try.
    Unreadable,
}

/// Why a code is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskCode {
    /// It will be shown, or is.
    First,
    /// The one that was entered is wrong.
    Again,
}

/// What a round came to.
#[derive(Debug)]
pub enum Round {
    /// The person has not finished.
    InputRequired {
        /// The elicitation, with its message.
        elicitation: Box<Elicitation>,
        /// For the next round.
        request_state: String,
        /// Whether the MCP client is to show the URL: only once while it is pending.
        prompt: bool,
        /// Whether, and why, the MCP client is to ask for the code that the finished page shows.
        code: Option<AskCode>,
    },
    /// Finished, and claimed by this call.
    Completed {
        /// Which one; none if it was kept from before.
        id: Option<ElicitationId>,
        /// What the person produced.
        outcome: Outcome,
        /// Whether the same attempt had it before.
        replay: bool,
    },
    /// Ended without an outcome.
    Ended {
        /// Which one.
        id: ElicitationId,
        /// How.
        state: StateName,
    },
    /// Finished, but claimed by another attempt.
    Consumed {
        /// Which one.
        id: ElicitationId,
    },
    /// Still pending, and the MCP client would give up soon.
    Unfinished {
        /// Which one.
        id: ElicitationId,
    },
    /// The MCP client cannot open URLs. Nothing was created.
    Unsupported,
}

/// How the call came to its elicitation.
struct Entry {
    id: ElicitationId,
    /// The number of the answer that this call gives, from 1.
    round: u8,
    /// Whether the MCP client has been shown the URL, so that this call may wait.
    prompted: bool,
}

/// How often a search by binding is repeated when others create and end at the same time.
const TRIES: usize = 8;

impl Gate {
    /// Takes part in one round. `is_gone` says whether the caller has stopped waiting: then nothing is claimed.
    ///
    /// # Errors
    /// [`Error::RequestStateInvalid`], [`Error::CallerGone`] and all of [`Gate::issue`] and [`Gate::claim`] except
    /// refusals that are outcomes here.
    pub async fn round(
        &self,
        client: &Client,
        mut call: RoundCall,
        mut is_gone: impl FnMut() -> bool,
    ) -> Result<Round, Error> {
        if !call.url_mode {
            return Ok(Round::Unsupported);
        }
        let ask = &call.ask;
        let binding = client.binding(ask.subject.clone(), ask.operation.digest, ask.request.kind())?;
        call.ask = self.with_provider(client, call.ask)?;
        let resumed = call.request_state.as_deref().map(|text| self.resume(text, &binding)).transpose()?;
        if let Some(outcome) = self.kept_from_before(client, &binding, &call, resumed.as_ref()).await? {
            return Ok(Round::Completed { id: None, outcome, replay: false });
        }
        let entry = match resumed {
            Some(entry) => entry,
            None => self.enter(client, &binding, &call).await?,
        };
        // Only a client that echoes what it was asked can bring a code back.
        let asks_code = matches!(client.identity.way(), Way::Code) && call.form_mode && call.echoes_state;
        let mut wrong = false;
        let elicitation = match call.action {
            Some(Action::Decline) => self.end_from_client(client, entry.id, Self::decline_by_client).await?,
            Some(Action::Cancel) => self.end_from_client(client, entry.id, Self::cancel_by_client).await?,
            Some(Action::Accept) | None => {
                wrong = match &call.code {
                    Some(Entered::Code(code)) if asks_code => self.is_wrong(client, entry.id, code).await?,
                    Some(Entered::Unreadable) => asks_code,
                    Some(Entered::Code(_)) | None => false,
                };
                let wait = if entry.prompted && !wrong { call.wait } else { Duration::ZERO };
                let done = |elicitation: &Elicitation| {
                    let code_now = asks_code && elicitation.awaits_code().is_some();
                    code_now || !elicitation.state().name().is_live()
                };
                self.poll_until(client, entry.id, wait, done).await.map_err(|error| match error {
                    // Erased after retention: its request state is worth nothing now.
                    Error::NotFound => Error::RequestStateInvalid,
                    other => other,
                })?
            }
        };
        let id = entry.id;
        match elicitation.state() {
            State::Pending | State::InProgress { .. } | State::Unconfirmed { .. } => {
                if entry.prompted && entry.round >= client.round_budget {
                    return Ok(Round::Unfinished { id });
                }
                let request_state = self.request_state(&elicitation, entry.round)?;
                let prompt = !entry.prompted || !call.echoes_state;
                let code = match (wrong, elicitation.awaits_code()) {
                    (true, Some(_)) => Some(AskCode::Again),
                    (true, None) => None,
                    (false, waiting) => (prompt || waiting.is_some()).then_some(AskCode::First),
                };
                let code = code.filter(|_| asks_code);
                let prompt = prompt && elicitation.awaits_code().is_none();
                Ok(Round::InputRequired { elicitation: Box::new(elicitation), request_state, prompt, code })
            }
            State::Completed { .. } | State::Claimed { .. } if is_gone() => Err(Error::CallerGone),
            State::Completed { .. } | State::Claimed { .. } => {
                match self.claim_for(client, id, &binding, call.attempt.as_deref()).await {
                    Ok(claimed) => Ok(Round::Completed {
                        id: Some(id),
                        outcome: claimed.outcome,
                        replay: claimed.replay,
                    }),
                    Err(Error::Refused(Refusal::AlreadyClaimed)) => Ok(Round::Consumed { id }),
                    Err(Error::Refused(Refusal::Ended(state))) => Ok(Round::Ended { id, state }),
                    Err(error) => Err(error),
                }
            }
            ended => Ok(Round::Ended { id, state: ended.name() }),
        }
    }

    /// What is kept of the person and is all that this round asks for: then it needs no link, and one that is pending is
    /// called off. What the person has just done comes first.
    async fn kept_from_before(
        &self,
        client: &Client,
        binding: &Binding,
        call: &RoundCall,
        resumed: Option<&Entry>,
    ) -> Result<Option<Outcome>, Error> {
        let Some(keep) = call.ask.keep.as_ref().filter(|_| !call.declines()) else { return Ok(None) };
        let id = match resumed {
            Some(entry) => Some(entry.id),
            None => self.found_by(binding).await?,
        };
        let elicitation = match id {
            Some(id) => match self.linked(id).await {
                Ok((elicitation, _)) => Some(elicitation),
                Err(Error::NotFound) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let state = elicitation.as_ref().map(|elicitation| elicitation.state().name());
        if matches!(state, Some(StateName::Completed | StateName::Claimed)) {
            return Ok(None);
        }
        // Whoever looks at how it ended learns that, and not what there was before.
        if resumed.is_some() && state.is_none_or(StateName::is_terminal) {
            return Ok(None);
        }
        let kept = self.kept_for(&client.id, &binding.subject, keep, &call.ask.request).await?;
        if kept.is_some()
            && let Some(id) = id.filter(|_| state.is_some_and(StateName::is_live))
        {
            self.cancel_unless_ended(client, id).await?;
        }
        Ok(kept)
    }

    async fn cancel_unless_ended(&self, client: &Client, id: ElicitationId) -> Result<(), Error> {
        match self.cancel(client, id).await {
            Ok(_) | Err(Error::Refused(_) | Error::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether a payment that nobody has made yet asks for something else than this call.
    async fn is_priced_otherwise(&self, id: ElicitationId, call: &RoundCall) -> Result<bool, Error> {
        if !matches!(call.ask.request, Request::Payment(_)) {
            return Ok(false);
        }
        let Some(stored) = self.store.load(id).await? else { return Ok(false) };
        let elicitation = self.open_stored(&stored)?.elicitation.settle(self.now());
        let open = elicitation.state().name().is_live() && !elicitation.is_processing();
        Ok(open && elicitation.terms().request != call.ask.request)
    }

    /// The elicitation to which the slots of a binding lead.
    async fn found_by(&self, binding: &Binding) -> Result<Option<ElicitationId>, Error> {
        for tag in self.ring.tags(Lookup::Binding(binding)) {
            if let Some(stored) = self.store.find(tag).await? {
                return Ok(Some(stored.id));
            }
        }
        Ok(None)
    }

    /// Takes a code; whether it is wrong and another may be tried. What else there is to say its state says.
    async fn is_wrong(&self, client: &Client, id: ElicitationId, code: &Code) -> Result<bool, Error> {
        match self.confirm(client, id, code).await {
            Ok(Confirmed::Wrong(_)) => Ok(true),
            Ok(Confirmed::Right | Confirmed::Destroyed) | Err(Error::Refused(_)) => Ok(false),
            Err(Error::NotFound) => Err(Error::RequestStateInvalid),
            Err(error) => Err(error),
        }
    }

    fn resume(&self, request_state: &str, binding: &Binding) -> Result<Entry, Error> {
        let state = self
            .ring
            .open_request_state(request_state, binding, self.now())
            .ok_or(Error::RequestStateInvalid)?;
        Ok(Entry { id: state.id, round: state.round.saturating_add(1), prompted: true })
    }

    /// Finds the elicitation that a call without request state is about, or issues one.
    async fn enter(&self, client: &Client, binding: &Binding, call: &RoundCall) -> Result<Entry, Error> {
        if let Some(name) = &call.attempt
            && let Some(id) = self.claimed_before(binding, &Attempt::named(name)).await?
        {
            return Ok(Entry { id, round: 1, prompted: true });
        }
        for _ in 0..TRIES {
            // The slot of the newest key is checked by the insertion itself.
            let mut found = None;
            for tag in self.ring.tags(Lookup::Binding(binding)).skip(1) {
                found = found.or(self.store.find(tag).await?.map(|stored| stored.id));
            }
            let id = match found {
                Some(id) => id,
                None => match self.insert(binding, &call.ask, None, true).await? {
                    Insertion::New(elicitation) => {
                        return Ok(Entry { id: elicitation.id(), round: 1, prompted: false });
                    }
                    Insertion::Exists(id) => id,
                },
            };
            if self.is_open(id).await? {
                if self.is_priced_otherwise(id, call).await? {
                    // What is asked now is another price, or for something else: nobody pays the old one any more.
                    self.cancel_unless_ended(client, id).await?;
                    continue;
                }
                return Ok(Entry { id, round: 1, prompted: !call.echoes_state });
            }
            // Its time has passed, but nobody has said so yet: free the slot.
            self.expire(id).await?;
        }
        Err(Error::Unavailable("a binding is contended".to_owned()))
    }

    async fn claimed_before(
        &self,
        binding: &Binding,
        attempt: &Attempt,
    ) -> Result<Option<ElicitationId>, Error> {
        for tag in self.ring.tags(Lookup::Attempt(binding, attempt.as_bytes())) {
            if let Some(stored) = self.store.find(tag).await? {
                let elicitation = self.open_stored(&stored)?.elicitation;
                return Ok(elicitation.holds_outcome(self.now()).then_some(stored.id));
            }
        }
        Ok(None)
    }

    async fn is_open(&self, id: ElicitationId) -> Result<bool, Error> {
        let Some(stored) = self.store.load(id).await? else { return Ok(false) };
        let elicitation = self.open_stored(&stored)?.elicitation.settle(self.now());
        Ok(!elicitation.state().name().is_terminal())
    }

    /// The MCP client said no. If the person was faster, what they did stands.
    async fn end_from_client<'a, F>(
        &'a self,
        client: &'a Client,
        id: ElicitationId,
        end: impl FnOnce(&'a Self, &'a Client, ElicitationId) -> F,
    ) -> Result<Elicitation, Error>
    where
        F: Future<Output = Result<Elicitation, Error>>,
    {
        match end(self, client, id).await {
            Err(Error::Refused(_)) => self.poll(client, id, Duration::ZERO).await,
            Err(Error::NotFound) => Err(Error::RequestStateInvalid),
            other => other,
        }
    }
}
