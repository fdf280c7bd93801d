//! The rules of an elicitation, and nothing else: no input or output, no clock read, no randomness.
//!
//! Time and random bytes come in as arguments, so that every rule here can be tested by itself.
//! Start reading at [`elicitation`]: the state machine that everything else serves.

pub mod binding;
pub mod code;
pub mod elicitation;
pub mod event;
pub mod ids;
pub mod kept;
pub mod money;
pub mod oauth;
pub mod operation;
pub mod order;
pub mod outcome;
pub mod payment;
pub mod refusal;
pub mod request;
pub mod secret;
pub mod state;
pub mod text;
pub mod time;

pub use binding::{Binding, Kind};
pub use code::Code;
pub use elicitation::{Claim, Confirmation, Elicitation, Spans, Terms, Theirs};
pub use event::{Actor, Event, Happening, What};
pub use ids::{ClientId, ElicitationId, GrantId, OperatorId, Subject, Tag};
pub use operation::{Digest, Operation};
pub use outcome::Outcome;
pub use refusal::Refusal;
pub use request::{Invalid, Request};
pub use state::{Attempt, State, StateName};
pub use time::{Clock, Timestamp};

/// A source of unpredictable bytes. The service uses the operating system's; tests may pass their own.
pub trait Random: Send + Sync {
    /// Fills `bytes` with cryptographically secure random bytes.
    fn fill(&self, bytes: &mut [u8]);
}
