//! For which resource a token is to be (RFC 8707), against a real `oidc-provider`.

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::Backing;
use super::oauth::{Gate, query, round, text};

const API: &str = "https://api.example.com/";
const OTHER: &str = "https://other.example.com/v1?tenant=a&b=c";

/// A service before a provider that gives tokens for one resource each.
async fn gate(more: &Value) -> Gate {
    let mut authority = json!({"resourceIndicators": true});
    authority.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Gate::start(Backing::Embedded, "", &authority).await
}

/// What a log of the provider has as the resource of each request.
fn resources(log: &[Value], pointer: &str) -> Vec<Value> {
    log.iter().map(|entry| entry.pointer(pointer).cloned().unwrap_or_default()).collect()
}

async fn audience(gate: &mut Gate, credential: &Value) -> Value {
    let seen = gate.one.introspect(text(credential, "/accessToken")).await;
    assert_eq!(seen["active"], true, "{seen}");
    seen["aud"].clone()
}

#[rstest]
#[case::plain(json!({}), API)]
#[case::escaped(json!({}), OTHER)]
#[case::pushed(json!({"par": "required"}), API)]
#[case::pushed_escaped(json!({"par": "required"}), OTHER)]
#[tokio::test]
async fn a_token_is_for_the_resource_that_was_asked_for(#[case] authority: Value, #[case] resource: &str) {
    let pushed = authority["par"] == "required";
    let mut gate = gate(&authority).await;
    let issued = gate.issue(&json!({"resource": resource})).await;
    let ada = gate.person("ada");
    let to = gate.leave(&ada, &issued.url).await;
    // By value in the one place, by reference in the other.
    assert_eq!(query(&to, "resource").as_deref(), (!pushed).then_some(resource), "{to}");
    let answer = gate.one.approve(to.as_str(), "octocat").await;
    assert_eq!(ada.get(text(&answer, "/to")).await.status, 303);
    let asked = gate.one.log(if pushed { "par" } else { "authorization" }).await;
    assert_eq!(resources(&asked, "/parameters/resource"), [resource], "{asked:?}");
    let exchanged = gate.one.log("token").await;
    assert_eq!(resources(&exchanged, "/resource"), [resource], "{exchanged:?}");
    let credential = gate.server().handler().claim(&issued, None).await.ok()["credential"].clone();
    assert_eq!(credential["scopes"], json!(["read"]));
    assert_eq!(audience(&mut gate, &credential).await, resource);
}

/// Where none is asked for, nothing is said of one.
#[tokio::test]
async fn without_a_resource_none_is_named() {
    let mut gate = gate(&json!({})).await;
    let issued = gate.issue(&json!({})).await;
    let ada = gate.person("ada");
    assert_eq!(gate.authorize(&ada, &issued.url).await.status, 303);
    let (asked, exchanged) = (gate.one.log("authorization").await, gate.one.log("token").await);
    assert_eq!(resources(&asked, "/parameters/resource"), [Value::Null]);
    assert_eq!(resources(&exchanged, "/resource"), [Value::Null]);
    let credential = gate.server().handler().claim(&issued, None).await.ok()["credential"].clone();
    assert_eq!(audience(&mut gate, &credential).await, Value::Null);
}

/// What is kept is renewed for the same resource, and serves no other.
#[tokio::test]
async fn what_is_kept_stays_with_its_resource() {
    // With less than a minute left from the start, so each use renews it.
    let mut gate = gate(&json!({"accessTokenTtl": 50})).await;
    let handler = gate.server().handler();
    let ada = gate.person("ada");
    let asked = |gate: &Gate, resource: &str, scopes: &[&str]| {
        let keep = json!({"slot": "repos", "days": 30});
        round(&gate.ask(&json!({"resource": resource, "keep": keep, "scopes": scopes})))
    };
    let wide = ["read", "write"];
    let first = handler.round(&asked(&gate, API, &wide)).await.ok();
    let link = text(&first, "/result/inputRequests/sidegate/params/url").to_owned();
    assert_eq!(gate.authorize(&ada, &link).await.status, 303);
    let again = handler.round(&asked(&gate, API, &wide)).await.ok();
    assert_eq!(text(&again, "/outcome"), "completed");
    assert_eq!(audience(&mut gate, &again["credential"]).await, API);
    let exchanged = gate.one.log("token").await;
    let grants: Vec<_> = exchanged.iter().map(|entry| &entry["grant"]).collect();
    assert_eq!(grants, ["authorization_code", "refresh_token"], "{exchanged:?}");
    assert_eq!(resources(&exchanged, "/resource"), [API, API], "{exchanged:?}");

    // Elsewhere the same scope is new: the person is shown it, and no other is asked for.
    let other = handler.round(&asked(&gate, OTHER, &["read"])).await.ok();
    assert_eq!(text(&other, "/outcome"), "input_required");
    let link = text(&other, "/result/inputRequests/sidegate/params/url").to_owned();
    let page = ada.get(&link).await;
    assert_eq!(page.texts(".scopes code"), ["read"], "{}", page.text());
    assert!(!page.text().contains("You gave some access before"), "{}", page.text());
    assert_eq!(gate.authorize(&ada, &link).await.status, 303);
    let asked_there = gate.one.log("authorization").await.pop().unwrap();
    assert_eq!(
        (&asked_there["parameters"]["resource"], &asked_there["parameters"]["scope"]),
        (&json!(OTHER), &json!("read"))
    );
    // Both serve from now on, each its own.
    for (resource, scopes) in [(API, &wide[..]), (OTHER, &["read"])] {
        let kept = handler.round(&asked(&gate, resource, scopes)).await.ok();
        assert_eq!((text(&kept, "/outcome"), &kept["credential"]["scopes"]), ("completed", &json!(scopes)));
        assert_eq!(audience(&mut gate, &kept["credential"]).await, resource);
    }
}
