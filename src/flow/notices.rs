//! A client's server is told what became of its elicitations, if the client has an endpoint for that.
//!
//! A notice is made in the commit of the change that it tells of, and stays in the record until the endpoint has taken it,
//! for a day at most; then it is dead, and operators see it until the record is erased. The sweep finds what is due, so that
//! one instance sends. To one endpoint one message goes at a time, oldest first: if one fails, the others wait with it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::console::Revoker;
use super::record::Record;
use super::{Error, Gate};
use crate::domain::{
    Actor, ClientId, Elicitation, ElicitationId, Event, Happening, Kind, StateName, Timestamp, What,
};
use crate::store::{Committed, Stored};
use crate::upstream::webhook::Undelivered;
use crate::vault::{Lookup, OpenError, Place};

/// When a message is tried, counted from what it tells of.
const TRIES: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];
/// How long one try may take before another instance may try: longer than the endpoint may.
const TURN: Duration = Duration::from_mins(1);
/// What the moments of the tries differ by at most, so that not all come at once: a tenth.
const JITTER: u32 = 10;
/// How far apart they wait at most.
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// What is kept of an endpoint that has failed.
const PAUSE: &str = "pause";
/// How many records are read for a list of dead ones.
const READ: usize = 512;

/// What an elicitation's client is to be told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Notices {
    waiting: Vec<Notice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dead: Vec<Notice>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its name, the same at each try.
    pub id: String,
    /// What it tells of.
    pub what: What,
    /// The state after that.
    pub state: StateName,
    /// When that was.
    pub at: Timestamp,
    /// How often it was tried.
    pub tries: u8,
    due: Timestamp,
}

/// A message that nobody took.
#[derive(Debug)]
pub struct Dead {
    /// Whose endpoint did not take it.
    pub client: ClientId,
    /// About which elicitation.
    pub elicitation: ElicitationId,
    /// The message.
    pub notice: Notice,
}

impl Notice {
    /// The type of the message.
    #[must_use]
    pub fn event(&self) -> String {
        format!("elicitation.{}", self.state)
    }
}

impl Notices {
    pub(super) const fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.dead.is_empty()
    }

    pub(super) const fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|notice| notice.due).min()
    }
}

impl Gate {
    /// Makes what the client of an elicitation is to be told of what happened to it.
    pub(super) fn tell_of(
        &self,
        notices: &mut Notices,
        elicitation: &Elicitation,
        happened: &[Happening],
        now: Timestamp,
    ) {
        let client = self.clients.find(&elicitation.terms().client);
        if client.is_none_or(|client| client.endpoint.is_none()) {
            return;
        }
        let told = |what: What| {
            matches!(what, What::Completed | What::Declined | What::Expired | What::Revoked | What::Failed)
        };
        for happening in happened.iter().filter(|happening| told(happening.what)) {
            let id = format!("msg_{}", self.fresh_name());
            let (what, state) = (happening.what, happening.to);
            notices.waiting.push(Notice { id, what, state, at: now, tries: 0, due: now });
        }
    }

    /// Has the notices of a record sent that the sweep found due.
    pub(super) async fn take_notices(&self, stored: &Stored, mut record: Record) -> Result<(), Error> {
        let now = self.now();
        let client = record.elicitation.terms().client.clone();
        for notice in &mut record.filing.notices.waiting {
            if notice.due <= now {
                notice.due = now + TURN;
            }
        }
        let commit = self.commit_of(stored, &record, Vec::new(), now)?;
        if self.store.commit(commit).await? == Committed::Done {
            // Without room they are due again in a while.
            self.errands.tell(&client, stored.id);
        }
        Ok(())
    }

    /// Sends what is to be sent of an elicitation.
    pub(super) async fn tell(&self, client: &ClientId, id: ElicitationId) {
        if let Err(error) = self.try_tell(client, id).await {
            tracing::warn!(%client, %error, "a client was not told; it will be tried again");
        }
    }

    async fn try_tell(&self, client: &ClientId, id: ElicitationId) -> Result<(), Error> {
        let Some(endpoint) = self.clients.find(client).and_then(|client| client.endpoint.clone()) else {
            // It has none any more.
            return self.settle_notices(id, |notices, _| notices.waiting.clear()).await;
        };
        let Some(stored) = self.store.load(id).await? else { return Ok(()) };
        let record = self.open_stored(&stored)?;
        let kind = record.elicitation.terms().kind();
        for notice in &record.filing.notices.waiting {
            let now = self.now();
            if endpoint.is_gone() {
                return self.settle_notices(id, |notices, _| bury(notices, |_| true)).await;
            }
            if let Some((until, since)) = self.pause_of(client, now).await? {
                return self.settle_notices(id, |notices, _| put_off(notices, until, since)).await;
            }
            match endpoint.deliver(&notice.id, message(id, kind, notice), now).await {
                Ok(()) => {
                    self.settle_notices(id, |notices, _| {
                        notices.waiting.retain(|waiting| waiting.id != notice.id);
                    })
                    .await?;
                }
                Err(Undelivered::Gone) => {
                    tracing::error!(%client, "a client's endpoint says that it is gone; nothing is sent there until the service starts again");
                    return self.settle_notices(id, |notices, _| bury(notices, |_| true)).await;
                }
                Err(Undelivered::Failed(after)) => {
                    let next = self.next_try(notice, after, now);
                    tracing::warn!(%client, tries = notice.tries + 1, "a client's endpoint did not take a message");
                    let Some(next) = next else {
                        tracing::error!(%client, "a client could not be told within a day");
                        let dead = notice.id.clone();
                        self.settle_notices(id, |notices, _| bury(notices, |notice| notice.id == dead))
                            .await?;
                        continue;
                    };
                    self.pause(client, next, notice.at, now).await?;
                    return self
                        .settle_notices(id, |notices, _| {
                            put_off(notices, next, notice.at);
                            for waiting in &mut notices.waiting {
                                waiting.tries += u8::from(waiting.id == notice.id);
                            }
                        })
                        .await;
                }
            }
        }
        Ok(())
    }

