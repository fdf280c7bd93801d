//! A processor that does not work: the page says so, nothing is lost, and nothing is ordered twice.

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::Backing;
use super::payments::{Kind, Shop};

const DOWN: [&str; 2] = ["Stripe", "PayPal"];

/// The form is sent while the processor fails, and again when it works.
#[rstest]
#[case::broken(json!({"status": 500}))]
#[case::overloaded(json!({"status": 503}))]
#[case::too_many(json!({"status": 429}))]
#[case::not_us(json!({"status": 401}))]
#[case::cut_off(json!({"drop": true}))]
#[case::cut_off_after_it_was_made(json!({"drop": true, "acts": true}))]
#[tokio::test]
async fn while_the_processor_is_down_the_page_says_so_and_the_same_order_opens_afterwards(
    #[case] fault: Value,
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
) {
    down(kind, fault).await;
}

/// It takes longer than we wait.
#[tokio::test]
async fn a_processor_that_does_not_answer_in_time_is_down() {
    let mut shop = Shop::stripe().await;
    // The order is made, and the answer comes when nobody waits for it any more.
    let slow = json!({"POST /v1/checkout/sessions": {"delay": 21_000, "acts": true, "times": 1}});
    shop.till.faults(slow).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let page = ada.get(&issued.url).await;
    let pressed = ada.post(&format!("{}/pay", issued.url), &page.proof()).await;
    assert_eq!(pressed.location(), format!("/e/{}/payment/unavailable", issued.id));
    assert_eq!(shop.state(&issued).await, "in_progress");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    assert_eq!(shop.till.orders().await, [order], "the same one");
    shop.fits().await;
}

async fn down(kind: Kind, fault: Value) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let path = if kind == Kind::Stripe { "/v1/checkout/sessions" } else { "/v2/checkout/orders" };
    shop.till.faults(json!({format!("POST {path}"): fault})).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    for _ in 0..2 {
        let page = ada.get(&issued.url).await;
        let pressed = ada.post(&format!("{}/pay", issued.url), &page.proof()).await;
        let to = format!("/e/{}/payment/unavailable", issued.id);
        assert_eq!((pressed.status.as_u16(), pressed.location()), (303, to.as_str()), "{}", pressed.text());
        let unavailable = ada.get(&format!("{}/payment/unavailable", issued.url)).await;
        assert_eq!(unavailable.status, 503);
        let name = DOWN[usize::from(kind == Kind::PayPal)];
        let sentence = format!(
            "{name} did not answer as it should. Nothing was paid. Wait a little, then press Pay again."
        );
        assert!(unavailable.text().contains(&sentence), "{}", unavailable.text());
        assert!(["pending", "in_progress"].contains(&shop.state(&issued).await.as_str()));
    }
    shop.till.faults(json!({})).await;
    let (_, order) = shop.leave(&ada, &issued.url).await;
    let keys: Vec<_> = shop.till.log("POST", path).await.iter().map(|entry| entry["key"].clone()).collect();
    assert!(keys.len() >= 3 && keys.iter().all(|key| key.is_string() && *key == keys[0]), "{keys:?}");
    assert_eq!(shop.till.orders().await, std::slice::from_ref(&order), "one order alone");
    assert_eq!(shop.count(&issued.id, "ordered").await, 1);
    shop.till.pay(&order, "now").await;
    assert_eq!(ada.get(&shop.back(&issued)).await.location(), format!("/e/{}/done", issued.id));
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

/// Stripe repeats what it answered first to a key, be it a failure. Then only another order will do.
#[tokio::test]
async fn a_failure_that_the_processor_repeats_for_good_does_not_stand_in_the_way() {
    let mut shop = Shop::stripe().await;
    let fault = json!({"status": 500, "acts": true, "times": 1});
    shop.till.faults(json!({"POST /v1/checkout/sessions": fault})).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let press = async || {
        let page = ada.get(&issued.url).await;
        ada.post(&format!("{}/pay", issued.url), &page.proof()).await
    };
    let unavailable = format!("/e/{}/payment/unavailable", issued.id);
    assert_eq!(press().await.location(), unavailable);
    // The second press hears the failure once more, and so learns that it is for good.
    assert_eq!(press().await.location(), unavailable);
    assert!(press().await.location().contains("/leave/"));
    let orders = shop.till.orders().await;
    assert_eq!(orders.len(), 2, "nobody was ever sent to the first");
    shop.till.pay(&orders[1], "now").await;
    shop.becomes(&issued, "completed").await;
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

/// The person has paid, and the processor does not say so: that is no reason to take it for unpaid.
#[rstest]
#[tokio::test]
async fn who_comes_back_while_the_processor_is_down_is_told_so(
    #[values(json!({"status": 500}), json!({"drop": true}))] fault: Value,
) {
    let mut shop = Shop::stripe().await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.webhooks("hold").await;
    shop.till.faults(json!({"GET /v1/checkout/sessions/*": fault})).await;
    shop.till.pay(&order, "now").await;
    let back = ada.get(&shop.back(&issued)).await;
    assert_eq!(back.location(), format!("/e/{}/payment/unknown", issued.id));
    let page = ada.get(&format!("{}/payment/unknown", issued.url)).await;
    assert_eq!(page.status, 503);
    let sentence = "Stripe does not say yet whether you have paid. If you have, do not pay again";
    assert!(page.text().contains(sentence) && !page.text().contains("Nothing was paid"), "{}", page.text());
    let event = shop.last_event().await;
    assert_eq!(shop.deliver(&event, json!({})).await, [503], "it comes again");
    assert_eq!(shop.state(&issued).await, "in_progress");
    shop.till.faults(json!({})).await;
    // Neither webhook nor browser: the service asks by itself.
    for _ in 0..150 {
        if shop.state(&issued).await == "completed" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}
