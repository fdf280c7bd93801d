//! What the person produced, and the bytes in which it is sealed.

use serde::ser::{Serialize, Serializer};
use zeroize::Zeroizing;

use super::Kind;
use super::oauth::Tokens;
use super::payment::Receipt;
use super::secret::SecretValues;

/// What the person produced. Lives only between a submission and its sealing, and between opening and a claim.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The values of a secret form.
    Secret(SecretValues),
    /// What the provider issued.
    OAuth(Box<Tokens>),
    /// What was paid.
    Payment(Box<Receipt>),
}

impl Outcome {
    /// The bytes to seal. Wiped when dropped.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        match self {
            Self::Secret(values) => values_to_bytes(values),
            // The map has text for keys, so this never fails.
            Self::OAuth(tokens) => Zeroizing::new(serde_json::to_vec(tokens).unwrap_or_default()),
            Self::Payment(receipt) => Zeroizing::new(serde_json::to_vec(receipt).unwrap_or_default()),
        }
    }

    /// Reads what [`Outcome::to_bytes`] wrote for this kind; `None` if it did not.
    #[must_use]
    pub fn from_bytes(kind: Kind, bytes: &[u8]) -> Option<Self> {
        match kind {
            Kind::Secret => values_from_bytes(bytes).map(Self::Secret),
            Kind::OAuth => serde_json::from_slice(bytes).ok().map(Self::OAuth),
            Kind::Payment => serde_json::from_slice(bytes).ok().map(Self::Payment),
        }
    }
}

/// Written in one allocation, so that no copy is left behind.
fn values_to_bytes(values: &SecretValues) -> Zeroizing<Vec<u8>> {
    let parts = || values.iter().flat_map(|(name, value)| [name, value]);
    let mut bytes = Zeroizing::new(Vec::with_capacity(parts().map(|part| part.len() + 8).sum()));
    for part in parts() {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

fn values_from_bytes(bytes: &[u8]) -> Option<SecretValues> {
    let mut rest = bytes;
    let mut values = Vec::new();
    while !rest.is_empty() {
        let name = take_part(&mut rest)?.to_owned();
        values.push((name, Zeroizing::new(take_part(&mut rest)?.to_owned())));
    }
    Some(values.into_iter().collect())
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let (part, after) = after.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    std::str::from_utf8(part).ok()
}

impl Serialize for Outcome {
    /// The credential as the API releases it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Secret(values) => values.credential().serialize(serializer),
            Self::OAuth(tokens) => tokens.credential().serialize(serializer),
            Self::Payment(receipt) => receipt.credential().serialize(serializer),
        }
    }
}
