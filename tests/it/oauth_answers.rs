//! What providers answer, and what it means.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;
use url::form_urlencoded;

use super::harness::handler::Issued;
use super::harness::issuer::{Issuer, now};
use super::harness::provider::{Answer, METADATA, Provider, Sent, TOKEN};
use super::harness::{Page, Reply, Server, Setup, Visitor, ask, sidegate};

const LOOPBACK: &str = "127.0.0.0/8";
/// Nobody of the tests is there.
const ELSEWHERE: &str = "10.20.0.0/16";
const SECRET: &str = "p:s/+ %";
const CODE: &str = "code-canary";
const FORM: &str = "application/x-www-form-urlencoded";

/// A service whose people authorise a provider that answers as it is told.
struct Gate {
    people: Issuer,
    provider: Provider,
    server: Server,
    _secret: tempfile::NamedTempFile,
}

/// A person who was sent away and came back with a code.
struct Went {
    issued: Issued,
    /// Where to.
    to: Url,
    back: Page,
}

impl Gate {
    /// With these lines more in the provider's section.
    async fn start(lines: &str) -> Self {
        let provider = Provider::start().await;
        let url = provider.url().to_owned();
        let endpoints =
            format!("authorization_endpoint = \"{url}/authorize\"\ntoken_endpoint = \"{url}{TOKEN}\"");
        Self::with(provider, LOOPBACK, &format!("{endpoints}\n{lines}")).await
    }

    async fn with(provider: Provider, allowed: &str, lines: &str) -> Self {
        let people = Issuer::in_file();
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), SECRET).unwrap();
        let proof = if lines.contains("\"none\"") {
            String::new()
        } else {
            format!("client_secret_file = \"{}\"\n", secret.path().display())
        };
        let setup = Setup::proxy(&people)
            .replacing("kinds = [\"secret\"]", "kinds = [\"secret\", \"oauth\"]")
            .and(&format!("[upstream]\nallow_addresses = [\"{allowed}\"]\n"))
            .and(&format!("[[providers]]\nid = \"fake\"\nclient_id = \"side/gate\"\n{proof}{lines}\n"));
        let server = Server::start(setup).await;
        Self { people, provider, server, _secret: secret }
    }

    fn gives(&self, answer: &Value) {
        self.provider.answer(TOKEN, Answer::With(200, answer.to_string()));
    }

    fn ada(&self) -> Visitor {
        self.server.visitor().signed_in(self.people.token("ada"))
    }

    fn ask(&self, keep: Option<Value>) -> Value {
        let mut ask = ask();
        ask["kind"] = "oauth".into();
        ask.as_object_mut().unwrap().remove("secret");
        ask["subject"] = json!({"issuer": self.people.name(), "id": "ada"});
        ask["oauth"] = json!({"provider": "fake", "scopes": ["read", "write"]});
        if let Some(keep) = keep {
            ask["oauth"]["keep"] = keep;
        }
        ask
    }

    /// Presses Continue: what that leads to.
    async fn press(&self, link: &str) -> (Visitor, Page) {
        let ada = self.ada();
        let page = ada.get(link).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let pressed = ada.post(&format!("{link}/authorize"), &page.proof()).await;
        assert_eq!(pressed.status, 303, "{}", pressed.text());
        (ada, pressed)
    }

    /// Goes there and comes back with a code.
    async fn go(&self, issued: Issued) -> Went {
        let (ada, pressed) = self.press(&issued.url).await;
        let leaves = ada.get(self.server.base().join(pressed.location()).unwrap().as_str()).await;
        assert_eq!(leaves.status, 200, "{} {}", pressed.location(), leaves.text());
        let to = Url::parse(&leaves.attributes("a.button", "href").remove(0)).unwrap();
        let asked: BTreeMap<_, _> = to.query_pairs().into_owned().collect();
        let mut url = Url::parse(&asked["redirect_uri"]).unwrap();
        url.query_pairs_mut().append_pair("state", &asked["state"]).append_pair("code", CODE);
        let back = ada.get(url.as_str()).await;
        assert_eq!(back.status, 303, "{}", back.text());
        Went { issued, to, back }
    }

    async fn went(&self) -> Went {
        self.go(self.server.handler().issue(&self.ask(None)).await).await
    }

    /// The same to the end: what the handler gets.
    async fn credential(&self) -> Value {
        let Went { issued, back, .. } = self.went().await;
        assert!(back.location().ends_with("/done"), "{}", back.location());
        self.server.handler().claim(&issued, None).await.ok()["credential"].clone()
    }

    /// Asserts that nothing was given, that the page says so, and in which state that leaves the elicitation.
    async fn came_to(&self, went: &Went, page: &str, state: &str) {
        let issued = &went.issued;
        assert_eq!(went.back.location(), format!("/e/{}/{page}", issued.id));
        assert_eq!(self.server.handler().state(&issued.id).await, state);
        let shown = self.ada().get(&format!("{}/{page}", issued.url)).await;
        let log = self.server.log();
        for canary in [CODE, "canary", SECRET] {
            assert!(!shown.html.contains(canary) && !log.contains(canary), "{canary}: {}\n{log}", shown.html);
        }
        assert_eq!(self.provider.sent(TOKEN).len(), 1, "a code is used once");
    }

    /// The one request to the token endpoint.
    fn exchange(&self) -> Sent {
        let mut sent = self.provider.sent(TOKEN);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Keeps tokens that are over a second later.
    async fn keep(&self) {
        self.gives(&json!({"access_token": "at-1", "refresh_token": "rt-1", "expires_in": 1}));
        let first = self.round().await;
        let link = first["result"]["inputRequests"]["sidegate"]["params"]["url"].as_str().unwrap().to_owned();
        let id = link.rsplit('/').next().unwrap().to_owned();
        let went = self.go(Issued { id, url: link, ask: Value::Null }).await;
        assert!(went.back.location().ends_with("/done"), "{}", went.back.location());
    }

    async fn round(&self) -> Value {
        let mut call = self.ask(Some(json!({"slot": "repos", "days": 30})));
        call["protocolVersion"] = "2026-07-28".into();
        call["waitSeconds"] = 0.into();
        self.server.handler().round(&call).await.ok()
    }

    /// Uses what is kept, when it is over.
    async fn use_kept(&self) -> Reply {
        sleep(Duration::from_millis(1_200)).await;
        let body = json!({"subject": {"issuer": self.people.name(), "id": "ada"}, "slot": "repos"});
        self.server.handler().post("v1/kept/use", &body).await
    }
}

