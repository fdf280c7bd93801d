//! How an elicitation lies in the store: sealed whole, with the tags it is filed under.
//!
//! The sealed bytes are two parts: the owner (client and kind) and the record, which opens only for that owner.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::keep::KeptRecord;
use super::notices::Notices;
use super::undo::Undo;
use super::{Error, Gate};
use crate::domain::ids::hex;
use crate::domain::{ClientId, Elicitation, ElicitationId, Kind, Tag};
use crate::store::Stored;
use crate::vault::{OpenError, Place, Ring};

/// What is sealed for one elicitation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub elicitation: Elicitation,
    pub filing: Filing,
}

/// Where the store files it. Kept with the record, since a tag cannot be made again once its key is gone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Filing {
    /// Leads to it while it is live or completed.
    pub binding: Tag,
    /// The same under the other keys of the ring, so that instances between which a key is replaced find one another's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older_bindings: Vec<Tag>,
    /// Leads to it as long as it is kept.
    pub idempotency: Option<Idempotency>,
    /// The same under the other keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older_idempotencies: Vec<Tag>,
    /// Leads to it while its claim may be repeated.
    pub attempt: Option<Tag>,
    /// Counts it while it is live.
    pub quotas: [Tag; 2],
    /// Whether its outcome has been put where it is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Lead to it by its orders, as long as it is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Tag>,
    /// What its client is to be told.
    #[serde(default, skip_serializing_if = "Notices::is_empty")]
    pub notices: Notices,
    /// Tokens that nobody got, and that their provider is to revoke.
    #[serde(default, skip_serializing_if = "Undo::is_empty")]
    pub undo: Undo,
}

impl Filing {
    /// What leads to it while it is live or completed.
    pub(super) fn bindings(&self) -> impl Iterator<Item = Tag> + '_ {
        std::iter::once(self.binding).chain(self.older_bindings.iter().copied())
    }

    /// What leads to it as long as it is kept.
    pub(super) fn idempotencies(&self) -> impl Iterator<Item = Tag> + '_ {
        self.idempotency.iter().map(|key| key.slot).chain(self.older_idempotencies.iter().copied())
    }
}

/// The caller's key for an issue, and what was issued with it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Idempotency {
    pub slot: Tag,
    #[serde(with = "hex")]
    pub fingerprint: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct Owner {
    client: ClientId,
    kind: Kind,
}

impl Record {
    pub(super) fn seal(&self, ring: &Ring) -> Result<Vec<u8>, Error> {
        let terms = self.elicitation.terms();
        let (id, kind) = (terms.id, terms.kind());
        let owner = to_json(&Owner { client: terms.client.clone(), kind })?;
        let owner = ring.seal(Place::Owner(id), &owner)?;
        let record = ring.seal(Place::Record(id, &terms.client, kind), &to_json(self)?)?;
        let length = u16::try_from(owner.len()).map_err(|_| OpenError::Broken)?;
        Ok([length.to_be_bytes().as_slice(), &owner, &record].concat())
    }

    fn open(ring: &Ring, id: ElicitationId, length: usize, rest: &[u8]) -> Result<Self, Error> {
        let (owner, record) = rest.split_at_checked(length).ok_or(OpenError::Broken)?;
        let owner: Owner = from_json(&ring.open(Place::Owner(id), owner)?)?;
        from_json(&ring.open(Place::Record(id, &owner.client, owner.kind), record)?)
    }
}

/// A record of the store, opened.
pub(super) enum Held {
    Elicitation(Box<Record>),
    /// What is kept of a person.
    Kept(Box<KeptRecord>),
}

impl Gate {
    /// Opens what the store returned. An elicitation's record begins with its owner's length; one of what is kept has none
    /// there.
    pub(super) fn open_held(&self, stored: &Stored) -> Result<Held, Error> {
        let (length, rest) = stored.record.split_first_chunk::<2>().ok_or(OpenError::Broken)?;
        Ok(match usize::from(u16::from_be_bytes(*length)) {
            0 => Held::Kept(Box::new(from_json(&self.ring.open(Place::Kept(stored.id), rest)?)?)),
            length => Held::Elicitation(Box::new(Record::open(&self.ring, stored.id, length, rest)?)),
        })
    }

    /// The same, where an elicitation is meant.
    pub(super) fn open_stored(&self, stored: &Stored) -> Result<Record, Error> {
        match self.open_held(stored)? {
            Held::Elicitation(record) => Ok(*record),
            Held::Kept(_) => Err(Error::NotFound),
        }
    }
}

impl KeptRecord {
    pub(super) fn seal(&self, ring: &Ring, id: ElicitationId) -> Result<Vec<u8>, Error> {
        let sealed = ring.seal(Place::Kept(id), &to_json(self)?)?;
        Ok([&[0, 0], sealed.as_slice()].concat())
    }
}

fn to_json(value: &impl Serialize) -> Result<Zeroizing<Vec<u8>>, Error> {
    serde_json::to_vec(value).map(Zeroizing::new).map_err(|_| OpenError::Broken.into())
}

fn from_json<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|_| OpenError::Broken.into())
}
