//! The rules for who may do what, for payments: who pays is who was asked, what was paid for is what is released, once, and
//! nothing of it is found elsewhere.

use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::harness::redis::{Program, Redis, files};
use super::harness::till::{STRIPE_KEY, WEBHOOK_SECRET};
use super::harness::{Backing, Setup};
use super::payments::{Kind, Shop};

/// Another person with the link, at every page of a payment: before, while and after it is paid.
#[rstest]
#[tokio::test]
async fn r05_another_person_neither_pays_nor_comes_back(#[values(Kind::Stripe, Kind::PayPal)] kind: Kind) {
    let mut shop = Shop::start(kind, Backing::Embedded).await;
    shop.till.webhooks("off").await;
    let issued = shop.issue().await;
    let (ada, eve) = (shop.person("ada"), shop.person("eve"));
    let page = ada.get(&issued.url).await;
    // With ada's own form, too.
    let pressed = eve.post(&format!("{}/pay", issued.url), &page.proof()).await;
    assert_eq!(pressed.status, 403);
    assert_eq!((shop.state(&issued).await.as_str(), shop.till.orders().await.len()), ("pending", 0));
    let (_, order) = shop.leave(&ada, &issued.url).await;
    let asked = shop.till.log("GET", "/").await.len();
    for paid in [false, true] {
        if paid {
            shop.till.pay(&order, "now").await;
        }
        for url in [
            shop.back(&issued),
            issued.url.clone(),
            format!("{}/payment/not-paid", issued.url),
            format!("{}/payment/unavailable", issued.url),
            format!("{}/payment/unclear", issued.url),
            format!("{}/done", issued.url),
        ] {
            let page = eve.get(&url).await;
            assert_eq!(page.status, 403, "{url}");
            for hidden in ["19.99", "Market report", "order-42", order.as_str()] {
                assert!(!page.html.contains(hidden), "{url}: {hidden}");
            }
        }
        assert_eq!(eve.post(&format!("{}/pay", issued.url), &page.proof()).await.status, 403);
        assert_eq!(eve.post(&format!("{}/decline", issued.url), &page.proof()).await.status, 403);
        assert_eq!(shop.till.log("GET", "/").await.len(), asked, "the processor was not asked");
        assert_eq!(shop.state(&issued).await, "in_progress");
    }
    let nobody = shop.server().visitor();
    assert_eq!(nobody.get(&shop.back(&issued)).await.status, 401);
    assert_eq!(shop.till.log("GET", "/").await.len(), asked, "the processor was not asked");
    // The person who was asked finds it as it was.
    assert_eq!(ada.get(&shop.back(&issued)).await.location(), format!("/e/{}/done", issued.id));
    assert_eq!(eve.get(&shop.back(&issued)).await.status, 403);
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

/// What was paid for one operation, person and client serves no other, and a refused claim uses nothing up.
#[tokio::test]
async fn r07_one_payment_serves_one_operation_of_one_person_and_client() {
    let mut shop = Shop::with(Kind::Stripe, Backing::Embedded, "", |setup| {
        setup.replacing("kinds = [\"secret\"]", "kinds = [\"secret\", \"payment\"]")
    })
    .await;
    let (issued, unpaid) = (shop.issue().await, shop.issue().await);
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    shop.becomes(&issued, "completed").await;
    let (handler, other) = (shop.server().handler(), shop.server().other_handler());
    let changed = |pointer: &str, value: Value| {
        let mut issued = issued.clone();
        *issued.ask.pointer_mut(pointer).unwrap() = value;
        issued
    };
    let cases = [
        changed("/subject/id", "eve".into()),
        changed("/subject/issuer", "https://elsewhere.example".into()),
        changed("/operation/name", "tools/call:other".into()),
        changed("/operation/arguments/city", "Rome".into()),
        changed("/operation", unpaid.ask["operation"].clone()),
    ];
    for (number, case) in cases.iter().enumerate() {
        let refused = handler.claim(case, None).await;
        assert!(
            refused.status.is_client_error() && refused.body.get("credential").is_none(),
            "{number}: {refused:?}"
        );
        assert_eq!(shop.state(&issued).await, "completed", "{number}");
    }
    assert_eq!(other.claim(&issued, None).await.problem(), (404, "not_found"), "another client");
    // By the other's id, with its operation.
    assert_eq!(handler.claim(&unpaid, None).await.problem(), (409, "not_completed"));
    assert_eq!(shop.state(&unpaid).await, "pending");
    // The order of one is not the other's: its person comes back to the other's return page.
    let (_, second) = shop.leave(&ada, &unpaid.url).await;
    assert_ne!(order, second);
    assert_eq!(ada.get(&shop.back(&unpaid)).await.location(), format!("/e/{}/payment/not-paid", unpaid.id));
    assert_eq!(shop.state(&unpaid).await, "in_progress");
    // The processor claims that the second order is the first one's.
    let orders = shop.till.ask(&json!({"orders": true})).await;
    let metadata =
        &orders["orders"].as_array().unwrap().iter().find(|known| known["id"] == order).unwrap()["metadata"];
    let metadata = metadata.clone();
    shop.till.webhooks("hold").await;
    shop.till.pay(&second, "now").await;
    let event = shop.last_event().await;
    shop.alter(&second, json!({"metadata": metadata})).await;
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    assert_eq!(
        (shop.state(&unpaid).await.as_str(), shop.state(&issued).await.as_str()),
        ("in_progress", "completed")
    );
    assert_eq!(
        shop.events(&issued.id).await,
        ["issued", "opened", "started", "ordered", "completed"]
            .into_iter()
            .chain(std::iter::repeat_n("refused", cases.len()))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    );
    let claimed = handler.claim(&issued, None).await.ok();
    assert_eq!(claimed["credential"]["payment"]["reference"], "order-42");
    assert_eq!(handler.claim(&issued, None).await.problem(), (409, "already_claimed"));
    shop.fits().await;
}

/// Two sections for one account: the order of one does not complete at the other, though the account knows it.
#[tokio::test]
async fn r07_an_order_of_one_processor_does_not_complete_at_another() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), WEBHOOK_SECRET).unwrap();
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), STRIPE_KEY).unwrap();
    let mut shop =
        Shop::with(Kind::Stripe, Backing::Embedded, "", |setup| setup.twin(key.path(), secret.path())).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.webhooks("hold").await;
    shop.till.pay(&order, "now").await;
    let event = shop.last_event().await;
    let twin = shop.server().url("webhooks/twin");
    // Genuine, and of an order with a name of ours; but not of one that was begun there.
    assert_eq!(shop.deliver(&event, json!({"url": twin, "times": 3})).await, [503; 3]);
    assert_eq!(shop.state(&issued).await, "in_progress");
    assert_eq!(shop.deliver(&event, json!({})).await, [200]);
    assert_eq!(shop.state(&issued).await, "completed");
    shop.fits().await;
}

