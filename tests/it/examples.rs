//! The example MCP servers in their languages, called by MCP clients of the official SDKs, in both protocol versions: whatever the
//! person, the client or an operator does, the user is shown one link, and the call ends with what came of it.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::browser::run;
use super::harness::example::{Desk, Example, Language, Reach, Told};
use super::harness::issuer::Issuer;
use super::harness::{Backing, Fleet, Server, Setup};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const CANARY: &str = "wk-canary-in-an-example";

/// A Sidegate, and an example server before each of its instances.
struct Stage {
    people: Issuer,
    fleet: Fleet,
    examples: Vec<Example>,
}

impl Stage {
    async fn start(language: Language, backing: Backing, more: &Told) -> Self {
        let people = Issuer::in_file();
        // A client that gives up after two calls would otherwise take eight times as long to do so.
        let setup =
            Setup::proxy(&people).replacing("kinds = [\"secret\"]", "kinds = [\"secret\"]\nround_budget = 3");
        let fleet = Fleet::start(backing, setup).await;
        let count = if matches!(backing, Backing::Shared) { 2 } else { 1 };
        let mut examples = Vec::new();
        for number in 0..count {
            let told = [told(fleet.at(number), &people), more.clone()].concat();
            examples.push(Example::start(language, &told).await);
        }
        Self { people, fleet, examples }
    }

    async fn of(language: Language) -> Self {
        Self::start(language, Backing::Embedded, &Told::new()).await
    }

    fn server(&self) -> &Server {
        self.fleet.at(0)
    }

    fn call(&self, era: &str, tokens: [&str; 2], more: &Value) -> Desk {
        let servers = [&self.examples[0], self.examples.last().unwrap()];
        Desk::call(Reach::Http(servers), era, ("forecast", json!({"city": "Oslo"})), tokens, more)
    }

    /// Ada at her browser.
    async fn ada(&self, steps: Value) {
        let header = json!({Issuer::HEADER.to_lowercase(): self.people.token("ada")});
        let seen = run("walk", &json!({"header": header, "script": true, "steps": steps})).await;
        assert_eq!(seen["complaints"], json!([]), "{seen:#}");
    }

    async fn finishes(&self, link: &str) {
        self.ada(json!([
            {"open": link},
            {"fill": {"WeatherCo API key": CANARY}, "press": "Send", "until": "/done"},
        ]))
        .await;
    }

    /// Nothing that the person gave is anywhere but where it belongs.
    fn keeps(&self, desk: &Desk) {
        assert!(!desk.transcript().contains(CANARY), "{}", desk.transcript());
        for example in &self.examples {
            assert!(!example.log().contains(CANARY));
        }
        assert!(!self.server().log().contains(CANARY));
    }

    async fn state(&self, link: &str) -> String {
        self.server().handler().state(id(link)).await
    }
}

fn id(link: &str) -> &str {
    link.rsplit('/').next().unwrap()
}

fn told(server: &Server, people: &Issuer) -> Told {
    let token = |name: &str| json!({"iss": people.name(), "sub": name});
    vec![
        ("SIDEGATE_URL", server.url("")),
        ("SIDEGATE_KEY", server.api_key()),
        ("MCP_STATE_KEYS", "a key that all instances of the example share".replace(' ', "-")),
        ("MCP_TOKENS", json!({"ada-token": token("ada"), "bob-token": token("bob")}).to_string()),
    ]
}

const ADA: [&str; 2] = ["ada-token"; 2];

