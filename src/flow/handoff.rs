//! The MCP server's own login: the server says who is at the browser that we sent to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::departure::Went;
use super::sign_in::Back;
use super::visit::Visit;
use super::{Client, Error, Gate};
use crate::domain::text::plain;
use crate::domain::{Actor, Subject, Timestamp};
use crate::identity::{Browser, NAME, Reason, SignInError, Way, shown_name};

/// How long the browser has to come back.
const RETURN_TIME: Duration = Duration::from_mins(1);

/// Lets one browser come back from one hand-off, once.
#[derive(Serialize, Deserialize)]
struct Ticket {
    handoff: String,
    subject: Subject,
    name: String,
}

impl Visit for Ticket {
    const KIND: &'static str = "ticket";
}

/// Where the MCP server sends the browser now.
#[derive(Debug)]
pub struct WayBack {
    /// The URL, for one use.
    pub url: String,
    /// Until when.
    pub expires_at: Timestamp,
}

impl Gate {
    /// The MCP server says who is at the browser of a hand-off, and what to call them.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that is unknown, another client's, over, or was used; [`Error::Invalid`] at `subject…` or
    /// `name`; [`Error::Unavailable`].
    pub async fn accept_handoff(
        &self,
        client: &Client,
        handoff: &str,
        subject: Subject,
        name: Option<&str>,
    ) -> Result<WayBack, Error> {
        let known = self.known_departure(handoff).await?.ok_or(Error::NotFound)?;
        let spot = self.spot(known.page.clone()).await?;
        let refused = if spot.client.id != client.id {
            Some("handoff_client")
        } else if known.is_over() {
            Some("handoff_used")
        } else if known.went() != Went::Handoff(client.source.clone())
            || !matches!(client.identity.way(), Way::Handoff(_))
        {
            Some("handoff_source")
        } else {
            None
        };
        if let Some(reason) = refused {
            self.refuse_at(&spot, Actor::Client(client.id.clone()), reason).await?;
            return Err(Error::NotFound);
        }
        let subject = client.subject(Some(subject))?;
        let name = match name {
            Some(name) => plain("name", name, NAME)?,
            None => shown_name([], &subject.id),
        };
        self.end_departure(handoff, &known).await?.ok_or(Error::NotFound)?;
        let ticket = Ticket { handoff: handoff.to_owned(), subject, name };
        let secret = self.fresh_name();
        self.remember(&secret, &ticket, RETURN_TIME).await?;
        let url = format!("{}/handoff/{handoff}/return?ticket={secret}", self.public_url);
        Ok(WayBack { url, expires_at: self.now() + RETURN_TIME })
    }

    /// The browser is back from a hand-off. `None` for one that nobody began.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn finish_handoff(
        &self,
        handoff: &str,
        ticket: &str,
        browser: &Browser<'_>,
    ) -> Result<Option<Back>, Error> {
        let Some(known) = self.known_departure(handoff).await? else {
            self.note_stray(Reason::SignInUnknown).await?;
            return Ok(None);
        };
        let spot = match self.spot(known.page.clone()).await {
            Err(Error::NotFound) => return Ok(None),
            other => other?,
        };
        // Another browser must not use the ticket up.
        let ticket = if known.began_in(browser) {
            let client = &spot.client;
            let went = Went::Handoff(client.source.clone());
            let ours = |ticket: &Ticket| {
                ticket.handoff == handoff
                    && known.went() == went
                    && client.identity.vouches_for(&ticket.subject.issuer)
            };
            self.take::<Ticket>(ticket).await?.filter(ours).ok_or(Reason::Ticket)
        } else {
            Err(Reason::OtherBrowser)
        };
        let who = ticket.map(|Ticket { subject, name, .. }| (subject, name)).map_err(SignInError::Refused);
        Ok(Some(self.welcome(spot, who, browser).await?))
    }
}
