//! What is kept of one person for one client: a credential a slot, until it ends. Pure, like the state machine of
//! [`super::elicitation`]; every change notes what happened.
//!
//! A slot of kind `oauth` may hold several sets of tokens: what was granted before is never lost because something else was
//! granted after it. One refresher at a time has the lease on a slot; whatever it brings back counts only if the slot
//! still holds that lease.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::oauth::Tokens;
use super::secret::{SecretRequest, SecretValues};
use super::{ClientId, ElicitationId, GrantId, Invalid, Kind, Outcome, Request, Subject, Timestamp, What};

/// Under which name an outcome is kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// The name, chosen by the client.
    pub slot: String,
    /// For how many days.
    pub days: u16,
}

const LONGEST_SLOT: usize = 64;
const MOST_DAYS: u64 = 365;
/// How many slots one person may have at one client.
pub const MOST_SLOTS: usize = 50;
/// A token is renewed when it has less time than this.
const EARLY: Duration = Duration::from_mins(1);

impl Keep {
    /// Checks how a caller wants an outcome to be kept. `field` is the path of `keep`.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn new(field: &str, slot: &str, days: u64) -> Result<Self, Invalid> {
        let slot = checked_slot(&format!("{field}.slot"), slot)?;
        let days = u16::try_from(days).ok().filter(|days| (1..=MOST_DAYS).contains(&u64::from(*days)));
        let days = days
            .ok_or_else(|| Invalid::new(format!("{field}.days"), format!("must be 1 to {MOST_DAYS} days")))?;
        Ok(Self { slot, days })
    }

    fn span(&self) -> Duration {
        Duration::from_hours(24 * u64::from(self.days))
    }
}

/// The name of a slot.
///
/// # Errors
/// [`Invalid`] at `field`.
pub fn checked_slot(field: &str, slot: &str) -> Result<String, Invalid> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if slot.is_empty() || slot.len() > LONGEST_SLOT || !slot.chars().all(good) {
        let problem =
            format!("must have 1 to {LONGEST_SLOT} letters, digits, `-`, `_`, `.`, `:` or `/`, in ASCII");
        return Err(Invalid::new(field, problem));
    }
    Ok(slot.to_owned())
}

/// Why something is asked for that was kept before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// It did not work any more, as the client says; in its own words, if it gave any.
    Discarded(Option<String>),
    /// The provider does not renew it any more, or it ran out.
    Lapsed,
    /// It is there, and does not allow enough.
    More {
        /// What it allows.
        scopes: Vec<String>,
        /// What the provider calls the account.
        account: Option<String>,
    },
}

/// What is kept of one person for one client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    client: ClientId,
    subject: Subject,
    slots: BTreeMap<String, Grant>,
    #[serde(skip)]
    happened: Vec<KeptHappening>,
}

/// One kept credential.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Grant {
    /// Names it to operators and to the person.
    pub id: GrantId,
    /// From which elicitation it came last.
    pub origin: ElicitationId,
    /// Since when.
    pub since: Timestamp,
    /// Until when it is kept.
    pub until: Timestamp,
    /// When it was last released.
    pub used_at: Option<Timestamp>,
    /// The credential.
    pub held: Held,
}

/// What a slot holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// Values of a secret form.
    Secret {
        /// What the person read beside the inputs.
        labels: Vec<String>,
        /// The values.
        values: SecretValues,
    },
    /// Tokens of a provider.
    Tokens {
        /// The provider, by its id in the configuration.
        provider: String,
        /// Sets of tokens, the oldest first. None covers another.
        sets: Vec<Tokens>,
        /// Who renews them at this moment.
        lease: Option<Lease>,
    },
    /// Nothing any more: kept to say why, when it is asked for again.
    Ended {
        /// The kind of what there was.
        kind: Kind,
        /// Why there is nothing.
        why: Again,
    },
}

/// The right to renew a slot's tokens, for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Whose: a number like no other.
    #[serde(with = "super::ids::hex")]
    pub name: [u8; 16],
    /// Until when.
    pub until: Timestamp,
}

/// Why a credential is kept no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// The client says that it does not work any more, with its words for the person.
    ByClient(Option<String>),
    /// The person deleted it.
    ByPerson,
    /// An operator withdrew it, with a reason.
    ByOperator(String),
    /// Its elicitation was revoked before anybody had claimed it.
    WithElicitation,
    /// The provider does not renew it.
    Lapsed,
    /// Its days are over.
    Over,
}

