//! The identity source `proxy`: which tokens count, and how its keys change.

use reqwest::Method;
use serde_json::{Value, json};

use super::harness::handler::Issued;
use super::harness::issuer::{Issuer, now};
use super::harness::{Page, Server, Setup, Visitor, ask};

async fn issued(server: &Server, issuer: &Issuer) -> Issued {
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
    server.handler().issue(&ask).await
}

async fn open(server: &Server, issued: &Issued, token: &str) -> Page {
    server.visitor().signed_in(token).get(&issued.url).await
}

#[tokio::test]
async fn r19_only_a_token_that_is_right_in_every_part_counts() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = issued(&server, &issuer).await;
    let with = |name: &str, value: Value| {
        let mut claims = issuer.claims("ada");
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value;
        }
        issuer.sign(&json!({}), &claims)
    };
    let headed = |header: Value| issuer.sign(&header, &issuer.claims("ada"));
    let good = issuer.token("ada");
    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let unsigned = {
        use base64::Engine as _;
        let none = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        format!("{none}.{body}.")
    };
    for (what, token, status) in [
        ("the right one", good.clone(), 200),
        ("with a scheme", format!("Bearer {good}"), 200),
        ("audience in a list", with("aud", json!(["other", Issuer::AUDIENCE])), 200),
        ("another issuer", with("iss", "https://evil.example".into()), 401),
        ("no issuer", with("iss", Value::Null), 401),
        ("another audience", with("aud", "other".into()), 401),
        ("no audience", with("aud", Value::Null), 401),
        ("expired", with("exp", (now() - 120).into()), 401),
        ("no expiry", with("exp", Value::Null), 401),
        ("expiry as text", with("exp", "tomorrow".into()), 401),
        ("not yet valid", with("nbf", (now() + 600).into()), 401),
        ("made in the future", with("iat", (now() + 600).into()), 401),
        ("subject as a number", with("sub", 7.into()), 401),
        ("algorithm none", unsigned, 401),
        ("algorithm none, signed", headed(json!({"alg": "none"})), 401),
        ("algorithm HS256", headed(json!({"alg": "HS256"})), 401),
        ("algorithm RS256 with an EC key", headed(json!({"alg": "RS256"})), 401),
        ("unknown algorithm", headed(json!({"alg": "XX"})), 401),
        ("unknown key", headed(json!({"kid": "other"})), 401),
        ("no signature", format!("{head}.{body}."), 401),
        (
            "a changed signature",
            format!("{head}.{body}.{}", signature.chars().rev().collect::<String>()),
            401,
        ),
        (
            "a changed body",
            format!("{head}.{}.{signature}", issuer.token("bob").split('.').nth(1).unwrap()),
            401,
        ),
        ("two parts", format!("{head}.{body}"), 401),
        ("too long", format!("{good}{}", "A".repeat(20_000)), 401),
    ] {
        let page = open(&server, &issued, &token).await;
        let status = if what == "too long" && page.status == 431 { 431 } else { status };
        assert_eq!(page.status.as_u16(), status, "{what}: {}", page.text());
    }
    let twice = server
        .visitor()
        .signed_in(good.clone())
        .request(Method::GET, &issued.url)
        .header(Issuer::HEADER, &good);
    assert_eq!(Visitor::send(twice).await.status, 401, "a header that came twice is nobody's");
}

#[tokio::test]
async fn r19_key_rotation_works_and_an_unknown_key_is_looked_for_once_a_minute() {
    let issuer = Issuer::served().await;
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = issued(&server, &issuer).await;
    let old = issuer.token("ada");
    assert_eq!(open(&server, &issued, &old).await.status, 200);
    assert_eq!(open(&server, &issued, &old).await.status, 200);
    assert_eq!(issuer.fetches(), 1, "keys are kept");
    let unknown = issuer.sign(&json!({"kid": "other"}), &issuer.claims("ada"));
    for _ in 0..20 {
        assert_eq!(open(&server, &issued, &unknown).await.status, 401);
    }
    assert_eq!(issuer.fetches(), 1, "a stranger's token cannot make us ask again within a minute");
    assert_eq!(open(&server, &issued, &old).await.status, 200);
}

#[tokio::test]
async fn r19_a_new_key_is_found_at_its_first_use() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = issued(&server, &issuer).await;
    // Nothing has been fetched yet, so the first token decides which keys are read.
    issuer.rotate("second");
    assert_eq!(open(&server, &issued, &issuer.token("ada")).await.status, 200);
}

#[tokio::test]
async fn r40_without_the_issuers_keys_nobody_is_let_in_and_it_may_be_tried_again() {
    let issuer = Issuer::served().await;
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = issued(&server, &issuer).await;
    issuer.go_down();
    let page = open(&server, &issued, &issuer.token("ada")).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (503, "This does not work right now"));
    assert!(page.headers.contains_key("retry-after"));
    assert_eq!(server.handler().state(&issued.id).await, "pending");
    issuer.rotate("back");
    super::harness::eventually("the keys are asked for again", async || {
        (open(&server, &issued, &issuer.token("ada")).await.status == 200).then_some(())
    })
    .await;
}
