//! The operators' console in Chromium.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use rstest::rstest;
use serde_json::{Value, json};

use super::console::House;
use super::harness::Backing;
use super::harness::browser::run;
use super::harness::handler::Issued;
use super::harness::issuer::Issuer;
use super::oauth::text;

impl House {
    /// The steps by which an operator signs in.
    fn comes_in(&self, who: &str) -> Value {
        json!([
            {"who": who, "open": self.console("")},
            {"who": who, "fill": {"Operator's key": self.key(who)}, "press": "Sign in", "shows": "Sign out"},
        ])
    }

    async fn walks(&self, script: bool, steps: Vec<Value>) -> Vec<Value> {
        let header = json!({Issuer::HEADER.to_lowercase(): self.people.token("ada")});
        let people = json!({"ada": header, "ops": null, "second": null});
        let steps: Vec<_> =
            steps.into_iter().flat_map(|step| step.as_array().cloned().unwrap_or(vec![step])).collect();
        let seen = run("walk", &json!({"people": people, "script": script, "steps": steps})).await;
        assert_eq!(seen["complaints"], json!([]), "{seen:#}");
        seen["seen"].as_array().unwrap().clone()
    }
}

/// An operator revokes a link while its person has the form open: the form comes to nothing, and whoever waits hears at once.
#[rstest]
#[tokio::test]
async fn r21_a_link_is_revoked_while_its_person_fills_in_the_form(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
    #[values(true, false)] script: bool,
) {
    let house = House::start(backing, "").await;
    let issued = house.issue("ada").await;
    let waiting = {
        let (handler, id) = (house.fleet.at(1).handler(), issued.id.clone());
        tokio::spawn(async move {
            // Until it is revoked: being opened ends a wait too.
            loop {
                let view = handler.get(&format!("v1/elicitations/{id}?wait=30")).await.ok();
                if view["state"] != "pending" && view["state"] != "in_progress" {
                    return view["state"].as_str().unwrap().to_owned();
                }
            }
        })
    };
    let seen = house
        .walks(
            script,
            vec![
                json!({"who": "ada", "open": issued.url, "fill": {"WeatherCo API key": "wk-1"}}),
                house.comes_in("ops"),
                json!([
                    {"who": "ops", "fill": {"Person's issuer": house.people.name(), "Person's id": "ada"}, "press": "Search", "shows": "Links found"},
                    {"who": "ops", "press": &issued.id, "shows": "What happened"},
                    {"who": "ops", "fill": {"Reason": "the link leaked"}, "check": "Yes, revoke", "press": "Revoke", "shows": "revoked by"},
                    {"who": "ada", "press": "Send"},
                ]),
            ],
        )
        .await;
    assert!(text(&seen[5], "/text").contains("by operator ops: the link leaked"), "{seen:#?}");
    assert_eq!(text(&seen[6], "/heading"), "This link has been withdrawn", "{seen:#?}");
    assert!(!text(&seen[6], "/text").contains("wk-1"));
    for page in &seen[1..6] {
        for telling in ["ada", "forecast", "leaked", "%40"] {
            assert!(!text(page, "/url").contains(telling), "{telling} in an address: {page:#}");
        }
    }
    let state = tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
    assert_eq!(state, "revoked");
    assert_eq!(house.server().handler().claim(&issued, None).await.problem(), (409, "ended"));
}

/// What is shown follows what happens, where scripts run.
#[tokio::test]
async fn what_is_shown_is_kept_up_to_date() {
    let house = House::plain().await;
    let console = tokio::spawn({
        let steps = json!({
            "people": {"ops": null}, "script": true,
            "steps": [
                {"open": house.console("")},
                {"fill": {"Operator's key": house.key("ops")}, "press": "Sign in", "shows": "No links."},
                {"shows": "tools/call:forecast"},
            ],
        });
        async move { run("walk", &steps).await }
    });
    tokio::time::sleep(Duration::from_secs(4)).await;
    house.issue("ada").await;
    let seen = console.await.unwrap();
    assert_eq!(seen["complaints"], json!([]), "{seen:#}");
}

