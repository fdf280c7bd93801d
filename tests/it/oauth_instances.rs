//! Authorising a third party where several instances stand behind one URL, in Chromium: the browser leaves from one and comes
//! back to another.

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::Backing;
use super::harness::balancer::Balancer;
use super::harness::browser::run;
use super::harness::handler::Issued;
use super::harness::issuer::Issuer;
use super::oauth::{Gate, text};

/// Two instances of one service, and what is before them.
async fn behind_one_url(provider: &str) -> (Balancer, Gate) {
    let balancer = Balancer::start().await;
    let gate = Gate::with(Backing::Shared, provider, &json!({}), |setup| setup.behind(&balancer)).await;
    assert_ne!(gate.fleet.at(0).port(), gate.fleet.at(1).port());
    (balancer, gate)
}

/// A person authorises in Chromium, as far as the page that says that it is done.
async fn authorises(gate: &Gate, provider: &str, issued: &Issued, script: bool) {
    let header = json!({Issuer::HEADER.to_lowercase(): gate.people.token("ada")});
    let sends = !script && provider.contains("form_post");
    let input = json!({
        "link": issued.url, "provider": gate.one.url(), "script": script, "sends": sends, "header": header,
    });
    let seen: Value = run("authorize", &input).await;
    assert_eq!(text(&seen, "/done/url"), format!("{}/done", issued.url), "no code is left in the address");
    assert_eq!((text(&seen, "/done/heading"), &seen["complaints"]), ("Done", &json!([])), "{seen:#}");
}

async fn has_a_token_that_counts(gate: &mut Gate, issued: &Issued) {
    let credential = gate.server().handler().claim(issued, None).await.ok()["credential"].clone();
    assert_eq!(gate.one.introspect(text(&credential, "/accessToken")).await["active"], true);
    let exchanged = gate.one.log("token").await;
    assert_eq!((exchanged.len(), &exchanged[0]["ok"]), (1, &json!(true)), "{exchanged:?}");
}

/// All that the second instance ever hears of it is the way back.
#[rstest]
#[case::query("", true, &["GET"])]
#[case::query_without_script("", false, &["GET"])]
#[case::form_post("form_post = true", true, &["POST", "GET"])]
#[case::form_post_without_script("form_post = true", false, &["POST", "GET"])]
#[tokio::test]
async fn r15_a_browser_comes_back_to_another_instance_than_it_left(
    #[case] provider: &str,
    #[case] script: bool,
    #[case] back: &[&str],
) {
    let (balancer, mut gate) = behind_one_url(provider).await;
    let (one, other) = (gate.fleet.at(0), gate.fleet.at(1));
    balancer.between(&[one]);
    balancer.send("/oauth/callback", other);
    let issued = gate.issue(&json!({})).await;
    assert!(issued.url.starts_with(balancer.url()), "{}", issued.url);
    authorises(&gate, provider, &issued, script).await;
    let page = format!("/e/{}", issued.id);
    let served = balancer.served(gate.fleet.at(0));
    for what in [format!("GET {page}"), format!("POST {page}/authorize"), format!("GET {page}/done")] {
        assert!(served.contains(&what), "{what} is not in {served:?}");
    }
    let back: Vec<_> = back.iter().map(|method| format!("{method} /oauth/callback/one")).collect();
    assert_eq!(balancer.served(gate.fleet.at(1)), back);
    has_a_token_that_counts(&mut gate, &issued).await;
}

/// No two requests in a row are served by the same instance: neither knows more than the store does.
#[rstest]
#[case::with_script(true)]
#[case::without(false)]
#[tokio::test]
async fn r15_two_instances_take_turns(
    #[case] script: bool,
    #[values("", "form_post = true")] provider: &str,
) {
    let (balancer, mut gate) = behind_one_url(provider).await;
    balancer.between(&[gate.fleet.at(0), gate.fleet.at(1)]);
    let issued = gate.issue(&json!({})).await;
    authorises(&gate, provider, &issued, script).await;
    let pages = |number: usize| {
        let served = balancer.served(gate.fleet.at(number));
        served.iter().filter(|what| what.contains("/e/") || what.contains("/oauth/")).count()
    };
    assert!(pages(0) > 0 && pages(1) > 0, "{} and {}", pages(0), pages(1));
    has_a_token_that_counts(&mut gate, &issued).await;
}
