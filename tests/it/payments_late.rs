//! What is paid when it is too late, or takes long: nothing is released for it, and the money goes back or waits for an
//! operator.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::harness::handler::Issued;
use super::harness::{Backing, Visitor, eventually};
use super::payments::{Kind, Shop};

/// How an elicitation ends without being paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Expired,
    Cancelled,
    Declined,
    Revoked,
}

impl End {
    const fn state(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Declined => "declined",
            Self::Revoked => "revoked",
        }
    }

    async fn happens(self, shop: &Shop, ada: &Visitor, issued: &Issued) {
        match self {
            Self::Expired => {
                // Its ten seconds are almost over: there was a page to open before.
                for _ in 0..80 {
                    if shop.state(issued).await == "expired" {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
            Self::Cancelled => assert_eq!(shop.server().handler().cancel(&issued.id).await.status, 200),
            Self::Declined => assert_eq!(ada.decline(&issued.url).await.status, 303),
            Self::Revoked => assert_eq!(shop.server().operator().revoke(&issued.id).await.status, 200),
        }
        assert_eq!(shop.state(issued).await, self.state());
    }
}

/// An elicitation with this much time, the shortest that there is.
async fn short(shop: &Shop) -> Issued {
    let mut ask = shop.ask(&json!({}));
    ask["expiresIn"] = 10.into();
    shop.server().handler().issue(&ask).await
}

/// The keys of the refunds that were asked for.
async fn refund_keys(shop: &mut Shop) -> Vec<String> {
    let asked = shop.till.log("POST", "/v1/refunds").await;
    asked.iter().map(|entry| entry["key"].as_str().unwrap().to_owned()).collect()
}

/// The processor cannot close the order, and the person pays it.
#[rstest]
#[tokio::test]
async fn r21_what_is_paid_after_the_end_is_never_released(
    #[values(End::Expired, End::Cancelled, End::Declined, End::Revoked)] end: End,
    #[values("refund", "hold")] late: &str,
) {
    let lines = format!("late = \"{late}\"");
    let mut shop = Shop::with(Kind::Stripe, Backing::Embedded, &lines, |setup| setup).await;
    shop.till.faults(json!({"POST /v1/checkout/sessions/*/expire": {"status": 500}})).await;
    let issued = if end == End::Expired { short(&shop).await } else { shop.issue().await };
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    end.happens(&shop, &ada, &issued).await;
    shop.till.webhooks("hold").await;
    shop.till.pay(&order, "now").await;
    // Several hear of it at once.
    let event = shop.last_event().await;
    let mut returns = JoinSet::new();
    for _ in 0..8 {
        let (ada, back) = (ada.clone(), shop.back(&issued));
        returns.spawn(async move { ada.get(&back).await });
    }
    assert_eq!(shop.deliver(&event, json!({"times": 8})).await, [200; 8]);
    returns.join_all().await;
    shop.happens(&issued.id, "paid_late").await;
    if late == "refund" {
        shop.happens(&issued.id, "refunded").await;
    }
    let (heading, sentence, money) = if late == "refund" {
        ("Your payment has been paid back", "All of it has been paid back.", (1999, 1999))
    } else {
        (
            "Your payment is being looked into",
            "Nothing will be done for it until the operator of this service has decided.",
            (1999, 0),
        )
    };
    let page = ada.get(&issued.url).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (410, heading));
    assert!(page.text().contains(sentence), "{}", page.text());
    assert_eq!(shop.till.money("usd").await, money);
    // Heard of again, by whomever: it stays so.
    assert_eq!(shop.deliver(&event, json!({"times": 4})).await, [200; 4]);
    ada.get(&shop.back(&issued)).await;
    assert_eq!(shop.state(&issued).await, end.state());
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "ended"));
    assert_eq!(shop.count(&issued.id, "paid_late").await, 1);
    assert_eq!(shop.count(&issued.id, "completed").await, 0);
    let mut keys = refund_keys(&mut shop).await;
    keys.dedup();
    assert_eq!(keys.len(), usize::from(late == "refund"), "{keys:?}");
    assert_eq!(shop.count(&issued.id, "refunded").await, usize::from(late == "refund"));
    assert_eq!(shop.till.money("usd").await, money);
    shop.fits().await;
}

