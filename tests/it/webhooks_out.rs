//! A client's server is told what became of its elicitations: signed, in order, again and again until it has taken it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rstest::rstest;
use serde_json::{Value, json};

use super::harness::issuer::Issuer;
use super::harness::provider::{Answer, Provider, Sent};
use super::harness::{Server, Setup, Visitor, ask, eventually};

/// A service whose client `weather` is told at a receiver of the test's.
struct Told {
    people: Issuer,
    receiver: Provider,
    server: Server,
    secrets: [String; 2],
    _files: [tempfile::NamedTempFile; 2],
}

impl Told {
    async fn start(url: impl FnOnce(&Provider) -> String, upstream: &str) -> Self {
        let (people, receiver) = (Issuer::in_file(), Provider::start().await);
        let secrets = [7_u8, 9].map(|byte| format!("whsec_{}", STANDARD.encode([byte; 32])));
        let files = secrets.each_ref().map(|secret| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), secret).unwrap();
            file
        });
        let [first, second] = files.each_ref().map(|file| file.path().display().to_string());
        let url = url(&receiver);
        let setup = Setup::proxy(&people)
            .replacing(
                "kinds = [\"secret\"]",
                &format!("kinds = [\"secret\"]\nwebhook = {{ url = \"{url}\", secret_files = [\"{first}\", \"{second}\"] }}"),
            )
            .and(upstream);
        let server = Server::start(setup).await;
        Self { people, receiver, server, secrets, _files: files }
    }

    async fn plain() -> Self {
        Self::start(|receiver| format!("{}/hook", receiver.url()), LOOPBACK).await
    }

    fn answer(&self, status: u16) {
        self.receiver.answer("/hook", Answer::With(status, String::new()));
    }

    fn ada(&self) -> Visitor {
        self.server.visitor().signed_in(self.people.token("ada"))
    }

    fn ask(&self) -> Value {
        let mut ask = ask();
        ask["subject"] = json!({"issuer": self.people.name(), "id": "ada"});
        ask
    }

    /// What has come, once there are so many.
    async fn come(&self, count: usize) -> Vec<Sent> {
        eventually("messages", async || {
            let sent = self.receiver.sent("/hook");
            (sent.len() >= count).then_some(sent)
        })
        .await
    }
}

const LOOPBACK: &str = "[upstream]\nallow_addresses = [\"127.0.0.0/8\"]\n";

fn body(sent: &Sent) -> Value {
    serde_json::from_str(&sent.body).unwrap()
}

#[tokio::test]
async fn r36_each_end_is_told_with_a_signature_and_nothing_but_ids_and_states() {
    let told = Told::plain().await;
    told.answer(200);
    let handler = told.server.handler();
    let mut short = told.ask();
    short["expiresIn"] = 10.into();
    let expired = handler.issue(&short).await;
    let (completed, declined, revoked) = (
        handler.issue(&told.ask()).await,
        handler.issue(&told.ask()).await,
        handler.issue(&told.ask()).await,
    );
    told.ada().complete(&completed.url, "canary-secret").await;
    told.come(1).await;
    told.ada().decline(&declined.url).await;
    told.come(2).await;
    told.server.operator().revoke(&revoked.id).await.ok();
    told.come(3).await;
    // Of what others do not learn anything new nobody is told: cancelled by the client itself, claimed by it.
    let cancelled = handler.issue(&told.ask()).await;
    handler.cancel(&cancelled.id).await.ok();
    handler.claim(&completed, None).await.ok();
    let sent = eventually("expired too", async || {
        let sent = told.receiver.sent("/hook");
        (sent.len() == 4).then_some(sent)
    })
    .await;
    for (message, (issued, state)) in sent.iter().zip([
        (&completed, "completed"),
        (&declined, "declined"),
        (&revoked, "revoked"),
        (&expired, "expired"),
    ]) {
        let said = body(message);
        assert_eq!(said["type"], format!("elicitation.{state}"));
        assert_eq!(said["data"], json!({"id": issued.id, "kind": "secret", "state": state}));
        assert_eq!(said.as_object().unwrap().len(), 3, "{said}");
        assert!(message.header("webhook-id").starts_with("msg_"));
        // By the official library, with each of the secrets.
        let mut headers = HeaderMap::new();
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            headers
                .insert(HeaderName::from_static(name), HeaderValue::from_str(message.header(name)).unwrap());
        }
        for secret in &told.secrets {
            let webhook = standardwebhooks::Webhook::new(secret).unwrap();
            webhook.verify(message.body.as_bytes(), &headers).unwrap();
            assert!(webhook.verify(format!("{} ", message.body).as_bytes(), &headers).is_err());
        }
    }
    for canary in ["canary", "Oslo", "ada", "WeatherCo"] {
        assert!(sent.iter().all(|message| !message.body.contains(canary)), "{canary}");
    }
    for secret in &told.secrets {
        assert!(!told.server.log().contains(secret.as_str()));
    }
}

