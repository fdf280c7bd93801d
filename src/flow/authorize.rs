//! The person presses Continue: the browser leaves for the provider.

use super::departure::Errand;
use super::open::Guest;
use super::page::Page;
use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::kept::Again;
use crate::domain::oauth::OAuthRequest;
use crate::domain::{Request, StateName, Theirs, Timestamp};
use crate::identity::Browser;
use crate::upstream::oauth::{Failure, Fault, Ties};

/// What comes of pressing Continue.
pub enum Authorizing {
    /// The browser is to leave.
    Leaves {
        /// The name of the departure: its `state`.
        departure: String,
        /// The value of [`super::departure::BROWSER_COOKIE`].
        browser: String,
    },
    /// It is done already.
    Done,
    /// It did not come to that.
    Not(Came),
}

/// What an authorization came to that brought no tokens, or that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// The outcome is there, or the elicitation has ended: its page says how.
    Ended,
    /// Nobody knows who the person is; the code of the done page must go back.
    Finished,
    /// The provider did not do its part, and may the next time.
    Unavailable,
    /// The provider sent the person back without an authorization, and may not the next time.
    Unauthorized,
    /// What came back was not accepted.
    NotAccepted,
}

impl Gate {
    /// Starts an authorization. Its `state` exists from here on and not before (R11).
    ///
    /// # Errors
    /// [`Error::NotFound`] for what is no authorization, [`Error::Refused`] if the elicitation has ended,
    /// [`Error::Unavailable`].
    pub async fn authorize(&self, guest: &Guest, browser: &Browser<'_>) -> Result<Authorizing, Error> {
        let terms = guest.elicitation().terms();
        let Request::OAuth(asked) = &terms.request else { return Err(Error::NotFound) };
        if guest.elicitation().is_answered()
            || matches!(guest.elicitation().state().name(), StateName::Completed | StateName::Claimed)
        {
            return Ok(Authorizing::Done);
        }
        self.as_guest(guest, None, |theirs, now| theirs.start(now).map(Theirs::into_inner)).await?;
        let Some(provider) = self.providers.get(&asked.provider) else {
            let gone = Failure::Final(Fault::Configuration);
            return Ok(Authorizing::Not(self.did_not_come(guest, gone).await?));
        };
        let name = self.fresh_name();
        let mut ties = Ties {
            state: name.clone(),
            nonce: self.fresh_name(),
            verifier: self.fresh_name(),
            redirect_uri: redirect_uri(&self.public_url, &asked.provider),
            scopes: all_scopes(asked, terms.again.as_ref()),
            resource: asked.resource.clone(),
            signed: false,
        };
        let to = match provider.begin(&mut ties).await {
            Ok(to) => to,
            Err(failure) => return Ok(Authorizing::Not(self.did_not_come(guest, failure).await?)),
        };
        let session = guest.person().session.0;
        let errand = Errand::Authorize { provider: asked.provider.clone(), session, ties };
        let browser = self.depart(&name, Page::Link(guest.id()), errand, to.into(), browser).await?;
        Ok(Authorizing::Leaves { departure: name, browser })
    }

    /// Does what follows from a provider's refusal, or from its silence.
    pub(super) async fn did_not_come(&self, guest: &Guest, failure: Failure) -> Result<Came, Error> {
        let (fault, came) = match failure {
            Failure::Denied => {
                self.decline(guest).await?;
                return Ok(Came::Ended);
            }
            Failure::Refused(fault) => {
                self.note_refusal(guest.elicitation(), guest.actor(), fault.code()).await?;
                return Ok(Came::NotAccepted);
            }
            Failure::Final(fault) => {
                self.as_guest(guest, Some(fault), Theirs::fail).await?;
                return Ok(Came::Ended);
            }
            Failure::Passing(fault @ (Fault::NoAnswer | Fault::Unavailable | Fault::Metadata)) => {
                (fault, Came::Unavailable)
            }
            Failure::Passing(fault) => (fault, Came::Unauthorized),
        };
        self.as_guest(guest, Some(fault), |theirs, _| theirs.retry().map(Theirs::into_inner)).await?;
        Ok(came)
    }

    /// A step of the person that has no outcome.
    async fn as_guest(
        &self,
        guest: &Guest,
        fault: Option<Fault>,
        act: impl Fn(Theirs, Timestamp) -> Result<crate::domain::Elicitation, crate::domain::Refusal>,
    ) -> Result<(), Error> {
        self.step(guest.id(), guest.actor(), Needs::Record, |found| {
            let before = found.elicitation.state().name();
            let after = act(guest.take(found.elicitation)?, found.now)?;
            if after.state().name() == before {
                return Ok(Decision::Stay(()));
            }
            let reason = fault.map(|fault| fault.code().to_owned());
            Ok(Decision::change(Change { reason, ..Change::from(after) }, ()))
        })
        .await
    }
}

/// The one URI to which a provider sends browsers back: as it is to be registered there (R12).
#[must_use]
pub fn redirect_uri(public_url: &str, provider: &str) -> String {
    format!("{public_url}/oauth/callback/{provider}")
}

/// What is asked of the provider: with what was granted before, so that the new token allows that too. The provider asks the
/// person for what is new.
fn all_scopes(asked: &OAuthRequest, again: Option<&Again>) -> Vec<String> {
    let mut scopes = match again {
        Some(Again::More { scopes, .. }) => scopes.clone(),
        Some(Again::Discarded(_) | Again::Lapsed) | None => Vec::new(),
    };
    let more: Vec<_> = asked.scopes.iter().filter(|scope| !scopes.contains(scope)).cloned().collect();
    scopes.extend(more);
    scopes
}
