//! Any step may be taken at any instance.

use std::collections::HashSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::handler::Issued;
use crate::harness::{Backing, Fleet, Handler, Setup, ask};

async fn fleet() -> Fleet {
    Fleet::start(Backing::Shared, Setup::local()).await
}

#[tokio::test]
async fn a_life_may_have_each_of_its_steps_at_another_instance() {
    let fleet = fleet().await;
    let (a, b) = (fleet.at(0), fleet.at(1));
    let issued = a.handler().issue(&ask()).await;
    assert_eq!(b.handler().state(&issued.id).await, "pending");
    b.visitor().complete(&fleet.link(&issued.url, 1), "wk-1").await;
    assert_eq!(a.handler().state(&issued.id).await, "completed");
    let claimed = b.handler().claim(&issued, Some("order-1")).await;
    assert_eq!(claimed.text_at("/credential/values/api_key"), "wk-1");
    let replayed = a.handler().claim(&issued, Some("order-1")).await;
    assert_eq!(
        (replayed.text.as_str(), replayed.headers["idempotent-replay"].to_str().unwrap()),
        (claimed.text.as_str(), "true")
    );
    assert_eq!(a.handler().claim(&issued, Some("order-2")).await.problem(), (409, "already_claimed"));
}

#[tokio::test]
async fn a_poll_at_one_instance_is_woken_by_what_happens_at_the_other() {
    let fleet = fleet().await;
    for end in ["completed", "declined", "revoked", "cancelled"] {
        let issued = fleet.at(0).handler().issue(&ask()).await;
        let poll = {
            let (handler, id) = (fleet.at(0).handler(), issued.id.clone());
            tokio::spawn(async move { handler.get(&format!("v1/elicitations/{id}?wait=50")).await })
        };
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!poll.is_finished());
        let (b, link) = (fleet.at(1), fleet.link(&issued.url, 1));
        match end {
            "completed" => b.visitor().complete(&link, "wk-1").await,
            "declined" => assert_eq!(b.visitor().decline(&link).await.status, 303),
            "revoked" => drop(b.operator().revoke(&issued.id).await.ok()),
            _ => drop(b.handler().cancel(&issued.id).await.ok()),
        }
        let reply =
            timeout(Duration::from_secs(10), poll).await.expect("long before its wait is over").unwrap();
        assert_eq!(reply.text_at("/state"), end);
    }
}

fn round(version: &str) -> Value {
    let mut round = ask();
    round["protocolVersion"] = version.into();
    round["waitSeconds"] = 20.into();
    round
}

#[tokio::test]
async fn every_round_may_come_to_another_instance() {
    let fleet = fleet().await;
    let mut call = round("2026-07-28");
    let first = fleet.at(0).handler().round(&call).await.ok();
    let prompt = &first["result"]["inputRequests"]["sidegate"]["params"];
    call["requestState"] = first["result"]["requestState"].clone();
    call["inputResponses"] = json!({"sidegate": {"action": "accept"}});
    let second = {
        let (handler, call) = (fleet.at(1).handler(), call.clone());
        tokio::spawn(async move { handler.round(&call).await })
    };
    fleet.at(0).visitor().complete(prompt["url"].as_str().unwrap(), "wk-1").await;
    let second = timeout(Duration::from_secs(10), second).await.expect("woken").unwrap().ok();
    assert_eq!(second["credential"]["values"]["api_key"], "wk-1");
    assert_eq!(fleet.at(0).handler().round(&call).await.ok()["outcome"], "consumed");
}

#[tokio::test]
async fn calls_without_a_request_state_find_what_another_instance_issued() {
    let fleet = fleet().await;
    for _ in 0..10 {
        let mut call = round("2025-11-25");
        call["waitSeconds"] = 0.into();
        let handlers = [0, 1, 0, 1, 0, 1].map(|number| fleet.at(number).handler());
        let calls = handlers.map(|handler| {
            let call = call.clone();
            tokio::spawn(async move { handler.round(&call).await.ok() })
        });
        let mut ids = HashSet::new();
        for call in calls {
            let answer = call.await.unwrap();
            let id = &answer["error"]["data"]["elicitations"][0]["elicitationId"];
            ids.insert(id.as_str().unwrap_or_else(|| panic!("{answer}")).to_owned());
        }
        assert_eq!(ids.len(), 1, "six first calls at once make one link");
    }
}

