//! Identifiers of elicitations, clients, operators and people.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Random;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(#[serde(with = "hex")] [u8; 16]);

        impl $name {
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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = NotHex;

            fn from_str(text: &str) -> Result<Self, NotHex> {
                parse_hex(text).map(Self)
            }
        }
    };
}

id_type! {
    /// Names one elicitation: 128 random bits, written as exactly 32 lower-case hexadecimal digits.
    ///
    /// There is one spelling of an id; any other (upper case, shorter, padded) is no id at all.
    ElicitationId
}

id_type! {
    /// Names one kept credential: 128 random bits, written as an [`ElicitationId`] is.
    GrantId
}

/// A keyed tag (HMAC-SHA-256): equal for equal input, and meaningless without the key ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tag(#[serde(with = "hex")] pub [u8; 32]);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

/// The text is not the expected number of lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not lower-case hexadecimal of the right length")]
pub struct NotHex;

/// Writes bytes as lower-case hexadecimal.
pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let digit = |half: u8| char::from(if half < 10 { b'0' + half } else { b'a' + half - 10 });
    bytes.iter().try_for_each(|byte| {
        f.write_char(digit(byte >> 4))?;
        f.write_char(digit(byte & 15))
    })
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

/// For serde: bytes as text in lower-case hexadecimal.
pub(crate) mod hex {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    use super::{parse_hex, write_hex};

    pub(crate) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(&Hex(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        from: D,
    ) -> Result<[u8; N], D::Error> {
        from.deserialize_str(HexVisitor::<N>)
    }

    struct Hex<'a>(&'a [u8]);

    impl fmt::Display for Hex<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_hex(f, self.0)
        }
    }

    struct HexVisitor<const N: usize>;

    impl<const N: usize> Visitor<'_> for HexVisitor<N> {
        type Value = [u8; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} lower-case hexadecimal digits", 2 * N)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<[u8; N], E> {
            parse_hex(text).map_err(E::custom)
        }
    }
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
