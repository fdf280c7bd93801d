//! A load that remembers what it was told, and a check of that against what is there afterwards.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::handler::Issued;
use super::{Fleet, Handler, Page, Visitor, ask, eventually};

/// Full lives, many at once, each over all instances, with two attempts that race for each outcome.
pub(crate) struct Load {
    told: Arc<Mutex<Told>>,
    ends: Arc<AtomicBool>,
    workers: JoinSet<()>,
}

/// What the load was told, by the ids of elicitations.
#[derive(Default)]
struct Told {
    issued: HashMap<String, Issued>,
    submitted: HashSet<String>,
    /// Attempts that received the outcome.
    winners: HashMap<String, HashSet<String>>,
    /// Steps that were answered with an error of the service, or not at all.
    refused: usize,
}

/// What a check found.
#[derive(Debug, Default)]
#[expect(dead_code, reason = "all of it is printed")]
pub(crate) struct Findings {
    issued: usize,
    pub(crate) submitted: usize,
    pub(crate) claimed: usize,
    /// Steps that were answered with an error of the service, or not at all.
    refused: usize,
    /// Elicitations that were acknowledged and are not there.
    pub(crate) links_lost: usize,
    /// Submissions that were acknowledged and are not there.
    pub(crate) submits_lost: usize,
    /// Outcomes that more than one attempt received.
    pub(crate) doubled: usize,
}

impl Findings {
    /// Nothing that was acknowledged is lost, and nothing was released twice.
    pub(crate) fn hold(&self) {
        assert_eq!((self.links_lost, self.submits_lost, self.doubled), (0, 0, 0), "{self:?}");
        assert!(self.submitted > 10 && self.claimed > 10, "there was a load: {self:?}");
    }
}

/// One instance, as the load uses it.
#[derive(Clone)]
struct Instance {
    handler: Handler,
    visitor: Visitor,
    base: String,
}

const WORKERS: usize = 8;

impl Load {
    /// Begins.
    pub(crate) async fn on(fleet: &Fleet) -> Self {
        let instances: Vec<_> = (0..2)
            .map(|number| {
                let server = fleet.at(number);
                Instance { handler: server.handler(), visitor: server.visitor(), base: server.url("") }
            })
            .collect();
        let (told, ends) = (Arc::new(Mutex::new(Told::default())), Arc::new(AtomicBool::new(false)));
        let mut workers = JoinSet::new();
        for number in 0..WORKERS {
            workers.spawn(live(instances.clone(), number, Arc::clone(&told), Arc::clone(&ends)));
        }
        let load = Self { told, ends, workers };
        load.goes_on().await;
        load
    }

    /// Waits until lives come to their end again.
    pub(crate) async fn goes_on(&self) {
        let won = || self.told.lock().unwrap().winners.len();
        let before = won();
        eventually("the load gets somewhere", async || (won() > before + WORKERS).then_some(())).await;
    }

    /// Ends the load and looks at what is there.
    pub(crate) async fn ends(mut self, fleet: &Fleet) -> Findings {
        self.ends.store(true, Ordering::Relaxed);
        while self.workers.join_next().await.is_some() {}
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        check(&fleet.at(0).handler(), &told).await
    }
}

/// The reply, unless there is none or it is an error of the service.
async fn reply(request: RequestBuilder) -> Option<(StatusCode, String)> {
    let response = request.timeout(Duration::from_secs(10)).send().await.ok()?;
    let status = response.status();
    let text = response.text().await.ok()?;
    (!status.is_server_error()).then_some((status, text))
}

async fn live(instances: Vec<Instance>, number: usize, told: Arc<Mutex<Told>>, ends: Arc<AtomicBool>) {
    let mut turn = number;
    while !ends.load(Ordering::Relaxed) {
        turn += 1;
        if one(&instances, turn, &told).await.is_none() {
            told.lock().unwrap().refused += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// One life. What was acknowledged is noted before the next step.
async fn one(instances: &[Instance], turn: usize, told: &Mutex<Told>) -> Option<()> {
    let at = |number: usize| &instances[(turn + number) % instances.len()];
    let ask = ask();
    let (_, text) = reply(at(0).handler.request(Method::POST, "v1/elicitations").json(&ask)).await?;
    let view: Value = serde_json::from_str(&text).ok()?;
    let issued = Issued { id: view["id"].as_str()?.to_owned(), url: view["url"].as_str()?.to_owned(), ask };
    told.lock().unwrap().issued.insert(issued.id.clone(), issued.clone());

    let link = format!("{}e/{}", at(1).base, issued.id);
    let (status, html) = reply(at(1).visitor.request(Method::GET, &link)).await?;
    let page = Page { status, html, headers: reqwest::header::HeaderMap::new() };
    let form = page.filled(&[("api_key", &value_of(&issued.id))]);
    let (status, _) = reply(at(1).visitor.form(&format!("{link}/secret"), &form)).await?;
    if status != StatusCode::SEE_OTHER {
        return None;
    }
    told.lock().unwrap().submitted.insert(issued.id.clone());

    let claim = async |number: usize, attempt: &str| {
        if claim(&at(number).handler, &issued, attempt).await? {
            let mut told = told.lock().unwrap();
            told.winners.entry(issued.id.clone()).or_default().insert(attempt.to_owned());
        }
        Some(())
    };
    let (one, two) = tokio::join!(claim(0, "one"), claim(1, "two"));
    one.and(two)
}

/// Whether this attempt received the outcome.
async fn claim(handler: &Handler, issued: &Issued, attempt: &str) -> Option<bool> {
    let body = json!({"operation": issued.ask["operation"], "attempt": attempt});
    let path = format!("v1/elicitations/{}/claim", issued.id);
    let (status, text) = reply(handler.request(Method::POST, &path).json(&body)).await?;
    let won = status.is_success();
    assert!(!won || text.contains(&value_of(&issued.id)), "another's outcome: {}", issued.id);
    Some(won)
}

fn value_of(id: &str) -> String {
    format!("value-of-{id}")
}

async fn check(handler: &Handler, told: &Told) -> Findings {
    let mut findings = Findings {
        issued: told.issued.len(),
        submitted: told.submitted.len(),
        claimed: told.winners.len(),
        refused: told.refused,
        ..Findings::default()
    };
    for (id, issued) in &told.issued {
        let view = handler.get(&format!("v1/elicitations/{id}")).await;
        if view.status == StatusCode::NOT_FOUND {
            findings.links_lost += 1;
            findings.submits_lost += usize::from(told.submitted.contains(id));
            continue;
        }
        let state = view.text_at("/state").to_owned();
        let there = ["completed", "claimed"].contains(&state.as_str());
        findings.submits_lost += usize::from(told.submitted.contains(id) && !there);
        let mut winners = told.winners.get(id).cloned().unwrap_or_default();
        for attempt in ["one", "two", "three"] {
            if claim(handler, issued, attempt).await.expect("the service is well again") {
                winners.insert(attempt.to_owned());
            }
        }
        findings.doubled += usize::from(winners.len() > 1);
        assert!(!there || !winners.is_empty(), "{id} is {state}, and nobody can claim it");
    }
    findings
}
