//! The service ends without warning at the worst moments of a payment. What was paid is completed or paid back by itself.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::handler::Issued;
use super::harness::{Backing, eventually};
use super::payments::{Kind, Shop};

/// Waits for more than a minute: an order that may not have been opened is looked at after half of one.
async fn patiently(shop: &Shop, issued: &Issued, state: &str) {
    for _ in 0..400 {
        if shop.server().handler().state(&issued.id).await == state {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{} and not {state}", shop.server().handler().state(&issued.id).await);
}

async fn paid_back(shop: &mut Shop) {
    for _ in 0..400 {
        if shop.till.money("usd").await == (1999, 1999) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{:?}", shop.till.money("usd").await);
}

/// Presses Pay, and ends the service while the processor, which has opened the order, has not answered yet.
async fn broken_off(shop: &mut Shop, issued: &Issued) -> String {
    shop.till.faults(json!({"POST /v1/checkout/sessions": {"delay": 4000, "acts": true, "times": 1}})).await;
    let ada = shop.person("ada");
    let (proof, pay) = (ada.get(&issued.url).await.proof(), format!("{}/pay", issued.url));
    let pressed = tokio::spawn(async move { ada.form(&pay, &proof).send().await.is_ok() });
    let till = &mut shop.till;
    let order = eventually("opened there", async || till.orders().await.pop()).await;
    shop.fleet.crash(0).await;
    assert!(!pressed.await.unwrap(), "nobody was told");
    order
}

#[tokio::test]
async fn between_opening_an_order_and_noting_it_and_the_person_presses_again() {
    let mut shop = Shop::stripe().await;
    let issued = shop.issue().await;
    let order = broken_off(&mut shop, &issued).await;
    let ada = shop.person("ada");
    let (to, again) = shop.leave(&ada, &issued.url).await;
    assert!(again == order && to.as_str().contains(&order), "the same order: {to}");
    assert_eq!(shop.till.orders().await.len(), 1);
    shop.till.pay(&order, "now").await;
    patiently(&shop, &issued, "completed").await;
    assert_eq!(shop.till.violations().await, Vec::<Value>::new());
}

#[rstest]
#[case::by_webhook("send")]
#[case::by_itself("off")]
#[tokio::test]
async fn between_opening_an_order_and_noting_it_and_it_is_paid_all_the_same(#[case] webhooks: &str) {
    let mut shop = Shop::stripe().await;
    shop.till.webhooks(webhooks).await;
    let issued = shop.issue().await;
    let order = broken_off(&mut shop, &issued).await;
    shop.till.pay(&order, "now").await;
    patiently(&shop, &issued, "completed").await;
    assert_eq!(shop.server().handler().claim(&issued, None).await.status, 200);
    assert_eq!((shop.till.orders().await.len(), shop.till.money("usd").await), (1, (1999, 0)));
}

#[tokio::test]
async fn between_opening_an_order_and_noting_it_and_it_is_paid_when_it_has_expired() {
    let mut shop = Shop::stripe().await;
    shop.till.webhooks("off").await;
    let mut ask = shop.ask(&json!({}));
    ask["expiresIn"] = 10.into();
    let issued = shop.server().handler().issue(&ask).await;
    let order = broken_off(&mut shop, &issued).await;
    patiently(&shop, &issued, "expired").await;
    // The processor has it open, and nobody was ever sent there; somebody pays.
    shop.till.pay(&order, "now").await;
    let closed_or_paid_back = async {
        for _ in 0..400 {
            let (taken, refunded) = shop.till.money("usd").await;
            if taken == refunded && taken > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("{:?}", shop.till.money("usd").await);
    };
    closed_or_paid_back.await;
    assert_eq!(shop.till.log("POST", "/v1/refunds").await.len(), 1);
}

#[rstest]
#[tokio::test]
async fn between_the_payment_and_its_webhook(#[values(Kind::Stripe, Kind::PayPal)] kind: Kind) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    shop.till.webhooks("off").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    // At PayPal that is approved, and not taken yet.
    shop.till.pay(&order, "now").await;
    shop.fleet.crash(0).await;
    patiently(&shop, &issued, "completed").await;
    assert_eq!(shop.till.money("usd").await, (1999, 0));
}

#[rstest]
#[tokio::test]
async fn between_the_payment_and_its_webhook_and_it_was_revoked_meanwhile(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let mut shop = Shop::start(Kind::Stripe, backing).await;
    shop.till.webhooks("off").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    assert_eq!(shop.server().operator().revoke(&issued.id).await.status, 200);
    shop.fleet.crash(0).await;
    paid_back(&mut shop).await;
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "ended"));
}

#[tokio::test]
async fn during_a_refund() {
    let mut shop = Shop::stripe().await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    patiently(&shop, &issued, "completed").await;
    shop.till.faults(json!({"POST /v1/refunds": {"delay": 4000, "acts": true, "times": 1}})).await;
    let body = json!({"reason": "a mistake", "refund": true});
    let path = format!("v1/admin/elicitations/{}/revoke", issued.id);
    assert_eq!(shop.server().operator().post(&path, &body).await.status, 200);
    // The money is on its way back, and nobody has said so yet.
    let till = &mut shop.till;
    eventually("paid back there", async || (till.money("usd").await == (1999, 1999)).then_some(())).await;
    shop.fleet.crash(0).await;
    let operator = shop.server().operator();
    for _ in 0..400 {
        let found = operator.post("v1/admin/elicitations/search", &json!({"states": ["revoked"]})).await.ok();
        if found["elicitations"][0]["orders"][0]["stage"] == "refunded" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(shop.till.money("usd").await, (1999, 1999));
    let answer = shop.till.ask(&json!({"money": true})).await;
    assert_eq!(answer.get("money").unwrap_or(&answer)["refunds"], 1);
    let audit = shop.server().audit().await;
    assert_eq!(audit.iter().filter(|event| event["what"] == "refunded").count(), 1);
}
