//! Signing in at an issuer that does what the test tells it, over HTTP.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use rstest::rstest;
use serde_json::{Value, json};

use super::harness::handler::Issued;
use super::harness::issuer::{Issuer, now};
use super::harness::provider::{Answer, KEYS, METADATA, Provider, TOKEN};
use super::harness::{Page, Server, Setup, Visitor, ask};

/// A service whose people sign in at a provider.
struct Gate {
    provider: Provider,
    server: Server,
}

impl Gate {
    async fn start() -> Self {
        Self::with("").await
    }

    async fn with(settings: &str) -> Self {
        let provider = Provider::start().await;
        let server = Server::start(Setup::oidc(provider.url(), settings)).await;
        Self { provider, server }
    }

    async fn issue(&self, person: &str) -> Issued {
        let mut ask = ask();
        ask["subject"] = json!({"issuer": self.provider.url(), "id": person});
        self.server.handler().issue(&ask).await
    }

    /// Presses the button on the page of a link; what the issuer is asked.
    async fn begin(&self, visitor: &Visitor, link: &str) -> BTreeMap<String, String> {
        let page = visitor.get(link).await;
        asked(&visitor.leave(link, &page).await)
    }

    /// Signs a person in, by a link, to the end.
    async fn sign_in(&self, visitor: &Visitor, link: &str, person: &str) -> Page {
        let asked = self.begin(visitor, link).await;
        self.provider.give_claims(&self.provider.claims(person, &asked["nonce"]));
        let page = visitor.get(&returns(&asked, &[("code", "good")])).await;
        assert_eq!((page.status.as_u16(), page.location()), (303, Url::parse(link).unwrap().path()));
        visitor.get(link).await
    }
}

/// Where the issuer sends the browser.
fn returns(asked: &BTreeMap<String, String>, more: &[(&str, &str)]) -> String {
    let mut url = Url::parse(&asked["redirect_uri"]).unwrap();
    url.query_pairs_mut().append_pair("state", &asked["state"]).extend_pairs(more);
    url.into()
}

fn asked(url: &Url) -> BTreeMap<String, String> {
    url.query_pairs().into_owned().collect()
}

fn session(visitor: &Visitor) -> Option<String> {
    visitor.cookies().remove("__Host-sidegate-session-staff")
}

#[tokio::test]
async fn r03_r09_r10_r32_a_person_signs_in_and_is_named() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let page = ada.get(&issued.url).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (401, "Sign in to continue"));
    assert!(page.text().contains("Weather tools") && !page.html.contains("Oslo"), "{}", page.text());
    assert!(!page.html.contains("WeatherCo"), "{}", page.html);
    assert_eq!((page.cookies(), gate.server.handler().state(&issued.id).await.as_str()), (vec![], "pending"));

    let asked = gate.begin(&ada, &issued.url).await;
    assert_eq!((asked["response_type"].as_str(), asked["client_id"].as_str()), ("code", "sidegate"));
    assert_eq!((asked["scope"].as_str(), asked["fixed"].as_str()), ("openid profile email", "1"));
    assert_eq!(asked["redirect_uri"], gate.server.url("signin/staff/callback"));
    assert_eq!(asked["code_challenge_method"], "S256");
    for name in ["state", "nonce", "code_challenge"] {
        assert!(asked[name].len() == 43, "{name}: 256 bits");
    }
    let all = format!("{asked:?}");
    assert!(!all.contains(&issued.id) && !all.contains("Oslo") && !all.contains("ada"), "{all}");
    assert_eq!(session(&ada), None);

    gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
    let back = ada.get(&returns(&asked, &[("code", "good")])).await;
    assert_eq!((back.status.as_u16(), back.location()), (303, format!("/e/{}", issued.id).as_str()));
    let [cookie] = &back.cookies()[..] else { panic!("{:?}", back.cookies()) };
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert!(pair.starts_with("__Host-sidegate-session-staff=") && pair.len() == 30 + 43, "{pair}");
    let mut attributes: Vec<_> = attributes.split("; ").collect();
    attributes.sort_unstable();
    assert_eq!(attributes, ["HttpOnly", "Path=/", "SameSite=Lax", "Secure"]);

    let sent = gate.provider.asked(TOKEN).remove(0);
    assert!(sent.contains("grant_type=authorization_code") && sent.contains("code=good"), "{sent}");
    let verifier = asked_in(&sent, "code_verifier");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    assert_eq!(URL_SAFE_NO_PAD.encode(digest), asked["code_challenge"]);

    let page = ada.get(&issued.url).await;
    assert!(page.text().contains("ada@example.com") && page.text().contains("Not you?"), "{}", page.text());
    ada.complete(&issued.url, "wk-1").await;
    let claimed = gate.server.handler().claim(&issued, None).await;
    assert_eq!(claimed.text_at("/credential/values/api_key"), "wk-1");
    let log = gate.server.log();
    for canary in [&asked["state"], &asked["nonce"], &verifier, "good", "ada", pair] {
        assert!(!log.contains(canary), "{canary} in {log}");
    }
}

