//! No login anywhere: whoever has the link answers, and a code goes back through the MCP client.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::harness::handler::Issued;
use super::harness::{Handler, Page, Reply, Server, Setup, Visitor, ask};

const SECTION: &str = "[identity.staff]\nsource = \"confirm\"\nissuer = \"local\"\n";

async fn server() -> Server {
    Server::start(Setup::configured(SECTION)).await
}

fn mine() -> Value {
    let mut ask = ask();
    ask["subject"] = json!({"issuer": "local", "id": "ada"});
    ask
}

/// Answers by the link, and reads the code.
async fn finish(visitor: &Visitor, link: &str, value: &str) -> String {
    let form = visitor.get(link).await.filled(&[("api_key", value)]);
    code(&visitor.post(&format!("{link}/secret"), &form).await)
}

fn code(page: &Page) -> String {
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (200, "Almost done: take this code back"));
    page.texts("#code").concat()
}

async fn confirm(handler: &Handler, id: &str, code: &str) -> Reply {
    handler.post(&format!("v1/elicitations/{id}/confirm"), &json!({"code": code})).await
}

/// Another code than this one.
fn wrong(code: &str) -> String {
    if code.starts_with('0') { code.replacen('0', "1", 1) } else { format!("0{}", &code[1..]) }
}

