//! Identifiers of elicitations, clients, operators and people.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Random;

/// Names one elicitation: 128 random bits, written as exactly 32 lower-case hexadecimal digits.
///
/// There is one spelling of an id; any other (upper case, shorter, padded) is no id at all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElicitationId([u8; 16]);

impl ElicitationId {
    /// A fresh id.
    #[must_use]
    pub fn random(random: &dyn Random) -> Self {
        let mut bytes = [0; 16];
        random.fill(&mut bytes);
        Self(bytes)
    }

    /// The id with these 128 bits.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 128 bits.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for ElicitationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for ElicitationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ElicitationId {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, NotHex> {
        parse_hex(text).map(Self)
    }
}

impl Serialize for ElicitationId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ElicitationId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A keyed tag (HMAC-SHA-256): equal for equal input, and meaningless without the key ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tag(pub [u8; 32]);

/// The text is not the expected number of lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not lower-case hexadecimal of the right length")]
pub struct NotHex;

/// Writes bytes as lower-case hexadecimal.
pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Reads exactly `2 * N` lower-case hexadecimal digits.
pub(crate) fn parse_hex<const N: usize>(text: &str) -> Result<[u8; N], NotHex> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(NotHex),
    };
    if text.len() != 2 * N {
        return Err(NotHex);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        if let [high, low] = *pair {
            *byte = digit(high)? << 4 | digit(low)?;
        }
    }
    Ok(bytes)
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a name that the configuration has checked.
            #[must_use]
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as configured.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type! {
    /// Names an API client: an MCP server, or a fleet of them, that issues elicitations.
    ClientId
}

name_type! {
    /// Names an operator: somebody who sees and revokes pending links.
    OperatorId
}

/// A person: the `iss` and `sub` that the MCP server verified.
///
/// Not printable by accident: `Debug` shows nothing of it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The issuer who vouches for the id (OpenID Connect `iss`).
    pub issuer: String,
    /// The person's id at that issuer (OpenID Connect `sub`).
    pub id: String,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subject(…)")
    }
}
