//! The MCP server's own login: the browser is handed to it and comes back with a ticket.

use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};

use super::harness::handler::Issued;
use super::harness::{Handler, Page, Reply, Server, Setup, Visitor, ask};

const ISSUER: &str = "https://mcp.example";
const SECTION: &str = "[identity.staff]\nsource = \"handoff\"\nissuer = \"https://mcp.example\"\n\
                       verify_url = \"https://mcp.example/sidegate/verify?tenant=7\"\n";

async fn issue(handler: &Handler, person: &str) -> Issued {
    let mut ask = ask();
    ask["subject"] = json!({"issuer": ISSUER, "id": person});
    handler.issue(&ask).await
}

/// Presses the button on a page of the link; what the MCP server's page receives.
async fn hand_off(visitor: &Visitor, link: &str) -> String {
    let page = visitor.get(link).await;
    let to = visitor.leave(link, &page).await;
    assert_eq!(to.as_str().split('?').next().unwrap(), "https://mcp.example/sidegate/verify");
    let query: Vec<(String, String)> = to.query_pairs().into_owned().collect();
    assert_eq!((query.len(), query[0].1.as_str(), query[1].0.as_str()), (2, "7", "handoff"), "{to}");
    query[1].1.clone()
}

async fn accept(handler: &Handler, handoff: &str, person: &str) -> Reply {
    let body = json!({"subject": {"issuer": ISSUER, "id": person}, "name": format!("{person} of MCP")});
    handler.post(&format!("v1/handoffs/{handoff}"), &body).await
}

/// Goes to the MCP server and comes back as this person.
async fn sign_in(visitor: &Visitor, handler: &Handler, link: &str, person: &str) {
    let handoff = hand_off(visitor, link).await;
    let url = accept(handler, &handoff, person).await.text_at("/returnUrl").to_owned();
    visitor.get(&url).await;
}

fn is_turned_away(page: &Page) {
    assert!(matches!(page.status.as_u16(), 303 | 403), "{}", page.status);
    assert!(page.cookies().is_empty(), "{:?}", page.cookies());
}

