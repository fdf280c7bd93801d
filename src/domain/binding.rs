//! What an elicitation is bound to; every step is checked against it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ClientId, Digest, Subject};

/// What an elicitation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One or more secret values, typed or pasted by the person.
    Secret,
    /// The person's authorisation at a third party (OAuth 2).
    #[serde(rename = "oauth")]
    OAuth,
    /// A payment at a payment processor.
    Payment,
}

impl Kind {
    /// Every kind there is.
    pub const ALL: [Self; 3] = [Self::Secret, Self::OAuth, Self::Payment];

    /// The word for it in the API and in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::OAuth => "oauth",
            Self::Payment => "payment",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Client, subject, operation digest and kind: who may do what, for whom, with which elicitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The API client that issued it.
    pub client: ClientId,
    /// The person it was made for.
    pub subject: Subject,
    /// The operation it was made for.
    pub digest: Digest,
    /// What it asks for.
    pub kind: Kind,
}

impl Binding {
    /// An unambiguous encoding, to compute a keyed tag over: each part is preceded by its length.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        length_prefixed(&[
            self.client.as_str().as_bytes(),
            self.subject.issuer.as_bytes(),
            self.subject.id.as_bytes(),
            self.digest.as_bytes(),
            self.kind.as_str().as_bytes(),
        ])
    }
}

/// Joins parts so that no two different lists give the same bytes.
#[must_use]
pub fn length_prefixed(parts: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_be_bytes());
        joined.extend_from_slice(part);
    }
    joined
}

/// SHA-256.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    hash
}
