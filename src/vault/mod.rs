//! The vault: everything that is kept or handed out in sealed form passes through here.
//!
//! A [`Ring`] holds the keys. The first key seals; every key opens, so a key can be replaced while records
//! sealed under the old one are still alive. What is derived from each key is never mixed: sealing
//! (AES-256-GCM), lookup tags, page tokens, and a pair that signs.

mod key_file;
mod request_state;

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

pub use key_file::{KeyFileError, create_key_file, load_key_file, prepare_key, rotate_key_file};
pub use request_state::RequestState;

use crate::domain::binding::length_prefixed;
use crate::domain::{Binding, ClientId, ElicitationId, Kind, Outcome, Random, Subject, Tag};

/// Grows when the layout of what is sealed changes; part of the associated data.
const SCHEMA: &[u8] = b"1";
const FORMAT: u8 = 1;
const SALT: usize = 16;
const NONCE: usize = 12;

/// Where a sealed thing belongs. It opens nowhere else.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// The client and kind of an elicitation's record, needed to open the record itself.
    Owner(ElicitationId),
    /// An elicitation's record.
    Record(ElicitationId, &'a ClientId, Kind),
    /// What is kept of one person for one client.
    Kept(ElicitationId),
    /// An elicitation's outcome.
    Outcome(ElicitationId, &'a ClientId, Kind),
    /// What belongs to a browser's visit, of this kind, under this tag.
    Visit(&'static str, Tag),
    /// An audit event.
    Event,
    /// A request state handed to this client.
    RequestState(&'a ClientId),
}

impl Place<'_> {
    const fn purpose(self) -> &'static [u8] {
        match self {
            Self::Owner(_) => b"owner",
            Self::Record(..) => b"record",
            Self::Kept(_) => b"kept",
            Self::Outcome(..) => b"outcome",
            Self::Visit(..) => b"visit",
            Self::Event => b"event",
            Self::RequestState(_) => b"request-state",
        }
    }

    fn associated_data(self) -> Vec<u8> {
        let purpose = self.purpose();
        match self {
            Self::Owner(id) | Self::Kept(id) => length_prefixed(&[SCHEMA, purpose, id.as_bytes()]),
            Self::Record(id, client, kind) | Self::Outcome(id, client, kind) => length_prefixed(&[
                SCHEMA,
                purpose,
                id.as_bytes(),
                client.as_str().as_bytes(),
                kind.as_str().as_bytes(),
            ]),
            Self::Visit(kind, tag) => length_prefixed(&[SCHEMA, purpose, kind.as_bytes(), &tag.0]),
            Self::Event => length_prefixed(&[SCHEMA, purpose]),
            Self::RequestState(client) => length_prefixed(&[SCHEMA, purpose, client.as_str().as_bytes()]),
        }
    }
}

/// What a lookup tag is computed over; tags of different purposes never meet.
#[derive(Debug, Clone, Copy)]
pub enum Lookup<'a> {
    /// The live elicitation of a binding.
    Binding(&'a Binding),
    /// The elicitation issued with an idempotency key.
    Idempotency(&'a ClientId, &'a str),
    /// The elicitation claimed by an attempt.
    Attempt(&'a Binding, &'a [u8; 32]),
    /// What belongs to a browser's visit: its kind and its name.
    Visit(&'static str, &'a str),
    /// One render of an elicitation's page.
    Render(ElicitationId, &'a str),
    /// What is kept of a person for a client.
    Kept(&'a ClientId, &'a Subject),
    /// The elicitation of an order: the processor's id in the configuration, and our name for the order.
    Order(&'a str, &'a str),
    /// The endpoint of a client's server.
    Endpoint(&'a ClientId),
    /// How many are pending for a client.
    ClientQuota(&'a ClientId),
    /// How many are pending for a person at a client.
    SubjectQuota(&'a ClientId, &'a Subject),
}

impl Lookup<'_> {
    fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Binding(binding) => length_prefixed(&[b"binding", &binding.to_bytes()]),
            Self::Idempotency(client, key) => {
                length_prefixed(&[b"idempotency", client.as_str().as_bytes(), key.as_bytes()])
            }
            Self::Attempt(binding, attempt) => length_prefixed(&[b"attempt", &binding.to_bytes(), attempt]),
            Self::Visit(kind, name) => length_prefixed(&[b"visit", kind.as_bytes(), name.as_bytes()]),
            Self::Render(id, render) => length_prefixed(&[b"render", id.as_bytes(), render.as_bytes()]),
            Self::Order(processor, name) => {
                length_prefixed(&[b"order", processor.as_bytes(), name.as_bytes()])
            }
            Self::Endpoint(client) => length_prefixed(&[b"endpoint", client.as_str().as_bytes()]),
            Self::ClientQuota(client) => length_prefixed(&[b"client-quota", client.as_str().as_bytes()]),
            Self::Kept(client, subject) => of_person(b"kept", client, subject),
            Self::SubjectQuota(client, subject) => of_person(b"subject-quota", client, subject),
        }
    }
}

fn of_person(purpose: &[u8], client: &ClientId, subject: &Subject) -> Vec<u8> {
    length_prefixed(&[purpose, client.as_str().as_bytes(), subject.issuer.as_bytes(), subject.id.as_bytes()])
}

/// Something sealed cannot be opened. Nothing is released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Sealed under a key that is not in the ring.
    #[error("sealed under key `{0}`, which is not in the key ring; put it back into the key file")]
    UnknownKey(String),
    /// Changed, cut, or moved from where it was sealed.
    #[error("does not open: it was changed, or moved from where it was sealed")]
    Broken,
}

