//! What may be asked for in the way of payments, and which configurations take them.

use std::fmt::Write as _;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use rstest::rstest;
use serde_json::json;

use super::harness::{Backing, Handler, Reply, Server, Setup, ask, sidegate};
use super::payments::{Kind, Shop, leave};

/// The good body as text, so that a number may be written in any way.
fn with(shop: &Shop, name: &str, written: &str) -> String {
    let marked = shop.ask(&json!({name: "WRITTEN"})).to_string();
    marked.replace("\"WRITTEN\"", written)
}

async fn issue(shop: &Shop, body: String) -> Reply {
    let request = shop.server().handler().request(Method::POST, "v1/elicitations");
    Handler::send(request.header(CONTENT_TYPE, "application/json").body(body)).await
}

/// Nothing is rounded, cut or guessed: the field is named, and the value never repeated.
#[tokio::test]
async fn what_is_no_amount_of_money_is_refused_by_the_name_of_its_field() {
    let shop = Shop::stripe().await;
    let long = "\"".to_owned() + &"d7431".repeat(25) + "\"";
    let cases = [
        ("a float", "amount", "7431.99", "7431"),
        ("a float that is whole", "amount", "7431.0", "7431"),
        ("with an exponent", "amount", "7.431e3", "7.431"),
        ("a text", "amount", "\"7431\"", "7431"),
        ("negative", "amount", "-7431", "7431"),
        ("zero", "amount", "0", "\"0\""),
        ("nothing", "amount", "null", "null"),
        ("more than Stripe takes", "amount", "100007431", "100007431"),
        ("more than is exact", "amount", "9007199254740993", "900719925474"),
        ("more than 64 bits", "amount", "74310000000000000000000", "7431000"),
        ("no currency", "currency", "\"zqz\"", "zqz"),
        ("a number", "currency", "7431", "7431"),
        ("a sign", "currency", "\"\u{20ac}\"", "\u{20ac}"),
        ("of four letters", "currency", "\"zusd\"", "zusd"),
        ("empty", "currency", "\"\"", "\"\""),
        ("a control character", "description", "\"d7431\\u0007\"", "d7431"),
        ("two lines", "description", "\"d7431\\nx\"", "d7431"),
        ("hidden characters alone", "description", "\"\\u202e\\u2066\\u200f\"", "\u{202e}"),
        ("too long", "description", &long, "d7431"),
        ("not ASCII", "reference", "\"r7431\u{f6}\"", "7431"),
        ("empty", "reference", "\" \"", "\" \""),
        ("too long", "reference", &long, "d7431"),
        ("unknown", "provider", "\"p7431\"", "7431"),
    ];
    for (what, name, written, value) in cases {
        let reply = issue(&shop, with(&shop, name, written)).await;
        assert_eq!(reply.problem(), (422, "invalid_request"), "{name}, {what}: {reply:?}");
        assert_eq!(reply.text_at("/field"), format!("payment.{name}"), "{what}");
        assert!(!reply.text.contains(value), "{name}, {what}: {}", reply.text);
    }
    // Of currencies with three decimals Stripe takes amounts alone whose last digit is 0.
    for (amount, currency, status) in [
        (18_601, "kwd", 422),
        (18_600, "kwd", 201),
        (18_605, "BHD", 422),
        (500, "jpy", 201),
        (1, "isk", 201),
        (99_999_999, "usd", 201),
        (999_999, "isk", 201),
        (1_000_000, "isk", 422),
    ] {
        let ask = shop.ask(&json!({"amount": amount, "currency": currency}));
        let reply = shop.server().handler().post("v1/elicitations", &ask).await;
        assert_eq!(reply.status, status, "{amount} {currency}: {reply:?}");
        if status == 422 {
            assert_eq!(reply.text_at("/field"), "payment.amount");
            assert!(!reply.text.contains(&amount.to_string()), "{}", reply.text);
        }
    }
}

/// The page writes the amount as people do, and the processor is told it in its own units.
#[rstest]
#[case::yen(500, "jpy", "¥500", "500")]
#[case::dinar(18_600, "KWD", "KWD\u{a0}18.600", "18600")]
#[case::krona(50, "ISK", "ISK\u{a0}50", "5000")]
#[case::euro(125_000, "eur", "€1,250.00", "125000")]
#[tokio::test]
async fn an_amount_is_shown_and_sent_in_the_units_of_its_currency(
    #[case] amount: u64,
    #[case] currency: &str,
    #[case] shown: &str,
    #[case] sent: &str,
) {
    let mut shop = Shop::stripe().await;
    let ask = shop.ask(&json!({"amount": amount, "currency": currency}));
    let issued = shop.server().handler().issue(&ask).await;
    let ada = shop.person("ada");
    let page = ada.get(&issued.url).await;
    assert!(
        page.texts("h1").concat().replace('\u{a0}', " ").contains(&shown.replace('\u{a0}', " ")),
        "{}",
        page.text()
    );
    let (_, order) = shop.leave(&ada, &issued.url).await;
    let asked = shop.till.log("POST", "/v1/checkout/sessions").await.remove(0);
    assert_eq!(asked["params"]["line_items"][0]["price_data"]["unit_amount"], sent);
    shop.till.pay(&order, "now").await;
    shop.becomes(&issued, "completed").await;
    let receipt = shop.server().handler().claim(&issued, None).await.ok()["credential"]["payment"].clone();
    assert_eq!((&receipt["amount"], &receipt["currency"]), (&json!(amount), &json!(currency.to_lowercase())));
    shop.fits().await;
}