fn asked_in(body: &str, name: &str) -> String {
    let form = body.lines().last().unwrap();
    let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).unwrap().1.to_owned()
}

#[tokio::test]
async fn r04_r05_r07_another_person_is_refused_and_the_link_stays_as_it_was() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let (ada, bob) = (gate.server.visitor(), gate.server.visitor());
    let page = gate.sign_in(&bob, &issued.url, "bob").await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (403, "This link was made for someone else"));
    assert!(page.text().contains("bob@example.com") && !page.html.contains("Oslo"), "{}", page.text());
    let shown = gate.sign_in(&ada, &issued.url, "ada").await;
    // What ada's page has is of no use to bob.
    let form = shown.filled(&[("api_key", "stolen")]);
    assert_eq!(bob.post(&format!("{}/secret", issued.url), &form).await.status, 403);
    assert_eq!(bob.post(&format!("{}/decline", issued.url), &form).await.status, 403);
    assert_eq!(gate.server.handler().state(&issued.id).await, "pending");
    ada.complete(&issued.url, "wk-1").await;
    assert!(gate.server.refusals().await.contains(&"wrong_person".to_owned()));
}

#[tokio::test]
async fn r28_a_form_that_is_not_ours_begins_no_sign_in() {
    let gate = Gate::start().await;
    let (issued, other) = (gate.issue("ada").await, gate.issue("bob").await);
    let visitor = gate.server.visitor();
    let good = visitor.get(&issued.url).await.proof();
    let elsewhere = visitor.get(&other.url).await.proof();
    let to = format!("{}/signin", issued.url);
    let foreign = visitor.form(&to, &good).header("sec-fetch-site", "cross-site");
    let origin =
        visitor.request(reqwest::Method::POST, &to).form(&good).header("origin", "https://evil.example");
    for (what, page) in [
        ("no token", visitor.post(&to, &[]).await),
        ("another elicitation's token", visitor.post(&to, &elsewhere).await),
        ("cross-site", Visitor::send(foreign).await),
        ("another origin", Visitor::send(origin).await),
    ] {
        assert_eq!((page.status.as_u16(), page.cookies()), (403, vec![]), "{what}");
    }
    assert_eq!(visitor.get(&to).await.status, 404);
    assert_eq!(visitor.cookies(), BTreeMap::new());
    assert_eq!(visitor.post(&to, &good).await.status, 303);
}

#[tokio::test]
async fn r09_a_sign_in_comes_back_once_and_to_its_own_browser() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let (ada, mallory) = (gate.server.visitor(), gate.server.visitor());
    let asked = gate.begin(&ada, &issued.url).await;
    gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
    let back = returns(&asked, &[("code", "good")]);
    // Somebody who has begun one of their own, and somebody who has not.
    gate.begin(&mallory, &issued.url).await;
    for stranger in [&mallory, &gate.server.visitor()] {
        let page = stranger.get(&back).await;
        assert_eq!((page.status.as_u16(), page.heading().as_str()), (403, "This sign-in did not begin here"));
        assert!(session(stranger).is_none() && !page.html.contains(&issued.id));
    }
    assert_eq!(gate.provider.asked(TOKEN), [""; 0], "no code was exchanged");
    let signed_in = ada.get(&back).await;
    assert_eq!(signed_in.status, 303);
    let first = session(&ada).unwrap();
    // Back and reload: it is over, and the person is signed in.
    let again = ada.get(&back).await;
    assert_eq!((again.status.as_u16(), again.cookies()), (303, vec![]));
    let next = ada.get(&format!("{}{}", issued.url.split("/e/").next().unwrap(), again.location())).await;
    assert_eq!((next.status.as_u16(), next.location()), (303, format!("/e/{}", issued.id).as_str()));
    assert_eq!(gate.provider.asked(TOKEN).len(), 1);
    // Never begun: another state, none at all, one with a state of another source.
    let callback = gate.server.url("signin/staff/callback");
    let unknown = "A".repeat(43);
    for query in
        [format!("?code=c&state={unknown}"), "?code=c".to_owned(), format!("?code=c&state={unknown}&state=x")]
    {
        let page = ada.get(&format!("{callback}{query}")).await;
        assert!(matches!(page.status.as_u16(), 400 | 403) && page.cookies().is_empty(), "{query}");
    }
    assert_eq!(session(&ada), Some(first));
    let refusals = gate.server.refusals().await;
    for reason in ["sign_in_other_browser", "sign_in_replayed", "sign_in_unknown"] {
        assert!(refusals.iter().any(|refusal| refusal == reason), "{reason}: {refusals:?}");
    }
}