#[tokio::test]
async fn an_idempotency_key_holds_at_every_instance() {
    let fleet = fleet().await;
    for number in 0..10 {
        let body = ask();
        let issues = [0, 1, 0, 1].map(|instance| {
            let handler = fleet.at(instance).handler();
            let request = handler.request(Method::POST, "v1/elicitations").json(&body);
            let request = request.header("Idempotency-Key", format!("key-{number}"));
            tokio::spawn(async move { Handler::send(request).await })
        });
        let (mut ids, mut created) = (HashSet::new(), 0);
        for issue in issues {
            let reply = issue.await.unwrap();
            created += usize::from(reply.status == 201);
            ids.insert(reply.ok()["id"].as_str().unwrap().to_owned());
        }
        assert_eq!((ids.len(), created), (1, 1));
    }
}

/// As a peer failed: 162 of 200 were released more than once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r41_of_four_claimers_of_each_of_two_hundred_one_wins() {
    let fleet = fleet().await;
    let mut completed: Vec<Issued> = Vec::new();
    for number in 0..200 {
        let issued = fleet.at(number).handler().issue(&ask()).await;
        fleet.at(number).visitor().complete(&issued.url, &format!("value-{number}")).await;
        completed.push(issued);
    }
    let claims: Vec<_> = completed
        .iter()
        .enumerate()
        .flat_map(|(number, issued)| (0..4).map(move |claimer| (number, claimer, issued.clone())))
        .map(|(number, claimer, issued)| {
            let handler = fleet.at(claimer).handler();
            tokio::spawn(async move {
                let reply = handler.claim(&issued, None).await;
                if reply.status.is_success() {
                    assert_eq!(reply.text_at("/credential/values/api_key"), format!("value-{number}"));
                    return Some(number);
                }
                assert_eq!(reply.problem(), (409, "already_claimed"));
                None
            })
        })
        .collect();
    let mut winners = Vec::new();
    for claim in claims {
        winners.extend(claim.await.unwrap());
    }
    winners.sort_unstable();
    assert_eq!(winners, (0..200).collect::<Vec<_>>(), "each once");
}

/// The browser is sent out by one instance, comes back to another, and is known at both. Under a path, and what is kept
/// of it has a deadline.
#[tokio::test]
async fn r09_r44_a_sign_in_may_come_back_to_another_instance() {
    let section = "[identity.staff]\nsource = \"handoff\"\nissuer = \"https://mcp.example\"\nverify_url = \"https://mcp.example/verify\"\n";
    let mut fleet = Fleet::start(Backing::Shared, Setup::configured(section)).await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": "https://mcp.example", "id": "ada"});
    let issued = fleet.at(0).handler().issue(&ask).await;
    let ada = fleet.at(0).visitor();
    let page = ada.get(&issued.url).await;
    let to = ada.leave(&issued.url, &page).await;
    let handoff = to.query_pairs().next().unwrap().1.into_owned();
    let body = json!({"subject": ask["subject"]});
    let accepted = fleet.at(1).handler().post(&format!("v1/handoffs/{handoff}"), &body).await;
    let back = accepted.text_at("/returnUrl").split("/handoff/").nth(1).unwrap().to_owned();
    let came = ada.get(&fleet.at(0).url(&format!("handoff/{back}"))).await;
    assert_eq!(came.status, 303, "{}", came.text());
    for number in [0, 1] {
        assert_eq!(ada.get(&fleet.link(&issued.url, number)).await.status, 200, "{number}");
    }
    let redis = fleet.redis();
    let visits: Vec<String> = redis.ask(&["KEYS", "*:visit:*"]).await;
    assert_eq!(visits.len(), 2, "what was taken is gone; the session and the sign-in that is over are left");
    for visit in visits {
        let left: i64 = redis.ask(&["PTTL", &visit]).await;
        assert!((1..=3_660_000).contains(&left), "{visit}: {left}");
        let kept: Vec<u8> = redis.ask(&["GET", &visit]).await;
        assert!(!kept.windows(3).any(|part| part == b"ada"), "it is sealed");
    }
}