/// At `PayPal` the person approves, and we take the money: not for what has ended.
#[rstest]
#[tokio::test]
async fn r21_what_is_approved_after_the_end_is_not_captured(
    #[values(End::Expired, End::Cancelled, End::Declined, End::Revoked)] end: End,
) {
    let mut shop = Shop::start(Kind::PayPal, Backing::Embedded).await;
    let issued = if end == End::Expired { short(&shop).await } else { shop.issue().await };
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    end.happens(&shop, &ada, &issued).await;
    shop.till.webhooks("hold").await;
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    assert_eq!(shop.deliver(&event, json!({"times": 4})).await, [200; 4]);
    ada.get(&shop.back(&issued)).await;
    assert_eq!(shop.state(&issued).await, end.state());
    let path = format!("/v2/checkout/orders/{order}/capture");
    assert_eq!(shop.till.log("POST", &path).await, Vec::<Value>::new());
    assert_eq!((shop.till.money("usd").await, shop.count(&issued.id, "completed").await), ((0, 0), 0));
    shop.fits().await;
}

/// It ends while the money is being taken: then that goes back.
#[tokio::test]
async fn r21_what_is_captured_while_it_ends_is_paid_back() {
    let mut shop = Shop::start(Kind::PayPal, Backing::Embedded).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.webhooks("off").await;
    shop.till.faults(json!({"POST /v2/checkout/orders/*/capture": {"delay": 1500}})).await;
    shop.till.pay(&order, "now").await;
    let back = {
        let (ada, back) = (ada.clone(), shop.back(&issued));
        tokio::spawn(async move { ada.get(&back).await })
    };
    let (till, path) = (&mut shop.till, format!("/v2/checkout/orders/{order}/capture"));
    eventually("it is captured", async || (!till.log("POST", &path).await.is_empty()).then_some(())).await;
    assert_eq!(shop.server().handler().cancel(&issued.id).await.status, 200);
    back.await.unwrap();
    shop.happens(&issued.id, "refunded").await;
    assert_eq!(
        (shop.state(&issued).await.as_str(), shop.till.money("usd").await),
        ("cancelled", (1999, 1999))
    );
    assert_eq!(ada.get(&issued.url).await.heading(), "Your payment has been paid back");
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "ended"));
    assert_eq!(shop.till.log("POST", "/v2/payments/captures/").await.len(), 1);
    shop.fits().await;
}

/// Between the question how it stands and the wish to close it, it is paid: the processor refuses to close it, and that says
/// nothing about money.
#[rstest]
#[tokio::test]
async fn closing_that_fails_because_it_was_just_paid_is_looked_at_again(
    #[values("refund", "hold")] late: &str,
) {
    let lines = format!("late = \"{late}\"");
    let mut shop = Shop::with(Kind::Stripe, Backing::Embedded, &lines, |setup| setup).await;
    shop.till.webhooks("off").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    let path = format!("/v1/checkout/sessions/{order}");
    // What is answered was so two seconds ago.
    shop.till.faults(json!({format!("GET {path}"): {"delay": 2000, "acts": true, "times": 1}})).await;
    assert_eq!(shop.server().handler().cancel(&issued.id).await.status, 200);
    let till = &mut shop.till;
    eventually("it is asked", async || (!till.log("GET", &path).await.is_empty()).then_some(())).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    shop.till.pay(&order, "now").await;
    shop.happens(&issued.id, "paid_late").await;
    let closed = shop.till.log("POST", &format!("{path}/expire")).await;
    assert_eq!(closed.iter().map(|entry| entry["status"].as_u64()).collect::<Vec<_>>(), [Some(400)]);
    if late == "refund" {
        shop.happens(&issued.id, "refunded").await;
        assert_eq!((shop.till.money("usd").await, refund_keys(&mut shop).await.len()), ((1999, 1999), 1));
    } else {
        assert_eq!((shop.till.money("usd").await, refund_keys(&mut shop).await.len()), ((1999, 0), 0));
    }
    assert_eq!(shop.state(&issued).await, "cancelled");
    shop.fits().await;
}

/// An order of an elicitation that ended is closed at once, so that nobody pays it.
#[rstest]
#[tokio::test]
async fn an_order_whose_elicitation_ended_is_closed_at_the_processor(
    #[values(End::Expired, End::Cancelled, End::Declined, End::Revoked)] end: End,
) {
    let mut shop = Shop::stripe().await;
    let issued = if end == End::Expired { short(&shop).await } else { shop.issue().await };
    let ada = shop.person("ada");
    let (to, order) = shop.leave(&ada, &issued.url).await;
    end.happens(&shop, &ada, &issued).await;
    let stranger = shop.server().visitor();
    let hosted = async || {
        let page = stranger.get(to.as_str()).await;
        (page.heading() == "This payment is no longer open").then_some(())
    };
    eventually("it is closed", hosted).await;
    assert_eq!(shop.state(&issued).await, end.state());
    let page = ada.get(&issued.url).await;
    assert!(
        page.status == if end == End::Declined { 200 } else { 410 } && !page.text().contains("paid back"),
        "{}",
        page.text()
    );
    assert_eq!(shop.till.money("usd").await, (0, 0));
    let path = format!("/v1/checkout/sessions/{order}/expire");
    assert_eq!(shop.till.log("POST", &path).await.len(), 1);
    shop.fits().await;
}

