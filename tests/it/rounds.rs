//! One call a round: each rule of the rounds, for both protocol versions.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::harness::issuer::Issuer;
use super::harness::{Handler, Reply, Server, Setup, ask};

const V2026: &str = "2026-07-28";
const V2025: &str = "2025-11-25";
/// What must be answered at once is answered within this.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A round of a tool call, with more members.
fn call(version: &str, ask: &Value, more: Value) -> Value {
    let mut call = ask.clone();
    call["protocolVersion"] = version.into();
    call["inputKey"] = "weather_key".into();
    let Value::Object(more) = more else { panic!("members are needed") };
    call.as_object_mut().unwrap().extend(more);
    call
}

/// What the MCP client sends with its retry after `reply`.
fn retry(version: &str, reply: &Reply, action: &str) -> Value {
    match version {
        V2026 => json!({
            "requestState": reply.text_at("/result/requestState"),
            "inputResponses": {"weather_key": {"action": action}},
        }),
        _ => json!({}),
    }
}

fn link(version: &str, reply: &Reply) -> String {
    let pointer = match version {
        V2026 => "/result/inputRequests/weather_key/params/url",
        _ => "/error/data/elicitations/0/url",
    };
    reply.text_at(pointer).to_owned()
}

#[tokio::test]
async fn the_first_round_of_2026_is_the_literal_input_required_result_at_once() {
    let server = Server::local().await;
    let ask = ask();
    let (handler, first) = (server.handler(), call(V2026, &ask, json!({"waitSeconds": 50})));
    let first = timeout(AT_ONCE, handler.round(&first)).await.expect("a first round does not wait");
    let id = first.text_at("/id").to_owned();
    let state = first.text_at("/result/requestState").to_owned();
    let expected = json!({
        "outcome": "input_required",
        "id": id,
        "result": {
            "resultType": "input_required",
            "requestState": state,
            "inputRequests": {"weather_key": {
                "method": "elicitation/create",
                "params": {"mode": "url", "url": server.url(&format!("e/{id}")), "message": ask["message"]},
            }},
        },
    });
    assert_eq!(first.ok(), expected);
}

#[tokio::test]
async fn the_first_round_of_2025_is_the_literal_error_at_once() {
    let server = Server::local().await;
    let ask = ask();
    let (handler, first) = (server.handler(), call(V2025, &ask, json!({"waitSeconds": 50})));
    let first = timeout(AT_ONCE, handler.round(&first)).await.expect("a first round does not wait");
    let id = first.text_at("/id").to_owned();
    let url = server.url(&format!("e/{id}"));
    let message =
        format!("{} Open this link in your browser, then try again: {url}", ask["message"].as_str().unwrap());
    let elicitation = json!({"mode": "url", "elicitationId": id, "url": url, "message": ask["message"]});
    let error = json!({"code": -32042, "message": message, "data": {"elicitations": [elicitation]}});
    assert_eq!(first.ok(), json!({"outcome": "input_required", "id": id, "error": error}));
}

#[rstest]
#[case(V2026)]
#[case(V2025)]
#[tokio::test]
async fn a_retry_waits_for_the_person_and_claims(#[case] version: &str) {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(version, &ask, json!({}))).await;
    let link = link(version, &first);
    let mut second = call(version, &ask, retry(version, &first, "accept"));
    second["waitSeconds"] = 50.into();
    let waiting = tokio::spawn({
        let handler = handler.clone();
        async move { handler.round(&second).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "a retry waits");
    server.visitor().complete(&link, "wk-12345").await;
    let done = timeout(AT_ONCE, waiting).await.expect("completion wakes the retry").unwrap();
    let body = json!({
        "outcome": "completed", "id": first.body["id"], "credential": {"values": {"api_key": "wk-12345"}},
    });
    assert_eq!(done.ok(), body);
    assert_eq!(handler.state(first.text_at("/id")).await, "claimed");
}

#[tokio::test]
async fn a_retry_that_finds_it_pending_gets_the_request_state_alone() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(V2026, &ask, json!({}))).await;
    let mut more = retry(V2026, &first, "accept");
    more["waitSeconds"] = 0.into();
    let second = handler.round(&call(V2026, &ask, more)).await;
    assert_eq!(second.text_at("/outcome"), "input_required");
    assert!(
        second.body["result"].get("inputRequests").is_none(),
        "the person is not prompted again: {second:?}"
    );
    assert_ne!(
        second.body["result"]["requestState"], first.body["result"]["requestState"],
        "the round counts"
    );
    assert_eq!(second.body["id"], first.body["id"]);
}

