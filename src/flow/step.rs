//! One step of an elicitation: load, transition, commit if the version is still the one that was loaded; on a
//! conflict load again, a bounded number of times.
//!
//! What a commit does besides replacing the record (outcome, slots, quotas, deadline, audit) follows from the
//! state before and the state after, here and nowhere else. A refused step is put on the audit trail.

use std::sync::atomic::Ordering;

use super::record::{Filing, Record};
use super::{Error, Gate};
use crate::domain::kept::Unneeded;
use crate::domain::{
    Actor, ClientId, Elicitation, ElicitationId, Event, Happening, Kind, Outcome, Tag, Timestamp, What,
};
use crate::identity::Reason;
use crate::store::{Commit, Committed, Expect, Outcome as StoredOutcome, Slot, Stored, Write};
use crate::telemetry;

/// How often a step is tried against others that change the same elicitation.
pub(super) const TRIES: usize = 16;

/// An elicitation as a step finds it: time has been applied to it.
pub(super) struct Found {
    pub elicitation: Elicitation,
    /// Its outcome, if the step asked for it and there is one.
    pub outcome: Option<Outcome>,
    /// Whether that has been put where it is kept.
    pub kept: bool,
    pub now: Timestamp,
}

/// What a step decided.
pub(super) enum Decision<T> {
    /// Nothing changes.
    Stay(T),
    /// The elicitation changes, and this is the answer once that is committed.
    Change(Box<Change>, T),
}

/// What an elicitation becomes, and what comes with it.
pub(super) struct Change {
    pub elicitation: Elicitation,
    /// The outcome that the person produced in this step.
    pub outcome: Option<Outcome>,
    /// A slot by which a repeated claim finds the elicitation.
    pub attempt: Option<Tag>,
    /// In an operator's words, why.
    pub reason: Option<String>,
    /// That the outcome is kept from now on.
    pub kept: bool,
    /// Tokens that nobody will have.
    pub unneeded: Unneeded,
    /// Slots by which what a processor says of a new order finds the elicitation.
    pub orders: Vec<Tag>,
}

impl From<Elicitation> for Change {
    fn from(elicitation: Elicitation) -> Self {
        Self {
            elicitation,
            outcome: None,
            attempt: None,
            reason: None,
            kept: false,
            unneeded: Vec::new(),
            orders: Vec::new(),
        }
    }
}

impl<T> Decision<T> {
    /// The elicitation becomes what `change` says.
    pub(super) fn change(change: impl Into<Change>, answer: T) -> Self {
        Self::Change(Box::new(change.into()), answer)
    }
}

/// Whether a step needs the outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Record,
    Outcome,
}

impl Gate {
    /// Takes one step of elicitation `id` in the name of `actor`.
    pub(super) async fn step<T>(
        &self,
        id: ElicitationId,
        actor: Actor,
        needs: Needs,
        mut decide: impl FnMut(Found) -> Result<Decision<T>, Error>,
    ) -> Result<T, Error> {
        for _ in 0..TRIES {
            let stored = self.store.load(id).await?.ok_or(Error::NotFound)?;
            let record = self.open_stored(&stored)?;
            let now = self.now();
            let elicitation = record.elicitation.clone().settle(now);
            let outcome = match needs {
                Needs::Outcome if elicitation.holds_outcome(now) => self.load_outcome(&elicitation).await?,
                _ => None,
            };
            let (mut change, answer) =
                match decide(Found { elicitation, outcome, kept: record.filing.kept, now }) {
                    Ok(Decision::Stay(answer)) => return Ok(answer),
                    Ok(Decision::Change(change, answer)) => (change, answer),
                    Err(Error::Refused(refusal)) => {
                        self.note_refusal(&record.elicitation.settle(now), actor, refusal.code()).await?;
                        return Err(refusal.into());
                    }
                    Err(error) => return Err(error),
                };
            change.unneeded.extend(self.lost_tokens(&record, &change.elicitation, now).await?);
            let marks = Marks::of(&change.elicitation);
            let commit = self.prepare(&stored, record, *change, &actor, now)?;
            if self.store.commit(commit).await? == Committed::Done {
                self.notify.publish(id);
                marks.count();
                return Ok(answer);
            }
        }
        Err(Error::Unavailable("an elicitation is changed too often at once".to_owned()))
    }

