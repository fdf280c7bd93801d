//! Payments in Chromium: the person, our pages, the processor's page, and the way back, on one instance and on two.

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::balancer::Balancer;
use super::harness::browser::run;
use super::harness::handler::Issued;
use super::harness::issuer::Issuer;
use super::harness::{Backing, Server, ask, eventually};
use super::oauth::text;
use super::payments::{Kind, Shop, leave};

/// What the browser shows after each step, and nothing to complain about.
async fn steps(header: &Value, script: bool, steps: Value) -> Vec<Value> {
    let seen = run("walk", &json!({"header": header, "script": script, "steps": steps})).await;
    assert_eq!(seen["complaints"], json!([]), "{seen:#}");
    seen["seen"].as_array().unwrap().clone()
}

impl Shop {
    /// Two instances behind one URL, or one.
    async fn in_town(kind: Kind, backing: Backing) -> (Option<Balancer>, Self) {
        match backing {
            Backing::Embedded => (None, Self::start(kind, backing).await),
            Backing::Shared => {
                let balancer = Balancer::start().await;
                let shop = Self::with(kind, backing, "", |setup| setup.behind(&balancer)).await;
                balancer.between(&[shop.fleet.at(0)]);
                balancer.send("/webhooks/", shop.fleet.at(1));
                balancer.send("/v1/", shop.fleet.at(1));
                (Some(balancer), shop)
            }
        }
    }

    fn header(&self) -> Value {
        json!({Issuer::HEADER.to_lowercase(): self.people.token("ada")})
    }

    async fn walks(&self, script: bool, walk: Value) -> Vec<Value> {
        steps(&self.header(), script, walk).await
    }

    /// Opens the link and goes on to the processor.
    fn goes(&self, issued: &Issued) -> Value {
        json!([
            {"open": issued.url},
            {"press": "Pay $19.99", "until": self.till.url()},
        ])
    }
}

fn and(first: Value, then: Value) -> Value {
    let (Value::Array(mut all), Value::Array(more)) = (first, then) else { panic!("steps are lists") };
    all.extend(more);
    Value::Array(all)
}

/// What can be looked for in what was seen: the last line of the address, and the heading.
fn at<'a>(seen: &'a Value, issued: &Issued) -> (&'a str, &'a str) {
    (text(seen, "/url").strip_prefix(issued.url.as_str()).unwrap_or("elsewhere"), text(seen, "/heading"))
}

/// It starts and comes back at one instance; the webhook comes to the other, where it is claimed too.
#[rstest]
#[tokio::test]
async fn r05_r21_a_person_pays_and_comes_back(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
    #[values(true, false)] script: bool,
) {
    let (balancer, mut shop) = Shop::in_town(kind, backing).await;
    let issued = shop.issue().await;
    let pays = json!([{"press": "Pay now", "until": "/done"}]);
    let seen = shop.walks(script, and(shop.goes(&issued), pays)).await;
    assert_eq!(at(&seen[0], &issued), ("", "Weather tools asks you to pay $19.99"));
    for shown in ["Market report 2026", "Weather tools", "ada"] {
        assert!(text(&seen[0], "/text").contains(shown), "{shown}: {seen:#?}");
    }
    assert_eq!(at(&seen[2], &issued), ("/done", "Done"), "nothing of the processor's is left in the address");
    assert!(text(&seen[2], "/text").contains("You have paid $19.99."), "{seen:#?}");
    let claimed = shop.server().handler().claim(&issued, None).await.ok();
    assert_eq!(claimed["credential"]["payment"]["amount"], 1999);
    if let Some(balancer) = &balancer {
        let served = balancer.served(shop.fleet.at(0));
        let page = format!("/e/{}", issued.id);
        let back = format!("GET /payment/{}/return", issued.id);
        for what in [format!("GET {page}"), format!("POST {page}/pay"), back, format!("GET {page}/done")] {
            assert!(served.contains(&what), "{what} is not in {served:?}");
        }
        let other = balancer.served(shop.fleet.at(1));
        assert!(other.iter().all(|what| what.contains(" /v1/") || what.contains(" /webhooks/")), "{other:?}");
        for what in ["/webhooks/", "/claim"] {
            assert!(other.iter().any(|served| served.contains(what)), "{what} is not in {other:?}");
        }
    }
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "already_claimed"));
    assert_eq!((shop.till.orders().await.len(), shop.till.money("usd").await), (1, (1999, 0)));
    shop.fits().await;
}

/// The browser never comes back: what the webhook says to the other instance is enough.
#[rstest]
#[tokio::test]
async fn a_closed_tab_is_no_loss(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let (_balancer, mut shop) = Shop::in_town(kind, backing).await;
    let issued = shop.issue().await;
    let pays = json!([{"press": "Pay now", "last": true}]);
    shop.walks(true, and(shop.goes(&issued), pays)).await;
    shop.becomes(&issued, "completed").await;
    let claimed = shop.server().handler().claim(&issued, None).await.ok();
    assert_eq!(claimed["credential"]["payment"]["reference"], "order-42");
    let seen = shop.walks(false, json!([{"open": issued.url}])).await;
    assert!(text(&seen[0], "/text").contains("You have paid $19.99."), "{seen:#?}");
    assert_eq!(shop.till.money("usd").await, (1999, 0));
}

