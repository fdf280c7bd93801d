//! The parts one by one: issue, status, claim, cancel; idempotency keys; what clients see of each other.

use std::time::Duration;

use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::harness::issuer::Issuer;
use super::harness::{Handler, Server, Setup, ask};

#[tokio::test]
async fn an_elicitation_is_issued_with_all_that_a_handler_needs() {
    let server = Server::local().await;
    let ask = ask();
    let issued = server.handler().post("v1/elicitations", &ask).await;
    assert_eq!(issued.status, 201);
    let view = issued.ok();
    let id = view["id"].as_str().unwrap();
    assert!(
        id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)),
        "{id}"
    );
    assert_eq!(view["url"], server.url(&format!("e/{id}")));
    assert_eq!((&view["kind"], &view["state"]), (&json!("secret"), &json!("pending")));
    assert_eq!(view["message"], ask["message"]);
    assert_eq!(view["operation"]["name"], ask["operation"]["name"]);
    assert_eq!(view["operation"]["summary"], ask["operation"]["summary"]);
    assert!(view["operation"]["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(view["operation"].get("arguments").is_none());
    for time in ["createdAt", "expiresAt"] {
        let text = view[time].as_str().unwrap();
        assert!(text.ends_with('Z') && text.contains('T'), "{text}");
    }
    assert!(view["requestState"].as_str().unwrap().len() <= 512);
}

#[tokio::test]
async fn the_request_state_of_an_issue_serves_a_round() {
    let server = Server::local().await;
    let ask = ask();
    let issued = server.handler().post("v1/elicitations", &ask).await.ok();
    server.visitor().complete(issued["url"].as_str().unwrap(), "wk-1").await;
    let mut round = ask;
    round["protocolVersion"] = "2026-07-28".into();
    round["requestState"] = issued["requestState"].clone();
    let done = server.handler().round(&round).await.ok();
    assert_eq!(done["credential"]["values"]["api_key"], "wk-1");
}

#[tokio::test]
async fn an_issue_can_be_sent_twice_with_an_idempotency_key() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let issue = async |ask: &Value, key: &str| {
        let request = handler.request(Method::POST, "v1/elicitations").header("Idempotency-Key", key);
        Handler::send(request.json(ask)).await
    };
    let first = issue(&ask, "key-1").await;
    let second = issue(&ask, "key-1").await;
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (201, 200));
    assert_eq!(first.body["id"], second.body["id"]);
    // The same body in another order of keys is the same body.
    let reordered: String = format!(
        "{{{}}}",
        ask.as_object()
            .unwrap()
            .iter()
            .rev()
            .map(|(name, value)| format!("{}:{value}", json!(name)))
            .collect::<Vec<_>>()
            .join(",")
    );
    let request = handler.request(Method::POST, "v1/elicitations").header("Idempotency-Key", "key-1");
    assert_eq!(Handler::send(request.body(reordered)).await.body["id"], first.body["id"]);

    let mut other = ask.clone();
    other["message"] = "Another message.".into();
    let mismatch = issue(&other, "key-1").await;
    assert_eq!(mismatch.problem(), (409, "idempotency_mismatch"));
    let third = issue(&ask, "key-2").await;
    assert_ne!(third.body["id"], first.body["id"]);
    for bad in ["", " ", &"k".repeat(256)] {
        let refused = issue(&ask, bad).await;
        assert_eq!(
            (refused.problem(), &refused.body["field"]),
            ((422, "invalid_request"), &json!("Idempotency-Key"))
        );
    }
}

#[tokio::test]
async fn parallel_issues_with_one_idempotency_key_make_one_elicitation() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let issues: Vec<_> = (0..32)
        .map(|_| {
            let request =
                handler.request(Method::POST, "v1/elicitations").header("Idempotency-Key", "once").json(&ask);
            tokio::spawn(async move {
                let reply = Handler::send(request).await;
                (reply.status.as_u16(), reply.text_at("/id").to_owned())
            })
        })
        .collect();
    let (mut created, mut ids) = (0, Vec::new());
    for issue in issues {
        let (status, id) = issue.await.unwrap();
        created += usize::from(status == 201);
        ids.push(id);
    }
    ids.dedup();
    assert_eq!((created, ids.len()), (1, 1));
}

