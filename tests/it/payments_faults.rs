//! What others got wrong when they took payments, and must not happen here: who asks when, how often, and in which order.
//!
//! What ends before it is paid is in `payments_late`, a processor that does not work in `payments_down`.

use rstest::rstest;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::harness::handler::Issued;
use super::harness::{Backing, Page, Visitor, eventually};
use super::payments::{Kind, Shop, leave};

/// What the person reads whose payment is not what was asked for.
const UNCLEAR: &str =
    "What was paid is not what was asked for. It is being looked into, so please do not pay again.";

impl Shop {
    /// What happened to an elicitation, from its audit trail.
    pub(crate) async fn events(&self, id: &str) -> Vec<String> {
        let mine = self.server().audit().await.into_iter().filter(|event| event["elicitation"] == id);
        mine.map(|event| event["what"].as_str().unwrap().to_owned()).collect()
    }

    /// How often something happened to an elicitation.
    pub(crate) async fn count(&self, id: &str, what: &str) -> usize {
        self.events(id).await.iter().filter(|event| *event == what).count()
    }

    /// Until something has happened to an elicitation.
    pub(crate) async fn happens(&self, id: &str, what: &str) {
        eventually(what, async || (self.count(id, what).await > 0).then_some(())).await;
    }

    pub(crate) async fn state(&self, issued: &Issued) -> String {
        self.server().handler().state(&issued.id).await
    }

    /// Until an elicitation is in this state.
    pub(crate) async fn becomes(&self, issued: &Issued, state: &str) {
        eventually(state, async || (self.state(issued).await == state).then_some(())).await;
    }

