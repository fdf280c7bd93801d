//! What the person produced, and the bytes in which it is sealed.

use serde::ser::{Serialize, SerializeMap, Serializer};
use zeroize::Zeroizing;

use super::Kind;
use super::secret::SecretValues;

/// What the person produced. Lives only between a submission and its sealing, and between opening and a claim.
#[derive(Debug)]
pub enum Outcome {
    /// The values of a secret form.
    Secret(SecretValues),
}

impl Outcome {
    /// The bytes to seal. Wiped when dropped; written in one allocation, so that no copy is left behind.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let Self::Secret(values) = self;
        let parts = || values.iter().flat_map(|(name, value)| [name, value]);
        let mut bytes = Zeroizing::new(Vec::with_capacity(parts().map(|part| part.len() + 8).sum()));
        for part in parts() {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }

    /// Reads what [`Outcome::to_bytes`] wrote for this kind; `None` if it did not.
    #[must_use]
    pub fn from_bytes(kind: Kind, bytes: &[u8]) -> Option<Self> {
        let Kind::Secret = kind;
        let mut rest = bytes;
        let mut values = Vec::new();
        while !rest.is_empty() {
            let name = take_part(&mut rest)?.to_owned();
            values.push((name, Zeroizing::new(take_part(&mut rest)?.to_owned())));
        }
        Some(Self::Secret(values.into_iter().collect()))
    }
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let (part, after) = after.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    std::str::from_utf8(part).ok()
}

impl Serialize for Outcome {
    /// The credential as the API releases it: `{"values": {name: value}}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Values<'a>(&'a SecretValues);
        impl Serialize for Values<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter())
            }
        }
        let Self::Secret(values) = self;
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("values", &Values(values))?;
        map.end()
    }
}