/// Ten thousand in one action, with a second operator; others go on meanwhile.
#[tokio::test]
async fn ten_thousand_are_revoked_in_one_action() {
    const MANY: usize = 10_000;
    let house = House::start(
        Backing::Embedded,
        "[console]\ntwo_persons_above = 100\n[limits]\npending_per_subject = 20000\nrequests_per_second_per_client = 1000000\n",
    )
    .await;
    let handler = house.server().other_handler();
    let issued: Vec<Issued> = stream::iter(0..MANY)
        .map(|number| {
            let (mut ask, handler) = (house.ask("eve"), &handler);
            ask["operation"]["arguments"]["number"] = number.into();
            async move { handler.issue(&ask).await }
        })
        .buffer_unordered(64)
        .collect()
        .await;
    let others = tokio::spawn({
        let (handler, ask, url) = (house.server().handler(), house.ask("ada"), house.server().visitor());
        let ada = url.signed_in(house.people.token("ada"));
        async move {
            let mut done = 0;
            loop {
                let mut ask = ask.clone();
                ask["operation"]["arguments"]["number"] = done.into();
                let issued = handler.issue(&ask).await;
                ada.complete(&issued.url, "wk-1").await;
                handler.claim(&issued, None).await.ok();
                done += 1;
                if handler.state(&issued.id).await != "claimed" {
                    return done;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
                if done == 40 {
                    return done;
                }
            }
        }
    });
    let seen = house
        .walks(
            false,
            vec![
                house.comes_in("ops"),
                json!([
                    {"fill": {"Operation": "tools/call:forecast"}, "who": "ops", "press": "Search", "shows": "Links found"},
                    {"who": "ops", "press": "Revoke all that were found", "shows": "A second operator must agree"},
                    {"who": "ops", "fill": {"Reason": "an incident"}, "check": "Yes, revoke all", "press": "Ask a second operator", "shows": "Waits for a second operator"},
                ]),
            ],
        )
        .await;
    assert!(text(&seen[3], "/heading").starts_with("Revoke 100"), "{}", text(&seen[3], "/heading"));
    let bulk = text(&seen[4], "/url").to_owned();
    let seen = house
        .walks(
            false,
            vec![
                house.comes_in("second"),
                json!([
                    {"who": "second", "open": bulk, "press": "Agree", "shows": "Revoking…"},
                    {"who": "second", "shows": "were revoked, with the agreement of second"},
                ]),
            ],
        )
        .await;
    assert!(text(&seen[2], "/text").contains("You may leave this page"), "{seen:#?}");
    assert_eq!(others.await.unwrap(), 40, "others were served");
    for issued in issued.iter().step_by(997) {
        assert_eq!(handler.state(&issued.id).await, "revoked");
    }
    let left = house
        .server()
        .operator()
        .post("v1/admin/elicitations/search", &json!({"client": "travel"}))
        .await
        .ok();
    assert_eq!(left["elicitations"], json!([]));
}

/// Every page of the console, in every way in which it is looked at.
#[tokio::test]
async fn r27_r30_no_page_of_the_console_has_a_fault() {
    let house = House::start(Backing::Embedded, "[console]\ntwo_persons_above = 1\n").await;
    let issued = house.issue("ada").await;
    let ada = house.server().visitor().signed_in(house.people.token("ada"));
    ada.get(&issued.url).await;
    let mut ask = house.ask(&format!("{}@people.example", "a-very-long-name".repeat(6)));
    ask["operation"]["name"] = format!("tools/call:{}", "x".repeat(60)).into();
    house.server().handler().issue(&ask).await;
    let mut keeps = house.ask("ada");
    keeps["secret"]["keep"] = json!({"slot": "weather-key", "days": 30});
    let kept = house.server().handler().issue(&keeps).await;
    ada.complete(&kept.url, "wk-1").await;
    // The cookie of an operator, and what they looked for.
    let ops = super::console::came_in(&house, "ops").await;
    let (found, revoke, bulk) = (ops.found().await, ops.asked().await, ops.proposed().await);
    let header = json!({"Cookie": ops.cookies()});
    let viewer = json!({"Cookie": super::console::came_in(&house, "viewer").await.cookies()});
    let page = |name: &str, path: &str, header: &Value| json!({"name": format!("console-{name}"), "link": house.console(path), "header": header});
    let pages = vec![
        page("sign-in", "", &json!({})),
        page("no-operator", "/sign-in/no-operator", &json!({})),
        page("home", "", &header),
        page("home-viewer", "", &viewer),
        page("found", &found, &header),
        page("link", &format!("/link/{}", issued.id), &header),
        page("link-viewer", &format!("/link/{}", issued.id), &viewer),
        page("confirm", &revoke, &header),
        page("proposed", &bulk, &header),
        page("kept", "/kept", &header),
        page("webhooks", "/webhooks", &header),
        page("nothing", "/links/none", &header),
    ];
    let pictures = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pictures");
    let seen = run("survey", &json!({"pages": pages, "pictures": pictures})).await;
    assert_eq!(seen["findings"], json!([]), "{:#}", seen["findings"]);
    assert_eq!(seen["looked"], pages.len() * 8);
}