    /// The last event that the processor made.
    pub(crate) async fn last_event(&mut self) -> String {
        let events = self.till.ask(&json!({"events": true})).await;
        events["events"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Delivers an event, with these settings more: the statuses of the answers.
    pub(crate) async fn deliver(&mut self, event: &str, how: Value) -> Vec<u64> {
        let mut command = how;
        command["deliver"] = event.into();
        let answer = self.till.ask(&command).await;
        answer["statuses"].as_array().unwrap().iter().map(|status| status.as_u64().unwrap()).collect()
    }

    /// What the processor says of an order from now on.
    pub(crate) async fn alter(&mut self, order: &str, with: Value) {
        self.till.ask(&json!({"alter": order, "with": with})).await;
    }

    /// Everything that we sent fits what the processor says that it takes.
    pub(crate) async fn fits(&mut self) {
        assert_eq!(self.till.violations().await, Vec::<Value>::new());
    }
}

/// The `success_url` in the address bar is no receipt.
#[rstest]
#[tokio::test]
async fn a_return_page_opened_by_hand_completes_nothing(#[values(Kind::Stripe, Kind::PayPal)] kind: Kind) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    shop.till.webhooks("off").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    // Before Pay was pressed at all, there is nothing to ask.
    ada.get(&shop.back(&issued)).await;
    assert_eq!(shop.state(&issued).await, "pending");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    let back = shop.back(&issued);
    for query in ["", "?paid=true", &format!("?session_id={order}"), &format!("?token={order}&PayerID=X")] {
        let page = ada.get(&format!("{back}{query}")).await;
        assert_eq!(page.location(), format!("/e/{}/payment/not-paid", issued.id), "{query}");
    }
    assert_eq!(shop.state(&issued).await, "in_progress");
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "not_completed"));
    assert_eq!(shop.till.money("usd").await, (0, 0));
    // Paid, and no webhook: the same page finds that out.
    shop.till.pay(&order, "now").await;
    assert_eq!(ada.get(&back).await.location(), format!("/e/{}/done", issued.id));
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

/// Twenty-five webhooks and twenty-five returns at once, over two instances.
#[rstest]
#[tokio::test]
async fn r21_fifty_triggers_at_once_complete_it_a_single_time(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
) {
    let mut shop = Shop::start(kind, Backing::Shared).await;
    shop.till.webhooks("hold").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    let mut returns = JoinSet::new();
    for number in 0..25 {
        let (ada, back) = (ada.clone(), shop.fleet.link(&shop.back(&issued), number));
        returns.spawn(async move { ada.get(&back).await });
    }
    let webhooks = shop.deliver(&event, json!({"times": 25})).await;
    assert_eq!(webhooks, [200; 25]);
    for page in returns.join_all().await {
        assert_eq!(page.location(), format!("/e/{}/done", issued.id), "{}", page.text());
    }
    let events = shop.events(&issued.id).await;
    assert_eq!(events, ["issued", "opened", "started", "ordered", "completed"]);
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

/// The processor is so slow to answer that the person has paid before we know what it calls the order.
#[tokio::test]
async fn a_webhook_that_comes_before_the_order_has_its_id_is_not_lost() {
    let mut shop = Shop::stripe().await;
    shop.till.faults(json!({"POST /v1/checkout/sessions": {"delay": 3000, "acts": true}})).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let page = ada.get(&issued.url).await;
    let press = {
        let (ada, to, proof) = (ada.clone(), format!("{}/pay", issued.url), page.proof());
        tokio::spawn(async move { ada.post(&to, &proof).await })
    };
    let till = &mut shop.till;
    let order = eventually("there is an order", async || till.orders().await.pop()).await;
    shop.till.webhooks("hold").await;
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    assert_eq!(shop.state(&issued).await, "completed");
    assert!(!press.is_finished(), "the answer is not there yet");
    assert_eq!(press.await.unwrap().location(), format!("/e/{}/done", issued.id));
    assert_eq!(
        shop.server().handler().claim(&issued, None).await.text_at("/credential/payment/reference"),
        "order-42"
    );
    shop.fits().await;
}

/// What bears a name of ours that is not known here is not answered 2xx, or it would never come again; what is somebody else's
/// is.
#[tokio::test]
async fn a_webhook_about_an_order_of_ours_that_is_not_known_comes_again() {
    let mut shop = Shop::stripe().await;
    shop.till.webhooks("hold").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    let orders = shop.till.ask(&json!({"orders": true})).await;
    let metadata = orders["orders"][0]["metadata"].clone();
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    shop.alter(&order, json!({"metadata": {"sidegate_order": "sg-AAAAAAAAAAAAAAAAAAAAAA"}})).await;
    assert_eq!(shop.deliver(&event, json!({"times": 3})).await, [503; 3]);
    shop.alter(&order, json!({"metadata": {"shop": "another"}})).await;
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    let nobodys = json!({"change": {"data": {"object": {"id": "cs_test_of_nobody"}}}});
    assert_eq!(shop.deliver(&event, nobodys).await, [200]);
    assert_eq!(shop.state(&issued).await, "in_progress");
    shop.alter(&order, json!({"metadata": metadata})).await;
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

/// Of an account with two modes, or whose webhooks of both are sent to one place.
#[tokio::test]
async fn an_event_of_the_other_mode_is_answered_and_changes_nothing() {
    let mut shop = Shop::stripe().await;
    shop.till.webhooks("hold").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    assert_eq!(shop.deliver(&event, json!({"change": {"livemode": true}})).await, [200]);
    assert_eq!(shop.state(&issued).await, "in_progress");
    assert!(
        shop.server().log().contains("a webhook is about the other mode, live or test, and was passed over")
    );
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

/// The section says that it is about money, and the processor plays.
#[tokio::test]
async fn a_test_event_at_a_live_endpoint_is_answered_and_changes_nothing() {
    let mut shop = Shop::with(Kind::Stripe, Backing::Embedded, "livemode = true", |setup| setup).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    assert!(!ada.get(&issued.url).await.text().contains("test mode"));
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.webhooks("hold").await;
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    assert_eq!(shop.deliver(&event, json!({"times": 2})).await, [200, 200]);
    assert_eq!(shop.events(&issued.id).await, ["issued", "opened", "started", "ordered"]);
    // Whoever looks finds out that it is no money: that is not what was asked for.
    ada.get(&shop.back(&issued)).await;
    assert_eq!(
        (shop.state(&issued).await.as_str(), shop.count(&issued.id, "paid_wrong").await),
        ("in_progress", 1)
    );
    shop.fits().await;
}

/// `checkout.session.expired`, and every other word for failure, of what is paid.
#[rstest]
#[tokio::test]
async fn an_event_of_failure_after_it_was_paid_changes_nothing(
    #[values("checkout.session.expired", "checkout.session.async_payment_failed")] kind: &str,
) {
    let mut shop = Shop::stripe().await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    shop.becomes(&issued, "completed").await;
    let event = shop.last_event().await;
    let change = json!({"times": 4, "change": {"type": kind}});
    assert_eq!(shop.deliver(&event, change.clone()).await, [200; 4]);
    assert_eq!(shop.state(&issued).await, "completed");
    // Even if the processor says so itself.
    shop.alter(&order, json!({"status": "expired", "payment_status": "unpaid"})).await;
    assert_eq!(shop.deliver(&event, change.clone()).await, [200; 4]);
    assert_eq!(shop.state(&issued).await, "completed");
    assert_eq!(
        shop.server().handler().claim(&issued, None).await.text_at("/credential/payment/provider"),
        "stripe"
    );
    assert_eq!(shop.deliver(&event, change.clone()).await, [200; 4]);
    // And takes that back.
    shop.alter(&order, json!({"status": "complete", "payment_status": "paid"})).await;
    assert_eq!(shop.deliver(&event, change).await, [200; 4]);
    assert_eq!(
        (shop.state(&issued).await.as_str(), shop.count(&issued.id, "paid_late").await),
        ("claimed", 0)
    );
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

/// A bank transfer that failed, a second order, and the failure of the first once more.
#[tokio::test]
async fn a_late_failure_of_an_older_order_does_not_touch_a_newer_one() {
    let mut shop = Shop::stripe().await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, older) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&older, "later").await;
    shop.happens(&issued.id, "processing").await;
    shop.till.finish(&older, "failed").await;
    shop.becomes(&issued, "pending").await;
    let failure = shop.last_event().await;
    let (_, newer) = shop.leave(&ada, &issued.url).await;
    assert_ne!(older, newer);
    assert_eq!(shop.deliver(&failure, json!({"times": 3})).await, [200; 3]);
    assert_eq!(shop.state(&issued).await, "in_progress");
    shop.till.pay(&newer, "later").await;
    let on_its_way =
        async || (ada.get(&issued.url).await.heading() == "Your payment is on its way").then_some(());
    eventually("on its way", on_its_way).await;
    assert_eq!(shop.deliver(&failure, json!({"times": 3})).await, [200; 3]);
    assert_eq!(ada.get(&issued.url).await.heading(), "Your payment is on its way");
    shop.till.finish(&newer, "succeeded").await;
    shop.becomes(&issued, "completed").await;
    assert_eq!(shop.deliver(&failure, json!({"times": 3})).await, [200; 3]);
    assert_eq!(shop.state(&issued).await, "completed");
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

/// What was paid is neither taken for the payment nor for a failure: it is written down, and paid back or held.
#[rstest]
#[case::less(json!({"amount_total": 1}))]
#[case::more(json!({"amount_total": 199_900}))]
#[case::no_amount(json!({"amount_total": null}))]
#[case::other_currency(json!({"currency": "jpy"}))]
#[case::no_currency(json!({"currency": null}))]
#[case::other_mode(json!({"livemode": true}))]
#[case::other_order(json!({"metadata": {"sidegate_order": "sg-AAAAAAAAAAAAAAAAAAAAAA"}}))]
#[case::no_order(json!({"metadata": {}}))]
#[tokio::test]
async fn what_is_paid_and_not_as_asked_is_neither_completed_nor_failed(
    #[case] with: Value,
    #[values("refund", "hold")] late: &str,
) {
    let lines = format!("late = \"{late}\"");
    let mut shop = Shop::with(Kind::Stripe, Backing::Embedded, &lines, |setup| setup).await;
    shop.till.webhooks("off").await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    shop.alter(&order, with).await;
    let back = ada.get(&shop.back(&issued)).await;
    assert_eq!(back.location(), format!("/e/{}/payment/unclear", issued.id), "{}", back.text());
    let page = ada.get(&format!("{}/payment/unclear", issued.url)).await;
    assert_eq!(page.status, 409);
    assert!(page.text().contains(UNCLEAR), "{}", page.text());
    assert_eq!(shop.state(&issued).await, "in_progress");
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "not_completed"));
    assert_eq!(shop.count(&issued.id, "paid_wrong").await, 1);
    if late == "refund" {
        shop.happens(&issued.id, "refunded").await;
        assert_eq!(shop.till.money("usd").await, (1999, 1999));
    }
    // Nobody pays again for what is unclear.
    let again = ada.post(&format!("{}/pay", issued.url), &ada.get(&issued.url).await.proof()).await;
    assert_eq!(again.location(), format!("/e/{}/payment/unclear", issued.id));
    assert_eq!(shop.till.orders().await.len(), 1);
    if late == "hold" {
        assert_eq!(shop.till.log("POST", "/v1/refunds").await, Vec::<Value>::new());
    }
    assert_eq!(shop.state(&issued).await, "in_progress");
    shop.fits().await;
}

/// `PayPal` takes money only when we ask for it, and we ask for what was agreed alone.
#[rstest]
#[case::less(json!({"amount_total": 1}))]
#[case::other_currency(json!({"currency": "eur"}))]
#[case::no_amount(json!({"amount_total": null}))]
#[case::other_order(json!({"client_reference_id": "AAAAAAAAAAAAAAAAAAAAAA order-42"}))]
#[tokio::test]
async fn what_was_approved_and_is_not_as_asked_is_not_captured(#[case] with: Value) {
    let mut shop = Shop::start(Kind::PayPal, Backing::Embedded).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.alter(&order, with).await;
    shop.till.pay(&order, "now").await;
    ada.get(&shop.back(&issued)).await;
    // That order is given up; another may be begun.
    assert_eq!(shop.state(&issued).await, "pending");
    assert_eq!(
        shop.till.log("POST", &format!("/v2/checkout/orders/{order}/capture")).await,
        Vec::<Value>::new()
    );
    assert_eq!(shop.till.money("usd").await, (0, 0));
    shop.fits().await;
}

/// A double click, two tabs, two instances.
#[rstest]
#[tokio::test]
async fn whoever_presses_pay_several_times_at_once_has_one_order(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
) {
    let mut shop = Shop::start(kind, Backing::Shared).await;
    let path = if kind == Kind::Stripe { "/v1/checkout/sessions" } else { "/v2/checkout/orders" };
    // Long enough that all of them meet.
    shop.till.faults(json!({format!("POST {path}"): {"delay": 400}})).await;
    let issued = shop.issue().await;
    let mut tabs: Vec<(Visitor, String, Page)> = Vec::new();
    for number in 0..8 {
        let (tab, link) = (shop.fleet.at(number).visitor(), shop.fleet.link(&issued.url, number));
        let tab = tab.signed_in(shop.people.token("ada"));
        let page = tab.get(&link).await;
        tabs.push((tab, link, page));
    }
    let mut presses = JoinSet::new();
    for (tab, link, page) in tabs {
        presses.spawn(async move { leave(&tab, &link, &page).await });
    }
    let mut went = presses.join_all().await;
    went.dedup();
    assert_eq!(went.len(), 1, "{went:?}");
    let orders = shop.till.orders().await;
    assert_eq!(orders.len(), 1);
    let mut keys: Vec<_> =
        shop.till.log("POST", path).await.iter().map(|entry| entry["key"].clone()).collect();
    keys.dedup();
    assert_eq!(keys.len(), 1);
    assert_eq!(shop.count(&issued.id, "ordered").await, 1);
    shop.till.pay(&orders[0], "now").await;
    shop.becomes(&issued, "completed").await;
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

/// Whoever turns back has not said no.
#[rstest]
#[tokio::test]
async fn the_way_back_is_no_decline(#[values(Kind::Stripe, Kind::PayPal)] kind: Kind) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (to, order) = shop.leave(&ada, &issued.url).await;
    // As the processor's page links to it.
    let hosted = Visitor::send(shop.server().visitor().request(reqwest::Method::GET, to.as_str())).await;
    let cancel = hosted.attributes("a", "href").remove(0);
    let mut turned = ada.get(&cancel).await;
    if kind == Kind::PayPal {
        // What PayPal hangs on it does not stay in the address.
        assert_eq!(turned.location(), format!("/e/{}/payment/not-paid", issued.id));
        turned = ada.get(&shop.server().url(&turned.location()[1..])).await;
    }
    assert_eq!(turned.status, 200);
    assert!(
        turned.text().contains("You can press Pay again as long as there is time left."),
        "{}",
        turned.text()
    );
    assert_eq!(shop.state(&issued).await, "in_progress");
    let (again, _) = shop.leave(&ada, &issued.url).await;
    assert_eq!((again, shop.till.orders().await), (to, vec![order.clone()]), "the same order");
    shop.till.pay(&order, "now").await;
    assert_eq!(ada.get(&shop.back(&issued)).await.location(), format!("/e/{}/done", issued.id));
    shop.fits().await;
}