#[tokio::test]
async fn r09_r10_the_session_is_new_with_each_sign_in_and_not_you_ends_it() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    // A session that somebody planted is none.
    ada.plant("__Host-sidegate-session-staff", &"A".repeat(43));
    assert_eq!(ada.get(&issued.url).await.status, 401);
    let page = gate.sign_in(&ada, &issued.url, "bob").await;
    assert_eq!(page.status, 403);
    let first = session(&ada).unwrap();
    assert_ne!(first, "A".repeat(43));
    // "Sign in with another account" ends bob's session at once and asks who it is.
    let asked = asked(&ada.leave(&issued.url, &page).await);
    assert_eq!(asked["prompt"].as_str(), "login");
    ada.plant("__Host-sidegate-session-staff", &first);
    assert_eq!(ada.get(&issued.url).await.status, 401, "it is over at the service, too");
    gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
    ada.get(&returns(&asked, &[("code", "good")])).await;
    let second = session(&ada).unwrap();
    assert_ne!(first, second);
    let shown = ada.get(&issued.url).await;
    assert_eq!(shown.status, 200);
    // Whoever is signed in already needs not do it again.
    let form = shown.proof();
    let begun = ada.post(&format!("{}/signin", issued.url), &form).await;
    assert_eq!((begun.status.as_u16(), begun.location()), (303, format!("/e/{}", issued.id).as_str()));
    // The page of an ended session is no page of ours any more.
    let page = ada.get(&issued.url).await;
    let asked = {
        let form = [page.proof(), vec![("again".to_owned(), "1".to_owned())]].concat();
        ada.post(&format!("{}/signin", issued.url), &form).await
    };
    assert_eq!(asked.status, 303);
    let stale = ada.post(&format!("{}/secret", issued.url), &page.filled(&[("api_key", "x")])).await;
    assert_eq!(stale.status, 401);
    assert_eq!(gate.server.handler().state(&issued.id).await, "pending");
}

#[tokio::test]
async fn several_tabs_each_with_its_own_link_sign_in() {
    let gate = Gate::start().await;
    let ada = gate.server.visitor();
    let (one, other) = (gate.issue("ada").await, gate.issue("ada").await);
    let (first, second) = (gate.begin(&ada, &one.url).await, gate.begin(&ada, &other.url).await);
    assert_ne!(first["state"], second["state"]);
    for (asked, issued) in [(&second, &other), (&first, &one)] {
        gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
        let back = ada.get(&returns(asked, &[("code", "good")])).await;
        assert_eq!((back.status.as_u16(), back.location()), (303, format!("/e/{}", issued.id).as_str()));
    }
    ada.complete(&one.url, "wk-1").await;
    ada.complete(&other.url, "wk-2").await;
}

/// What an issuer can do wrong in what it gives, and the word for it on the audit trail.
#[rstest]
#[case::another_audience(json!({"aud": "other"}), "token_audience")]
#[case::another_issuer(json!({"iss": "https://evil.example"}), "token_issuer")]
#[case::expired(json!({"exp": now() - 120}), "token_time")]
#[case::a_clock_one_hour_ahead(json!({"iat": now() + 3600, "exp": now() + 4200}), "token_time")]
#[case::no_nonce(json!({"nonce": null}), "token_nonce")]
#[case::another_nonce(json!({"nonce": "other"}), "token_nonce")]
#[case::another_party(json!({"azp": "other"}), "token_azp")]
#[case::several_audiences(json!({"aud": ["sidegate", "other"]}), "token_azp")]
#[case::nobody(json!({"sub": null}), "token_subject_missing")]
#[tokio::test]
async fn r19_an_id_token_that_says_something_else_signs_nobody_in(#[case] over: Value, #[case] reason: &str) {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let asked = gate.begin(&ada, &issued.url).await;
    let mut claims = gate.provider.claims("ada", &asked["nonce"]);
    for (name, value) in over.as_object().unwrap() {
        claims[name] = value.clone();
    }
    gate.provider.give_claims(&claims);
    let url = returns(&asked, &[("code", "good")]);
    is_refused(&gate, &ada, &issued, &url, reason).await;
}