impl Setup {
    /// A second section for the account of the first.
    fn twin(self, key: &std::path::Path, secret: &std::path::Path) -> Self {
        let base = self.line("api_base = ");
        self.and(&format!(
            "[[payments]]\nid = \"twin\"\nprocessor = \"stripe\"\n{base}\nsecret_key_file = \"{}\"\n\
             webhook_secret_files = [\"{}\"]\n",
            key.display(),
            secret.display()
        ))
    }
}

/// Sixty-four claims over two instances, eight of them for each of eight attempts.
#[rstest]
#[tokio::test]
async fn r20_r22_one_attempt_has_the_receipt_and_has_it_again(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let mut shop = Shop::start(Kind::Stripe, backing).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let (_, order) = shop.leave(&ada, &issued.url).await;
    shop.till.pay(&order, "now").await;
    shop.becomes(&issued, "completed").await;
    let mut claims = JoinSet::new();
    for number in 0..64 {
        let (handler, issued) = (shop.fleet.at(number).handler(), issued.clone());
        claims.spawn(async move {
            let attempt = format!("attempt-{}", number / 8);
            let reply = handler.claim(&issued, Some(&attempt)).await;
            (attempt, reply)
        });
    }
    let (mut winners, mut receipts) = (BTreeSet::new(), BTreeSet::new());
    let mut answers = 0;
    for (attempt, reply) in claims.join_all().await {
        if reply.status == 200 {
            winners.insert(attempt);
            receipts.insert(reply.body["credential"].to_string());
            answers += 1;
        } else {
            assert_eq!(reply.problem(), (409, "already_claimed"));
            assert!(!reply.text.contains("order-42") && !reply.text.contains("pi_"), "{}", reply.text);
        }
    }
    assert_eq!((winners.len(), receipts.len(), answers), (1, 1, 8));
    // The answer was lost; a restarted handler asks at the other instance.
    let winner = winners.pop_first().unwrap();
    let again = shop.fleet.at(1).handler().claim(&issued, Some(&winner)).await.ok();
    assert_eq!(again["credential"].to_string(), receipts.pop_first().unwrap());
    assert_eq!(shop.count(&issued.id, "claimed").await, 1);
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    shop.fits().await;
}

