//! Traces, as a collector receives them (OTLP over HTTP).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::harness::issuer::Issuer;
use super::harness::{Handler, Server, Setup, ask, eventually};

/// A collector. Ends when dropped.
struct Collector {
    url: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
    serving: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let into = Arc::clone(&bodies);
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let into = Arc::clone(&into);
                tokio::spawn(async move {
                    let mut received = Vec::new();
                    while stream.read_buf(&mut received).await.is_ok_and(|count| count > 0) {
                        let Some(head) = received.windows(4).position(|part| part == b"\r\n\r\n") else {
                            continue;
                        };
                        let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
                        assert!(text.starts_with("post /v1/traces "), "{text}");
                        let length =
                            text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                        let length: usize = length.parse().unwrap();
                        if received.len() < head + 4 + length {
                            continue;
                        }
                        into.lock().unwrap().push(received[head + 4..head + 4 + length].to_vec());
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                        received.drain(..head + 4 + length);
                    }
                });
            }
        });
        Self { url, bodies, serving }
    }

    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let all = bodies.iter().map(|body| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
        let resources = all.flat_map(|export| export.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    fn has(&self, needle: &str) -> bool {
        let bodies = self.bodies.lock().unwrap();
        bodies.iter().any(|body| body.windows(needle.len()).any(|part| part == needle.as_bytes()))
    }
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        _ => None,
    }
}

const TRACE: [u8; 16] =
    [0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c];
const PARENT: [u8; 8] = [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31];
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn r36_a_request_goes_on_with_its_callers_trace_and_tells_nothing_of_anybody() {
    let (collector, people) = (Collector::start().await, Issuer::in_file());
    let setup = Setup::proxy(&people).and(&format!("[traces]\nendpoint = \"{}\"\n", collector.url));
    let mut server = Server::start(setup).await;
    let mut asked = ask();
    asked["subject"] = json!({"issuer": people.name(), "id": "ada-canary"});
    asked["operation"]["arguments"]["city"] = "city-canary".into();
    let request =
        server.handler().request(Method::POST, "v1/elicitations").header("traceparent", TRACEPARENT);
    let issued = Handler::send(request.json(&asked)).await.ok();
    let (id, url) = (issued["id"].as_str().unwrap(), issued["url"].as_str().unwrap());
    let ada = server.visitor().signed_in(people.token("ada-canary"));
    ada.complete(url, "wk-canary").await;
    let again = server.handler().request(Method::GET, &format!("v1/elicitations/{id}?wait=0"));
    Handler::send(again.header("traceparent", "nonsense")).await.ok();
    // What is left is handed over at the end.
    server.stop().await;
    let spans = eventually("the spans", async || {
        let spans = collector.spans();
        spans.iter().any(|span| span.name == "/v1/elicitations").then_some(spans)
    });
    let spans = spans.await;
    let issue = spans.iter().find(|span| span.name == "/v1/elicitations").unwrap();
    assert_eq!((issue.trace_id.as_slice(), issue.parent_span_id.as_slice()), (&TRACE[..], &PARENT[..]));
    assert_eq!(attribute(issue, "http.request.method").as_deref(), Some("POST"));
    assert_eq!(attribute(issue, "http.route").as_deref(), Some("/v1/elicitations"));
    assert_eq!(attribute(issue, "http.response.status_code").as_deref(), Some("201"));
    let within: Vec<_> = spans.iter().filter(|span| span.parent_span_id == issue.span_id).collect();
    assert!(within.iter().any(|span| span.name == "commit"), "{within:?}");
    assert!(within.iter().all(|span| span.trace_id == TRACE));
    // Others are traces of their own, whatever they bring.
    let status = spans.iter().find(|span| span.name == "/v1/elicitations/{id}").unwrap();
    assert_ne!(status.trace_id, TRACE);
    assert!(status.parent_span_id.is_empty());
    let key = server.api_key();
    for canary in ["ada-canary", "city-canary", "wk-canary", id, "wait=0", &key, "forecast"] {
        assert!(!collector.has(canary), "{canary}");
    }
    // The log is as it is without.
    assert!(
        server.log().lines().all(|line| !line.contains("\"span\"") && !line.contains("otel")),
        "{}",
        server.log()
    );
}

#[tokio::test]
async fn of_traces_that_begin_here_a_part_is_taken_and_of_those_that_come_all() {
    let collector = Collector::start().await;
    let setup = Setup::local()
        .with("SIDEGATE_TRACES__ENDPOINT", collector.url.clone())
        .with("SIDEGATE_TRACES__RATIO", "0.0");
    let mut server = Server::start(setup).await;
    let issued = server.handler().issue(&ask()).await;
    let request = server.handler().request(Method::GET, &format!("v1/elicitations/{}", issued.id));
    Handler::send(request.header("traceparent", TRACEPARENT)).await.ok();
    server.stop().await;
    let names: Vec<_> = collector.spans().into_iter().map(|span| span.name).collect();
    assert!(names.contains(&"/v1/elicitations/{id}".to_owned()), "{names:?}");
    assert!(!names.contains(&"/v1/elicitations".to_owned()), "{names:?}");
}

#[tokio::test]
async fn without_its_collector_the_service_works_as_ever() {
    let setup = Setup::local().with("SIDEGATE_TRACES__ENDPOINT", "http://127.0.0.1:9/v1/traces");
    let mut server = Server::start(setup).await;
    let issued = server.handler().issue(&ask()).await;
    server.visitor().complete(&issued.url, "wk-1").await;
    assert_eq!(server.handler().claim(&issued, None).await.status, 200);
    assert!(tokio::time::timeout(Duration::from_secs(15), server.stop()).await.unwrap().success());
}