/// The sign-in does not come about, the page says so and leads back, and all else is as it was.
async fn is_refused(gate: &Gate, visitor: &Visitor, issued: &Issued, url: &str, reason: &str) {
    let back = visitor.get(url).await;
    assert_eq!((back.status.as_u16(), session(visitor)), (303, None), "{}", back.text());
    assert!(!back.location().contains('?'), "{}", back.location());
    let said =
        visitor.get(&format!("{}{}", gate.server.url("").trim_end_matches('/'), back.location())).await;
    assert!(matches!(said.status.as_u16(), 403 | 503), "{} {}", said.status, said.text());
    assert_eq!(said.attributes("form", "action"), [format!("/e/{}/signin", issued.id)]);
    assert!(!said.html.contains("Oslo"));
    assert_eq!(gate.server.refusals().await, [reason]);
    assert_eq!(gate.server.handler().state(&issued.id).await, "pending");
    assert!(!gate.server.log().contains("good"), "{}", gate.server.log());
}

#[rstest]
#[case::no_algorithm(json!({"alg": "none"}), "token_algorithm")]
#[case::a_shared_secret(json!({"alg": "HS256"}), "token_algorithm")]
#[case::of_another_key(json!({"kid": "other"}), "token_key_unknown")]
#[case::forged(json!({"typ": "JWT"}), "token_signature")]
#[tokio::test]
async fn r19_an_id_token_that_nobody_signed_right_signs_nobody_in(
    #[case] header: Value,
    #[case] reason: &str,
) {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let asked = gate.begin(&ada, &issued.url).await;
    let claims = gate.provider.claims("ada", &asked["nonce"]);
    let forger = Issuer::in_file();
    let signer = if reason == "token_signature" { &forger } else { &gate.provider.signer };
    let token = signer.sign(&header, &claims);
    let unsigned = token.rsplit_once('.').unwrap().0.to_owned() + ".";
    gate.provider.give(if header["alg"] == "none" { &unsigned } else { &token });
    let url = returns(&asked, &[("code", "good")]);
    is_refused(&gate, &ada, &issued, &url, reason).await;
}

#[rstest]
#[case::the_person_says_no(&[("error", "access_denied")], "sign_in_denied")]
#[case::an_error(&[("error", "invalid_scope"), ("error_description", "canary")], "sign_in_error")]
#[case::an_error_of_its_own(&[("error", "server_error")], "sign_in_error")]
#[case::nothing(&[], "sign_in_error")]
#[case::another_issuer(&[("code", "good"), ("iss", "https://evil.example")], "sign_in_issuer")]
#[tokio::test]
async fn r13_r18_an_answer_without_a_code_or_of_another_issuer_signs_nobody_in(
    #[case] answer: &[(&str, &str)],
    #[case] reason: &str,
) {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let asked = gate.begin(&ada, &issued.url).await;
    is_refused(&gate, &ada, &issued, &returns(&asked, answer), reason).await;
    assert_eq!(gate.provider.asked(TOKEN), [""; 0]);
}

#[tokio::test]
async fn r13_an_issuer_that_says_that_it_names_itself_must() {
    let gate = Gate::start().await;
    let mut metadata = gate.provider.metadata();
    metadata["authorization_response_iss_parameter_supported"] = true.into();
    gate.provider.answer(METADATA, Answer::With(200, metadata.to_string()));
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let asked = gate.begin(&ada, &issued.url).await;
    gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
    is_refused(&gate, &ada, &issued, &returns(&asked, &[("code", "good")]), "sign_in_issuer").await;
    let asked = gate.begin(&ada, &issued.url).await;
    gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
    let named = [("code", "good"), ("iss", gate.provider.url())];
    ada.get(&returns(&asked, &named)).await;
    assert_eq!(ada.get(&issued.url).await.status, 200);
}

#[rstest]
#[case::the_code_is_refused(TOKEN, Answer::With(400, r#"{"error": "invalid_grant"}"#.to_owned()), "sign_in_code")]
#[case::no_id_token(TOKEN, Answer::With(200, r#"{"access_token": "a"}"#.to_owned()), "sign_in_token_missing")]
#[case::no_token(TOKEN, Answer::With(200, "<html>".to_owned()), "issuer_token_unavailable")]
#[case::the_token_endpoint_fails(TOKEN, Answer::With(503, String::new()), "issuer_token_unavailable")]
#[case::the_token_endpoint_hangs(TOKEN, Answer::Nothing, "issuer_token_unavailable")]
#[case::the_keys_fail(KEYS, Answer::With(500, String::new()), "issuer_keys_unavailable")]
#[case::the_keys_hang(KEYS, Answer::Nothing, "issuer_keys_unavailable")]
#[tokio::test]
async fn r40_an_endpoint_that_does_not_work_is_told_and_may_be_tried_again(
    #[case] path: &str,
    #[case] answer: Answer,
    #[case] reason: &str,
) {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let asked = gate.begin(&ada, &issued.url).await;
    gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
    gate.provider.answer(path, answer);
    is_refused(&gate, &ada, &issued, &returns(&asked, &[("code", "good")]), reason).await;
    gate.provider.answer(KEYS, Answer::With(200, gate.provider.signer.key_set()));
    let again = super::harness::eventually("it works again", async || {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let asked = gate.begin(&ada, &issued.url).await;
        gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
        ada.get(&returns(&asked, &[("code", "good")])).await;
        session(&ada)
    });
    again.await;
    assert_eq!(ada.get(&issued.url).await.status, 200);
}