fn text(result: &Value) -> &str {
    result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

#[rstest]
#[tokio::test]
async fn r36_a_call_waits_for_its_person_and_goes_on(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(era, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    // The call has come back by then, and waits.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.finishes(&link).await;
    let result = desk.next().await;
    assert_eq!(text(&result), "It is sunny in Oslo.");
    assert_eq!(stage.state(&link).await, "claimed");
    stage.keeps(&desk);
}

#[rstest]
#[tokio::test]
async fn r36_whoever_is_done_before_the_retry_is_not_asked_again(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(era, ADA, &json!({}));
    let link = desk.link().await;
    stage.finishes(&link).await;
    desk.answers("accept").await;
    assert_eq!(text(&desk.next().await), "It is sunny in Oslo.");
    stage.keeps(&desk);
    // The same call once more is another one, with a link of its own.
    let mut again = stage.call(era, ADA, &json!({}));
    assert_ne!(again.link().await, link);
}

#[rstest]
#[tokio::test]
async fn whoever_declines_on_the_page_is_believed(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(era, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    stage.ada(json!([{"open": link}, {"press": "Decline", "until": "/done"}])).await;
    let result = desk.next().await;
    assert!(text(&result).contains("declined"), "{result}");
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(stage.state(&link).await, "declined");
}

#[rstest]
#[tokio::test]
async fn an_operator_ends_the_call_by_revoking_the_link(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(era, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.server().operator().revoke(id(&link)).await.status, 200);
    let result = desk.next().await;
    assert!(text(&result).contains("withdr"), "{result}");
    assert_eq!(result["result"]["isError"], true);
}

#[rstest]
#[tokio::test]
async fn a_link_that_expires_ends_the_call(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let more = vec![("EXAMPLE_EXPIRES_IN", "10".to_owned())];
    let stage = Stage::start(language, Backing::Embedded, &more).await;
    let mut desk = stage.call(era, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    let result = desk.next().await;
    assert!(text(&result).contains("time"), "{result}");
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(stage.state(&link).await, "expired");
}

/// Whoever says no in the client: in the later version the handler hears of it, in the earlier the host keeps it to itself.
#[rstest]
#[tokio::test]
async fn whoever_says_no_in_the_client_is_asked_nothing_more(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
    #[values("decline", "cancel")] action: &str,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(era, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers(action).await;
    let result = desk.next().await;
    if era == MODERN {
        assert_eq!(result["result"]["isError"], true, "{result}");
        let ended = if action == "decline" { "declined" } else { "cancelled" };
        assert_eq!(stage.state(&link).await, ended);
    } else {
        assert_eq!(result["result"]["stopped"], action);
        assert_eq!(stage.state(&link).await, "pending");
    }
}

/// Slower than the client has patience: the call ends with the link, and is taken up where it was by the next.
#[rstest]
#[tokio::test]
async fn whoever_is_slower_than_the_client_finds_the_link_in_its_last_words(
    #[values(Language::TypeScript, Language::Python)] language: Language,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(MODERN, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    let result = desk.next().await;
    assert!(text(&result).contains(&link), "{result}");
    stage.finishes(&link).await;
    let mut again = stage.call(MODERN, ADA, &json!({}));
    assert_eq!(text(&again.next().await), "It is sunny in Oslo.");
    stage.keeps(&again);
}

#[rstest]
#[tokio::test]
async fn a_retry_may_come_to_another_instance_of_both(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let stage = Stage::start(language, Backing::Shared, &Told::new()).await;
    let mut desk = stage.call(era, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    stage.finishes(&link).await;
    assert_eq!(text(&desk.next().await), "It is sunny in Oslo.");
    stage.keeps(&desk);
}

#[rstest]
#[case::tampered(ADA, json!({"tamper": true}))]
#[case::another_users(["ada-token", "bob-token"], json!({}))]
#[tokio::test]
async fn r07_a_request_state_that_is_not_this_calls_is_refused(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[case] tokens: [&str; 2],
    #[case] more: Value,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(MODERN, tokens, &more);
    let link = desk.link().await;
    stage.finishes(&link).await;
    desk.answers("accept").await;
    let result = desk.next().await;
    if language == Language::TypeScript {
        // Its SDK makes a tool's error of whatever a handler throws, with the same words.
        assert!(text(&result).starts_with("The requestState is not valid"), "{result}");
        assert_eq!(result["result"]["isError"], true);
    } else {
        assert_eq!(result["error"]["code"], -32602, "{result}");
    }
    assert_eq!(stage.state(&link).await, "completed", "nothing was consumed");
    stage.keeps(&desk);
}

/// A client that cannot open links is told so in words, and nothing is asked.
#[rstest]
#[case::forms_alone(json!({"elicitation": {"form": {}}}))]
#[case::nothing(json!({}))]
#[tokio::test]
async fn a_client_without_links_gets_an_explanation(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[case] capabilities: Value,
) {
    let stage = Stage::of(language).await;
    let mut desk = stage.call(MODERN, ADA, &json!({"capabilities": capabilities}));
    let result = desk.next().await;
    assert_eq!(result["result"]["isError"], true, "{result}");
    let found = stage.server().operator().post("v1/admin/elicitations/search", &json!({})).await.ok();
    assert_eq!(found["elicitations"], json!([]));
}

/// Over stdio, and whoever is at this computer.
#[rstest]
#[tokio::test]
async fn r36_over_stdio_it_is_whoever_is_at_this_computer(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let server = Server::local().await;
    let told: Told = vec![("SIDEGATE_URL", server.url("")), ("SIDEGATE_KEY", server.api_key())];
    let call = ("forecast", json!({"city": "Oslo"}));
    let mut desk = Desk::call(Reach::Stdio(language, &told), era, call, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    server.visitor().complete(&link, CANARY).await;
    assert_eq!(text(&desk.next().await), "It is sunny in Oslo.");
    assert!(!desk.transcript().contains(CANARY));
}

/// A payment: the call goes on once it is paid.
#[rstest]
#[tokio::test]
async fn what_is_paid_is_delivered(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let server = Server::local().await;
    let told: Told = vec![("SIDEGATE_URL", server.url("")), ("SIDEGATE_KEY", server.api_key())];
    let call = ("buy_report", json!({"year": 2026}));
    let mut desk = Desk::call(Reach::Stdio(language, &told), era, call, ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    let steps = json!([
        {"open": link},
        {"press": "Pay $19.99", "until": "/manual/"},
        {"press": "Pay", "until": "/done"},
    ]);
    let seen = run("walk", &json!({"script": true, "steps": steps})).await;
    assert_eq!(seen["complaints"], json!([]), "{seen:#}");
    assert_eq!(text(&desk.next().await), "The report of 2026 is yours: report-2026 is paid.");
}

/// A third party: the token goes to the handler and nowhere else.
#[rstest]
#[tokio::test]
async fn r36_what_is_authorised_is_used(
    #[values(Language::TypeScript, Language::Python)] language: Language,
    #[values(MODERN, LEGACY)] era: &str,
) {
    let mut gate = super::oauth::Gate::plain().await;
    let told = [
        told(gate.server(), &gate.people),
        vec![("EXAMPLE_PROVIDER", "one".to_owned()), ("EXAMPLE_SCOPES", "read".to_owned())],
    ]
    .concat();
    let example = Example::start(language, &told).await;
    let reach = Reach::Http([&example, &example]);
    let mut desk = Desk::call(reach, era, ("list_repos", json!({})), ADA, &json!({}));
    let link = desk.link().await;
    desk.answers("accept").await;
    let ada = gate.person("ada");
    assert_eq!(gate.authorize(&ada, &link).await.status, 303);
    assert_eq!(text(&desk.next().await), "You have the repositories side and gate.");
    let exchanged = gate.one.log("token").await;
    assert_eq!(exchanged.len(), 1, "{exchanged:?}");
    assert!(!desk.transcript().contains("accessToken") && !desk.transcript().contains("access_token"));
}
