//! The browser is sent elsewhere to find out who is at it, and comes back.
//!
//! A sign-in begins with a form of our own page and nowhere else ([`Gate::begin_sign_in`]); it is tied to the browser by a
//! cookie that is set then, and comes back once ([`Gate::finish_sign_in`]; for hand-offs see `handoff`).

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::form::FormProof;
use super::visit::Visit;
use super::{Client, Error, Gate};
use crate::domain::binding::sha256;
use crate::domain::ids::hex;
use crate::domain::{Actor, Elicitation, ElicitationId, Subject};
use crate::identity::{Browser, Reason, Returned, SignInError, Ties, Way};

/// How long a person may take at the issuer, or at the MCP server's page.
pub const AWAY: Duration = Duration::from_hours(1);
/// The cookie that ties a sign-in to the browser that began it. It says nothing about who that is.
pub const BROWSER_COOKIE: &str = "__Host-sidegate-browser";

/// A sign-in that is under way, or was. Its name is its `state`, or the hand-off's.
#[derive(Serialize, Deserialize)]
pub(super) struct Departure {
    pub source: String,
    pub elicitation: ElicitationId,
    /// Digest of the cookie of the browser that began it.
    #[serde(with = "hex")]
    pub browser: [u8; 32],
    /// Where the browser goes.
    pub to: String,
    pub ties: Option<Ties>,
    /// Whether it came back.
    pub over: bool,
}

impl Visit for Departure {
    const KIND: &'static str = "departure";
}

/// One that came back: kept for a while so that it is known for what it is if it comes again.
#[derive(Serialize, Deserialize)]
struct Over(Departure);

impl Visit for Over {
    const KIND: &'static str = "over";
}

/// What comes of asking to sign in.
pub enum Begun {
    /// The browser is to leave.
    Leaves {
        /// The name of the sign-in.
        departure: String,
        /// The value of [`BROWSER_COOKIE`].
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
    pub elicitation: ElicitationId,
    /// The cookie of the new session, name and value; or why there is none.
    pub session: Result<(String, String), SignInError>,
}

impl Gate {
    /// A person asks to sign in, on the page of elicitation `id`. `again`: they say that whoever is signed in is not
    /// they.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::FormRefused`], [`Error::Unavailable`].
    pub async fn begin_sign_in(
        &self,
        id: ElicitationId,
        browser: &Browser<'_>,
        proof: Option<&FormProof>,
        same_origin: bool,
        again: bool,
    ) -> Result<Begun, Error> {
        let (elicitation, client) = self.linked(id).await?;
        let person = self.signed_in(&client, browser).await?;
        // The page may be older than the session, or its session ended: another tab, a second click. So the cookie of an
        // ended session, which is worth nothing else, stays where it is.
        let sessions = Self::possible_sessions(&client, browser);
        self.check_proof(&elicitation, &sessions, proof, same_origin).await?;
        if !again && person.is_some_and(|person| elicitation.clone().opened_by(&person.subject).is_ok()) {
            return Ok(Begun::SignedIn);
        }
        if again {
            self.end_session(&client, browser).await?;
        }
        let name = self.fresh_name();
        let (to, ties) = match self.destination(&client, &name, again).await {
            Ok(Some(destination)) => destination,
            Ok(None) => return Err(Error::NotFound),
            Err(error) => {
                self.note_refusal(&elicitation, Actor::Visitor, error.reason().code()).await?;
                return Ok(Begun::Failed(error));
            }
        };
        // Several tabs of one browser may each have a sign-in under way.
        let cookie = (browser.cookie)(BROWSER_COOKIE).filter(|cookie| cookie.len() == name.len());
        let cookie = cookie.unwrap_or_else(|| self.fresh_name());
        let departure = Departure {
            source: client.source.clone(),
            elicitation: id,
            browser: sha256(cookie.as_bytes()),
            to,
            ties,
            over: false,
        };
        self.remember(&name, &departure, AWAY).await?;
        Ok(Begun::Leaves { departure: name, browser: cookie })
    }

    /// Where the client's source sends the browser, and what ties its return to this.
    async fn destination(
        &self,
        client: &Client,
        name: &str,
        again: bool,
    ) -> Result<Option<(String, Option<Ties>)>, SignInError> {
        match client.identity.way() {
            Way::SignIn(source) => {
                let ties = Ties {
                    state: name.to_owned(),
                    nonce: self.fresh_name(),
                    verifier: self.fresh_name(),
                    redirect_uri: format!("{}/signin/{}/callback", self.public_url, client.source),
                };
                let to = source.begin(&ties, again).await?;
                Ok(Some((to.into(), Some(ties))))
            }
            Way::Handoff(source) => Ok(Some((source.verify_url(name).into(), None))),
            Way::EachRequest(_) | Way::Code => Ok(None),
        }
    }

