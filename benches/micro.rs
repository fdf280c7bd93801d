//! The parts that every request pays for, one by one: `cargo bench --bench micro`.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::sync::Arc;
use std::time::Duration;

use divan::{Bencher, black_box};
use serde_json::json;
use sidegate::domain::operation::Identified;
use sidegate::domain::secret::{FieldSpec, SecretRequest, SecretValues};
use sidegate::domain::{
    ClientId, Digest, Elicitation, ElicitationId, Kind, Operation, Outcome, Request, Spans, Subject, Terms,
    Timestamp,
};
use sidegate::system::SystemRandom;
use sidegate::vault::{Lookup, Place, RequestState, Ring, RingKey};
use zeroize::Zeroizing;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const SPANS: Spans = Spans {
    claim_by: Duration::from_mins(15),
    claim_window: Duration::from_mins(5),
    retention: Duration::from_hours(24),
    longest_life: Duration::from_hours(1),
};

fn main() {
    divan::main();
}

fn ring() -> Ring {
    Ring::new(RingKey::new("one".to_owned(), &[7; 32]).unwrap(), Vec::new(), Arc::new(SystemRandom))
}

fn id() -> ElicitationId {
    ElicitationId::from_bytes([9; 16])
}

fn elicitation() -> Elicitation {
    let field = FieldSpec { name: "api_key".into(), label: "API key".into(), ..FieldSpec::default() };
    let summary = "Look up the weather in Oslo";
    Elicitation::issue(Terms {
        keep: None,
        again: None,
        id: id(),
        client: ClientId::new("weather"),
        subject: Subject { issuer: "https://idp.example".into(), id: "user-1".into() },
        operation: Operation::new("tools/call:forecast", Identified::Parts(None, None), summary).unwrap(),
        message: "Your WeatherCo API key is needed to look up the forecast.".into(),
        request: Request::Secret(SecretRequest::new(vec![field]).unwrap()),
        created_at: NOW,
        lifetime: Duration::from_mins(10),
    })
}

fn outcome() -> Outcome {
    let values = [("api_key".to_owned(), Zeroizing::new("wk-0123456789abcdef0123456789abcdef".to_owned()))];
    Outcome::Secret(values.into_iter().collect::<SecretValues>())
}

#[divan::bench]
fn digest_of_small_arguments(bencher: Bencher) {
    let arguments = json!({"city": "Oslo", "days": 5, "units": "metric"});
    bencher.bench(|| Digest::of("tools/call:forecast", Some(black_box(&arguments)), None));
}

#[divan::bench(args = [1, 16, 60])]
fn digest_of_arguments_of_kib(bencher: Bencher, kib: usize) {
    let rows: Vec<_> = (0..kib * 16).map(|number| json!({"row": number, "text": "x".repeat(40)})).collect();
    let arguments = json!({ "rows": rows });
    bencher.bench(|| Digest::of("tools/call:import", Some(black_box(&arguments)), None));
}

#[divan::bench]
fn seal_a_record(bencher: Bencher) {
    let (ring, client) = (ring(), ClientId::new("weather"));
    let plain = serde_json::to_vec(&elicitation()).unwrap();
    bencher.bench(|| ring.seal(Place::Record(id(), &client, Kind::Secret), black_box(&plain)));
}

#[divan::bench]
fn open_a_record(bencher: Bencher) {
    let (ring, client) = (ring(), ClientId::new("weather"));
    let place = Place::Record(id(), &client, Kind::Secret);
    let sealed = ring.seal(place, &serde_json::to_vec(&elicitation()).unwrap()).unwrap();
    bencher.bench(|| {
        let plain = ring.open(place, black_box(&sealed)).unwrap();
        serde_json::from_slice::<Elicitation>(&plain)
    });
}

#[divan::bench]
fn seal_and_open_an_outcome(bencher: Bencher) {
    let (ring, client, outcome) = (ring(), ClientId::new("weather"), outcome());
    bencher.bench(|| {
        let sealed = ring.seal_outcome(id(), &client, Kind::Secret, black_box(&outcome)).unwrap();
        ring.open_outcome(id(), &client, Kind::Secret, &sealed)
    });
}

#[divan::bench]
fn tag_of_a_binding(bencher: Bencher) {
    let (ring, binding) = (ring(), elicitation().terms().binding());
    bencher.bench(|| ring.tag(Lookup::Binding(black_box(&binding))));
}

#[divan::bench]
fn transitions_of_a_full_life(bencher: Bencher) {
    let issued = elicitation();
    let (subject, digest) = (issued.terms().subject.clone(), issued.terms().operation.digest);
    let attempt = sidegate::domain::Attempt::named("one");
    bencher.bench(|| {
        let opened = black_box(issued.clone()).opened_by(&subject).unwrap().open(NOW);
        let completed = opened.complete(Vec::new(), NOW, &SPANS).unwrap();
        completed.claim(&subject, digest, attempt, NOW, &SPANS)
    });
}

#[divan::bench]
fn request_state_there_and_back(bencher: Bencher) {
    let (ring, binding) = (ring(), elicitation().terms().binding());
    let expires_at = NOW + Duration::from_mins(10);
    let state = RequestState { id: id(), round: 1, issued_at: NOW, expires_at };
    bencher.bench(|| {
        let text = ring.seal_request_state(black_box(&state), &binding).unwrap();
        ring.open_request_state(&text, &binding, NOW)
    });
}
