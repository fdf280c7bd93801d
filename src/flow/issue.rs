//! A client issues an elicitation.

use std::time::Duration;

use super::notices::Notices;
use super::record::{Filing, Idempotency, Record};
use super::step::Marks;
use super::undo::Undo;
use super::{Client, Error, Gate};
use crate::domain::kept::Keep;
use crate::domain::text::{Shape, plain};
use crate::domain::{
    Actor, Binding, Elicitation, ElicitationId, Invalid, Operation, Request, Spans, Subject, Terms,
};
use crate::store::{Commit, Committed, Expect, Outcome, Quota, Slot, Write};
use crate::vault::{Lookup, OpenError, RequestState};

/// What a client asks for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The person it is for; absent where the client's identity source knows only one.
    pub subject: Option<Subject>,
    /// The operation that it is for.
    pub operation: Operation,
    /// What is needed and why, to the person.
    pub message: String,
    /// What is asked for.
    pub request: Request,
    /// How much time the person has.
    pub lifetime: Duration,
    /// Under which name the outcome is to be kept, if it is.
    pub keep: Option<Keep>,
}

/// Seconds that `expiresIn` may be.
const LIFETIMES: std::ops::RangeInclusive<u64> = 10..=86_400;
/// The longest time that a caller may ask for.
pub const LONGEST_LIFETIME: Duration = Duration::from_secs(*LIFETIMES.end());
/// How long anything of an elicitation may be kept, at the longest, counted from its issue.
#[must_use]
pub fn longest_kept(spans: &Spans) -> Duration {
    spans.longest_life.max(LONGEST_LIFETIME) + spans.claim_by + spans.claim_window.max(spans.retention)
}
const DEFAULT_LIFETIME: u64 = 600;
const MESSAGE: Shape = Shape { longest: 1000, lines: true };

impl Ask {
    /// Checks what is left to check of an ask.
    ///
    /// # Errors
    /// [`Invalid`] at `message` or `expiresIn`.
    pub fn new(
        subject: Option<Subject>,
        operation: Operation,
        message: &str,
        request: Request,
        expires_in: Option<u64>,
        keep: Option<Keep>,
    ) -> Result<Self, Invalid> {
        let seconds = expires_in.unwrap_or(DEFAULT_LIFETIME);
        if !LIFETIMES.contains(&seconds) {
            let (least, most) = LIFETIMES.into_inner();
            return Err(Invalid::new("expiresIn", format!("must be {least} to {most} seconds")));
        }
        let message = plain("message", message, MESSAGE)?;
        Ok(Self { subject, operation, message, request, lifetime: Duration::from_secs(seconds), keep })
    }
}

/// A caller's key for an issue that may be sent twice.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// The key.
    pub key: String,
    /// A digest of the whole request.
    pub fingerprint: [u8; 32],
}

/// The elicitation that an issue led to.
#[derive(Debug)]
pub struct Issued {
    /// The elicitation.
    pub elicitation: Elicitation,
    /// For the first round.
    pub request_state: String,
    /// Whether it was there before, by the idempotency key.
    pub existed: bool,
}

/// What became of an attempt to put a new elicitation into the store.
pub(super) enum Insertion {
    New(Box<Elicitation>),
    /// A required slot leads to this one.
    Exists(ElicitationId),
}

