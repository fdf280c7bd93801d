//! The session of a person who signed in: a cookie with its name, and the rest in the store.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::visit::Visit;
use super::{Client, Error, Gate};
use crate::domain::{Subject, Timestamp};
use crate::identity::{Browser, Person, SessionId};

/// A session that is not used ends after this time.
pub const IDLE: Duration = Duration::from_mins(15);
/// Every session ends after this time.
pub const LONGEST: Duration = Duration::from_hours(8);
/// How often its use is noted at most.
const NOTED_EVERY: Duration = Duration::from_mins(1);

/// Who signed in, at which source.
#[derive(Serialize, Deserialize)]
pub(super) struct Session {
    pub source: String,
    pub subject: Subject,
    /// What to call the person.
    pub name: String,
    pub since: Timestamp,
    pub used: Timestamp,
}

impl Visit for Session {
    const KIND: &'static str = "session";
}

/// The cookie with the name of the session at a source.
#[must_use]
pub fn session_cookie(source: &str) -> String {
    format!("__Host-sidegate-session-{source}")
}

impl Gate {
    /// Who is signed in at the client's source in this browser.
    pub(super) async fn signed_in(
        &self,
        client: &Client,
        browser: &Browser<'_>,
    ) -> Result<Option<Person>, Error> {
        let Some(name) = (browser.cookie)(&session_cookie(&client.source)) else { return Ok(None) };
        let Some(mut session) = self.recall::<Session>(&name).await? else { return Ok(None) };
        let now = self.now();
        // The configuration may have changed since.
        let ours = session.source == client.source && client.identity.vouches_for(&session.subject.issuer);
        let left = now.until(session.since + LONGEST);
        if !ours || left.is_zero() {
            return Ok(None);
        }
        if session.used + NOTED_EVERY <= now {
            session.used = now;
            self.remember(&name, &session, IDLE.min(left)).await?;
        }
        Ok(Some(Person { subject: session.subject, name: session.name, session: id(&name) }))
    }

    /// Begins the session of a person who has just signed in, and ends the one that this browser had at the source.
    /// Returns its name.
    pub(super) async fn begin_session(
        &self,
        source: &str,
        (subject, name): (Subject, String),
        browser: &Browser<'_>,
    ) -> Result<String, Error> {
        self.end_session(source, browser).await?;
        let now = self.now();
        let session = Session { source: source.to_owned(), subject, name, since: now, used: now };
        let name = self.fresh_name();
        self.remember(&name, &session, IDLE).await?;
        Ok(name)
    }

    /// Ends the session that this browser has at a source, if there is one.
    pub(super) async fn end_session(&self, source: &str, browser: &Browser<'_>) -> Result<(), Error> {
        let Some(name) = (browser.cookie)(&session_cookie(source)) else { return Ok(()) };
        let session = self.recall::<Session>(&name).await?;
        if session.is_some_and(|session| session.source == source) {
            self.take::<Session>(&name).await?;
        }
        Ok(())
    }
}

fn id(name: &str) -> SessionId {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, name.as_bytes()).as_ref());
    SessionId(bytes)
}
