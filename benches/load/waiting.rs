//! Many polls that wait: what they cost, and how soon they learn of a submission.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::figures::{percentile, short};
use super::lives::{Caller, ask, json};
use super::process::Service;

/// How many of the waiting are woken and measured.
const WOKEN: usize = 500;

/// Lets this many polls wait at once, prints their memory, completes some at `other`, which may be the same instance,
/// and prints how soon each returned.
pub(crate) async fn measure(service: &Service, other: &Service, count: usize) {
    let (caller, submitter) = (Caller::of(service), Caller::of(other));
    let mut connection = Connection::open(service.process.address).await;
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        let issued = json(&connection.ask(&caller.issue(&ask())).await);
        ids.push(issued["id"].as_str().unwrap().to_owned());
    }
    let idle = service.memory();
    // Those that are not woken end with this function.
    let mut polls = JoinSet::new();
    let mut woken = HashMap::new();
    for id in &ids {
        let poll = caller.get(&format!("/v1/elicitations/{id}?wait=50"));
        let mut connection = Connection::open(service.process.address).await;
        let (tell, told) = oneshot::channel();
        woken.insert(id.clone(), told);
        polls.spawn(async move {
            let answer = connection.ask(&poll).await;
            let _ = tell.send((Instant::now(), json(&answer)["state"].as_str().unwrap().to_owned()));
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let waiting = service.memory();
    let before = service.process.processor();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let processor = service.process.processor().saturating_sub(before) / 3;

    // The first connection was idle for too long.
    let mut connection = Connection::open(other.process.address).await;
    let mut delays = Vec::with_capacity(WOKEN);
    for id in ids.iter().take(WOKEN) {
        submitter.complete(&mut connection, id).await;
        let answered = Instant::now();
        let (returned, state) = woken.remove(id).unwrap().await.unwrap();
        assert_eq!(state, "completed");
        delays.push(returned.saturating_duration_since(answered));
    }
    delays.sort_unstable();
    println!(
        "\n{count} polls wait: {:.1} KiB of memory each (with its connection), {} of processor a second for all",
        waiting.saturating_sub(idle) as f64 / count as f64,
        short(processor),
    );
    println!(
        "from the submission's answer to the poll's: p50 {}, p99 {}",
        short(percentile(&delays, 50)),
        short(percentile(&delays, 99))
    );
}