#[tokio::test]
async fn a_status_call_waits_until_the_person_is_done() {
    let server = Server::local().await;
    let handler = server.handler();
    let issued = handler.issue(&ask()).await;
    let path = format!("v1/elicitations/{}?wait=50", issued.id);
    let waiting = tokio::spawn({
        let (handler, path) = (handler.clone(), path.clone());
        async move { handler.get(&path).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.status, 200);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "opening the page is not being done");
    server.visitor().complete(&issued.url, "wk-1").await;
    let done = timeout(Duration::from_secs(5), waiting).await.expect("completion wakes it").unwrap();
    assert_eq!(done.text_at("/state"), "completed");
    assert!(done.body.get("credential").is_none() && !done.text.contains("wk-1"), "{done:?}");
    assert!(done.body["claimBy"].is_string() && done.body["openedAt"].is_string());
    assert_eq!(done.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn a_status_call_ends_its_wait_with_the_state_as_it_is() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let waited = server.handler().get(&format!("v1/elicitations/{}?wait=1", issued.id)).await;
    assert_eq!(waited.text_at("/state"), "pending");
}

#[rstest]
#[case("wait=-1")]
#[case("wait=soon")]
#[case("wait=1&colour=red")]
#[tokio::test]
async fn a_bad_query_of_a_status_call_is_named(#[case] query: &str) {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let reply = server.handler().get(&format!("v1/elicitations/{}?{query}", issued.id)).await;
    assert_eq!(reply.problem(), (422, "invalid_request"), "{reply:?}");
    assert!(reply.body["field"].is_string());
}

#[tokio::test]
async fn a_claim_answers_for_every_state() {
    let server = Server::local().await;
    let handler = server.handler();
    let pending = handler.issue(&ask()).await;
    assert_eq!(handler.claim(&pending, None).await.problem(), (409, "not_completed"));

    let completed = handler.issue(&ask()).await;
    server.visitor().complete(&completed.url, "wk-1").await;
    let claimed = handler.claim(&completed, None).await;
    assert_eq!(claimed.ok(), json!({"credential": {"values": {"api_key": "wk-1"}}}));
    assert_eq!(handler.claim(&completed, None).await.problem(), (409, "already_claimed"));

    let declined = handler.issue(&ask()).await;
    server.visitor().decline(&declined.url).await;
    let refused = handler.claim(&declined, None).await;
    assert_eq!((refused.problem(), refused.text_at("/state")), ((409, "ended"), "declined"));

    let cancelled = handler.issue(&ask()).await;
    assert_eq!(handler.cancel(&cancelled.id).await.text_at("/state"), "cancelled");
    assert_eq!(handler.claim(&cancelled, None).await.text_at("/state"), "cancelled");

    let revoked = handler.issue(&ask()).await;
    server.visitor().complete(&revoked.url, "wk-2").await;
    server.operator().revoke(&revoked.id).await.ok();
    assert_eq!(handler.claim(&revoked, None).await.text_at("/state"), "revoked");
}

#[tokio::test]
async fn r07_a_claim_for_another_binding_consumes_nothing() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let (handler, mut ask) = (server.handler(), ask());
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
    let issued = handler.issue(&ask).await;
    server.visitor().signed_in(issuer.token("ada")).complete(&issued.url, "wk-1").await;
    for (pointer, value) in [
        ("/subject/id", "bob"),
        ("/subject/id", "ADA"),
        ("/subject/issuer", "https://other.example"),
        ("/operation/name", "tools/call:pay"),
        ("/operation/arguments/city", "Rome"),
    ] {
        let mut other = issued.clone();
        *other.ask.pointer_mut(pointer).unwrap() = value.into();
        assert_eq!(handler.claim(&other, None).await.problem(), (409, "binding_mismatch"), "{pointer}");
    }
    let mut more = issued.clone();
    more.ask["operation"]["id"] = "another".into();
    assert_eq!(handler.claim(&more, None).await.problem(), (409, "binding_mismatch"));
    assert_eq!(server.other_handler().claim(&issued, None).await.problem(), (404, "not_found"));
    let digest =
        handler.get(&format!("v1/elicitations/{}", issued.id)).await.ok()["operation"]["digest"].clone();
    let mut by_digest = issued.clone();
    by_digest.ask["operation"] = json!({"name": "tools/call:forecast", "digest": digest});
    let claimed = handler.claim(&by_digest, None).await.ok();
    assert_eq!(claimed["credential"]["values"]["api_key"], "wk-1");
}

#[tokio::test]
async fn cancelling_ends_it_and_what_has_ended_says_how() {
    let server = Server::local().await;
    let handler = server.handler();
    let issued = handler.issue(&ask()).await;
    assert_eq!(handler.cancel(&issued.id).await.text_at("/state"), "cancelled");
    assert_eq!(server.visitor().get(&issued.url).await.status, 410);
    let completed = handler.issue(&ask()).await;
    server.visitor().complete(&completed.url, "wk-1").await;
    let refused = handler.cancel(&completed.id).await;
    assert_eq!((refused.problem(), refused.text_at("/state")), ((409, "ended"), "completed"));
    assert_eq!(handler.claim(&completed, None).await.status, 200, "what was completed can still be claimed");
}

#[tokio::test]
async fn r34_clients_see_only_their_own_and_operators_see_no_outcome() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
    let issued = server.handler().issue(&ask).await;
    server.visitor().signed_in(issuer.token("ada")).complete(&issued.url, "CANARY-34").await;
    let foreign = server.other_handler();
    let unknown = "0".repeat(32);
    for (theirs, nobodys) in [
        (
            foreign.get(&format!("v1/elicitations/{}", issued.id)).await,
            foreign.get(&format!("v1/elicitations/{unknown}")).await,
        ),
        (foreign.cancel(&issued.id).await, foreign.cancel(&unknown).await),
    ] {
        assert_eq!(theirs.status, 404);
        assert_eq!((theirs.status, theirs.text), (nobodys.status, nobodys.text));
    }
    assert_eq!(foreign.claim(&issued, None).await.problem(), (404, "not_found"));
    let found = server.operator().post("v1/admin/elicitations/search", &json!({})).await;
    assert!(found.text.contains(&issued.id) && !found.text.contains("CANARY-34"));
    // Keys of one sort do not open what is for the other.
    assert_eq!(server.operator().get(&format!("v1/elicitations/{}", issued.id)).await.status, 401);
    assert_eq!(server.handler().post("v1/admin/elicitations/search", &json!({})).await.status, 401);
    assert_eq!(server.handler().claim(&issued, None).await.status, 200);
}