/// The members of a form, in order.
fn members(form: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(form.as_bytes()).into_owned().collect()
}

fn member(form: &str, name: &str) -> Option<String> {
    let mut values = members(form).into_iter().filter(|(known, _)| known == name).map(|(_, value)| value);
    let value = values.next();
    assert_eq!(values.next(), None, "{name} twice");
    value
}

fn json_answer(value: &Value) -> Answer {
    Answer::With(200, value.to_string())
}

fn form_answer(media_type: &'static str) -> Answer {
    Answer::Typed(200, media_type, "access_token=at&scope=read%2Cwrite&token_type=bearer".to_owned())
}

#[rstest]
#[case::form(form_answer(FORM), json!({}))]
#[case::form_with_a_charset(form_answer("application/x-www-form-urlencoded; charset=utf-8"), json!({}))]
#[case::form_that_is_called_text(form_answer("text/plain"), json!({}))]
#[case::json_called_a_form(Answer::Typed(200, FORM, r#"{"access_token": "at"}"#.to_owned()), json!({}))]
#[case::created(Answer::With(201, r#"{"access_token": "at"}"#.to_owned()), json!({}))]
#[case::no_type(json_answer(&json!({"access_token": "at"})), json!({}))]
#[case::lower_case_type(json_answer(&json!({"access_token": "at", "token_type": "bearer"})), json!({}))]
#[case::persons_type(json_answer(&json!({"access_token": "at", "token_type": "user"})), json!({}))]
#[case::null_error(json_answer(&json!({"access_token": "at", "error": null, "ok": true})), json!({}))]
#[case::scope_as_text(
    json_answer(&json!({"access_token": "at", "scope": "read admin"})),
    json!({"scopes": ["read", "admin"]})
)]
#[case::scope_as_a_list(
    json_answer(&json!({"access_token": "at", "scope": ["read", "admin"]})),
    json!({"scopes": ["read", "admin"]})
)]
#[case::scope_with_commas(
    json_answer(&json!({"access_token": "at", "scope": "read,admin"})),
    json!({"scopes": ["read", "admin"]})
)]
#[case::scope_with_both(
    json_answer(&json!({"access_token": "at", "scope": "read, admin"})),
    json!({"scopes": ["read", "admin"]})
)]
#[case::refresh_token(
    json_answer(&json!({"access_token": "at", "refresh_token": "rt"})),
    json!({"refreshToken": "rt"})
)]
#[case::empty_refresh_token(json_answer(&json!({"access_token": "at", "refresh_token": ""})), json!({}))]
#[case::null_members(
    json_answer(&json!({"access_token": "at", "refresh_token": null, "scope": null, "expires_in": null})),
    json!({})
)]
#[tokio::test]
async fn what_a_success_may_look_like(#[case] answer: Answer, #[case] more: Value) {
    let gate = Gate::start("").await;
    gate.provider.answer(TOKEN, answer);
    let mut expected = json!({"accessToken": "at", "tokenType": "Bearer", "scopes": ["read", "write"]});
    expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(gate.credential().await, expected);
    let sent = gate.exchange();
    assert_eq!((sent.method.as_str(), sent.header("accept")), ("POST", "application/json"));
}

