//! The pages in Chromium: with and without scripts, by keyboard, in every look.

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::browser::run;
use super::harness::issuer::Issuer;
use super::harness::provider::Provider;
use super::harness::{Server, Setup, ask};

#[rstest]
#[case::with_script(true)]
#[case::without(false)]
#[tokio::test]
async fn r30_a_secret_is_entered_by_keyboard_alone(#[case] script: bool) {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let seen = run("enter", &json!({"link": issued.url, "script": script, "value": "wk-12345"})).await;
    assert_eq!(seen["asked"], "Local tools needs a secret from you");
    assert_eq!(seen["heading"], "Done");
    assert_eq!(seen["complaints"], json!([]));
    assert_eq!(server.handler().claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-12345");
}

#[rstest]
#[case::with_script(true)]
#[case::without(false)]
#[tokio::test]
async fn r30_a_mistake_is_explained_and_mended(#[case] script: bool) {
    let server = Server::local().await;
    let mut ask = ask();
    ask["secret"]["fields"][0]["pattern"] = "wk-[0-9]+".into();
    let issued = server.handler().issue(&ask).await;
    let input = json!({"link": issued.url, "script": script, "wrong": "hello", "right": "wk-1"});
    let seen = run("mistake", &input).await;
    let sentence =
        "“WeatherCo API key” does not look right. Check that you copied all of it, and nothing else.";
    assert_eq!((&seen["complaint"], &seen["focused"]), (&json!(sentence), &json!("errors")));
    assert_eq!(
        (&seen["target"], &seen["kept"]),
        (&json!("api_key"), &json!("")),
        "a password is not sent back"
    );
    assert_eq!((&seen["heading"], &seen["complaints"]), (&json!("Done"), &json!([])));
}

#[rstest]
#[case::with_script(true)]
#[case::without(false)]
#[tokio::test]
async fn r30_decline_and_more_time_work(#[case] script: bool) {
    let server = Server::local().await;
    let mut ask = ask();
    ask["expiresIn"] = 1200.into();
    let issued = server.handler().issue(&ask).await;
    let seen = run("press", &json!({"link": issued.url, "script": script, "button": "Get more time"})).await;
    assert_ne!(seen["before"], seen["after"]);
    assert_eq!(seen["complaints"], json!([]));
    let seen = run("press", &json!({"link": issued.url, "script": script, "button": "Decline"})).await;
    assert_eq!((&seen["heading"], &seen["complaints"]), (&json!("You declined"), &json!([])));
    assert_eq!(server.handler().state(&issued.id).await, "declined");
}

#[tokio::test]
async fn r31_a_double_click_sends_one_form() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let seen = run("double", &json!({"link": issued.url, "value": "wk-1"})).await;
    assert_eq!(seen, json!({"posts": 1, "heading": "Done", "complaints": []}));
}

#[tokio::test]
async fn a_page_that_comes_back_keeps_nothing() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let other = server.handler().issue(&ask()).await;
    let input = json!({"link": issued.url, "elsewhere": other.url, "value": "wk-1"});
    assert_eq!(run("back", &input).await, json!({"restored": "", "cached": "", "complaints": []}));
}

#[tokio::test]
async fn the_page_counts_down_and_says_when_the_time_is_up() {
    let server = Server::local().await;
    let mut ask = ask();
    ask["expiresIn"] = 10.into();
    let issued = server.handler().issue(&ask).await;
    let over = "The time is up. Go back and ask again to get a new link.";
    let seen = run("countdown", &json!({"link": issued.url, "over": over})).await;
    assert_eq!(seen["complaints"], json!([]));
}

