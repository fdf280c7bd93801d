//! What the service tells of itself: the log, JSON lines on standard error, what is counted for Prometheus (`counts`), and, if it is
//! built so, traces ([`traces`]).
//!
//! Only this service's own lines are written below the level `warn`: what libraries say at `debug` may hold
//! headers and targets.

mod counts;
pub mod traces;

pub use counts::{
    Stopwatch, Waiting, answered, happened, refused, render, start_metrics, store_conflict, store_did,
    upkeep, webhook,
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts logging at `level`. A second start in one process changes nothing.
pub fn start(level: LevelFilter) {
    let _ = tracing_subscriber::registry().with(lines(level)).try_init();
    catch_panics();
}

/// The same, with spans for `tracer`.
#[cfg(feature = "otel")]
pub fn start_with_traces(level: LevelFilter, tracer: opentelemetry_sdk::trace::SdkTracer) {
    let spans = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(Targets::new().with_target("sidegate::traces", LevelFilter::INFO));
    let _ = tracing_subscriber::registry().with(lines(level)).with(spans).try_init();
    catch_panics();
}

/// Lines of JSON on standard error.
fn lines<S>(level: LevelFilter) -> impl tracing_subscriber::Layer<S>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let filter = Targets::new()
        .with_target("sidegate", level)
        // Spans are not lines.
        .with_target("sidegate::traces", LevelFilter::OFF)
        .with_default(level.min(LevelFilter::WARN));
    fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).with_filter(filter)
}

fn catch_panics() {
    // A panic's own message may quote what it was working on; its place does not.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a part of the program failed");
    }));
}
