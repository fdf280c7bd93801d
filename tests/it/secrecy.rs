//! What must not be found anywhere: in the store, the log, the audit trail, an error or a URL.

use std::path::Path;

use reqwest::Method;
use rstest::rstest;
use serde_json::json;

use super::harness::issuer::Issuer;
use super::harness::redis::{Program, Redis, files};
use super::harness::{Fleet, Handler, Server, Setup, ask, sidegate};

const SECRET: &str = "CANARY-secret-1c5d";
const REJECTED: &str = "CANARY\u{7}rejected-1c5d";
const SUBJECT: &str = "CANARY-subject-1c5d";
const MESSAGE: &str = "CANARY-message-1c5d";
const ARGUMENT: &str = "CANARY-argument-1c5d";
const ATTEMPT: &str = "CANARY-attempt-1c5d";
const IDEMPOTENCY: &str = "CANARY-idempotency-1c5d";
const QUERY: &str = "CANARY-query-1c5d";

/// Everything that happens to elicitations, with canaries everywhere; what the errors said, and the person's
/// token.
async fn live(server: &Server, issuer: &Issuer) -> (Vec<String>, String) {
    let handler = server.handler();
    let token = issuer.token(SUBJECT);
    let person = server.visitor().signed_in(&token);
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": SUBJECT});
    ask["message"] = MESSAGE.into();
    ask["operation"]["arguments"] = json!({"CANARY-name-1c5d": ARGUMENT});
    ask["secret"]["fields"][0]["pattern"] = "CANARY.*".into();
    let mut said = Vec::new();
    let mut note = |reply: super::harness::Reply| {
        if !reply.status.is_success() {
            said.push(reply.text);
        }
    };

    let request =
        handler.request(Method::POST, "v1/elicitations").header("Idempotency-Key", IDEMPOTENCY).json(&ask);
    let view = Handler::send(request).await.ok();
    let issued = super::harness::handler::Issued {
        id: view["id"].as_str().unwrap().to_owned(),
        url: view["url"].as_str().unwrap().to_owned(),
        ask: ask.clone(),
    };
    let rejected = person.submit(&issued.url, REJECTED).await;
    assert_eq!(rejected.status, 422);
    assert!(!rejected.html.contains("rejected-1c5d"));
    let stranger = server.visitor().signed_in(issuer.token("stranger"));
    stranger.get(&issued.url).await;
    person.complete(&issued.url, SECRET).await;
    note(handler.cancel(&issued.id).await);
    let mut other = issued.clone();
    other.ask["operation"]["arguments"] = json!({"other": ARGUMENT});
    note(handler.claim(&other, Some(ATTEMPT)).await);
    assert!(handler.claim(&issued, Some(ATTEMPT)).await.text.contains(SECRET));
    assert!(handler.claim(&issued, Some(ATTEMPT)).await.text.contains(SECRET));
    note(handler.claim(&issued, None).await);
    // Errors of all sorts, with canaries where they are not expected.
    note(handler.post("v1/elicitations", &json!({"message": MESSAGE, MESSAGE: ARGUMENT})).await);
    note(handler.post("v1/elicitations", &json!({"kind": ARGUMENT})).await);
    note(handler.get(&format!("v1/elicitations/{}?wait={QUERY}", issued.id)).await);
    note(handler.get(&format!("v1/{QUERY}?{QUERY}={QUERY}")).await);
    note(handler.with_key("sgk_CANARY-key-1c5d").get("v1/rounds").await);
    server.visitor().get(&server.url(&format!("e/{QUERY}?{QUERY}"))).await;
    let broken = handler.request(Method::POST, "v1/rounds").body(format!("{{\"message\": \"{MESSAGE}"));
    note(Handler::send(broken).await);

    // One stays as it is: pending, with its form refused; another is declined, one completed and left.
    for end in ["pending", "declined", "completed"] {
        ask["operation"]["id"] = end.into();
        let issued = handler.issue(&ask).await;
        match end {
            "declined" => drop(person.decline(&issued.url).await),
            "completed" => person.complete(&issued.url, SECRET).await,
            _ => {
                let form = [("api_key".to_owned(), SECRET.to_owned())];
                assert_eq!(person.post(&format!("{}/secret", issued.url), &form).await.status, 403);
            }
        }
    }
    (said, token)
}

