//! The pages without scripts: headers, forms, what is shown and what is not.

use reqwest::header::{COOKIE, SET_COOKIE};
use reqwest::{Method, StatusCode};
use rstest::rstest;
use serde_json::{Value, json};

use super::harness::issuer::Issuer;
use super::harness::{Page, Server, Setup, Visitor, ask};

const HEADERS: [(&str, &str); 9] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    ),
    ("referrer-policy", "same-origin"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-robots-tag", "noindex, nofollow"),
    ("content-type", "text/html; charset=utf-8"),
];

#[track_caller]
fn has_the_headers(page: &Page, what: &str) {
    for (name, value) in HEADERS {
        let found: Vec<_> = page.headers.get_all(name).iter().collect();
        assert_eq!(found, [value], "{what}: {name}");
    }
    let permissions = page.headers["permissions-policy"].to_str().unwrap();
    assert!(permissions.split(", ").all(|part| part.ends_with("=()")), "{what}: {permissions}");
    assert!(!page.headers.contains_key("strict-transport-security"), "{what}: only under TLS");
    assert!(!page.headers.contains_key("server"), "{what}");
}

#[tokio::test]
async fn r27_every_page_has_exactly_the_headers() {
    let issuer = Issuer::in_file();
    let setup = Setup::proxy(&issuer).with("SIDEGATE_LIFETIMES__CLAIM_BY", "1");
    let server = Server::start(setup).await;
    let mut ask = ask();
    let issue = async |ask: &mut Value, number: u32| {
        ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
        ask["operation"]["id"] = number.to_string().into();
        server.handler().issue(ask).await
    };
    let ada = server.visitor().signed_in(issuer.token("ada"));
    let bob = server.visitor().signed_in(issuer.token("bob"));
    let first = issue(&mut ask, 1).await;
    let to = |action: &str| format!("{}/{action}", first.url);
    let open = ada.get(&first.url).await;
    let form = open.filled(&[("api_key", "")]);
    let mut pages = vec![
        ("open", 200, open),
        ("sign in", 401, server.visitor().get(&first.url).await),
        ("wrong person", 403, bob.get(&first.url).await),
        ("field error", 422, ada.post(&to("secret"), &form).await),
        ("no token", 403, ada.post(&to("secret"), &[]).await),
        ("not found", 404, ada.get(&server.url("e/none")).await),
        ("unknown path", 404, ada.get(&server.url("nothing/here")).await),
        ("wrong method", 404, Visitor::send(ada.request(Method::DELETE, &first.url)).await),
        ("too large", 413, ada.post(&to("secret"), &[("api_key".to_owned(), "x".repeat(400_000))]).await),
    ];
    ada.complete(&first.url, "wk-1").await;
    pages.push(("done", 200, ada.get(&to("done")).await));
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    pages.push(("expired", 410, ada.get(&first.url).await));
    let second = issue(&mut ask, 2).await;
    ada.decline(&second.url).await;
    pages.push(("declined", 200, ada.get(&second.url).await));
    let third = issue(&mut ask, 3).await;
    server.handler().cancel(&third.id).await;
    pages.push(("cancelled", 410, ada.get(&third.url).await));
    let fourth = issue(&mut ask, 4).await;
    server.operator().revoke(&fourth.id).await;
    pages.push(("revoked", 410, ada.get(&fourth.url).await));
    for (what, status, page) in &pages {
        assert_eq!(page.status.as_u16(), *status, "{what}: {}", page.text());
        has_the_headers(page, what);
        forms_post(page, what);
        assert_eq!(page.attributes("html", "lang"), ["en"], "{what}");
        assert_eq!(page.texts("h1").len(), 1, "{what}");
        assert!(
            !page.html.contains("<style") && !page.html.contains("style=") && !page.html.contains("onclick"),
            "{what}"
        );
    }
}

#[track_caller]
fn forms_post(page: &Page, what: &str) {
    let forms = page.texts("form").len();
    assert_eq!(page.attributes("form", "method"), vec!["post"; forms], "{what}");
}