#[rstest]
#[case::not_said("", json!(null), None)]
#[case::known_beforehand("token_lifetime = 7200", json!(null), Some(7200))]
#[case::said_though_known("token_lifetime = 7200", json!(60), Some(60))]
#[case::number("", json!(3600), Some(3600))]
#[case::fraction("", json!(3600.5), Some(3600))]
#[case::text("", json!("3600"), Some(3600))]
#[case::no_number("", json!("never"), None)]
#[tokio::test]
async fn how_long_a_token_lasts(#[case] lines: &str, #[case] lasts: Value, #[case] expected: Option<i64>) {
    let gate = Gate::start(lines).await;
    let mut answer = json!({"access_token": "at"});
    if !lasts.is_null() {
        answer["expires_in"] = lasts;
    }
    gate.gives(&answer);
    let before = now();
    let credential = gate.credential().await;
    let found = credential.get("expiresAt").map(|at| {
        let at = at.as_str().unwrap();
        let format = &time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::parse(at, format).unwrap().unix_timestamp()
    });
    assert_eq!(found.is_some(), expected.is_some(), "{credential}");
    if let Some((found, lasts)) = found.zip(expected) {
        let begins = i64::try_from(before).unwrap();
        assert!((begins + lasts..=begins + lasts + 10).contains(&found), "{credential}");
    }
}

#[rstest]
#[case::error_in_a_success(200, json!({"error": "bad_verification_code", "error_description": "canary"}))]
#[case::error_beside_a_token(200, json!({"error": "canary", "access_token": "canary"}))]
#[case::error_object(200, json!({"error": {"message": "canary"}}))]
#[case::not_ok(200, json!({"ok": false, "error": "invalid_code"}))]
#[case::not_ok_alone(200, json!({"ok": false, "access_token": "canary"}))]
#[case::refused_code(400, json!({"error": "invalid_grant", "error_description": "canary"}))]
#[case::refused_code_with_403(403, json!({"error": "invalid_grant"}))]
#[case::no_token(200, json!({"hello": "canary"}))]
#[case::empty_token(200, json!({"access_token": ""}))]
#[case::no_object(200, json!(["canary"]))]
#[case::negative_life(200, json!({"access_token": "canary", "expires_in": -1}))]
#[case::negative_life_as_text(200, json!({"access_token": "canary", "expires_in": "-1"}))]
#[tokio::test]
async fn r36_an_error_is_no_success_and_is_not_repeated(#[case] status: u16, #[case] answer: Value) {
    let gate = Gate::start("").await;
    gate.provider.answer(TOKEN, Answer::With(status, answer.to_string()));
    let went = gate.went().await;
    gate.came_to(&went, "authorize/unauthorized", "pending").await;
    let page = gate.ada().get(&format!("{}/authorize/unauthorized", went.issued.url)).await;
    assert!(page.text().contains("sent you back without giving access"), "{}", page.text());
    // The next time it may work.
    gate.gives(&json!({"access_token": "at"}));
    let again = gate.go(went.issued).await;
    assert!(again.back.location().ends_with("/done"), "{}", again.back.location());
}

#[rstest]
#[case::form(Answer::Typed(200, FORM, "error=bad_verification_code&error_description=canary".to_owned()))]
#[case::empty(Answer::With(200, String::new()))]
#[case::page(Answer::Typed(200, "text/html", "<p>canary".to_owned()))]
#[case::broken(Answer::With(200, "{\"access_token\": \"canary".to_owned()))]
#[case::redirect(Answer::With(302, String::new()))]
#[tokio::test]
async fn no_answer_of_a_token_endpoint(#[case] answer: Answer) {
    let gate = Gate::start("").await;
    gate.provider.answer(TOKEN, answer);
    gate.came_to(&gate.went().await, "authorize/unauthorized", "pending").await;
}

