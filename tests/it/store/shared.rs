//! What can happen to a store on a server alone: answers that are lost, steps that come late, indexes that name what
//! is gone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sidegate::domain::Timestamp;
use sidegate::redis_client::{Demands, Durability};
use sidegate::store::redis::Redis;
use sidegate::store::{Committed, Store};

use super::commits::{LATER, create, holder, ids, replace, tag, verified_trail, version};
use super::opened::instance;
use crate::harness::eventually;
use crate::harness::proxy::Proxy;
use crate::harness::redis::{self, Program};
use crate::sample::id;

/// A server, a proxy before it, a store through the proxy, and one beside it.
struct Ways {
    server: redis::Redis,
    proxy: Proxy,
    through: Arc<Redis>,
    beside: Redis,
}

async fn ways() -> Ways {
    let server = redis::Redis::start(Program::Redis, &[]).await;
    let proxy = Proxy::before(server.port()).await;
    let through = instance(&format!("redis://127.0.0.1:{}", proxy.port()), Demands::default()).await;
    let beside = instance(&server.url(), Demands::default()).await;
    Ways { server, proxy, through: Arc::new(through), beside }
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_done_once_also_when_others_followed_it() {
    let Ways { server: _server, proxy, through, beside } = ways().await;
    create(id(1)).done(&beside).await;
    // So that the server knows the script.
    replace(id(1), 1).done(&beside).await;
    proxy.mute(b"a lost answer");
    let sent = {
        let through = Arc::clone(&through);
        let change = replace(id(1), 2).record(b"a lost answer").wants(tag(1)).joins(tag(9), 1).event(b"sent");
        tokio::spawn(async move { change.on(&*through).await })
    };
    eventually("it is done", async || (version(&beside, id(1)).await == Some(3)).then_some(())).await;
    for version in 3..7 {
        replace(id(1), version).event(b"followed").done(&beside).await;
    }
    proxy.pass();
    proxy.cut();
    assert_eq!(sent.await.unwrap(), Committed::Done);
    assert_eq!(version(&beside, id(1)).await, Some(7));
    assert_eq!(holder(&beside, tag(1)).await, Some(id(1)));
    assert_eq!(create(id(2)).joins(tag(9), 1).on(&beside).await, Committed::Full(tag(9)));
    assert_eq!(verified_trail(&beside).await.len(), 5);
}

#[tokio::test]
async fn r37_an_event_whose_answer_was_lost_is_on_the_trail_once() {
    let Ways { server, proxy, through, beside } = ways().await;
    // So that the server knows the script.
    through.append(vec![b"before".to_vec()]).await.unwrap();
    assert_eq!(verified_trail(&beside).await.len(), 1);
    proxy.mute(b"an event");
    let sent = {
        let through = Arc::clone(&through);
        tokio::spawn(async move { through.append(vec![b"an event".to_vec(), b"b".to_vec()]).await })
    };
    eventually("it is there", async || {
        let outboxes: Vec<String> = server.ask(&["KEYS", "*outbox"]).await;
        (outboxes.len() == 1).then_some(())
    })
    .await;
    proxy.pass();
    proxy.cut();
    sent.await.unwrap().unwrap();
    assert_eq!(verified_trail(&beside).await.len(), 3);
}

/// An instance that stops for a while between the two halves of a commit must not take what was given to another.
#[tokio::test]
async fn a_commit_that_comes_too_late_for_what_it_reserved_is_refused() {
    let Ways { server: _server, proxy, through, beside } = ways().await;
    proxy.hold(b"a late record");
    let late = {
        let through = Arc::clone(&through);
        let change = create(id(1)).record(b"a late record").requires(tag(1)).joins(tag(9), 1).commit();
        tokio::spawn(async move { through.commit(change).await })
    };
    assert!(late.await.unwrap().is_err(), "nobody answered");
    eventually("what it reserved lapses", async || {
        let taken = create(id(2)).requires(tag(1)).joins(tag(9), 1).on(&beside).await;
        (taken == Committed::Done).then_some(())
    })
    .await;
    proxy.pass();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((version(&beside, id(1)).await, holder(&beside, tag(1)).await), (None, Some(id(2))));
}

#[tokio::test]
async fn a_page_is_full_although_the_index_names_what_is_gone() {
    let Ways { server, through, proxy: _proxy, .. } = ways().await;
    let mut connection = server.connect().await;
    for number in 1..=6 {
        create(id(number)).done(&*through).await;
        if number % 2 == 1 {
            let name = format!("gate:{{00}}:record:{}", id(number));
            ::redis::cmd("DEL").arg(name).query_async::<i64>(&mut connection).await.unwrap();
        }
    }
    assert_eq!(ids(&through.scan(None, 2).await.unwrap()), [id(2), id(4)]);
    assert_eq!(ids(&through.scan(None, 9).await.unwrap()), [id(2), id(4), id(6)]);
    let left: i64 = server.ask(&["ZCARD", "gate:{00}:ids"]).await;
    assert_eq!(left, 3, "the index is mended");
}

#[tokio::test]
async fn r37_events_wait_for_the_trail_as_long_as_it_is_kept() {
    let Ways { server, through, proxy: _proxy, .. } = ways().await;
    create(id(1)).event(b"a").done(&*through).await;
    let kept: i64 = server.ask(&["PTTL", "gate:{00}:outbox"]).await;
    let record: i64 = server.ask(&["PTTL", &format!("gate:{{00}}:record:{}", id(1))]).await;
    assert!(kept > 2 * 3_600_000 && record <= 3_600_000, "{kept} {record}");
    through.close().await;
    let waiting: Vec<String> = server.ask(&["KEYS", "*outbox"]).await;
    assert_eq!(waiting, [""; 0], "whoever closes puts them there");
    let end: String = server.ask(&["HGET", "gate:{trail}:end", "number"]).await;
    assert_eq!(end, "1");
}

#[tokio::test]
async fn a_trail_that_is_stuck_keeps_nobody_from_sweeping() {
    let Ways { server, through, proxy: _proxy, .. } = ways().await;
    server.ask::<String>(&["SET", "gate:{trail}:end", "of another kind"]).await;
    create(id(1)).event(b"a").done(&*through).await;
    assert!(through.tend().await.unwrap());
    assert!(through.chain(Duration::from_secs(1)).await.is_err());
    assert_eq!(ids(&through.due(LATER, 10).await.unwrap()), [id(1)]);
    server.ask::<i64>(&["DEL", "gate:{trail}:end"]).await;
    through.chain(Duration::from_secs(1)).await.unwrap();
    assert_eq!(verified_trail(&*through).await.len(), 1);
}

#[tokio::test]
async fn two_thousand_steps_at_once_wait_for_the_disk_together() {
    let server = redis::Redis::start(Program::Valkey, &["--appendonly", "yes"]).await;
    let demands = Demands { durability: Durability::Fsync, ..Demands::default() };
    let store = instance(&server.url(), demands).await;
    let commits = (1..=2000).map(|number| create(id(number)).event(b"a").on(&store));
    let done = join_all(commits).await;
    assert!(done.into_iter().all(|done| done == Committed::Done));
}

#[tokio::test]
async fn r26_a_key_is_noted_only_by_who_knows_all_that_are_noted() {
    let Ways { server, through: store, proxy: _proxy, .. } = ways().await;
    let agree = async |sealing: &str, others: &[&str], now, until| {
        let [now, until] = [now, until].map(Timestamp::from_millis);
        let known: Vec<_> = [&[sealing], others].concat().into_iter().map(str::to_owned).collect();
        store.agree_on_key(sealing, &known, now, until).await.unwrap()
    };
    let noted = async || server.ask::<Vec<String>>(&["ZRANGE", "gate:keys", "0", "-1"]).await;
    assert_eq!(agree("a", &[], 100, 200).await, None);
    assert_eq!(agree("b", &[], 100, 300).await, Some("a".to_owned()));
    assert_eq!(noted().await, ["a"], "who is refused has noted nothing");
    assert_eq!(agree("b", &["a"], 100, 300).await, None);
    assert_eq!(agree("a", &[], 150, 400).await, Some("b".to_owned()));
    assert_eq!(agree("a", &["b"], 150, 180).await, None, "what was sealed before lives on");
    assert_eq!(agree("b", &[], 199, 300).await, Some("a".to_owned()));
    assert_eq!(agree("b", &[], 200, 400).await, None);
    assert_eq!(noted().await, ["b"]);
    assert_eq!(store.sealing_keys(Timestamp::from_millis(399)).await.unwrap(), ["b"]);
    assert_eq!(store.sealing_keys(Timestamp::from_millis(400)).await.unwrap(), [""; 0]);
}

/// Whoever chains the trail also sweeps: it must come to an end while events go on coming.
#[tokio::test]
async fn chaining_ends_also_when_events_never_do() {
    let Ways { server: _server, through, beside, proxy: _proxy } = ways().await;
    let writing = async {
        loop {
            join_all((0..64).map(|_| beside.append(vec![b"event".to_vec(); 8]))).await;
        }
    };
    let chaining = tokio::time::timeout(Duration::from_secs(20), through.chain(Duration::from_secs(1)));
    tokio::select! {
        () = writing => {}
        chained = chaining => chained.expect("it ends").unwrap(),
    }
    assert!(!verified_trail(&beside).await.is_empty());
}