/// Turned back at the processor, the person may press Pay again, and it is the same order.
#[rstest]
#[tokio::test]
async fn whoever_turns_back_may_pay_again(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
    #[values(true, false)] script: bool,
) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let issued = shop.issue().await;
    let again = json!([
        {"press": "Back to the shop", "until": "/payment/not-paid"},
        {"press": "Pay $19.99", "until": shop.till.url()},
        {"press": "Pay now", "until": "/done"},
    ]);
    let seen = shop.walks(script, and(shop.goes(&issued), again)).await;
    assert_eq!(at(&seen[2], &issued).0, "/payment/not-paid");
    assert!(text(&seen[2], "/text").contains("without having paid"), "{seen:#?}");
    assert_eq!(text(&seen[3], "/url"), text(&seen[1], "/url"), "another order");
    assert_eq!(at(&seen[4], &issued), ("/done", "Done"));
    assert_eq!((shop.till.orders().await.len(), shop.till.money("usd").await), (1, (1999, 0)));
    assert_eq!(shop.server().handler().claim(&issued, None).await.status, 200);
}

#[tokio::test]
async fn a_refused_card_is_the_processors_affair_until_another_pays() {
    let mut shop = Shop::stripe().await;
    let issued = shop.issue().await;
    let cards = json!([{"press": "Use a refused card"}, {"press": "Pay now", "until": "/done"}]);
    let seen = shop.walks(true, and(shop.goes(&issued), cards)).await;
    assert!(text(&seen[2], "/text").contains("Your card was declined."), "{seen:#?}");
    assert_eq!(at(&seen[3], &issued), ("/done", "Done"));
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    assert_eq!(shop.server().handler().claim(&issued, None).await.status, 200);
}

/// What takes days is said to do so, and the person need not stay.
#[rstest]
#[tokio::test]
async fn a_bank_transfer_is_waited_for(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
    #[values("succeeded", "failed")] end: &str,
) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let issued = shop.issue().await;
    let pays = json!([{"press": "Pay by bank transfer", "until": &issued.url}]);
    let seen = shop.walks(true, and(shop.goes(&issued), pays)).await;
    assert_eq!(text(&seen[2], "/heading"), "Your payment is on its way", "{seen:#?}");
    assert_eq!(shop.state(&issued).await, "in_progress");
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "not_completed"));
    let order = shop.till.orders().await.remove(0);
    shop.till.finish(&order, end).await;
    let state = if end == "succeeded" { "completed" } else { "pending" };
    shop.becomes(&issued, state).await;
    let seen = shop.walks(true, json!([{"open": issued.url}])).await;
    let heading = if end == "succeeded" { "Done" } else { "Weather tools asks you to pay $19.99" };
    assert_eq!(text(&seen[0], "/heading"), heading, "{seen:#?}");
}

#[rstest]
#[tokio::test]
async fn r05_whoever_says_no_pays_nothing(#[values(true, false)] script: bool) {
    let mut shop = Shop::stripe().await;
    let issued = shop.issue().await;
    let walk = json!([
        {"press": "Back to the shop", "until": "/payment/not-paid"},
        {"press": "Decline"},
        {"open": issued.url},
    ]);
    let seen = shop.walks(script, and(shop.goes(&issued), walk)).await;
    for number in [3, 4] {
        assert_eq!(text(&seen[number], "/heading"), "You declined", "{seen:#?}");
    }
    assert_eq!(shop.state(&issued).await, "declined");
    let closed = async || {
        let orders = shop.till.ask(&json!({"orders": true})).await;
        (orders["orders"][0]["status"] == "expired").then_some(())
    };
    eventually("the order is closed", closed).await;
    assert_eq!(shop.till.money("usd").await, (0, 0));
}

/// Revoked while the person stands at the processor, which does not close the order in time: the money goes back, and the
/// person reads so.
#[rstest]
#[tokio::test]
async fn r21_who_pays_after_it_was_revoked_is_paid_back(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let (_balancer, mut shop) = Shop::in_town(Kind::Stripe, backing).await;
    shop.till.faults(json!({"POST /v1/checkout/sessions/*/expire": {"status": 500}})).await;
    let issued = shop.issue().await;
    let seen = shop.walks(true, shop.goes(&issued)).await;
    assert_eq!(shop.fleet.at(1).operator().revoke(&issued.id).await.status, 200);
    let pays = json!([
        {"open": text(&seen[1], "/url")},
        {"press": "Pay now", "until": &issued.url},
    ]);
    let seen = shop.walks(true, pays).await;
    let heading = text(&seen[1], "/heading");
    assert!(
        ["Your payment is being paid back", "Your payment has been paid back"].contains(&heading),
        "{seen:#?}"
    );
    shop.happens(&issued.id, "refunded").await;
    let seen = shop.walks(true, json!([{"open": issued.url}])).await;
    assert_eq!(text(&seen[0], "/heading"), "Your payment has been paid back");
    assert_eq!(shop.till.money("usd").await, (1999, 1999));
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "ended"));
}