const DESCRIPTION: &str = "CANARY-description-7e2f";
const REFERENCE: &str = "CANARY-reference-7e2f";

/// Everything that happens to payments, and all that nobody else is to read: names and values.
async fn live(shop: &mut Shop) -> Vec<(&'static str, String)> {
    let ask = shop.ask(&json!({"description": DESCRIPTION, "reference": REFERENCE}));
    let ada = shop.person("ada");
    let handler = shop.server().handler();
    // Paid and claimed; paid late and paid back; not as asked; the processor fails; webhooks that are not genuine.
    for end in ["claimed", "late", "wrong", "failing", "left"] {
        let mut ask = ask.clone();
        ask["operation"]["id"] = end.into();
        let issued = handler.issue(&ask).await;
        if end == "failing" {
            shop.till.faults(json!({"POST /v1/checkout/sessions": {"status": 400}})).await;
            let page = ada.get(&issued.url).await;
            ada.post(&format!("{}/pay", issued.url), &page.proof()).await;
            shop.till.faults(json!({})).await;
            continue;
        }
        let (_, order) = shop.leave(&ada, &issued.url).await;
        match end {
            "claimed" => {
                shop.till.pay(&order, "now").await;
                shop.becomes(&issued, "completed").await;
                let event = shop.last_event().await;
                for how in [json!({"tamper": true}), json!({"secret": null}), json!({"age": 999})] {
                    assert_eq!(shop.deliver(&event, how).await, [400]);
                }
                handler.claim(&issued, None).await.ok();
            }
            "late" => {
                let faults = json!({
                    "POST /v1/checkout/sessions/*/expire": {"status": 500}, "POST /v1/refunds": {"status": 500, "times": 1},
                });
                shop.till.faults(faults).await;
                assert_eq!(handler.cancel(&issued.id).await.status, 200);
                shop.till.pay(&order, "now").await;
                shop.happens(&issued.id, "paid_late").await;
                ada.get(&issued.url).await;
                shop.till.faults(json!({})).await;
            }
            "wrong" => {
                shop.till.webhooks("off").await;
                shop.till.pay(&order, "now").await;
                shop.alter(&order, json!({"amount_total": 7})).await;
                ada.get(&shop.back(&issued)).await;
                shop.happens(&issued.id, "refunded").await;
                shop.till.webhooks("send").await;
            }
            _ => {}
        }
    }
    let mut hidden = vec![
        ("the key", STRIPE_KEY.to_owned()),
        ("the webhook secret", WEBHOOK_SECRET.to_owned()),
        ("the webhook secret, bare", WEBHOOK_SECRET.trim_start_matches("whsec_").to_owned()),
        ("the description", DESCRIPTION.to_owned()),
        ("the reference", REFERENCE.to_owned()),
    ];
    let orders = shop.till.ask(&json!({"orders": true})).await;
    let orders = orders["orders"].as_array().unwrap();
    assert!(orders.len() >= 4, "{orders:?}");
    for order in orders {
        hidden.push(("a processor's id", order["id"].as_str().unwrap().to_owned()));
        hidden.push(("an order's name", order["metadata"]["sidegate_order"].as_str().unwrap().to_owned()));
        hidden.extend(order["payment_intent"].as_str().map(|id| ("a payment's id", id.to_owned())));
    }
    shop.fits().await;
    hidden
}