#[rstest]
#[case::error(Answer::With(500, String::new()))]
#[case::redirect(Answer::With(302, String::new()))]
#[case::refused(Answer::With(400, String::new()))]
#[tokio::test]
async fn what_was_not_taken_comes_again_under_the_same_name_and_in_order(#[case] answer: Answer) {
    let mut told = Told::plain().await;
    told.receiver.answer("/hook", answer);
    let handler = told.server.handler();
    let (first, second) = (handler.issue(&told.ask()).await, handler.issue(&told.ask()).await);
    told.ada().complete(&first.url, "key-1").await;
    let tried = told.come(1).await;
    told.ada().complete(&second.url, "key-2").await;
    // A restart loses nothing.
    told.server.stop().await;
    told.server = told.server.start_again().await;
    told.answer(204);
    let sent = told.come(3).await;
    assert_eq!(sent[1].header("webhook-id"), tried[0].header("webhook-id"));
    assert_eq!(sent[1].body, tried[0].body);
    assert!(sent[1].header("webhook-timestamp") >= tried[0].header("webhook-timestamp"));
    let ids: Vec<_> = sent.iter().map(|message| body(message)["data"]["id"].clone()).collect();
    assert_eq!(ids, [json!(first.id), json!(first.id), json!(second.id)]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(told.receiver.sent("/hook").len(), 3, "each once");
}

#[tokio::test]
async fn a_stalled_endpoint_keeps_nobody_else_waiting() {
    let told = Told::plain().await;
    told.receiver.answer("/hook", Answer::Nothing);
    let handler = told.server.handler();
    for _ in 0..5 {
        let issued = handler.issue(&told.ask()).await;
        told.ada().complete(&issued.url, "key").await;
        assert_eq!(handler.claim(&issued, None).await.status, 200);
    }
    told.come(1).await;
    // Another client's people are served, and things expire, meanwhile.
    let mut short = told.ask();
    short["expiresIn"] = 10.into();
    let other = told.server.other_handler();
    let expiring = other.issue(&short).await;
    eventually("it expires", async || (other.state(&expiring.id).await == "expired").then_some(())).await;
    assert_eq!(told.receiver.sent("/hook").len(), 1, "one at a time");
}

#[tokio::test]
async fn an_endpoint_that_is_gone_gets_nothing_more_and_operators_see_what_it_missed() {
    let told = Told::plain().await;
    told.answer(410);
    let handler = told.server.handler();
    let (first, second) = (handler.issue(&told.ask()).await, handler.issue(&told.ask()).await);
    told.ada().complete(&first.url, "key-1").await;
    told.come(1).await;
    told.ada().complete(&second.url, "key-2").await;
    let operator = told.server.operator();
    let dead = eventually("both are dead", async || {
        let found = operator.post("v1/admin/webhooks/search", &json!({"client": "weather"})).await.ok();
        let dead = found["webhooks"].as_array().unwrap().clone();
        (dead.len() == 2).then_some(dead)
    })
    .await;
    assert!(
        dead.iter().all(|one| one["type"] == "elicitation.completed" && one["client"] == "weather"),
        "{dead:?}"
    );
    assert_eq!(told.receiver.sent("/hook").len(), 1);
    assert_eq!(told.server.audit().await.iter().filter(|event| event["what"] == "not_told").count(), 2);
    let none = operator.post("v1/admin/webhooks/search", &json!({"client": "travel"})).await.ok();
    assert_eq!(none["webhooks"], json!([]));
    // Started again, it may be there again.
    let retry = json!({"elicitation": first.id});
    assert_eq!(handler.post("v1/admin/webhooks/retry", &retry).await.status, 401);
    let mut told = told;
    told.server.stop().await;
    told.server = told.server.start_again().await;
    told.answer(200);
    assert_eq!(told.server.operator().post("v1/admin/webhooks/retry", &retry).await.status, 204);
    let sent = told.come(2).await;
    assert_eq!(body(&sent[1])["data"]["id"], json!(first.id));
}

#[rstest]
#[case::literal(|receiver: &Provider| format!("{}/hook", receiver.url()), "[upstream]\nallow_addresses = [\"10.0.0.0/8\"]\n")]
#[case::name(|receiver: &Provider| format!("https://localhost:{}/hook", receiver.url().rsplit(':').next().unwrap()), "")]
#[tokio::test]
async fn r17_an_endpoint_at_a_private_address_is_not_reached(
    #[case] url: fn(&Provider) -> String,
    #[case] upstream: &str,
) {
    let told = Told::start(url, upstream).await;
    told.answer(200);
    let issued = told.server.handler().issue(&told.ask()).await;
    told.ada().complete(&issued.url, "key").await;
    let tried = "a client's endpoint did not take a message";
    eventually("tried", async || told.server.log().contains(tried).then_some(())).await;
    assert!(told.receiver.sent("/hook").is_empty());
}