#[tokio::test]
async fn r47_every_form_is_a_post() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.texts("form").len(), 3, "send, decline, more time");
    forms_post(&page, "open");
    for action in page.attributes("form", "action") {
        assert!(action.starts_with('/'), "{action}");
    }
}

/// What a browser would not send from our own page.
#[tokio::test]
async fn r28_a_form_that_is_not_ours_is_refused() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
    let issued = server.handler().issue(&ask).await;
    ask["operation"]["id"] = "other".into();
    let elsewhere = server.handler().issue(&ask).await;
    let ada = server.visitor().signed_in(issuer.token("ada"));
    let mut renamed = issuer.claims("ada");
    renamed["email"] = "ada@elsewhere.example".into();
    let good = ada.get(&issued.url).await.filled(&[("api_key", "wk-1")]);
    let other_render = ada.get(&issued.url).await.proof();
    let other_elicitation = ada.get(&elsewhere.url).await.filled(&[("api_key", "wk-1")]);
    let value = |form: &[(String, String)], name: &str| {
        form.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone()).unwrap()
    };
    let replaced = |name: &str, value: String| {
        let mut form = good.clone();
        form.iter_mut().filter(|(field, _)| field == name).for_each(|(_, old)| old.clone_from(&value));
        form
    };
    let without = |name: &str| good.iter().filter(|(field, _)| field != name).cloned().collect::<Vec<_>>();
    let forms = [
        ("no token", without("_token")),
        ("no render", without("_render")),
        ("an empty token", replaced("_token", String::new())),
        ("another render's token", replaced("_token", value(&other_render, "_token"))),
        ("another elicitation's token", other_elicitation),
        ("a changed token", replaced("_token", value(&good, "_token").to_lowercase())),
    ];
    for action in ["secret", "decline", "extend"] {
        let url = format!("{}/{action}", issued.url);
        for (what, form) in &forms {
            let page = ada.post(&url, form).await;
            assert_eq!(page.status, 403, "{action}, {what}");
            assert_eq!(page.heading(), "That did not come from this page");
        }
        let send = async |headers: &[(&str, &str)]| {
            let request = ada.request(Method::POST, &url).form(&good);
            let request =
                headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            Visitor::send(request).await.status
        };
        let origin = server.base().origin().ascii_serialization();
        for headers in [
            vec![("Sec-Fetch-Site", "cross-site"), ("Origin", &*origin)],
            vec![("Sec-Fetch-Site", "same-site"), ("Origin", &*origin)],
            vec![("Sec-Fetch-Site", "none"), ("Origin", &*origin)],
            vec![("Sec-Fetch-Site", ""), ("Origin", &*origin)],
            vec![("Origin", "https://evil.example")],
            vec![("Origin", "null")],
            vec![("Referer", &*origin)],
            vec![],
        ] {
            assert_eq!(send(&headers).await, StatusCode::FORBIDDEN, "{action}, {headers:?}");
        }
    }
    assert_eq!(server.handler().state(&issued.id).await, "pending", "nothing has changed");
    assert_eq!(
        ada.post(&format!("{}/secret", issued.url), &good).await.status,
        303,
        "the good form still is"
    );
}

#[tokio::test]
async fn r28_another_sessions_token_is_refused() {
    // Two sources make two sessions of the same person: the session is part of what the token covers.
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
    let issued = server.handler().issue(&ask).await;
    ask["subject"]["id"] = "bob".into();
    let bobs = server.handler().issue(&ask).await;
    let ada = server.visitor().signed_in(issuer.token("ada"));
    let bob = server.visitor().signed_in(issuer.token("bob"));
    let from_bob = bob.get(&bobs.url).await.filled(&[("api_key", "x")]);
    assert_eq!(ada.post(&format!("{}/secret", issued.url), &from_bob).await.status, 403);
    let with_fetch_metadata = ada
        .request(Method::POST, &format!("{}/secret", issued.url))
        .header("Sec-Fetch-Site", "same-origin")
        .form(&ada.get(&issued.url).await.filled(&[("api_key", "x")]));
    assert_eq!(Visitor::send(with_fetch_metadata).await.status, 303);
}