#[tokio::test]
async fn operators_search_by_what_they_know_and_revoke_all_that_match() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let ask_for = |person: &str, name: &str| {
        let mut ask = ask();
        ask["subject"] = json!({"issuer": issuer.name(), "id": person});
        ask["operation"]["name"] = name.into();
        ask
    };
    for (person, name) in [("ada", "tools/call:a"), ("ada", "tools/call:b"), ("bob", "tools/call:a")] {
        server.handler().issue(&ask_for(person, name)).await;
    }
    server.other_handler().issue(&ask_for("ada", "tools/call:a")).await;
    let operator = server.operator();
    let count = async |filter: Value| {
        operator.post("v1/admin/elicitations/search", &filter).await.ok()["elicitations"]
            .as_array()
            .unwrap()
            .len()
    };
    let ada = json!({"issuer": issuer.name(), "id": "ada"});
    assert_eq!(count(json!({})).await, 4);
    assert_eq!(count(json!({"client": "weather"})).await, 3);
    assert_eq!(count(json!({"subject": ada})).await, 3);
    assert_eq!(count(json!({"operation": "tools/call:a"})).await, 3);
    assert_eq!(count(json!({"kind": "secret", "client": "weather", "subject": ada})).await, 2);
    assert_eq!(count(json!({"states": ["revoked"]})).await, 0);

    // In pages.
    let (mut seen, mut after) = (Vec::new(), Value::Null);
    loop {
        let mut body = json!({"limit": 1});
        if after.is_string() {
            body["after"] = after;
        }
        let page = operator.post("v1/admin/elicitations/search", &body).await.ok();
        seen.extend(page["elicitations"].as_array().unwrap().iter().map(|found| found["id"].to_string()));
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 4);

    let revoke = json!({"client": "weather", "subject": ada, "reason": "left the company"});
    assert_eq!(operator.post("v1/admin/elicitations/revoke", &revoke).await.ok(), json!({"revoked": 2}));
    assert_eq!(count(json!({"states": ["revoked"]})).await, 2);
    assert_eq!(count(json!({})).await, 2, "what has ended is not listed unless asked for");
    let all = operator.post("v1/admin/elicitations/revoke", &json!({"reason": "oops"})).await;
    assert_eq!(all.problem(), (422, "invalid_request"), "one criterion at least: {all:?}");
}

#[tokio::test]
async fn r48_a_subject_that_is_absent_or_empty_never_becomes_anyone() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let name = issuer.name();
    for (subject, field) in [
        (Value::Null, "subject"),
        (json!({"issuer": name, "id": ""}), "subject.id"),
        (json!({"issuer": name, "id": "  "}), "subject.id"),
        (json!({"issuer": "", "id": "ada"}), "subject.issuer"),
        (json!({"issuer": "https://other.example", "id": "ada"}), "subject.issuer"),
        (json!({"issuer": name}), "subject.id"),
        (json!({"id": "ada"}), "subject.issuer"),
        (json!("ada"), "subject"),
    ] {
        let mut ask = ask();
        if !subject.is_null() {
            ask["subject"] = subject.clone();
        }
        let reply = server.handler().post("v1/elicitations", &ask).await;
        assert_eq!(
            (reply.problem(), &reply.body["field"]),
            ((422, "invalid_request"), &json!(field)),
            "{subject}"
        );
    }
}

#[tokio::test]
async fn a_local_service_knows_its_one_person() {
    let server = Server::local().await;
    let mut named = ask();
    named["subject"] = json!({"issuer": "local", "id": "me"});
    let issued = server.handler().issue(&named).await;
    server.visitor().complete(&issued.url, "wk-1").await;
    let mut unnamed = issued.clone();
    unnamed.ask.as_object_mut().unwrap().remove("subject");
    assert_eq!(
        server.handler().claim(&unnamed, None).await.status,
        200,
        "naming the only person or not is the same"
    );
}
