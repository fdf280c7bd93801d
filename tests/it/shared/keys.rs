//! The key ring of instances that share a store, and how a new key is brought in while they run.

use std::path::Path;

use crate::harness::redis::{ALWAYS, Program, Redis};
use crate::harness::{Backing, Fleet, Handler, Server, Setup, ask, eventually, sidegate};

async fn keys(data: &Path, arguments: &[&str]) {
    let status =
        sidegate().arg("keys").args(arguments).arg("--file").arg(data.join("keys.toml")).status().await;
    assert!(status.unwrap().success());
}

async fn readiness(handler: &Handler, status: u16) {
    eventually("it is noticed", async || (handler.get("readyz").await.status == status).then_some(())).await;
}

/// Whether what one instance issues is completed at the other and claimed at the first.
async fn serve_each_other(fleet: &Fleet) {
    for number in 0..2 {
        let issued = fleet.at(number).handler().issue(&ask()).await;
        fleet.at(number + 1).visitor().complete(&fleet.link(&issued.url, number + 1), "wk-1").await;
        let claimed = fleet.at(number).handler().claim(&issued, None).await;
        assert_eq!(claimed.text_at("/credential/values/api_key"), "wk-1");
    }
}

#[tokio::test]
async fn r26_a_key_that_was_prepared_is_brought_in_without_a_step_refused() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let before = fleet.at(0).handler().issue(&ask()).await;
    let data = fleet.at(0).data().to_owned();
    for step in [&["rotate", "--prepare"][..], &["rotate"]] {
        keys(&data, step).await;
        for number in [0, 1] {
            fleet.restart(number).await;
            serve_each_other(&fleet).await;
            for instance in [0, 1] {
                assert_eq!(fleet.at(instance).handler().get("readyz").await.status, 200);
            }
        }
    }
    // The last key is the one that is used now.
    let text = std::fs::read_to_string(data.join("keys.toml")).unwrap();
    let first =
        text.lines().find_map(|line| line.strip_prefix("id = ")).unwrap().trim_matches('"').to_owned();
    let noted: Vec<String> = fleet.redis().ask(&["ZRANGE", "sidegate:keys", "0", "-1"]).await;
    assert!(noted.len() == 2 && noted.iter().any(|name| name.starts_with(&first)), "{noted:?}");
    fleet.at(1).visitor().complete(&fleet.link(&before.url, 1), "wk-2").await;
    let claimed = fleet.at(0).handler().claim(&before, None).await;
    assert_eq!(claimed.text_at("/credential/values/api_key"), "wk-2", "what the old key sealed is opened");
}

#[tokio::test]
async fn r26_an_instance_that_lacks_a_key_that_seals_is_not_ready_does_not_sweep_and_says_so() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let data = fleet.at(0).data().to_owned();
    keys(&data, &["rotate"]).await;
    fleet.restart(1).await;
    let (behind, ahead) = (fleet.at(0).handler(), fleet.at(1).handler());
    readiness(&behind, 503).await;
    assert_eq!(ahead.get("readyz").await.status, 200);
    let log = fleet.at(0).log();
    assert!(
        log.contains("which is not in this instance's key file") && log.contains("keys rotate --prepare"),
        "{log}"
    );
    // It leaves the sweeping to the one that can open everything.
    let mut ask = ask();
    ask["expiresIn"] = 10.into();
    let issued = ahead.issue(&ask).await;
    eventually("its expiry is on record", async || {
        let mut export = sidegate();
        export.args(["audit", "export", "--data"]).arg(&data).env("SIDEGATE_STORE__URL", fleet.redis().url());
        let trail = String::from_utf8(export.output().await.unwrap().stdout).unwrap();
        trail.lines().any(|line| line.contains(&issued.id) && line.contains("expired")).then_some(())
    })
    .await;
    assert!(!fleet.at(0).log().contains("cannot be opened"), "{}", fleet.at(0).log());
    fleet.restart(0).await;
    assert_eq!(fleet.at(0).handler().get("readyz").await.status, 200);
    serve_each_other(&fleet).await;
}

