//! What is counted and measured, for Prometheus. Labels are words of this service alone: nothing that a client, a person or a
//! provider wrote.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

const REQUESTS: &str = "sidegate_http_requests_total";
const REQUEST_TIME: &str = "sidegate_http_request_seconds";
const STEPS: &str = "sidegate_elicitation_events_total";
const REFUSALS: &str = "sidegate_refusals_total";
const WAITING: &str = "sidegate_polls_waiting";
const STORE_TIME: &str = "sidegate_store_seconds";
const STORE_FAILURES: &str = "sidegate_store_failures_total";
const STORE_CONFLICTS: &str = "sidegate_store_conflicts_total";
const WEBHOOKS: &str = "sidegate_payment_webhooks_total";

/// Upper bounds of the times that are told apart, in seconds.
const TIMES: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0];

static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Begins to count. A second time in one process changes nothing.
pub fn start_metrics() {
    let _ = HANDLE.get_or_init(|| {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &TIMES)
            .ok()?;
        let handle = builder.install_recorder().ok()?;
        describe_counter!(REQUESTS, "Requests answered, by method, route template and status");
        describe_histogram!(REQUEST_TIME, Unit::Seconds, "Time to the answer, by route template");
        describe_counter!(STEPS, "What happened to elicitations, by kind");
        describe_counter!(REFUSALS, "Steps that were refused, by reason");
        describe_gauge!(WAITING, "Polls and rounds that wait for a person");
        describe_histogram!(STORE_TIME, Unit::Seconds, "Time of the store's operations");
        describe_counter!(STORE_FAILURES, "Operations that the store could not do");
        describe_counter!(STORE_CONFLICTS, "Commits that came after another of the same record");
        describe_counter!(WEBHOOKS, "Webhooks of payment processors, by processor and what came of them");
        Some(handle)
    });
}

/// Everything that is counted, in Prometheus' text format; `None` if counting has not begun.
#[must_use]
pub fn render() -> Option<String> {
    HANDLE.get()?.as_ref().map(PrometheusHandle::render)
}

/// Forgets old samples of what is measured; to be called from time to time.
pub fn upkeep() {
    if let Some(Some(handle)) = HANDLE.get() {
        handle.run_upkeep();
    }
}

/// Measures how long something takes. It tells no time of day, and nothing depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "measures, and decides nothing")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Until now.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A request was answered.
pub fn answered(method: &'static str, route: &str, status: u16, stopwatch: Stopwatch) {
    let route = route.to_owned();
    histogram!(REQUEST_TIME, "route" => route.clone()).record(stopwatch.elapsed());
    counter!(REQUESTS, "method" => method, "route" => route, "status" => status.to_string()).increment(1);
}

/// Something happened to an elicitation of a kind.
pub fn happened(kind: &'static str, what: &'static str) {
    counter!(STEPS, "kind" => kind, "event" => what).increment(1);
}

/// A step was refused, for a reason of ours.
pub fn refused(reason: &str) {
    counter!(REFUSALS, "reason" => reason.to_owned()).increment(1);
}

/// A poll waits, until this is dropped.
#[derive(Debug)]
pub struct Waiting(());

impl Waiting {
    /// One more waits.
    #[must_use]
    pub fn begin() -> Self {
        gauge!(WAITING).increment(1);
        Self(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        gauge!(WAITING).decrement(1);
    }
}

/// The store has done something, or could not.
pub fn store_did(operation: &'static str, stopwatch: Stopwatch, done: bool) {
    histogram!(STORE_TIME, "operation" => operation).record(stopwatch.elapsed());
    if !done {
        counter!(STORE_FAILURES, "operation" => operation).increment(1);
    }
}

/// A commit came too late.
pub fn store_conflict() {
    counter!(STORE_CONFLICTS).increment(1);
}

/// A webhook of a payment processor came.
pub fn webhook(processor: &str, outcome: &'static str) {
    counter!(WEBHOOKS, "processor" => processor.to_owned(), "outcome" => outcome).increment(1);
}