#[tokio::test]
async fn a_person_is_handed_to_the_mcp_server_and_comes_back_named() {
    let server = Server::start(Setup::configured(SECTION)).await;
    let (handler, ada) = (server.handler(), server.visitor());
    let issued = issue(&handler, "ada").await;
    let page = ada.get(&issued.url).await;
    assert_eq!((page.status.as_u16(), page.cookies()), (401, vec![]));
    assert!(!page.html.contains("Oslo"));
    let handoff = hand_off(&ada, &issued.url).await;
    assert!(handoff.len() == 43 && !handoff.contains(&issued.id));
    let accepted = accept(&handler, &handoff, "ada").await;
    let url = Url::parse(accepted.text_at("/returnUrl")).unwrap();
    assert_eq!(url.as_str().split('?').next().unwrap(), server.url(&format!("handoff/{handoff}/return")));
    let back = ada.get(url.as_str()).await;
    assert_eq!((back.status.as_u16(), back.location()), (303, format!("/e/{}", issued.id).as_str()));
    let page = ada.get(&issued.url).await;
    assert!(page.text().contains("ada of MCP") && page.text().contains("Not you?"), "{}", page.text());
    ada.complete(&issued.url, "wk-1").await;
    assert_eq!(handler.claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
    let ticket = url.query().unwrap().trim_start_matches("ticket=");
    for canary in [&*handoff, ticket, "ada"] {
        assert!(!server.log().contains(canary));
    }
}

#[tokio::test]
async fn r09_a_ticket_serves_once_in_its_own_browser_and_for_its_own_hand_off() {
    let server = Server::start(Setup::configured(SECTION)).await;
    let (handler, ada, mallory) = (server.handler(), server.visitor(), server.visitor());
    let issued = issue(&handler, "ada").await;
    let (mine, theirs) = (hand_off(&ada, &issued.url).await, hand_off(&mallory, &issued.url).await);
    // Without a ticket, before the server said anything.
    is_turned_away(&ada.get(&server.url(&format!("handoff/{mine}/return"))).await);
    is_turned_away(&ada.get(&server.url(&format!("handoff/{mine}/return?ticket={mine}"))).await);
    let url = accept(&handler, &mine, "ada").await.text_at("/returnUrl").to_owned();
    // Another browser, with a hand-off of its own and without; it does not use the ticket up.
    for stranger in [&mallory, &server.visitor()] {
        let page = stranger.get(&url).await;
        is_turned_away(&page);
        assert!(page.status == 403 && !page.html.contains(&issued.id));
    }
    // The ticket of one hand-off at another's address.
    let ticket = url.split('=').next_back().unwrap();
    is_turned_away(&mallory.get(&server.url(&format!("handoff/{theirs}/return?ticket={ticket}"))).await);
    let mine_again = hand_off(&ada, &issued.url).await;
    let second = accept(&handler, &mine_again, "ada").await.text_at("/returnUrl").to_owned();
    assert_eq!(ada.get(&second).await.cookies().len(), 1);
    is_turned_away(&ada.get(&second).await);
    let refusals = server.refusals().await;
    for reason in ["sign_in_other_browser", "handoff_ticket"] {
        assert!(refusals.iter().any(|refusal| refusal == reason), "{reason}: {refusals:?}");
    }
}

#[tokio::test]
async fn a_ticket_is_worth_nothing_after_a_minute() {
    let server = Server::start(Setup::configured(SECTION)).await;
    let (handler, ada) = (server.handler(), server.visitor());
    let issued = issue(&handler, "ada").await;
    let handoff = hand_off(&ada, &issued.url).await;
    let url = accept(&handler, &handoff, "ada").await.text_at("/returnUrl").to_owned();
    tokio::time::sleep(Duration::from_secs(61)).await;
    is_turned_away(&ada.get(&url).await);
    assert_eq!(server.refusals().await, ["handoff_ticket"]);
}

#[tokio::test]
async fn r07_a_hand_off_is_accepted_once_by_its_own_client_for_a_person_it_may_name() {
    let server = Server::start(Setup::configured(SECTION)).await;
    let (handler, other, ada) = (server.handler(), server.other_handler(), server.visitor());
    let issued = issue(&handler, "ada").await;
    let handoff = hand_off(&ada, &issued.url).await;
    assert_eq!(accept(&other, &handoff, "ada").await.problem(), (404, "not_found"));
    assert_eq!(accept(&handler, &"A".repeat(43), "ada").await.problem(), (404, "not_found"));
    let to = format!("v1/handoffs/{handoff}");
    let unauthorised = handler.with_key("sgk_wrong").post(&to, &json!({})).await;
    assert_eq!(unauthorised.status, 401);
    for (body, field) in [
        (json!({"subject": {"issuer": "https://evil.example", "id": "ada"}}), "subject.issuer"),
        (json!({"subject": {"issuer": ISSUER, "id": ""}}), "subject.id"),
        (json!({"subject": {"issuer": ISSUER, "id": "ada"}, "name": "a\nb"}), "name"),
        (json!({}), "subject"),
        (json!({"subject": {"issuer": ISSUER, "id": "ada"}, "more": 1}), "more"),
    ] {
        let refused = handler.post(&to, &body).await;
        assert!(refused.status.is_client_error(), "{refused:?}");
        let names: Value = refused.body["field"].clone();
        assert_eq!(names, field, "{refused:?}");
    }
    let accepted = accept(&handler, &handoff, "ada").await;
    assert_eq!(accepted.status, 200, "what was refused used nothing up");
    assert_eq!(accept(&handler, &handoff, "bob").await.problem(), (404, "not_found"));
    assert_eq!(server.refusals().await, ["handoff_client", "handoff_used"]);
}

#[tokio::test]
async fn r04_whoever_the_mcp_server_names_sees_only_what_is_theirs() {
    let server = Server::start(Setup::configured(SECTION)).await;
    let (handler, bob) = (server.handler(), server.visitor());
    let issued = issue(&handler, "ada").await;
    sign_in(&bob, &handler, &issued.url, "bob").await;
    let page = bob.get(&issued.url).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (403, "This link was made for someone else"));
    assert!(!page.html.contains("Oslo"));
    let theirs = issue(&handler, "bob").await;
    assert_eq!(bob.get(&theirs.url).await.status, 200, "the session holds for another link of the client");
}

