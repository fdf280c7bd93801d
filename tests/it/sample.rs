//! Values that tests of several modules use.

use std::sync::Arc;
use std::time::Duration;

use sidegate::domain::operation::Identified;
use sidegate::domain::secret::{FieldSpec, SecretRequest};
use sidegate::domain::{ClientId, ElicitationId, Operation, Request, Spans, Subject, Terms, Timestamp};
use sidegate::system::SystemRandom;
use sidegate::vault::{Ring, RingKey};

/// The moment at which the sample elicitation is issued.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// How long things last in the samples: the service's own defaults, but for a life that two extensions fill.
pub(crate) const SPANS: Spans = Spans {
    claim_by: Duration::from_mins(15),
    claim_window: Duration::from_mins(5),
    retention: Duration::from_hours(24),
    longest_life: Duration::from_mins(25),
};

pub(crate) fn id(number: u128) -> ElicitationId {
    ElicitationId::from_bytes(number.to_be_bytes())
}

pub(crate) fn client(name: &str) -> ClientId {
    ClientId::new(name)
}

pub(crate) fn subject(id: &str) -> Subject {
    Subject { issuer: "https://idp.example".to_owned(), id: id.to_owned() }
}

/// A form with one secret value, for user 1 of the client `weather`, to be filled in within ten minutes.
pub(crate) fn terms() -> Terms {
    let field = FieldSpec { name: "api_key".into(), label: "API key".into(), ..FieldSpec::default() };
    Terms {
        keep: None,
        again: None,
        id: id(1),
        client: client("weather"),
        subject: subject("user-1"),
        operation: Operation::new("tools/call:forecast", Identified::Parts(None, None), "Look it up")
            .unwrap(),
        message: "The key is needed.".to_owned(),
        request: Request::Secret(SecretRequest::new(vec![field]).unwrap()),
        created_at: START,
        lifetime: Duration::from_mins(10),
    }
}

pub(crate) fn key(id: &str, fill: u8) -> RingKey {
    RingKey::new(id.to_owned(), &[fill; 32]).unwrap()
}

/// A ring whose first key seals.
pub(crate) fn ring(first: RingKey, others: Vec<RingKey>) -> Ring {
    Ring::new(first, others, Arc::new(SystemRandom))
}