#[tokio::test]
async fn a_2025_retry_that_finds_it_pending_waits_and_then_gets_the_same_link() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(V2025, &ask, json!({}))).await;
    let retry = call(V2025, &ask, json!({"waitSeconds": 1}));
    let mut waiting = std::pin::pin!(handler.round(&retry));
    assert!(timeout(Duration::from_millis(700), &mut waiting).await.is_err(), "it waits before it answers");
    let second = waiting.await;
    assert_eq!(second.body, first.body);
}

#[rstest]
#[case(V2026, "decline", "declined", 200)]
#[case(V2026, "cancel", "cancelled", 410)]
#[tokio::test]
async fn a_refusal_in_the_client_ends_it_and_kills_the_link(
    #[case] version: &str,
    #[case] action: &str,
    #[case] outcome: &str,
    #[case] page: u16,
) {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(version, &ask, json!({}))).await;
    let second = handler.round(&call(version, &ask, retry(version, &first, action))).await;
    assert_eq!(second.text_at("/outcome"), outcome);
    assert_eq!(second.body["toolResult"]["isError"], true);
    assert_eq!(handler.state(first.text_at("/id")).await, outcome);
    let opened = server.visitor().get(&link(version, &first)).await;
    assert_eq!(opened.status.as_u16(), page);
    assert!(opened.proof().is_empty(), "the form is gone");
}

/// As the SDK clients do: prompts when asked to, retries at once, gives up after ten calls.
async fn sdk_client(handler: &Handler, ask: &Value, wait: u64) -> (usize, usize, Value) {
    let (mut prompts, mut more) = (0, json!({"waitSeconds": wait}));
    for calls in 1..=10 {
        let reply = handler.round(&call(V2026, ask, more)).await;
        if reply.text_at("/outcome") != "input_required" {
            return (calls, prompts, reply.ok());
        }
        let result = &reply.body["result"];
        more = json!({"waitSeconds": wait, "requestState": result["requestState"]});
        if result.get("inputRequests").is_some() {
            prompts += 1;
            more["inputResponses"] = json!({"weather_key": {"action": "accept"}});
        }
    }
    panic!("the SDK client gives up: ten rounds are used");
}

#[tokio::test]
async fn an_sdk_client_is_prompted_once_and_told_before_its_rounds_are_used() {
    let server = Server::local().await;
    let (calls, prompts, last) = sdk_client(&server.handler(), &ask(), 0).await;
    assert_eq!((calls, prompts), (8, 1));
    assert_eq!(last["outcome"], "unfinished");
    let link = server.url(&format!("e/{}", last["id"].as_str().unwrap()));
    let text = last["toolResult"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&link) && text.contains("ask me again when you are done"), "{text}");
    assert_eq!(last["toolResult"]["resultType"], "complete");
}

#[tokio::test]
async fn an_sdk_client_that_comes_back_after_unfinished_gets_what_was_entered_meanwhile() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let (.., last) = sdk_client(&handler, &ask, 0).await;
    server.visitor().complete(&server.url(&format!("e/{}", last["id"].as_str().unwrap())), "wk-late").await;
    let (calls, prompts, last) = sdk_client(&handler, &ask, 0).await;
    assert_eq!((calls, prompts, last["outcome"].as_str()), (1, 0, Some("completed")));
}

#[tokio::test]
async fn an_sdk_client_waits_without_rounds_and_gets_the_outcome() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let client = tokio::spawn({
        let (handler, ask) = (handler.clone(), ask.clone());
        async move { sdk_client(&handler, &ask, 25).await }
    });
    let search = json!({});
    let link = super::harness::eventually("the elicitation is issued", async || {
        let found = server.operator().post("v1/admin/elicitations/search", &search).await.ok();
        Some(found["elicitations"].get(0)?["url"].as_str()?.to_owned())
    });
    let link = link.await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.visitor().complete(&link, "wk-1").await;
    let (calls, prompts, last) = client.await.unwrap();
    assert_eq!((calls, prompts, last["outcome"].as_str()), (2, 1, Some("completed")));
}