#[rstest]
#[case::it_fails(Answer::With(500, String::new()), "issuer_metadata_unavailable")]
#[case::it_hangs(Answer::Nothing, "issuer_metadata_unavailable")]
#[case::it_is_something_else(Answer::With(200, "{}".to_owned()), "issuer_metadata")]
#[case::it_is_another_issuers(Answer::With(200, "another".to_owned()), "issuer_metadata")]
#[case::it_leads_elsewhere(Answer::With(200, "private".to_owned()), "issuer_metadata")]
#[tokio::test]
async fn r40_metadata_that_cannot_be_used_is_told_and_asked_for_again(
    #[case] answer: Answer,
    #[case] reason: &str,
) {
    let gate = Gate::start().await;
    let mut metadata = gate.provider.metadata();
    let answer = match answer {
        Answer::With(200, which) if which == "another" => {
            metadata["issuer"] = "https://evil.example".into();
            Answer::With(200, metadata.to_string())
        }
        Answer::With(200, which) if which == "private" => {
            metadata["token_endpoint"] = "https://169.254.169.254/token".into();
            Answer::With(200, metadata.to_string())
        }
        other => other,
    };
    gate.provider.answer(METADATA, answer);
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let form = ada.get(&issued.url).await.proof();
    let begun = ada.post(&format!("{}/signin", issued.url), &form).await;
    assert_eq!(
        (begun.status.as_u16(), begun.location()),
        (303, format!("/e/{}/sign-in/unavailable", issued.id).as_str())
    );
    let said = ada.get(&format!("{}/sign-in/unavailable", issued.url)).await;
    assert_eq!((said.status.as_u16(), said.heading().as_str()), (503, "The sign-in does not work right now"));
    assert!(said.headers.contains_key("retry-after"));
    assert_eq!(gate.server.refusals().await, [reason]);
    gate.provider.answer(METADATA, Answer::With(200, gate.provider.metadata().to_string()));
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    assert_eq!(gate.sign_in(&ada, &issued.url, "ada").await.status, 200);
}

#[tokio::test]
async fn metadata_of_rfc_8414_does_as_well() {
    let gate = Gate::start().await;
    gate.provider.answer(METADATA, Answer::With(404, String::new()));
    let metadata = gate.provider.metadata().to_string();
    gate.provider.answer("/.well-known/oauth-authorization-server", Answer::With(200, metadata));
    let issued = gate.issue("ada").await;
    assert_eq!(gate.sign_in(&gate.server.visitor(), &issued.url, "ada").await.status, 200);
}