    /// The commit that brings a stored record to its next state.
    pub(super) fn prepare(
        &self,
        stored: &Stored,
        before: Record,
        change: Change,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Commit, Error> {
        let Change { elicitation: mut after, outcome, attempt, reason, kept, unneeded, orders } = change;
        let was_live = before.elicitation.state().name().is_live();
        let mut filing = before.filing;
        let (kind, state) = (after.terms().kind(), after.state().name());
        self.tell_of(&mut filing.notices, &after, after.happened(), now);
        let events = self.seal_events(&mut after, actor, reason.as_deref(), now)?;

        let mut release = Vec::new();
        if state.is_terminal() {
            release.extend(filing.bindings());
        }
        let outcome = match outcome {
            Some(outcome) => {
                let terms = after.terms();
                StoredOutcome::Put(self.ring.seal_outcome(terms.id, &terms.client, kind, &outcome)?)
            }
            None if after.holds_outcome(now) => StoredOutcome::Keep,
            None => {
                release.extend(filing.attempt.take());
                StoredOutcome::Erase
            }
        };
        filing.attempt = filing.attempt.or(attempt);
        let take = attempt.iter().chain(&orders).map(|tag| Slot { tag: *tag, required: false }).collect();
        filing.orders.extend(orders);
        let leave = if was_live && !state.is_live() { filing.quotas.to_vec() } else { Vec::new() };
        filing.kept |= kept;
        filing.undo.add(unneeded, now);
        let due = self.record_due(&after, &filing, now);
        let record = Record { elicitation: after, filing }.seal(&self.ring)?;
        Ok(Commit {
            id: stored.id,
            expect: Expect::Version(stored.version),
            write: Write::Record { record, due, outcome, take, release, join: Vec::new(), leave },
            events,
        })
    }

    /// When the sweep is to look at a record again.
    pub(super) fn record_due(&self, elicitation: &Elicitation, filing: &Filing, now: Timestamp) -> Timestamp {
        let due = elicitation.due(now, &self.spans);
        // What has ended is not erased before that is done.
        let others = filing.undo.due.into_iter().chain(elicitation.orders_due()).chain(filing.notices.due());
        match others.min() {
            Some(first) if due <= now => first,
            Some(first) => first.min(due),
            None => due,
        }
    }

    /// A commit of a record whose elicitation stays as it is.
    pub(super) fn commit_of(
        &self,
        stored: &Stored,
        record: &Record,
        events: Vec<Vec<u8>>,
        now: Timestamp,
    ) -> Result<Commit, Error> {
        let due = self.record_due(&record.elicitation, &record.filing, now);
        let record = record.seal(&self.ring)?;
        let (take, release, join, leave) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let write = Write::Record { record, due, outcome: StoredOutcome::Keep, take, release, join, leave };
        Ok(Commit { id: stored.id, expect: Expect::Version(stored.version), write, events })
    }

    /// Seals one audit event for each thing that the transitions did.
    pub(super) fn seal_events(
        &self,
        elicitation: &mut Elicitation,
        actor: &Actor,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let happened = elicitation.take_happened();
        happened
            .into_iter()
            .map(|happening| {
                // Time passes by itself, whoever finds out.
                let actor = if happening.what == What::Expired { &Actor::Clock } else { actor };
                self.seal_event(&event(elicitation, happening, actor.clone(), reason, now))
            })
            .collect()
    }

    /// Puts a refused step on the audit trail. If that fails, so does the answer.
    pub(super) async fn note_refusal(
        &self,
        elicitation: &Elicitation,
        actor: Actor,
        reason: &str,
    ) -> Result<(), Error> {
        let name = elicitation.state().name();
        let happening = Happening { what: What::Refused, from: Some(name), to: name };
        let sealed = self.seal_event(&event(elicitation, happening, actor, Some(reason), self.now()))?;
        telemetry::refused(reason);
        Ok(self.store.append(vec![sealed]).await?)
    }

    /// Puts on the audit trail that somebody was refused who came by no link that is known: the first of each second,
    /// since anybody can do that as often as they like.
    pub(super) async fn note_stray(&self, reason: Reason) -> Result<(), Error> {
        telemetry::refused(reason.code());
        let second = self.now().seconds();
        if self.last_stray.swap(second, Ordering::Relaxed) == second {
            return Ok(());
        }
        self.note_visitor(reason).await
    }

    /// The same, whenever it happens: of somebody who had to say first who they are.
    pub(super) async fn note_visitor(&self, reason: Reason) -> Result<(), Error> {
        let event = Event {
            at: self.now(),
            what: What::Refused,
            elicitation: None,
            client: None,
            grant: None,
            kind: None,
            actor: Actor::Visitor,
            from: None,
            to: None,
            reason: Some(reason.code().to_owned()),
        };
        Ok(self.store.append(vec![self.seal_event(&event)?]).await?)
    }

    /// Puts on the audit trail that somebody was refused who came for something of this client's, but for no elicitation.
    pub(super) async fn note_refusal_of(
        &self,
        client: &ClientId,
        actor: Actor,
        reason: &str,
    ) -> Result<(), Error> {
        telemetry::refused(reason);
        let event = Event {
            at: self.now(),
            what: What::Refused,
            elicitation: None,
            client: Some(client.clone()),
            grant: None,
            kind: None,
            actor,
            from: None,
            to: None,
            reason: Some(reason.to_owned()),
        };
        Ok(self.store.append(vec![self.seal_event(&event)?]).await?)
    }

    pub(super) async fn load_outcome(&self, elicitation: &Elicitation) -> Result<Option<Outcome>, Error> {
        let terms = elicitation.terms();
        let Some(sealed) = self.store.outcome(terms.id).await? else { return Ok(None) };
        Ok(Some(self.ring.open_outcome(terms.id, &terms.client, terms.kind(), &sealed)?))
    }
}

/// What is to be counted once a commit has taken place.
pub(super) struct Marks(Kind, Vec<What>);

impl Marks {
    pub(super) fn of(elicitation: &Elicitation) -> Self {
        let happened = elicitation.happened().iter().map(|happening| happening.what);
        Self(elicitation.terms().kind(), happened.collect())
    }

    pub(super) fn count(&self) {
        for what in &self.1 {
            telemetry::happened(self.0.as_str(), what.as_str());
        }
    }
}

fn event(
    elicitation: &Elicitation,
    happening: Happening,
    actor: Actor,
    reason: Option<&str>,
    now: Timestamp,
) -> Event {
    let terms = elicitation.terms();
    Event {
        at: now,
        what: happening.what,
        elicitation: Some(terms.id),
        client: Some(terms.client.clone()),
        grant: None,
        kind: Some(terms.kind()),
        actor,
        from: happening.from,
        to: Some(happening.to),
        reason: reason.map(str::to_owned),
    }
}
