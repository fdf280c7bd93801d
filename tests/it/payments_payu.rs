//! Payments at `PayU`, against the published double: `python-getpaid-simulator`, which nobody here wrote.

use std::process::Stdio;

use reqwest::Url;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::harness::handler::{Issued, client};
use super::harness::issuer::Issuer;
use super::harness::till::hex;
use super::harness::{Backing, Fleet, Handler, Setup, Visitor, ask, eventually};
use super::payments::leave;

const SECOND_KEY: &str = "a second key of the tests alone";

/// The double. Ends when dropped.
struct Double {
    url: String,
    http: reqwest::Client,
    _process: Child,
}

impl Double {
    async fn start() -> Self {
        let start = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/payu/start");
        let mut command = Command::new("python3");
        command.arg(start).env("SIMULATOR_PAYU_SECOND_KEY", SECOND_KEY).kill_on_drop(true);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap();
        let url = url.expect("the double of PayU is needed; `tests/run` installs it");
        Self { url, http: client(), _process: process }
    }

    /// What the person does on its page: `approve` or `reject`. Where the browser goes then.
    async fn decide(&self, page: &Url, action: &str) -> String {
        let answer = self.http.post(page.clone()).form(&[("action", action)]).send().await.unwrap();
        assert_eq!(answer.status(), 302, "{}", answer.text().await.unwrap());
        answer.headers()["location"].to_str().unwrap().to_owned()
    }

    /// An order, as its API tells.
    async fn order(&self, page: &Url) -> Value {
        let id = page.path().rsplit('/').next().unwrap();
        let token = self.http.post(format!("{}/payu/pl/standard/user/oauth/authorize", self.url));
        let token = token.form(&[("grant_type", "client_credentials")]).send().await.unwrap();
        let token: Value = serde_json::from_str(&token.text().await.unwrap()).unwrap();
        let order = self.http.get(format!("{}/payu/api/v2_1/orders/{id}", self.url));
        let order = order.bearer_auth(token["access_token"].as_str().unwrap()).send().await.unwrap();
        let order: Value = serde_json::from_str(&order.text().await.unwrap()).unwrap();
        order["orders"][0].clone()
    }
}

/// A service whose people pay there.
struct Shop {
    people: Issuer,
    double: Double,
    fleet: Fleet,
    _files: [tempfile::NamedTempFile; 2],
}

impl Shop {
    async fn start(backing: Backing, change: impl FnOnce(Setup) -> Setup) -> Self {
        let (people, double) = (Issuer::in_file(), Double::start().await);
        let files = ["a client secret", SECOND_KEY].map(|text| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            file
        });
        let [secret, second] = files.each_ref().map(|file| file.path().display().to_string());
        let setup = Setup::proxy(&people)
            .replacing("kinds = [\"secret\"]", "kinds = [\"secret\", \"payment\"]")
            .and("[upstream]\nallow_addresses = [\"127.0.0.0/8\"]\n")
            .and(&format!(
                "[[payments]]\nid = \"payu\"\nprocessor = \"payu\"\napi_base = \"{}/payu\"\npos_id = \"300746\"\n\
                 client_secret_file = \"{secret}\"\nsecond_key_file = \"{second}\"\n",
                double.url
            ));
        let fleet = Fleet::start(backing, change(setup)).await;
        Self { people, double, fleet, _files: files }
    }

    fn handler(&self) -> Handler {
        self.fleet.at(0).handler()
    }

    fn ada(&self) -> Visitor {
        self.fleet.at(0).visitor().signed_in(self.people.token("ada"))
    }

    fn ask(&self) -> Value {
        let mut ask = ask();
        ask["kind"] = "payment".into();
        ask.as_object_mut().unwrap().remove("secret");
        ask["subject"] = json!({"issuer": self.people.name(), "id": "ada"});
        ask["payment"] = json!({
            "provider": "payu", "amount": 2100, "currency": "pln", "description": "Raport", "reference": "order-7",
        });
        ask
    }

    /// Issues one, and goes to the double's page.
    async fn leave(&self, change: impl FnOnce(&mut Value)) -> (Issued, Url) {
        let mut ask = self.ask();
        change(&mut ask);
        let issued = self.handler().issue(&ask).await;
        let ada = self.ada();
        let page = ada.get(&issued.url).await;
        assert!(page.heading().contains("PLN"), "{}", page.text());
        let to = leave(&ada, &issued.url, &page).await;
        assert!(to.as_str().starts_with(&format!("{}/sim/payu/authorize/", self.double.url)), "{to}");
        (issued, to)
    }

    /// How the last order stands, as operators see it.
    async fn stage(&self, issued: &Issued) -> String {
        let states = json!([
            "pending",
            "in_progress",
            "completed",
            "claimed",
            "declined",
            "cancelled",
            "expired",
            "revoked"
        ]);
        let found = self
            .fleet
            .at(0)
            .operator()
            .post("v1/admin/elicitations/search", &json!({"states": states}))
            .await
            .ok();
        let found = found["elicitations"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["id"] == issued.id.as_str())
            .cloned();
        let orders = found.unwrap()["orders"].clone();
        orders.as_array().unwrap().last().unwrap()["stage"].as_str().unwrap().to_owned()
    }
}

