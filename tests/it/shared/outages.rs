//! Servers that are down, slow, full, restarted, replaced, or cut off. What was acknowledged is counted against what is
//! there afterwards.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::header::RETRY_AFTER;
use rstest::rstest;
use tokio::time::timeout;

use crate::harness::history::{Findings, Load};
use crate::harness::proxy::Proxy;
use crate::harness::redis::{ALWAYS, Cluster, Program, Redis, Watched};
use crate::harness::server::Signal;
use crate::harness::{Backing, Fleet, Handler, Server, Setup, ask, eventually};

async fn is_ready(handler: &Handler) {
    eventually("it is ready", async || (handler.get("readyz").await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn r45_a_service_starts_without_its_store_says_so_and_is_ready_when_the_store_is() {
    let mut redis = Redis::start(Program::Redis, &[]).await;
    redis.crash().await;
    let server = Server::start(Setup::local().with("SIDEGATE_STORE__URL", redis.url())).await;
    let handler = server.handler();
    assert_eq!(handler.get("healthz").await.status, 200);
    assert_eq!(handler.get("readyz").await.status, 503);
    assert_eq!(handler.post("v1/elicitations", &ask()).await.problem(), (503, "unavailable"));
    assert!(server.log().contains("there is no connection to Redis"), "{}", server.log());
    redis.start_again().await;
    is_ready(&handler).await;
    let issued = handler.issue(&ask()).await;
    server.visitor().complete(&issued.url, "wk-1").await;
    assert_eq!(handler.claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
}

#[tokio::test]
async fn r40_without_its_store_every_step_is_refused_and_may_be_tried_again() {
    let mut fleet = Fleet::on(Redis::start(Program::Redis, &ALWAYS).await, Setup::local()).await;
    let (handler, visitor, operator) = (fleet.at(0).handler(), fleet.at(0).visitor(), fleet.at(0).operator());
    let open = handler.issue(&ask()).await;
    let done = handler.issue(&ask()).await;
    visitor.complete(&done.url, "wk-1").await;
    let form = visitor.get(&open.url).await.filled(&[("api_key", "wk-2")]);

    fleet.redis().crash().await;
    for (what, reply) in [
        ("issue", handler.post("v1/elicitations", &ask()).await),
        ("status", handler.get(&format!("v1/elicitations/{}", open.id)).await),
        ("claim", handler.claim(&done, None).await),
        ("cancel", handler.cancel(&open.id).await),
        ("revoke", operator.revoke(&open.id).await),
    ] {
        assert_eq!(reply.problem(), (503, "unavailable"), "{what}: {reply:?}");
        assert!(reply.headers.contains_key(RETRY_AFTER) && !reply.text.contains("wk-1"), "{what}");
    }
    let mut pages = vec![("open", visitor.get(&open.url).await)];
    for action in ["secret", "decline", "extend"] {
        pages.push((action, visitor.post(&format!("{}/{action}", open.url), &form).await));
    }
    for (action, page) in pages {
        assert_eq!(
            (page.status.as_u16(), page.heading().as_str()),
            (503, "This does not work right now"),
            "{action}"
        );
        assert!(page.headers.contains_key(RETRY_AFTER), "{action}");
    }
    assert_eq!(
        (handler.get("readyz").await.status.as_u16(), handler.get("healthz").await.status.as_u16()),
        (503, 200)
    );

    fleet.redis().start_again().await;
    is_ready(&handler).await;
    assert_eq!(handler.state(&open.id).await, "pending", "nothing was done");
    assert_eq!(handler.claim(&done, None).await.text_at("/credential/values/api_key"), "wk-1");
    assert_eq!(visitor.post(&format!("{}/secret", open.url), &form).await.status, 303);
    assert_eq!(handler.claim(&open, None).await.text_at("/credential/values/api_key"), "wk-2");
}

#[tokio::test]
async fn a_waiting_poll_survives_a_restart_of_its_store() {
    let mut fleet = Fleet::on(Redis::start(Program::Redis, &ALWAYS).await, Setup::local()).await;
    let issued = fleet.at(0).handler().issue(&ask()).await;
    let poll = {
        let (handler, id) = (fleet.at(0).handler(), issued.id.clone());
        tokio::spawn(async move { handler.get(&format!("v1/elicitations/{id}?wait=50")).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    fleet.redis().crash().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!poll.is_finished(), "it waits on");
    fleet.redis().start_again().await;
    let elsewhere = fleet.at(1);
    is_ready(&elsewhere.handler()).await;
    elsewhere.visitor().complete(&fleet.link(&issued.url, 1), "wk-1").await;
    let reply = timeout(Duration::from_secs(15), poll).await.expect("long before its wait is over").unwrap();
    assert_eq!(reply.text_at("/state"), "completed");
}

#[tokio::test]
async fn r42_while_the_store_stalls_what_needs_no_store_is_unaffected() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let server = fleet.at(0);
    let (handler, healthz) = (server.handler(), server.url("healthz"));
    let (visitor, issued) = (server.visitor(), handler.issue(&ask()).await);
    let style = visitor.get(&issued.url).await.attributes("link[rel=stylesheet]", "href").remove(0);
    let style = server.base().join(&style).unwrap();
    let waiting: Vec<_> = (0..64).map(|_| handler.clone()).collect();
    fleet.redis().signal(Signal::STOP);
    let waiting: Vec<_> = waiting
        .into_iter()
        .map(|handler| tokio::spawn(async move { handler.post("v1/elicitations", &ask()).await }))
        .collect();
    for _ in 0..50 {
        for path in [&healthz, style.as_str()] {
            let page = timeout(Duration::from_secs(1), visitor.get(path)).await;
            assert_eq!(page.expect("it does not wait for the store").status, 200, "{path}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for issue in waiting {
        assert_eq!(issue.await.unwrap().problem(), (503, "unavailable"), "nobody waits for ever");
    }
    fleet.redis().signal(Signal::CONT);
    is_ready(&handler).await;
    assert_eq!(handler.state(&issued.id).await, "pending");
    handler.issue(&ask()).await;
}

#[tokio::test]
async fn when_its_memory_is_full_new_links_are_refused_and_old_ones_come_to_their_end() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let (handler, visitor, operator) = (fleet.at(0).handler(), fleet.at(1).visitor(), fleet.at(1).operator());
    let mut lives = Vec::new();
    for _ in 0..4 {
        lives.push(handler.issue(&ask()).await);
    }
    let link = |fleet: &Fleet, number: usize| fleet.link(&lives[number].url, 1);
    visitor.complete(&link(&fleet, 0), "wk-0").await;
    fleet.redis().ask::<String>(&["CONFIG", "SET", "maxmemory", "1mb"]).await;
    let refused = handler.post("v1/elicitations", &ask()).await;
    assert_eq!(refused.problem(), (503, "unavailable"), "{refused:?}");
    assert_eq!(handler.get("readyz").await.status, 200, "what is pending can be served");
    visitor.complete(&link(&fleet, 1), "wk-1").await;
    assert_eq!(visitor.decline(&link(&fleet, 2)).await.status, 303);
    operator.revoke(&lives[3].id).await.ok();
    for (number, value) in [(0, "wk-0"), (1, "wk-1")] {
        let claimed = handler.claim(&lives[number], None).await;
        assert_eq!(claimed.text_at("/credential/values/api_key"), value);
    }
    fleet.redis().ask::<String>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    handler.issue(&ask()).await;
}

/// What a fault cost, to be read with `--no-capture`.
#[expect(clippy::print_stdout, reason = "a report")]
fn told(fault: &str, findings: &Findings) {
    println!("{fault}: {findings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_killed_under_load_lose_nothing() {
    let redis = Redis::start(Program::Redis, &ALWAYS).await;
    let mut fleet = Fleet::on(redis, Setup::local()).await;
    let load = Load::on(&fleet).await;
    for number in 0..10 {
        load.goes_on().await;
        fleet.crash(number % 2).await;
    }
    load.goes_on().await;
    let findings = load.ends(&fleet).await;
    told("an instance killed, ten times", &findings);
    findings.hold();
}

#[rstest]
#[case::always("always")]
#[case::everysec("everysec")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_load_loses_nothing_that_it_had_on_disk(#[case] fsync: &str) {
    let redis = Redis::start(Program::Redis, &["--appendonly", "yes", "--appendfsync", fsync]).await;
    let mut fleet = Fleet::on(redis, Setup::local()).await;
    let load = Load::on(&fleet).await;
    for _ in 0..5 {
        load.goes_on().await;
        fleet.redis().crash().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet.redis().start_again().await;
    }
    load.goes_on().await;
    let findings = load.ends(&fleet).await;
    told(&format!("the server killed with appendfsync {fsync}, five times"), &findings);
    // Only the machine's end loses what the operating system has; with `everysec` the figures are a report.
    if fsync == "always" {
        findings.hold();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_under_load_lose_nothing() {
    let redis = Redis::start(Program::Redis, &ALWAYS).await;
    let proxy = Proxy::before(redis.port()).await;
    let fleet = Fleet::at_url(&format!("redis://127.0.0.1:{}", proxy.port()), Setup::local()).await;
    let load = Load::on(&fleet).await;
    for _ in 0..20 {
        load.goes_on().await;
        proxy.cut();
    }
    load.goes_on().await;
    let findings = load.ends(&fleet).await;
    told("every connection cut, twenty times", &findings);
    findings.hold();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stalls_under_load_loses_nothing() {
    let redis = Redis::start(Program::Redis, &ALWAYS).await;
    let mut fleet = Fleet::on(redis, Setup::local()).await;
    let load = Load::on(&fleet).await;
    fleet.redis().signal(Signal::STOP);
    tokio::time::sleep(Duration::from_secs(5)).await;
    fleet.redis().signal(Signal::CONT);
    load.goes_on().await;
    let findings = load.ends(&fleet).await;
    told("the server stalled for five seconds", &findings);
    findings.hold();
}

/// A failover may lose what had not reached the replica: how much is a report. The service goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_under_load_is_survived() {
    let mut watched = Watched::start(&ALWAYS).await;
    let fleet = Fleet::at_url(&watched.url(), Setup::local()).await;
    let load = Load::on(&fleet).await;
    watched.first.crash().await;
    load.goes_on().await;
    let role: Vec<redis::Value> = watched.second.ask(&["ROLE"]).await;
    assert_eq!(role[0], redis::Value::BulkString(b"master".to_vec()));
    let findings = load.ends(&fleet).await;
    told("a failover", &findings);
    assert!(findings.submitted > 10 && findings.claimed > 10, "{findings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_lost_a_node_serves_what_the_others_have_and_loses_nothing() {
    let own = ["--cluster-require-full-coverage", "no"];
    let mut cluster = Cluster::start(&[&own[..], &ALWAYS].concat()).await;
    let fleet = Fleet::at_url(&cluster.url(), Setup::local()).await;
    let handler = fleet.at(0).handler();
    let mut lives = Vec::new();
    for _ in 0..60 {
        lives.push(handler.issue(&ask()).await);
    }
    let load = Load::on(&fleet).await;
    cluster.nodes[2].crash().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    eventually("those of the two other nodes are served", async || {
        let looks = lives
            .iter()
            .map(async |issued| handler.get(&format!("v1/elicitations/{}", issued.id)).await.status == 200);
        let served = join_all(looks).await.into_iter().filter(|served| *served).count();
        assert!(served < 60, "a node is lost");
        (served > 20).then_some(())
    })
    .await;
    cluster.nodes[2].start_again().await;
    load.goes_on().await;
    let findings = load.ends(&fleet).await;
    told("a Cluster's node lost for four seconds", &findings);
    findings.hold();
    for issued in &lives {
        assert_eq!(handler.state(&issued.id).await, "pending");
    }
}
