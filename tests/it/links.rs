//! The link and the person: what a link tells, and to whom.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use reqwest::header::HOST;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::harness::issuer::Issuer;
use super::harness::{Handler, Page, Server, Setup, Visitor, ask};

const SUMMARY: &str = "SUMMARY-canary";
const MESSAGE: &str = "MESSAGE-canary";
const LABEL: &str = "LABEL-canary";
const CITY: &str = "CITY-canary";
const ADA: &str = "ada-canary";

/// A request for Ada in which everything can be recognised.
fn marked(issuer: &Issuer) -> Value {
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": ADA});
    ask["operation"]["summary"] = SUMMARY.into();
    ask["operation"]["arguments"]["city"] = CITY.into();
    ask["message"] = MESSAGE.into();
    ask["secret"]["fields"][0]["label"] = LABEL.into();
    ask
}

/// Nothing of the elicitation is on the page.
#[track_caller]
fn tells_nothing(page: &Page) {
    for canary in [SUMMARY, MESSAGE, LABEL, CITY, ADA, "forecast", "api_key", "_token"] {
        assert!(!page.html.contains(canary), "{canary} in {}", page.html);
    }
}

#[tokio::test]
async fn r01_link_and_request_state_hold_nothing_in_clear_or_hashed() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let view = server.handler().post("v1/elicitations", &marked(&issuer)).await.ok();
    let (id, url) = (view["id"].as_str().unwrap(), view["url"].as_str().unwrap());
    assert_eq!(url, server.url(&format!("e/{id}")), "the link is the public URL and the id, no more");
    let state = view["requestState"].as_str().unwrap();
    let sealed = URL_SAFE_NO_PAD.decode(state.strip_prefix("sg1.").unwrap()).unwrap();
    let operation_digest = view["operation"]["digest"].as_str().unwrap();
    let contains = |haystack: &[u8], needle: &[u8]| haystack.windows(needle.len()).any(|part| part == needle);
    for text in
        [SUMMARY, MESSAGE, LABEL, CITY, ADA, issuer.name(), "forecast", "weather", id, operation_digest]
    {
        let hash = digest(&SHA256, text.as_bytes());
        for needle in [text.as_bytes(), hash.as_ref()] {
            assert!(!contains(&sealed, needle) && !contains(state.as_bytes(), needle), "{text}");
        }
    }
    let raw_id: Vec<u8> =
        (0..32).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect();
    assert!(!contains(&sealed, &raw_id), "the elicitation's id is sealed as well");
}

#[tokio::test]
async fn r02_the_link_is_built_from_the_public_url_alone() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let (handler, ada) = (server.handler(), server.visitor().signed_in(issuer.token(ADA)));
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": ADA});
    for (name, value) in [
        ("X-Forwarded-Host", "evil.example"),
        ("Forwarded", "host=evil.example;proto=https"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Prefix", "/evil"),
        ("X-Original-URL", "/evil"),
    ] {
        let reply =
            Handler::send(handler.request(Method::POST, "v1/elicitations").header(name, value).json(&ask))
                .await;
        let id = reply.text_at("/id").to_owned();
        assert_eq!(reply.text_at("/url"), server.url(&format!("e/{id}")), "{name}");
        let page = Visitor::send(ada.request(Method::GET, reply.text_at("/url")).header(name, value)).await;
        assert_eq!(page.status, 200);
        assert!(!page.html.contains("evil"), "{name}: {}", page.html);
    }
}

#[tokio::test]
async fn r02_an_unknown_host_is_misdirected() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let port = server.base().port().unwrap();
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1:1".to_owned(),
        format!("localhost.evil:{port}"),
    ] {
        let page =
            Visitor::send(server.visitor().request(Method::GET, &issued.url).header(HOST, &host)).await;
        assert_eq!(page.status, 421, "{host}");
        assert!(page.html.contains("not the right address") && !page.html.contains("evil"), "{}", page.html);
        let reply = Handler::send(
            server.handler().request(Method::POST, "v1/elicitations").header(HOST, &host).json(&ask()),
        )
        .await;
        assert_eq!(reply.problem(), (421, "misdirected_request"), "{host}");
    }
}

