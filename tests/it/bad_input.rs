//! Bad input of the API: each a clear refusal that names the field and never repeats the value.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::harness::{Handler, Reply, Server, ask};

async fn send(server: &Server, path: &str, body: impl Into<reqwest::Body>) -> Reply {
    let request = server.handler().request(Method::POST, path).header(CONTENT_TYPE, "application/json");
    Handler::send(request.body(body)).await
}

fn with(pointer: &str, value: Value) -> String {
    let mut ask = ask();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = ask.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        _ => parent[name] = value,
    }
    ask.to_string()
}

fn without(name: &str) -> String {
    let mut ask = ask();
    ask.as_object_mut().unwrap().remove(name);
    ask.to_string()
}

fn fields(count: usize) -> Value {
    (0..count).map(|number| json!({"name": format!("f{number}"), "label": "Label"})).collect()
}

/// The good body as text, with its arguments replaced by this text.
fn with_arguments(text: &str) -> String {
    let ask = with("/operation/arguments", "ARGUMENTS".into());
    ask.replace("\"ARGUMENTS\"", text)
}

#[tokio::test]
async fn bad_json_is_refused_by_the_name_of_the_field() {
    let server = Server::local().await;
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let twice = ask().to_string().replacen('{', "{\"kind\":\"secret\",", 1);
    let inner_twice = with_arguments(r#"{"city":"Oslo","city":"Rome"}"#);
    let mut invalid_utf8 = with("/message", "SPLIT".into()).into_bytes();
    let at = invalid_utf8.windows(5).position(|part| part == b"SPLIT").unwrap();
    invalid_utf8[at] = 0xff;
    let cases: Vec<(&str, Vec<u8>, u16, &str, &str)> = vec![
        ("no body", Vec::new(), 400, "malformed_body", "body"),
        ("white space", b"  \n".to_vec(), 400, "malformed_body", "body"),
        ("no JSON", b"hello".to_vec(), 400, "malformed_body", "body"),
        ("half of it", ask().to_string().into_bytes()[..80].to_vec(), 400, "malformed_body", ""),
        ("more after it", format!("{}{{}}", ask()).into_bytes(), 400, "malformed_body", "body"),
        ("an array", b"[]".to_vec(), 400, "malformed_body", "body"),
        ("a text", b"\"secret\"".to_vec(), 400, "malformed_body", "body"),
        ("null", b"null".to_vec(), 400, "malformed_body", "body"),
        ("invalid UTF-8", invalid_utf8, 400, "malformed_body", "message"),
        (
            "a lone surrogate",
            with("/message", "SPLIT".into()).replace("SPLIT", "\\ud800").into_bytes(),
            400,
            "malformed_body",
            "message",
        ),
        (
            "a lone low surrogate",
            with("/message", "SPLIT".into()).replace("SPLIT", "\\udc00x").into_bytes(),
            400,
            "malformed_body",
            "message",
        ),
        (
            "a lone surrogate in a key",
            with_arguments(r#"{"\ud800": 1}"#).into_bytes(),
            400,
            "malformed_body",
            "",
        ),
        ("a duplicate key", twice.into_bytes(), 422, "invalid_request", ""),
        ("a duplicate key inside", inner_twice.into_bytes(), 422, "invalid_request", "operation.arguments"),
        (
            "2^53",
            with_arguments(r#"{"n":9007199254740992}"#).into_bytes(),
            422,
            "invalid_request",
            "operation.arguments.n",
        ),
        (
            "-2^53",
            with_arguments(r#"{"n":-9007199254740993}"#).into_bytes(),
            422,
            "invalid_request",
            "operation.arguments.n",
        ),
        (
            "beyond 64 bits",
            with_arguments(r#"{"n":99999999999999999999999}"#).into_bytes(),
            422,
            "invalid_request",
            "operation.arguments.n",
        ),
        (
            "1e30",
            with_arguments(r#"{"n":[1e30]}"#).into_bytes(),
            422,
            "invalid_request",
            "operation.arguments.n[0]",
        ),
        ("1e999", with_arguments(r#"{"n":1e999}"#).into_bytes(), 400, "malformed_body", ""),
        ("NaN", with_arguments(r#"{"n":NaN}"#).into_bytes(), 400, "malformed_body", ""),
        ("deep nesting", with_arguments(&deep(200)).into_bytes(), 422, "invalid_request", ""),
        ("very deep nesting", with_arguments(&deep(30_000)).into_bytes(), 422, "invalid_request", ""),
        (
            "65 KiB",
            with("/message", "x".repeat(65 * 1024).into()).into_bytes(),
            413,
            "body_too_large",
            "body",
        ),
    ];
    for path in ["v1/elicitations", "v1/rounds"] {
        for (what, body, status, code, field) in &cases {
            let body = if path == "v1/rounds" { with_version(body) } else { body.clone() };
            let reply = send(&server, path, body).await;
            assert_eq!(reply.problem(), (*status, *code), "{path}, {what}: {reply:?}");
            let named = reply.body["field"].as_str().unwrap();
            assert!(named == *field || (field.is_empty() && !named.is_empty()), "{what}: {named}");
            assert_eq!(reply.headers["content-type"], "application/problem+json", "{what}");
            assert_eq!(reply.body["status"], *status, "{what}");
            assert!(reply.text_at("/detail").len() > 10 && reply.text_at("/title").len() > 3, "{what}");
        }
    }
    assert_eq!(
        send(&server, "v1/elicitations", with_arguments(&deep(50))).await.status,
        201,
        "50 levels are no matter"
    );
    assert_eq!(send(&server, "v1/elicitations", with_arguments("9007199254740991")).await.status, 201);
    let all = server.operator().post("v1/admin/elicitations/search", &json!({})).await.ok();
    assert_eq!(all["elicitations"].as_array().unwrap().len(), 2, "a refused request creates nothing");
}

/// The body of a round, if it is an object.
fn with_version(body: &[u8]) -> Vec<u8> {
    match body {
        [b'{', rest @ ..] => [br#"{"protocolVersion":"2026-07-28","#, rest].concat(),
        other => other.to_vec(),
    }
}

#[tokio::test]
async fn a_field_that_is_not_right_is_named() {
    let server = Server::local().await;
    let field = |name: &str, value: Value| with(&format!("/secret/fields/0/{name}"), value);
    let long = |length: usize| Value::from("x".repeat(length));
    for (body, name) in [
        (with("/kind", "CANARY".into()), "kind"),
        (with("/kind", 7.into()), "kind"),
        (without("kind"), "kind"),
        (with("/colour", "CANARY".into()), "colour"),
        (with("/operation/colour", "CANARY".into()), "operation.colour"),
        (with("/secret/fields/0/colour", "CANARY".into()), "secret.fields[0].colour"),
        (without("message"), "message"),
        (with("/message", "".into()), "message"),
        (with("/message", " \n ".into()), "message"),
        (with("/message", long(1001)), "message"),
        (with("/message", "CANARY\u{0}".into()), "message"),
        (with("/message", json!(["CANARY"])), "message"),
        (without("operation"), "operation"),
        (with("/operation", "CANARY".into()), "operation"),
        (with("/operation/name", "".into()), "operation.name"),
        (with("/operation/name", "CANARY\nx".into()), "operation.name"),
        (with("/operation/name", long(257)), "operation.name"),
        (with("/operation/summary", "".into()), "operation.summary"),
        (with("/operation/summary", long(501)), "operation.summary"),
        (with("/operation/digest", "sha256:CANARY".into()), "operation.digest"),
        (with("/operation/id", 5.into()), "operation.id"),
        (with("/expiresIn", 0.into()), "expiresIn"),
        (with("/expiresIn", 9.into()), "expiresIn"),
        (with("/expiresIn", (-5).into()), "expiresIn"),
        (with("/expiresIn", 1e9.into()), "expiresIn"),
        (with("/expiresIn", 1_000_000_000.into()), "expiresIn"),
        (with("/expiresIn", 86_401.into()), "expiresIn"),
        (with("/expiresIn", 10.5.into()), "expiresIn"),
        (with("/expiresIn", "600".into()), "expiresIn"),
        (without("secret"), "secret"),
        (with("/secret", json!({})), "secret.fields"),
        (with("/secret/fields", json!([])), "secret.fields"),
        (with("/secret/fields", fields(11)), "secret.fields"),
        (with("/secret/fields", json!({})), "secret.fields"),
        (with("/secret/fields/0", "CANARY".into()), "secret.fields[0]"),
        (field("name", "".into()), "secret.fields[0].name"),
        (field("name", "_token".into()), "secret.fields[0].name"),
        (field("name", "CANARY \"".into()), "secret.fields[0].name"),
        (
            with("/secret/fields", json!([{"name": "a", "label": "A"}, {"name": "a", "label": "B"}])),
            "secret.fields[1].name",
        ),
        (field("label", "".into()), "secret.fields[0].label"),
        (field("label", "  ".into()), "secret.fields[0].label"),
        (field("label", "\u{202e}\u{200f}".into()), "secret.fields[0].label"),
        (field("label", "\u{200b}\u{feff}\u{e0041}".into()), "secret.fields[0].label"),
        (field("help", "".into()), "secret.fields[0].help"),
        (field("format", "CANARY".into()), "secret.fields[0].format"),
        (field("required", "yes".into()), "secret.fields[0].required"),
        (field("minLength", (-1).into()), "secret.fields[0].minLength"),
        (field("minLength", 5000.into()), "secret.fields[0].minLength"),
        (field("maxLength", 0.into()), "secret.fields[0].maxLength"),
        (field("maxLength", 32_769.into()), "secret.fields[0].maxLength"),
        (field("pattern", "CANARY(".into()), "secret.fields[0].pattern"),
        (field("pattern", "(?=CANARY)".into()), "secret.fields[0].pattern"),
        (field("pattern", "(a{1000}){1000}".into()), "secret.fields[0].pattern"),
    ] {
        let reply = send(&server, "v1/elicitations", body.clone()).await;
        assert_eq!(reply.problem(), (422, "invalid_request"), "{name}: {body}: {reply:?}");
        assert_eq!(reply.body["field"], name, "{reply:?}");
        assert!(!reply.text.contains("CANARY"), "a value is never repeated: {reply:?}");
        assert!(reply.text_at("/detail").starts_with(name), "{reply:?}");
    }
}

#[tokio::test]
async fn what_belongs_to_a_round_is_checked_too() {
    let server = Server::local().await;
    let round = |name: &str, value: Value| {
        let mut round = ask();
        round["protocolVersion"] = "2026-07-28".into();
        round[name] = value;
        round.to_string()
    };
    for (name, value, field) in [
        ("protocolVersion", json!("2024-11-05"), "protocolVersion"),
        ("protocolVersion", json!(null), "protocolVersion"),
        ("inputKey", json!(""), "inputKey"),
        ("inputKey", json!("x".repeat(129)), "inputKey"),
        ("waitSeconds", json!(-1), "waitSeconds"),
        ("waitSeconds", json!("CANARY"), "waitSeconds"),
        ("attempt", json!(""), "attempt"),
        ("attempt", json!("x".repeat(256)), "attempt"),
        ("clientCapabilities", json!("CANARY"), "clientCapabilities"),
        ("requestState", json!(7), "requestState"),
        ("inputResponses", json!([]), "inputResponses"),
        ("inputResponses", json!({"sidegate": {"action": "CANARY"}}), "inputResponses.sidegate.action"),
        ("inputResponses", json!({"sidegate": "CANARY"}), "inputResponses.sidegate.action"),
    ] {
        let reply = send(&server, "v1/rounds", round(name, value.clone())).await;
        assert_eq!(reply.problem(), (422, "invalid_request"), "{name} {value}: {reply:?}");
        assert_eq!(reply.body["field"], field, "{name} {value}");
        assert!(!reply.text.contains("CANARY"), "{reply:?}");
    }
    let missing = send(&server, "v1/rounds", ask().to_string()).await;
    assert_eq!(missing.body["field"], "protocolVersion");
    let clamped = send(&server, "v1/rounds", round("waitSeconds", json!(4_000_000))).await;
    assert_eq!(clamped.status, 200, "a longer wait is clamped");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let server = Server::local().await;
    let handler = server.handler();
    assert_eq!(handler.get("v1/nothing").await.problem(), (404, "not_found"));
    let read = handler.get("v1/rounds").await;
    assert_eq!(
        (read.problem(), &read.headers["allow"]),
        ((405, "method_not_allowed"), &"POST".parse().unwrap())
    );
    let deleted =
        Handler::send(handler.request(Method::DELETE, &format!("v1/elicitations/{}", "0".repeat(32)))).await;
    assert_eq!(deleted.problem(), (405, "method_not_allowed"));
}
