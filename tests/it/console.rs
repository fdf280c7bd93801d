//! The operators' console, over HTTP: who comes in, what they see, and what they may do. In Chromium: `console_browser`.

use rstest::rstest;
use rustix::process::Signal;
use serde_json::{Value, json};
use sidegate::api_key::{self, Holder, KeyDigest};
use sidegate::system::SystemRandom;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::harness::handler::Issued;
use super::harness::issuer::Issuer;
use super::harness::oidc::SECRET;
use super::harness::provider::Provider;
use super::harness::{Backing, Fleet, Handler, Page, Server, Setup, Visitor, ask, eventually};

/// A service with the operators `ops` and `second`, who revoke, and `viewer`, who does not.
pub(crate) struct House {
    pub(crate) people: Issuer,
    pub(crate) fleet: Fleet,
    keys: [String; 2],
}

/// Configuration of an operator, and their key.
fn operator(id: &str, role: &str) -> (String, String) {
    let key = api_key::generate(Holder::Operator, &SystemRandom);
    let key = secrecy::ExposeSecret::expose_secret(&key).to_owned();
    let digest = KeyDigest::of_text(&key);
    let section =
        format!("[[operators]]\nid = \"{id}\"\nrole = \"{role}\"\napi_key_digests = [\"{digest}\"]\n");
    (section, key)
}

impl House {
    pub(crate) async fn start(backing: Backing, more: &str) -> Self {
        let people = Issuer::in_file();
        let (viewer, one) = operator("viewer", "viewer");
        let (second, other) = operator("second", "revoker");
        let setup = Setup::proxy(&people).and(&viewer).and(&second).and(more);
        Self { people, fleet: Fleet::start(backing, setup).await, keys: [one, other] }
    }

    pub(crate) async fn plain() -> Self {
        Self::start(Backing::Embedded, "").await
    }

    pub(crate) fn server(&self) -> &Server {
        self.fleet.at(0)
    }

    pub(crate) fn console(&self, path: &str) -> String {
        self.server().url(&format!("console{path}"))
    }

    pub(crate) fn key(&self, who: &str) -> String {
        match who {
            "ops" => self.server().operator_key(),
            "viewer" => self.keys[0].clone(),
            _ => self.keys[1].clone(),
        }
    }

    pub(crate) fn ask(&self, person: &str) -> Value {
        let mut ask = ask();
        ask["subject"] = json!({"issuer": self.people.name(), "id": person});
        ask
    }

    pub(crate) async fn issue(&self, person: &str) -> Issued {
        self.server().handler().issue(&self.ask(person)).await
    }

    /// An operator who has signed in with their key.
    async fn operator(&self, who: &str) -> Operator<'_> {
        let visitor = self.server().visitor();
        let page = visitor.get(&self.console("")).await;
        assert_eq!((page.status.as_u16(), page.heading().as_str()), (401, "Sign in as an operator"));
        let form = form(&page, "/key/signin", &[("key", &self.key(who))]);
        let came = visitor.post(&self.console("/key/signin"), &form).await;
        assert_eq!((came.status.as_u16(), came.location()), (303, "/console"), "{}", came.text());
        Operator { house: self, visitor }
    }
}

/// The fields of the form of a page that goes to where its action ends so, and some that were filled in.
fn form(page: &Page, action: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let hidden = |name: &str| {
        let of = page.attributes(&format!("form[action$='{action}'] input[name={name}]"), "value");
        of.into_iter().next().map(|value| (name.to_owned(), value))
    };
    let mut form: Vec<_> = ["_render", "_token"].into_iter().filter_map(hidden).collect();
    form.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    form
}

/// An operator at the console.
pub(crate) struct Operator<'a> {
    house: &'a House,
    visitor: Visitor,
}

impl Operator<'_> {
    async fn get(&self, path: &str) -> Page {
        self.visitor.get(&self.house.console(path)).await
    }

    /// Sends a form of a page, and follows where that leads.
    async fn post(&self, from: &str, action: &str, fields: &[(&str, &str)]) -> Page {
        let page = self.get(from).await;
        let answer = self.visitor.post(&self.house.console(action), &form(&page, action, fields)).await;
        if answer.status != 303 {
            return answer;
        }
        self.visitor.get(&self.house.server().url(&answer.location()[1..])).await
    }

    /// Searches for links: the page, and the search's name.
    async fn search(&self, fields: &[(&str, &str)]) -> (Page, String) {
        let page = self.get("").await;
        let answer = self.visitor.post(&self.house.console("/links"), &form(&page, "/links", fields)).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        let name = answer.location().strip_prefix("/console/links/").unwrap().to_owned();
        (self.get(&format!("/links/{name}")).await, name)
    }
}