#[tokio::test]
async fn settings_are_asked_for_and_checked() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "s3 cret:&\n").unwrap();
    let settings = format!(
        "client_secret_file = \"{}\"\nsubject_claim = \"tid+oid\"\nprompt = \"consent\"\nswitch_prompt = \"select_account\"\n\
         max_age = 300\nacr_values = [\"gold\", \"silver\"]\nscopes = [\"openid\", \"mail\"]",
        secret.path().display()
    );
    let gate = Gate::with(&settings).await;
    let issued = gate.issue("tenant:object").await;
    let ada = gate.server.visitor();
    let good = |nonce: &str| {
        let mut claims = gate.provider.claims("pairwise", nonce);
        for (name, value) in [
            ("tid", json!("tenant")),
            ("oid", json!("object")),
            ("auth_time", json!(now())),
            ("acr", json!("gold")),
        ] {
            claims[name] = value;
        }
        claims
    };
    for (name, value, reason) in [
        ("acr", json!("bronze"), "token_acr"),
        ("acr", Value::Null, "token_acr"),
        ("auth_time", json!(now() - 600), "token_auth_time"),
        ("auth_time", Value::Null, "token_auth_time"),
        ("oid", Value::Null, "token_subject_missing"),
        ("oid", json!("ob:ject"), "token_subject_missing"),
    ] {
        let asked = gate.begin(&ada, &issued.url).await;
        assert_eq!(
            ["prompt", "max_age", "acr_values", "scope"].map(|name| asked[name].as_str()),
            ["consent", "300", "gold silver", "openid mail"]
        );
        let mut claims = good(&asked["nonce"]);
        claims[name] = value;
        gate.provider.give_claims(&claims);
        ada.get(&returns(&asked, &[("code", "good")])).await;
        assert_eq!((session(&ada), gate.server.refusals().await.pop().unwrap().as_str()), (None, reason));
    }
    let asked = gate.begin(&ada, &issued.url).await;
    gate.provider.give_claims(&good(&asked["nonce"]));
    ada.get(&returns(&asked, &[("code", "good")])).await;
    let page = ada.get(&issued.url).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let sent = gate.provider.asked(TOKEN).pop().unwrap();
    let basic = base64::engine::general_purpose::STANDARD.encode("sidegate:s3+cret%3A%26");
    assert!(sent.contains(&format!("Basic {basic}")) && !sent.contains("client_secret"), "{sent}");
    let form = [page.proof(), vec![("again".to_owned(), "1".to_owned())]].concat();
    let begun = ada.post(&format!("{}/signin", issued.url), &form).await;
    let leaves = ada.get(&format!("{}{}", gate.server.url("").trim_end_matches('/'), begun.location())).await;
    assert!(leaves.html.contains("prompt=select_account"), "{}", leaves.html);
}

#[tokio::test]
async fn the_page_on_the_way_out_is_for_its_own_browser_and_link() {
    let gate = Gate::start().await;
    let (issued, other) = (gate.issue("ada").await, gate.issue("ada").await);
    let (ada, mallory) = (gate.server.visitor(), gate.server.visitor());
    let form = ada.get(&issued.url).await.proof();
    let begun = ada.post(&format!("{}/signin", issued.url), &form).await;
    let leave = format!("{}{}", gate.server.url("").trim_end_matches('/'), begun.location());
    let departure = leave.rsplit('/').next().unwrap();
    for (visitor, url) in [
        (&mallory, leave.clone()),
        (&ada, format!("{}/leave/{departure}", other.url)),
        (&ada, format!("{}/leave/{}", issued.url, "A".repeat(43))),
    ] {
        let page = visitor.get(&url).await;
        assert_eq!(page.status, 403, "{url}");
        assert!(!page.html.contains(gate.provider.url()));
    }
    for _ in 0..2 {
        assert_eq!(ada.get(&leave).await.status, 200, "it may be loaded again");
    }
}

/// As the bytes of a `Cookie` header: a browser guards the name `__Host-…` and no other spelling of it.
#[tokio::test]
async fn r09_only_a_cookie_of_the_very_name_counts_and_one_beside_it_does_not_matter() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    gate.sign_in(&ada, &issued.url, "ada").await;
    let value = session(&ada).unwrap();
    let open = async |cookie: String| {
        let request = gate.server.visitor().request(reqwest::Method::GET, &issued.url);
        let bytes = reqwest::header::HeaderValue::from_bytes(cookie.as_bytes()).unwrap();
        Visitor::send(request.header("cookie", bytes)).await.status.as_u16()
    };
    let name = "__Host-sidegate-session-staff";
    for (cookie, status) in [
        (format!("{name}={value}"), 200),
        (format!("a=b; {name}={value};c"), 200),
        (format!("%5F%5FHost-sidegate-session-staff={value}"), 401),
        (format!("%5F%5FHost-sidegate-session-staff=planted; {name}={value}"), 200),
        (format!("{name}={value}; other=caf\u{e9}"), 200),
        (format!("{name}=planted; {name}={value}"), 401),
        (format!("{}={value}", name.to_lowercase()), 401),
        (format!("{name}x={value}"), 401),
        (format!("{name} ={value}"), 401),
    ] {
        assert_eq!(open(cookie.clone()).await, status, "{cookie}");
    }
}

/// Pages that are older than the session, or younger than its end, lead on all the same.
#[tokio::test]
async fn a_page_from_before_the_sign_in_leads_to_the_link_and_a_second_click_does_no_harm() {
    let gate = Gate::start().await;
    let (one, other) = (gate.issue("ada").await, gate.issue("ada").await);
    let ada = gate.server.visitor();
    let waiting = ada.get(&other.url).await;
    let shown = gate.sign_in(&ada, &one.url, "ada").await;
    let pressed = ada.post(&format!("{}/signin", other.url), &waiting.proof()).await;
    assert_eq!((pressed.status.as_u16(), pressed.location()), (303, format!("/e/{}", other.id).as_str()));
    let again = [shown.proof(), vec![("again".to_owned(), "1".to_owned())]].concat();
    let to = format!("{}/signin", one.url);
    for _ in 0..2 {
        let begun = ada.post(&to, &again).await;
        assert!(begun.status == 303 && begun.location().contains("/leave/"), "{}", begun.text());
    }
    // What was entered after that is not taken, and the page says so.
    let sent = ada.post(&format!("{}/secret", one.url), &shown.filled(&[("api_key", "wk-1")])).await;
    assert_eq!((sent.status.as_u16(), sent.heading().as_str()), (401, "You are no longer signed in"));
    assert_eq!(gate.server.handler().state(&one.id).await, "pending");
}

