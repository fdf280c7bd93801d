//! A handler uses what is kept of a person, or says that it does not work any more; a round looks whether it must ask at all.

use std::time::Duration;

use super::errands::Errand;
use super::keep::KeptDecision;
use super::refresh::Refresh;
use super::{Client, Error, Gate};
use crate::domain::kept::{
    Again, Dropped, Found, Held, Keep, Kept, Lease, MOST_SLOTS, Wanted, is_over, is_stale,
};
use crate::domain::oauth::Tokens;
use crate::domain::text::{Shape, plain};
use crate::domain::{
    Actor, ClientId, ElicitationId, Event, GrantId, Invalid, Kind, Outcome, Request, Subject, Timestamp, What,
};

/// How long a call waits for a token that is being renewed.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a renewal may take before another may begin: longer than all requests that it makes.
const LEASE: Duration = Duration::from_secs(45);
/// How often it is noted that something was used.
const NOTED_EVERY: Duration = Duration::from_mins(10);
const REASON: Shape = Shape { longest: 200, lines: false };

/// Why nothing that is kept can be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotKept {
    /// There is nothing, or it is of another kind.
    Nothing,
    /// It is there no longer, or not enough.
    Again(Again),
}

/// What is looked for.
#[derive(Clone, Copy)]
struct Place<'a> {
    client: &'a ClientId,
    subject: &'a Subject,
    slot: &'a str,
    wanted: Wanted<'a>,
}

/// What a look came to.
enum Looked {
    Released(Outcome),
    Not(NotKept),
    /// Somebody renews it, until this time, in this record.
    Renewing(ElicitationId, Timestamp),
    /// It cannot be used, and the provider has just not renewed it.
    Stale,
}

impl Gate {
    /// Releases what is kept of a person in a slot, renewed if it must be.
    ///
    /// # Errors
    /// [`Error::NotKept`], [`Error::ScopesMissing`], [`Error::Invalid`] at `subject…`, [`Error::Unavailable`] also if the
    /// provider does not renew it now.
    pub async fn use_kept(
        &self,
        client: &Client,
        subject: Option<Subject>,
        slot: &str,
        scopes: &[String],
    ) -> Result<Outcome, Error> {
        let subject = &client.subject(subject)?;
        let place = Place { client: &client.id, subject, slot, wanted: Wanted::Scopes(scopes) };
        match self.release_kept(place).await? {
            Ok(outcome) => Ok(outcome),
            Err(NotKept::Again(Again::More { .. })) => Err(Error::ScopesMissing),
            Err(_) => Err(Error::NotKept),
        }
    }

    /// What is kept for a round, if it is all that the round asks for.
    pub(super) async fn kept_for(
        &self,
        client: &ClientId,
        subject: &Subject,
        keep: &Keep,
        request: &Request,
    ) -> Result<Option<Outcome>, Error> {
        let place = Place { client, subject, slot: &keep.slot, wanted: Wanted::Request(request) };
        Ok(self.release_kept(place).await?.ok())
    }

    /// Why something must be asked for again that was kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no room for it, [`Error::Unavailable`].
    pub(super) async fn asked_again(
        &self,
        client: &ClientId,
        subject: &Subject,
        keep: &Keep,
        request: &Request,
    ) -> Result<Option<Again>, Error> {
        let Some((_, record)) = self.load_kept(client, subject).await? else { return Ok(None) };
        if !record.kept.has_room(&keep.slot) {
            let field = format!("{}.keep.slot", request.kind());
            let problem = format!("is new, and {MOST_SLOTS} slots of this person are in use");
            return Err(Invalid::new(field, problem).into());
        }
        Ok(match record.kept.find(&keep.slot, Wanted::Request(request), self.now()) {
            Found::Again(again) => Some(again),
            Found::Values(_) | Found::Tokens(_) | Found::Nothing => None,
        })
    }

    /// The client says that what is kept in a slot does not work any more, in its own words if it gives any. What was
    /// discarded before is no failure.
    ///
    /// # Errors
    /// [`Error::Invalid`] at `subject…` or `reason`, [`Error::Unavailable`].
    pub async fn discard_kept(
        &self,
        client: &Client,
        subject: Option<Subject>,
        slot: &str,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let subject = client.subject(subject)?;
        let words = reason.map(|reason| plain("reason", reason, REASON)).transpose()?;
        let actor = Actor::Client(client.id.clone());
        self.change_kept(&client.id, &subject, &actor, |kept, _| {
            Ok(KeptDecision::dropped(kept.drop_slot(slot, Dropped::ByClient(words.clone()))))
        })
        .await
    }

    async fn release_kept(&self, place: Place<'_>) -> Result<Result<Outcome, NotKept>, Error> {
        let until = self.now() + PATIENCE;
        let mut subscription = None;
        // One renewal is tried for a call, by itself or by another; one whose time has passed was none.
        let mut renew = true;
        loop {
            match self.look_at_kept(place, renew).await? {
                Looked::Released(outcome) => return Ok(Ok(outcome)),
                Looked::Not(why) => return Ok(Err(why)),
                Looked::Renewing(id, lease_until) if self.now() < until && !self.shutdown.is_cancelled() => {
                    let Some(subscription) = &mut subscription else {
                        // It may be renewed before anybody listens: look again.
                        subscription = Some(self.notify.subscribe(id));
                        renew = false;
                        continue;
                    };
                    let sleep = self.now().until(lease_until.min(until)) + Duration::from_millis(1);
                    tokio::select! {
                        () = subscription.changed() => {}
                        () = tokio::time::sleep(sleep) => {}
                        () = self.shutdown.cancelled() => {}
                    }
                    renew = lease_until <= self.now();
                }
                Looked::Renewing(..) | Looked::Stale => {
                    return Err(Error::Unavailable("a provider does not renew a kept token now".to_owned()));
                }
            }
        }
    }

