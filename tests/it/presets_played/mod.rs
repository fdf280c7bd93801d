//! Each preset is played from the person's departure to the end of the tokens, against a fake that answers as its provider
//! does. What is known of the providers stands in `rows`, written out; nothing there is computed from the presets.

mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::{Value, json};
use sidegate::api_key::KeyDigest;
use sidegate::config::Config;
use sidegate::domain::oauth::Tokens;
use sidegate::domain::{Clock, Timestamp};
use sidegate::system::SystemRandom;
use sidegate::upstream::Upstream;
use sidegate::upstream::oauth::{Failure, Fault, Provider, Settings, Ties};
use url::Url;
use url::form_urlencoded::Serializer;

use crate::harness::provider::{Answer, Provider as Fake, Sent};
use crate::sample::START;

const FORM: &str = "application/x-www-form-urlencoded";
const BACK: &str = "https://gate.example/oauth/callback/p";
/// HTTP Basic with its parts encoded first has `s%2F1`.
const SECRET: &str = "s/1";
/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A provider. Where nothing is said it is as the specification has it, with name and secret in the body.
#[derive(Default)]
struct Row {
    preset: &'static str,
    /// What the configuration says besides.
    lines: &'static str,
    authorization: &'static str,
    token: &'static str,
    /// Where its keys are, if ID tokens are looked at.
    keys: &'static str,
    /// What the handler asks for.
    scopes: &'static [&'static str],
    /// What the authorization request has besides what all have.
    asks: &'static [(&'static str, &'static str)],
    /// Without PKCE.
    unchallenged: bool,
    /// Who we are is said by HTTP Basic, raw.
    basic: bool,
    /// Requests for tokens are written in JSON.
    json: bool,
    /// To a code; text is a form.
    answer: Value,
    /// What that comes to.
    gives: Value,
    /// The answer to the refresh token, if there is one, and in what the credential differs then.
    renewal: Option<(Value, Value)>,
    /// How the tokens end after that, if they can be ended: method and URL, in whose name, and the body.
    ends: Option<[&'static str; 3]>,
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        START
    }
}

/// What becomes of a section with this preset and these lines more.
fn settings(preset: &str, lines: &str) -> Settings {
    let folder = tempfile::tempdir().unwrap();
    let (secret, file) = (folder.path().join("secret"), folder.path().join("sidegate.toml"));
    std::fs::write(&secret, SECRET).unwrap();
    let digest = KeyDigest::of_text("sgk_any");
    let secret = secret.display();
    let text = format!(
        "[[clients]]\nid = \"a\"\nname = \"A\"\nidentity = \"b\"\napi_key_digests = [\"{digest}\"]\n\
         [identity.b]\nsource = \"loopback\"\n\
         [[providers]]\nid = \"p\"\nclient_id = \"sidegate\"\nclient_secret_file = \"{secret}\"\n\
         preset = \"{preset}\"\n{lines}\n"
    );
    std::fs::write(&file, text).unwrap();
    Config::load(&file, folder.path()).unwrap().providers.remove(0)
}

/// A preset whose provider is the fake: all that would go to `https://HOST/PATH` goes to `/HOST/PATH` there.
struct Stage {
    fake: Fake,
    provider: Provider,
    ties: Ties,
}

impl Stage {
    async fn with(mut settings: Settings, scopes: &[&str]) -> Self {
        let fake = Fake::start().await;
        let led = |url: &str| url.replacen("https://", &format!("{}/", fake.url()), 1);
        let ends = &mut settings.endpoints;
        let all =
            [&mut ends.authorization, &mut ends.token, &mut ends.refresh, &mut ends.par, &mut ends.jwks];
        for url in all.into_iter().flatten() {
            *url = Url::parse(&led(url.as_str())).unwrap();
        }
        if let Some(revocation) = &mut settings.revocation {
            revocation.url = led(&revocation.url);
        }
        let upstream = Upstream::new(vec!["127.0.0.1/32".parse().unwrap()]).unwrap();
        let provider = Provider::new(settings, Arc::new(upstream), Arc::new(Still), Arc::new(SystemRandom));
        let ties = Ties {
            state: "state-1".to_owned(),
            nonce: "nonce-1".to_owned(),
            verifier: VERIFIER.to_owned(),
            redirect_uri: BACK.to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            resource: None,
            signed: false,
        };
        Self { fake, provider, ties }
    }