#[tokio::test]
async fn r26_an_instance_with_a_key_ring_of_its_own_does_not_start_beside_another() {
    let redis = Redis::start(Program::Redis, &[]).await;
    let first = Server::start(Setup::local().with("SIDEGATE_STORE__URL", redis.url())).await;
    let issued = first.handler().issue(&ask()).await;
    let other = tempfile::tempdir().unwrap();
    let serve = |lost: &str| {
        let mut serve = sidegate();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(other.path());
        serve.env("SIDEGATE_STORE__URL", redis.url());
        if !lost.is_empty() {
            serve.env("SIDEGATE_KEYS__LOST", format!("[\"{lost}\"]"));
        }
        serve
    };
    let refused = serve("").output().await.unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    let last = said.lines().last().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(last.starts_with("sidegate: `keys.file`: ") && last.contains("the same key file"), "{said}");
    let mut check = sidegate();
    check.args(["check", "--data"]).arg(other.path()).env("SIDEGATE_STORE__URL", redis.url());
    let checked = check.output().await.unwrap();
    assert!(!checked.status.success() && String::from_utf8_lossy(&checked.stderr).contains("`keys.file`: "));
    // Those that run are none the worse for it.
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert_eq!(first.handler().get("readyz").await.status, 200);
    // An operator who says that the key is gone for good goes on without what it sealed.
    let lost = last.split('`').nth(3).unwrap().split(':').next().unwrap();
    let mut started = serve(lost);
    let mut child =
        started.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let mut output = tokio::io::BufReader::new(child.stdout.take().unwrap());
    tokio::io::AsyncBufReadExt::read_line(&mut output, &mut line).await.unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    child.kill().await.unwrap();
    assert_eq!(first.handler().state(&issued.id).await, "pending");
}

#[tokio::test]
async fn r26_an_instance_that_started_without_the_store_seals_nothing_that_others_cannot_open() {
    let mut redis = Redis::start(Program::Redis, &ALWAYS).await;
    let first = Server::start(Setup::local().with("SIDEGATE_STORE__URL", redis.url())).await;
    let issued = first.handler().issue(&ask()).await;
    redis.crash().await;
    let stray = Server::start(Setup::local().with("SIDEGATE_STORE__URL", redis.url())).await;
    redis.start_again().await;
    readiness(&first.handler(), 200).await;
    for _ in 0..40 {
        assert_eq!(stray.handler().get("readyz").await.status, 503);
        assert_eq!(stray.handler().post("v1/elicitations", &ask()).await.problem(), (503, "unavailable"));
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(stray.log().contains("which is not in this instance's key file"), "{}", stray.log());
    assert_eq!(first.handler().get("readyz").await.status, 200);
    assert_eq!(first.handler().state(&issued.id).await, "pending");
}

/// Between the two steps of a rotation some instances seal under the new key and some under the old one.
#[tokio::test]
async fn r26_while_a_key_is_replaced_two_calls_at_once_still_make_one_link() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let data = fleet.at(0).data().to_owned();
    keys(&data, &["rotate", "--prepare"]).await;
    for number in [0, 1] {
        fleet.restart(number).await;
    }
    keys(&data, &["rotate"]).await;
    fleet.restart(1).await;
    for number in 0..20 {
        let mut call = ask();
        call["operation"]["id"] = format!("call-{number}").into();
        let mut round = call.clone();
        round["protocolVersion"] = "2025-11-25".into();
        round["waitSeconds"] = 0.into();
        let [one, other] = [0, 1].map(|number| fleet.at(number).handler());
        let (first, second) = tokio::join!(one.round(&round), other.round(&round));
        let id =
            |answer: serde_json::Value| answer["error"]["data"]["elicitations"][0]["elicitationId"].clone();
        assert_eq!(id(first.ok()), id(second.ok()), "call {number}");
        let issue = |handler: &Handler| {
            let request = handler.request(reqwest::Method::POST, "v1/elicitations").json(&call);
            Handler::send(request.header("Idempotency-Key", format!("key-{number}")))
        };
        let (first, second) = tokio::join!(issue(&one), issue(&other));
        assert_eq!(first.ok()["id"], second.ok()["id"], "key {number}");
    }
}

/// A record that nobody can open lives no longer for having been looked at.
#[tokio::test]
async fn r44_what_cannot_be_opened_still_goes_when_its_time_is_over() {
    let mut fleet = Fleet::start(Backing::Shared, Setup::local()).await;
    let mut ask = ask();
    ask["expiresIn"] = 10.into();
    let issued = fleet.at(0).handler().issue(&ask).await;
    let redis = fleet.redis();
    let record: Vec<String> = redis.ask(&["KEYS", &format!("*:record:{}", issued.id)]).await;
    redis.ask::<i64>(&["HSET", &record[0], "record", "of no key"]).await;
    redis.ask::<i64>(&["PEXPIRE", &record[0], "60000"]).await;
    tokio::time::sleep(std::time::Duration::from_secs(9)).await;
    eventually("the sweep has met it", async || {
        (0..2)
            .any(|number| fleet.at(number).log().contains("cannot be opened; it is left for an hour"))
            .then_some(())
    })
    .await;
    let left: i64 = fleet.redis().ask(&["PTTL", &record[0]]).await;
    assert!((1..=60_000).contains(&left), "{left}");
}