    /// Takes what there is from a slot. If it must be renewed, nobody does, and `renew` says so, has it renewed.
    async fn look_at_kept(&self, place: Place<'_>, renew: bool) -> Result<Looked, Error> {
        let Place { client, subject, slot, wanted } = place;
        let Some((stored, record)) = self.load_kept(client, subject).await? else {
            return Ok(Looked::Not(NotKept::Nothing));
        };
        let (kept, now) = (&record.kept, self.now());
        let outcome = match kept.find(slot, wanted, now) {
            Found::Values(values) => Outcome::Secret(values.clone()),
            Found::Again(why) => return Ok(Looked::Not(NotKept::Again(why))),
            Found::Nothing => return Ok(Looked::Not(NotKept::Nothing)),
            Found::Tokens(set) => {
                let over = is_over(set, now);
                let renewing = kept.renewed_until(slot, now);
                if let Some(until) = renewing.filter(|_| over) {
                    return Ok(Looked::Renewing(stored.id, until));
                }
                let provider =
                    renewer(kept, slot).filter(|_| is_stale(set, now) && set.refresh_token.is_some());
                match provider.filter(|_| renew && renewing.is_none()) {
                    Some(provider) => {
                        let until = self.have_renewed(place, provider, set).await?;
                        return Ok(Looked::Renewing(stored.id, until));
                    }
                    None if over => return Ok(Looked::Stale),
                    // A token that still counts need not wait for the next.
                    None => Outcome::OAuth(Box::new(Tokens { refresh_token: None, ..set.clone() })),
                }
            }
        };
        let Some(grant) = kept.slot(slot) else { return Ok(Looked::Not(NotKept::Nothing)) };
        let event = used(client, grant.id, grant.held.kind(), now);
        self.store.append(vec![self.seal_event(&event)?]).await?;
        // Whoever ended it meanwhile has been told that nothing of it is released.
        let (id, until) = (grant.id, grant.until);
        let again = self.load_kept(client, subject).await?;
        let still = again
            .as_ref()
            .and_then(|(_, record)| record.kept.slot(slot))
            .is_some_and(|now| now.id == id && now.until == until && !matches!(now.held, Held::Ended { .. }));
        if !still {
            return Ok(Looked::Not(NotKept::Nothing));
        }
        if grant.used_at.is_none_or(|at| at + NOTED_EVERY <= now) {
            self.note_used(place).await?;
        }
        Ok(Looked::Released(outcome))
    }

    /// Takes the lease on a slot, if nobody has it, and has its tokens renewed. Until when whoever has the lease has it: until
    /// now, if these tokens have been renewed already.
    async fn have_renewed(
        &self,
        place: Place<'_>,
        provider: String,
        old: &Tokens,
    ) -> Result<Timestamp, Error> {
        let Place { client, subject, slot, .. } = place;
        let mut name = [0; 16];
        self.random.fill(&mut name);
        let (lease, mine) = self
            .change_kept(client, subject, &Actor::Clock, |kept, now| {
                let lease = Lease { name, until: now + LEASE };
                if kept.lease(slot, lease, old, now) {
                    return Ok(KeptDecision::Change((lease.until, true), Vec::new()));
                }
                Ok(KeptDecision::Stay((kept.renewed_until(slot, now).unwrap_or(now), false)))
            })
            .await?;
        if mine {
            let (client, subject, slot) = (client.clone(), subject.clone(), slot.to_owned());
            let lease = Lease { name, until: lease };
            let refresh = Refresh { client, subject, slot, provider, lease, old: old.clone() };
            self.errands.room()?.send(Errand::Refresh(Box::new(refresh)));
        }
        Ok(lease)
    }

    async fn note_used(&self, place: Place<'_>) -> Result<(), Error> {
        let Place { client, subject, slot, .. } = place;
        self.change_kept(client, subject, &Actor::Clock, |kept, now| {
            let noted =
                kept.slot(slot).and_then(|grant| grant.used_at).is_some_and(|at| now < at + NOTED_EVERY);
            if noted {
                return Ok(KeptDecision::Stay(()));
            }
            kept.used(slot, now);
            Ok(KeptDecision::Change((), Vec::new()))
        })
        .await
    }
}

/// The provider that renews what is in a slot.
fn renewer(kept: &Kept, slot: &str) -> Option<String> {
    match &kept.slot(slot)?.held {
        Held::Tokens { provider, .. } => Some(provider.clone()),
        _ => None,
    }
}

fn used(client: &ClientId, grant: GrantId, kind: Kind, now: Timestamp) -> Event {
    Event {
        at: now,
        what: What::Used,
        elicitation: None,
        client: Some(client.clone()),
        grant: Some(grant),
        kind: Some(kind),
        actor: Actor::Client(client.clone()),
        from: None,
        to: None,
        reason: None,
    }
}