/// One MCP server's word does not count for the links of another, though they name the same source.
#[tokio::test]
async fn r07_a_session_counts_for_the_links_of_the_client_that_vouched_alone() {
    let server = Server::start(Setup::configured(SECTION)).await;
    let (weather, travel, ada) = (server.handler(), server.other_handler(), server.visitor());
    let (one, other) = (issue(&weather, "ada").await, issue(&travel, "ada").await);
    sign_in(&ada, &weather, &one.url, "ada").await;
    assert_eq!(
        (ada.get(&one.url).await.status.as_u16(), ada.get(&other.url).await.status.as_u16()),
        (200, 401)
    );
    let name = ada.cookies()["__Host-sidegate-session-staff.weather"].clone();
    ada.plant("__Host-sidegate-session-staff.travel", &name);
    assert_eq!(ada.get(&other.url).await.status, 401);
    ada.plant("__Host-sidegate-session-staff", &name);
    assert_eq!(ada.get(&other.url).await.status, 401);
}

#[tokio::test]
async fn r29_a_name_that_reads_as_another_is_not_shown() {
    let server = Server::start(Setup::configured(SECTION)).await;
    let (handler, ada) = (server.handler(), server.visitor());
    let issued = issue(&handler, "a\u{202e}da").await;
    let handoff = hand_off(&ada, &issued.url).await;
    let body = json!({"subject": {"issuer": ISSUER, "id": "a\u{202e}da"}});
    let accepted = handler.post(&format!("v1/handoffs/{handoff}"), &body).await;
    ada.get(accepted.text_at("/returnUrl")).await;
    let page = ada.get(&issued.url).await;
    assert!(page.status == 200 && page.text().contains("Signed in as ada"), "{}", page.text());
    assert!(!page.html.contains('\u{202e}'));
}

/// Clients with several sources on one service: a session at one is none at another.
#[tokio::test]
async fn sessions_of_several_sources_are_kept_apart() {
    let more = "[identity.other]\nsource = \"handoff\"\nissuer = \"https://mcp.example\"\nverify_url = \"https://mcp.example/sidegate/verify?tenant=7\"\n";
    let setup = Setup::configured(&format!("{SECTION}{more}"));
    let server = Server::start(
        setup.replacing("id = \"travel\"\nidentity = \"staff\"", "id = \"travel\"\nidentity = \"other\""),
    )
    .await;
    let (weather, travel, ada) = (server.handler(), server.other_handler(), server.visitor());
    let (one, other) = (issue(&weather, "ada").await, issue(&travel, "ada").await);
    sign_in(&ada, &weather, &one.url, "ada").await;
    assert_eq!(
        (ada.get(&one.url).await.status.as_u16(), ada.get(&other.url).await.status.as_u16()),
        (200, 401)
    );
    // Its name in the other source's cookie does not help.
    let name = ada.cookies()["__Host-sidegate-session-staff.weather"].clone();
    ada.plant("__Host-sidegate-session-other.travel", &name);
    assert_eq!(ada.get(&other.url).await.status, 401);
    sign_in(&ada, &travel, &other.url, "ada").await;
    assert_eq!(
        (ada.get(&one.url).await.status.as_u16(), ada.get(&other.url).await.status.as_u16()),
        (200, 200)
    );
}
