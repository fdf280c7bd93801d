//! Authorising a third party: against a real `oidc-provider`, over HTTP.

use reqwest::Url;
use rstest::rstest;
use serde_json::{Value, json};

use super::harness::authority::{Authority, SECRET};
use super::harness::browser::run;
use super::harness::handler::Issued;
use super::harness::issuer::Issuer;
use super::harness::{Backing, Fleet, Page, Server, Setup, Visitor, ask, eventually};

/// A service whose people authorise two real providers, `one` and `two`.
pub(crate) struct Gate {
    pub(crate) people: Issuer,
    pub(crate) one: Authority,
    two: Authority,
    pub(crate) fleet: Fleet,
    _secret: tempfile::NamedTempFile,
}

impl Gate {
    pub(crate) async fn start(backing: Backing, provider: &str, authority: &Value) -> Self {
        Self::with(backing, provider, authority, |setup| setup).await
    }

    pub(crate) async fn with(
        backing: Backing,
        provider: &str,
        authority: &Value,
        more: impl FnOnce(Setup) -> Setup,
    ) -> Self {
        let people = Issuer::in_file();
        let (mut one, mut two) = (Authority::start().await, Authority::start().await);
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), SECRET).unwrap();
        let section = |id: &str, url: &str, more: &str| {
            format!(
                "[[providers]]\nid = \"{id}\"\nname = \"Provider {id}\"\nissuer = \"{url}\"\nclient_id = \"sidegate\"\n\
                 client_secret_file = \"{}\"\nscopes = [\"read\"]\n{more}\n",
                secret.path().display()
            )
        };
        let setup = Setup::proxy(&people)
            .replacing("kinds = [\"secret\"]", "kinds = [\"secret\", \"oauth\"]")
            .and("[upstream]\nallow_addresses = [\"127.0.0.0/8\"]\n")
            .and(&section("one", one.url(), provider))
            .and(&section("two", two.url(), ""));
        let fleet = Fleet::start(backing, more(setup)).await;
        let uris = |id: &str| {
            (0..2).map(|number| fleet.at(number).url(&format!("oauth/callback/{id}"))).collect::<Vec<_>>()
        };
        one.serve(&uris("one"), authority).await;
        two.serve(&uris("two"), &json!({})).await;
        Self { people, one, two, fleet, _secret: secret }
    }

    pub(crate) async fn plain() -> Self {
        Self::start(Backing::Embedded, "", &json!({})).await
    }

    pub(crate) fn server(&self) -> &Server {
        self.fleet.at(0)
    }

    pub(crate) fn person(&self, name: &str) -> Visitor {
        self.server().visitor().signed_in(self.people.token(name))
    }

    pub(crate) fn ask(&self, more: &Value) -> Value {
        let mut ask = ask();
        ask["kind"] = "oauth".into();
        ask.as_object_mut().unwrap().remove("secret");
        ask["subject"] = json!({"issuer": self.people.name(), "id": "ada"});
        ask["oauth"] = json!({"provider": "one", "scopes": ["read"]});
        for (name, value) in more.as_object().unwrap() {
            ask["oauth"][name] = value.clone();
        }
        ask
    }

    pub(crate) async fn issue(&self, more: &Value) -> Issued {
        self.server().handler().issue(&self.ask(more)).await
    }

    /// Presses Continue: where the browser goes.
    pub(crate) async fn leave(&self, person: &Visitor, link: &str) -> Url {
        let page = person.get(link).await;
        assert_eq!(page.status, 200, "{}", page.text());
        continue_from(person, link, &page).await
    }

    /// Goes to the provider, allows all, and comes back.
    pub(crate) async fn authorize(&mut self, person: &Visitor, link: &str) -> Page {
        let to = self.leave(person, link).await;
        let back = self.one.approve(to.as_str(), "octocat").await;
        person.get(text(&back, "/to")).await
    }
}