#[rstest]
#[case::with_401(401, "invalid_client")]
#[case::in_a_success(200, "incorrect_client_credentials")]
#[case::redirect_uri(200, "redirect_uri_mismatch")]
#[tokio::test]
async fn a_client_that_is_not_accepted_never_will_be(#[case] status: u16, #[case] error: &str) {
    let gate = Gate::start("").await;
    let answer = json!({"error": error, "error_description": "canary"});
    gate.provider.answer(TOKEN, Answer::With(status, answer.to_string()));
    gate.came_to(&gate.went().await, "done", "failed").await;
}

#[rstest]
#[case::silence(Answer::Nothing)]
#[case::broken(Answer::With(500, "canary".to_owned()))]
#[case::overloaded(Answer::With(503, r#"{"error": "temporarily_unavailable"}"#.to_owned()))]
#[case::too_many(Answer::With(429, "{}".to_owned()))]
#[case::too_large(Answer::With(200, format!("{{\"access_token\": \"{}\"}}", "x".repeat(2 << 20))))]
#[tokio::test]
async fn a_provider_that_does_not_do_its_part_may_the_next_time(#[case] answer: Answer) {
    let gate = Gate::start("").await;
    gate.provider.answer(TOKEN, answer);
    gate.came_to(&gate.went().await, "authorize/unavailable", "pending").await;
}

#[tokio::test]
async fn tokens_may_stand_a_level_down_beside_more_that_is_needed() {
    let gate = Gate::start(
        "places = [\"/authed_user\", \"\"]\nextra = [\"/instance_url\", \"/team/id\", \"/absent\"]\n",
    )
    .await;
    gate.gives(&json!({
        "ok": true, "access_token": "bot", "token_type": "bot", "scope": "bot",
        "authed_user": {"id": "U1", "access_token": "at", "token_type": "user", "scope": "read,write"},
        "instance_url": "https://eu1.example.com", "team": {"id": "T1"},
    }));
    let expected = json!({
        "accessToken": "at", "tokenType": "Bearer", "scopes": ["read", "write"],
        "extra": {"instance_url": "https://eu1.example.com", "id": "T1"},
    });
    assert_eq!(gate.credential().await, expected);
    // Where there is no token it is looked for in the next place.
    gate.gives(&json!({"authed_user": {"id": "U1"}, "access_token": "at-2", "scope": "read"}));
    let credential = gate.credential().await;
    assert_eq!((&credential["accessToken"], &credential["scopes"]), (&json!("at-2"), &json!(["read"])));
}

#[tokio::test]
async fn tokens_may_be_very_long() {
    let gate = Gate::start("").await;
    let [access, refresh] = ["a", "r"].map(|letter| letter.repeat(100_000));
    gate.gives(&json!({"access_token": access, "refresh_token": refresh}));
    let credential = gate.credential().await;
    assert!(credential["accessToken"] == access && credential["refreshToken"] == refresh);
}