/// One key of the ring: a name to find it by and 256 random bits.
pub struct RingKey {
    id: String,
    sealing: hmac::Key,
    tags: hmac::Key,
    pages: hmac::Key,
    /// Of a pair whose other half may be published.
    signing: Ed25519KeyPair,
}

impl RingKey {
    /// Derives what is used from a 256-bit secret (HKDF-SHA-256, RFC 5869).
    ///
    /// # Errors
    /// [`OpenError::Broken`] only if the cryptographic library refuses to work.
    pub fn new(id: String, secret: &[u8; 32]) -> Result<Self, OpenError> {
        let root = Salt::new(HKDF_SHA256, b"sidegate key ring").extract(secret);
        let derive = |label: &[u8]| {
            let mut bytes = Zeroizing::new([0; 32]);
            root.expand(&[label], HKDF_SHA256)
                .and_then(|output| output.fill(&mut *bytes))
                .map_err(|_| OpenError::Broken)?;
            Ok(bytes)
        };
        let key = |label| derive(label).map(|bytes| hmac::Key::new(HMAC_SHA256, &*bytes));
        let (sealing, tags, pages) = (key(b"sealing")?, key(b"tags")?, key(b"pages")?);
        let signing =
            Ed25519KeyPair::from_seed_unchecked(&*derive(b"signing")?).map_err(|_| OpenError::Broken)?;
        Ok(Self { id, sealing, tags, pages, signing })
    }

    /// Its id and a fingerprint of it, joined by a colon.
    fn name(&self) -> String {
        let [a, b, c, d, ..] = mac(&self.tags, b"fingerprint");
        format!("{}:{:08x}", self.id, u32::from_be_bytes([a, b, c, d]))
    }

    /// A key of its own for each sealed thing, so that random nonces never run out.
    fn message_key(&self, purpose: &[u8], salt: &[u8]) -> Result<LessSafeKey, OpenError> {
        let bytes = hmac::sign(&self.sealing, &length_prefixed(&[purpose, salt]));
        UnboundKey::new(&AES_256_GCM, bytes.as_ref()).map(LessSafeKey::new).map_err(|_| OpenError::Broken)
    }
}

/// The key ring and what is done with it.
#[derive(Clone)]
pub struct Ring {
    first: Arc<RingKey>,
    others: Arc<[RingKey]>,
    random: Arc<dyn Random>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys().map(|key| &key.id)).finish()
    }
}

impl Ring {
    /// A ring of keys: `first` seals, it and the `others` open.
    #[must_use]
    pub fn new(first: RingKey, others: Vec<RingKey>, random: Arc<dyn Random>) -> Self {
        Self { first: Arc::new(first), others: others.into(), random }
    }

    fn keys(&self) -> impl Iterator<Item = &RingKey> {
        std::iter::once(&*self.first).chain(self.others.iter())
    }