/// A bank transfer: the deadline is for the person, and the person is done.
#[rstest]
#[tokio::test]
async fn what_takes_a_while_does_not_expire_under_the_person(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
    #[values("succeeded", "failed")] ends: &str,
) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let issued = short(&shop).await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "later").await;
    ada.get(&shop.back(&issued)).await;
    shop.happens(&issued.id, "processing").await;
    // Beyond the deadline.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(shop.state(&issued).await, "in_progress");
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "not_completed"));
    for url in [issued.url.clone(), format!("{}/payment/not-paid", issued.url)] {
        let page = ada.get(&url).await;
        assert_eq!((page.status.as_u16(), page.heading().as_str()), (200, "Your payment is on its way"));
    }
    shop.till.finish(&order, ends).await;
    if ends == "succeeded" {
        shop.becomes(&issued, "completed").await;
        assert_eq!(ada.get(&shop.back(&issued)).await.location(), format!("/e/{}/done", issued.id));
        shop.server().handler().claim(&issued, None).await.ok();
        assert_eq!(shop.till.money("usd").await, (1999, 0));
    } else {
        // There is no time left in which to try again.
        shop.becomes(&issued, "expired").await;
        assert_eq!(shop.till.money("usd").await, (0, 0));
    }
    shop.fits().await;
}

/// A bank transfer that comes to nothing while there is time.
#[rstest]
#[tokio::test]
async fn whose_payment_failed_later_may_pay_again(#[values(Kind::Stripe, Kind::PayPal)] kind: Kind) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, first) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&first, "later").await;
    shop.happens(&issued.id, "processing").await;
    // Pressed again in another tab: there is nothing to pay.
    let page = ada.get(&issued.url).await;
    assert_eq!(page.heading(), "Your payment is on its way");
    shop.till.finish(&first, "failed").await;
    shop.becomes(&issued, "pending").await;
    assert_eq!(shop.count(&issued.id, "failed").await, 0);
    let (_, second) = shop.leave(&ada, &issued.url).await;
    assert_ne!(first, second);
    shop.till.pay(&second, "now").await;
    assert_eq!(ada.get(&shop.back(&issued)).await.location(), format!("/e/{}/done", issued.id));
    shop.server().handler().claim(&issued, None).await.ok();
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

/// The processor fails again and again; meanwhile the service is killed. The money goes back once, under one key.
#[rstest]
#[tokio::test]
async fn a_refund_is_tried_until_it_is_done_over_restarts_too(
    #[values(json!({"status": 500}), json!({"drop": true}), json!({"drop": true, "acts": true}))]
    fault: Value,
) {
    let mut shop = Shop::stripe().await;
    shop.till
        .faults(json!({"POST /v1/refunds": fault, "POST /v1/checkout/sessions/*/expire": {"status": 503}}))
        .await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    assert_eq!(shop.server().handler().cancel(&issued.id).await.status, 200);
    shop.till.pay(&order, "now").await;
    shop.happens(&issued.id, "paid_late").await;
    let till = &mut shop.till;
    let tried = async || (!till.log("POST", "/v1/refunds").await.is_empty()).then_some(());
    eventually("it was tried", tried).await;
    let page = ada.get(&issued.url).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (410, "Your payment is being paid back"));
    shop.fleet.crash(0).await;
    let before = refund_keys(&mut shop).await.len();
    shop.till.faults(json!({})).await;
    for _ in 0..60 {
        if shop.count(&issued.id, "refunded").await > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(shop.count(&issued.id, "refunded").await, 1);
    let mut keys = refund_keys(&mut shop).await;
    assert!(keys.len() > before, "tried again");
    keys.dedup();
    assert_eq!(keys.len(), 1, "{keys:?}");
    let money = shop.till.ask(&json!({"money": true})).await;
    assert_eq!((&money["refunds"], &money["refunded"]["usd"]), (&json!(1), &json!(1999)));
    assert_eq!(ada.get(&issued.url).await.heading(), "Your payment has been paid back");
    shop.fits().await;
}