impl Dropped {
    /// A word for the audit trail, or the operator's own.
    fn reason(&self) -> String {
        match self {
            Self::ByClient(_) => "discarded".to_owned(),
            Self::ByPerson => "deleted".to_owned(),
            Self::ByOperator(reason) => reason.clone(),
            Self::WithElicitation => "elicitation_revoked".to_owned(),
            Self::Lapsed => "lapsed".to_owned(),
            Self::Over => "over".to_owned(),
        }
    }

    /// What the person reads when it is asked for again, if it is to be said.
    fn again(self) -> Option<Again> {
        match self {
            Self::ByClient(words) => Some(Again::Discarded(words)),
            Self::Lapsed => Some(Again::Lapsed),
            Self::ByPerson | Self::ByOperator(_) | Self::WithElicitation | Self::Over => None,
        }
    }
}

/// One thing that happened to a kept credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptHappening {
    /// What it was.
    pub what: What,
    /// To which.
    pub grant: GrantId,
    /// Of which kind it is.
    pub kind: Kind,
    /// Why, where there is a reason.
    pub reason: Option<String>,
}

/// What is wanted of a slot.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// All that an elicitation would ask for.
    Request(&'a Request),
    /// Whatever is there, and if it is a token one with these scopes.
    Scopes(&'a [String]),
}

/// What there is in a slot.
#[derive(Debug)]
pub enum Found<'a> {
    /// All that is asked for.
    Values(&'a SecretValues),
    /// Tokens that allow all that is asked for.
    Tokens(&'a Tokens),
    /// Not what is asked for: why it is asked for again.
    Again(Again),
    /// Nothing.
    Nothing,
}

/// What becomes of tokens that were renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// They are kept.
    Kept,
    /// Others have taken the place of those that they renew.
    Superseded,
    /// Nothing is kept there any more, or somebody else renews it: nobody needs them.
    Gone,
}

/// Tokens that nobody needs any more, and that their provider should know to be so.
pub type Unneeded = Vec<(String, Tokens)>;

impl Kept {
    /// Nothing yet.
    #[must_use]
    pub const fn new(client: ClientId, subject: Subject) -> Self {
        Self { client, subject, slots: BTreeMap::new(), happened: Vec::new() }
    }

    /// Whose client's it is.
    #[must_use]
    pub const fn client(&self) -> &ClientId {
        &self.client
    }

    /// Whose it is.
    #[must_use]
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The slots by their names.
    pub fn slots(&self) -> impl Iterator<Item = (&str, &Grant)> {
        self.slots.iter().map(|(name, grant)| (name.as_str(), grant))
    }

    /// The slot of this name.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<&Grant> {
        self.slots.get(name)
    }

    /// Whether a slot of this name can be filled: there are not too many.
    #[must_use]
    pub fn has_room(&self, name: &str) -> bool {
        self.slots.len() < MOST_SLOTS || self.slots.contains_key(name)
    }

    /// Whether there is nothing left to keep.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// When time alone next ends something.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.slots.values().map(|grant| grant.until).min()
    }

    /// What the changes since the last call did, in order.
    #[must_use]
    pub fn take_happened(&mut self) -> Vec<KeptHappening> {
        std::mem::take(&mut self.happened)
    }

    /// What there is in a slot of what is wanted.
    #[must_use]
    pub fn find(&self, name: &str, wanted: Wanted<'_>, now: Timestamp) -> Found<'_> {
        let Some(grant) = self.slots.get(name).filter(|grant| now < grant.until) else {
            return Found::Nothing;
        };
        match (&grant.held, wanted) {
            (Held::Secret { values, .. }, Wanted::Request(Request::Secret(form)))
                if has_all(values, form) =>
            {
                Found::Values(values)
            }
            (Held::Secret { values, .. }, Wanted::Scopes(_)) => Found::Values(values),
            (Held::Tokens { provider, sets, .. }, Wanted::Request(Request::OAuth(asked)))
                if *provider == asked.provider =>
            {
                find_tokens(sets, &asked.scopes, asked.resource.as_deref(), now)
            }
            (Held::Tokens { sets, .. }, Wanted::Scopes(scopes)) => find_tokens(sets, scopes, None, now),
            (Held::Ended { why, .. }, Wanted::Scopes(_)) => Found::Again(why.clone()),
            (Held::Ended { kind, why }, Wanted::Request(request)) if *kind == request.kind() => {
                Found::Again(why.clone())
            }
            _ => Found::Nothing,
        }
    }

    /// Until when somebody renews what is in a slot, if somebody does.
    #[must_use]
    pub fn renewed_until(&self, name: &str, now: Timestamp) -> Option<Timestamp> {
        match &self.slots.get(name)?.held {
            Held::Tokens { lease, .. } => lease.map(|lease| lease.until).filter(|until| now < *until),
            _ => None,
        }
    }

    /// Puts an outcome into the slot that it is to be kept in. The same outcome may be put twice. What it displaces is no
    /// longer needed.
    pub fn put(
        &mut self,
        keep: &Keep,
        request: &Request,
        origin: ElicitationId,
        outcome: &Outcome,
        id: GrantId,
        now: Timestamp,
    ) -> Unneeded {
        let before = self.slots.get(&keep.slot);
        if before.is_some_and(|grant| grant.origin == origin) {
            return Vec::new();
        }
        let (held, unneeded) = match (outcome, request) {
            (Outcome::Secret(values), Request::Secret(form)) => {
                let labels = form.fields().iter().map(|field| field.label.clone()).collect();
                (Held::Secret { labels, values: values.clone() }, self.tokens_of(&keep.slot))
            }
            (Outcome::OAuth(tokens), Request::OAuth(asked)) => {
                let provider = asked.provider.clone();
                let tokens = (**tokens).clone();
                match before.map(|grant| &grant.held) {
                    Some(Held::Tokens { provider: same, sets, lease }) if *same == provider => {
                        let (sets, lease) = (with(sets, tokens), *lease);
                        (Held::Tokens { provider, sets, lease }, Vec::new())
                    }
                    _ => (
                        Held::Tokens { provider, sets: vec![tokens], lease: None },
                        self.tokens_of(&keep.slot),
                    ),
                }
            }
            _ => return Vec::new(),
        };
        let id = before.map_or(id, |grant| grant.id);
        let until = now + keep.span();
        let grant = Grant { id, origin, since: now, until, used_at: None, held };
        self.note(What::Kept, id, request.kind(), None);
        self.slots.insert(keep.slot.clone(), grant);
        unneeded
    }

    /// Notes that a slot's credential was released.
    pub fn used(&mut self, name: &str, now: Timestamp) {
        if let Some(grant) = self.slots.get_mut(name) {
            grant.used_at = Some(now);
        }
    }

    /// Ends what a slot holds. Returns tokens that their provider should hear of; `None` if there was nothing.
    pub fn drop_slot(&mut self, name: &str, why: Dropped) -> Option<Unneeded> {
        let grant = self.slots.get(name).filter(|grant| !matches!(grant.held, Held::Ended { .. }))?;
        let (id, kind) = (grant.id, grant.held.kind());
        // What the provider ended itself it need not hear of.
        let unneeded = if why == Dropped::Lapsed { Vec::new() } else { self.tokens_of(name) };
        self.note(What::Dropped, id, kind, Some(why.reason()));
        match (why.again(), self.slots.get_mut(name)) {
            (Some(why), Some(grant)) => grant.held = Held::Ended { kind, why },
            _ => drop(self.slots.remove(name)),
        }
        Some(unneeded)
    }

    /// Ends what has been kept for as long as it was to be.
    pub fn settle(&mut self, now: Timestamp) -> Unneeded {
        let over: Vec<String> =
            self.slots.iter().filter(|(_, grant)| grant.until <= now).map(|(name, _)| name.clone()).collect();
        let mut unneeded = Vec::new();
        for name in over {
            unneeded.extend(self.drop_slot(&name, Dropped::Over).unwrap_or_default());
            self.slots.remove(&name);
        }
        unneeded
    }

    /// Takes the lease on a slot's tokens to renew these, if nobody has it. Not if they have been renewed since they were
    /// looked at: to use their refresh token again would look like theft.
    pub fn lease(&mut self, name: &str, lease: Lease, old: &Tokens, now: Timestamp) -> bool {
        let is_old =
            |set: &Tokens| set.refresh_token == old.refresh_token && set.access_token == old.access_token;
        match self.slots.get_mut(name).map(|grant| &mut grant.held) {
            Some(Held::Tokens { lease: held, sets, .. })
                if held.is_none_or(|other| other.until <= now) && sets.iter().any(is_old) =>
            {
                *held = Some(lease);
                true
            }
            _ => false,
        }
    }

    /// Puts renewed tokens into the place of those that were to be renewed, and gives the lease up.
    pub fn renewed(&mut self, name: &str, lease: &Lease, old: &Tokens, renewed: Tokens) -> Renewed {
        let Some(grant) = self.slots.get_mut(name) else { return Renewed::Gone };
        let id = grant.id;
        let under = grant.held.leased(lease).is_some();
        let Held::Tokens { sets, .. } = &mut grant.held else { return Renewed::Gone };
        // Who has the lease by now or not: of the old tokens there is no other successor.
        let set = sets.iter_mut().find(|set| set.refresh_token == old.refresh_token);
        let found = set.map(|set| *set = renewed).is_some();
        grant.held.release(lease);
        if !found {
            return if under { Renewed::Superseded } else { Renewed::Gone };
        }
        self.note(What::Refreshed, id, Kind::OAuth, None);
        Renewed::Kept
    }

    /// Gives the lease up. With `lapsed`, the provider renews these tokens no more: they go, and the slot ends if they were
    /// its last.
    pub fn not_renewed(&mut self, name: &str, lease: &Lease, old: &Tokens, lapsed: bool) {
        let Some(grant) = self.slots.get_mut(name) else { return };
        let Some(sets) = grant.held.leased(lease) else { return };
        if lapsed {
            sets.retain(|set| set.refresh_token != old.refresh_token);
        }
        let none_left = sets.is_empty();
        grant.held.release(lease);
        if none_left {
            self.drop_slot(name, Dropped::Lapsed);
        }
    }

    fn tokens_of(&self, name: &str) -> Unneeded {
        match self.slots.get(name).map(|grant| &grant.held) {
            Some(Held::Tokens { provider, sets, .. }) => {
                sets.iter().map(|set| (provider.clone(), set.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    fn note(&mut self, what: What, grant: GrantId, kind: Kind, reason: Option<String>) {
        self.happened.push(KeptHappening { what, grant, kind, reason });
    }
}

impl Held {
    /// The kind of what is or was held.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Secret { .. } => Kind::Secret,
            Self::Tokens { .. } => Kind::OAuth,
            Self::Ended { kind, .. } => *kind,
        }
    }

    /// The sets of tokens, if they are under this lease.
    fn leased(&mut self, name: &Lease) -> Option<&mut Vec<Tokens>> {
        match self {
            Self::Tokens { sets, lease, .. } if lease.is_some_and(|lease| lease.name == name.name) => {
                Some(sets)
            }
            _ => None,
        }
    }

    fn release(&mut self, name: &Lease) {
        if let Self::Tokens { lease, .. } = self {
            *lease = lease.filter(|lease| lease.name != name.name);
        }
    }
}

/// Whether a token must be renewed before it is released.
#[must_use]
pub fn is_stale(tokens: &Tokens, now: Timestamp) -> bool {
    tokens.expires_at.is_some_and(|at| at <= now + EARLY)
}

/// Whether a token cannot be used any more.
#[must_use]
pub fn is_over(tokens: &Tokens, now: Timestamp) -> bool {
    tokens.expires_at.is_some_and(|at| at <= now)
}

fn has_all(values: &SecretValues, form: &SecretRequest) -> bool {
    let has = |name: &str| values.iter().any(|(known, _)| known == name);
    form.fields().iter().all(|field| has(&field.name) || !field.required)
}

fn find_tokens<'a>(
    sets: &'a [Tokens],
    scopes: &[String],
    resource: Option<&str>,
    now: Timestamp,
) -> Found<'a> {
    let lives = |set: &&Tokens| set.refresh_token.is_some() || !is_over(set, now);
    // What was given for another resource says nothing about this one, and adds nothing to it.
    let same = |set: &&Tokens| resource.is_none() || resource == set.resource.as_deref();
    if !sets.iter().any(|set| same(&set)) {
        return Found::Nothing;
    }
    let living = || sets.iter().rev().filter(same).filter(lives);
    if let Some(set) = living().find(|set| set.cover(scopes)) {
        return Found::Tokens(set);
    }
    Found::Again(living().next().map_or(Again::Lapsed, |widest| Again::More {
        scopes: widest.scopes.clone(),
        account: widest.account.clone(),
    }))
}

/// The sets with one more. Those that it covers are not needed beside it: at many providers to revoke them would end the new
/// one too. A refresh token that the provider gave before, and not again, still counts.
fn with(sets: &[Tokens], mut new: Tokens) -> Vec<Tokens> {
    let covered = |set: &Tokens| new.cover(&set.scopes) && set.resource == new.resource;
    let refresh = sets.iter().filter(|set| covered(set)).rev().find_map(|set| set.refresh_token.clone());
    let mut left: Vec<_> = sets.iter().filter(|set| !covered(set)).cloned().collect();
    new.refresh_token = new.refresh_token.or(refresh);
    left.push(new);
    left
}