#[tokio::test]
async fn r02_a_target_in_absolute_form_names_the_host_as_well() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let (host, path) = (server.base().authority(), issued.url.rsplit_once("/e/").unwrap().1);
    for (target, status) in [
        (format!("/e/{path}"), "200"),
        (format!("http://{host}/e/{path}"), "200"),
        (format!("http://evil.example/e/{path}"), "421"),
        (format!("http://{host}.evil.example/e/{path}"), "421"),
    ] {
        let mut stream = TcpStream::connect(host).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{target}");
    }
}

#[tokio::test]
async fn r03_without_a_session_the_page_says_sign_in_and_nothing_of_the_operation() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = server.handler().issue(&marked(&issuer)).await;
    let other = Issuer::in_file();
    let mut nobody = issuer.claims(ADA);
    nobody.as_object_mut().unwrap().remove("sub");
    let mut empty = issuer.claims(ADA);
    empty["sub"] = "".into();
    for (what, visitor) in [
        ("no token", server.visitor()),
        ("an empty token", server.visitor().signed_in("")),
        ("nonsense", server.visitor().signed_in("abc")),
        ("somebody else's signature", server.visitor().signed_in(other.token(ADA))),
        ("no subject", server.visitor().signed_in(issuer.sign(&json!({}), &nobody))),
        ("an empty subject", server.visitor().signed_in(issuer.sign(&json!({}), &empty))),
    ] {
        for path in ["", "/done"] {
            let page = visitor.get(&format!("{}{path}", issued.url)).await;
            assert_eq!(
                (page.status.as_u16(), page.heading().as_str()),
                (401, "Sign in to continue"),
                "{what}"
            );
            assert!(page.text().contains("Weather tools"), "{what}: the page names who asks");
            tells_nothing(&page);
        }
        for action in ["secret", "decline", "extend"] {
            let form = [("api_key".to_owned(), "x".to_owned())];
            let page = visitor.post(&format!("{}/{action}", issued.url), &form).await;
            assert_eq!(page.status, 401, "{what}: {action}");
            tells_nothing(&page);
        }
    }
    assert_eq!(server.handler().state(&issued.id).await, "pending");
}

#[tokio::test]
async fn r03_what_came_through_a_proxy_is_not_from_this_computer() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    for (name, value) in
        [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1"), ("Via", "1.1 tunnel")]
    {
        let page =
            Visitor::send(server.visitor().request(Method::GET, &issued.url).header(name, value)).await;
        assert_eq!(
            (page.status.as_u16(), page.heading().as_str()),
            (401, "Open this on the other computer"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn r04_another_person_is_turned_away_and_it_stays_usable() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = server.handler().issue(&marked(&issuer)).await;
    let bob = server.visitor().signed_in(issuer.token("bob"));
    let ada = server.visitor().signed_in(issuer.token(ADA));
    let page = bob.get(&issued.url).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (403, "This link was made for someone else"));
    assert!(page.text().contains("bob@example.com"), "it says who is signed in");
    tells_nothing(&page);
    let view = server.handler().get(&format!("v1/elicitations/{}", issued.id)).await.ok();
    assert_eq!(view["state"], "pending");
    assert!(view.get("openedAt").is_none(), "a wrong person does not open it");
    ada.complete(&issued.url, "wk-1").await;
    assert_eq!(server.handler().claim(&issued, None).await.status, 200);
    let done = bob.get(&format!("{}/done", issued.url)).await;
    assert_eq!(done.status, 403, "nor what it came to");
    tells_nothing(&done);
}

#[tokio::test]
async fn r05_another_person_cannot_submit_even_with_the_right_persons_form() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = server.handler().issue(&marked(&issuer)).await;
    let ada = server.visitor().signed_in(issuer.token(ADA));
    let bob = server.visitor().signed_in(issuer.token("bob"));
    let form = ada.get(&issued.url).await.filled(&[("api_key", "from-bob")]);
    for action in ["secret", "decline", "extend"] {
        let page = bob.post(&format!("{}/{action}", issued.url), &form).await;
        assert_eq!(page.status, 403, "{action}");
        tells_nothing(&page);
    }
    assert_eq!(server.handler().state(&issued.id).await, "pending");
    let sent = ada.post(&format!("{}/secret", issued.url), &form).await;
    assert_eq!(sent.status, 303, "Ada's form is still good");
}

#[tokio::test]
async fn r07_a_form_serves_its_own_elicitation_alone() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let ada = server.visitor().signed_in(issuer.token(ADA));
    let first = server.handler().issue(&marked(&issuer)).await;
    let second = server.other_handler().issue(&marked(&issuer)).await;
    let form = ada.get(&first.url).await.filled(&[("api_key", "x")]);
    for action in ["secret", "decline", "extend"] {
        assert_eq!(ada.post(&format!("{}/{action}", second.url), &form).await.status, 403, "{action}");
    }
    assert_eq!(server.handler().state(&first.id).await, "pending");
    assert_eq!(server.other_handler().state(&second.id).await, "pending");
}

