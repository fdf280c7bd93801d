//! The browser is sent elsewhere to find out who is at it, and comes back.
//!
//! A sign-in begins with a form of our own page and nowhere else ([`Gate::begin_sign_in`]); it is tied to the browser by a
//! cookie that is set then, and comes back once ([`Gate::finish_sign_in`]; for hand-offs see `handoff`).

use super::departure::{Errand, Known, Went};
use super::form::FormProof;
use super::page::{Page, Spot};
use super::{Error, Gate};
use crate::domain::{Actor, Subject};
use crate::identity::{Browser, Person, Reason, Returned, SignInError, SignedIn, Ties, Way};

/// What comes of asking to sign in.
pub enum Begun {
    /// The browser is to leave.
    Leaves {
        /// The name of the sign-in.
        departure: String,
        /// The value of [`super::departure::BROWSER_COOKIE`].
        browser: String,
    },
    /// The right person is signed in already.
    SignedIn,
    /// The source does not do its part.
    Failed(SignInError),
}

/// Who came back from a sign-in.
pub struct Back {
    /// Where they wanted to go.
    pub page: Page,
    /// The cookie of the new session, name and value; or why there is none.
    pub session: Result<(String, String), SignInError>,
}

impl Gate {
    /// A person asks to sign in, on a page of ours. `again`: they say that whoever is signed in is not they.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::FormRefused`], [`Error::Unavailable`].
    pub async fn begin_sign_in(
        &self,
        page: Page,
        browser: &Browser<'_>,
        proof: Option<&FormProof>,
        same_origin: bool,
        again: bool,
    ) -> Result<Begun, Error> {
        let spot = self.spot(page).await?;
        let client = &spot.client;
        let person = self.signed_in(client, browser).await?;
        // The page may be older than the session, or its session ended: another tab, a second click. So the cookie of an
        // ended session, which is worth nothing else, stays where it is.
        let sessions = Self::possible_sessions(client, browser);
        self.check_proof(&spot, &sessions, proof, same_origin).await?;
        let is_theirs = |person: Person| match &spot.elicitation {
            Some(elicitation) => elicitation.clone().opened_by(&person.subject).is_ok(),
            None => true,
        };
        if !again && person.is_some_and(is_theirs) {
            return Ok(Begun::SignedIn);
        }
        if again {
            self.end_session(client, browser).await?;
        }
        let name = self.fresh_name();
        let (to, errand) = match self.destination(&client.source, client.identity.way(), &name, again).await {
            Ok(Some(destination)) => destination,
            Ok(None) => return Err(Error::NotFound),
            Err(error) => {
                self.refuse_at(&spot, Actor::Visitor, error.reason().code()).await?;
                return Ok(Begun::Failed(error));
            }
        };
        let browser = self.depart(&name, spot.page, errand, to, browser).await?;
        Ok(Begun::Leaves { departure: name, browser })
    }

    /// Where a source sends the browser, and what ties its return to this.
    pub(super) async fn destination(
        &self,
        source_name: &str,
        way: Way<'_>,
        name: &str,
        again: bool,
    ) -> Result<Option<(String, Errand)>, SignInError> {
        let source_name = source_name.to_owned();
        match way {
            Way::SignIn(source) => {
                let ties = Ties {
                    state: name.to_owned(),
                    nonce: self.fresh_name(),
                    verifier: self.fresh_name(),
                    redirect_uri: format!("{}/signin/{source_name}/callback", self.public_url),
                };
                let to = source.begin(&ties, again).await?;
                Ok(Some((to.into(), Errand::SignIn { source: source_name, ties })))
            }
            Way::Handoff(source) => {
                Ok(Some((source.verify_url(name).into(), Errand::Handoff { source: source_name })))
            }
            Way::EachRequest(_) | Way::Code => Ok(None),
        }
    }

    /// The browser is back from the source `source`. `None` for a sign-in that nobody began.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn finish_sign_in(
        &self,
        source: &str,
        state: &str,
        returned: Returned<'_>,
        browser: &Browser<'_>,
    ) -> Result<Option<Back>, Error> {
        let went = Went::SignIn(source.to_owned());
        let Some(known) = self.known_departure(state).await?.filter(|known| known.went() == went) else {
            self.note_stray(Reason::SignInUnknown).await?;
            return Ok(None);
        };
        if known.page == Page::Console {
            return self.finish_operator_sign_in(&known, state, returned, browser).await;
        }
        let spot = match self.spot(known.page.clone()).await {
            Err(Error::NotFound) => return Ok(None),
            other => other?,
        };
        let who = match self.come_back(&known, state, browser).await? {
            Err(error) => Err(error),
            Ok(ties) => match spot.client.identity.way() {
                Way::SignIn(way) if spot.client.source == source => {
                    way.finish(returned, &ties).await.map(|SignedIn { subject, name, .. }| (subject, name))
                }
                _ => Err(SignInError::Refused(Reason::SignInUnknown)),
            },
        };
        Ok(Some(self.welcome(spot, who, browser).await?))
    }

    /// Begins the session of whoever came back, or notes why there is none.
    pub(super) async fn welcome(
        &self,
        spot: Spot,
        who: Result<(Subject, String), SignInError>,
        browser: &Browser<'_>,
    ) -> Result<Back, Error> {
        let session = match who {
            Ok(who) => Ok(self.begin_session(&spot.client, who, browser).await?),
            Err(error) => {
                self.refuse_at(&spot, Actor::Visitor, error.reason().code()).await?;
                Err(error)
            }
        };
        Ok(Back { page: spot.page, session })
    }

    /// Lets a sign-in come back, once, in its own browser.
    pub(super) async fn come_back(
        &self,
        known: &Known,
        state: &str,
        browser: &Browser<'_>,
    ) -> Result<Result<Ties, SignInError>, Error> {
        // Another browser must not use it up, and is not told what became of it.
        if !known.began_in(browser) {
            return Ok(Err(SignInError::Refused(Reason::OtherBrowser)));
        }
        Ok(match self.end_departure(state, known).await?.map(|departure| departure.errand) {
            Some(Errand::SignIn { ties, .. }) => Ok(ties),
            _ => Err(SignInError::Refused(Reason::Replayed)),
        })
    }
}