    /// Each key, the one that seals first, by its id and a fingerprint: keys of one id that differ are told apart.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.keys().map(RingKey::name).collect()
    }

    /// Seals `plain` for `place` under the first key.
    ///
    /// # Errors
    /// [`OpenError::Broken`] only if the cryptographic library refuses to work.
    pub fn seal(&self, place: Place<'_>, plain: &[u8]) -> Result<Vec<u8>, OpenError> {
        let key = &self.first;
        let mut fresh = [0; SALT + NONCE];
        self.random.fill(&mut fresh);
        let (salt, nonce) = fresh.split_at(SALT);
        let id = key.id.as_bytes();
        let mut sealed = Vec::with_capacity(2 + id.len() + fresh.len() + plain.len() + 16);
        sealed.push(FORMAT);
        sealed.push(u8::try_from(id.len()).map_err(|_| OpenError::Broken)?);
        sealed.extend_from_slice(id);
        sealed.extend_from_slice(&fresh);
        let head = sealed.len();
        sealed.extend_from_slice(plain);
        let body = sealed.get_mut(head..).unwrap_or_default();
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| OpenError::Broken)?;
        let tag = key
            .message_key(place.purpose(), salt)?
            .seal_in_place_separate_tag(nonce, Aad::from(place.associated_data()), body)
            .map_err(|_| OpenError::Broken)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens what was sealed for `place`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, place: Place<'_>, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let parts = Parts::of(sealed).ok_or(OpenError::Broken)?;
        let key = self
            .keys()
            .find(|key| key.id.as_bytes() == parts.key_id)
            .ok_or_else(|| OpenError::UnknownKey(String::from_utf8_lossy(parts.key_id).into_owned()))?;
        let nonce = Nonce::try_assume_unique_for_key(parts.nonce).map_err(|_| OpenError::Broken)?;
        let mut body = Zeroizing::new(parts.body.to_vec());
        let length = key
            .message_key(place.purpose(), parts.salt)?
            .open_in_place(nonce, Aad::from(place.associated_data()), &mut body)
            .map_err(|_| OpenError::Broken)?
            .len();
        body.truncate(length);
        Ok(body)
    }

    /// Seals an outcome beside the record of elicitation `id`.
    ///
    /// # Errors
    /// As [`Ring::seal`].
    pub fn seal_outcome(
        &self,
        id: ElicitationId,
        client: &ClientId,
        kind: Kind,
        outcome: &Outcome,
    ) -> Result<Vec<u8>, OpenError> {
        self.seal(Place::Outcome(id, client, kind), &outcome.to_bytes())
    }

    /// Opens the outcome of elicitation `id`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_outcome(
        &self,
        id: ElicitationId,
        client: &ClientId,
        kind: Kind,
        sealed: &[u8],
    ) -> Result<Outcome, OpenError> {
        let plain = self.open(Place::Outcome(id, client, kind), sealed)?;
        Outcome::from_bytes(kind, &plain).ok_or(OpenError::Broken)
    }

    /// The tag under which new entries are filed.
    #[must_use]
    pub fn tag(&self, lookup: Lookup<'_>) -> Tag {
        Tag(mac(&self.first.tags, &lookup.to_bytes()))
    }

    /// The tags under which an entry may be filed: one for each key, the newest first.
    pub fn tags(&self, lookup: Lookup<'_>) -> impl Iterator<Item = Tag> {
        let bytes = lookup.to_bytes();
        self.keys().map(move |key| Tag(mac(&key.tags, &bytes)))
    }

    /// A token for one render of one page in one session: 43 characters, URL-safe. `page` names the page: the elicitation's id.
    #[must_use]
    pub fn page_token(&self, session: &[u8; 32], page: &[u8], render: &str) -> String {
        URL_SAFE_NO_PAD.encode(mac(&self.first.pages, &page_token_covers(session, page, render)))
    }

    /// Whether `token` was made for this render, page and session.
    #[must_use]
    pub fn page_token_holds(&self, token: &str, session: &[u8; 32], page: &[u8], render: &str) -> bool {
        let Ok(given) = URL_SAFE_NO_PAD.decode(token) else { return false };
        let covered = page_token_covers(session, page, render);
        self.keys().any(|key| verify_slices_are_equal(&mac(&key.pages, &covered), &given).is_ok())
    }

    /// Signs with the first key (Ed25519, RFC 8032). Returns the key's id, and 64 bytes.
    ///
    /// # Errors
    /// [`OpenError::Broken`] only if the cryptographic library refuses to work.
    pub fn sign(&self, message: &[u8]) -> Result<(&str, Vec<u8>), OpenError> {
        let signature = self.first.signing.try_sign(message).map_err(|_| OpenError::Broken)?;
        Ok((&self.first.id, signature.as_ref().to_vec()))
    }

    /// Whether that was signed with the key of this id.
    #[must_use]
    pub fn signed(&self, key: &str, message: &[u8], signature: &[u8]) -> bool {
        self.public_keys().any(|(id, public)| {
            id == key && UnparsedPublicKey::new(&ED25519, public).verify(message, signature).is_ok()
        })
    }

    /// What others check signatures with: each key's id, and 32 bytes.
    pub fn public_keys(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.keys().map(|key| (key.id.as_str(), key.signing.public_key().as_ref()))
    }

    /// A fresh random name for one render of a page: 22 characters, URL-safe.
    #[must_use]
    pub fn fresh_render(&self) -> String {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

fn page_token_covers(session: &[u8; 32], page: &[u8], render: &str) -> Vec<u8> {
    length_prefixed(&[session, page, render.as_bytes()])
}

fn mac(key: &hmac::Key, message: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hmac::sign(key, message).as_ref());
    bytes
}

/// Sealed bytes: format, key id with its length, salt, nonce, then AES-256-GCM ciphertext and tag.
struct Parts<'a> {
    key_id: &'a [u8],
    salt: &'a [u8],
    nonce: &'a [u8],
    body: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(sealed: &'a [u8]) -> Option<Self> {
        let (&[format, id_length], rest) = sealed.split_first_chunk::<2>()?;
        let (key_id, rest) = rest.split_at_checked(usize::from(id_length))?;
        let (salt, rest) = rest.split_at_checked(SALT)?;
        let (nonce, body) = rest.split_at_checked(NONCE)?;
        (format == FORMAT).then_some(Self { key_id, salt, nonce, body })
    }
}
