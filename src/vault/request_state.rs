//! The request state: what an MCP client carries between rounds without being able to read or change it.
//!
//! Text form: `sg1.` and the base64url of the sealed bytes. Inside: elicitation id, keyed tag of the binding,
//! round, and when it was made and ends. The client's id is associated data.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Lookup, OpenError, Place, Ring};
use crate::domain::{Binding, ElicitationId, Timestamp};

const VERSION: &str = "sg1.";
/// Longest text form that is looked at, in bytes.
const LONGEST: usize = 512;
const PLAIN: usize = 16 + 32 + 1 + 8 + 8;

/// What a request state says once it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestState {
    /// The elicitation that the rounds are about.
    pub id: ElicitationId,
    /// The number of the round whose answer carried it, from 1.
    pub round: u8,
    /// When it was made.
    pub issued_at: Timestamp,
    /// When it stops being accepted.
    pub expires_at: Timestamp,
}

impl Ring {
    /// Seals a request state for the client of `binding`: URL-safe text of at most 512 bytes.
    ///
    /// # Errors
    /// As [`Ring::seal`].
    pub fn seal_request_state(&self, state: &RequestState, binding: &Binding) -> Result<String, OpenError> {
        let mut plain = Vec::with_capacity(PLAIN);
        plain.extend_from_slice(state.id.as_bytes());
        plain.extend_from_slice(&self.tag(Lookup::Binding(binding)).0);
        plain.push(state.round);
        plain.extend_from_slice(&state.issued_at.millis().to_be_bytes());
        plain.extend_from_slice(&state.expires_at.millis().to_be_bytes());
        let sealed = self.seal(Place::RequestState(&binding.client), &plain)?;
        Ok(format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// Opens a request state; `None` if it is forged, expired, or was made for another binding.
    #[must_use]
    pub fn open_request_state(&self, text: &str, binding: &Binding, now: Timestamp) -> Option<RequestState> {
        if text.len() > LONGEST {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(text.strip_prefix(VERSION)?).ok()?;
        let plain = self.open(Place::RequestState(&binding.client), &sealed).ok()?;
        let (id, rest) = plain.split_first_chunk::<16>()?;
        let (tag, rest) = rest.split_first_chunk::<32>()?;
        let (&[round], rest) = rest.split_first_chunk::<1>()?;
        let (issued_at, rest) = rest.split_first_chunk::<8>()?;
        let expires_at: &[u8; 8] = rest.try_into().ok()?;
        let state = RequestState {
            id: ElicitationId::from_bytes(*id),
            round,
            issued_at: Timestamp::from_millis(i64::from_be_bytes(*issued_at)),
            expires_at: Timestamp::from_millis(i64::from_be_bytes(*expires_at)),
        };
        let bound = self.tags(Lookup::Binding(binding)).any(|expected| expected.0 == *tag);
        (bound && now < state.expires_at).then_some(state)
    }
}