#[rstest]
#[case(V2026)]
#[case(V2025)]
#[tokio::test]
async fn without_request_state_the_binding_finds_it(#[case] version: &str) {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(version, &ask, json!({}))).await;
    let again = handler.round(&call(version, &ask, json!({"waitSeconds": 0}))).await;
    assert_eq!(again.body["id"], first.body["id"], "a live one is reused");
    assert_eq!(
        link(version, &again),
        link(version, &first),
        "a client that lost its state can show the link"
    );
    server.visitor().complete(&link(version, &first), "wk-1").await;
    let third = handler.round(&call(version, &ask, json!({}))).await;
    assert_eq!(third.text_at("/outcome"), "completed");
    let fourth = handler.round(&call(version, &ask, json!({}))).await;
    assert_eq!(fourth.text_at("/outcome"), "input_required");
    assert_ne!(fourth.body["id"], first.body["id"], "one that has ended is not found again");
}

#[tokio::test]
async fn parallel_first_rounds_share_one_elicitation() {
    let server = Server::local().await;
    let first = call(V2026, &ask(), json!({}));
    let rounds = (0..32).map(|_| {
        let (handler, first) = (server.handler(), first.clone());
        tokio::spawn(async move { handler.round(&first).await.text_at("/id").to_owned() })
    });
    let mut ids = Vec::new();
    for round in rounds.collect::<Vec<_>>() {
        ids.push(round.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn r07_a_request_state_is_worth_nothing_elsewhere_and_creates_nothing() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
    let first = server.handler().round(&call(V2026, &ask, json!({}))).await;
    let state = first.text_at("/result/requestState").to_owned();
    let with_state =
        |ask: &Value, state: &str| call(V2026, ask, json!({"requestState": state, "waitSeconds": 0}));

    let mut flipped = state.clone().into_bytes();
    let last = flipped.len() - 10;
    flipped[last] = if flipped[last] == b'A' { b'B' } else { b'A' };
    let other = |pointer: &str, value: Value| {
        let mut other = ask.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        with_state(&other, &state)
    };
    let cases = [
        ("another client", server.other_handler(), with_state(&ask, &state)),
        ("another subject", server.handler(), other("/subject/id", "bob".into())),
        ("other arguments", server.handler(), other("/operation/arguments/city", "Rome".into())),
        ("another operation", server.handler(), other("/operation/name", "tools/call:pay".into())),
        ("a changed byte", server.handler(), with_state(&ask, std::str::from_utf8(&flipped).unwrap())),
        ("a part", server.handler(), with_state(&ask, &state[..state.len() - 4])),
        ("nonsense", server.handler(), with_state(&ask, "hello")),
        ("nothing", server.handler(), with_state(&ask, "")),
        ("too long", server.handler(), with_state(&ask, &format!("sg1.{}", "A".repeat(600)))),
    ];
    for (what, handler, body) in cases {
        let reply = handler.round(&body).await;
        assert_eq!(reply.problem(), (422, "request_state_invalid"), "{what}: {reply:?}");
        assert_eq!(reply.body["mcpError"]["code"], -32602, "{what}");
        assert_eq!(reply.body["field"], "requestState", "{what}");
    }
    let all = server.operator().post("v1/admin/elicitations/search", &json!({})).await.ok();
    assert_eq!(all["elicitations"].as_array().unwrap().len(), 1, "nothing was created");
    let second = server.handler().round(&with_state(&ask, &state)).await;
    assert_eq!(second.text_at("/outcome"), "input_required", "and nothing was consumed");
}

#[tokio::test]
async fn a_handler_that_disconnects_leaves_a_pending_elicitation() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(V2026, &ask, json!({}))).await;
    let mut more = retry(V2026, &first, "accept");
    more["waitSeconds"] = 50.into();
    let lost = timeout(Duration::from_millis(300), handler.round(&call(V2026, &ask, more.clone()))).await;
    assert!(lost.is_err());
    assert_eq!(handler.state(first.text_at("/id")).await, "pending");
    server.visitor().complete(&link(V2026, &first), "wk-1").await;
    assert_eq!(handler.round(&call(V2026, &ask, more)).await.text_at("/outcome"), "completed");
}

#[rstest]
#[case(V2026)]
#[case(V2025)]
#[tokio::test]
async fn a_new_call_after_the_end_gets_a_new_link(#[case] version: &str) {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(version, &ask, json!({}))).await;
    server.visitor().decline(&link(version, &first)).await;
    let second = handler.round(&call(version, &ask, json!({}))).await;
    assert_eq!(second.text_at("/outcome"), "input_required");
    assert_ne!(link(version, &second), link(version, &first));
}

