//! What the service tells of itself: the log, JSON lines on standard error, and what is counted for Prometheus (`counts`).
//!
//! Only this service's own lines are written below the level `warn`: what libraries say at `debug` may hold
//! headers and targets.

mod counts;

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
    let filter = Targets::new().with_target("sidegate", level).with_default(level.min(LevelFilter::WARN));
    let lines = fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).with_filter(filter);
    let _ = tracing_subscriber::registry().with(lines).try_init();
    // A panic's own message may quote what it was working on; its place does not.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a part of the program failed");
    }));
}