    /// From now on this URL is answered so: in JSON; or as a form, if it is text. The claims of an ID token are signed first.
    fn answer(&self, url: &str, status: u16, answer: &Value) {
        let mut answer = answer.clone();
        if let Some(claims) = answer.get_mut("id_token") {
            *claims = self.fake.signer.sign(&json!({}), claims).into();
        }
        let answer = match answer {
            Value::String(form) => Answer::Typed(status, FORM, form),
            json => Answer::With(status, json.to_string()),
        };
        self.fake.answer(&path(url), answer);
    }

    /// The last of so many requests for this URL: method and URL, in whose name, and the body.
    fn told(&self, url: &str, count: usize) -> [String; 3] {
        let sent = self.fake.sent(&path(url));
        assert_eq!(sent.len(), count, "{url}: {sent:?}");
        let sent: &Sent = sent.last().unwrap();
        assert_eq!(sent.header("accept"), "application/json");
        let written = match sent.body.chars().next() {
            None => "",
            Some('{') => "application/json",
            Some(_) => FORM,
        };
        assert_eq!(sent.header("content-type"), written);
        let name = sent.header("authorization");
        let name = match name.strip_prefix("Basic ") {
            Some(basic) => format!("Basic {}", String::from_utf8(STANDARD.decode(basic).unwrap()).unwrap()),
            None => name.to_owned(),
        };
        [format!("{} {url}", sent.method), name, sent.body.clone()]
    }
}

/// Where the fake has it.
fn path(url: &str) -> String {
    url.replacen("https://", "/", 1)
}

/// The credential as the handler gets it, but for how many seconds it lasts, and with the account.
fn made(tokens: &Tokens) -> Value {
    let mut made = serde_json::to_value(tokens.credential()).unwrap();
    let members = made.as_object_mut().unwrap();
    if let Some(at) = tokens.expires_at {
        members.remove("expiresAt").unwrap();
        members.insert("lasts".to_owned(), START.until(at).as_secs().into());
    }
    members.extend(tokens.account.clone().map(|account| ("account".to_owned(), account.into())));
    made
}

/// A request for tokens with these members, as this provider takes it.
fn request(row: &Row, members: &[(&str, &str)]) -> [String; 3] {
    let mut members = members.to_vec();
    if !row.basic {
        members.extend([("client_id", "sidegate"), ("client_secret", SECRET)]);
    }
    let body = if row.json {
        members.into_iter().collect::<Value>().to_string()
    } else {
        Serializer::new(String::new()).extend_pairs(members).finish()
    };
    // Raw: nothing in it is encoded.
    let name = if row.basic { "Basic sidegate:s/1" } else { "" };
    [format!("POST {}", row.token), name.to_owned(), body]
}

