//! The service under load, in a process of its own over loopback, beside a floor measured in the same run:
//!
//! `cargo bench --bench load` · `cargo bench --bench load -- --pending 1000000 --waiting 20000`
//!
//! The floor is a bare actix handler that answers the same bytes as a status call. Service and floor take turns in
//! short slices, so that whatever else the machine does falls on both. Figures of one run can be compared with each
//! other and with nothing else.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "a benchmark prints its figures, and stops where it cannot go on"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures the real time")]

mod connection;
mod figures;
mod floor;
mod lives;
mod process;
mod waiting;

use std::time::Duration;

use clap::Parser;

use figures::Table;
use lives::{Load, Work};
use process::{Floor, Service};

/// How much is done.
#[derive(Parser)]
struct Options {
    /// Connections that ask at once
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Seconds of one slice
    #[arg(long, default_value_t = 2)]
    slice: u64,
    /// Slices of each measurement
    #[arg(long, default_value_t = 3)]
    slices: usize,
    /// Polls that wait at once
    #[arg(long, default_value_t = 5000)]
    waiting: usize,
    /// Elicitations that are pending for the last measurement
    #[arg(long, default_value_t = 100_000)]
    pending: usize,
    /// What `cargo bench` says of itself
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    // The floor is this program once more.
    if let Some(body) = std::env::var_os(floor::VARIABLE) {
        floor::serve(body.into_string().unwrap());
        return;
    }
    let options = Options::parse();
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(run(&options));
}

async fn run(options: &Options) {
    let service = Service::start().await;
    let load = Load { connections: options.connections, time: Duration::from_secs(options.slice) };
    let status = lives::status_work(&service).await;
    let floor = Floor::start(&status).await;

    let mut table = Table::default();
    for _ in 0..options.slices {
        for (name, work) in [
            ("floor: the same bytes", Work::Floor(&floor)),
            ("status", Work::Status(&service, &status)),
            ("issue", Work::Issue(&service)),
            ("round, first", Work::Round(&service)),
            ("full life", Work::Life(&service)),
        ] {
            table.add(name, load.run(work).await);
        }
    }
    table.print("status");

    waiting::measure(&service, options.waiting).await;

    let mut table = Table::default();
    let many = Service::start().await;
    let few = Service::start().await;
    lives::fill(&few, 1000).await;
    lives::fill(&many, options.pending).await;
    let (few_status, many_status) = (lives::status_work(&few).await, lives::status_work(&many).await);
    for _ in 0..options.slices {
        for (name, service, status) in
            [("1,000 pending", &few, &few_status), ("many pending", &many, &many_status)]
        {
            table.add(&format!("status, {name}"), load.run(Work::Status(service, status)).await);
            table.add(&format!("issue, {name}"), load.run(Work::Issue(service)).await);
        }
    }
    println!(
        "\n{} pending elicitations: {} KiB of memory, {} MiB on disk",
        options.pending,
        many.memory(),
        many.disk() >> 20
    );
    table.print("status, 1,000 pending");
}
