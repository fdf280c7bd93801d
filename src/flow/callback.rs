//! The browser is back from a provider: whose is it, whose answer does it bring, and does that count? Then the code is
//! exchanged, and the outcome is there.
//!
//! Everything that needs no request to the provider comes first: a wrong person, another browser, another provider's answer
//! costs nothing and consumes nothing (R05, R07, R13).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::authorize::Came;
use super::departure::{Departure, Errand, Went};
use super::errands;
use super::finish::{Given, Submitted};
use super::open::{Arrival, Guest};
use super::page::Page;
use super::step::{Change, Decision, Needs};
use super::visit::Visit;
use super::{Error, Gate};
use crate::domain::oauth::Tokens;
use crate::domain::{Actor, ElicitationId, Outcome, StateName};
use crate::identity::{Browser, Reason};
use crate::upstream::oauth::{Failure, Returned, Ties};
use zeroize::Zeroizing;

/// How long a posted answer waits for its browser.
const POSTED: Duration = Duration::from_mins(1);

/// What a provider sent with a browser.
#[derive(Default, Serialize, Deserialize)]
pub struct Answer {
    /// Which departure it answers.
    pub state: String,
    /// What it says.
    pub returned: Returned,
}

/// An answer that came as a form, from elsewhere: without our cookies.
#[derive(Serialize, Deserialize)]
struct Posted {
    provider: String,
    answer: Answer,
}

impl Visit for Posted {
    const KIND: &'static str = "posted";
}

/// What came of it.
pub enum Callback {
    /// Nobody began it here.
    Stray,
    /// It is not the right person who is at the browser.
    TurnedAway(ElicitationId, Arrival),
    /// It has been answered already.
    Late(Box<Guest>),
    /// It was answered now.
    Came {
        /// Whose page is next.
        id: ElicitationId,
        /// With what.
        came: Came,
        /// A cookie for this browser, name and value.
        cookie: Option<(String, String)>,
    },
}

/// A code, to be exchanged in the name of a person.
pub(super) struct Exchange {
    guest: Box<Guest>,
    provider: String,
    code: Zeroizing<String>,
    ties: Ties,
    /// Who waits to be told, if they still do.
    reply: oneshot::Sender<Result<Done, Error>>,
}

type Done = (Came, Option<(String, String)>);

