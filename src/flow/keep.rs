//! How what is kept of a person lies in the store: one record for each person at each client, under a tag of both.
//!
//! [`Gate::change_kept`] is the way that every change of it goes: load, change, commit if nobody else was faster, as for
//! elicitations. An outcome comes here after its elicitation is completed ([`Gate::ensure_kept`]): the elicitation decides
//! the race with a revocation, and says when this is done.

use serde::{Deserialize, Serialize};

use super::record::Held;
use super::step::{Change, Decision, Needs, TRIES};
use super::undo::Undo;
use super::{Error, Gate};
use crate::domain::kept::{Dropped, Kept, KeptHappening, Unneeded};
use crate::domain::{
    Actor, ClientId, Elicitation, ElicitationId, Event, GrantId, State, Subject, Tag, Timestamp,
};
use crate::store::{Commit, Committed, Expect, Outcome as StoredOutcome, Slot, Stored, Write};
use crate::vault::Lookup;

/// What is sealed of what is kept of one person for one client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptRecord {
    pub kept: Kept,
    /// What leads to it.
    tags: Vec<Tag>,
    /// Tokens that nobody needs any more, and that their provider is to revoke.
    #[serde(default, skip_serializing_if = "Undo::is_empty")]
    pub undo: Undo,
}

/// What a change of what is kept decided.
pub(super) enum KeptDecision<T> {
    /// Nothing changes.
    Stay(T),
    /// It changes; these tokens are not needed any more.
    Change(T, Unneeded),
}

impl KeptDecision<()> {
    /// What follows from dropping a slot: nothing, if there was nothing in it.
    pub(super) fn dropped(dropped: Option<Unneeded>) -> Self {
        dropped.map_or(Self::Stay(()), |unneeded| Self::Change((), unneeded))
    }
}

impl Gate {
    /// What is kept of a person for a client, where it lies, and as it stands.
    pub(super) async fn load_kept(
        &self,
        client: &ClientId,
        subject: &Subject,
    ) -> Result<Option<(Stored, KeptRecord)>, Error> {
        for tag in self.ring.tags(Lookup::Kept(client, subject)) {
            if let Some(stored) = self.store.find(tag).await?
                && let Held::Kept(record) = self.open_held(&stored)?
            {
                return Ok(Some((stored, *record)));
            }
        }
        Ok(None)
    }

    /// Changes what is kept of a person for a client, in the name of `actor`. `decide` gets it as it stands, and may be asked
    /// again.
    pub(super) async fn change_kept<T>(
        &self,
        client: &ClientId,
        subject: &Subject,
        actor: &Actor,
        mut decide: impl FnMut(&mut Kept, Timestamp) -> Result<KeptDecision<T>, Error>,
    ) -> Result<T, Error> {
        for _ in 0..TRIES {
            let found = self.load_kept(client, subject).await?;
            let now = self.now();
            let (stored, mut record) = match found {
                Some((stored, record)) => (Some(stored), record),
                None => (None, self.nothing_kept(client, subject)),
            };
            let over = record.kept.settle(now);
            let (answer, unneeded) = match decide(&mut record.kept, now)? {
                KeptDecision::Stay(answer) => return Ok(answer),
                KeptDecision::Change(answer, unneeded) => (answer, unneeded),
            };
            record.undo.add(self.revocable(over.into_iter().chain(unneeded).collect()), now);
            let events = self.seal_kept_events(&mut record.kept, actor, now)?;
            self.file_under_all_keys(&mut record);
            let until = record.kept.slots().map(|(_, grant)| grant.until).max();
            let id = stored.as_ref().map_or_else(|| ElicitationId::random(&*self.random), |stored| stored.id);
            if stored.is_none() && record.kept.is_empty() && record.undo.is_empty() {
                return Ok(answer);
            }
            let commit = self.kept_commit(stored.as_ref(), id, &record, events)?;
            if self.store.commit(commit).await? == Committed::Done {
                self.notify.publish(id);
                // Whoever shares the store must have the key for as long.
                if let Some(until) = until {
                    self.note_key_until(until).await?;
                }
                return Ok(answer);
            }
        }
        Err(Error::Unavailable("what is kept of a person is changed too often at once".to_owned()))
    }

    fn nothing_kept(&self, client: &ClientId, subject: &Subject) -> KeptRecord {
        KeptRecord {
            kept: Kept::new(client.clone(), subject.clone()),
            tags: self.ring.tags(Lookup::Kept(client, subject)).collect(),
            undo: Undo::default(),
        }
    }