#[rstest]
#[case::usual("", Some("side%2Fgate:p%3As%2F%2B+%25"), None, None)]
#[case::basic("client_authentication = \"basic\"", Some("side%2Fgate:p%3As%2F%2B+%25"), None, None)]
#[case::basic_raw("client_authentication = \"basic_raw\"", Some("side/gate:p:s/+ %"), None, None)]
#[case::post("client_authentication = \"post\"", None, Some("side/gate"), Some(SECRET))]
#[case::none("client_authentication = \"none\"", None, Some("side/gate"), None)]
#[tokio::test]
async fn r12_a_client_says_who_it_is_in_one_way(
    #[case] lines: &str,
    #[case] basic: Option<&str>,
    #[case] id: Option<&str>,
    #[case] secret: Option<&str>,
    #[values(false, true)] as_json: bool,
) {
    let gate = Gate::start(&format!("{lines}\n{}", if as_json { "token_body = \"json\"" } else { "" })).await;
    gate.gives(&json!({"access_token": "at"}));
    let Went { to, back, .. } = gate.went().await;
    assert!(back.location().ends_with("/done"), "{}", back.location());
    let sent = gate.exchange();
    let header = basic.map(|basic| format!("Basic {}", STANDARD.encode(basic))).unwrap_or_default();
    assert_eq!((sent.method.as_str(), sent.header("authorization")), ("POST", header.as_str()));
    let body: BTreeMap<String, String> = if as_json {
        assert_eq!(sent.header("content-type"), "application/json");
        serde_json::from_str(&sent.body).unwrap()
    } else {
        assert_eq!(sent.header("content-type"), FORM);
        let all = members(&sent.body);
        let once: BTreeMap<_, _> = all.iter().cloned().collect();
        assert_eq!(once.len(), all.len(), "{all:?}");
        once
    };
    let found = |name: &str| body.get(name).map(String::as_str);
    assert_eq!((found("client_id"), found("client_secret")), (id, secret), "{body:?}");
    assert_eq!((found("grant_type"), found("code")), (Some("authorization_code"), Some(CODE)));
    // The same string to the person, and at the exchange.
    let uri = gate.server.url("oauth/callback/fake");
    assert_eq!(found("redirect_uri"), Some(uri.as_str()));
    assert_eq!(member(to.query().unwrap(), "redirect_uri"), Some(uri));
    assert!(found("code_verifier").is_some_and(|verifier| verifier.len() >= 43), "{body:?}");
    assert!(body.values().all(|value| !value.is_empty()), "{body:?}");
}

#[rstest]
#[case::usual("", &[("scope", Some("read write"))])]
#[case::comma("scope_separator = \"comma\"", &[("scope", Some("read,write"))])]
#[case::plus("scope_separator = \"plus\"", &[("scope", Some("read+write"))])]
#[case::no_scopes("scope_separator = 'none'", &[("scope", None)])]
#[case::persons("scope_parameter = \"user_scope\"", &[("scope", None), ("user_scope", Some("read write"))])]
#[case::offline("offline_scope = \"offline_access\"", &[("scope", Some("read write offline_access"))])]
#[case::fixed(
    "parameters = {access_type = \"offline\", prompt = \"a b&c\"}",
    &[("access_type", Some("offline")), ("prompt", Some("a b&c"))]
)]
#[case::without_pkce("pkce = false", &[("code_challenge", None), ("code_challenge_method", None)])]
#[tokio::test]
async fn what_a_provider_is_asked(#[case] lines: &str, #[case] expected: &[(&str, Option<&str>)]) {
    let gate = Gate::start(lines).await;
    gate.gives(&json!({"access_token": "at"}));
    let Went { to, issued, .. } = gate.went().await;
    let query = to.query().unwrap();
    for (name, value) in expected {
        assert_eq!(member(query, name).as_deref(), *value, "{name} in {query}");
    }
    assert_eq!(member(query, "response_type").as_deref(), Some("code"));
    assert_eq!(member(&gate.exchange().body, "code_verifier").is_some(), !lines.contains("pkce"));
    // What was granted is as asked for where the answer does not say.
    let claimed = gate.server.handler().claim(&issued, None).await.ok();
    assert_eq!(claimed["credential"]["scopes"], json!(["read", "write"]));
}

#[tokio::test]
async fn a_renewal_without_a_new_refresh_token_keeps_the_old_one() {
    let gate = Gate::start("refresh_parameters = {audience = \"api\"}").await;
    gate.keep().await;
    for number in 2..4 {
        let token = format!("at-{number}");
        gate.gives(&json!({"access_token": token, "expires_in": 1}));
        let used = gate.use_kept().await.ok();
        assert_eq!(used["credential"]["accessToken"], token, "{used}");
        assert_eq!(used["credential"]["scopes"], json!(["read", "write"]), "{used}");
        assert!(used["credential"].get("refreshToken").is_none(), "{used}");
    }
    // One that is new is used from then on.
    gate.gives(&json!({"access_token": "at-4", "refresh_token": "rt-4", "expires_in": 1}));
    gate.use_kept().await.ok();
    gate.use_kept().await.ok();
    let sent = gate.provider.sent(TOKEN);
    let tokens: Vec<_> = sent.iter().map(|sent| member(&sent.body, "refresh_token")).collect();
    assert_eq!(
        tokens,
        [None, Some("rt-1"), Some("rt-1"), Some("rt-1"), Some("rt-4")].map(|t| t.map(str::to_owned))
    );
    for refresh in &sent[1..] {
        assert_eq!(member(&refresh.body, "grant_type").as_deref(), Some("refresh_token"));
        assert_eq!(member(&refresh.body, "audience").as_deref(), Some("api"));
        assert_eq!(member(&refresh.body, "code"), None);
        assert!(refresh.header("authorization").starts_with("Basic "), "{refresh:?}");
    }
}