#[tokio::test]
async fn r10_r29_the_name_that_is_shown_is_clean_short_and_verified() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let long = "x".repeat(9000);
    for (over, shown) in [
        (json!({"email": "ada@\u{202e}example.com"}), "ada@example.com"),
        (json!({"email": "boss@example.com", "email_verified": false, "name": "Ada"}), "Ada"),
        (json!({"email": null, "name": long}), "ada"),
        (json!({"email": "a\nb", "name": "\u{200b}"}), "ada"),
    ] {
        let ada = gate.server.visitor();
        let asked = gate.begin(&ada, &issued.url).await;
        let mut claims = gate.provider.claims("ada", &asked["nonce"]);
        for (name, value) in over.as_object().unwrap() {
            claims[name] = value.clone();
        }
        gate.provider.give_claims(&claims);
        ada.get(&returns(&asked, &[("code", "good")])).await;
        let page = ada.get(&issued.url).await;
        let named = page.texts(".facts strong").concat();
        assert_eq!(named, shown);
        assert!(page.text().contains("at 127.0.0.1"), "{}", page.text());
    }
}

#[tokio::test]
async fn r09_r26_a_session_outlives_a_rotation_and_a_sign_out_ends_it_under_every_key() {
    let mut gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    gate.sign_in(&ada, &issued.url, "ada").await;
    let cookie = session(&ada).unwrap();
    let mut rotate = super::harness::sidegate();
    rotate.args(["keys", "rotate", "--file"]).arg(gate.server.data().join("keys.toml"));
    assert!(rotate.status().await.unwrap().success());
    gate.server.stop().await;
    gate.server = gate.server.start_again().await;
    // Its use is noted under the new key after a minute.
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    let page = ada.get(&issued.url).await;
    assert_eq!(page.status, 200);
    let again = [page.proof(), vec![("again".to_owned(), "1".to_owned())]].concat();
    assert_eq!(ada.post(&format!("{}/signin", issued.url), &again).await.status, 303);
    ada.plant("__Host-sidegate-session-staff", &cookie);
    assert_eq!(ada.get(&issued.url).await.status, 401);
}

#[tokio::test]
async fn r35_sign_ins_from_one_address_are_limited_more_tightly_and_strays_do_not_fill_the_trail() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let visitor = gate.server.visitor();
    let stray = gate.server.url(&format!("signin/staff/callback?state={}", "A".repeat(43)));
    let mut statuses = Vec::new();
    for _ in 0..150 {
        statuses.push(visitor.get(&stray).await.status.as_u16());
    }
    assert!(statuses[..60].iter().all(|status| *status == 403), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(visitor.get(&issued.url).await.status, 401, "pages are not affected");
    // The same in another spelling; a step is free again every fifth of a second.
    let form = visitor.get(&issued.url).await.proof();
    for path in ["s%69gnin/staff/callback?state=x", "h%61ndoff/x/return?ticket=x"] {
        let url = gate.server.url(path);
        let tries = futures_util::future::join_all((0..30).map(|_| visitor.get(&url))).await;
        assert!(tries.iter().any(|page| page.status == 429), "{path}");
    }
    let begin = format!("{}/s%69gnin", issued.url);
    let tries = futures_util::future::join_all((0..30).map(|_| visitor.post(&begin, &form))).await;
    assert!(tries.iter().any(|page| page.status == 429) && tries.iter().any(|page| page.status != 404));
    let noted = gate.server.refusals().await.iter().filter(|reason| *reason == "sign_in_unknown").count();
    assert!((1..30).contains(&noted), "{noted}");
}