#[tokio::test]
async fn the_outcome_counts_once_its_code_came_back() {
    let server = server().await;
    let (handler, visitor) = (server.handler(), server.visitor());
    let issued = handler.issue(&mine()).await;
    let page = visitor.get(&issued.url).await;
    assert!(page.text().contains("whoever has this link can answer"), "{}", page.text());
    assert_eq!(page.cookies(), [""; 0]);
    assert_eq!(confirm(&handler, &issued.id, "12345678").await.problem(), (409, "not_completed"));
    let code = finish(&visitor, &issued.url, "wk-1").await;
    let digits: String = code.split(' ').collect();
    assert!(digits.len() == 8 && digits.chars().all(|c| c.is_ascii_digit()), "{code}");
    // The page shows it again, to this browser alone.
    assert_eq!(visitor.get(&issued.url).await.texts("#code").concat(), code);
    let state = handler.get(&format!("v1/elicitations/{}", issued.id)).await;
    assert_eq!((state.text_at("/state"), &state.body["awaitsCode"]), ("in_progress", &json!(true)));
    assert!(!state.text.contains(&digits));
    assert_eq!(handler.claim(&issued, None).await.problem(), (409, "not_completed"));
    let other = server.other_handler();
    assert_eq!(confirm(&other, &issued.id, &code).await.problem(), (404, "not_found"));
    let poll = {
        let (handler, path) = (handler.clone(), format!("v1/elicitations/{}?wait=50", issued.id));
        tokio::spawn(async move { handler.get(&path).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!poll.is_finished());
    let confirmed = confirm(&handler, &issued.id, &code.replace(' ', "-")).await;
    assert_eq!(confirmed.text_at("/state"), "completed");
    let polled = timeout(Duration::from_secs(5), poll).await.expect("it is woken").unwrap();
    assert_eq!(polled.text_at("/state"), "completed");
    assert_eq!(confirm(&handler, &issued.id, &wrong(&code)).await.status, 200, "it was confirmed before");
    assert_eq!(visitor.get(&format!("{}/done", issued.url)).await.heading(), "Done");
    assert_eq!(handler.claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
    assert!(!server.log().contains(&digits));
    let what: Vec<_> =
        server.audit().await.iter().map(|event| event["what"].as_str().unwrap().to_owned()).collect();
    assert_eq!(what, ["issued", "refused", "started", "finished", "refused", "completed", "claimed"]);
}

/// What the source is for: an attacker asks for something and sends the link to a victim, who answers; or the other way
/// round, answers a link that was somebody else's to answer.
#[tokio::test]
async fn r04_the_code_is_for_the_browser_that_answered_and_for_no_other() {
    let server = server().await;
    let (handler, victim, attacker) = (server.handler(), server.visitor(), server.visitor());
    let issued = handler.issue(&mine()).await;
    let form = attacker.get(&issued.url).await.filled(&[("api_key", "planted")]);
    let shown = finish(&victim, &issued.url, "the victim's").await;
    let pages = [
        attacker.get(&issued.url).await,
        attacker.get(&format!("{}/done", issued.url)).await,
        attacker.post(&format!("{}/secret", issued.url), &form).await,
        server.visitor().get(&issued.url).await,
    ];
    for page in pages {
        assert_eq!((page.status.as_u16(), page.heading().as_str()), (409, "This has been answered already"));
        assert!(!page.html.contains(&shown) && page.cookies().is_empty());
    }
    let cookies = victim.cookies();
    assert_eq!(cookies.keys().collect::<Vec<_>>(), [&format!("__Host-sidegate-code-{}", issued.id)]);
    // Another elicitation's, and a made-up one, are none.
    let mut ask = mine();
    ask["operation"]["id"] = "other".into();
    let other = handler.issue(&ask).await;
    finish(&attacker, &other.url, "x").await;
    let theirs = attacker.cookies().into_values().next().unwrap();
    attacker.plant(&format!("__Host-sidegate-code-{}", issued.id), &theirs);
    assert_eq!(attacker.get(&issued.url).await.status, 409);
    // The victim's own second tab, an invalid form of a stranger, and everybody after the code came back.
    let tab = victim.get(&issued.url).await;
    assert_eq!(code(&tab), shown);
    let old = [form[..2].to_vec(), vec![("api_key".to_owned(), "again".to_owned())]].concat();
    assert_eq!(code(&victim.post(&format!("{}/secret", issued.url), &old).await), shown);
    let empty = [form[..2].to_vec(), vec![("api_key".to_owned(), String::new())]].concat();
    assert_eq!(attacker.post(&format!("{}/secret", issued.url), &empty).await.status, 409);
    assert_eq!(confirm(&handler, &issued.id, &shown).await.status, 200);
    assert_eq!(attacker.post(&format!("{}/secret", issued.url), &form).await.status, 409);
    assert_eq!(attacker.get(&issued.url).await.status, 409);
    assert_eq!(victim.get(&issued.url).await.heading(), "Done");
    let claimed = handler.claim(&issued, None).await;
    assert_eq!(claimed.text_at("/credential/values/api_key"), "the victim's");
}

#[tokio::test]
async fn r08_nobody_is_said_to_have_opened_or_answered_who_is_not_known() {
    let server = server().await;
    let handler = server.handler();
    let issued = handler.issue(&mine()).await;
    server.visitor().get(&issued.url).await;
    let status = handler.get(&format!("v1/elicitations/{}", issued.id)).await;
    assert!(status.body.get("openedAt").is_none(), "{status:?}");
    finish(&server.visitor(), &issued.url, "wk-1").await;
    for event in server.audit().await {
        assert_ne!(event["actor"]["type"], "person", "{event}");
    }
}

#[tokio::test]
async fn what_is_no_code_costs_no_try() {
    let server = server().await;
    let handler = server.handler();
    let issued = handler.issue(&mine()).await;
    let code = finish(&server.visitor(), &issued.url, "wk-1").await;
    for entered in ["", "1234", "123456789", "abcdefgh", "1234 567a"] {
        let refused = confirm(&handler, &issued.id, entered).await;
        assert_eq!((refused.status.as_u16(), refused.text_at("/field")), (422, "code"), "{entered}");
    }
    let typed = format!(" {}\u{2011}{}", &code[..4], &code[5..]);
    assert_eq!(confirm(&handler, &issued.id, &typed).await.status, 200);
}

#[tokio::test]
async fn r25_five_wrong_codes_destroy_the_outcome() {
    let server = server().await;
    let (handler, visitor) = (server.handler(), server.visitor());
    let issued = handler.issue(&mine()).await;
    let code = finish(&visitor, &issued.url, "wk-1").await;
    for left in (1..=4).rev() {
        let refused = confirm(&handler, &issued.id, &wrong(&code)).await;
        assert_eq!(refused.problem(), (409, "wrong_code"));
        assert!(refused.text_at("/detail").contains(&format!("{left} more")), "{refused:?}");
    }
    assert_eq!(confirm(&handler, &issued.id, &wrong(&code)).await.problem(), (409, "ended"));
    assert_eq!(confirm(&handler, &issued.id, &code).await.problem(), (409, "ended"));
    assert_eq!(handler.state(&issued.id).await, "failed");
    assert_eq!(handler.claim(&issued, None).await.problem(), (409, "ended"));
    assert_eq!(visitor.get(&issued.url).await.status, 410);
    let database = rusqlite::Connection::open(server.database()).unwrap();
    let outcomes: i64 = database.query_row("SELECT count(*) FROM outcomes", [], |row| row.get(0)).unwrap();
    assert_eq!(outcomes, 0);
}

#[tokio::test]
async fn r20_of_many_codes_at_once_no_more_than_five_are_tried() {
    let server = server().await;
    let (handler, visitor) = (server.handler(), server.visitor());
    let issued = handler.issue(&mine()).await;
    let code = finish(&visitor, &issued.url, "wk-1").await;
    let wrong = wrong(&code);
    let tries = (0..12).map(|_| confirm(&handler, &issued.id, &wrong));
    let answers = futures_util::future::join_all(tries).await;
    let tried = answers.iter().filter(|answer| answer.problem() == (409, "wrong_code")).count();
    assert_eq!((tried, handler.state(&issued.id).await.as_str()), (4, "failed"));
}

fn round(ask: &Value, more: Value) -> Value {
    let mut call = ask.clone();
    call["protocolVersion"] = "2026-07-28".into();
    call["clientCapabilities"] = json!({"elicitation": {"form": {}, "url": {}}});
    call["inputKey"] = "key".into();
    call["waitSeconds"] = 0.into();
    let Value::Object(more) = more else { panic!("members are needed") };
    call.as_object_mut().unwrap().extend(more);
    call
}

/// What the MCP client sends with its retry after `reply`.
fn answers(reply: &Reply, responses: impl Into<Value>) -> Value {
    let responses: Value = responses.into();
    json!({"requestState": reply.text_at("/result/requestState"), "inputResponses": responses})
}

fn keys(reply: &Reply) -> Vec<String> {
    let requests = reply.body["result"]["inputRequests"].as_object();
    let mut keys: Vec<_> = requests.into_iter().flat_map(|requests| requests.keys().cloned()).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn a_round_asks_for_the_link_and_the_code_and_checks_it_on_retry() {
    let server = server().await;
    let (handler, visitor, ask) = (server.handler(), server.visitor(), mine());
    let first = handler.round(&round(&ask, json!({}))).await;
    assert_eq!(keys(&first), ["key", "key_code"]);
    let form = &first.body["result"]["inputRequests"]["key_code"];
    assert_eq!((&form["method"], &form["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    assert_eq!(form["params"]["requestedSchema"]["properties"]["code"]["type"], "string");
    let link = first.text_at("/result/inputRequests/key/params/url").to_owned();
    let form = |code: &str| json!({"key": {"action": "accept"}, "key_code": {"action": "accept", "content": {"code": code}}});
    // Too early, and then too late to guess: nothing is asked twice.
    let early = handler.round(&round(&ask, answers(&first, form("00000000")))).await;
    assert_eq!((early.text_at("/outcome"), keys(&early)), ("input_required", vec![]));
    let waiting = {
        let (handler, mut call) =
            (handler.clone(), round(&ask, answers(&early, json!({"key": {"action": "accept"}}))));
        call["waitSeconds"] = 50.into();
        tokio::spawn(async move { handler.round(&call).await })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    let code = finish(&visitor, &link, "wk-1").await;
    // The person is done: the code is asked for at once, and the link is not.
    let asked = timeout(Duration::from_secs(5), waiting).await.expect("it is woken").unwrap();
    assert_eq!((asked.text_at("/outcome"), keys(&asked)), ("input_required", vec!["key_code".to_owned()]));
    let again = handler.round(&round(&ask, answers(&asked, form(&wrong(&code))))).await;
    assert_eq!((again.text_at("/outcome"), keys(&again)), ("input_required", vec!["key_code".to_owned()]));
    let message = again.text_at("/result/inputRequests/key_code/params/message");
    assert!(message.starts_with("That was not the code"), "{message}");
    let done = handler.round(&round(&ask, answers(&again, form(&code)))).await;
    assert_eq!(done.ok()["credential"]["values"]["api_key"], "wk-1");
}

#[tokio::test]
async fn a_code_that_comes_with_the_first_retry_completes_and_declining_it_ends_all() {
    let server = server().await;
    let (handler, visitor) = (server.handler(), server.visitor());
    for (action, outcome) in [("accept", "completed"), ("decline", "declined"), ("cancel", "cancelled")] {
        let mut ask = mine();
        ask["operation"]["id"] = action.into();
        let first = handler.round(&round(&ask, json!({}))).await;
        let link = first.text_at("/result/inputRequests/key/params/url").to_owned();
        let code = finish(&visitor, &link, "wk-1").await;
        let responses =
            json!({"key": {"action": "accept"}, "key_code": {"action": action, "content": {"code": code}}});
        let second = handler.round(&round(&ask, answers(&first, responses))).await;
        assert_eq!(second.text_at("/outcome"), outcome);
    }
}

#[tokio::test]
async fn a_client_without_forms_is_asked_for_the_link_alone_and_the_handler_confirms() {
    let server = server().await;
    let (handler, visitor, ask) = (server.handler(), server.visitor(), mine());
    let url_alone = json!({"clientCapabilities": {"elicitation": {"url": {}}}});
    let first = handler.round(&round(&ask, url_alone.clone())).await;
    assert_eq!(keys(&first), ["key"]);
    let link = first.text_at("/result/inputRequests/key/params/url").to_owned();
    let id = first.text_at("/id").to_owned();
    let code = finish(&visitor, &link, "wk-1").await;
    let mut call = round(&ask, answers(&first, json!({"key": {"action": "accept"}})));
    call["clientCapabilities"] = url_alone["clientCapabilities"].clone();
    let waiting = handler.round(&call).await;
    assert_eq!((waiting.text_at("/outcome"), keys(&waiting)), ("input_required", vec![]));
    assert_eq!(confirm(&handler, &id, &code).await.status, 200);
    assert_eq!(handler.round(&call).await.ok()["credential"]["values"]["api_key"], "wk-1");
    let mut old = ask.clone();
    old["operation"]["id"] = "2025".into();
    old["protocolVersion"] = "2025-11-25".into();
    let asked = handler.round(&old).await.ok();
    assert_eq!(asked["error"]["data"]["elicitations"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_waits_for_its_code_can_be_declined_revoked_and_sent_twice() {
    let server = server().await;
    let (handler, visitor) = (server.handler(), server.visitor());
    let issue = async |id: &str| -> Issued {
        let mut ask = mine();
        ask["operation"]["id"] = id.into();
        handler.issue(&ask).await
    };
    let twice = issue("twice").await;
    let form = visitor.get(&twice.url).await.filled(&[("api_key", "wk-1")]);
    let url = format!("{}/secret", twice.url);
    let (one, other) = tokio::join!(visitor.post(&url, &form), visitor.post(&url, &form));
    let shown = code(&one);
    assert_eq!(
        (code(&other), code(&visitor.get(&format!("{}/done", twice.url)).await)),
        (shown.clone(), shown.clone())
    );
    assert_eq!(confirm(&handler, &twice.id, &shown).await.status, 200);
    let revoked = issue("revoked").await;
    let code = finish(&visitor, &revoked.url, "wk-1").await;
    server.operator().revoke(&revoked.id).await.ok();
    assert_eq!(confirm(&handler, &revoked.id, &code).await.problem(), (409, "ended"));
    let cancelled = issue("cancelled").await;
    let code = finish(&visitor, &cancelled.url, "wk-1").await;
    handler.cancel(&cancelled.id).await.ok();
    assert_eq!(confirm(&handler, &cancelled.id, &code).await.problem(), (409, "ended"));
}

#[tokio::test]
async fn r48_a_call_must_name_a_subject_of_the_source() {
    let server = server().await;
    let refused = server.handler().post("v1/elicitations", &ask()).await;
    assert_eq!((refused.status.as_u16(), refused.text_at("/field")), (422, "subject"));
}

/// The official TypeScript SDK on both sides, one round with a URL and a form.
#[rstest]
#[case::right_at_once(0, &["form", "url"])]
#[case::right_at_the_third_time(2, &["form", "form", "form", "url"])]
#[tokio::test]
async fn an_mcp_client_opens_the_link_and_brings_the_code_back(#[case] wrong: u8, #[case] expected: &[&str]) {
    let server = server().await;
    let input = json!({"base": server.url(""), "key": server.api_key(), "wrong": wrong});
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp");
    let mut node = tokio::process::Command::new("node");
    node.current_dir(folder).args(["confirm.mjs", &input.to_string()]).kill_on_drop(true);
    let output = timeout(Duration::from_mins(1), node.output()).await.expect("it ends").unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`tests/run` installs what the tests need: {errors}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["result"]["content"][0]["text"], "sunny, by wk-1", "{seen:#}\n{errors}");
    let mut asked: Vec<_> =
        seen["asked"].as_array().unwrap().iter().map(|mode| mode.as_str().unwrap()).collect();
    asked.sort_unstable();
    assert_eq!(asked, expected);
}