/// An operator who has come in.
pub(crate) async fn came_in<'a>(house: &'a House, who: &str) -> Operator<'a> {
    house.operator(who).await
}

/// For what looks at the pages in other ways.
impl Operator<'_> {
    pub(crate) fn cookies(&self) -> String {
        let cookies = self.visitor.cookies();
        let cookies: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        cookies.join("; ")
    }

    /// The path of a search.
    pub(crate) async fn found(&self) -> String {
        format!("/links/{}", self.search(&[]).await.1)
    }

    /// The path where it is asked whether all that were found are to be revoked.
    pub(crate) async fn asked(&self) -> String {
        format!("/revoke/{}", self.search(&[]).await.1)
    }

    /// The path of what waits for a second operator.
    pub(crate) async fn proposed(&self) -> String {
        let at = self.asked().await;
        let fields = form(&self.get(&at).await, &at, &[("sure", "yes"), ("reason", "an incident")]);
        let answer = self.visitor.post(&self.house.console(&at), &fields).await;
        answer.location().strip_prefix("/console").unwrap().to_owned()
    }
}

fn ids(page: &Page) -> Vec<String> {
    let mut ids = page.texts("td:first-child code");
    ids.sort();
    ids
}

#[tokio::test]
async fn nobody_comes_in_without_an_operators_key() {
    let house = House::plain().await;
    let issued = house.issue("ada").await;
    let visitor = house.server().visitor().signed_in(house.people.token("ada"));
    let paths = [
        String::new(),
        format!("/link/{}", issued.id),
        "/kept".to_owned(),
        "/webhooks".to_owned(),
        "/links/x".to_owned(),
        "/revocation/x".to_owned(),
    ];
    for path in &paths {
        let page = visitor.get(&house.console(path)).await;
        assert_eq!(
            (page.status.as_u16(), page.heading().as_str()),
            (401, "Sign in as an operator"),
            "{path}"
        );
        assert!(!page.html.contains("forecast") && page.cookies().is_empty(), "{path}");
    }
    let page = visitor.get(&house.console("")).await;
    let client = house.server().api_key();
    let almost = format!("{}x", house.key("ops"));
    for wrong in ["", "sgo_", client.as_str(), almost.as_str()] {
        let answer =
            visitor.post(&house.console("/key/signin"), &form(&page, "/key/signin", &[("key", wrong)])).await;
        assert_eq!(answer.status, 403);
        assert!(answer.text().contains("That is no operator's key."), "{}", answer.text());
        assert!(answer.cookies().is_empty());
        assert!(wrong.len() < 10 || !answer.html.contains(wrong), "{wrong} comes back");
    }
    // A key that is right, in a form that is not ours.
    let right = house.key("ops");
    for strange in [Vec::new(), form(&page, "/nowhere", &[])] {
        let mut strange = strange;
        strange.push(("key".to_owned(), right.clone()));
        let answer = visitor.post(&house.console("/key/signin"), &strange).await;
        assert_eq!((answer.status.as_u16(), answer.cookies().len()), (403, 0), "{}", answer.text());
    }
    let elsewhere = visitor
        .form(&house.console("/key/signin"), &form(&page, "/key/signin", &[("key", &right)]))
        .header("sec-fetch-site", "cross-site");
    assert_eq!(Visitor::send(elsewhere).await.status, 403);
}

