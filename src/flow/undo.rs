//! Tokens that nobody will use are revoked at their provider: those of an elicitation that ended before its outcome was
//! claimed, and those that are kept no longer.
//!
//! They stay, sealed, in the record that they belong to (never as an outcome: nothing releases them), from the commit that
//! ends their use until the provider has been told, and for a day at most. The sweep finds them when they are due.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::keep::KeptRecord;
use super::record::{Held, Record};
use super::{Error, Gate};
use crate::domain::kept::Unneeded;
use crate::domain::{Actor, ClientId, ElicitationId, Event, GrantId, Kind, State, Timestamp, What};
use crate::domain::{Elicitation, Outcome};
use crate::store::Stored;

/// For how long it is tried.
pub(super) const LONGEST: Duration = Duration::from_hours(24);
/// How long one try may take before another instance may try.
const TURN: Duration = Duration::from_mins(1);
/// The longest time between two tries.
const LONGEST_PAUSE: Duration = Duration::from_mins(30);

/// Tokens to be revoked at their provider.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Undo {
    pub unneeded: Unneeded,
    /// How often it was tried.
    tries: u32,
    /// When it is to be tried next.
    pub due: Option<Timestamp>,
    /// When it is given up.
    give_up_at: Option<Timestamp>,
}

/// Whose tokens they are, in the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undoing(ElicitationId);

impl Undo {
    /// Adds tokens, to be revoked at once.
    pub(super) fn add(&mut self, unneeded: Unneeded, now: Timestamp) {
        if unneeded.is_empty() {
            return;
        }
        self.unneeded.extend(unneeded);
        self.due = Some(now);
        self.give_up_at = Some(now + LONGEST);
        self.tries = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unneeded.is_empty()
    }

    fn begun(&mut self, now: Timestamp) {
        self.tries = self.tries.saturating_add(1);
        self.due = Some(now + TURN);
    }

    /// What is left to be tried again: later each time.
    fn failed(&mut self, left: Unneeded, now: Timestamp) {
        let pause = Duration::from_secs(5).saturating_mul(1 << self.tries.min(12)).min(LONGEST_PAUSE);
        self.unneeded = left;
        self.due = Some(now + pause);
    }

    fn is_hopeless(&self, now: Timestamp) -> bool {
        self.give_up_at.is_some_and(|at| at <= now)
    }
}

/// A record that holds tokens to be revoked.
enum Owner {
    Elicitation(Box<Record>),
    Kept(Box<KeptRecord>),
}

impl Owner {
    fn undo(&mut self) -> &mut Undo {
        match self {
            Self::Elicitation(record) => &mut record.filing.undo,
            Self::Kept(record) => &mut record.undo,
        }
    }
}

impl Gate {
    /// The tokens that an elicitation loses in a step which ends it before anybody had them. If nobody claimed them in time
    /// and they were to be kept, they are.
    pub(super) async fn lost_tokens(
        &self,
        record: &Record,
        after: &Elicitation,
        now: Timestamp,
    ) -> Result<Unneeded, Error> {
        let before = &record.elicitation;
        let had = matches!(before.state(), State::Completed { .. } | State::Unconfirmed { .. });
        let released = matches!(after.state(), State::Claimed { .. });
        if !had || released || after.holds_outcome(now) {
            return Ok(Vec::new());
        }
        let unclaimed =
            matches!((before.state(), after.state()), (State::Completed { .. }, State::Expired { .. }));
        if unclaimed && before.terms().keep.is_some() {
            if !record.filing.kept {
                self.put_kept(before).await?;
            }
            return Ok(Vec::new());
        }
        if before.terms().kind() != Kind::OAuth {
            return Ok(Vec::new());
        }
        Ok(match self.load_outcome(before).await? {
            Some(Outcome::OAuth(tokens)) => self.unneeded(before, *tokens),
            _ => Vec::new(),
        })
    }

    /// Tokens of an elicitation that nobody will have, if their provider can be told.
    pub(super) fn unneeded(
        &self,
        elicitation: &Elicitation,
        tokens: crate::domain::oauth::Tokens,
    ) -> Unneeded {
        let crate::domain::Request::OAuth(asked) = &elicitation.terms().request else { return Vec::new() };
        self.revocable(vec![(asked.provider.clone(), tokens)])
    }