impl Gate {
    /// Issues an elicitation, or finds the one that the same idempotency key issued.
    ///
    /// # Errors
    /// [`Error::KindNotAllowed`], [`Error::Invalid`] at `subject`, [`Error::IdempotencyMismatch`], [`Error::Full`],
    /// [`Error::Unavailable`].
    pub async fn issue(
        &self,
        client: &Client,
        ask: Ask,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Issued, Error> {
        let binding = client.binding(ask.subject.clone(), ask.operation.digest, ask.request.kind())?;
        let ask = self.with_provider(client, ask)?;
        if let Some(key) = &idempotency
            && let Some(issued) = self.issued_before(&binding, key).await?
        {
            return Ok(issued);
        }
        match self.insert(&binding, &ask, idempotency.as_ref(), false).await? {
            Insertion::New(elicitation) => {
                let request_state = self.request_state(&elicitation, 1)?;
                Ok(Issued { elicitation: *elicitation, request_state, existed: false })
            }
            // Lost a race against the same key: now it is there to be found.
            Insertion::Exists(_) => match &idempotency {
                Some(key) => self.issued_before(&binding, key).await?.ok_or_else(gone),
                None => Err(gone()),
            },
        }
    }

    /// The ask with what it leaves to the provider's configuration, if this client may ask for that provider and the provider
    /// can do what is asked.
    pub(super) fn with_provider(&self, client: &Client, mut ask: Ask) -> Result<Ask, Error> {
        let listed = |id: &String| client.providers.as_ref().is_none_or(|listed| listed.contains(id));
        let unknown = |field: &str| Invalid::new(field, "names no provider that this client may ask for");
        match &mut ask.request {
            Request::Secret(_) => {}
            Request::OAuth(asked) => {
                let provider = self.providers.get(&asked.provider).filter(|_| listed(&asked.provider));
                let provider = provider.ok_or_else(|| unknown("oauth.provider"))?;
                if asked.scopes.is_empty() {
                    asked.scopes.clone_from(&provider.settings().scopes);
                }
            }
            Request::Payment(asked) => {
                let payment = self.payments.get(&asked.provider).filter(|_| listed(&asked.provider));
                let payment = payment.ok_or_else(|| unknown("payment.provider"))?;
                let taken = payment.processor.takes(asked.money);
                taken.map_err(|problem| Invalid::new("payment.amount", problem))?;
            }
        }
        Ok(ask)
    }

    async fn issued_before(&self, binding: &Binding, key: &IdempotencyKey) -> Result<Option<Issued>, Error> {
        for tag in self.ring.tags(Lookup::Idempotency(&binding.client, &key.key)) {
            let Some(stored) = self.store.find(tag).await? else { continue };
            let record = self.open_stored(&stored)?;
            if record.filing.idempotency.map(|known| known.fingerprint) != Some(key.fingerprint) {
                return Err(Error::IdempotencyMismatch);
            }
            let elicitation = record.elicitation.settle(self.now());
            let request_state = self.request_state(&elicitation, 1)?;
            return Ok(Some(Issued { elicitation, request_state, existed: true }));
        }
        Ok(None)
    }

    /// Puts a new elicitation into the store. `sole` demands that no other live one has its binding.
    pub(super) async fn insert(
        &self,
        binding: &Binding,
        ask: &Ask,
        idempotency: Option<&IdempotencyKey>,
        sole: bool,
    ) -> Result<Insertion, Error> {
        if let Ok(insertion) = self.try_insert(binding, ask, idempotency, sole).await? {
            return Ok(insertion);
        }
        // Those that ran out a moment ago may still be counted.
        self.sweep().await?;
        let retry_after = Duration::from_secs(30);
        let insertion = self.try_insert(binding, ask, idempotency, sole).await?;
        insertion.map_err(|whose| Error::Full { whose, retry_after })
    }

    async fn try_insert(
        &self,
        binding: &Binding,
        ask: &Ask,
        idempotency: Option<&IdempotencyKey>,
        sole: bool,
    ) -> Result<Result<Insertion, &'static str>, Error> {
        let again = match &ask.keep {
            Some(keep) => self.asked_again(&binding.client, &binding.subject, keep, &ask.request).await?,
            None => None,
        };
        let now = self.now();
        let terms = Terms {
            id: ElicitationId::random(&*self.random),
            client: binding.client.clone(),
            subject: binding.subject.clone(),
            operation: ask.operation.clone(),
            message: ask.message.clone(),
            request: ask.request.clone(),
            created_at: now,
            lifetime: ask.lifetime,
            keep: ask.keep.clone(),
            again,
        };
        let id = terms.id;
        let mut elicitation = Elicitation::issue(terms);
        let marks = Marks::of(&elicitation);
        let events = self.seal_events(&mut elicitation, &Actor::Client(binding.client.clone()), None, now)?;

        let client_quota = self.ring.tag(Lookup::ClientQuota(&binding.client));
        let subject_quota = self.ring.tag(Lookup::SubjectQuota(&binding.client, &binding.subject));
        let mut bindings = self.ring.tags(Lookup::Binding(binding));
        let key = idempotency.map(|key| key.key.as_str());
        let mut idempotencies =
            key.into_iter().flat_map(|key| self.ring.tags(Lookup::Idempotency(&binding.client, key)));
        let filing = Filing {
            binding: bindings.next().ok_or(OpenError::Broken)?,
            older_bindings: bindings.collect(),
            idempotency: idempotencies
                .next()
                .zip(idempotency)
                .map(|(slot, key)| Idempotency { slot, fingerprint: key.fingerprint }),
            older_idempotencies: idempotencies.collect(),
            attempt: None,
            quotas: [client_quota, subject_quota],
            kept: false,
            orders: Vec::new(),
            notices: Notices::default(),
            undo: Undo::default(),
        };
        let bindings = filing.bindings().map(|tag| Slot { tag, required: sole });
        let idempotencies = filing.idempotencies().map(|tag| Slot { tag, required: true });
        let take = bindings.chain(idempotencies).collect();
        let join = vec![
            Quota { tag: client_quota, limit: self.quotas.per_client },
            Quota { tag: subject_quota, limit: self.quotas.per_subject },
        ];
        let due = elicitation.due(now, &self.spans);
        let record = Record { elicitation: elicitation.clone(), filing }.seal(&self.ring)?;
        let commit = Commit {
            id,
            expect: Expect::Absent,
            write: Write::Record {
                record,
                due,
                outcome: Outcome::Keep,
                take,
                release: Vec::new(),
                join,
                leave: Vec::new(),
            },
            events,
        };
        match self.store.commit(commit).await? {
            Committed::Done => {
                marks.count();
                Ok(Ok(Insertion::New(Box::new(elicitation))))
            }
            Committed::Taken(other) => Ok(Ok(Insertion::Exists(other))),
            Committed::Full(tag) if tag == client_quota => Ok(Err("client")),
            Committed::Full(_) => Ok(Err("subject")),
            Committed::Conflict => Err(Error::Unavailable("a fresh id was in use".to_owned())),
        }
    }

    /// A request state that answers round number `round`.
    pub(super) fn request_state(&self, elicitation: &Elicitation, round: u8) -> Result<String, Error> {
        let now = self.now();
        let terms = elicitation.terms();
        let longest = self.spans.longest_life.max(terms.lifetime) + self.spans.retention;
        let state =
            RequestState { id: terms.id, round, issued_at: now, expires_at: terms.created_at + longest };
        Ok(self.ring.seal_request_state(&state, &terms.binding())?)
    }
}

fn gone() -> Error {
    Error::Unavailable("an elicitation went away while it was looked up".to_owned())
}