#[tokio::test]
async fn a_replayed_round_is_consumed_and_a_named_attempt_may_repeat() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(V2026, &ask, json!({}))).await;
    server.visitor().complete(&link(V2026, &first), "wk-1").await;
    let named = |name: &str| {
        let mut more = retry(V2026, &first, "accept");
        more["attempt"] = name.into();
        call(V2026, &ask, more)
    };
    let won = handler.round(&named("order-1")).await;
    assert_eq!(won.text_at("/outcome"), "completed");
    assert!(!won.headers.contains_key("idempotent-replay"));
    let again = handler.round(&named("order-1")).await;
    assert_eq!(again.text_at("/credential/values/api_key"), "wk-1");
    assert_eq!(again.headers["idempotent-replay"], "true");
    for replay in [named("order-2"), call(V2026, &ask, retry(V2026, &first, "accept"))] {
        let replayed = handler.round(&replay).await;
        assert_eq!(replayed.text_at("/outcome"), "consumed");
        assert!(replayed.body.get("credential").is_none());
        assert_eq!(replayed.body["toolResult"]["isError"], true);
    }
}

#[tokio::test]
async fn a_2025_answer_that_was_lost_is_given_again_to_the_same_attempt() {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(V2025, &ask, json!({}))).await;
    server.visitor().complete(&link(V2025, &first), "wk-1").await;
    let named = call(V2025, &ask, json!({"attempt": "order-1"}));
    assert_eq!(handler.round(&named).await.text_at("/credential/values/api_key"), "wk-1");
    let again = handler.round(&named).await;
    assert_eq!(again.text_at("/credential/values/api_key"), "wk-1");
    assert_eq!(again.headers["idempotent-replay"], "true");
}

#[rstest]
#[case::form_only(json!({"elicitation": {}}))]
#[case::none(json!({}))]
#[case::other(json!({"sampling": {}, "elicitation": {"form": {}}}))]
#[tokio::test]
async fn a_client_that_cannot_open_urls_is_told_and_nothing_is_created(#[case] capabilities: Value) {
    let server = Server::local().await;
    for version in [V2026, V2025] {
        let reply =
            server.handler().round(&call(version, &ask(), json!({"clientCapabilities": capabilities}))).await;
        assert_eq!(reply.text_at("/outcome"), "unsupported");
        assert_eq!(reply.body["toolResult"]["isError"], true);
    }
    let all = server.operator().post("v1/admin/elicitations/search", &json!({})).await.ok();
    assert_eq!(all["elicitations"], json!([]));
}

#[tokio::test]
async fn a_client_that_declares_url_mode_is_asked() {
    let server = Server::local().await;
    let capabilities = json!({"clientCapabilities": {"elicitation": {"url": {}, "form": {}}}});
    let reply = server.handler().round(&call(V2026, &ask(), capabilities)).await;
    assert_eq!(reply.text_at("/outcome"), "input_required");
}

#[rstest]
#[case(V2026)]
#[case(V2025)]
#[tokio::test]
async fn revocation_wakes_the_waiting_round(#[case] version: &str) {
    let server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let first = handler.round(&call(version, &ask, json!({}))).await;
    let mut more = retry(version, &first, "accept");
    more["waitSeconds"] = 50.into();
    let body = call(version, &ask, more);
    let (ended, revoked) = tokio::join!(timeout(AT_ONCE, handler.round(&body)), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.operator().revoke(first.text_at("/id")).await
    });
    assert_eq!(revoked.text_at("/state"), "revoked");
    let ended = ended.expect("a revocation wakes the round");
    assert_eq!(ended.text_at("/outcome"), "revoked");
    assert!(!ended.text.contains("lost laptop"), "the operator's reason is for operators");
}

#[tokio::test]
async fn expiry_wakes_the_waiting_round_and_later_ones_still_learn_of_it() {
    let server = Server::local().await;
    let (handler, mut ask) = (server.handler(), ask());
    ask["expiresIn"] = 10.into();
    let first = handler.round(&call(V2026, &ask, json!({}))).await;
    let mut more = retry(V2026, &first, "accept");
    more["waitSeconds"] = 50.into();
    let ended = timeout(Duration::from_secs(20), handler.round(&call(V2026, &ask, more.clone()))).await;
    assert_eq!(ended.expect("the deadline ends the wait").text_at("/outcome"), "expired");
    assert_eq!(handler.round(&call(V2026, &ask, more)).await.text_at("/outcome"), "expired");
}