#[tokio::test]
async fn without_operators_there_is_no_console() {
    let people = Issuer::in_file();
    let setup = Setup::proxy(&people);
    let digest = setup.line("[[operators]]");
    let setup = setup.replacing(
        &format!("{digest}\nid = \"ops\"\n"),
        "[[clients]]\nid = \"third\"\nname = \"T\"\nidentity = \"staff\"\n",
    );
    let server = Server::start(setup).await;
    for path in ["console", "console/kept", "console/sign-in/failed"] {
        assert_eq!(server.visitor().get(&server.url(path)).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn r32_the_session_is_a_cookie_of_its_own_and_ends_at_sign_out() {
    let house = House::plain().await;
    let visitor = house.server().visitor();
    let page = visitor.get(&house.console("")).await;
    let fields = form(&page, "/key/signin", &[("key", &house.key("ops"))]);
    let came = visitor.post(&house.console("/key/signin"), &fields).await;
    let cookie = came.cookies().remove(0);
    assert!(cookie.starts_with("__Host-sidegate-console="), "{cookie}");
    for attribute in ["; Secure", "; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    let operator = Operator { house: &house, visitor };
    let before = operator.visitor.cookies();
    assert_eq!(operator.get("").await.status, 200);
    assert_eq!(operator.post("", "/signout", &[]).await.status, 401);
    // Nor does it count in another browser after that.
    let thief = house.server().visitor();
    thief.plant("__Host-sidegate-console", &before["__Host-sidegate-console"]);
    assert_eq!(thief.get(&house.console("")).await.status, 401);
    // A person's cookie of any kind opens nothing.
    thief.plant("__Host-sidegate-console", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(thief.get(&house.console("")).await.status, 401);
}

/// A key that is taken away ends the sessions that were begun with it, though the operator has another.
#[tokio::test]
async fn a_session_ends_with_its_key() {
    let house = House::plain().await;
    let operator = house.operator("second").await;
    assert_eq!(operator.get("").await.status, 200);
    let (data, address) = (house.server().data(), format!("127.0.0.1:{}", house.server().port()));
    let digest = |key: &str| KeyDigest::of_text(key).to_string();
    let fresh = api_key::generate(Holder::Operator, &SystemRandom);
    let text = std::fs::read_to_string(data.join("sidegate.toml")).unwrap();
    let other = text.replace(&digest(&house.key("second")), &KeyDigest::of(&fresh).to_string());
    assert_ne!(text, other);
    house.server().signal(Signal::TERM);
    // At the next start, with the old key, the session is still there; without it, it is not.
    for (text, status) in [(text, 200), (other, 401)] {
        std::fs::write(data.join("other.toml"), text).unwrap();
        let mut serve = super::harness::sidegate();
        serve.args(["serve", "--config", "other.toml", "--data", ".", "--listen", &address]);
        let mut child = eventually("the store is free", async || {
            serve.current_dir(data).stdout(std::process::Stdio::piped()).kill_on_drop(true);
            let mut child = serve.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            lines.next_line().await.unwrap().map(|_| child)
        })
        .await;
        assert_eq!(operator.get("").await.status, status);
        child.kill().await.unwrap();
    }
}

#[rstest]
#[tokio::test]
async fn links_are_found_by_what_they_are_and_no_search_stands_in_an_address(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let house = House::start(backing, "").await;
    let (ada, bob) = (house.issue("ada").await, house.issue("bob").await);
    let mut other = house.ask("ada");
    other["operation"]["name"] = "tools/call:transfer".into();
    let travel = house.server().other_handler().issue(&other).await;
    let declined = house.issue("ada").await;
    house.server().visitor().signed_in(house.people.token("ada")).decline(&declined.url).await;
    let operator = house.operator("viewer").await;
    let sorted = |issued: &[&Issued]| {
        let mut ids: Vec<_> = issued.iter().map(|issued| issued.id.clone()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&operator.get("").await), sorted(&[&ada, &bob, &travel]));
    let issuer = house.people.name().to_owned();
    let person = [("issuer", issuer.as_str()), ("subject", "ada")];
    for (fields, found) in [
        (vec![], sorted(&[&ada, &bob, &travel])),
        (vec![("client", "travel")], sorted(&[&travel])),
        (vec![("operation", "tools/call:transfer")], sorted(&[&travel])),
        (person.to_vec(), sorted(&[&ada, &travel])),
        ([&person[..], &[("client", "weather")]].concat(), sorted(&[&ada])),
        (vec![("kind", "payment")], vec![]),
        (vec![("kind", "secret"), ("state", "declined")], sorted(&[&declined])),
        (vec![("state", "any")], sorted(&[&ada, &bob, &travel, &declined])),
        (vec![("provider", "github")], vec![]),
        (vec![("age", "60")], vec![]),
    ] {
        let (page, name) = operator.search(&fields).await;
        assert_eq!(ids(&page), found, "{fields:?}");
        assert_eq!(name.len(), 43, "{name}");
        // What was looked for stands in the form again, and nowhere else.
        for (field, value) in fields.iter().filter(|(field, _)| *field != "provider") {
            let of = |selector: &str, attribute: &str| page.attributes(selector, attribute);
            let shown = [
                of(&format!("input[name={field}]"), "value"),
                of(&format!("select[name={field}] option[selected]"), "value"),
            ];
            assert!(shown.concat().iter().any(|shown| shown == value), "{field}: {shown:?}");
        }
    }
    let half = operator.post("", "/links", &[("subject", "ada")]).await;
    assert_eq!(half.status, 422);
    assert!(half.text().contains("issuer is needed with a person's id"), "{}", half.text());
    // A search is its operator's own.
    let (_, name) = operator.search(&person).await;
    let second = house.operator("second").await;
    assert_eq!(second.get(&format!("/links/{name}")).await.status, 404);
    for log in [house.fleet.at(0).log(), house.fleet.at(1).log()] {
        assert!(!log.contains("tools/call:transfer") && !log.contains("subject"), "{log}");
    }
}

#[tokio::test]
async fn pages_of_links_follow_one_another_and_can_be_taken_away() {
    let house = House::plain().await;
    let mut all = Vec::new();
    for number in 0..120 {
        let mut ask = house.ask("ada");
        ask["operation"]["arguments"]["number"] = number.into();
        ask["operation"]["name"] = if number == 7 { "=cmd|' /C calc'!A0" } else { "tools/call:many" }.into();
        all.push(house.server().handler().issue(&ask).await.id);
    }
    all.sort();
    let operator = house.operator("viewer").await;
    let (mut page, name) = operator.search(&[]).await;
    let (mut seen, mut pages) = (ids(&page), 1);
    while let Some(next) = page.attributes("a[href*='/after/']", "href").pop() {
        page = operator.visitor.get(&house.server().url(&next[1..])).await;
        seen.extend(ids(&page));
        pages += 1;
    }
    seen.sort();
    assert_eq!((seen, pages), (all.clone(), 3));
    let csv = operator.get(&format!("/links/{name}/export.csv")).await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(csv.headers["content-disposition"], "attachment; filename=\"links.csv\"");
    let lines: Vec<_> = csv.html.split("\r\n").filter(|line| !line.is_empty()).collect();
    assert_eq!((lines.len(), lines[0].starts_with("id,state,kind,client,operation")), (121, true));
    assert!(csv.html.contains(",'=cmd|' /C calc'!A0,"), "no formula");
    let json = operator.get(&format!("/links/{name}/export.json")).await;
    let json: Value = serde_json::from_str(&json.html).unwrap();
    let mut ids: Vec<_> =
        json.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    assert_eq!(ids, all);
    assert_eq!(operator.get(&format!("/links/{name}/export.xml")).await.status, 404);
    assert_eq!(operator.get("/links/unknown/export.csv").await.status, 404);
}

#[rstest]
#[tokio::test]
async fn r34_r36_the_story_of_a_link_is_told_without_what_was_given(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let house = House::start(backing, "").await;
    let issued = house.issue("ada").await;
    let (ada, bob) =
        ("ada", "bob").map_both(|name| house.server().visitor().signed_in(house.people.token(name)));
    assert_eq!(bob.get(&issued.url).await.status, 403);
    ada.complete(&issued.url, "wk-canary-9").await;
    house.server().handler().claim(&issued, Some("one")).await.ok();
    let operator = house.operator("viewer").await;
    let story = eventually("the whole story", async || {
        let page = operator.get(&format!("/link/{}", issued.id)).await;
        let story = page.texts(".story strong");
        (story.len() >= 6).then_some((story, page))
    });
    let (story, page) = story.await;
    assert_eq!(story, ["issued", "refused", "opened", "started", "completed", "claimed"]);
    let text = page.text();
    assert!(text.contains("refused by somebody at a browser: wrong_person"), "{text}");
    assert!(text.contains("issued by client weather") && text.contains("completed by the person"), "{text}");
    assert!(text.contains("Look up the weather in Oslo"), "{text}");
    for canary in ["wk-canary-9", "requestState", &house.server().api_key()] {
        assert!(!page.html.contains(canary), "{canary}");
    }
    // The same over the API and on the command line.
    let shown =
        Handler::get(&house.server().operator(), &format!("v1/admin/elicitations/{}", issued.id)).await.ok();
    let what: Vec<_> =
        shown["history"].as_array().unwrap().iter().map(|step| step["what"].as_str().unwrap()).collect();
    assert_eq!(what, story);
    assert_eq!((&shown["state"], &shown["historyIsWhole"]), (&json!("claimed"), &json!(true)));
    assert_eq!(operator.get("/link/00000000000000000000000000000000").await.status, 404);
    assert_eq!(operator.get("/link/x").await.status, 404);
}

/// A pair, each part made into another thing.
trait Both {
    fn map_both<T>(self, each: impl Fn(&'static str) -> T) -> (T, T);
}

impl Both for (&'static str, &'static str) {
    fn map_both<T>(self, each: impl Fn(&'static str) -> T) -> (T, T) {
        (each(self.0), each(self.1))
    }
}

#[tokio::test]
async fn one_is_revoked_with_a_reason_and_by_whom_who_may() {
    let house = House::plain().await;
    let issued = house.issue("ada").await;
    let (at, action) = (format!("/link/{}", issued.id), format!("/link/{}/revoke", issued.id));
    let operator = house.operator("ops").await;
    for (missing, fields) in [
        ("reason", vec![("sure", "yes")]),
        ("reason", vec![("sure", "yes"), ("reason", " ")]),
        ("box", vec![("reason", "leaked")]),
    ] {
        let page = operator.post(&at, &action, &fields).await;
        assert_eq!(page.status, 422, "{fields:?}");
        assert!(page.text().contains(missing), "{}", page.text());
    }
    assert_eq!(house.server().handler().state(&issued.id).await, "pending");
    // The form of another link is not the form of this one.
    let other = house.issue("bob").await;
    let page = operator.get(&format!("/link/{}", other.id)).await;
    let stolen = form(&page, &format!("/link/{}/revoke", other.id), &[("sure", "yes"), ("reason", "leaked")]);
    assert_eq!(operator.visitor.post(&house.console(&action), &stolen).await.status, 403);
    let page = operator.post(&at, &action, &[("sure", "yes"), ("reason", "the link leaked")]).await;
    assert!(page.text().contains("revoked by operator ops: the link leaked"), "{}", page.text());
    assert_eq!(house.server().handler().state(&issued.id).await, "revoked");
    assert!(page.attributes("form", "action").iter().all(|action| !action.ends_with("/revoke")));
    assert_eq!(house.server().handler().state(&other.id).await, "pending");
}

#[tokio::test]
async fn r34_a_viewer_changes_nothing_by_no_way() {
    let house = House::plain().await;
    let issued = house.issue("ada").await;
    let viewer = house.operator("viewer").await;
    let (found, name) = viewer.search(&[]).await;
    let page = viewer.get(&format!("/link/{}", issued.id)).await;
    for page in [&found, &page] {
        assert!(!page.html.contains("/revoke"), "no form leads there");
    }
    assert_eq!(viewer.get(&format!("/revoke/{name}")).await.status, 403);
    // With the form of one who may, and with none of their own.
    let revoker = house.operator("ops").await;
    let stolen = revoker.get(&format!("/link/{}", issued.id)).await;
    let action = format!("/link/{}/revoke", issued.id);
    let fields = form(&stolen, &action, &[("sure", "yes"), ("reason", "mine")]);
    assert_eq!(viewer.visitor.post(&house.console(&action), &fields).await.status, 403);
    // By a proof that is their own, for the API's way too.
    let key = house.server().operator().with_key(&house.key("viewer"));
    for (path, body) in [
        (format!("v1/admin/elicitations/{}/revoke", issued.id), json!({"reason": "mine"})),
        ("v1/admin/elicitations/revoke".to_owned(), json!({"client": "weather", "reason": "mine"})),
        ("v1/admin/kept/revoke".to_owned(), json!({"client": "weather", "reason": "mine"})),
        ("v1/admin/webhooks/retry".to_owned(), json!({"elicitation": issued.id})),
    ] {
        assert_eq!(key.post(&path, &body).await.problem(), (403, "role_missing"), "{path}");
    }
    let search = key.post("v1/admin/elicitations/search", &json!({})).await.ok();
    assert_eq!(search["elicitations"].as_array().unwrap().len(), 1);
    assert_eq!(house.server().handler().state(&issued.id).await, "pending");
    // Nor does a client's key open anything of it.
    let client = house.server().handler();
    assert_eq!(
        client.get(&format!("v1/admin/elicitations/{}", issued.id)).await.problem(),
        (401, "unauthorized")
    );
}

/// All that were found are counted first; the reason is on the trail of each.
#[rstest]
#[tokio::test]
async fn many_are_revoked_at_once(#[values(Backing::Embedded, Backing::Shared)] backing: Backing) {
    let house = House::start(backing, "").await;
    let mut mine = Vec::new();
    for number in 0..30 {
        let mut ask = house.ask("ada");
        ask["operation"]["arguments"]["number"] = number.into();
        mine.push(house.server().handler().issue(&ask).await);
    }
    let other = house.issue("bob").await;
    let operator = house.operator("ops").await;
    let (_, name) = operator.search(&[("issuer", house.people.name()), ("subject", "ada")]).await;
    let at = format!("/revoke/{name}");
    let page = operator.get(&at).await;
    assert_eq!(page.heading(), "Revoke 30 links?");
    assert!(page.text().contains(&format!("ada at {}", house.people.name())), "{}", page.text());
    let page = operator.post(&at, &at, &[("sure", "yes"), ("reason", "left the company")]).await;
    let url = page.status;
    assert_eq!(url, 200, "{}", page.text());
    eventually("all are revoked", async || {
        for issued in &mine {
            if house.server().handler().state(&issued.id).await != "revoked" {
                return None;
            }
        }
        Some(())
    })
    .await;
    assert_eq!(house.server().handler().state(&other.id).await, "pending");
    let trail = house.server().audit().await;
    let revoked = trail.iter().filter(|event| event["what"] == "revoked");
    assert_eq!(revoked.clone().count(), 30);
    assert!(
        revoked.clone().all(|event| event["reason"] == "left the company" && event["actor"]["id"] == "ops")
    );
}

/// More than so many: nothing happens before another operator agrees, and who wants it is not another.
#[rstest]
#[case::agreed(true)]
#[case::refused(false)]
#[tokio::test]
async fn two_persons_revoke_more_than_one_may(#[case] agrees: bool) {
    let house = House::start(Backing::Embedded, "[console]\ntwo_persons_above = 2\n").await;
    let mut mine = Vec::new();
    for person in ["ada", "bob", "eve"] {
        mine.push(house.issue(person).await);
    }
    let operator = house.operator("ops").await;
    let (_, name) = operator.search(&[]).await;
    let at = format!("/revoke/{name}");
    let asked = operator.get(&at).await;
    assert!(asked.text().contains("more than one operator may revoke alone"), "{}", asked.text());
    let answer = form(&asked, &at, &[("sure", "yes"), ("reason", "a key leaked")]);
    let answer = operator.visitor.post(&house.console(&at), &answer).await;
    let bulk = answer.location().strip_prefix("/console").unwrap().to_owned();
    let waits = operator.get(&bulk).await;
    assert_eq!(waits.heading(), "Waits for a second operator");
    assert!(waits.text().contains(&house.console(&bulk)), "{}", waits.text());
    // Whoever wants it does not agree to it, a viewer neither, nor the same by the API.
    let agree = format!("{bulk}/agree");
    assert_eq!(
        operator.visitor.post(&house.console(&agree), &form(&waits, "/signout", &[])).await.status,
        403
    );
    let viewer = house.operator("viewer").await;
    let seen = viewer.get(&bulk).await;
    assert!(seen.attributes("form", "action").iter().all(|action| !action.ends_with("/agree")));
    let alone = json!({"client": "weather", "reason": "a key leaked"});
    let refused = house.server().operator().post("v1/admin/elicitations/revoke", &alone).await;
    assert_eq!(refused.problem(), (409, "second_operator_needed"));
    for issued in &mine {
        assert_eq!(house.server().handler().state(&issued.id).await, "pending");
    }
    let second = house.operator("second").await;
    let what = if agrees { "agree" } else { "refuse" };
    let page = second.post(&bulk, &format!("{bulk}/{what}"), &[]).await;
    assert_eq!(page.status, 200, "{}", page.text());
    if agrees {
        eventually("all are revoked", async || {
            let page = operator.get(&bulk).await;
            (page.heading() == "Revoked").then_some(())
        })
        .await;
        let page = operator.get(&bulk).await;
        assert!(page.text().contains("3 were revoked, with the agreement of second"), "{}", page.text());
        let trail = house.server().audit().await;
        let revoked: Vec<_> = trail.iter().filter(|event| event["what"] == "revoked").collect();
        assert_eq!(revoked.len(), 3);
        assert!(revoked.iter().all(|event| event["reason"] == "a key leaked (agreed to by second)"));
    } else {
        assert_eq!(operator.get(&bulk).await.heading(), "Not revoked");
        // It is over: nobody agrees any more.
        let late = form(&second.get(&bulk).await, "/signout", &[]);
        assert_ne!(second.visitor.post(&house.console(&agree), &late).await.status, 303);
        for issued in &mine {
            assert_eq!(house.server().handler().state(&issued.id).await, "pending");
        }
    }
}

#[tokio::test]
async fn what_is_kept_is_found_and_revoked() {
    let house = House::plain().await;
    let mut kept = Vec::new();
    for (person, slot) in [("ada", "weather-key"), ("bob", "weather-key"), ("ada", "other")] {
        let mut ask = house.ask(person);
        ask["secret"]["keep"] = json!({"slot": slot, "days": 30});
        let issued = house.server().handler().issue(&ask).await;
        house
            .server()
            .visitor()
            .signed_in(house.people.token(person))
            .complete(&issued.url, "wk-canary-5")
            .await;
        kept.push(issued);
    }
    let viewer = house.operator("viewer").await;
    let page = viewer.get("/kept").await;
    assert_eq!(page.texts("tbody tr").len(), 3, "{}", page.text());
    assert!(!page.html.contains("wk-canary-5") && !page.html.contains("name=\"revoke\""));
    let operator = house.operator("ops").await;
    let page = operator.post("/kept", "/kept", &[("slot", "weather-key")]).await;
    assert_eq!(page.texts("tbody tr").len(), 2, "{}", page.text());
    let query = page.attributes("a.button", "href").remove(0);
    let query = query.strip_prefix("/console").unwrap();
    assert_eq!(operator.get(query).await.heading(), "Revoke 2 that are kept?");
    let csv = page.attributes("a[href$='.csv']", "href").remove(0);
    let csv = operator.visitor.get(&house.server().url(&csv[1..])).await;
    assert!(
        csv.html.starts_with("id,kind,client,slot,provider") && csv.html.lines().count() == 3,
        "{}",
        csv.html
    );
    // One of them alone.
    let page = operator.get("/kept").await;
    let id = page.attributes("input[name=id]", "value").remove(0);
    let page = operator.post("/kept", "/kept", &[("id", &id), ("revoke", "yes")]).await;
    assert_eq!(page.heading(), "Revoke 1 that are kept?");
    let at = page.attributes("form[action*='/console/revoke/']", "action").remove(0);
    let at = at.strip_prefix("/console").unwrap();
    operator.post(at, at, &[("sure", "yes"), ("reason", "not needed")]).await;
    eventually("it is gone", async || {
        let page = operator.get("/kept").await;
        (page.texts("tbody tr").len() == 2 && !page.html.contains(&id)).then_some(())
    })
    .await;
}

/// Operators without keys: a claim of their ID token says who is one, and nobody else is.
#[rstest]
#[case::revoker(json!({"groups": ["staff", "gate-admins"]}), Some("revoker"))]
#[case::viewer(json!({"groups": ["gate-readers"]}), Some("viewer"))]
#[case::one_group_as_a_text(json!({"groups": "gate-admins"}), Some("revoker"))]
#[case::both(json!({"groups": ["gate-readers", "gate-admins"]}), Some("revoker"))]
#[case::another_group(json!({"groups": ["staff"]}), None)]
#[case::a_part_of_a_name(json!({"groups": ["gate-admins-not", "gate"]}), None)]
#[case::no_groups(json!({}), None)]
#[case::another_claim(json!({"roles": ["gate-admins"]}), None)]
#[case::not_a_text(json!({"groups": [["gate-admins"], 7]}), None)]
#[tokio::test]
async fn operators_sign_in_where_a_claim_says_that_they_are(#[case] more: Value, #[case] role: Option<&str>) {
    let provider = Provider::start().await;
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), SECRET).unwrap();
    let settings = format!("client_secret_file = \"{}\"", secret.path().display());
    let console = "[console]\nidentity = \"staff\"\nclaim = \"groups\"\nviewers = [\"gate-readers\"]\nrevokers = [\"gate-admins\"]\n";
    let server = Server::start(Setup::oidc(provider.url(), &settings).and(console)).await;
    let console = server.url("console");
    let visitor = server.visitor();
    let page = visitor.get(&console).await;
    let begun = visitor.post(&format!("{console}/signin"), &form(&page, "/console/signin", &[])).await;
    assert_eq!(begun.status, 303, "{}", begun.text());
    let leaves = visitor.get(&server.url(&begun.location()[1..])).await;
    let to = reqwest::Url::parse(&leaves.attributes("a.button", "href")[0]).unwrap();
    let asked: std::collections::BTreeMap<_, _> = to.query_pairs().into_owned().collect();
    let mut claims = provider.claims("root", &asked["nonce"]);
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    provider.give_claims(&claims);
    let back = format!("{}?code=good&state={}", asked["redirect_uri"], asked["state"]);
    // In another browser it opens nothing.
    assert_eq!(server.visitor().get(&back).await.status, 403);
    let came = visitor.get(&back).await;
    let Some(role) = role else {
        assert_eq!(came.location(), "/console/sign-in/no-operator", "{}", came.text());
        let told = visitor.get(&server.url("console/sign-in/no-operator")).await;
        assert_eq!(told.status, 403);
        assert!(told.text().contains("You signed in, and are no operator here."), "{}", told.text());
        assert_eq!(visitor.get(&console).await.status, 401);
        assert!(server.refusals().await.contains(&"sign_in_no_operator".to_owned()));
        return;
    };
    assert_eq!(came.location(), "/console", "{}", came.text());
    let home = visitor.get(&console).await;
    assert_eq!((home.status.as_u16(), home.texts(".who .source")), (200, vec![role.to_owned()]));
    // It opens the console and no link.
    let mut ask = ask();
    ask["subject"] = json!({"issuer": provider.url(), "id": "root"});
    let issued = server.handler().issue(&ask).await;
    assert_eq!(visitor.get(&issued.url).await.status, 401);
    // And a replay of the return opens nothing.
    let thief = server.visitor();
    thief.plant("__Host-sidegate-browser", &visitor.cookies()["__Host-sidegate-browser"]);
    assert_ne!(thief.get(&back).await.location(), "/console");
    if role == "revoker" {
        let at = format!("{console}/link/{}", issued.id);
        let fields = form(&visitor.get(&at).await, "/revoke", &[("sure", "yes"), ("reason", "test")]);
        assert_eq!(visitor.post(&format!("{at}/revoke"), &fields).await.status, 303);
        let by = &server.audit().await.into_iter().find(|event| event["what"] == "revoked").unwrap()["actor"];
        assert_eq!(by["id"], "staff:root");
    }
}

#[rstest]
#[case::no_claim("`console.claim` is needed", "identity = \"staff\"\nrevokers = [\"a\"]")]
#[case::nobody(
    "`console.viewers` or `console.revokers` must list",
    "identity = \"staff\"\nclaim = \"groups\""
)]
#[case::empty("none of them empty", "identity = \"staff\"\nclaim = \"groups\"\nrevokers = [\"\"]")]
#[case::unknown(
    "names no `[identity.nowhere]` section",
    "identity = \"nowhere\"\nclaim = \"g\"\nrevokers = [\"a\"]"
)]
#[case::not_oidc("which is not `oidc`", "identity = \"door\"\nclaim = \"g\"\nrevokers = [\"a\"]")]
#[case::no_source("need `console.identity`", "claim = \"groups\"")]
#[case::another_key("unknown field", "group = \"g\"")]
#[tokio::test]
async fn r38_a_console_that_would_let_in_anybody_stops_the_start(
    #[case] sentence: &str,
    #[case] lines: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let digest = KeyDigest::of_text("sgk_any");
    let text = format!(
        "[[clients]]\nid = \"a\"\nname = \"A\"\nidentity = \"staff\"\napi_key_digests = [\"{digest}\"]\n\
         [identity.staff]\nsource = \"oidc\"\nissuer = \"https://i.example\"\nclient_id = \"a\"\n\
         [identity.door]\nsource = \"confirm\"\nissuer = \"local\"\n[console]\n{lines}\n"
    );
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let mut check = super::harness::sidegate();
    check.args(["check", "--config", "s.toml", "--data", "."]).current_dir(folder.path());
    let output = check.output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(sentence), "{said}");
}
