//! Webhooks of payment processors, signed by the processors' own means: what is believed, and what is not.
//!
//! Whatever is believed is only a reason to ask. So each test asks what became of an order that is paid: it is completed when
//! a webhook was believed, and in progress when it was not.

use std::fmt::Write as _;
use std::path::Path;

use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use sidegate::domain::Clock as _;
use sidegate::system::SystemClock;
use tokio::process::Command;

use super::harness::handler::Issued;
use super::harness::till::WEBHOOK_SECRET;
use super::harness::{Backing, Handler, Reply};
use super::payments::{Kind, Shop};

const OTHER_SECRET: &str = "whsec_another_secret_of_the_tests_alone";

/// An order that is paid, of which nobody has heard: its elicitation and the event.
async fn paid(shop: &mut Shop) -> (Issued, String) {
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.webhooks("hold").await;
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    (issued, event)
}

#[rstest]
#[case::good(Kind::Stripe, json!({}), &[200])]
#[case::doubled(Kind::Stripe, json!({"times": 2}), &[200, 200])]
#[case::replayed(Kind::Stripe, json!({"times": 3, "at_once": false}), &[200, 200, 200])]
#[case::almost_old(Kind::Stripe, json!({"age": 290}), &[200])]
#[case::almost_of_the_future(Kind::Stripe, json!({"age": -290}), &[200])]
#[case::paypal(Kind::PayPal, json!({}), &[200])]
#[case::paypal_doubled(Kind::PayPal, json!({"times": 2}), &[200, 200])]
#[case::paypal_almost_old(Kind::PayPal, json!({"age": 290}), &[200])]
#[tokio::test]
async fn r21_a_genuine_webhook_completes_what_is_paid_once(
    #[case] kind: Kind,
    #[case] how: Value,
    #[case] statuses: &[u64],
) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let (issued, event) = paid(&mut shop).await;
    assert_eq!(shop.deliver(&event, how).await, statuses);
    assert_eq!(shop.state(&issued).await, "completed");
    assert_eq!(shop.count(&issued.id, "completed").await, 1);
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

#[rstest]
#[case::another_secret(Kind::Stripe, json!({"secret": OTHER_SECRET}), "webhook_signature")]
#[case::unsigned(Kind::Stripe, json!({"secret": null}), "webhook_unsigned")]
#[case::old(Kind::Stripe, json!({"age": 310}), "webhook_age")]
#[case::of_the_future(Kind::Stripe, json!({"age": -310}), "webhook_age")]
#[case::another_body(Kind::Stripe, json!({"tamper": true}), "webhook_signature")]
#[case::paypal_strangers_key(Kind::PayPal, json!({"secret": "a stranger's"}), "webhook_signature")]
#[case::paypal_unsigned(Kind::PayPal, json!({"secret": null}), "webhook_unsigned")]
#[case::paypal_old(Kind::PayPal, json!({"age": 310}), "webhook_age")]
#[case::paypal_of_the_future(Kind::PayPal, json!({"age": -310}), "webhook_age")]
#[case::paypal_another_body(Kind::PayPal, json!({"tamper": true}), "webhook_signature")]
#[tokio::test]
async fn a_webhook_that_is_not_genuine_is_refused_and_changes_nothing(
    #[case] kind: Kind,
    #[case] how: Value,
    #[case] code: &str,
) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let (issued, event) = paid(&mut shop).await;
    let asked = shop.till.log("GET", "/").await.len();
    assert_eq!(shop.deliver(&event, how).await, [400]);
    assert_eq!(shop.till.log("GET", "/").await.len(), asked, "it is no reason to ask");
    assert_eq!(shop.state(&issued).await, "in_progress");
    assert_eq!(shop.count(&issued.id, "completed").await, 0);
    assert!(shop.server().log().contains(&format!("\"reason\":\"{code}\"")), "{}", shop.server().log());
    shop.fits().await;
}