#[rstest]
#[tokio::test]
async fn a_person_pays_at_payu_and_the_notification_completes_it(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let shop = Shop::start(backing, |setup| setup).await;
    let (issued, to) = shop.leave(|_| ()).await;
    let order = shop.double.order(&to).await;
    assert_eq!(
        (
            &order["totalAmount"],
            &order["currencyCode"],
            &order["additionalDescription"],
            &order["merchantPosId"]
        ),
        (&json!("2100"), &json!("PLN"), &json!("order-7"), &json!("300746"))
    );
    // What the published description of its API has for each; the double does not look.
    let products = json!([{"name": "Raport", "unitPrice": "2100", "quantity": "1"}]);
    assert_eq!(
        (&order["products"], &order["description"], &order["customerIp"]),
        (&products, &json!("Raport"), &json!("127.0.0.1"))
    );
    assert!(order["validityTime"].as_str().unwrap().parse::<u64>().unwrap() >= 600, "{order}");
    // The notification comes before the browser is back: nobody needs to come back.
    let back = shop.double.decide(&to, "approve").await;
    assert_eq!(shop.handler().state(&issued.id).await, "completed");
    let returned = shop.ada().get(&back).await;
    assert_eq!(
        (returned.status.as_u16(), returned.location()),
        (303, format!("/e/{}/done", issued.id).as_str())
    );
    let claimed = shop.fleet.at(1).handler().claim(&issued, None).await.ok();
    let receipt = &claimed["credential"]["payment"];
    assert_eq!(
        (
            &receipt["id"],
            &receipt["amount"],
            &receipt["currency"],
            &receipt["reference"],
            &receipt["livemode"]
        ),
        (
            &json!(to.path().rsplit('/').next().unwrap()),
            &json!(2100),
            &json!("pln"),
            &json!("order-7"),
            &json!(false)
        )
    );
}

#[tokio::test]
async fn who_rejects_at_payu_may_pay_by_another_order() {
    let shop = Shop::start(Backing::Embedded, |setup| setup).await;
    let (issued, to) = shop.leave(|_| ()).await;
    let back = shop.double.decide(&to, "reject").await;
    assert_eq!(shop.handler().state(&issued.id).await, "pending");
    let returned = shop.ada().get(&back).await;
    assert_eq!(returned.status, 303, "{}", returned.text());
    let (ada, page) = (shop.ada(), shop.ada().get(&issued.url).await);
    let again = leave(&ada, &issued.url, &page).await;
    assert_ne!(again.path(), to.path());
    shop.double.decide(&again, "approve").await;
    assert_eq!(shop.handler().state(&issued.id).await, "completed");
}