#[rstest]
#[case::github(rows::github())]
#[case::github_app(rows::github_app())]
#[case::google(rows::google())]
#[case::slack(rows::slack())]
#[case::entra(rows::entra())]
#[case::atlassian(rows::atlassian())]
#[case::notion(rows::notion())]
#[case::linear(rows::linear())]
#[case::salesforce(rows::salesforce())]
#[case::hubspot(rows::hubspot())]
#[case::discord(rows::discord())]
#[case::gitlab(rows::gitlab())]
#[case::zoom(rows::zoom())]
#[case::dropbox(rows::dropbox())]
#[case::stripe(rows::stripe())]
#[tokio::test]
async fn a_preset_asks_as_its_provider_wants_it_and_understands_the_answers(#[case] row: Row) {
    let settings = settings(row.preset, row.lines);
    let keys = settings.endpoints.jwks.as_ref().map_or("", Url::as_str);
    assert_eq!(keys, row.keys);
    let mut stage = Stage::with(settings, row.scopes).await;
    stage.fake.answer(&path(row.keys), Answer::With(200, stage.fake.signer.key_set()));

    let url = stage.provider.begin(&mut stage.ties).await.unwrap();
    let to = url.as_str().split('?').next().unwrap();
    assert_eq!(to, format!("{}{}", stage.fake.url(), path(row.authorization)));
    let asked: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let mut expected = BTreeMap::from([
        ("response_type", "code"),
        ("client_id", "sidegate"),
        ("redirect_uri", BACK),
        ("state", "state-1"),
    ]);
    if !row.unchallenged {
        expected.extend([("code_challenge", CHALLENGE), ("code_challenge_method", "S256")]);
    }
    expected.extend(row.asks.iter().copied());
    assert_eq!(asked.len(), expected.len(), "{url}");
    assert_eq!(
        asked.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<BTreeMap<_, _>>(),
        expected
    );

    stage.answer(row.token, 200, &row.answer);
    let mut tokens = stage.provider.exchange("code-1", &stage.ties).await.unwrap();
    let mut members = vec![("grant_type", "authorization_code"), ("code", "code-1"), ("redirect_uri", BACK)];
    if !row.unchallenged {
        members.push(("code_verifier", VERIFIER));
    }
    assert_eq!(stage.told(row.token, 1), request(&row, &members));
    assert_eq!(made(&tokens), row.gives);

    if let Some((answer, changes)) = &row.renewal {
        stage.answer(row.token, 200, answer);
        let renewed = stage.provider.refresh(&tokens).await.unwrap();
        let old = row.gives["refreshToken"].as_str().unwrap();
        let members = [("grant_type", "refresh_token"), ("refresh_token", old)];
        assert_eq!(stage.told(row.token, 2), request(&row, &members));
        let mut expected = row.gives.clone();
        expected.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        assert_eq!(made(&renewed), expected);
        tokens = renewed;
    } else {
        let failure = stage.provider.refresh(&tokens).await.unwrap_err();
        assert_eq!(failure, Failure::Final(Fault::RefreshToken), "there is nothing to renew it with");
    }

    assert_eq!(stage.provider.may_revoke(), row.ends.is_some());
    if let Some(ends) = row.ends {
        let url = ends[0].split_once(' ').unwrap().1;
        stage.answer(url, 200, &json!({}));
        stage.provider.revoke(&tokens).await.unwrap();
        assert_eq!(stage.told(url, 1), ends);
    }
}

/// Who runs a server of their own, or has a tenant, says so; most do not.
#[rstest]
#[case::entra(
    "entra",
    "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
    "https://login.microsoftonline.com/common/oauth2/v2.0/token",
    None,
    None
)]
#[case::salesforce(
    "salesforce",
    "https://login.salesforce.com/services/oauth2/authorize",
    "https://login.salesforce.com/services/oauth2/token",
    Some("https://login.salesforce.com/services/oauth2/revoke"),
    None
)]
#[case::gitlab(
    "gitlab",
    "https://gitlab.com/oauth/authorize",
    "https://gitlab.com/oauth/token",
    Some("https://gitlab.com/oauth/revoke"),
    Some("https://gitlab.com")
)]
fn a_host_that_is_not_said_is_the_one_that_most_use(
    #[case] preset: &str,
    #[case] authorization: &str,
    #[case] token: &str,
    #[case] revocation: Option<&str>,
    #[case] issuer: Option<&str>,
) {
    let settings = settings(preset, "");
    assert_eq!(settings.endpoints.authorization.unwrap().as_str(), authorization);
    assert_eq!(settings.endpoints.token.unwrap().as_str(), token);
    assert_eq!(settings.revocation.map(|revocation| revocation.url).as_deref(), revocation);
    assert_eq!(settings.issuer.as_deref(), issuer);
}

const SLACK: &str = "https://slack.com/api/oauth.v2.access";
const GITHUB: &str = "https://github.com/login/oauth/access_token";
const ATLASSIAN: &str = "https://auth.atlassian.com/oauth/token";
const HUBSPOT: &str = "https://api.hubapi.com/oauth/v3/token";