#[tokio::test]
async fn r06_every_wrong_id_gets_the_same_answer() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let id = &issued.id;
    let flipped = format!("{}{}", if id.starts_with('0') { '1' } else { '0' }, &id[1..]);
    let upper = id.to_uppercase();
    let upper = if upper == *id { flipped.clone() } else { upper };
    let wrong = [
        "0".repeat(32),
        flipped,
        id[..31].to_owned(),
        format!("{id}0"),
        upper,
        format!("{id}%00"),
        format!("%20{id}"),
        format!("{}-{}", &id[..16], &id[16..]),
        "x".to_owned(),
        "..%2f..%2fetc%2fpasswd".to_owned(),
        "%ff%fe".to_owned(),
        "9".repeat(4000),
    ];
    let (mut pages, mut replies) = (Vec::new(), Vec::new());
    for wrong in &wrong {
        let page = server.visitor().get(&server.url(&format!("e/{wrong}"))).await;
        pages.push((page.status.as_u16(), page.html));
        let reply = server.handler().get(&format!("v1/elicitations/{wrong}")).await;
        replies.push((reply.status.as_u16(), reply.text));
    }
    for (index, wrong) in wrong.iter().enumerate() {
        assert_eq!(pages[index], pages[0], "{wrong}");
        assert_eq!(replies[index], replies[0], "{wrong}");
    }
    assert_eq!((pages[0].0, replies[0].0), (404, 404));
    assert!(pages[0].1.contains("There is nothing here"));
}

#[tokio::test]
async fn r08_link_scanners_change_nothing() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = server.handler().issue(&marked(&issuer)).await;
    let path = format!("v1/elicitations/{}", issued.id);
    let before = server.handler().get(&path).await.ok();
    let ada = server.visitor().signed_in(issuer.token(ADA));
    for _ in 0..10 {
        for method in [Method::GET, Method::HEAD] {
            for visitor in [server.visitor(), server.visitor().signed_in(issuer.token("bob"))] {
                Visitor::send(visitor.request(method.clone(), &issued.url)).await;
                Visitor::send(visitor.request(method.clone(), &format!("{}/done", issued.url))).await;
            }
        }
        // What Ada's own browser does without her: look ahead.
        Visitor::send(ada.request(Method::HEAD, &issued.url)).await;
        Visitor::send(ada.request(Method::GET, &issued.url).header("Sec-Purpose", "prefetch;prerender"))
            .await;
        for action in ["secret", "decline", "extend"] {
            let page = Visitor::send(ada.request(Method::GET, &format!("{}/{action}", issued.url))).await;
            assert!(page.status.is_client_error());
        }
    }
    assert_eq!(server.handler().get(&path).await.ok(), before);
    for _ in 0..10 {
        assert_eq!(ada.get(&issued.url).await.status, 200);
    }
    let mut opened = server.handler().get(&path).await.ok();
    let at = opened.as_object_mut().unwrap().remove("openedAt");
    assert!(at.is_some(), "the person's first look is noted");
    assert_eq!(opened, before, "and nothing else");
}

#[tokio::test]
async fn r10_the_page_names_the_person_and_asks_whether_it_is_them() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let issued = server.handler().issue(&marked(&issuer)).await;
    let page = server.visitor().signed_in(issuer.token(ADA)).get(&issued.url).await;
    let text = page.text();
    assert!(text.contains(&format!("Signed in as {ADA}@example.com")), "{text}");
    assert_eq!(page.texts("details.not-you summary"), ["Not you?"]);
    assert!(text.contains("Verified host: weather.example") && text.contains("Weather tools"));
    assert!(!page.html.contains(CITY), "arguments are never shown");
}
