//! Signing in at a real issuer, in Chromium.

use rstest::rstest;
use serde_json::{Value, json};

use super::harness::browser::run;
use super::harness::handler::Issued;
use super::harness::oidc::{OidcProvider, SECRET};
use super::harness::{Server, Setup, ask};

struct Gate {
    issuer: OidcProvider,
    server: Server,
    _secret: tempfile::NamedTempFile,
}

impl Gate {
    async fn start() -> Self {
        let mut issuer = OidcProvider::start().await;
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), SECRET).unwrap();
        let settings = format!("client_secret_file = \"{}\"", secret.path().display());
        let server = Server::start(Setup::oidc(issuer.url(), &settings)).await;
        issuer.knows(&server.url("signin/staff/callback")).await;
        Self { issuer, server, _secret: secret }
    }

    async fn issue(&self, person: &str) -> Issued {
        let mut ask = ask();
        ask["subject"] = json!({"issuer": self.issuer.url(), "id": person});
        self.server.handler().issue(&ask).await
    }
}

fn text<'a>(seen: &'a Value, pointer: &str) -> &'a str {
    seen.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {seen:#}"))
}

#[rstest]
#[case::with_script(true)]
#[case::without(false)]
#[tokio::test]
async fn r03_r04_r05_r07_r09_r10_r28_r31_r32_two_people_in_two_browsers(#[case] script: bool) {
    let gate = Gate::start().await;
    let (issued, other) = (gate.issue("ada").await, gate.issue("ada").await);
    let input = json!({
        "link": issued.url, "other": other.url, "issuer": gate.issuer.url(), "script": script, "value": "wk-1",
    });
    let seen = run("sign-in", &input).await;
    assert_eq!(text(&seen, "/before/heading"), "Sign in to continue");
    assert!(!text(&seen, "/before/text").contains("Oslo"));
    assert_eq!(seen["cookiesBefore"], json!([]));
    assert_eq!(text(&seen, "/ada/url"), issued.url, "nothing of the sign-in is left in the address");
    assert!(text(&seen, "/ada/text").contains("ada@people.example"), "{seen:#}");
    for cookie in seen["cookies"].as_array().unwrap() {
        assert_eq!(
            (&cookie["secure"], &cookie["httpOnly"], &cookie["sameSite"], &cookie["path"]),
            (&json!(true), &json!(true), &json!("Lax"), &json!("/"))
        );
    }
    assert_eq!(text(&seen, "/bob/heading"), "This link was made for someone else");
    assert!(text(&seen, "/bob/text").contains("bob@people.example"), "{seen:#}");
    assert_eq!(seen["asked"], 1, "the issuer asks who it is");
    assert!(text(&seen, "/second/text").contains("ada@people.example"), "{seen:#}");
    assert_eq!(seen["refused"], json!([403, 403, 403]));
    assert_eq!(text(&seen, "/done/heading"), "Done");
    assert_eq!(seen["complaints"], json!([]));
    let claimed = gate.server.handler().claim(&issued, None).await;
    assert_eq!(claimed.text_at("/credential/values/api_key"), "wk-1");
}

/// Login CSRF: a victim is not signed in as the attacker by a link, and one who is sees whose name it is.
#[tokio::test]
async fn r09_r10_a_victim_is_not_signed_in_as_the_attacker_unseen() {
    let gate = Gate::start().await;
    let issued = gate.issue("mallory").await;
    let seen = run("planted", &json!({"link": issued.url, "issuer": gate.issuer.url()})).await;
    assert_eq!(text(&seen, "/refused/heading"), "This sign-in did not begin here");
    assert_eq!(seen["refused"]["cookies"], json!([]));
    let shown = text(&seen, "/text");
    assert!(shown.contains("mallory@people.example") && shown.contains("Not you?"), "{shown}");
    let buttons = seen["buttons"].as_array().unwrap();
    assert!(buttons.iter().any(|button| button.as_str().unwrap().starts_with("Send to")), "{seen:#}");
    assert_eq!(gate.server.handler().state(&issued.id).await, "pending", "nothing is done without a click");
}