/// Pictures of all pages are left in `target/pictures`, for people to look at.
#[tokio::test]
async fn r27_r30_no_page_has_a_fault_that_axe_the_console_or_a_small_screen_finds() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let handler = server.handler();
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada.lovelace"});
    let issue = async |id: &str, fields: Value| {
        let mut ask = ask.clone();
        ask["operation"]["id"] = id.into();
        ask["secret"]["fields"] = fields;
        handler.issue(&ask).await
    };
    let one = || json!([{"name": "api_key", "label": "WeatherCo API key", "help": "You find it at weather.example under Account, API keys."}]);
    let many = json!([
        {"name": "api_key", "label": "API key", "pattern": "wk-[0-9]+", "help": "Begins with wk-."},
        {"name": "region", "label": "Region", "format": "text", "required": false},
        {"name": "certificate", "label": "Client certificate", "format": "multiline", "required": false},
    ]);
    let long = json!([{"name": "api_key", "label": "W".repeat(100)}]);
    let (open, form, long) =
        (issue("open", one()).await, issue("form", many).await, issue("long", long).await);
    let token = issuer.token("ada.lovelace");
    let ada = server.visitor().signed_in(&token);
    let header = json!({Issuer::HEADER: token});
    let stranger = json!({Issuer::HEADER: issuer.token("bob")});
    let mut pages = vec![
        json!({"name": "open", "link": open.url, "header": header}),
        json!({"name": "error", "link": form.url, "header": header, "invalid": "hello"}),
        json!({"name": "long", "link": long.url, "header": header}),
        json!({"name": "sign-in", "link": open.url}),
        json!({"name": "wrong-person", "link": open.url, "header": stranger}),
        json!({"name": "not-found", "link": server.url("e/unknown"), "header": header}),
    ];
    for end in ["done", "collected", "declined", "cancelled", "revoked"] {
        let issued = issue(end, one()).await;
        match end {
            "declined" => drop(ada.decline(&issued.url).await),
            "cancelled" => drop(handler.cancel(&issued.id).await),
            "revoked" => drop(server.operator().revoke(&issued.id).await),
            _ => ada.complete(&issued.url, " wk-1 ").await,
        }
        if end == "collected" {
            handler.claim(&issued, None).await.ok();
        }
        pages.push(json!({"name": end, "link": issued.url, "header": header}));
    }
    let pictures = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pictures");
    let seen = run("survey", &json!({"pages": pages, "pictures": pictures})).await;
    assert_eq!(seen["findings"], json!([]), "{:#}", seen["findings"]);
    assert_eq!(seen["looked"], pages.len() * 8);

    let local = Server::local().await;
    let issued = local.handler().issue(&super::harness::ask()).await;
    let away = json!([{"name": "other-computer", "link": issued.url, "header": {"Via": "1.1 tunnel"}}]);
    let seen = run("survey", &json!({"pages": away, "pictures": pictures})).await;
    assert_eq!(seen["findings"], json!([]), "{:#}", seen["findings"]);
}

/// The same for the pages of those who sign in, are handed off, or take a code back.
#[tokio::test]
async fn r27_r30_no_page_on_the_way_to_a_sign_in_has_a_fault_either() {
    let pictures = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pictures");
    let provider = Provider::start().await;
    let server = Server::start(Setup::oidc(provider.url(), "")).await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": provider.url(), "id": "ada"});
    let issued = server.handler().issue(&ask).await;
    let sign_in = async |person: &str| {
        let visitor = server.visitor();
        let page = visitor.get(&issued.url).await;
        let query = visitor.leave(&issued.url, &page).await;
        let asked: std::collections::BTreeMap<_, _> = query.query_pairs().into_owned().collect();
        provider.give_claims(&provider.claims(person, &asked["nonce"]));
        let back = format!("{}?code=good&state={}", asked["redirect_uri"], asked["state"]);
        assert_eq!(visitor.get(&back).await.status, 303);
        let jar = visitor.cookies();
        let cookies: Vec<_> = jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        json!({"Cookie": cookies.join("; ")})
    };
    let (ada, bob) = (sign_in("ada").await, sign_in("bob").await);
    let mut pages = vec![
        json!({"name": "sign-in-here", "link": issued.url}),
        json!({"name": "signed-in", "link": issued.url, "header": ada}),
        json!({"name": "signed-in-wrong-person", "link": issued.url, "header": bob}),
        json!({"name": "sign-in-stray", "link": server.url("signin/staff/callback?code=a&state=b")}),
    ];
    for what in ["failed", "declined", "unavailable"] {
        let link = format!("{}/sign-in/{what}", issued.url);
        pages.push(json!({"name": format!("sign-in-{what}"), "link": link}));
    }
    let seen = run("survey", &json!({"pages": pages, "pictures": pictures})).await;
    assert_eq!(seen["findings"], json!([]), "{:#}", seen["findings"]);

    let section = "[identity.staff]\nsource = \"confirm\"\nissuer = \"local\"\n";
    let server = Server::start(Setup::configured(section)).await;
    ask["subject"] = json!({"issuer": "local", "id": "ada"});
    let open = server.handler().issue(&ask).await;
    let done = server.handler().issue(&ask).await;
    let visitor = server.visitor();
    assert_eq!(visitor.submit(&done.url, "wk-1").await.status, 200);
    let cookies: Vec<_> = visitor.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let pages = json!([
        {"name": "anybody", "link": open.url},
        {"name": "code", "link": done.url, "header": {"Cookie": cookies.join("; ")}},
        {"name": "answered-elsewhere", "link": done.url},
    ]);
    let seen = run("survey", &json!({"pages": pages, "pictures": pictures})).await;
    assert_eq!(seen["findings"], json!([]), "{:#}", seen["findings"]);
}