/// What a code is answered with when something is wrong.
#[rstest]
#[case::github("github", GITHUB, json!("error=bad_verification_code"), Failure::Passing(Fault::Code))]
#[case::github_app_unknown(
    "github",
    GITHUB,
    json!("error=incorrect_client_credentials"),
    Failure::Final(Fault::Configuration)
)]
#[case::slack("slack", SLACK, json!({"ok": false, "error": "invalid_code"}), Failure::Passing(Fault::Code))]
#[case::slack_beside_tokens(
    "slack",
    SLACK,
    json!({"ok": false, "authed_user": {"access_token": "xoxp-1"}, "access_token": "xoxb-1"}),
    Failure::Passing(Fault::Code)
)]
#[case::slack_app_unknown(
    "slack",
    SLACK,
    json!({"ok": false, "error": "bad_client_secret"}),
    Failure::Final(Fault::Configuration)
)]
#[case::slack_broken(
    "slack",
    SLACK,
    json!({"ok": false, "error": "internal_error"}),
    Failure::Passing(Fault::Unavailable)
)]
#[tokio::test]
async fn a_success_may_be_an_error(
    #[case] preset: &str,
    #[case] token: &str,
    #[case] answer: Value,
    #[case] failure: Failure,
) {
    let stage = Stage::with(settings(preset, ""), &["a"]).await;
    stage.answer(token, 200, &answer);
    assert_eq!(stage.provider.exchange("code-1", &stage.ties).await.err(), Some(failure));
}

/// What a refresh token that is over is told by; whatever else is wrong may pass.
#[rstest]
#[case::github("github", GITHUB, 200, json!({"error": "bad_refresh_token"}), true)]
#[case::slack("slack", SLACK, 200, json!({"ok": false, "error": "invalid_refresh_token"}), true)]
#[case::slack_revoked("slack", SLACK, 200, json!({"ok": false, "error": "token_revoked"}), true)]
#[case::slack_broken("slack", SLACK, 200, json!({"ok": false, "error": "internal_error"}), false)]
#[case::atlassian("atlassian", ATLASSIAN, 403, json!({"error": "invalid_grant"}), true)]
#[case::atlassian_403_alone("atlassian", ATLASSIAN, 403, json!({}), false)]
#[case::hubspot("hubspot", HUBSPOT, 400, json!({"status": "BAD_REFRESH_TOKEN"}), true)]
#[tokio::test]
async fn a_refresh_token_that_is_over_is_so_in_every_dialect(
    #[case] preset: &str,
    #[case] token: &str,
    #[case] status: u16,
    #[case] answer: Value,
    #[case] over: bool,
) {
    let stage = Stage::with(settings(preset, ""), &["a"]).await;
    let first = json!({"access_token": "at", "refresh_token": "rt", "authed_user": {}});
    stage.answer(token, 200, &first);
    let tokens = stage.provider.exchange("code-1", &stage.ties).await.unwrap();
    stage.answer(token, status, &answer);
    let failure = stage.provider.refresh(&tokens).await.unwrap_err();
    assert_eq!(failure == Failure::Final(Fault::RefreshToken), over, "{failure:?}");
    assert!(over || matches!(failure, Failure::Passing(_)), "{failure:?}");
}

/// Slack answers a revocation too with 200, whatever came of it.
#[rstest]
#[case::done(json!({"ok": true, "revoked": true}), Ok(()))]
#[case::over_already(json!({"ok": false, "error": "token_revoked"}), Ok(()))]
#[case::not_done(json!({"ok": false, "error": "internal_error"}), Err(Failure::Passing(Fault::Unavailable)))]
#[tokio::test]
async fn a_revocation_that_slack_did_not_do_is_tried_again(
    #[case] answer: Value,
    #[case] expected: Result<(), Failure>,
) {
    let stage = Stage::with(settings("slack", ""), &["a"]).await;
    stage.answer(SLACK, 200, &json!({"ok": true, "authed_user": {"access_token": "xoxp-1"}}));
    let tokens = stage.provider.exchange("code-1", &stage.ties).await.unwrap();
    stage.answer("https://slack.com/api/auth.revoke", 200, &answer);
    assert_eq!(stage.provider.revoke(&tokens).await, expected);
}