impl Gate {
    /// Keeps an answer that came as a form until its browser comes for it: the name to come with. `None` if nobody waits
    /// for it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn hold_posted(&self, provider: &str, answer: Answer) -> Result<Option<String>, Error> {
        let known = self.known_departure(&answer.state).await?;
        if known.is_none_or(|known| known.went() != Went::Authorize(provider.to_owned())) {
            self.note_stray(Reason::SignInUnknown).await?;
            return Ok(None);
        }
        let name = self.fresh_name();
        self.remember(&name, &Posted { provider: provider.to_owned(), answer }, POSTED).await?;
        Ok(Some(name))
    }

    /// The answer that was kept under this name.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn posted(&self, provider: &str, name: &str) -> Result<Option<Answer>, Error> {
        let posted = self.take::<Posted>(name).await?;
        Ok(posted.filter(|posted| posted.provider == provider).map(|posted| posted.answer))
    }

    /// The browser is back from the provider of this id.
    ///
    /// # Errors
    /// [`Error::Refused`] if the elicitation has ended, [`Error::Unavailable`].
    pub async fn finish_authorization(
        &self,
        provider: &str,
        answer: Answer,
        browser: &Browser<'_>,
    ) -> Result<Callback, Error> {
        let Answer { state, returned } = answer;
        let Some(known) = self.known_departure(&state).await? else {
            self.note_stray(Reason::SignInUnknown).await?;
            return Ok(Callback::Stray);
        };
        let Page::Link(id) = known.page else { return Ok(Callback::Stray) };
        let ours = match (known.went(), known.began_in(browser)) {
            (Went::Authorize(to), true) if to == provider => None,
            (Went::Authorize(to), _) if to != provider => Some("provider_mismatch"),
            (Went::Authorize(_), _) => Some("authorization_other_browser"),
            (Went::SignIn(_) | Went::Handoff(_) | Went::Pay(_), _) => Some("provider_mismatch"),
        };
        if let Some(reason) = ours {
            let (elicitation, _) = match self.linked(id).await {
                Err(Error::NotFound) => return Ok(Callback::Stray),
                other => other?,
            };
            self.note_refusal(&elicitation, Actor::Visitor, reason).await?;
            return Ok(Callback::Stray);
        }
        let guest = match self.arrive(id, browser).await {
            Ok(Arrival::Guest(guest)) => guest,
            Ok(arrival) => return Ok(Callback::TurnedAway(id, arrival)),
            Err(Error::NotFound) => return Ok(Callback::Stray),
            Err(error) => return Err(error),
        };
        let came = |came| Callback::Came { id, came, cookie: None };
        let Ok(Departure { errand: Errand::Authorize { session, ties, .. }, .. }) = &known.what else {
            self.note_refusal(guest.elicitation(), guest.actor(), "authorization_replayed").await?;
            return Ok(Callback::Late(guest));
        };
        if *session != guest.person().session.0 {
            self.note_refusal(guest.elicitation(), guest.actor(), "authorization_session").await?;
            return Ok(came(Came::NotAccepted));
        }
        let name = guest.elicitation().state().name();
        if matches!(name, StateName::Completed | StateName::Claimed) || guest.elicitation().is_answered() {
            self.note_refusal(guest.elicitation(), guest.actor(), "authorization_late").await?;
            return Ok(Callback::Late(guest));
        }
        if name.is_terminal() {
            return Ok(came(Came::Ended));
        }
        let Some(at) = self.providers.get(provider) else { return Ok(Callback::Stray) };
        let received = at.receive(&returned, ties).await;
        if let Err(failure @ Failure::Refused(_)) = received {
            return Ok(came(self.did_not_come(&guest, failure).await?));
        }
        // What cannot be done now must not use the answer up.
        let room = self.errands.room()?;
        let Some(Departure { errand: Errand::Authorize { ties, .. }, .. }) =
            self.end_departure(&state, &known).await?
        else {
            self.note_refusal(guest.elicitation(), guest.actor(), "authorization_replayed").await?;
            return Ok(Callback::Late(guest));
        };
        let code = match received {
            Ok(code) => code,
            Err(failure) => return Ok(came(self.did_not_come(&guest, failure).await?)),
        };
        // Whoever closes the browser now has done their part all the same.
        let (reply, told) = oneshot::channel();
        let provider = provider.to_owned();
        let exchange = Exchange { guest, provider, code, ties, reply };
        room.send(errands::Errand::Exchange(Box::new(exchange)));
        let gone = || Error::Unavailable("the service is shutting down".to_owned());
        let (came, cookie) = told.await.map_err(|_| gone())??;
        Ok(Callback::Came { id, came, cookie })
    }

    /// Exchanges a code, and puts the outcome where it belongs.
    pub(super) async fn exchange(&self, exchange: Exchange) {
        let Exchange { guest, provider, code, ties, reply } = exchange;
        let exchanged = match self.providers.get(&provider) {
            Some(provider) => provider.exchange(&code, &ties).await,
            None => return,
        };
        let done = match exchanged {
            Ok(tokens) => self.complete_authorization(&guest, &ties.state, tokens).await,
            Err(failure @ Failure::Refused(_)) => match self.did_not_come(&guest, failure).await {
                Ok(came) => Ok((came, None)),
                Err(error) => Err(error),
            },
            Err(failure) => self.did_not_come(&guest, failure).await.map(|came| (came, None)),
        };
        // Nobody need wait any more.
        let _ = reply.send(done);
    }

    /// The tokens are there. What the provider has issued is not lost to a store that is busy for a moment, and not left
    /// behind if it is too late.
    async fn complete_authorization(
        &self,
        guest: &Guest,
        state: &str,
        tokens: Tokens,
    ) -> Result<Done, Error> {
        let account = tokens.account.clone();
        let outcome = Outcome::OAuth(Box::new(tokens));
        let mut given = Given { outcome: Some(outcome), trimmed: Vec::new(), account };
        let mut finished = self.finish(guest, state, &mut given).await;
        for pause in [100, 500, 2000] {
            if !matches!(finished, Err(Error::Unavailable(_))) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
            finished = self.finish(guest, state, &mut given).await;
        }
        if let Some(Outcome::OAuth(tokens)) = given.outcome.take() {
            for pause in [0, 100, 500, 2000, 5000] {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                match self.revoke_late(guest, &tokens).await {
                    Err(Error::Unavailable(_)) => {}
                    done => {
                        done?;
                        break;
                    }
                }
            }
        }
        Ok(match finished? {
            Submitted::Finished { cookie, .. } => (Came::Finished, cookie),
            Submitted::Completed | Submitted::AnsweredElsewhere | Submitted::Rejected(_) => {
                (Came::Ended, None)
            }
        })
    }

    /// Tokens that came when their elicitation had ended, or had been answered by others. A commit of which we have not heard
    /// may have taken place: then they are the outcome.
    async fn revoke_late(&self, guest: &Guest, tokens: &Tokens) -> Result<(), Error> {
        let late = self
            .step(guest.id(), guest.actor(), Needs::Outcome, |found| {
                if let Some(Outcome::OAuth(outcome)) = &found.outcome
                    && outcome.access_token == tokens.access_token
                {
                    return Ok(Decision::Stay(()));
                }
                let unneeded = self.unneeded(&found.elicitation, tokens.clone());
                Ok(Decision::change(Change { unneeded, ..Change::from(found.elicitation) }, ()))
            })
            .await;
        match late {
            Err(Error::NotFound) => Ok(()),
            other => other,
        }
    }
}
