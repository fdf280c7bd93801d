//! API keys: how they are made, recognised and kept.
//!
//! A key is a prefix, 256 random bits and a checksum: `sgk_` (clients) or `sgo_` (operators), 43 characters of
//! base64url, and 6 that are the start of SHA-256 over what stands before them. Only its digest is configured:
//! `sha256:` and the SHA-256 of the whole key in hexadecimal.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::domain::Random;
use crate::domain::binding::sha256;
use crate::domain::ids::{NotHex, parse_hex, write_hex};

/// Whose key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// An API client.
    Client,
    /// An operator.
    Operator,
}

impl Holder {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Client => "sgk_",
            Self::Operator => "sgo_",
        }
    }
}

const SECRET: usize = 43;
const CHECKSUM: usize = 6;

/// A fresh key.
#[must_use]
pub fn generate(holder: Holder, random: &dyn Random) -> SecretString {
    let mut bytes = zeroize::Zeroizing::new([0; 32]);
    random.fill(&mut *bytes);
    let body = format!("{}{}", holder.prefix(), URL_SAFE_NO_PAD.encode(*bytes));
    let checksum = checksum(&body);
    SecretString::from(body + &checksum)
}

/// Whether `text` can be a key of this holder at all. Spares the work for what cannot.
#[must_use]
pub fn is_well_formed(holder: Holder, text: &str) -> bool {
    let length = holder.prefix().len() + SECRET;
    text.starts_with(holder.prefix())
        && text.len() == length + CHECKSUM
        && text.split_at_checked(length).is_some_and(|(body, given)| checksum(body) == given)
}

fn checksum(body: &str) -> String {
    let mut text = URL_SAFE_NO_PAD.encode(sha256(body.as_bytes()));
    text.truncate(CHECKSUM);
    text
}

/// The digest of a key, as the configuration holds it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest of a key.
    #[must_use]
    pub fn of(key: &SecretString) -> Self {
        Self::of_text(key.expose_secret())
    }

    /// The digest of what somebody presents as a key.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self(sha256(text.as_bytes()))
    }

    /// Its 32 bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Compares in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

impl FromStr for KeyDigest {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, NotHex> {
        parse_hex(text.strip_prefix("sha256:").ok_or(NotHex)?).map(Self)
    }
}

impl<'de> Deserialize<'de> for KeyDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| {
            serde::de::Error::custom(
                "must be `sha256:` and 64 hexadecimal digits, as `sidegate client new` prints it",
            )
        })
    }
}
