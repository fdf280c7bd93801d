//! The process is killed without warning under load, twenty times: what was acknowledged is there, and nothing
//! is claimed by two attempts.

use std::time::Duration;

use super::harness::history::Load;
use super::harness::{Backing, Fleet, Setup, sidegate};

const KILLS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_twenty_kills_nothing_acknowledged_is_lost_and_nothing_is_claimed_twice() {
    let mut fleet = Fleet::start(Backing::Embedded, Setup::local()).await;
    let load = Load::on(&fleet).await;
    let mut moments = [0; KILLS];
    aws_lc_rs::rand::fill(&mut moments).unwrap();
    for moment in moments {
        load.goes_on().await;
        tokio::time::sleep(Duration::from_millis(u64::from(moment))).await;
        fleet.crash(0).await;
    }
    load.goes_on().await;
    load.ends(&fleet).await.hold();
    let audit =
        sidegate().args(["audit", "verify", "--data"]).arg(fleet.at(0).data()).output().await.unwrap();
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
}
