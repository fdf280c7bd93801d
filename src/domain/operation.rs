//! What the tool call will do, and the digest that stands for it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Invalid;
use super::binding::sha256;
use super::ids::{NotHex, parse_hex, write_hex};
use super::text::{Shape, plain};

/// The operation that an elicitation is bound to. Its arguments are represented by the digest alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What is called, for example `tools/call:forecast`.
    pub name: String,
    /// Digest of name, arguments and the caller's own id.
    pub digest: Digest,
    /// One sentence for the person: what the call will do.
    pub summary: String,
}

/// What identifies an operation besides its name: either its parts or the digest that a caller computed itself.
#[derive(Debug, Clone, Copy)]
pub enum Identified<'a> {
    /// The call's arguments and the caller's own id, each if there is one.
    Parts(Option<&'a Value>, Option<&'a str>),
    /// The digest over name, arguments and id.
    Digest(&'a str),
}

const NAME: Shape = Shape { longest: 256, lines: false };

/// The digest that stands for an operation.
///
/// # Errors
/// [`Invalid`] at `operation.…` if the name is no name, or the parts have no digest, or the digest is malformed.
pub fn digest_of(name: &str, identified: Identified<'_>) -> Result<Digest, Invalid> {
    plain("operation.name", name, NAME)?;
    match identified {
        Identified::Digest(text) => text.parse().map_err(|_| {
            Invalid::new("operation.digest", "must be `sha256:` and 64 lower-case hexadecimal digits")
        }),
        Identified::Parts(arguments, id) => Digest::of(name, arguments, id)
            .map_err(|error| Invalid::new("operation.arguments", error.to_string())),
    }
}

impl Operation {
    /// Checks and digests an operation.
    ///
    /// # Errors
    /// [`Invalid`] at `operation.…`.
    pub fn new(name: &str, identified: Identified<'_>, summary: &str) -> Result<Self, Invalid> {
        let shape = Shape { longest: 500, lines: false };
        Ok(Self {
            digest: digest_of(name, identified)?,
            name: plain("operation.name", name, NAME)?,
            summary: plain("operation.summary", summary, shape)?,
        })
    }
}

/// SHA-256 over the RFC 8785 canonical JSON of `{name, arguments, id}`.
///
/// Written as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Digests an operation. A part that is absent is left out of the object.
    ///
    /// # Errors
    /// [`NotCanonical`] if a number has no canonical form (RFC 8785 §3.2.2.3).
    pub fn of(name: &str, arguments: Option<&Value>, id: Option<&str>) -> Result<Self, NotCanonical> {
        #[derive(Serialize)]
        struct Parts<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            arguments: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
        }
        let canonical = canonical_json(&Parts { name, arguments, id })?;
        Ok(Self(sha256(&canonical)))
    }

    /// The 256 bits.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The RFC 8785 canonical form of `value`, as UTF-8 bytes.
///
/// # Errors
/// [`NotCanonical`] if a number has no canonical form (RFC 8785 §3.2.2.3).
pub fn canonical_json(value: &impl Serialize) -> Result<Vec<u8>, NotCanonical> {
    serde_json_canonicalizer::to_vec(value).map_err(|_| NotCanonical)
}

/// The value has no RFC 8785 canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has no canonical JSON form (RFC 8785)")]
pub struct NotCanonical;

const PREFIX: &str = "sha256:";

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, NotHex> {
        parse_hex(text.strip_prefix(PREFIX).ok_or(NotHex)?).map(Self)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
