//! What a shared store keeps, for how long, and who looks after it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::redis::{ALWAYS, Program, Redis, files};
use crate::harness::{Backing, Fleet, Setup, ask, eventually, sidegate};

/// Lifetimes short enough to wait for.
fn short() -> Setup {
    Setup::local()
        .with("SIDEGATE_LIFETIMES__RETENTION", "2")
        .with("SIDEGATE_LIFETIMES__CLAIM_WINDOW", "1")
        .with("SIDEGATE_LIFETIMES__CLAIM_BY", "3")
        .with("SIDEGATE_STORE__TRAIL_RETENTION", "86400")
}

async fn keys(redis: &Redis) -> Vec<String> {
    let mut keys: Vec<String> = redis.ask(&["KEYS", "*"]).await;
    keys.sort();
    keys
}

#[tokio::test]
async fn r44_every_key_has_a_deadline_and_is_gone_after_retention() {
    let mut fleet = Fleet::start(Backing::Shared, short()).await;
    let mut lives = Vec::new();
    for number in 0..4 {
        let mut ask = ask();
        ask["expiresIn"] = 10.into();
        let issued = fleet.at(number).handler().issue(&ask).await;
        let (visitor, link) = (fleet.at(number + 1).visitor(), fleet.link(&issued.url, number + 1));
        match number {
            0 => visitor.complete(&link, "wk-1").await,
            1 => drop(visitor.decline(&link).await),
            2 => {
                visitor.complete(&link, "wk-2").await;
                assert_eq!(fleet.at(0).handler().claim(&issued, Some("order-1")).await.status, 200);
            }
            _ => {}
        }
        lives.push(issued);
    }
    let redis = fleet.redis();
    let all = keys(redis).await;
    assert!(
        all.iter().any(|key| key.contains(":record:")) && all.iter().any(|key| key.contains(":outcome:")),
        "{all:?}"
    );
    for key in &all {
        assert!(redis.ask::<i64>(&["PTTL", key]).await > 0, "{key} would stay for ever");
    }
    // The sweep removes them; their times to live are far longer.
    let left = |all: &[String]| {
        let theirs = |key: &&String| {
            [":record:", ":outcome:", ":slot:", ":quota:", ":due", ":ids", ":outbox"]
                .iter()
                .any(|part| key.contains(part))
        };
        all.iter().filter(theirs).cloned().collect::<Vec<_>>()
    };
    for _ in 0..60 {
        if left(&keys(redis).await).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(left(&keys(redis).await), [""; 0]);
    for key in keys(redis).await {
        let left = redis.ask::<i64>(&["PTTL", &key]).await;
        assert!(left != -1, "{key} would stay for ever");
    }
    let path = format!("v1/elicitations/{}", lives[3].id);
    assert_eq!(fleet.at(0).handler().get(&path).await.status, 404);
}

/// Whether any of the server's files holds these bytes.
fn is_stored(redis: &Redis, bytes: &[u8]) -> bool {
    let holds = |file: std::path::PathBuf| {
        std::fs::read(file).unwrap().windows(bytes.len()).any(|part| part == bytes)
    };
    files(redis.folder()).into_iter().any(holds)
}

#[tokio::test]
async fn r25_when_its_time_is_over_an_outcomes_bytes_are_gone() {
    let setup = Setup::local().with("SIDEGATE_LIFETIMES__CLAIM_WINDOW", "1");
    let redis = Redis::start(Program::Redis, &["--rdbcompression", "no", "--dbfilename", "dump.rdb"]).await;
    let mut fleet = Fleet::on(redis, setup).await;
    for end in ["claimed", "revoked"] {
        let issued = fleet.at(0).handler().issue(&ask()).await;
        fleet.at(1).visitor().complete(&fleet.link(&issued.url, 1), "wk-1").await;
        let redis = fleet.redis();
        let key = keys(redis).await.into_iter().find(|key| key.contains(":outcome:")).unwrap();
        let sealed: Vec<u8> = redis.ask(&["GET", &key]).await;
        redis.ask::<String>(&["SAVE"]).await;
        assert!(is_stored(redis, &sealed));
        match end {
            "claimed" => assert_eq!(fleet.at(1).handler().claim(&issued, None).await.status, 200),
            _ => drop(fleet.at(1).operator().revoke(&issued.id).await.ok()),
        }
        let redis = fleet.redis();
        eventually("the outcome is gone", async || {
            (redis.ask::<i64>(&["EXISTS", &key]).await == 0).then_some(())
        })
        .await;
        redis.ask::<String>(&["SAVE"]).await;
        assert!(!is_stored(redis, &sealed), "{end}");
    }
}

#[tokio::test]
async fn r24_a_record_or_outcome_that_was_moved_to_another_elicitation_does_not_open() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let mut lives = Vec::new();
    for number in 0..2 {
        let issued = fleet.at(number).handler().issue(&ask()).await;
        fleet.at(number).visitor().complete(&issued.url, &format!("wk-{number}")).await;
        lives.push(issued);
    }
    let handler = fleet.at(0).handler();
    let redis = fleet.redis();
    let all = keys(redis).await;
    let key = |what: &str, number: usize| {
        let ending = format!(":{what}:{}", lives[number].id);
        all.iter().find(|key| key.ends_with(&ending)).unwrap().clone()
    };
    let mut connection = redis.connect().await;
    let sealed: Vec<u8> = redis.ask(&["GET", &key("outcome", 1)]).await;
    let mut set = redis::cmd("SET");
    set.arg(key("outcome", 0)).arg(sealed).arg("KEEPTTL").query_async::<()>(&mut connection).await.unwrap();
    let claimed = handler.claim(&lives[0], None).await;
    assert_eq!(claimed.problem(), (503, "unavailable"), "another's outcome: {claimed:?}");
    let record: Vec<u8> = redis.ask(&["HGET", &key("record", 1), "record"]).await;
    let mut set = redis::cmd("HSET");
    set.arg(key("record", 0)).arg("record").arg(record).query_async::<()>(&mut connection).await.unwrap();
    let read = handler.get(&format!("v1/elicitations/{}", lives[0].id)).await;
    assert_eq!(read.problem(), (503, "unavailable"), "another's record: {read:?}");
    assert_eq!(handler.claim(&lives[1], None).await.text_at("/credential/values/api_key"), "wk-1");
}