/// Characters that make a text read as another are taken out, on our page and at the processor; other scripts stay.
#[tokio::test]
async fn a_description_reads_as_it_is_written() {
    let mut shop = Shop::stripe().await;
    let description = "Bericht \u{202e}6202\u{2066} für Zoë \u{200f}– 市場報告 🧾\u{feff}";
    let issued = shop.server().handler().issue(&shop.ask(&json!({"description": description}))).await;
    let ada = shop.person("ada");
    let page = ada.get(&issued.url).await;
    let plain = "Bericht 6202 für Zoë – 市場報告 🧾";
    assert_eq!(page.texts("dl.price q"), [plain]);
    shop.leave(&ada, &issued.url).await;
    let asked = shop.till.log("POST", "/v1/checkout/sessions").await.remove(0);
    assert_eq!(asked["params"]["line_items"][0]["price_data"]["product_data"]["name"], plain);
    // A caller's text comes nowhere near a statement of account.
    assert!(!asked["params"].to_string().contains("statement_descriptor"));
    // Nor does a caller say where the browser comes back to.
    let returns =
        ["success_url", "cancel_url"].map(|name| asked["params"][name].as_str().unwrap().to_owned());
    assert_eq!(returns, [shop.back(&issued), format!("{}/payment/not-paid", issued.url)]);
    for name in ["returnUrl", "return_url", "success_url"] {
        let reply = issue(&shop, with(&shop, name, "\"https://elsewhere.example/\"")).await;
        assert_eq!((reply.status.as_u16(), reply.text.contains("elsewhere")), (422, false), "{reply:?}");
    }
    shop.fits().await;
}

/// A client's `providers` are the processors too that it may ask for.
#[tokio::test]
async fn r07_a_client_is_paid_through_the_processors_of_its_list_alone() {
    for (list, status) in [("[\"other\"]", 422), ("[]", 422), ("[\"other\", \"stripe\"]", 201)] {
        let other = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(other.path(), "sk_test_other").unwrap();
        let kinds = "kinds = [\"secret\", \"payment\"]";
        let path = other.path().display();
        let shop = Shop::with(Kind::Stripe, Backing::Embedded, "", |setup| {
            setup.replacing(kinds, &format!("{kinds}\nproviders = {list}")).and(&format!(
                "[[payments]]\nid = \"other\"\nprocessor = \"stripe\"\nsecret_key_file = \"{path}\"\n\
                 webhook_secret_files = [\"{path}\"]\n"
            ))
        })
        .await;
        let reply = shop.server().handler().post("v1/elicitations", &shop.ask(&json!({}))).await;
        assert_eq!(reply.status, status, "{list}");
        if status == 422 {
            assert_eq!(reply.text_at("/field"), "payment.provider");
        }
    }
}

/// `payment` is none of the kinds of `travel`, and for a source that finds out nobody it cannot be.
#[tokio::test]
async fn who_may_not_ask_for_payments_is_refused() {
    let shop = Shop::stripe().await;
    let reply = shop.server().other_handler().post("v1/elicitations", &shop.ask(&json!({}))).await;
    assert_eq!(reply.problem(), (403, "kind_not_allowed"));

    let section = "[identity.staff]\nsource = \"confirm\"\nissuer = \"local\"\n\
                   [[payments]]\nid = \"manual\"\nprocessor = \"manual\"\n";
    // Without `kinds` it may ask for all that its source allows.
    let setup = Setup::configured(section).replacing("kinds = [\"secret\"]\n", "");
    let server = Server::start(setup).await;
    let mut asked = ask();
    asked["subject"] = json!({"issuer": "local", "id": "ada"});
    assert_eq!(server.handler().post("v1/elicitations", &asked).await.status, 201);
    asked["kind"] = "payment".into();
    asked.as_object_mut().unwrap().remove("secret");
    asked["payment"] = json!({
        "provider": "manual", "amount": 500, "currency": "jpy", "description": "Tea", "reference": "tea-1",
    });
    assert_eq!(server.handler().post("v1/elicitations", &asked).await.problem(), (403, "kind_not_allowed"));
}