fn has_no_canary(bytes: &[u8], what: &str) {
    let at = bytes
        .windows(6)
        .position(|part| part == b"CANARY")
        .or_else(|| bytes.windows(4).position(|part| part == b"1c5d"));
    if let Some(at) = at {
        let around = &bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())];
        panic!("{what}: {}", String::from_utf8_lossy(around));
    }
}

fn store_files(data: &Path) -> impl Iterator<Item = (String, Vec<u8>)> {
    std::fs::read_dir(data).unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        name.starts_with("sidegate.db").then(|| (name, std::fs::read(entry.path()).unwrap()))
    })
}

#[tokio::test]
async fn r23_the_store_holds_no_canary() {
    let issuer = Issuer::in_file();
    let mut server = Server::start(Setup::proxy(&issuer)).await;
    let (_, token) = live(&server, &issuer).await;
    let check = |when: &str| {
        let mut bytes = 0;
        for (name, content) in store_files(server.data()) {
            has_no_canary(&content, &format!("{name}, {when}"));
            let signature = token.rsplit('.').next().unwrap().as_bytes();
            assert!(!content.windows(signature.len()).any(|part| part == signature), "{name}: a token");
            bytes += content.len();
        }
        assert!(bytes > 10_000, "there is something to look at");
    };
    check("while it runs");
    server.stop().await;
    for (name, content) in store_files(server.data()) {
        has_no_canary(&content, &format!("{name}, after it has stopped"));
    }
}

#[tokio::test]
async fn r23_a_shared_store_holds_no_canary() {
    let issuer = Issuer::in_file();
    let settings = ["--appendonly", "yes", "--dbfilename", "dump.rdb", "--rdbcompression", "no"];
    let redis = Redis::start(Program::Redis, &settings).await;
    let mut fleet = Fleet::on(redis, Setup::proxy(&issuer)).await;
    live(fleet.at(0), &issuer).await;
    let redis = fleet.redis();
    redis.ask::<String>(&["SAVE"]).await;
    let mut bytes = 0;
    for file in files(redis.folder()) {
        let content = std::fs::read(&file).unwrap();
        has_no_canary(&content, &file.display().to_string());
        bytes += content.len();
    }
    assert!(bytes > 20_000, "there is something to look at");
}

#[rstest]
#[case("info")]
#[case("trace")]
#[tokio::test]
async fn r36_no_canary_in_log_audit_trail_errors_or_urls(#[case] level: &str) {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer).with("SIDEGATE_LOG__LEVEL", level)).await;
    let (said, token) = live(&server, &issuer).await;
    assert!(said.len() > 6);
    for text in &said {
        // The name of an unknown field is the caller's own text and is named back to them.
        has_no_canary(text.replace(MESSAGE, "").as_bytes(), "an error");
    }
    let log = server.log();
    has_no_canary(log.as_bytes(), "the log");
    for part in
        [token.as_str(), &server.api_key(), &server.operator_key(), "_token", "weather.example", "Bearer"]
    {
        assert!(!log.contains(part), "the log: {part}");
    }
    let routes: Vec<String> = log
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("the log is lines of JSON")["route"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert!(
        routes.len() > 20 && routes.iter().all(|route| route.starts_with('/') || route == "(none)"),
        "{routes:?}"
    );
    assert!(
        routes.iter().any(|route| route == "/e/{id}/secret")
            && !routes.iter().any(|route| route.contains('?'))
    );
    let mut audit = sidegate();
    audit.args(["audit", "export", "--config"]).arg(server.data().join("sidegate.toml"));
    let audit = sidegate_output(audit.arg("--data").arg(server.data())).await;
    assert!(audit.lines().count() > 12, "{audit}");
    has_no_canary(audit.as_bytes(), "the audit trail");
    let found = server
        .operator()
        .post("v1/admin/elicitations/search", &json!({"states": ["completed", "claimed"]}))
        .await;
    for canary in [SECRET, ARGUMENT, ATTEMPT, IDEMPOTENCY] {
        assert!(!found.text.contains(canary), "operators: {canary}");
    }
}

async fn sidegate_output(command: &mut tokio::process::Command) -> String {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