    /// Those of the tokens whose provider can be told.
    pub(super) fn revocable(&self, mut unneeded: Unneeded) -> Unneeded {
        unneeded.retain(|(provider, _)| {
            self.providers.get(provider).is_some_and(|provider| provider.may_revoke())
        });
        unneeded
    }

    /// Has the tokens of a record revoked that the sweep found due.
    pub(super) async fn take_undo(&self, stored: &Stored) -> Result<(), Error> {
        let now = self.now();
        let mut owner = self.owner(stored)?;
        owner.undo().begun(now);
        // Whoever commits this does it; it is due again if nothing comes of it.
        if self.put_back(stored, owner, Vec::new(), now).await? {
            // Without room it is due again in a while.
            self.errands.undo(Undoing(stored.id));
        }
        Ok(())
    }

    /// Tells the providers.
    pub(super) async fn undo(&self, Undoing(id): Undoing) {
        if let Err(error) = self.try_undo(id).await {
            tracing::warn!(%error, "tokens that nobody needs were not revoked yet; it will be tried again");
        }
    }

    async fn try_undo(&self, id: ElicitationId) -> Result<(), Error> {
        let Some(stored) = self.store.load(id).await? else { return Ok(()) };
        let tried = self.owner(&stored)?.undo().unneeded.clone();
        let (mut told, mut failed) = (0, 0);
        let mut done = Vec::new();
        for (provider, tokens) in &tried {
            // Of one that is no longer configured nobody can be told.
            let revoked = match self.providers.get(provider) {
                Some(known) => known.revoke(tokens).await.is_ok(),
                None => true,
            };
            if revoked {
                told += usize::from(self.providers.contains_key(provider));
                done.push(&tokens.access_token);
            } else {
                failed += 1;
            }
        }
        for _ in 0..super::step::TRIES {
            let Some(stored) = self.store.load(id).await? else { return Ok(()) };
            let mut owner = self.owner(&stored)?;
            let now = self.now();
            let undo = owner.undo();
            let mut events = Vec::new();
            if told > 0 {
                events.push(What::RevokedThere);
            }
            // Others may have come meanwhile, or have been done by another.
            let mut all = std::mem::take(&mut undo.unneeded);
            all.retain(|(_, tokens)| !done.contains(&&tokens.access_token));
            if failed > 0 && undo.is_hopeless(now) {
                tracing::error!(
                    "tokens that nobody needs could not be revoked at their provider within a day"
                );
                events.push(What::NotRevokedThere);
                all.retain(|(_, tokens)| {
                    !tried.iter().any(|(_, old)| old.access_token == tokens.access_token)
                });
            }
            if all.is_empty() {
                *undo = Undo::default();
            } else {
                undo.failed(all, now);
            }
            if self.put_back(&stored, owner, events, now).await? {
                return Ok(());
            }
        }
        Err(Error::Unavailable("a record is changed too often at once".to_owned()))
    }

    fn owner(&self, stored: &Stored) -> Result<Owner, Error> {
        Ok(match self.open_held(stored)? {
            Held::Elicitation(record) => Owner::Elicitation(record),
            Held::Kept(record) => Owner::Kept(record),
        })
    }

    /// Commits a record of which only that has changed. Returns whether it still was as it was loaded.
    async fn put_back(
        &self,
        stored: &Stored,
        owner: Owner,
        events: Vec<What>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let done = |client: &ClientId, elicitation, grant: Option<GrantId>| {
            let event = |what| Event {
                at: now,
                what,
                elicitation,
                client: Some(client.clone()),
                grant,
                kind: Some(Kind::OAuth),
                actor: Actor::Clock,
                from: None,
                to: None,
                reason: None,
            };
            events.iter().map(|what| self.seal_event(&event(*what))).collect::<Result<Vec<_>, _>>()
        };
        let commit = match owner {
            Owner::Elicitation(record) => {
                let terms = record.elicitation.terms();
                let events = done(&terms.client, Some(terms.id), None)?;
                self.commit_of(stored, &record, events, now)?
            }
            Owner::Kept(record) => {
                let events = done(record.kept.client(), None, None)?;
                self.kept_commit(Some(stored), stored.id, &record, events)?
            }
        };
        Ok(self.store.commit(commit).await? == crate::store::Committed::Done)
    }
}