#[rstest]
#[case::usual(400, "invalid_grant")]
#[case::with_403(403, "invalid_grant")]
#[case::in_a_success(200, "bad_refresh_token")]
#[tokio::test]
async fn a_refresh_token_that_is_dead_ends_what_is_kept(#[case] status: u16, #[case] error: &str) {
    let gate = Gate::start("").await;
    gate.keep().await;
    gate.provider.answer(TOKEN, Answer::With(status, json!({"error": error}).to_string()));
    assert_eq!(gate.use_kept().await.problem(), (404, "not_kept"));
    assert_eq!(gate.use_kept().await.problem(), (404, "not_kept"));
    assert_eq!(gate.provider.sent(TOKEN).len(), 2, "a dead token is not sent again");
    let asked = gate.round().await;
    assert_eq!(asked["outcome"], "input_required");
    let link = asked["result"]["inputRequests"]["sidegate"]["params"]["url"].as_str().unwrap();
    let page = gate.ada().get(link).await;
    assert!(page.text().contains("has ended and cannot be renewed"), "{}", page.text());
}

#[rstest]
#[case::broken(Answer::With(500, String::new()))]
#[case::error_with_500(Answer::With(500, r#"{"error": "server_error"}"#.to_owned()))]
#[case::no_client(Answer::With(401, r#"{"error": "invalid_client"}"#.to_owned()))]
#[case::no_sense(Answer::With(200, "<p>".to_owned()))]
#[case::silence(Answer::Nothing)]
#[tokio::test]
async fn a_renewal_that_fails_for_now_ends_nothing(#[case] answer: Answer) {
    let gate = Gate::start("").await;
    gate.keep().await;
    gate.provider.answer(TOKEN, answer);
    assert_eq!(gate.use_kept().await.status, 503);
    gate.gives(&json!({"access_token": "at-2", "expires_in": 3600}));
    assert_eq!(gate.use_kept().await.text_at("/credential/accessToken"), "at-2");
    let sent = gate.provider.sent(TOKEN);
    assert_eq!(member(&sent.last().unwrap().body, "refresh_token").as_deref(), Some("rt-1"));
}

#[rstest]
#[case::metadata_service("127.0.0.1/32", "http://169.254.169.254/token", 1)]
#[case::by_https("127.0.0.1/32", "https://169.254.169.254/token", 1)]
#[case::another_loopback("127.0.0.1/32", "http://127.0.0.2:1/token", 1)]
#[case::in_other_words("127.0.0.1/32", "https://[::ffff:10.0.0.1]/token", 1)]
#[case::a_name_by_http("127.0.0.1/32", "http://localhost/token", 1)]
#[case::nothing_is_allowed(ELSEWHERE, "http://127.0.0.1/token", 0)]
#[tokio::test]
async fn r17_metadata_leads_nowhere_that_is_forbidden(
    #[case] allowed: &str,
    #[case] endpoint: &str,
    #[case] fetched: usize,
) {
    let provider = Provider::start().await;
    let mut metadata = provider.metadata();
    metadata["token_endpoint"] = endpoint.into();
    provider.answer(METADATA, Answer::With(200, metadata.to_string()));
    let issuer = format!("issuer = \"{}\"", provider.url());
    let gate = Gate::with(provider, allowed, &issuer).await;
    let issued = gate.server.handler().issue(&gate.ask(None)).await;
    let (ada, pressed) = gate.press(&issued.url).await;
    assert_eq!(pressed.location(), format!("/e/{}/authorize/unavailable", issued.id));
    let page = ada.get(&format!("{}/authorize/unavailable", issued.url)).await;
    assert!(page.status == 503 && page.text().contains("did not answer as it should"), "{}", page.text());
    assert_eq!(gate.server.handler().state(&issued.id).await, "pending");
    assert_eq!(gate.provider.sent(METADATA).len(), fetched);
    assert!(gate.provider.sent(TOKEN).is_empty());
}

