//! The browser is sent elsewhere to find out who is at it, and comes back.
//!
//! A sign-in begins with a form of our own page and nowhere else ([`Gate::begin_sign_in`]); it is tied to the browser by a
//! cookie that is set then, and comes back once ([`Gate::finish_sign_in`]; for hand-offs see `handoff`).

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::form::FormProof;
use super::visit::Visit;
use super::{Client, Error, Gate};
use crate::domain::ids::hex;
use crate::domain::{Actor, Elicitation, ElicitationId};
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
    /// Whether it came back: kept for a while so that one that comes again is known for what it is.
    pub over: bool,
}

impl Visit for Departure {
    const KIND: &'static str = "departure";
}

/// What comes of asking to sign in.
pub enum Begun {
    /// The browser is to leave.
    Leaves {
        /// The name of the sign-in.
        departure: String,
        /// The value of [`BROWSER_COOKIE`].
        browser: String,
        /// The source whose session was ended before.
        signed_out: Option<String>,
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
    /// The source and the name of the new session; or why there is none.
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
        let session = person.as_ref().map(|person| person.session);
        self.check_proof(&elicitation, session, proof, same_origin).await?;
        if !again && person.is_some_and(|person| elicitation.clone().opened_by(&person.subject).is_ok()) {
            return Ok(Begun::SignedIn);
        }
        if again {
            self.end_session(&client.source, browser).await?;
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
            browser: digest_of(&cookie),
            to,
            ties,
            over: false,
        };
        self.remember(&name, &departure, AWAY).await?;
        let signed_out = again.then(|| client.source.clone());
        Ok(Begun::Leaves { departure: name, browser: cookie, signed_out })
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

    /// Where a sign-in leads that was begun in this browser, on the page of elicitation `id`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn leave(
        &self,
        id: ElicitationId,
        departure: &str,
        browser: &Browser<'_>,
    ) -> Result<String, Error> {
        let departure = self.recall::<Departure>(departure).await?.filter(|departure| {
            departure.elicitation == id && !departure.over && departure.began_in(browser)
        });
        Ok(departure.ok_or(Error::NotFound)?.to)
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
        let departure = self.recall::<Departure>(state).await?.filter(|departure| departure.source == source);
        let Some(departure) = departure.filter(|departure| departure.ties.is_some()) else {
            self.note_stray(Reason::SignInUnknown).await?;
            return Ok(None);
        };
        let (elicitation, client) = match self.linked(departure.elicitation).await {
            Err(Error::NotFound) => return Ok(None),
            other => other?,
        };
        let session = match self.come_back(&departure, state, browser).await? {
            Err(error) => Err(error),
            Ok(ties) => match client.identity.way() {
                Way::SignIn(way) if client.source == source => way.finish(returned, &ties).await,
                _ => Err(SignInError::Refused(Reason::SignInUnknown)),
            },
        };
        let elicitation_id = elicitation.id();
        Ok(Some(match session {
            Ok(who) => {
                let name = self.begin_session(source, who, browser).await?;
                Back { elicitation: elicitation_id, session: Ok((source.to_owned(), name)) }
            }
            Err(error) => {
                self.note_refusal(&elicitation, Actor::Visitor, error.reason().code()).await?;
                Back { elicitation: elicitation_id, session: Err(error) }
            }
        }))
    }

    /// Lets a sign-in come back, once, in its own browser.
    async fn come_back(
        &self,
        departure: &Departure,
        state: &str,
        browser: &Browser<'_>,
    ) -> Result<Result<Ties, SignInError>, Error> {
        if departure.over {
            return Ok(Err(SignInError::Refused(Reason::Replayed)));
        }
        // Another browser must not use it up.
        if !departure.began_in(browser) {
            return Ok(Err(SignInError::Refused(Reason::OtherBrowser)));
        }
        Ok(match self.end_departure(state).await? {
            Some(Departure { ties: Some(ties), .. }) => Ok(ties),
            _ => Err(SignInError::Refused(Reason::Replayed)),
        })
    }

    /// Takes a sign-in that is under way: of many who ask at once one gets it. It stays known as one that is over.
    pub(super) async fn end_departure(&self, name: &str) -> Result<Option<Departure>, Error> {
        let taken = self.take::<Departure>(name).await?;
        if let Some(Departure { source, elicitation, browser, to: _, ties, over: _ }) = &taken {
            let ties =
                ties.clone().map(|ties| Ties { nonce: String::new(), verifier: String::new(), ..ties });
            let over = Departure {
                source: source.clone(),
                elicitation: *elicitation,
                browser: *browser,
                to: String::new(),
                ties,
                over: true,
            };
            self.remember(name, &over, AWAY).await?;
        }
        Ok(taken.filter(|departure| !departure.over))
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
        (browser.cookie)(BROWSER_COOKIE).is_some_and(|cookie| digest_of(&cookie) == self.browser)
    }
}

pub(super) fn digest_of(cookie: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, cookie.as_bytes()).as_ref());
    bytes
}
