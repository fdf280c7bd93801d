//! Payments raced against what ends them, a hundred times each. Whatever wins, the money comes out even: what was taken is a
//! receipt that was claimed, or one that can be, or has been paid back.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::handler::Issued;
use super::harness::{Backing, Handler, Reply};
use super::payments::{Kind, Shop};
use super::payments_webhooks::signed;

const TRIES: u64 = 100;
const PRICE: u64 = 1999;

/// Waits up to two minutes: a hundred refunds are not all done at once.
async fn patiently<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{what}: has not happened within two minutes");
}

/// The stages of all orders, by elicitation, as operators see them.
async fn stages(operator: &Handler) -> Vec<(String, Vec<String>)> {
    let states = json!([
        "pending",
        "in_progress",
        "completed",
        "claimed",
        "declined",
        "cancelled",
        "expired",
        "failed",
        "revoked"
    ]);
    let (mut found, mut after) = (Vec::new(), Value::Null);
    loop {
        let page = operator
            .post("v1/admin/elicitations/search", &json!({"states": states, "limit": 200, "after": after}))
            .await
            .ok();
        for one in page["elicitations"].as_array().unwrap() {
            let orders = one["orders"].as_array().cloned().unwrap_or_default();
            let stages = orders.iter().map(|order| order["stage"].as_str().unwrap().to_owned()).collect();
            found.push((one["state"].as_str().unwrap().to_owned(), stages));
        }
        after = page["next"].clone();
        if after.is_null() {
            return found;
        }
    }
}

/// Waits until every order has come to its end, and checks the sum: so many were claimed or can be.
async fn comes_out_even(shop: &mut Shop, kept: u64) {
    let operator = shop.server().operator();
    let all = patiently("every order has ended", async || {
        let all = stages(&operator).await;
        let ended = |stage: &String| matches!(stage.as_str(), "closed" | "paid" | "refunded");
        all.iter().all(|(_, stages)| stages.iter().all(ended)).then_some(all)
    })
    .await;
    let count = |stage: &str| {
        all.iter().flat_map(|(_, stages)| stages).filter(|known| *known == stage).count() as u64
    };
    assert!(all.iter().all(|(_, stages)| stages.len() <= 1), "one order each: {all:?}");
    assert_eq!(count("paid"), kept, "{all:?}");
    let (taken, refunded) = shop.till.money("usd").await;
    assert_eq!(taken, PRICE * (kept + count("refunded")), "{all:?}");
    assert_eq!(refunded, PRICE * count("refunded"), "{all:?}");
    assert_eq!(shop.till.violations().await, Vec::<Value>::new());
}

#[derive(Debug, Clone, Copy)]
enum End {
    Revoked,
    Cancelled,
    Declined,
}

async fn end(shop: &Handler, operator: &Handler, issued: &Issued, how: End) -> Reply {
    match how {
        End::Revoked => {
            let body = json!({"reason": "a race", "refund": true});
            operator.post(&format!("v1/admin/elicitations/{}/revoke", issued.id), &body).await
        }
        End::Cancelled => shop.cancel(&issued.id).await,
        End::Declined => panic!("the person does that"),
    }
}

#[rstest]
#[tokio::test]
async fn r21_paying_against_what_ends_it(
    #[values(End::Revoked, End::Cancelled, End::Declined)] how: End,
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let mut shop = Shop::start(Kind::Stripe, backing).await;
    let (ada, handler, operator) = (shop.person("ada"), shop.server().handler(), shop.server().operator());
    let (mut ended, mut kept) = (0, 0);
    for number in 0..TRIES {
        let issued = shop.issue().await;
        let (_, order) = shop.leave(&ada, &issued.url).await;
        let proof = ada.get(&issued.url).await.proof();
        // The webhook follows at once; now the one is faster, now the other.
        let pause = Duration::from_millis(number % 12);
        let (early, late) = if number % 2 == 0 { (pause, Duration::ZERO) } else { (Duration::ZERO, pause) };
        let paid = async {
            tokio::time::sleep(early).await;
            shop.till.pay(&order, "now").await;
        };
        let stopped = async {
            tokio::time::sleep(late).await;
            match how {
                End::Declined => {
                    ada.post(&format!("{}/decline", issued.url), &proof).await.status.as_u16() == 303
                }
                _ => end(&handler, &operator, &issued, how).await.status == 200,
            }
        };
        let ((), stopped) = tokio::join!(paid, stopped);
        let state = patiently("it has ended, one way or the other", async || {
            let state = handler.state(&issued.id).await;
            (state != "in_progress" && state != "pending").then_some(state)
        })
        .await;
        assert_eq!(stopped, state != "completed", "{state}");
        ended += u64::from(stopped);
        kept += u64::from(state == "completed");
        if number % 3 == 0 {
            // What has ended is never released.
            let claim = handler.claim(&issued, None).await;
            assert_eq!(claim.status == 200, state == "completed", "{claim:?}");
        }
    }
    assert_eq!(ended + kept, TRIES);
    comes_out_even(&mut shop, kept).await;
}