fn tea() -> Value {
    let mut asked = ask();
    asked["kind"] = "payment".into();
    asked.as_object_mut().unwrap().remove("secret");
    asked["payment"] = json!({
        "provider": "manual", "amount": 500, "currency": "JPY", "description": "Tea", "reference": "tea-1",
    });
    asked
}

#[rstest]
#[tokio::test]
async fn at_the_test_page_the_developer_decides(#[values(true, false)] script: bool) {
    let server = Server::local().await;
    let issued = server.handler().issue(&tea()).await;
    let walk = json!([
        {"open": issued.url},
        {"press": "Pay ¥500", "until": "/manual/"},
        {"press": "Refuse", "until": "/payment/not-paid"},
        {"press": "Pay ¥500", "until": "/manual/"},
        {"press": "Pay", "until": "/done"},
    ]);
    let seen = steps(&Value::Null, script, walk).await;
    assert_eq!(text(&seen[1], "/heading"), "This is a test: nobody pays");
    assert!(text(&seen[2], "/text").contains("without having paid"), "{seen:#?}");
    assert_eq!(at(&seen[4], &issued), ("/done", "Done"));
    assert_eq!(server.handler().claim(&issued, None).await.ok()["credential"]["payment"]["livemode"], false);
}

/// Every page that has to do with money, in every way in which it is looked at.
#[tokio::test]
async fn r27_r30_no_page_of_a_payment_has_a_fault() {
    let mut pages = Vec::new();
    let mut shop = Shop::stripe().await;
    let header = json!({Issuer::HEADER: shop.people.token("ada")});
    let mut add = |name: &str, link: &str, header: &Value| {
        pages.push(json!({"name": format!("pay-{name}"), "link": link, "header": header}));
    };
    let ada = shop.person("ada");
    let open = shop.issue().await;
    add("open", &open.url, &header);
    for what in ["unavailable", "unknown", "not-paid"] {
        add(what, &format!("{}/payment/{what}", open.url), &header);
    }
    let long = shop.ask(&json!({
        "amount": 99_999_999, "description": "W".repeat(120), "reference": "long",
    }));
    add("long", &shop.server().handler().issue(&long).await.url, &header);

    let done = shop.issue().await;
    let (_, order) = shop.leave(&ada, &done.url).await;
    shop.till.pay(&order, "now").await;
    shop.becomes(&done, "completed").await;
    add("done", &done.url, &header);

    let waits = shop.issue().await;
    let (_, order) = shop.leave(&ada, &waits.url).await;
    shop.till.pay(&order, "later").await;
    ada.get(&shop.back(&waits)).await;
    add("on-its-way", &waits.url, &header);

    shop.till.webhooks("off").await;
    let unclear = shop.issue().await;
    let (_, order) = shop.leave(&ada, &unclear.url).await;
    shop.till.pay(&order, "now").await;
    shop.alter(&order, json!({"amount_total": 7})).await;
    ada.get(&shop.back(&unclear)).await;
    add("unclear", &unclear.url, &header);

    shop.till.faults(json!({"POST /v1/checkout/sessions/*/expire": {"status": 500}})).await;
    let late = shop.issue().await;
    let (_, order) = shop.leave(&ada, &late.url).await;
    assert_eq!(shop.server().operator().revoke(&late.id).await.status, 200);
    shop.till.pay(&order, "now").await;
    ada.get(&shop.back(&late)).await;
    shop.happens(&late.id, "refunded").await;
    add("paid-back", &late.url, &header);

    let mut holds = Shop::with(Kind::Stripe, Backing::Embedded, "late = \"hold\"", |setup| setup).await;
    holds.till.faults(json!({"POST /v1/checkout/sessions/*/expire": {"status": 500}})).await;
    let held = holds.issue().await;
    let bea = holds.person("ada");
    let (_, order) = holds.leave(&bea, &held.url).await;
    assert_eq!(holds.server().operator().revoke(&held.id).await.status, 200);
    holds.till.pay(&order, "now").await;
    holds.happens(&held.id, "paid_late").await;
    add("held", &held.url, &json!({Issuer::HEADER: holds.people.token("ada")}));

    let server = Server::local().await;
    let tea = server.handler().issue(&tea()).await;
    let visitor = server.visitor();
    let to = leave(&visitor, &tea.url, &visitor.get(&tea.url).await).await;
    let cookies: Vec<_> = visitor.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
    add("test-page", to.as_str(), &json!({"Cookie": cookies.join("; ")}));

    let pictures = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pictures");
    let seen = run("survey", &json!({"pages": pages, "pictures": pictures})).await;
    assert_eq!(seen["findings"], json!([]), "{:#}", seen["findings"]);
    assert_eq!(seen["looked"], pages.len() * 8);
}