async fn continue_from(person: &Visitor, link: &str, page: &Page) -> Url {
    let begun = person.post(&format!("{link}/authorize"), &page.proof()).await;
    assert_eq!(begun.status, 303, "{}", begun.text());
    let base = Url::parse(link).unwrap();
    let leaves = person.get(base.join(begun.location()).unwrap().as_str()).await;
    assert_eq!(leaves.status, 200, "{} {}", begun.location(), leaves.text());
    Url::parse(&leaves.attributes("a.button", "href").remove(0)).unwrap()
}

pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value:#}"))
}

pub(crate) fn query(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[rstest]
#[case::plain("", json!({}))]
#[case::form_post("form_post = true", json!({}))]
#[case::pushed("", json!({"par": "required"}))]
#[case::signed("", json!({"jarm": true}))]
#[case::signed_form("form_post = true", json!({"jarm": true}))]
#[case::without_iss("", json!({"iss": false}))]
#[case::bound("dpop = true", json!({"dpop": "required"}))]
#[tokio::test]
async fn r11_r12_r15_a_person_authorises_a_provider(
    #[case] provider: &str,
    #[case] authority: Value,
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let mut gate = Gate::start(backing, provider, &authority).await;
    let issued = gate.issue(&json!({})).await;
    let ada = gate.person("ada");
    let page = ada.get(&issued.url).await;
    assert_eq!(page.heading(), "Weather tools asks for access to your Provider one account");
    assert_eq!((page.texts(".scopes code"), page.cookies()), (vec!["read".to_owned()], vec![]));
    let to = gate.leave(&ada, &issued.url).await;
    assert_eq!(gate.server().handler().state(&issued.id).await, "in_progress");
    let answer = gate.one.approve(to.as_str(), "octocat").await;
    // The browser may come back to any instance.
    let back = if let Some(form) = answer.get("form") {
        let fields: Vec<_> = form.as_object().unwrap().iter().collect();
        let fields: Vec<_> = fields
            .into_iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect();
        // From elsewhere, so without our cookies.
        let posted = gate.server().visitor().post(&gate.fleet.link(text(&answer, "/post"), 1), &fields).await;
        assert_eq!(posted.status, 303, "{}", posted.text());
        assert!(!posted.location().contains("code="), "{}", posted.location());
        ada.get(&gate.fleet.at(1).url(posted.location().trim_start_matches('/'))).await
    } else {
        ada.get(&gate.fleet.link(text(&answer, "/to"), 1)).await
    };
    let done = format!("/e/{}/done", issued.id);
    assert_eq!((back.status.as_u16(), back.location()), (303, done.as_str()), "{}", back.text());
    let page = ada.get(&format!("{}/done", issued.url)).await;
    assert!(page.text().contains("The access that you gave is sealed"), "{}", page.text());

    let claimed = gate.fleet.at(1).handler().state(&issued.id).await;
    assert_eq!(claimed, "completed");
    let credential = gate.server().handler().claim(&issued, None).await.ok()["credential"].clone();
    let token = text(&credential, "/accessToken");
    assert_eq!(credential["scopes"], json!(["read"]));
    let bound = provider.contains("dpop");
    assert_eq!(text(&credential, "/tokenType"), if bound { "DPoP" } else { "Bearer" });
    assert_eq!(credential.get("dpopKey").is_some(), bound);
    assert!(credential["refreshToken"].is_string() && credential["expiresAt"].is_string(), "{credential}");
    assert_eq!(gate.one.introspect(token).await["active"], true);
    let exchanged = gate.one.log("token").await;
    assert_eq!(exchanged.len(), 1, "{exchanged:?}");
    assert_eq!(
        (&exchanged[0]["auth"], &exchanged[0]["hasVerifier"]),
        (&json!("client_secret_basic"), &json!(true))
    );
    // Nothing of it is in the log.
    let log = gate.server().log() + &gate.fleet.at(1).log();
    for canary in [token, SECRET, text(&credential, "/refreshToken")] {
        assert!(!log.contains(canary), "{canary}");
    }
    if let Some(state) = query(&to, "state") {
        assert!(state.len() >= 43 && !log.contains(&state), "{state}");
    }
}

#[tokio::test]
async fn r18_no_at_the_provider_is_declined() {
    let mut gate = Gate::plain().await;
    let issued = gate.issue(&json!({})).await;
    let ada = gate.person("ada");
    let to = gate.leave(&ada, &issued.url).await;
    // Only after the state was checked.
    let forged = ada.get(&gate.server().url("oauth/callback/one?error=access_denied&state=forged")).await;
    assert_eq!((forged.status.as_u16(), forged.heading().as_str()), (403, "This did not begin here"));
    assert_eq!(gate.server().handler().state(&issued.id).await, "in_progress");
    let answer = gate.one.deny(to.as_str(), "octocat").await;
    let back = ada.get(text(&answer, "/to")).await;
    assert_eq!(back.status, 303);
    assert_eq!(gate.server().handler().state(&issued.id).await, "declined");
    assert!(gate.one.log("token").await.is_empty());
}

#[tokio::test]
async fn r05_r07_another_persons_callback_reaches_no_token_endpoint() {
    let mut gate = Gate::plain().await;
    let issued = gate.issue(&json!({})).await;
    let (ada, bob) = (gate.person("ada"), gate.person("bob"));
    let page = bob.get(&issued.url).await;
    assert_eq!(page.heading(), "This link was made for someone else");
    let to = gate.leave(&ada, &issued.url).await;
    let answer = gate.one.approve(to.as_str(), "octocat").await;
    let back = text(&answer, "/to").to_owned();
    // Bob has completed what ada began: in his browser it is nobody's.
    assert_eq!(bob.get(&back).await.status, 403);
    // Even with ada's cookie of the browser it is still bob.
    for (name, value) in ada.cookies() {
        bob.plant(&name, &value);
    }
    let refused = bob.get(&back).await;
    assert_eq!(
        (refused.status.as_u16(), refused.heading().as_str()),
        (403, "This link was made for someone else")
    );
    // And ada herself, in a browser that did not begin it: somebody may have sent her there.
    let elsewhere = gate.person("ada").get(&back).await;
    assert_eq!((elsewhere.status.as_u16(), elsewhere.heading().as_str()), (403, "This did not begin here"));
    assert!(gate.one.log("token").await.is_empty(), "no request to the token endpoint");
    assert_eq!(gate.server().handler().state(&issued.id).await, "in_progress");
    // And nothing is used up.
    assert_eq!(ada.get(&back).await.status, 303);
    assert_eq!(gate.server().handler().state(&issued.id).await, "completed");
    // A second time it is late.
    let late = ada.get(&back).await;
    assert_eq!((late.status.as_u16(), late.heading().as_str()), (409, "This has been answered already"));
    assert_eq!(gate.one.log("token").await.len(), 1);
}

#[tokio::test]
async fn r13_mix_ups_are_refused() {
    let mut gate = Gate::plain().await;
    let issued = gate.issue(&json!({})).await;
    let ada = gate.person("ada");
    let to = gate.leave(&ada, &issued.url).await;
    let answer = gate.one.approve(to.as_str(), "octocat").await;
    let back = Url::parse(text(&answer, "/to")).unwrap();
    // One's answer at two's callback.
    let elsewhere = back.as_str().replace("/callback/one", "/callback/two");
    assert_eq!(ada.get(&elsewhere).await.status, 403);
    // With the wrong issuer, and with none.
    let iss = query(&back, "iss").unwrap();
    let encoded: String = form_urlencoded::byte_serialize(iss.as_bytes()).collect();
    let other: String = form_urlencoded::byte_serialize(gate.two.url().as_bytes()).collect();
    for (what, changed) in [("wrong", other), ("missing", String::new())] {
        let url = match what {
            "wrong" => back.as_str().replace(&encoded, &changed),
            _ => back.as_str().replace(&format!("&iss={encoded}"), ""),
        };
        assert_ne!(url, back.as_str(), "{what}");
        let refused = ada.get(&url).await;
        let page = format!("/e/{}/authorize/not-accepted", issued.id);
        assert_eq!((refused.status.as_u16(), refused.location()), (303, page.as_str()), "{what}");
    }
    let page = ada.get(&format!("{}/authorize/not-accepted", issued.url)).await;
    assert!(page.text().contains("What came back was not accepted"), "{}", page.text());
    assert!(gate.one.log("token").await.is_empty() && gate.two.log("token").await.is_empty());
    // Another parameter twice, and a code without its state.
    assert_eq!(ada.get(&format!("{back}&state=other")).await.status, 403);
    assert_eq!(ada.get(back.as_str()).await.status, 303);
    assert_eq!(gate.server().handler().state(&issued.id).await, "completed");
    assert_eq!(gate.server().refusals().await, ["provider_mismatch", "provider_issuer", "provider_issuer"]);
}

#[tokio::test]
async fn revoked_and_unclaimed_tokens_are_revoked_there() {
    let mut gate = Gate::plain().await;
    let issued = gate.issue(&json!({})).await;
    let ada = gate.person("ada");
    assert_eq!(gate.authorize(&ada, &issued.url).await.status, 303);
    assert!(gate.server().operator().revoke(&issued.id).await.status.is_success());
    let one = &mut gate.one;
    let revoked = eventually("revoked there", async || {
        let log = one.log("revocation").await;
        (log.len() == 2).then_some(log)
    })
    .await;
    assert!(revoked.iter().all(|entry| entry["ok"] == true), "{revoked:?}");
    for entry in &revoked {
        assert_eq!(gate.one.introspect(text(entry, "/token")).await["active"], false);
    }
    let claim = gate.server().handler().claim(&issued, None).await;
    assert_eq!(claim.problem(), (409, "ended"));
}

pub(crate) fn round(ask: &Value) -> Value {
    let mut call = ask.clone();
    call["protocolVersion"] = "2026-07-28".into();
    call["waitSeconds"] = 0.into();
    call
}

#[rstest]
#[tokio::test]
async fn what_is_kept_serves_later_rounds_until_it_ends(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let mut gate = Gate::start(backing, "", &json!({"accessTokenTtl": 75})).await;
    let handler = gate.server().handler();
    let keep = json!({"slot": "repos", "days": 30});
    let ask = gate.ask(&json!({"keep": keep}));
    let subject = ask["subject"].clone();
    let use_it = json!({"subject": subject, "slot": "repos"});
    assert_eq!(handler.post("v1/kept/use", &use_it).await.problem(), (404, "not_kept"));
    let first = handler.round(&round(&ask)).await.ok();
    assert_eq!(text(&first, "/outcome"), "input_required");
    let link = text(&first, "/result/inputRequests/sidegate/params/url").to_owned();
    let ada = gate.person("ada");
    assert!(ada.get(&link).await.text().contains("for 30 days"));
    assert_eq!(gate.authorize(&ada, &link).await.status, 303);
    let mut retry = round(&ask);
    retry["requestState"] = first["result"]["requestState"].clone();
    let done = handler.round(&retry).await.ok();
    assert_eq!(text(&done, "/outcome"), "completed");
    assert!(done["credential"].get("refreshToken").is_none(), "{done}");
    // Another operation, the same slot: no link.
    let other = gate.fleet.at(1).handler().round(&round(&gate.ask(&json!({"keep": keep})))).await.ok();
    assert_eq!((text(&other, "/outcome"), other.get("id")), ("completed", None));
    assert_eq!(handler.post("v1/kept/use", &use_it).await.status, 200);
    // Fifty at once, over both instances, of a token that has less than a minute left: one renewal.
    tokio::time::sleep(std::time::Duration::from_secs(16)).await;
    let before = gate.one.log("token").await.len();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..50 {
        let (handler, body) = (gate.fleet.at(number).handler(), use_it.clone());
        calls.spawn(async move { handler.post("v1/kept/use", &body).await.ok() });
    }
    let answers = calls.join_all().await;
    assert_eq!(answers.len(), 50);
    eventually("renewed", async || {
        let log = gate.one.log("token").await;
        (log.len() == before + 1).then_some(())
    })
    .await;
    let renewals = gate.one.log("token").await;
    assert!(renewals.iter().all(|entry| entry["ok"] == true), "{renewals:?}");
    let fresh = handler.post("v1/kept/use", &use_it).await.ok();
    assert_eq!(gate.one.introspect(text(&fresh, "/credential/accessToken")).await["active"], true);

    // More scopes: asked for with what was granted before.
    let mut wanted = use_it.clone();
    wanted["scopes"] = json!(["write"]);
    assert_eq!(handler.post("v1/kept/use", &wanted).await.problem(), (409, "scopes_missing"));
    let more = handler.round(&round(&gate.ask(&json!({"keep": keep, "scopes": ["write"]})))).await.ok();
    let link = text(&more, "/result/inputRequests/sidegate/params/url").to_owned();
    let page = ada.get(&link).await;
    assert_eq!(page.texts(".scopes code"), ["write"], "{}", page.text());
    assert!(page.text().contains("You gave some access before"), "{}", page.text());
    assert_eq!(gate.authorize(&ada, &link).await.status, 303);
    wanted["scopes"] = json!(["read", "write"]);
    assert_eq!(handler.post("v1/kept/use", &wanted).await.status, 200);

    // The person sees it, and deletes it; the provider is told.
    let door = gate.server().url("mine/staff");
    let mine = ada.get(&door).await;
    assert!(mine.text().contains("Provider one"), "{}", mine.text());
    let mut form = mine.proof();
    form.push(("grant".to_owned(), mine.attributes("input[name=grant]", "value").remove(0)));
    let bob = gate.person("bob");
    assert_eq!(bob.post(&format!("{door}/delete"), &form).await.status, 403);
    assert_eq!(ada.post(&format!("{door}/delete"), &form).await.status, 303);
    assert!(ada.get(&door).await.text().contains("Nothing is kept for you here"));
    assert_eq!(handler.post("v1/kept/use", &use_it).await.problem(), (404, "not_kept"));
    let one = &mut gate.one;
    eventually("revoked there", async || (!one.log("revocation").await.is_empty()).then_some(())).await;
}

#[tokio::test]
async fn a_kept_secret_is_used_again_discarded_and_asked_for_with_the_reason() {
    let server = Server::local().await;
    let handler = server.handler();
    let mut first = ask();
    first["secret"]["keep"] = json!({"slot": "weatherco", "days": 7});
    let issued = handler.issue(&first).await;
    server.visitor().complete(&issued.url, "wk-1").await;
    assert_eq!(handler.claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
    let mut other = ask();
    other["secret"]["keep"] = json!({"slot": "weatherco", "days": 7});
    let kept = handler.round(&round(&other)).await.ok();
    assert_eq!(text(&kept, "/credential/values/api_key"), "wk-1");
    let used = handler.post("v1/kept/use", &json!({"slot": "weatherco"})).await;
    assert_eq!(used.text_at("/credential/values/api_key"), "wk-1");
    let found = server.operator().post("v1/admin/kept/search", &json!({})).await;
    assert_eq!(found.text_at("/kept/0/slot"), "weatherco");
    assert!(!found.text.contains("wk-1"));

    let discard = json!({"slot": "weatherco", "reason": "WeatherCo refused the key."});
    assert_eq!(handler.post("v1/kept/discard", &discard).await.status, 200);
    let asked = handler.round(&round(&other)).await.ok();
    let link = text(&asked, "/result/inputRequests/sidegate/params/url").to_owned();
    let page = server.visitor().get(&link).await;
    assert!(page.text().contains("WeatherCo refused the key."), "{}", page.text());
    server.visitor().complete(&link, "wk-2").await;
    let used = handler.post("v1/kept/use", &json!({"slot": "weatherco"})).await;
    assert_eq!(used.text_at("/credential/values/api_key"), "wk-2");
    let withdrawn = server
        .operator()
        .post("v1/admin/kept/revoke", &json!({"slot": "weatherco", "reason": "leaked"}))
        .await;
    assert_eq!(withdrawn.body["revoked"], 1);
    assert_eq!(handler.post("v1/kept/use", &json!({"slot": "weatherco"})).await.problem(), (404, "not_kept"));
}

#[rstest]
#[case::query("", true)]
#[case::query_without_script("", false)]
#[case::form_post("form_post = true", true)]
#[tokio::test]
async fn r15_r27_a_browser_goes_to_the_provider_and_comes_back(
    #[case] provider: &str,
    #[case] script: bool,
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let gate = Gate::start(backing, provider, &json!({})).await;
    let issued = gate.issue(&json!({})).await;
    let mut header = json!({});
    header[Issuer::HEADER.to_lowercase()] = gate.people.token("ada").into();
    let input = json!({"link": issued.url, "provider": gate.one.url(), "script": script, "header": header});
    let seen = run("authorize", &input).await;
    assert_eq!(text(&seen, "/page/heading"), "Weather tools asks for access to your Provider one account");
    assert_eq!(text(&seen, "/done/url"), format!("{}/done", issued.url), "no code is left in the address");
    assert_eq!((text(&seen, "/done/heading"), &seen["complaints"]), ("Done", &json!([])), "{seen:#}");
    assert_eq!(gate.server().handler().state(&issued.id).await, "completed");
}

#[tokio::test]
async fn r27_r30_no_page_of_an_authorization_has_a_fault() {
    let mut gate = Gate::plain().await;
    let keep = json!({"slot": "repos", "days": 30});
    let (open, kept) = (gate.issue(&json!({"keep": keep})).await, gate.issue(&json!({"keep": keep})).await);
    let ada = gate.person("ada");
    assert_eq!(gate.authorize(&ada, &kept.url).await.status, 303);
    let more = gate.issue(&json!({"keep": keep, "scopes": ["read", "write"]})).await;
    let header = json!({Issuer::HEADER: gate.people.token("ada")});
    let mut pages = vec![
        json!({"name": "authorize", "link": open.url, "header": header}),
        json!({"name": "authorize-more", "link": more.url, "header": header}),
        json!({"name": "authorize-done", "link": kept.url, "header": header}),
        json!({"name": "mine", "link": gate.server().url("mine/staff"), "header": header}),
        json!({"name": "authorize-stray", "link": gate.server().url("oauth/callback/one?state=a&code=b")}),
    ];
    for what in ["unavailable", "unauthorized", "not-accepted"] {
        let link = format!("{}/authorize/{what}", open.url);
        pages.push(json!({"name": format!("authorize-{what}"), "link": link, "header": header}));
    }
    let pictures = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pictures");
    let seen = run("survey", &json!({"pages": pages, "pictures": pictures})).await;
    assert_eq!(seen["findings"], json!([]), "{:#}", seen["findings"]);
}

/// Revocation against the callback: whichever wins, nothing is released after a revocation, and no token is left alive.
#[rstest]
#[tokio::test]
async fn r21_revocation_wins_against_a_callback(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
    #[values(false, true)] keeps: bool,
) {
    let mut gate = Gate::start(backing, "", &json!({})).await;
    let ada = gate.person("ada");
    let more = if keeps { json!({"keep": {"slot": "repos", "days": 30}}) } else { json!({}) };
    for number in 0..8 {
        let issued = gate.issue(&more).await;
        let to = gate.leave(&ada, &issued.url).await;
        let person = format!("octocat{number}");
        let answer = gate.one.approve(to.as_str(), &person).await;
        let url = text(&answer, "/to").to_owned();
        let operator = gate.fleet.at(1).operator();
        let (back, revoked) = tokio::join!(ada.get(&url), async {
            tokio::time::sleep(std::time::Duration::from_millis(7 * number)).await;
            operator.revoke(&issued.id).await
        });
        assert!(revoked.status.is_success(), "{revoked:?}");
        assert!([303, 410].contains(&back.status.as_u16()), "{} {}", back.status, back.text());
        assert_eq!(gate.server().handler().claim(&issued, None).await.problem(), (409, "ended"));
        let use_it = json!({"subject": issued.ask["subject"], "slot": "repos"});
        let used = gate.server().handler().post("v1/kept/use", &use_it).await;
        assert_eq!(used.problem(), (404, "not_kept"), "try {number}");
    }
    // What was issued there is revoked there.
    let issued = gate.one.log("token").await.iter().filter(|entry| entry["ok"] == true).count();
    let one = &mut gate.one;
    eventually("all are revoked there", async || {
        let log = one.log("revocation").await;
        let told = log.iter().filter(|entry| entry["hint"] == "access_token");
        let told: std::collections::BTreeSet<_> = told.map(|entry| entry["token"].to_string()).collect();
        (told.len() == issued).then_some(())
    })
    .await;
}

#[tokio::test]
async fn r36_nothing_of_an_authorization_is_found_anywhere_else() {
    let mut gate =
        Gate::with(Backing::Embedded, "", &json!({}), |setup| setup.with("SIDEGATE_LOG__LEVEL", "trace"))
            .await;
    let issued = gate.issue(&json!({"keep": {"slot": "repos", "days": 30}})).await;
    let ada = gate.person("ada");
    let to = gate.leave(&ada, &issued.url).await;
    let answer = gate.one.approve(to.as_str(), "octocat").await;
    let back = Url::parse(text(&answer, "/to")).unwrap();
    assert_eq!(ada.get(back.as_str()).await.status, 303);
    let credential = gate.server().handler().claim(&issued, None).await.ok()["credential"].clone();
    let mut canaries = vec![SECRET.to_owned(), text(&credential, "/accessToken").to_owned()];
    canaries.extend(["state", "code_challenge"].map(|name| query(&to, name).unwrap()));
    canaries.push(query(&back, "code").unwrap());
    let audit: String = gate.server().audit().await.iter().map(Value::to_string).collect();
    let found = gate.server().operator().post("v1/admin/kept/search", &json!({})).await;
    let mut files = Vec::new();
    for file in std::fs::read_dir(gate.server().data()).unwrap().map(|entry| entry.unwrap().path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with("sidegate.db") {
            files.push(std::fs::read(file).unwrap());
        }
    }
    assert!(found.text.contains("repos") && !files.is_empty() && audit.contains("\"kept\""), "{audit}");
    for canary in &canaries {
        for (place, text) in
            [("log", gate.server().log()), ("trail", audit.clone()), ("admin", found.text.clone())]
        {
            assert!(!text.contains(canary.as_str()), "{place}: {canary}");
        }
        let inside = |bytes: &Vec<u8>| bytes.windows(canary.len()).any(|part| part == canary.as_bytes());
        assert!(!files.iter().any(inside), "the store: {canary}");
    }
}

/// A client that proves itself by a key (RFC 7523).
#[tokio::test]
async fn a_client_may_sign_instead_of_sending_a_secret() {
    use base64::Engine as _;
    let pair = rcgen::KeyPair::generate().unwrap();
    let point = pair.public_key_raw();
    let part = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), pair.serialize_pem()).unwrap();
    let jwk = json!({
        "kty": "EC", "crv": "P-256", "x": part(&point[1..33]), "y": part(&point[33..]), "kid": "ours", "use": "sig",
    });
    let people = Issuer::in_file();
    let mut one = Authority::start().await;
    let section = format!(
        "[upstream]\nallow_addresses = [\"127.0.0.0/8\"]\n[[providers]]\nid = \"one\"\nissuer = \"{}\"\n\
         client_id = \"sidegate\"\nprivate_key_file = \"{}\"\nprivate_key_id = \"ours\"\nscopes = [\"read\"]\n",
        one.url(),
        key.path().display()
    );
    let setup = Setup::proxy(&people).replacing("kinds = [\"secret\"]", "kinds = [\"oauth\"]").and(&section);
    let server = Server::start(setup).await;
    let client = json!({
        "client_id": "sidegate", "token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [jwk]},
        "redirect_uris": [server.url("oauth/callback/one")], "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"],
    });
    one.serve(&[], &json!({"clients": [client]})).await;
    let mut ask = ask();
    ask["kind"] = "oauth".into();
    ask.as_object_mut().unwrap().remove("secret");
    ask["subject"] = json!({"issuer": people.name(), "id": "ada"});
    ask["oauth"] = json!({"provider": "one"});
    let issued = server.handler().issue(&ask).await;
    let ada = server.visitor().signed_in(people.token("ada"));
    let page = ada.get(&issued.url).await;
    let to = continue_from(&ada, &issued.url, &page).await;
    let answer = one.approve(to.as_str(), "octocat").await;
    assert_eq!(ada.get(text(&answer, "/to")).await.status, 303);
    assert_eq!(server.handler().state(&issued.id).await, "completed");
    assert_eq!(one.log("token").await[0]["auth"], "private_key_jwt");
}