#[tokio::test]
async fn r29_what_a_client_wrote_is_escaped_stripped_and_marked() {
    let server = Server::local().await;
    let hostile = "<script>alert(1)</script>\"'&<img src=x onerror=y>";
    let mut ask = ask();
    ask["message"] = format!("Pay\u{202e}lrig \u{2066}now\u{2069}\u{200f} {hostile}\u{200b}\u{e0041}").into();
    ask["operation"]["summary"] = format!("Sum\u{202d}mary {hostile}").into();
    ask["secret"]["fields"][0]["label"] = format!("Label \u{200e}{hostile}").into();
    ask["secret"]["fields"][0]["help"] = format!("Help {hostile}").into();
    let issued = server.handler().issue(&ask).await;
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.status, 200);
    assert!(page.texts("script").iter().all(String::is_empty) && page.texts("img").is_empty());
    assert_eq!(page.attributes("script", "src").len(), 1);
    for bidi in [
        '\u{202a}',
        '\u{202d}',
        '\u{202e}',
        '\u{2066}',
        '\u{2069}',
        '\u{200e}',
        '\u{200f}',
        '\u{61c}',
        '\u{200b}',
        '\u{e0041}',
    ] {
        assert!(!page.html.contains(bidi), "{bidi:?}");
    }
    let text = page.text();
    assert!(text.contains("Paylrig now <script>alert(1)</script>"), "{text}");
    assert_eq!(page.texts("figcaption"), ["Supplied by Local tools"]);
    assert!(page.texts("dl.facts .source").iter().any(|source| source == "Supplied by Local tools"));
    // The same in the error that names the field.
    let refused = server.visitor().submit(&issued.url, "").await;
    assert_eq!(refused.status, 422);
    assert!(refused.texts("script").iter().all(String::is_empty) && refused.texts("img").is_empty());
}

#[tokio::test]
async fn r31_the_same_form_sent_twice_at_once_gives_one_outcome_and_the_same_page() {
    let server = Server::local().await;
    for _ in 0..10 {
        let issued = server.handler().issue(&ask()).await;
        let form = server.visitor().get(&issued.url).await.filled(&[("api_key", "wk-1")]);
        let sends: Vec<_> = (0..8)
            .map(|_| {
                let (visitor, url, form) = (server.visitor(), format!("{}/secret", issued.url), form.clone());
                tokio::spawn(async move { visitor.post(&url, &form).await })
            })
            .collect();
        for send in sends {
            let page = send.await.unwrap();
            assert_eq!((page.status.as_u16(), page.location().ends_with("/done")), (303, true));
        }
        assert_eq!(server.visitor().get(&format!("{}/done", issued.url)).await.heading(), "Done");
        assert_eq!(server.handler().claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
        assert_eq!(server.handler().claim(&issued, None).await.problem(), (409, "already_claimed"));
    }
}

#[tokio::test]
async fn r32_no_page_sets_a_cookie() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": "ada"});
    let issued = server.handler().issue(&ask).await;
    let ada = server.visitor().signed_in(issuer.token("ada"));
    for visitor in [server.visitor(), ada.clone(), server.visitor().signed_in(issuer.token("bob"))] {
        for method in [Method::GET, Method::HEAD, Method::POST] {
            let request = visitor.request(method, &issued.url).header(COOKIE, "__Host-sidegate=stolen");
            assert!(!Visitor::send(request).await.headers.contains_key(SET_COOKIE));
        }
    }
    assert!(!ada.submit(&issued.url, "wk-1").await.headers.contains_key(SET_COOKIE));
}