    /// Where a sign-in leads that was begun in this browser, on the page of elicitation `id`; `None` if it is over.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn leave(
        &self,
        id: ElicitationId,
        departure: &str,
        browser: &Browser<'_>,
    ) -> Result<Option<String>, Error> {
        let departure = self.known_departure(departure).await?;
        let ours = departure.filter(|departure| departure.elicitation == id && departure.began_in(browser));
        let Departure { over, to, .. } = ours.ok_or(Error::NotFound)?;
        Ok((!over).then_some(to))
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
        let departure = self.known_departure(state).await?.filter(|departure| departure.source == source);
        let Some(departure) = departure.filter(|departure| departure.ties.is_some()) else {
            self.note_stray(Reason::SignInUnknown).await?;
            return Ok(None);
        };
        let (elicitation, client) = match self.linked(departure.elicitation).await {
            Err(Error::NotFound) => return Ok(None),
            other => other?,
        };
        let who = match self.come_back(&departure, state, browser).await? {
            Err(error) => Err(error),
            Ok(ties) => match client.identity.way() {
                Way::SignIn(way) if client.source == source => way.finish(returned, &ties).await,
                _ => Err(SignInError::Refused(Reason::SignInUnknown)),
            },
        };
        Ok(Some(self.welcome(&elicitation, &client, who, browser).await?))
    }

    /// Begins the session of whoever came back, or notes why there is none.
    pub(super) async fn welcome(
        &self,
        elicitation: &Elicitation,
        client: &Client,
        who: Result<(Subject, String), SignInError>,
        browser: &Browser<'_>,
    ) -> Result<Back, Error> {
        let session = match who {
            Ok(who) => Ok(self.begin_session(client, who, browser).await?),
            Err(error) => {
                self.note_refusal(elicitation, Actor::Visitor, error.reason().code()).await?;
                Err(error)
            }
        };
        Ok(Back { elicitation: elicitation.id(), session })
    }

    /// Lets a sign-in come back, once, in its own browser.
    async fn come_back(
        &self,
        departure: &Departure,
        state: &str,
        browser: &Browser<'_>,
    ) -> Result<Result<Ties, SignInError>, Error> {
        // Another browser must not use it up, and is not told what became of it.
        if !departure.began_in(browser) {
            return Ok(Err(SignInError::Refused(Reason::OtherBrowser)));
        }
        Ok(match self.end_departure(state, departure).await? {
            Some(Departure { ties: Some(ties), .. }) => Ok(ties),
            _ => Err(SignInError::Refused(Reason::Replayed)),
        })
    }

    /// A sign-in that is under way, or over.
    pub(super) async fn known_departure(&self, name: &str) -> Result<Option<Departure>, Error> {
        match self.recall::<Departure>(name).await? {
            Some(departure) => Ok(Some(departure)),
            None => Ok(self.recall::<Over>(name).await?.map(|Over(departure)| departure)),
        }
    }

    /// Takes a sign-in that is under way: of many who ask at once one gets it. It stays known as one that is over.
    pub(super) async fn end_departure(
        &self,
        name: &str,
        departure: &Departure,
    ) -> Result<Option<Departure>, Error> {
        if departure.over {
            return Ok(None);
        }
        let Departure { source, elicitation, browser, to: _, ties, over: _ } = departure;
        let ties = ties.clone().map(|ties| Ties { nonce: String::new(), verifier: String::new(), ..ties });
        let (source, to) = (source.clone(), String::new());
        let over = Departure { source, elicitation: *elicitation, browser: *browser, to, ties, over: true };
        // First, so that it is known at every moment.
        self.remember(name, &Over(over), AWAY).await?;
        self.take::<Departure>(name).await
    }

    /// The elicitation behind a link, as it stands, and its client.
    pub(super) async fn linked(&self, id: ElicitationId) -> Result<(Elicitation, Arc<Client>), Error> {
        let stored = self.store.load(id).await?.ok_or(Error::NotFound)?;
        let elicitation = self.open_stored(&stored)?.elicitation.settle(self.now());
        let client = self.clients.find(&elicitation.terms().client).ok_or(Error::NotFound)?;
        Ok((elicitation, Arc::clone(client)))
    }
}

impl Departure {
    pub(super) fn began_in(&self, browser: &Browser<'_>) -> bool {
        (browser.cookie)(BROWSER_COOKIE).is_some_and(|cookie| sha256(cookie.as_bytes()) == self.browser)
    }
}