/// What `check` and `serve` say of a configuration: exit code and words.
async fn refused(server: &str, client: &str, identity: &str, payments: &str) {
    let (sentence, payments) = payments.split_once('\n').unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("key", "sk_test_x"), ("secret", "whsec_x"), ("empty", "\n")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let digest = sidegate::api_key::KeyDigest::of_text("sgk_any");
    let mut text = format!(
        "[server]\n{server}\n[[clients]]\nid = \"a\"\nname = \"A\"\nidentity = \"b\"\napi_key_digests = [\"{digest}\"]\n{client}\n"
    );
    let _ = write!(text, "[identity.b]\n{identity}\n[[payments]]\nid = \"p\"\n{payments}\n");
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    for command in ["serve", "check"] {
        let mut run = sidegate();
        run.args([command, "--config", "s.toml", "--data", "."]).current_dir(folder.path());
        let output = tokio::time::timeout(std::time::Duration::from_secs(20), run.output()).await;
        let output = output.expect("it does not start").unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains(sentence), "{command}: {said}");
    }
}

#[rstest]
#[case::no_webhook_secret(
    "`webhook_secret_files` is needed: without a secret anybody could send webhooks
processor = \"stripe\"\nsecret_key_file = \"key\""
)]
#[case::an_empty_list(
    "`webhook_secret_files` is needed
processor = \"stripe\"\nsecret_key_file = \"key\"\nwebhook_secret_files = []"
)]
#[case::an_empty_secret(
    "webhook_secret_files
processor = \"stripe\"\nsecret_key_file = \"key\"\nwebhook_secret_files = [\"secret\", \"empty\"]"
)]
#[case::no_such_secret(
    "webhook_secret_files
processor = \"stripe\"\nsecret_key_file = \"key\"\nwebhook_secret_files = [\"nowhere\"]"
)]
#[case::no_key("`secret_key_file` is needed\nprocessor = \"stripe\"\nwebhook_secret_files = [\"secret\"]")]
#[case::paypal_without_webhook_id(
    "`webhook_id` is needed
processor = \"paypal\"\nclient_id = \"c\"\nclient_secret_file = \"secret\""
)]
#[case::anothers_key(
    "`webhook_id` does not count for this `processor`
processor = \"stripe\"\nsecret_key_file = \"key\"\nwebhook_secret_files = [\"secret\"]\nwebhook_id = \"WH\""
)]
#[case::unencrypted(
    "`api_base` must be an https URL
processor = \"stripe\"\nsecret_key_file = \"key\"\nwebhook_secret_files = [\"secret\"]\napi_base = \"http://api.example\""
)]
#[tokio::test]
async fn r38_a_processor_that_cannot_be_right_stops_the_start(#[case] payments: &str) {
    refused("", "", "source = \"loopback\"", payments).await;
}

#[rstest]
#[case::where_anybody_comes(
    "listen = \"0.0.0.0:0\"\npublic_url = \"https://gate.example\"\ntrusted_proxies = [\"10.0.0.0/8\"]"
)]
#[case::behind_a_proxy(
    "listen = \"127.0.0.1:0\"\npublic_url = \"https://gate.example\"\ntrusted_proxies = [\"127.0.0.1/32\"]"
)]
#[tokio::test]
async fn r38_the_processor_where_nobody_pays_is_for_loopback_alone(#[case] server: &str) {
    let identity = "source = \"proxy\"\nheader = \"X-T\"\nissuer = \"https://i.example\"\naudience = \"a\"\n\
                    jwks_url = \"https://i.example/keys\"";
    refused(server, "", identity, "is `manual`, where nobody pays\nprocessor = \"manual\"").await;
}

#[tokio::test]
async fn r38_payments_for_nobody_in_particular_stop_the_start() {
    let payments = "but its identity source is `confirm`, which finds out nobody\nprocessor = \"manual\"";
    let client = "kinds = [\"secret\", \"payment\"]";
    refused("", client, "source = \"confirm\"\nissuer = \"local\"", payments).await;
}

/// The page that plays the processor pays nothing back and takes nothing twice.
#[tokio::test]
async fn at_the_test_page_what_ended_is_not_paid() {
    let server = Server::local().await;
    let mut asked = ask();
    asked["kind"] = "payment".into();
    asked.as_object_mut().unwrap().remove("secret");
    asked["payment"] = json!({
        "provider": "manual", "amount": 500, "currency": "JPY", "description": "Tea", "reference": "tea-1",
    });
    let (handler, visitor) = (server.handler(), server.visitor());
    let issued = handler.issue(&asked).await;
    let to = leave(&visitor, &issued.url, &visitor.get(&issued.url).await).await;
    let till = visitor.get(to.as_str()).await;
    assert_eq!(handler.cancel(&issued.id).await.status, 200);
    let closed = async || (visitor.get(to.as_str()).await.status != 200).then_some(());
    super::harness::eventually("it is closed", closed).await;
    assert_ne!(visitor.post(to.as_str(), &till.filled(&[("pays", "yes")])).await.status, 303);
    assert_eq!(handler.state(&issued.id).await, "cancelled");
    assert_eq!(handler.claim(&issued, None).await.problem(), (409, "ended"));
}
