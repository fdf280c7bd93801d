//! The service under load, in a process of its own over loopback, beside floors measured in the same run:
//!
//! `cargo bench --bench load` · `cargo bench --bench load -- --store redis --pending 1000000 --waiting 20000`
//!
//! The floors are a bare actix handler that answers the same bytes as a status call, and one that first does a single
//! `GET` on the same Redis. The ceiling is the store alone: as many commits as a full life has, of the same size, without a
//! service before it. All take turns in short slices, so that whatever else the machine does falls on all. Figures of
//! one run can be compared with each other and with nothing else.

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

mod ceiling;
mod connection;
mod figures;
mod floor;
mod lives;
mod process;
mod slow;
mod waiting;

use std::time::Duration;

use clap::{Parser, ValueEnum};

use ceiling::Ceiling;
use figures::Table;
use lives::{Load, Work};
use process::{Backing, Floor, Service};

/// How much is done.
#[derive(Parser)]
struct Options {
    /// What the service keeps its elicitations in; both if not given
    #[arg(long, value_enum)]
    store: Vec<StoreName>,
    /// Connections that ask at once
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Seconds of one slice
    #[arg(long, default_value_t = 2)]
    slice: u64,
    /// Slices of each measurement
    #[arg(long, default_value_t = 3)]
    slices: usize,
    /// Polls that wait at once, one measurement for each number
    #[arg(long, default_values_t = [5000])]
    waiting: Vec<usize>,
    /// Slow connections beside a measurement
    #[arg(long, default_value_t = 1000)]
    slow: usize,
    /// Elicitations that are pending for the last measurement
    #[arg(long, default_value_t = 100_000)]
    pending: usize,
    /// What `cargo bench` says of itself
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StoreName {
    Sqlite,
    Redis,
}

fn main() {
    // A floor is this program once more.
    if let Some(body) = std::env::var_os(floor::BODY) {
        floor::serve(body.into_string().unwrap());
        return;
    }
    let mut options = Options::parse();
    if options.store.is_empty() {
        options.store = vec![StoreName::Sqlite, StoreName::Redis];
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        for store in &options.store {
            println!("\n== {}", if *store == StoreName::Sqlite { "SQLite" } else { "Redis" });
            run(*store, &options).await;
        }
    });
}

async fn backing(store: StoreName) -> Backing {
    match store {
        StoreName::Sqlite => Backing::Embedded,
        StoreName::Redis => Backing::shared().await,
    }
}

async fn run(store: StoreName, options: &Options) {
    let backing_store = backing(store).await;
    let service = Service::start(&backing_store).await;
    let load = Load { connections: options.connections, time: Duration::from_secs(options.slice) };
    let status = lives::status_work(&service).await;
    let bare = Floor::start(&status, None).await;
    let get = match &backing_store {
        Backing::Embedded => None,
        Backing::Shared(redis) => Some(Floor::start(&status, Some(&redis.url)).await),
    };
    let ceiling = Ceiling::of(&backing_store).await;

    let mut works = vec![("floor: the same bytes", Work::Floor(&bare))];
    works.extend(get.as_ref().map(|floor| ("floor: one GET first", Work::Floor(floor))));
    works.extend([
        ("status", Work::Status(&service, &status)),
        ("issue", Work::Issue(&service)),
        ("round, first", Work::Round(&service)),
        ("full life", Work::Life(&service)),
        ("ceiling of a full life", Work::Ceiling(&ceiling)),
    ]);
    let mut table = Table::default();
    for _ in 0..options.slices {
        for (name, work) in &works {
            table.add(name, load.run(*work).await);
        }
    }
    let floor = works[works.len() - 6].0;
    table.print(&[floor, "ceiling of a full life"]);

    let other = if store == StoreName::Redis { Some(service.beside(&backing_store).await) } else { None };
    for count in &options.waiting {
        waiting::measure(&service, other.as_ref().unwrap_or(&service), *count).await;
    }

    let mut table = Table::default();
    for _ in 0..options.slices {
        for (name, work) in [("status", Work::Status(&service, &status)), ("issue", Work::Issue(&service))] {
            table.add(&format!("{name}, alone"), load.run(work).await);
            let slow = slow::Slow::start(service.process.address, options.slow).await;
            table.add(&format!("{name}, beside slow"), load.run(work).await);
            drop(slow);
        }
    }
    println!("\n{} slow connections beside", options.slow);
    table.print(&["status, alone", "issue, alone"]);

    let mut table = Table::default();
    let (few_backing, many_backing) = (backing(store).await, backing(store).await);
    let (few, many) = (Service::start(&few_backing).await, Service::start(&many_backing).await);
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
        "\n{} pending elicitations: {} KiB of memory; the store has {} MiB, or {:.1} KiB each",
        options.pending,
        many.memory(),
        many.store_size(&many_backing).await >> 20,
        many.store_size(&many_backing).await as f64 / 1024.0 / options.pending as f64,
    );
    table.print(&["status, 1,000 pending", "issue, 1,000 pending"]);
}
