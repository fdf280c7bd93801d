//! The pages of ours that a browser can be on, and whose they are.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Client, Error, Gate};
use crate::domain::{Actor, ClientId, Elicitation, ElicitationId};
use crate::identity::Way;

/// A page that people sign in on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Page {
    /// The page of a link.
    Link(ElicitationId),
    /// What is kept for whoever comes in by this door.
    Mine(Door),
    /// The operators' console.
    Console,
}

impl Page {
    /// What a token for a form of this page is made for.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Link(id) => id.as_bytes().to_vec(),
            Self::Mine(door) => format!("mine {door}").into_bytes(),
            Self::Console => b"console".to_vec(),
        }
    }
}

/// Where people say who they are, and whose word that is: what a session counts for. Written as the name of the identity
/// source, and after a dot the client, where it is that client's word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Door {
    /// The identity source.
    pub source: String,
    /// The client whose word it is, if it is not the source's own.
    pub client: Option<ClientId>,
}

impl Door {
    /// The door of a client's people.
    #[must_use]
    pub fn of(client: &Client) -> Self {
        let vouches = matches!(client.identity.way(), Way::Handoff(_));
        Self { source: client.source.clone(), client: vouches.then(|| client.id.clone()) }
    }

    /// The cookie with the name of the session that counts here.
    #[must_use]
    pub fn cookie(&self) -> String {
        format!("__Host-sidegate-session-{self}")
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.client {
            // Names of sources have no dot.
            Some(client) => write!(f, "{}.{client}", self.source),
            None => f.write_str(&self.source),
        }
    }
}

impl FromStr for Door {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('.') {
            Some((source, client)) => Self { source: source.to_owned(), client: Some(ClientId::new(client)) },
            None => Self { source: text.to_owned(), client: None },
        })
    }
}

/// A page, as it stands, and whose it is.
pub(super) struct Spot {
    pub page: Page,
    /// Whose the link is, or one of those whose people come in by this door.
    pub client: Arc<Client>,
    /// The elicitation behind a link.
    pub elicitation: Option<Elicitation>,
}

impl Gate {
    /// What is known of a page.
    pub(super) async fn spot(&self, page: Page) -> Result<Spot, Error> {
        match &page {
            Page::Link(id) => {
                let (elicitation, client) = self.linked(*id).await?;
                Ok(Spot { page, client, elicitation: Some(elicitation) })
            }
            Page::Mine(door) => {
                let client = self.clients_of(door).next().map(Arc::clone).ok_or(Error::NotFound)?;
                Ok(Spot { page, client, elicitation: None })
            }
            // It is no client's.
            Page::Console => Err(Error::NotFound),
        }
    }

    /// The clients whose people come in by this door.
    pub(super) fn clients_of<'a>(&'a self, door: &'a Door) -> impl Iterator<Item = &'a Arc<Client>> {
        self.clients.all().filter(move |client| Door::of(client) == *door)
    }

    /// The elicitation behind a link, as it stands, and its client.
    pub(super) async fn linked(&self, id: ElicitationId) -> Result<(Elicitation, Arc<Client>), Error> {
        let stored = self.store.load(id).await?.ok_or(Error::NotFound)?;
        let elicitation = self.open_stored(&stored)?.elicitation.settle(self.now());
        let client = self.clients.find(&elicitation.terms().client).ok_or(Error::NotFound)?;
        Ok((elicitation, Arc::clone(client)))
    }

    /// Puts on the audit trail that somebody was refused on a page.
    pub(super) async fn refuse_at(&self, spot: &Spot, actor: Actor, reason: &str) -> Result<(), Error> {
        match &spot.elicitation {
            Some(elicitation) => self.note_refusal(elicitation, actor, reason).await,
            None => self.note_refusal_of(&spot.client.id, actor, reason).await,
        }
    }
}