#[tokio::test]
async fn what_ends_is_cancelled_at_payu() {
    let shop = Shop::start(Backing::Embedded, |setup| setup).await;
    let (issued, to) = shop.leave(|_| ()).await;
    shop.handler().cancel(&issued.id).await.ok();
    eventually("cancelled there", async || {
        (shop.double.order(&to).await["status"] == "CANCELED").then_some(())
    })
    .await;
    eventually("closed here", async || (shop.stage(&issued).await == "closed").then_some(())).await;
    assert_eq!(shop.handler().claim(&issued, None).await.problem(), (409, "ended"));
}

#[tokio::test]
async fn r21_what_is_paid_at_payu_and_revoked_is_paid_back() {
    let shop = Shop::start(Backing::Embedded, |setup| setup).await;
    let (issued, to) = shop.leave(|_| ()).await;
    shop.double.decide(&to, "approve").await;
    assert_eq!(shop.stage(&issued).await, "paid");
    let operator = shop.fleet.at(0).operator();
    let path = format!("v1/admin/elicitations/{}/revoke", issued.id);
    let refused = operator.post(&path, &json!({"reason": "a mistake"})).await;
    assert_eq!(refused.problem(), (409, "refund_needed"));
    operator.post(&path, &json!({"reason": "a mistake", "refund": true})).await.ok();
    eventually("paid back", async || (shop.stage(&issued).await == "refunded").then_some(())).await;
    assert_eq!(shop.handler().claim(&issued, None).await.problem(), (409, "ended"));
    let page = shop.ada().get(&issued.url).await;
    assert_eq!(page.heading(), "Your payment has been paid back");
}

#[tokio::test]
async fn a_notification_counts_only_with_a_signature_of_ours() {
    let shop = Shop::start(Backing::Embedded, |setup| setup).await;
    let (_, to) = shop.leave(|_| ()).await;
    let id = to.path().rsplit('/').next().unwrap();
    let body = json!({"order": {"orderId": id, "status": "COMPLETED"}}).to_string();
    let hash = |algorithm: &str, key: &str| {
        let signed = format!("{body}{key}");
        match algorithm {
            "MD5" => hex(&<md5::Md5 as md5::Digest>::digest(signed)),
            _ => hex(&sidegate::domain::binding::sha256(signed.as_bytes())),
        }
    };
    let signed = |algorithm: &str, key: &str| {
        format!("sender=checkout;signature={};algorithm={algorithm};content=DOCUMENT", hash(algorithm, key))
    };
    let url = shop.fleet.at(0).url("webhooks/payu");
    let send = async |name: &'static str, header: Option<String>| {
        let request = client().post(&url).body(body.clone());
        let request = match header {
            Some(header) => request.header(name, header),
            None => request,
        };
        let reply = Handler::send(request).await;
        (reply.status.as_u16(), reply.body["code"].as_str().unwrap_or_default().to_owned())
    };
    let ok = (200, String::new());
    assert_eq!(send("OpenPayu-Signature", Some(signed("MD5", SECOND_KEY))).await, ok);
    assert_eq!(send("OpenPayu-Signature", Some(signed("SHA-256", SECOND_KEY))).await, ok);
    assert_eq!(send("X-OpenPayU-Signature", Some(signed("MD5", SECOND_KEY))).await, ok);
    let wrong = (400, "webhook_signature".to_owned());
    assert_eq!(send("OpenPayu-Signature", Some(signed("MD5", "another key"))).await, wrong);
    assert_eq!(send("OpenPayu-Signature", Some(signed("SHA-256", ""))).await, wrong);
    let missing = (400, "webhook_unsigned".to_owned());
    assert_eq!(send("OpenPayu-Signature", None).await, missing);
    assert_eq!(send("OpenPayu-Signature", Some(signed("none", SECOND_KEY))).await, missing);
}