/// While a secret is rolled there are two, here and there; when it is over, the old one does not count any more.
#[tokio::test]
async fn while_a_secret_is_rolled_both_count() {
    let new = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(new.path(), OTHER_SECRET).unwrap();
    let listed = format!("webhook_secret_files = [\"{}\", \"", new.path().display());
    let mut shop = Shop::with(Kind::Stripe, Backing::Embedded, "", |setup| {
        setup.replacing("webhook_secret_files = [\"", &listed)
    })
    .await;
    for secret in [WEBHOOK_SECRET, OTHER_SECRET] {
        let (issued, event) = paid(&mut shop).await;
        let third = json!({"secret": "whsec_of_neither"});
        assert_eq!(shop.deliver(&event, third).await, [400]);
        assert_eq!(shop.deliver(&event, json!({"secret": secret})).await, [200]);
        assert_eq!(shop.state(&issued).await, "completed", "{secret}");
    }
    // Stripe then signs with both, and one of them may be unknown here.
    let (issued, event) = paid(&mut shop).await;
    shop.till.ask(&json!({"webhooks": {"secrets": ["whsec_of_neither", OTHER_SECRET]}})).await;
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

/// A genuine event of one processor, at the path of another and at that of none.
#[tokio::test]
async fn r07_a_webhook_counts_at_its_own_processors_path_alone() {
    let other = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(other.path(), OTHER_SECRET).unwrap();
    let mut shop = Shop::with(Kind::Stripe, Backing::Embedded, "", |setup| {
        let other = other.path().display();
        setup.and(&format!(
            "[[payments]]\nid = \"second\"\nprocessor = \"stripe\"\nsecret_key_file = \"{other}\"\n\
             webhook_secret_files = [\"{other}\"]\n[[payments]]\nid = \"wallet\"\nprocessor = \"paypal\"\n\
             client_id = \"sidegate\"\nclient_secret_file = \"{other}\"\nwebhook_id = \"WH\"\n"
        ))
    })
    .await;
    let (issued, event) = paid(&mut shop).await;
    for (path, status) in [("webhooks/second", 400), ("webhooks/wallet", 400), ("webhooks/nobody", 404)] {
        let url = shop.server().url(path);
        assert_eq!(shop.deliver(&event, json!({"url": url})).await, [status], "{path}");
        assert_eq!(shop.state(&issued).await, "in_progress", "{path}");
    }
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

/// A body as Stripe would send it, with its signature, made by the test: what is signed is bytes.
pub(crate) fn signed(body: &[u8]) -> String {
    use aws_lc_rs::hmac;
    let now = SystemClock.now().seconds();
    let key = hmac::Key::new(hmac::HMAC_SHA256, WEBHOOK_SECRET.as_bytes());
    let tag = hmac::sign(&key, &[now.to_string().as_bytes(), b".", body].concat());
    let mut signature = format!("t={now},v1=");
    for byte in tag.as_ref() {
        let _ = write!(signature, "{byte:02x}");
    }
    signature
}

async fn send(shop: &Shop, body: Vec<u8>, signature: &str) -> Reply {
    let request = shop.server().handler().request(Method::POST, "webhooks/stripe");
    Handler::send(request.header("Stripe-Signature", signature).body(body)).await
}

/// The same event, written another way, is not what was signed; and what was signed counts, however it is written.
#[tokio::test]
async fn a_body_is_verified_byte_for_byte() {
    let mut shop = Shop::stripe().await;
    let (issued, _) = paid(&mut shop).await;
    let order = shop.till.orders().await.remove(0);
    let event = json!({
        "type": "checkout.session.completed", "livemode": false, "data": {"object": {"id": order}},
    });
    let (thin, wide) = (event.to_string().into_bytes(), serde_json::to_vec_pretty(&event).unwrap());
    assert_ne!(thin, wide);
    let refused = send(&shop, wide.clone(), &signed(&thin)).await;
    assert_eq!(refused.problem(), (400, "webhook_signature"));
    let refused = send(&shop, [&thin[..], b"\n"].concat(), &signed(&thin)).await;
    assert_eq!(refused.problem(), (400, "webhook_signature"));
    assert_eq!(shop.state(&issued).await, "in_progress");
    let signature = signed(&wide);
    assert_eq!(send(&shop, wide, &signature).await.status, 200);
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

#[tokio::test]
async fn a_webhook_that_is_too_large_or_no_event_is_refused_or_passed_over() {
    let mut shop = Shop::stripe().await;
    let (issued, _) = paid(&mut shop).await;
    let large = vec![b' '; 256 * 1024 + 1];
    assert_eq!(send(&shop, large.clone(), &signed(&large)).await.problem(), (413, "body_too_large"));
    // As large as may be, and signed: no event, and there is no use in its coming again.
    let largest = &large[1..];
    assert_eq!(send(&shop, largest.to_vec(), &signed(largest)).await.status, 200);
    for body in [
        &b""[..],
        b"[]",
        b"{}",
        b"\xff\xfe",
        br#"{"type": "charge.succeeded", "data": {"object": {"id": "x"}}}"#,
    ] {
        assert_eq!(send(&shop, body.to_vec(), &signed(body)).await.status, 200, "{body:?}");
    }
    // A name that would lead elsewhere in Stripe's API.
    for id in ["../refunds", "a/b", "", "a?b", "%2e%2e"] {
        let event = json!({"type": "checkout.session.completed", "data": {"object": {"id": id}}}).to_string();
        assert_eq!(
            send(&shop, event.clone().into_bytes(), &signed(event.as_bytes())).await.status,
            200,
            "{id}"
        );
    }
    for signature in ["", "t=", "v1=", "t=1", "t=x,v1=00", "v1=zz,t=1", "t=1,v1=", ",,,", "t=1,v0=00"] {
        let refused = send(&shop, b"{}".to_vec(), signature).await;
        assert_eq!(refused.status, 400, "{signature}");
    }
    assert_eq!(shop.state(&issued).await, "in_progress");
    shop.fits().await;
}

/// Stripe's own library drives the fake that stands in for Stripe: a test of the tests.
#[tokio::test]
async fn the_fake_of_stripe_is_taken_for_stripe_by_its_own_library() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processors");
    let run = Command::new("node").current_dir(folder).arg("sdk.mjs").kill_on_drop(true).output();
    let output = tokio::time::timeout(std::time::Duration::from_mins(1), run).await.unwrap().unwrap();
    let said = String::from_utf8([output.stdout.clone(), output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{said}");
    let saw: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&saw["paid"], &saw["refund"], &saw["expired"], saw["events"].as_array().unwrap().len()),
        (&json!("paid"), &json!("succeeded"), &json!("expired"), 2)
    );
}
