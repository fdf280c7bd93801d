//! Whoever is at this computer: for a local server that nobody else can reach.

use async_trait::async_trait;

use super::{Browser, EachRequest, Identified, IdentitySource, Nobody, Person, Reason, SessionId, Way};
use crate::domain::Subject;

const WORD: &str = "loopback";
const ISSUER: &str = "local";
const ID: &str = "me";

/// Trusts a connection from a loopback address that nobody forwarded.
#[derive(Debug, Default)]
pub struct Loopback;

impl Loopback {
    /// The source.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl IdentitySource for Loopback {
    fn word(&self) -> &'static str {
        WORD
    }

    fn vouches_for(&self, issuer: &str) -> bool {
        issuer == ISSUER
    }

    fn default_subject(&self) -> Option<Subject> {
        Some(Subject { issuer: ISSUER.to_owned(), id: ID.to_owned() })
    }

    fn way(&self) -> Way<'_> {
        Way::EachRequest(self)
    }
}

#[async_trait(?Send)]
impl EachRequest for Loopback {
    async fn identify(&self, browser: &Browser<'_>) -> Identified {
        if !browser.peer.to_canonical().is_loopback() || browser.forwarded {
            return Identified::Nobody(Nobody::Refused(Reason::NotLoopback));
        }
        let subject = Subject { issuer: ISSUER.to_owned(), id: ID.to_owned() };
        let session = SessionId::of(WORD, &subject);
        Identified::Person(Person { subject, name: "the user of this computer".to_owned(), session })
    }
}
