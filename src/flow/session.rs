//! The session of a person who signed in: a cookie with its name, and the rest in the store.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::page::Door;
use super::visit::Visit;
use super::{Client, Error, Gate};
use crate::domain::binding::sha256;
use crate::domain::{Subject, Timestamp};
use crate::identity::{Browser, Person, SessionId};

/// A session that is not used ends after this time.
pub const IDLE: Duration = Duration::from_mins(15);
/// Every session ends after this time.
pub const LONGEST: Duration = Duration::from_hours(8);
/// How often its use is noted at most.
pub(super) const NOTED_EVERY: Duration = Duration::from_mins(1);

/// Who signed in, at which source.
#[derive(Serialize, Deserialize)]
pub(super) struct Session {
    /// What it counts for.
    pub door: Door,
    pub subject: Subject,
    /// What to call the person.
    pub name: String,
    pub since: Timestamp,
    pub used: Timestamp,
}

impl Visit for Session {
    const KIND: &'static str = "session";
}

impl Gate {
    /// Who is signed in at the client's source in this browser.
    pub(super) async fn signed_in(
        &self,
        client: &Client,
        browser: &Browser<'_>,
    ) -> Result<Option<Person>, Error> {
        let Some(name) = (browser.cookie)(&Door::of(client).cookie()) else { return Ok(None) };
        let Some(mut session) = self.recall::<Session>(&name).await? else { return Ok(None) };
        let now = self.now();
        // The configuration may have changed since.
        let ours = session.door == Door::of(client) && client.identity.vouches_for(&session.subject.issuer);
        let left = now.until(session.since + LONGEST);
        if !ours || left.is_zero() {
            return Ok(None);
        }
        if session.used + NOTED_EVERY <= now {
            session.used = now;
            self.renew(&name, &session, IDLE.min(left)).await?;
        }
        Ok(Some(Person { subject: session.subject, name: session.name, session: id(&name) }))
    }

    /// Which sessions a page of ours may have been made for in this browser: none, and the one that it has a cookie of,
    /// whether that has ended meanwhile or not.
    pub(super) fn possible_sessions(client: &Client, browser: &Browser<'_>) -> Vec<Option<SessionId>> {
        let named = (browser.cookie)(&Door::of(client).cookie()).map(|name| Some(id(&name)));
        std::iter::once(None).chain(named).collect()
    }

    /// Begins the session of a person who has just signed in, and ends the one that this browser had. Returns its cookie:
    /// name and value.
    pub(super) async fn begin_session(
        &self,
        client: &Client,
        (subject, name): (Subject, String),
        browser: &Browser<'_>,
    ) -> Result<(String, String), Error> {
        self.end_session(client, browser).await?;
        let now = self.now();
        let door = Door::of(client);
        let cookie = door.cookie();
        let session = Session { door, subject, name, since: now, used: now };
        let name = self.fresh_name();
        self.remember(&name, &session, IDLE).await?;
        Ok((cookie, name))
    }

    /// Ends the session that this browser has for a client's links, if there is one.
    pub(super) async fn end_session(&self, client: &Client, browser: &Browser<'_>) -> Result<(), Error> {
        let Some(name) = (browser.cookie)(&Door::of(client).cookie()) else { return Ok(()) };
        let session = self.recall::<Session>(&name).await?;
        if session.is_some_and(|session| session.door == Door::of(client)) {
            self.take::<Session>(&name).await?;
        }
        Ok(())
    }
}

fn id(name: &str) -> SessionId {
    SessionId(sha256(name.as_bytes()))
}
