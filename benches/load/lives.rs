//! What is asked of the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use sidegate::store::Store;

use super::ceiling::{self, Ceiling};
use super::connection::{Answer, Connection, request};
use super::figures::Slice;
use super::process::{Floor, Process, Service};

/// How much at once, for how long.
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) time: Duration,
}

/// One sort of work.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    /// The floor's answer.
    Floor(&'a Floor),
    /// The status of one pending elicitation.
    Status(&'a Service, &'a Status),
    /// A new elicitation.
    Issue(&'a Service),
    /// A first round.
    Round(&'a Service),
    /// Issue, open, submit, claim.
    Life(&'a Service),
    /// What the store alone does for a life.
    Ceiling(&'a Ceiling),
}

/// A status call and its answer.
pub(crate) struct Status {
    request: Vec<u8>,
    pub(crate) body: String,
}

impl Work<'_> {
    const fn process(&self) -> Option<&Process> {
        match self {
            Work::Floor(floor) => Some(&floor.0),
            Work::Status(service, _) | Work::Issue(service) | Work::Round(service) | Work::Life(service) => {
                Some(&service.process)
            }
            Work::Ceiling(_) => None,
        }
    }
}

/// The same work with all that a task needs.
#[derive(Clone)]
enum Task {
    Same(Arc<Vec<u8>>),
    Issue(Caller),
    Round(Caller),
    Life(Caller),
    Ceiling(Arc<dyn Store>),
}

/// Writes requests for a service.
#[derive(Clone)]
pub(crate) struct Caller {
    host: String,
    headers: String,
}

impl Load {
    /// Works for the time, over all connections at once.
    pub(crate) async fn run(&self, work: Work<'_>) -> Slice {
        let process = work.process();
        let task = match work {
            Work::Floor(floor) => {
                Task::Same(Arc::new(request("GET", "/", &floor.0.address.to_string(), "", "")))
            }
            Work::Status(_, status) => Task::Same(Arc::new(status.request.clone())),
            Work::Issue(service) => Task::Issue(Caller::of(service)),
            Work::Round(service) => Task::Round(Caller::of(service)),
            Work::Life(service) => Task::Life(Caller::of(service)),
            Work::Ceiling(ceiling) => Task::Ceiling(Arc::clone(&ceiling.store)),
        };
        let processor = || process.map_or(Duration::ZERO, Process::processor);
        let (before, start) = (processor(), Instant::now());
        let end = start + self.time;
        let workers: Vec<_> = (0..self.connections)
            .map(|_| {
                let (task, address) = (task.clone(), process.map(|process| process.address));
                tokio::spawn(async move {
                    let mut connection = match address {
                        Some(address) => Some(Connection::open(address).await),
                        None => None,
                    };
                    let mut latencies = Vec::new();
                    while Instant::now() < end {
                        let begin = Instant::now();
                        task.once(connection.as_mut()).await;
                        latencies.push(begin.elapsed());
                    }
                    latencies
                })
            })
            .collect();
        let mut latencies = Vec::new();
        for worker in workers {
            latencies.extend(worker.await.unwrap());
        }
        let (time, processor) = (start.elapsed(), processor().saturating_sub(before));
        Slice { time, latencies, processor, memory: process.map_or(0, Process::memory) }
    }
}

impl Task {
    async fn once(&self, connection: Option<&mut Connection>) {
        let Some(connection) = connection else {
            let Self::Ceiling(store) = self else { panic!("only the store is asked without a connection") };
            return ceiling::life(&**store).await;
        };
        match self {
            Self::Same(request) => drop(expect(connection.ask(request).await, 200)),
            Self::Issue(caller) => drop(expect(connection.ask(&caller.issue(&ask())).await, 201)),
            Self::Round(caller) => {
                let mut round = ask();
                round["protocolVersion"] = "2026-07-28".into();
                expect(connection.ask(&caller.post("/v1/rounds", &round)).await, 200);
            }
            Self::Life(caller) => caller.life(connection).await,
            Self::Ceiling(store) => ceiling::life(&**store).await,
        }
    }
}

impl Caller {
    pub(crate) fn of(service: &Service) -> Self {
        let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", service.key);
        Self { host: service.process.address.to_string(), headers }
    }

    fn post(&self, path: &str, body: &Value) -> Vec<u8> {
        request("POST", path, &self.host, &self.headers, &body.to_string())
    }

    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        request("GET", path, &self.host, &self.headers, "")
    }

    pub(crate) fn issue(&self, ask: &Value) -> Vec<u8> {
        self.post("/v1/elicitations", ask)
    }

    async fn life(&self, connection: &mut Connection) {
        let ask = ask();
        let issued = json(&expect(connection.ask(&self.issue(&ask)).await, 201));
        let id = issued["id"].as_str().unwrap();
        self.complete(connection, id).await;
        let claim =
            self.post(&format!("/v1/elicitations/{id}/claim"), &json!({"operation": ask["operation"]}));
        let claimed = json(&expect(connection.ask(&claim).await, 200));
        assert_eq!(claimed["credential"]["values"]["api_key"], "wk-1");
    }

    /// Opens the page and sends its form.
    pub(crate) async fn complete(&self, connection: &mut Connection, id: &str) {
        let page =
            expect(connection.ask(&request("GET", &format!("/e/{id}"), &self.host, "", "")).await, 200);
        let page = String::from_utf8(page.body).unwrap();
        let input = |name: &str| {
            page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap().split('"').next().unwrap()
        };
        let form = format!("_render={}&_token={}&api_key=wk-1", input("_render"), input("_token"));
        let headers =
            format!("origin: http://{}\r\ncontent-type: application/x-www-form-urlencoded\r\n", self.host);
        expect(
            connection.ask(&request("POST", &format!("/e/{id}/secret"), &self.host, &headers, &form)).await,
            303,
        );
    }
}

fn expect(answer: Answer, status: u16) -> Answer {
    assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
    answer
}

pub(crate) fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// A request for an operation that is like no other.
pub(crate) fn ask() -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    json!({
        "kind": "secret",
        "operation": {
            "name": "tools/call:forecast",
            "arguments": {"city": "Oslo", "number": NEXT.fetch_add(1, Ordering::Relaxed)},
            "summary": "Look up the weather in Oslo",
        },
        "message": "Your WeatherCo API key is needed to look up the forecast.",
        "expiresIn": 86400,
        "secret": {"fields": [{"name": "api_key", "label": "WeatherCo API key"}]},
    })
}

/// Issues one elicitation to ask the status of.
pub(crate) async fn status_work(service: &Service) -> Status {
    let caller = Caller::of(service);
    let mut connection = Connection::open(service.process.address).await;
    let issued = json(&expect(connection.ask(&caller.issue(&ask())).await, 201));
    let request = caller.get(&format!("/v1/elicitations/{}", issued["id"].as_str().unwrap()));
    let answer = expect(connection.ask(&request).await, 200);
    Status { request, body: String::from_utf8(answer.body).unwrap() }
}

/// Issues this many, as fast as 256 connections can.
pub(crate) async fn fill(service: &Service, count: usize) {
    let left = Arc::new(AtomicU64::new(count as u64));
    let workers: Vec<_> = (0..256)
        .map(|_| {
            let (caller, left, address) = (Caller::of(service), Arc::clone(&left), service.process.address);
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await;
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    expect(connection.ask(&caller.issue(&ask())).await, 201);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
}