#[tokio::test]
async fn r49_under_a_path_prefix_everything_works() {
    let server = Server::start(Setup::local().under("/gate")).await;
    let issued = server.handler().issue(&ask()).await;
    assert!(issued.url.starts_with(&server.url("e/")) && issued.url.contains("/gate/e/"), "{}", issued.url);
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.status, 200);
    let own = |path: &str| format!("{}{path}", server.base().origin().ascii_serialization());
    for action in page.attributes("form", "action") {
        assert!(action.starts_with("/gate/e/"), "{action}");
    }
    for asset in [page.attributes("link[rel=stylesheet]", "href"), page.attributes("script", "src")].concat()
    {
        assert!(asset.starts_with("/gate/static/"), "{asset}");
        let file = server.visitor().get(&own(&asset)).await;
        assert_eq!(file.status, 200);
        assert_eq!(file.headers["cache-control"], "public, max-age=31536000, immutable");
    }
    let sent = server.visitor().submit(&issued.url, "wk-1").await;
    assert!(sent.location().starts_with("/gate/e/"), "{}", sent.location());
    assert_eq!(server.visitor().get(&own(sent.location())).await.heading(), "Done");
    assert_eq!(server.handler().claim(&issued, None).await.status, 200);
    for outside in ["e/x", "v1/rounds", "static/style.css"] {
        assert_eq!(server.visitor().get(&own(&format!("/{outside}"))).await.status, 404);
    }
    assert_eq!(server.visitor().get(&own("/healthz")).await.status, 200);
}

#[rstest]
#[case::missing("", "Enter “WeatherCo API key”.")]
#[case::spaces("   ", "Enter “WeatherCo API key”.")]
#[case::too_short("wk-1", "“WeatherCo API key” must have at least 8 characters.")]
#[case::too_long("wk-123456789012345", "“WeatherCo API key” must have at most 16 characters.")]
#[case::pattern(
    "xx-12345678",
    "“WeatherCo API key” does not look right. Check that you copied all of it, and nothing else."
)]
#[case::line_break(
    "wk-1234\n5678",
    "“WeatherCo API key” has a character in it that cannot be typed, such as a line break. Copy it again without it."
)]
#[case::control(
    "wk-1234\u{7}5678",
    "“WeatherCo API key” has a character in it that cannot be typed, such as a line break. Copy it again without it."
)]
#[tokio::test]
async fn a_value_that_is_not_right_is_explained_and_never_sent_back(
    #[case] value: &str,
    #[case] sentence: &str,
) {
    let server = Server::local().await;
    let mut ask = ask();
    ask["secret"]["fields"] = json!([
        {"name": "api_key", "label": "WeatherCo API key", "minLength": 8, "maxLength": 16, "pattern": "wk-[0-9]+"},
        {"name": "region", "label": "Region", "format": "text"},
        {"name": "notes", "label": "Notes", "format": "multiline", "required": false},
    ]);
    let issued = server.handler().issue(&ask).await;
    let form = server.visitor().get(&issued.url).await;
    let form = form.filled(&[("api_key", value), ("region", "eu <west>"), ("notes", "\none\ntwo")]);
    let page = server.visitor().post(&format!("{}/secret", issued.url), &form).await;
    assert_eq!(page.status, 422);
    assert_eq!(page.texts(".errors a"), [sentence]);
    assert_eq!(page.attributes(".errors a", "href"), ["#field-api_key"]);
    assert_eq!(page.texts("#error-api_key"), [sentence]);
    assert_eq!(page.attributes("#field-api_key", "aria-invalid"), ["true"]);
    assert!(page.attributes("#field-api_key", "value").is_empty(), "a password is never sent back");
    assert!(value.trim().is_empty() || !page.html.contains(value.trim()));
    assert_eq!(page.attributes("#field-region", "value"), ["eu <west>"], "what is no password is kept");
    assert!(page.html.contains(">\n\none\ntwo</textarea>"), "a first line break survives: {}", page.html);
    assert_eq!(server.handler().state(&issued.id).await, "pending");
    let corrected = page.filled(&[("api_key", "wk-12345678"), ("region", "eu"), ("notes", "")]);
    let sent = server.visitor().post(&format!("{}/secret", issued.url), &corrected).await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let values = server.handler().claim(&issued, None).await.ok()["credential"]["values"].clone();
    assert_eq!((&values["api_key"], &values["region"]), (&json!("wk-12345678"), &json!("eu")));
}