#[tokio::test]
async fn r21_paying_against_expiry() {
    let mut shop = Shop::start(Kind::Stripe, Backing::Embedded).await;
    let (ada, handler) = (shop.person("ada"), shop.server().handler());
    let mut begun = Vec::new();
    for _ in 0..TRIES {
        let mut ask = shop.ask(&json!({}));
        ask["expiresIn"] = 25.into();
        let issued = handler.issue(&ask).await;
        let deadline = tokio::time::sleep(Duration::from_secs(25));
        let (_, order) = shop.leave(&ada, &issued.url).await;
        begun.push((issued, order, deadline));
    }
    let mut all = Vec::new();
    for (issued, order, deadline) in begun {
        deadline.await;
        shop.till.pay(&order, "now").await;
        all.push(issued);
    }
    let mut kept = 0;
    for issued in &all {
        let state = patiently("it has ended", async || {
            let state = handler.state(&issued.id).await;
            (state != "in_progress").then_some(state)
        })
        .await;
        assert!(matches!(state.as_str(), "expired" | "completed"), "{state}");
        kept += u64::from(state == "completed");
        let claim = handler.claim(issued, None).await;
        assert_eq!(claim.status == 200, state == "completed", "{claim:?}");
    }
    comes_out_even(&mut shop, kept).await;
}

#[tokio::test]
async fn r20_r21_two_clicks_two_webhooks_two_returns_and_two_claims_at_once_over_two_instances() {
    let mut shop = Shop::start(Kind::Stripe, Backing::Shared).await;
    shop.till.webhooks("off").await;
    // Each browser at its own instance.
    let (ada, bo) = (shop.person("ada"), shop.fleet.at(1).visitor().signed_in(shop.people.token("ada")));
    let handlers = [shop.fleet.at(0).handler(), shop.fleet.at(1).handler()];
    for number in 0..TRIES {
        let issued = shop.issue().await;
        let there = shop.fleet.link(&issued.url, 1);
        let (here, other) = tokio::join!(ada.get(&issued.url), bo.get(&there));
        let (here, other) = (here.proof(), other.proof());
        let (first, second) = (format!("{}/pay", issued.url), format!("{there}/pay"));
        let (first, second) = tokio::join!(ada.post(&first, &here), bo.post(&second, &other));
        assert_eq!(
            (first.status.as_u16(), second.status.as_u16()),
            (303, 303),
            "{} {}",
            first.text(),
            second.text()
        );
        let orders = shop.till.orders().await;
        assert_eq!(orders.len() as u64, number + 1, "one order each");
        let order = orders.last().unwrap();
        shop.till.pay(order, "now").await;
        let event = json!({
            "id": format!("evt_{number}"), "type": "checkout.session.completed", "livemode": false,
            "data": {"object": {"id": order}},
        });
        let body = event.to_string().into_bytes();
        let webhook = |at: usize| {
            let request = handlers[at].request(reqwest::Method::POST, "webhooks/stripe");
            Handler::send(request.header("Stripe-Signature", signed(&body)).body(body.clone()))
        };
        let (back, back_there) = (shop.back(&issued), shop.fleet.link(&shop.back(&issued), 1));
        let (one, two, three, four) =
            tokio::join!(webhook(0), webhook(1), ada.get(&back), bo.get(&back_there));
        assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
        assert!(
            three.location().ends_with("/done") && four.location().ends_with("/done"),
            "{} {}",
            three.text(),
            four.text()
        );
        let (one, two) =
            tokio::join!(handlers[0].claim(&issued, Some("a")), handlers[1].claim(&issued, Some("b")));
        assert_eq!(u16::from(one.status == 200) + u16::from(two.status == 200), 1, "{one:?} {two:?}");
    }
    let audit = shop.server().audit().await;
    let count = |what: &str| audit.iter().filter(|event| event["what"] == what).count() as u64;
    assert_eq!((count("ordered"), count("completed"), count("claimed")), (TRIES, TRIES, TRIES));
    comes_out_even(&mut shop, TRIES).await;
}

#[tokio::test]
async fn r20_r21_claiming_against_a_revocation_with_refund() {
    let mut shop = Shop::start(Kind::Stripe, Backing::Shared).await;
    let ada = shop.person("ada");
    let (handler, operator) = (shop.fleet.at(0).handler(), shop.fleet.at(1).operator());
    let mut claimed = 0;
    for number in 0..TRIES {
        let issued = shop.issue().await;
        let (_, order) = shop.leave(&ada, &issued.url).await;
        shop.till.pay(&order, "now").await;
        patiently("completed", async || (handler.state(&issued.id).await == "completed").then_some(())).await;
        let claim = async {
            tokio::time::sleep(Duration::from_millis(number % 5)).await;
            handler.claim(&issued, None).await
        };
        let (claim, revoked) = tokio::join!(claim, end(&handler, &operator, &issued, End::Revoked));
        assert_eq!(
            u16::from(claim.status == 200) + u16::from(revoked.status == 200),
            1,
            "{claim:?} {revoked:?}"
        );
        claimed += u64::from(claim.status == 200);
    }
    comes_out_even(&mut shop, claimed).await;
}