    /// The commit that brings the record of what is kept to its next state, or erases it when nothing is left.
    pub(super) fn kept_commit(
        &self,
        stored: Option<&Stored>,
        id: ElicitationId,
        record: &KeptRecord,
        events: Vec<Vec<u8>>,
    ) -> Result<Commit, Error> {
        let expect = stored.map_or(Expect::Absent, |stored| Expect::Version(stored.version));
        let due = [record.kept.due(), record.undo.due].into_iter().flatten().min();
        let tags = record.tags.clone();
        let write = match due {
            None => Write::Erase { release: tags, leave: Vec::new() },
            Some(due) => Write::Record {
                record: record.seal(&self.ring, id)?,
                due,
                // There is none beside it; what it held before must be gone.
                outcome: StoredOutcome::Erase,
                take: tags.into_iter().map(|tag| Slot { tag, required: true }).collect(),
                release: Vec::new(),
                join: Vec::new(),
                leave: Vec::new(),
            },
        };
        Ok(Commit { id, expect, write, events })
    }

    fn seal_kept_events(
        &self,
        kept: &mut Kept,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let happened = kept.take_happened();
        let client = kept.client().clone();
        let event = |KeptHappening { what, grant, kind, reason }| Event {
            at: now,
            what,
            elicitation: None,
            client: Some(client.clone()),
            grant: Some(grant),
            kind: Some(kind),
            actor: actor.clone(),
            from: None,
            to: None,
            reason,
        };
        happened.into_iter().map(|happening| self.seal_event(&event(happening))).collect()
    }

    /// Puts the outcome of a completed elicitation where it is kept, if that is so and has not been done.
    pub(super) async fn ensure_kept(&self, id: ElicitationId) -> Result<(), Error> {
        let Some(stored) = self.store.load(id).await? else { return Ok(()) };
        let record = self.open_stored(&stored)?;
        let elicitation = record.elicitation.settle(self.now());
        let there = matches!(elicitation.state(), State::Completed { .. } | State::Claimed { .. });
        if elicitation.terms().keep.is_none() || record.filing.kept || !there {
            return Ok(());
        }
        self.put_kept(&elicitation).await?;
        let revoked = self
            .step(id, Actor::Clock, Needs::Record, |found| {
                Ok(match found.elicitation.state() {
                    State::Revoked { .. } => Decision::Stay(true),
                    _ => Decision::change(Change { kept: true, ..Change::from(found.elicitation) }, false),
                })
            })
            .await?;
        // An operator was faster: what is revoked is not kept.
        if revoked { self.drop_kept_of(&elicitation).await } else { Ok(()) }
    }

    /// Puts the outcome of an elicitation where it is kept. The same one may be put twice.
    pub(super) async fn put_kept(&self, elicitation: &Elicitation) -> Result<(), Error> {
        let terms = elicitation.terms();
        let (Some(keep), Some(outcome)) = (&terms.keep, self.load_outcome(elicitation).await?) else {
            return Ok(());
        };
        let grant = GrantId::random(&*self.random);
        self.change_kept(&terms.client, &terms.subject, &Actor::Person, |kept, now| {
            let unneeded = kept.put(keep, &terms.request, terms.id, &outcome, grant, now);
            Ok(KeptDecision::Change((), unneeded))
        })
        .await
    }

    /// Keeps no longer what came of this elicitation.
    pub(super) async fn drop_kept_of(&self, elicitation: &Elicitation) -> Result<(), Error> {
        let terms = elicitation.terms();
        let Some(keep) = &terms.keep else { return Ok(()) };
        self.change_kept(&terms.client, &terms.subject, &Actor::Clock, |kept, _| {
            if kept.slot(&keep.slot).is_none_or(|grant| grant.origin != terms.id) {
                return Ok(KeptDecision::Stay(()));
            }
            Ok(KeptDecision::dropped(kept.drop_slot(&keep.slot, Dropped::WithElicitation)))
        })
        .await
    }

    /// What time does to what is kept.
    pub(super) async fn tidy_kept(&self, stored: &Stored, mut record: KeptRecord) -> Result<(), Error> {
        if record.undo.due.is_some_and(|due| due <= self.now()) {
            return self.take_undo(stored).await;
        }
        // By itself and not by its tags: it may have been filed under keys that are gone.
        let now = self.now();
        let over = self.revocable(record.kept.settle(now));
        record.undo.add(over, now);
        let events = self.seal_kept_events(&mut record.kept, &Actor::Clock, now)?;
        let commit = self.kept_commit(Some(stored), stored.id, &record, events)?;
        // On a conflict somebody else changed it: it will be due again when it is.
        self.store.commit(commit).await?;
        self.notify.publish(stored.id);
        Ok(())
    }

    /// Has the record found under every key of the ring, whichever it was filed under before.
    fn file_under_all_keys(&self, record: &mut KeptRecord) {
        let lookup = Lookup::Kept(record.kept.client(), record.kept.subject());
        let new: Vec<_> = self.ring.tags(lookup).filter(|tag| !record.tags.contains(tag)).collect();
        record.tags.extend(new);
    }
}
