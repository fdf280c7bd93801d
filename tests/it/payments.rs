//! Payments: over HTTP, at processors of the tests.

use reqwest::Url;
use rstest::rstest;
use serde_json::{Value, json};

use super::harness::handler::Issued;
use super::harness::issuer::Issuer;
use super::harness::till::{PAYPAL_SECRET, STRIPE_KEY, Till, WEBHOOK_ID, WEBHOOK_SECRET};
use super::harness::{Backing, Fleet, Page, Server, Setup, Visitor, ask, eventually};

/// A service whose people pay at a processor.
pub(crate) struct Shop {
    pub(crate) people: Issuer,
    pub(crate) till: Till,
    pub(crate) fleet: Fleet,
    processor: Kind,
    _files: Vec<tempfile::NamedTempFile>,
}

/// Which processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stripe,
    PayPal,
}

impl Kind {
    const fn id(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::PayPal => "paypal",
        }
    }
}

impl Shop {
    pub(crate) async fn start(processor: Kind, backing: Backing) -> Self {
        Self::with(processor, backing, "", |setup| setup).await
    }

    pub(crate) async fn stripe() -> Self {
        Self::start(Kind::Stripe, Backing::Embedded).await
    }

    /// `more` lines of the processor's section.
    pub(crate) async fn with(
        processor: Kind,
        backing: Backing,
        more: &str,
        change: impl FnOnce(Setup) -> Setup,
    ) -> Self {
        let people = Issuer::in_file();
        let file = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            file
        };
        let (mut till, files, lines) = match processor {
            Kind::Stripe => {
                let files = vec![file(STRIPE_KEY), file(WEBHOOK_SECRET)];
                let lines = format!(
                    "processor = \"stripe\"\nsecret_key_file = \"{}\"\nwebhook_secret_files = [\"{}\"]",
                    files[0].path().display(),
                    files[1].path().display()
                );
                (Till::stripe().await, files, lines)
            }
            Kind::PayPal => {
                let files = vec![file(PAYPAL_SECRET)];
                let lines = format!(
                    "processor = \"paypal\"\nclient_id = \"sidegate\"\nclient_secret_file = \"{}\"\nwebhook_id = \"{WEBHOOK_ID}\"",
                    files[0].path().display()
                );
                (Till::paypal().await, files, lines)
            }
        };
        let id = processor.id();
        let setup = Setup::proxy(&people)
            .replacing("kinds = [\"secret\"]", "kinds = [\"secret\", \"payment\"]")
            .and("[upstream]\nallow_addresses = [\"127.0.0.0/8\"]\n")
            .and(&format!("[[payments]]\nid = \"{id}\"\napi_base = \"{}\"\n{lines}\n{more}\n", till.url()));
        let fleet = Fleet::start(backing, change(setup)).await;
        let webhooks = fleet.at(1).url(&format!("webhooks/{id}"));
        match processor {
            Kind::Stripe => till.serve_stripe(&webhooks).await,
            Kind::PayPal => till.serve_paypal(&webhooks).await,
        }
        Self { people, till, fleet, processor, _files: files }
    }

    pub(crate) fn server(&self) -> &Server {
        self.fleet.at(0)
    }

    pub(crate) fn person(&self, name: &str) -> Visitor {
        self.server().visitor().signed_in(self.people.token(name))
    }

    pub(crate) fn ask(&self, more: &Value) -> Value {
        let mut ask = ask();
        ask["kind"] = "payment".into();
        ask.as_object_mut().unwrap().remove("secret");
        ask["subject"] = json!({"issuer": self.people.name(), "id": "ada"});
        ask["payment"] = json!({
            "provider": self.processor.id(), "amount": 1999, "currency": "usd",
            "description": "Market report 2026", "reference": "order-42",
        });
        for (name, value) in more.as_object().unwrap() {
            ask["payment"][name] = value.clone();
        }
        ask
    }

    pub(crate) async fn issue(&self) -> Issued {
        self.server().handler().issue(&self.ask(&json!({}))).await
    }

    /// Presses Pay: where the browser goes, and the processor's name for the order.
    pub(crate) async fn leave(&mut self, person: &Visitor, link: &str) -> (Url, String) {
        let page = person.get(link).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let to = leave(person, link, &page).await;
        (to, self.till.orders().await.pop().unwrap())
    }

    /// Where the browser comes back to.
    pub(crate) fn back(&self, issued: &Issued) -> String {
        self.server().url(&format!("payment/{}/return", issued.id))
    }
}