#[rstest]
#[case::forbidden(ELSEWHERE, false)]
#[case::allowed("127.0.0.0/8\", \"::1/128", true)]
#[tokio::test]
async fn r17_a_name_is_not_followed_to_a_forbidden_address(#[case] allowed: &str, #[case] reached: bool) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = format!("token_endpoint = \"https://localhost:{port}/token\"");
    let lines = format!("authorization_endpoint = \"https://as.example/authorize\"\n{token}");
    let gate = Gate::with(Provider::start().await, allowed, &lines).await;
    let went = gate.went().await;
    assert_eq!(went.back.location(), format!("/e/{}/authorize/unavailable", went.issued.id));
    assert_eq!(gate.server.handler().state(&went.issued.id).await, "pending");
    let refused = listener.accept().err().map(|error| error.kind());
    assert_eq!(refused, (!reached).then_some(ErrorKind::WouldBlock));
}

#[rstest]
#[case::state("parameters = {state = \"x\"}", "`parameters.state` is set by Sidegate alone")]
#[case::redirect_uri(
    "parameters = {redirect_uri = \"x\"}",
    "`parameters.redirect_uri` is set by Sidegate alone"
)]
#[case::challenge("parameters = {code_challenge = \"x\"}", "`parameters.code_challenge` is set by")]
#[case::scope("parameters = {scope = \"x\"}", "`parameters.scope` is set by Sidegate alone")]
#[case::at_a_refresh("refresh_parameters = {client_id = \"x\"}", "`refresh_parameters.client_id` is set by")]
#[case::in_the_query(
    "authorization_endpoint = \"https://as.example/a?state=x\"",
    "the query of `authorization_endpoint` sets what Sidegate alone sets"
)]
#[case::plain_http("token_endpoint = \"http://as.example/token\"", "`token_endpoint` must be an https URL")]
#[tokio::test]
async fn r14_settings_cannot_set_what_is_sidegates_to_set(#[case] line: &str, #[case] sentence: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = "[server]\npublic_url = \"http://127.0.0.1:18020\"\nlisten = \"127.0.0.1:0\"\n\
                      [[providers]]\nid = \"fake\"\nclient_id = \"sidegate\"\n"
        .to_owned();
    for name in ["authorization_endpoint", "token_endpoint"] {
        if !line.starts_with(name) {
            let _ = writeln!(config, "{name} = \"https://as.example/x\"");
        }
    }
    config.push_str(line);
    std::fs::write(folder.path().join("s.toml"), &config).unwrap();
    for command in ["serve", "check"] {
        let output = sidegate().args([command, "--config", "s.toml"]).current_dir(folder.path()).output();
        let output = tokio::time::timeout(Duration::from_secs(20), output).await.unwrap().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {error}");
        assert!(error.starts_with("sidegate: ") && error.contains(sentence), "{error}");
    }
}

const REVOKE: &str = "/revoke";

impl Gate {
    /// With a way to revoke, and other lines in the place of some of the configuration.
    async fn revoking(more: impl FnOnce(Setup) -> Setup) -> Self {
        let (provider, people) = (Provider::start().await, Issuer::in_file());
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), SECRET).unwrap();
        let url = provider.url().to_owned();
        let setup = Setup::proxy(&people)
            .replacing("kinds = [\"secret\"]", "kinds = [\"secret\", \"oauth\"]")
            .and(&format!("[upstream]\nallow_addresses = [\"{LOOPBACK}\"]\n"))
            .and(&format!(
                "[[providers]]\nid = \"fake\"\nclient_id = \"side/gate\"\nclient_secret_file = \"{}\"\n\
                 authorization_endpoint = \"{url}/authorize\"\ntoken_endpoint = \"{url}{TOKEN}\"\n\
                 [providers.revocation]\nurl = \"{url}{REVOKE}\"\n",
                secret.path().display()
            ));
        provider.answer(REVOKE, Answer::With(200, String::new()));
        Self { server: Server::start(more(setup)).await, people, provider, _secret: secret }
    }

    /// The tokens that the provider was told of, once there is one.
    async fn revoked(&self) -> Vec<String> {
        for _ in 0..400 {
            let sent = self.provider.sent(REVOKE);
            if !sent.is_empty() {
                return sent.iter().filter_map(|sent| member(&sent.body, "token")).collect();
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("nothing was revoked");
    }
}

/// Fifty calls at once for a token that is over: one renewal, and all have what it brought.
#[tokio::test]
async fn whoever_waits_for_a_renewal_gets_its_token() {
    let gate = Gate::start("").await;
    gate.keep().await;
    sleep(Duration::from_millis(1_200)).await;
    let renewed = json!({"access_token": "at-2", "refresh_token": "rt-2", "expires_in": 3600}).to_string();
    gate.provider.answer(TOKEN, Answer::Late(Duration::from_millis(700), 200, renewed));
    let body = json!({"subject": {"issuer": gate.people.name(), "id": "ada"}, "slot": "repos"});
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (handler, body) = (gate.server.handler(), body.clone());
        calls.spawn(async move { handler.post("v1/kept/use", &body).await.ok() });
    }
    for used in calls.join_all().await {
        assert_eq!(used["credential"]["accessToken"], "at-2", "{used}");
    }
    assert_eq!(gate.provider.sent(TOKEN).len(), 2, "the exchange, and one renewal");
}