#[tokio::test]
async fn white_space_around_a_pasted_secret_is_removed_and_said_so() {
    let server = Server::local().await;
    let mut ask = ask();
    ask["secret"]["fields"] = json!([
        {"name": "api_key", "label": "WeatherCo API key"},
        {"name": "key", "label": "Private key", "format": "multiline"},
    ]);
    let issued = server.handler().issue(&ask).await;
    let page = server.visitor().get(&issued.url).await;
    let form =
        page.filled(&[("api_key", " \twk-1 "), ("key", " -----BEGIN-----\r\nabc\r\n-----END-----\r\n")]);
    assert_eq!(server.visitor().post(&format!("{}/secret", issued.url), &form).await.status, 303);
    let done = server.visitor().get(&format!("{}/done", issued.url)).await;
    assert!(
        done.text().contains("Spaces around “WeatherCo API key” were not part of it and have been removed.")
    );
    let values = server.handler().claim(&issued, None).await.ok()["credential"]["values"].clone();
    assert_eq!(values["api_key"], "wk-1");
    assert_eq!(
        values["key"], " -----BEGIN-----\nabc\n-----END-----\n",
        "line breaks as on every system, nothing cut"
    );
}

#[tokio::test]
async fn declining_is_as_easy_as_sending_and_final() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let form = server.visitor().get(&issued.url).await.filled(&[("api_key", "wk-1")]);
    let declined = server.visitor().post(&format!("{}/decline", issued.url), &form).await;
    assert_eq!(declined.status, 303);
    let page = server.visitor().get(&format!("{}/done", issued.url)).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (200, "You declined"));
    let late = server.visitor().post(&format!("{}/secret", issued.url), &form).await;
    assert_eq!((late.status.as_u16(), late.heading().as_str()), (200, "You declined"));
    assert_eq!(server.handler().state(&issued.id).await, "declined");
}

#[tokio::test]
async fn more_time_is_given_up_to_the_longest_life() {
    let server = Server::start(Setup::local().with("SIDEGATE_LIFETIMES__LONGEST", "700")).await;
    let issued = server.handler().issue(&ask()).await;
    let path = format!("v1/elicitations/{}", issued.id);
    let before = server.handler().get(&path).await.ok();
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.texts("button[form=extend]"), ["Get more time"]);
    let extended = server.visitor().post(&format!("{}/extend", issued.url), &page.proof()).await;
    assert_eq!(extended.status, 303);
    let after = server.handler().get(&path).await.ok();
    assert!(after["expiresAt"].as_str() > before["expiresAt"].as_str());
    assert_eq!(after["state"], "pending");
    let page = server.visitor().get(&issued.url).await;
    assert!(page.texts("button[form=extend]").is_empty(), "it has all the time it may have");

    let short = Server::start(Setup::local().with("SIDEGATE_LIFETIMES__LONGEST", "60")).await;
    let issued = short.handler().issue(&ask()).await;
    let page = short.visitor().get(&issued.url).await;
    assert!(page.texts("button[form=extend]").is_empty(), "nothing is offered that cannot be given");
    let refused = short.visitor().post(&format!("{}/extend", issued.url), &page.proof()).await;
    assert_eq!((refused.status.as_u16(), refused.heading().as_str()), (409, "There is no more time to give"));
}

#[tokio::test]
async fn a_form_that_comes_after_the_end_says_what_happened() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let form = server.visitor().get(&issued.url).await.filled(&[("api_key", "wk-1")]);
    server.operator().revoke(&issued.id).await.ok();
    let page = server.visitor().post(&format!("{}/secret", issued.url), &form).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (410, "This link has been withdrawn"));
    assert!(!page.html.contains("lost laptop"));
}