pub(crate) async fn leave(person: &Visitor, link: &str, page: &Page) -> Url {
    let begun = person.post(&format!("{link}/pay"), &page.proof()).await;
    assert_eq!(begun.status, 303, "{}", begun.text());
    let base = Url::parse(link).unwrap();
    let leaves = person.get(base.join(begun.location()).unwrap().as_str()).await;
    assert_eq!(leaves.status, 200, "{} {}", begun.location(), leaves.text());
    Url::parse(&leaves.attributes("a.button", "href").remove(0)).unwrap()
}

#[rstest]
#[tokio::test]
async fn a_person_pays_and_the_handler_gets_the_receipt_once(
    #[values(Kind::Stripe, Kind::PayPal)] kind: Kind,
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let mut shop = Shop::start(kind, backing).await;
    let issued = shop.issue().await;
    let ada = shop.person("ada");
    let page = ada.get(&issued.url).await;
    assert_eq!(page.heading(), "Weather tools asks you to pay $19.99");
    assert!(
        page.text().contains("Market report 2026") && page.text().contains("test mode"),
        "{}",
        page.text()
    );
    let (to, order) = shop.leave(&ada, &issued.url).await;
    assert!(to.as_str().starts_with(shop.till.url()), "{to}");
    // Back without having paid: it stays as it is.
    let back = ada.get(&shop.back(&issued)).await;
    assert_eq!(
        (back.status.as_u16(), back.location()),
        (303, format!("/e/{}/payment/not-paid", issued.id).as_str())
    );
    let again = ada.get(&format!("{}/payment/not-paid", issued.url)).await;
    assert!(again.text().contains("without having paid"), "{}", again.text());
    assert_eq!(shop.server().handler().state(&issued.id).await, "in_progress");

    shop.till.pay(&order, "now").await;
    let back = ada.get(&shop.back(&issued)).await;
    assert_eq!(
        (back.status.as_u16(), back.location()),
        (303, format!("/e/{}/done", issued.id).as_str()),
        "{}",
        back.text()
    );
    let done = ada.get(&format!("{}/done", issued.url)).await;
    assert!(done.text().contains("You have paid $19.99."), "{}", done.text());
    let claimed = shop.fleet.at(1).handler().claim(&issued, None).await.ok();
    let receipt = &claimed["credential"]["payment"];
    assert_eq!(
        (
            &receipt["provider"],
            &receipt["reference"],
            &receipt["amount"],
            &receipt["currency"],
            &receipt["livemode"]
        ),
        (&json!(kind.id()), &json!("order-42"), &json!(1999), &json!("usd"), &json!(false))
    );
    assert!(receipt["id"].is_string() && receipt["paidAt"].is_string(), "{receipt}");
    assert_eq!(shop.server().handler().claim(&issued, None).await.problem(), (409, "already_claimed"));
    assert_eq!(shop.till.money("usd").await, (1999, 0));
    assert_eq!(shop.till.violations().await, Vec::<Value>::new());
}

#[tokio::test]
async fn on_this_computer_alone_a_page_of_ours_plays_the_processor() {
    let server = Server::local().await;
    let mut asked = ask();
    asked["kind"] = "payment".into();
    asked.as_object_mut().unwrap().remove("secret");
    asked["payment"] = json!({
        "provider": "manual", "amount": 500, "currency": "JPY", "description": "Tea", "reference": "tea-1",
    });
    let handler = server.handler();
    let (paid, refused) = (handler.issue(&asked).await, handler.issue(&asked).await);
    let visitor = server.visitor();
    for (issued, pays) in [(&paid, "yes"), (&refused, "no")] {
        let page = visitor.get(&issued.url).await;
        assert_eq!(page.heading(), "Local tools asks you to pay ¥500");
        let to = leave(&visitor, &issued.url, &page).await;
        let till = visitor.get(to.as_str()).await;
        assert_eq!(till.heading(), "This is a test: nobody pays");
        // Not without the page's own token.
        assert_eq!(visitor.post(to.as_str(), &[("pays".to_owned(), "yes".to_owned())]).await.status, 403);
        let back = visitor.post(to.as_str(), &till.filled(&[("pays", pays)])).await;
        assert_eq!(back.status, 303, "{}", back.text());
        assert_eq!(visitor.get(back.location()).await.status.as_u16(), if pays == "yes" { 303 } else { 200 });
    }
    assert_eq!(handler.claim(&paid, None).await.ok()["credential"]["payment"]["amount"], 500);
    assert_eq!(handler.state(&refused.id).await, "in_progress");
    // The sweep asks too.
    eventually("may pay again", async || (handler.state(&refused.id).await == "pending").then_some(())).await;
}
