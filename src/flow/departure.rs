//! A browser is sent elsewhere and is to come back, once: to sign in, to authorise a third party, or to pay.
//!
//! A departure begins with a form of our own page and nowhere else. It is tied to the browser by a cookie that is set then;
//! what else ties the return to it is kept here. Of many returns that come at once one counts, and it stays known for a
//! while as one that is over.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::page::Page;
use super::visit::Visit;
use super::{Error, Gate};
use crate::domain::binding::sha256;
use crate::domain::ids::hex;
use crate::identity::{self, Browser};
use crate::upstream::oauth;

/// How long a person may take elsewhere.
pub const AWAY: Duration = Duration::from_hours(1);
/// The cookie that ties a departure to the browser that began it. It says nothing about who that is.
pub const BROWSER_COOKIE: &str = "__Host-sidegate-browser";

/// A departure that is under way. Its name is its `state`, or the hand-off's.
#[derive(Serialize, Deserialize)]
pub(super) struct Departure {
    /// Where the browser was.
    pub page: Page,
    pub errand: Errand,
    /// Digest of the cookie of the browser that began it.
    #[serde(with = "hex")]
    pub browser: [u8; 32],
    /// Where the browser goes.
    pub to: String,
}

/// What for.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Errand {
    SignIn {
        source: String,
        ties: identity::Ties,
    },
    Handoff {
        source: String,
    },
    Authorize {
        provider: String,
        /// Of the person who pressed the button.
        #[serde(with = "hex")]
        session: [u8; 32],
        ties: oauth::Ties,
    },
    Pay {
        provider: String,
    },
}

impl Visit for Departure {
    const KIND: &'static str = "departure";
}

/// One that came back: what is needed to know it for what it is if it comes again.
#[derive(Serialize, Deserialize)]
struct Over {
    page: Page,
    went: Went,
    #[serde(with = "hex")]
    browser: [u8; 32],
}

impl Visit for Over {
    const KIND: &'static str = "over";
}

/// A departure that is known.
pub(super) struct Known {
    pub page: Page,
    pub browser: [u8; 32],
    /// Under way, with all that belongs to it; or over, and then who it went to.
    pub what: Result<Departure, Went>,
}

/// To whom a departure went: a source, or a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Went {
    SignIn(String),
    Handoff(String),
    Authorize(String),
    Pay(String),
}

impl Errand {
    pub(super) fn went(&self) -> Went {
        match self {
            Self::SignIn { source, .. } => Went::SignIn(source.clone()),
            Self::Handoff { source } => Went::Handoff(source.clone()),
            Self::Authorize { provider, .. } => Went::Authorize(provider.clone()),
            Self::Pay { provider } => Went::Pay(provider.clone()),
        }
    }
}

impl Known {
    /// To whom it went.
    pub(super) fn went(&self) -> Went {
        match &self.what {
            Ok(departure) => departure.errand.went(),
            Err(went) => went.clone(),
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        self.what.is_err()
    }

    pub(super) fn began_in(&self, browser: &Browser<'_>) -> bool {
        (browser.cookie)(BROWSER_COOKIE).is_some_and(|cookie| sha256(cookie.as_bytes()) == self.browser)
    }
}

impl Gate {
    /// Lets a browser leave. Returns the value of [`BROWSER_COOKIE`].
    pub(super) async fn depart(
        &self,
        name: &str,
        page: Page,
        errand: Errand,
        to: String,
        browser: &Browser<'_>,
    ) -> Result<String, Error> {
        // Several tabs of one browser may each be away.
        let cookie = (browser.cookie)(BROWSER_COOKIE).filter(|cookie| cookie.len() == name.len());
        let cookie = cookie.unwrap_or_else(|| self.fresh_name());
        let departure = Departure { page, errand, browser: sha256(cookie.as_bytes()), to };
        self.remember(name, &departure, AWAY).await?;
        Ok(cookie)
    }

    /// Where a departure leads that was begun in this browser, on this page; `None` if it is over.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn leave(
        &self,
        page: &Page,
        departure: &str,
        browser: &Browser<'_>,
    ) -> Result<Option<Leaving>, Error> {
        let known = self.known_departure(departure).await?;
        let ours = known.filter(|known| known.page == *page && known.began_in(browser));
        let departure = ours.ok_or(Error::NotFound)?.what.ok();
        Ok(departure.map(|departure| Leaving {
            to: departure.to,
            purpose: match departure.errand {
                Errand::SignIn { .. } | Errand::Handoff { .. } => Purpose::SignIn,
                Errand::Authorize { .. } => Purpose::Authorize,
                Errand::Pay { .. } => Purpose::Pay,
            },
        }))
    }

    /// A departure that is under way, or over.
    pub(super) async fn known_departure(&self, name: &str) -> Result<Option<Known>, Error> {
        if let Some(departure) = self.recall::<Departure>(name).await? {
            let (page, browser) = (departure.page.clone(), departure.browser);
            return Ok(Some(Known { page, browser, what: Ok(departure) }));
        }
        let over = self.recall::<Over>(name).await?;
        Ok(over.map(|Over { page, went, browser }| Known { page, browser, what: Err(went) }))
    }

    /// Takes a departure that is under way: of many who ask at once one gets it. It stays known as one that is over.
    pub(super) async fn end_departure(&self, name: &str, known: &Known) -> Result<Option<Departure>, Error> {
        if known.is_over() {
            return Ok(None);
        }
        // First, so that it is known at every moment.
        let over = Over { page: known.page.clone(), went: known.went(), browser: known.browser };
        self.remember(name, &over, AWAY).await?;
        self.take::<Departure>(name).await
    }
}

/// Where a browser goes from our last page.
pub struct Leaving {
    /// The URL.
    pub to: String,
    /// What for.
    pub purpose: Purpose,
}

/// What a browser leaves for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To sign in.
    SignIn,
    /// To authorise a third party.
    Authorize,
    /// To pay.
    Pay,
}