#[tokio::test]
async fn r09_of_many_returns_at_once_one_signs_in_and_the_others_are_known() {
    let gate = Gate::start().await;
    let issued = gate.issue("ada").await;
    let ada = gate.server.visitor();
    let asked = gate.begin(&ada, &issued.url).await;
    gate.provider.give_claims(&gate.provider.claims("ada", &asked["nonce"]));
    let back = returns(&asked, &[("code", "good")]);
    let returned = futures_util::future::join_all((0..12).map(|_| ada.get(&back))).await;
    assert!(returned.iter().all(|page| page.status == 303), "{returned:?}");
    assert_eq!(returned.iter().filter(|page| !page.cookies().is_empty()).count(), 1);
    assert_eq!(gate.provider.asked(TOKEN).len(), 1);
    assert_eq!(gate.server.refusals().await, ["sign_in_replayed"; 11]);
}

#[tokio::test]
async fn a_person_signs_in_to_see_what_is_kept_for_them() {
    let gate = Gate::start().await;
    let mut ask = ask();
    ask["subject"] = json!({"issuer": gate.provider.url(), "id": "ada"});
    ask["secret"]["keep"] = json!({"slot": "weatherco", "days": 30});
    let issued = gate.server.handler().issue(&ask).await;
    let (ada, bob) = (gate.server.visitor(), gate.server.visitor());
    gate.sign_in(&ada, &issued.url, "ada").await;
    ada.complete(&issued.url, "wk-1").await;
    // In another browser, without any link.
    let (again, door) = (gate.server.visitor(), gate.server.url("mine/staff"));
    let page = again.get(&gate.server.url("mine")).await;
    assert_eq!((page.status.as_u16(), page.location()), (303, "/mine/staff"));
    for (visitor, person, shown) in
        [(&again, "ada", "WeatherCo API key"), (&bob, "bob", "Nothing is kept for you here")]
    {
        let page = visitor.get(&door).await;
        assert_eq!(
            (page.status.as_u16(), page.heading().as_str()),
            (401, "Sign in to see what is kept for you")
        );
        assert!(!page.text().contains("Weather"), "{}", page.text());
        let asked = asked(&visitor.leave(&door, &page).await);
        gate.provider.give_claims(&gate.provider.claims(person, &asked["nonce"]));
        let back = visitor.get(&returns(&asked, &[("code", "good")])).await;
        assert_eq!((back.status.as_u16(), back.location()), (303, "/mine/staff"));
        let page = visitor.get(&door).await;
        assert!(page.text().contains(shown) && !page.html.contains("wk-1"), "{}", page.text());
    }
    // What is ada's page has no use to bob.
    let page = again.get(&door).await;
    let mut form = page.proof();
    form.push(("grant".to_owned(), page.attributes("input[name=grant]", "value").remove(0)));
    assert_eq!(bob.post(&format!("{door}/delete"), &form).await.status, 403);
    assert!(again.get(&door).await.text().contains("WeatherCo API key"));
}

/// An answer counts for the session in which it was asked for, and no later one.
#[tokio::test]
async fn r11_the_state_of_another_session_is_refused() {
    let provider = Provider::start().await;
    let url = provider.url().to_owned();
    let section = format!(
        "[[providers]]\nid = \"fake\"\nclient_id = \"c\"\nauthorization_endpoint = \"{url}/there\"\n\
         token_endpoint = \"{url}/tokens\"\n"
    );
    let setup = Setup::oidc(&url, "").replacing("kinds = [\"secret\"]", "kinds = [\"oauth\"]").and(&section);
    let gate = Gate { server: Server::start(setup).await, provider };
    let mut ask = ask();
    ask["kind"] = "oauth".into();
    ask.as_object_mut().unwrap().remove("secret");
    ask["subject"] = json!({"issuer": url, "id": "ada"});
    ask["oauth"] = json!({"provider": "fake"});
    let issued = gate.server.handler().issue(&ask).await;
    let ada = gate.server.visitor();
    let page = gate.sign_in(&ada, &issued.url, "ada").await;
    let pressed = ada.post(&format!("{}/authorize", issued.url), &page.proof()).await;
    let leaves = ada.get(gate.server.base().join(pressed.location()).unwrap().as_str()).await;
    let there = asked(&Url::parse(&leaves.attributes("a.button", "href").remove(0)).unwrap());
    // She signs in anew, as herself.
    let again = asked(&ada.leave(&issued.url, &ada.get(&issued.url).await).await);
    gate.provider.give_claims(&gate.provider.claims("ada", &again["nonce"]));
    assert_eq!(ada.get(&returns(&again, &[("code", "good")])).await.status, 303);
    let back = ada.get(&returns(&there, &[("code", "theirs")])).await;
    assert_eq!(back.location(), format!("/e/{}/authorize/not-accepted", issued.id), "{}", back.text());
    assert!(gate.provider.asked("/tokens").is_empty());
    assert_eq!(gate.server.refusals().await, ["authorization_session"]);
    assert_eq!(gate.server.handler().state(&issued.id).await, "in_progress");
}