/// What is deleted while it is renewed stays deleted, and the new token is revoked.
#[tokio::test]
async fn a_deletion_during_a_renewal_wins() {
    let gate = Gate::revoking(|setup| setup).await;
    gate.keep().await;
    sleep(Duration::from_millis(1_200)).await;
    let renewed = json!({"access_token": "at-2", "refresh_token": "rt-2", "expires_in": 3600}).to_string();
    gate.provider.answer(TOKEN, Answer::Late(Duration::from_millis(1_500), 200, renewed));
    let body = json!({"subject": {"issuer": gate.people.name(), "id": "ada"}, "slot": "repos"});
    let handler = gate.server.handler();
    let (used, discarded) = tokio::join!(handler.post("v1/kept/use", &body), async {
        sleep(Duration::from_millis(700)).await;
        handler.post("v1/kept/discard", &body).await
    });
    assert_eq!((used.problem(), discarded.status.as_u16()), ((404, "not_kept"), 200));
    super::harness::eventually("both are revoked", async || {
        let told = gate.revoked().await;
        (told.contains(&"at-1".to_owned()) && told.contains(&"at-2".to_owned())).then_some(())
    })
    .await;
    assert_eq!(handler.post("v1/kept/use", &body).await.problem(), (404, "not_kept"));
}

/// An outcome that nobody claims in time is revoked at its provider, again if that fails at first.
#[tokio::test]
async fn unclaimed_tokens_are_revoked_with_retries() {
    let gate = Gate::revoking(|setup| setup.with("SIDEGATE_LIFETIMES__CLAIM_BY", "1")).await;
    gate.provider.answer(REVOKE, Answer::With(503, String::new()));
    gate.gives(&json!({"access_token": "at-1", "refresh_token": "rt-1"}));
    let went = gate.went().await;
    assert_eq!(gate.revoked().await, ["at-1"]);
    gate.provider.answer(REVOKE, Answer::With(200, String::new()));
    for _ in 0..40 {
        if gate.provider.sent(REVOKE).len() > 1 {
            break;
        }
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(gate.provider.sent(REVOKE).len(), 2, "tried again");
    assert_eq!(gate.server.handler().state(&went.issued.id).await, "expired");
    let claim = gate.server.handler().claim(&went.issued, None).await;
    assert_eq!(claim.problem(), (409, "ended"));
    super::harness::eventually("the trail says so", async || {
        let said = gate.server.audit().await;
        said.iter().any(|event| event["what"] == "revoked_there").then_some(())
    })
    .await;
}

/// `check` asks the provider, and prints what to register there.
#[tokio::test]
async fn check_prints_the_redirect_uri_and_finds_a_wrong_endpoint() {
    let provider = Provider::start().await;
    let url = provider.url().to_owned();
    let gate = Gate::with(provider, LOOPBACK, &format!("issuer = \"{url}\"")).await;
    let file = gate.server.data().join("sidegate.toml");
    let check = async || {
        let output = sidegate().arg("check").arg("--config").arg(&file).output().await.unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), said)
    };
    let (code, said) = check().await;
    let redirect = gate.server.url("oauth/callback/fake");
    assert!(code == 0 && said.contains(&format!("register the redirect URI {redirect}")), "{said}");
    let wrong =
        format!("token_endpoint = \"{url}/other\"\nauthorization_endpoint = \"{url}/authorize?fixed=1\"\n");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("id = \"fake\"\n", &format!("id = \"fake\"\n{wrong}"))).unwrap();
    let (code, said) = check().await;
    assert!(code == 1 && said.contains("`token_endpoint` is"), "{said}");
}