#[rstest]
#[case::unknown_provider(json!({"provider": "three"}), "oauth.provider")]
#[case::header_injection(json!({"scopes": ["read\r\nHost: evil"]}), "oauth.scopes[0]")]
#[case::parameter_in_scope(json!({"scopes": ["a b"]}), "oauth.scopes[0]")]
#[case::resource(json!({"resource": "/relative"}), "oauth.resource")]
#[case::resource_without_host(json!({"resource": "urn:example:api"}), "oauth.resource")]
#[case::resource_with_fragment(json!({"resource": "https://api.example.com/#evil"}), "oauth.resource")]
#[case::resource_too_long(json!({"resource": format!("https://api.example.com/{}", "a".repeat(2048))}), "oauth.resource")]
#[case::slot(json!({"keep": {"slot": "a b", "days": 1}}), "oauth.keep.slot")]
#[case::days(json!({"keep": {"slot": "a", "days": 366}}), "oauth.keep.days")]
#[case::unknown(json!({"redirectUri": "https://evil.example"}), "oauth.redirectUri")]
#[tokio::test]
async fn r14_r16_what_cannot_be_asked_is_refused_by_its_name(#[case] more: Value, #[case] field: &str) {
    let gate = Gate::plain().await;
    let refused = gate.server().handler().post("v1/elicitations", &gate.ask(&more)).await;
    assert_eq!((refused.problem(), refused.text_at("/field")), ((422, "invalid_request"), field));
    assert!(!refused.text.contains("evil") || field.ends_with("redirectUri"), "{}", refused.text);
}

/// Values in a request stay values: none becomes a parameter of its own.
#[tokio::test]
async fn r14_a_scope_does_not_override_a_parameter() {
    let gate = Gate::plain().await;
    let issued = gate.issue(&json!({"scopes": ["read&state=evil&redirect_uri=https://evil.example"]})).await;
    let to = gate.leave(&gate.person("ada"), &issued.url).await;
    for name in ["state", "redirect_uri", "client_id", "code_challenge", "response_type"] {
        assert_eq!(to.query_pairs().filter(|(key, _)| key == name).count(), 1, "{name} in {to}");
    }
    assert_eq!(query(&to, "redirect_uri").unwrap(), gate.server().url("oauth/callback/one"));
}