    /// Until when nothing is sent to a client's endpoint, since it has just failed, here or at another instance; and of when
    /// the message was that it did not take.
    async fn pause_of(
        &self,
        client: &ClientId,
        now: Timestamp,
    ) -> Result<Option<(Timestamp, Timestamp)>, Error> {
        let mut pause = None;
        for tag in self.ring.tags(Lookup::Endpoint(client)) {
            if let Some(sealed) = self.store.visit(tag, now).await? {
                let plain = self.ring.open(Place::Visit(PAUSE, tag), &sealed)?;
                let read = serde_json::from_slice(&plain).map_err(|_| OpenError::Broken)?;
                pause = pause.max(Some(read));
            }
        }
        Ok(pause)
    }

    async fn pause(
        &self,
        client: &ClientId,
        until: Timestamp,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<(), Error> {
        let tag = self.ring.tag(Lookup::Endpoint(client));
        let plain = serde_json::to_vec(&(until, since)).map_err(|_| OpenError::Broken)?;
        let sealed = self.ring.seal(Place::Visit(PAUSE, tag), &plain)?;
        Ok(self.store.put_visit(tag, sealed, now, until).await?)
    }

    /// When a message is tried again that has just failed; never, if it was the last time.
    fn next_try(&self, notice: &Notice, after: Option<Duration>, now: Timestamp) -> Option<Timestamp> {
        let mut byte = [0];
        self.random.fill(&mut byte);
        let tries = usize::from(notice.tries) + 1;
        let planned = TRIES.get(tries)?;
        let planned = *planned + *planned / JITTER * u32::from(byte[0]) / 256;
        let soonest = now + after.unwrap_or(Duration::from_secs(1));
        Some((notice.at + planned).max(soonest))
    }

    /// Changes the notices of an elicitation, whatever else happens to it.
    async fn settle_notices(
        &self,
        id: ElicitationId,
        act: impl Fn(&mut Notices, Timestamp),
    ) -> Result<(), Error> {
        for _ in 0..super::step::TRIES {
            let Some(stored) = self.store.load(id).await? else { return Ok(()) };
            let mut record = self.open_stored(&stored)?;
            let now = self.now();
            let before = record.filing.notices.dead.len();
            act(&mut record.filing.notices, now);
            let terms = record.elicitation.terms();
            let buried = record.filing.notices.dead.len().saturating_sub(before);
            let event = Event {
                at: now,
                what: What::NotTold,
                elicitation: Some(terms.id),
                client: Some(terms.client.clone()),
                grant: None,
                kind: Some(terms.kind()),
                actor: Actor::Clock,
                from: None,
                to: None,
                reason: None,
            };
            let events = (0..buried).map(|_| self.seal_event(&event)).collect::<Result<Vec<_>, _>>()?;
            let commit = self.commit_of(&stored, &record, events, now)?;
            if self.store.commit(commit).await? == Committed::Done {
                return Ok(());
            }
        }
        Err(Error::Unavailable("a record is changed too often at once".to_owned()))
    }

    /// Messages that nobody took, after the record `after`: at most so many records' as are read at once, and where to go
    /// on.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn dead_notices(
        &self,
        client: Option<&ClientId>,
        after: Option<ElicitationId>,
    ) -> Result<(Vec<Dead>, Option<ElicitationId>), Error> {
        let page = self.store.scan(after, READ).await?;
        let next = page.last().map(|stored| stored.id).filter(|_| page.len() == READ);
        let mut found = Vec::new();
        for stored in page {
            let Ok(record) = self.open_stored(&stored) else { continue };
            let terms = record.elicitation.terms();
            if client.is_none_or(|client| terms.client == *client) {
                let dead = |notice| Dead { client: terms.client.clone(), elicitation: terms.id, notice };
                found.extend(record.filing.notices.dead.into_iter().map(dead));
            }
        }
        Ok((found, next))
    }

    /// Has the dead messages of an elicitation tried again, from the beginning.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn revive_notices(&self, _revoker: Revoker<'_>, id: ElicitationId) -> Result<(), Error> {
        self.store.load(id).await?.ok_or(Error::NotFound)?;
        self.settle_notices(id, |notices, now| {
            let revived =
                notices.dead.drain(..).map(|notice| Notice { at: now, tries: 0, due: now, ..notice });
            notices.waiting.extend(revived);
        })
        .await
    }
}

/// The message: ids and states alone.
fn message(id: ElicitationId, kind: Kind, notice: &Notice) -> String {
    json!({
        "type": notice.event(),
        "timestamp": notice.at.to_string(),
        "data": {"id": id.to_string(), "kind": kind.as_str(), "state": notice.state.as_str()},
    })
    .to_string()
}

/// Lets messages wait until then, behind the one that was not taken, and one behind the other as they were before.
fn put_off(notices: &mut Notices, until: Timestamp, since: Timestamp) {
    for notice in &mut notices.waiting {
        notice.due = until + since.until(notice.at).min(LONGEST_GAP);
    }
}

fn bury(notices: &mut Notices, which: impl Fn(&Notice) -> bool) {
    let (dead, waiting) = std::mem::take(&mut notices.waiting).into_iter().partition(|notice| which(notice));
    notices.waiting = waiting;
    let dead: Vec<Notice> = dead;
    notices.dead.extend(dead);
}