/// What `sidegate audit` says, and whether it succeeds.
async fn audit(fleet: &Fleet, url: &str, what: &str) -> (bool, String) {
    let mut command = sidegate();
    command.args(["audit", what, "--data"]).arg(fleet.at(0).data()).env("SIDEGATE_STORE__URL", url);
    let output = command.output().await.unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// The audit trail as the command line prints it.
async fn exported(fleet: &Fleet, url: &str) -> Vec<Value> {
    let (good, exported) = audit(fleet, url, "export").await;
    assert!(good, "{exported}");
    let exported: Vec<_> =
        exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    let (good, verified) = audit(fleet, url, "verify").await;
    assert!(good && verified.contains("entries, in order and unchanged"), "{verified}");
    exported
}

#[tokio::test]
async fn r37_each_change_is_on_the_one_trail_once_whatever_the_instance() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let mut lives = Vec::new();
    for number in 0..20 {
        let mut ask = ask();
        ask["expiresIn"] = 10.into();
        let issued = fleet.at(number).handler().issue(&ask).await;
        if number % 2 == 0 {
            fleet.at(number + 1).visitor().decline(&fleet.link(&issued.url, number + 1)).await;
        }
        lives.push(issued);
    }
    // Both instances look for what has expired; it is put on record once.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let url = fleet.redis().url();
    let trail = exported(&fleet, &url).await;
    for (number, issued) in lives.iter().enumerate() {
        let theirs: Vec<_> = trail.iter().filter(|event| event.to_string().contains(&issued.id)).collect();
        let end = if number % 2 == 0 { "declined" } else { "expired" };
        let ends = theirs.iter().filter(|event| event.to_string().contains(end)).count();
        assert_eq!(ends, 1, "{theirs:?}");
        let issues = theirs.iter().filter(|event| event.to_string().contains("issued")).count();
        assert_eq!(issues, 1, "{theirs:?}");
    }
    let numbers: Vec<_> = trail.iter().map(|event| event["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn r37_the_trail_forgets_its_oldest_parts_and_verify_finds_that_any_other_was_removed() {
    let setup = Setup::local().with("SIDEGATE_LIMITS__REQUESTS_PER_SECOND_PER_CLIENT", "100000");
    let mut fleet = Fleet::start(Backing::Shared, setup).await;
    // Two parts of the trail and some of a third; every other change is of two events.
    for number in 0..1100 {
        let issued = fleet.at(number).handler().issue(&ask()).await;
        fleet.at(number).handler().cancel(&issued.id).await.ok();
    }
    let url = fleet.redis().url();
    let whole = exported(&fleet, &url).await;
    assert!(whole.len() > 2048, "{}", whole.len());
    let part = |number: u32| format!("sidegate:{{trail}}:{number}");
    let rename = async |redis: &Redis, from: &str, to: &str| {
        assert_eq!(redis.ask::<String>(&["RENAME", from, to]).await, "OK");
    };
    for (removed, first) in [(1, 1025), (2, 2049)] {
        rename(fleet.redis(), &part(removed), "sidegate:{trail}:hidden").await;
        let (good, said) = audit(&fleet, &url, "verify").await;
        let sentence = format!("entries {first} to {} are missing", whole.len());
        assert!(!good && said.contains(&sentence), "{said}");
        rename(fleet.redis(), "sidegate:{trail}:hidden", &part(removed)).await;
    }
    // The oldest part, before its time and after.
    rename(fleet.redis(), &part(0), "sidegate:{trail}:hidden").await;
    let (good, said) = audit(&fleet, &url, "verify").await;
    assert!(!good && said.contains("entries 1 to "), "{said}");
    let redis = fleet.redis();
    let mut head: Vec<u8> = redis.ask(&["LINDEX", &part(1), "0"]).await;
    assert_eq!(head.len(), 32 + 16);
    head.splice(32.., *b"0000000000000001");
    let mut set = redis::cmd("LSET");
    set.arg(part(1)).arg(0).arg(head).query_async::<()>(&mut redis.connect().await).await.unwrap();
    let rest = exported(&fleet, &url).await;
    assert_eq!((&rest[0], rest.len()), (&whole[1024], whole.len() - 1024));
    let (_, said) = audit(&fleet, &url, "verify").await;
    assert!(
        said.contains(&format!("1025 to {}", whole.len())) && said.contains("older ones are gone"),
        "{said}"
    );
    // A gap is not the start, and nothing at all is not the end.
    rename(fleet.redis(), &part(1), "sidegate:{trail}:hidden-too").await;
    rename(fleet.redis(), "sidegate:{trail}:hidden", &part(0)).await;
    let (good, said) = audit(&fleet, &url, "verify").await;
    assert!(!good && said.contains("entries 1025 to"), "{said}");
    for number in [0, 2] {
        fleet.redis().ask::<i64>(&["DEL", &part(number)]).await;
    }
    let (good, said) = audit(&fleet, &url, "verify").await;
    assert!(!good && said.contains("are missing"), "{said}");
}

#[tokio::test]
async fn an_instance_that_sweeps_and_dies_is_followed_by_another() {
    let mut fleet = Fleet::start(Backing::Shared, short()).await;
    let sweeper: Vec<u8> = fleet.redis().ask(&["GET", "sidegate:sweeper"]).await;
    let mut ask = ask();
    ask["expiresIn"] = 10.into();
    let issued = fleet.at(0).handler().issue(&ask).await;
    // Whichever it is that sweeps, one of these kills it.
    fleet.crash(0).await;
    fleet.crash(1).await;
    let redis = fleet.redis();
    eventually("another one sweeps", async || {
        let now: Option<Vec<u8>> = redis.ask(&["GET", "sidegate:sweeper"]).await;
        now.filter(|now| *now != sweeper)
    })
    .await;
    for _ in 0..60 {
        let all = keys(fleet.redis()).await;
        if !all.iter().any(|key| key.contains(&issued.id)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("it was never erased");
}

#[tokio::test]
async fn operators_find_and_revoke_what_every_instance_issued() {
    let fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    for number in 0..6 {
        fleet.at(number).handler().issue(&ask()).await;
    }
    for number in [0, 1] {
        let found = fleet.at(number).operator().post("v1/admin/elicitations/search", &json!({})).await.ok();
        assert_eq!(found["elicitations"].as_array().unwrap().len(), 6);
    }
    let all = json!({"client": "local", "reason": "lost laptop"});
    fleet.at(1).operator().post("v1/admin/elicitations/revoke", &all).await.ok();
    let found = fleet.at(0).operator().post("v1/admin/elicitations/search", &json!({})).await.ok();
    assert_eq!(found["elicitations"], json!([]));
}

#[tokio::test]
async fn a_store_that_was_on_disk_when_the_server_died_serves_on() {
    let mut fleet = Fleet::on(Redis::start(Program::Redis, &ALWAYS).await, Setup::local()).await;
    let issued = fleet.at(0).handler().issue(&ask()).await;
    fleet.at(0).visitor().complete(&issued.url, "wk-1").await;
    fleet.redis().crash().await;
    fleet.redis().start_again().await;
    let handler = fleet.at(1).handler();
    eventually("it is ready again", async || (handler.get("readyz").await.status == 200).then_some(())).await;
    assert_eq!(handler.claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
}
