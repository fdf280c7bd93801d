//! The process is killed without warning under load, twenty times: what was acknowledged is there, and nothing
//! is claimed by two attempts.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;

use super::harness::handler::Issued;
use super::harness::{Handler, Server, Visitor, ask, eventually};

const KILLS: usize = 20;
const WORKERS: usize = 8;

/// What the load was told, by the id of the elicitation.
#[derive(Default)]
struct Known {
    issued: HashMap<String, Issued>,
    submitted: HashSet<String>,
    /// Attempts that received the outcome.
    winners: HashMap<String, HashSet<String>>,
}

/// Full lives, one after another, two attempts racing for each outcome.
async fn live(handler: Handler, visitor: Visitor, known: Arc<Mutex<Known>>) {
    loop {
        let issued = handler.issue(&ask()).await;
        known.lock().unwrap().issued.insert(issued.id.clone(), issued.clone());
        let page = visitor.submit(&issued.url, &value_of(&issued)).await;
        if page.status != StatusCode::SEE_OTHER {
            continue;
        }
        known.lock().unwrap().submitted.insert(issued.id.clone());
        let claim = async |attempt: &str| {
            let reply = handler.claim(&issued, Some(attempt)).await;
            if reply.status.is_success() {
                assert_eq!(reply.text_at("/credential/values/api_key"), value_of(&issued));
                let mut known = known.lock().unwrap();
                known.winners.entry(issued.id.clone()).or_default().insert(attempt.to_owned());
            }
        };
        tokio::join!(claim("one"), claim("two"));
    }
}

fn value_of(issued: &Issued) -> String {
    format!("value-of-{}", issued.id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_twenty_kills_nothing_acknowledged_is_lost_and_nothing_is_claimed_twice() {
    let mut server = Server::local().await;
    let known = Arc::new(Mutex::new(Known::default()));
    let mut moments = [0; KILLS];
    aws_lc_rs::rand::fill(&mut moments).unwrap();
    for moment in moments {
        let load: Vec<_> = (0..WORKERS)
            .map(|_| tokio::spawn(live(server.handler(), server.visitor(), Arc::clone(&known))))
            .collect();
        eventually("the load gets somewhere", async || {
            (!known.lock().unwrap().submitted.is_empty()).then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_millis(3 * u64::from(moment))).await;
        server = server.crash().await;
        for worker in load {
            worker.abort();
            // What was acknowledged is noted before the next request, so that a worker may be cut off anywhere.
            let _ = worker.await;
        }
        let told = std::mem::take(&mut *known.lock().unwrap());
        check(&server, &told).await;
    }
    server.stop().await;
    let audit = super::harness::sidegate()
        .args(["audit", "verify", "--data"])
        .arg(server.data())
        .output()
        .await
        .unwrap();
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
}

async fn check(server: &Server, known: &Known) {
    let handler = server.handler();
    for (id, issued) in &known.issued {
        let mut winners = known.winners.get(id).cloned().unwrap_or_default();
        let state = handler.state(id).await;
        if known.submitted.contains(id) {
            assert!(
                ["completed", "claimed"].contains(&state.as_str()),
                "an acknowledged submission is {state}"
            );
        }
        if !winners.is_empty() {
            assert_eq!(state, "claimed", "an acknowledged claim");
        }
        let mut refused = 0;
        for attempt in ["one", "two", "three"] {
            let reply = handler.claim(issued, Some(attempt)).await;
            if reply.status.is_success() {
                assert_eq!(reply.text_at("/credential/values/api_key"), value_of(issued));
                winners.insert(attempt.to_owned());
            } else {
                refused += 1;
            }
        }
        assert!(winners.len() <= 1, "{id} was released to {winners:?}");
        if state == "pending" {
            assert_eq!(refused, 3);
        } else {
            assert_eq!(
                (winners.len(), refused),
                (1, 2),
                "{id} in {state} is claimable by exactly one attempt"
            );
        }
    }
    let all = server.operator().post("v1/admin/elicitations/search", &json!({"limit": 1})).await;
    assert!(all.status.is_success());
}