fn has_none(bytes: &[u8], hidden: &[(&str, String)], place: &str) {
    for (what, value) in hidden {
        if let Some(at) = bytes.windows(value.len()).position(|part| part == value.as_bytes()) {
            let around = &bytes[at.saturating_sub(120)..(at + 120).min(bytes.len())];
            panic!("{place}: {what}: {}", String::from_utf8_lossy(around));
        }
    }
}

#[tokio::test]
async fn r23_r36_nothing_of_a_payment_is_in_the_log_the_audit_trail_or_the_store() {
    let mut shop =
        Shop::with(Kind::Stripe, Backing::Embedded, "", |setup| setup.with("SIDEGATE_LOG__LEVEL", "trace"))
            .await;
    let hidden = live(&mut shop).await;
    assert!(hidden.len() >= 16, "{hidden:?}");
    let audit = serde_json::to_string(&shop.server().audit().await).unwrap();
    assert!(audit.contains("paid_late") && audit.contains("paid_wrong"), "{audit}");
    has_none(audit.as_bytes(), &hidden, "the audit trail");
    let log = shop.server().log();
    assert!(
        log.contains("\"level\":\"TRACE\"")
            || log.contains("\"level\":\"DEBUG\"")
            || log.lines().count() > 20,
        "{log}"
    );
    has_none(log.as_bytes(), &hidden, "the log");
    let mut bytes = 0;
    for entry in std::fs::read_dir(shop.server().data()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("sidegate.db") {
            let content = std::fs::read(&path).unwrap();
            has_none(&content, &hidden, &path.display().to_string());
            bytes += content.len();
        }
    }
    assert!(bytes > 10_000, "there is something to look at");
    let found = shop
        .server()
        .operator()
        .post("v1/admin/elicitations/search", &json!({"states": ["claimed", "cancelled"]}))
        .await;
    assert_eq!(found.body["elicitations"].as_array().unwrap().len(), 2);
    // They find a payment in the processor's books by its names, and see no more of it.
    let named = ["the reference", "a processor's id", "an order's name", "a payment's id"];
    let (named, hidden): (Vec<_>, Vec<_>) = hidden.into_iter().partition(|(what, _)| named.contains(what));
    assert!(named.iter().any(|(what, value)| *what == "a payment's id" && found.text.contains(value)));
    has_none(found.text.as_bytes(), &hidden, "operators");
}

#[tokio::test]
async fn r23_nothing_of_a_payment_is_in_a_shared_store() {
    let settings = ["--appendonly", "yes", "--dbfilename", "dump.rdb", "--rdbcompression", "no"];
    let redis = Redis::start(Program::Redis, &settings).await;
    let url = redis.url();
    let mut shop =
        Shop::with(Kind::Stripe, Backing::Embedded, "", |setup| setup.with("SIDEGATE_STORE__URL", url)).await;
    let hidden = live(&mut shop).await;
    redis.ask::<String>(&["SAVE"]).await;
    let mut bytes = 0;
    for file in files(redis.folder()) {
        let content = std::fs::read(&file).unwrap();
        has_none(&content, &hidden, &file.display().to_string());
        bytes += content.len();
    }
    assert!(bytes > 20_000, "there is something to look at");
}
