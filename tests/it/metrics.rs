//! What is counted, as Prometheus reads it.

use std::time::Duration;

use serde_json::json;

use super::harness::server::free_port;
use super::harness::{Server, Setup, ask, eventually};

/// The value of one series.
fn value(text: &str, series: &str) -> Option<f64> {
    let line =
        text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn r34_r36_metrics_tell_counts_to_operators_and_nothing_else() {
    let server = Server::local().await;
    let handler = server.handler();
    let issued = handler.issue(&ask()).await;
    server.visitor().complete(&issued.url, "canary-secret").await;
    assert_eq!(handler.claim(&issued, Some("canary-attempt")).await.status, 200);
    assert_eq!(handler.claim(&issued, Some("other-attempt")).await.problem(), (409, "already_claimed"));
    let waiting = handler.issue(&ask()).await;
    let poll = {
        let (handler, path) = (handler.clone(), format!("v1/elicitations/{}?wait=20", waiting.id));
        tokio::spawn(async move { handler.get(&path).await })
    };
    let operator = server.operator();
    eventually("a poll waits", async || {
        (value(&operator.get("metrics").await.text, "sidegate_polls_waiting") == Some(1.0)).then_some(())
    })
    .await;
    let text = operator.get("metrics").await.text;
    let event = |what: &str| {
        value(&text, &format!("sidegate_elicitation_events_total{{kind=\"secret\",event=\"{what}\"}}"))
    };
    assert_eq!((event("issued"), event("completed"), event("claimed")), (Some(2.0), Some(1.0), Some(1.0)));
    assert_eq!(value(&text, "sidegate_refusals_total{reason=\"already_claimed\"}"), Some(1.0));
    let claims =
        "sidegate_http_requests_total{method=\"POST\",route=\"/v1/elicitations/{id}/claim\",status=\"200\"}";
    assert_eq!(value(&text, claims), Some(1.0));
    assert!(value(&text, "sidegate_store_seconds_count{operation=\"commit\"}").unwrap() >= 5.0, "{text}");
    for canary in ["canary", issued.id.as_str(), "Oslo", "forecast", server.api_key().as_str()] {
        assert!(!text.contains(canary), "{canary}");
    }
    // To nobody else.
    assert_eq!(handler.get("metrics").await.status, 401);
    assert_eq!(server.visitor().get(&server.url("metrics")).await.status, 401);
    handler.cancel(&waiting.id).await;
    poll.await.unwrap().ok();
    eventually("none waits", async || {
        (value(&operator.get("metrics").await.text, "sidegate_polls_waiting") == Some(0.0)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_listener_of_its_own_has_metrics_and_nothing_else() {
    let listen = format!("127.0.0.1:{}", free_port());
    let mut server = Server::start(Setup::local().with("SIDEGATE_METRICS__LISTEN", &listen)).await;
    server.handler().issue(&ask()).await;
    let visitor = server.visitor();
    let text = visitor.get(&format!("http://{listen}/metrics")).await;
    assert_eq!(text.status, 200);
    assert!(text.html.contains("sidegate_elicitation_events_total"), "{}", text.html);
    assert_eq!(text.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let answer =
        reqwest::Client::new().post(format!("http://{listen}/v1/rounds")).json(&json!({})).send().await;
    assert_eq!(answer.unwrap().status(), 404);
    // It ends with the service.
    tokio::time::timeout(Duration::from_secs(20), server.stop()).await.unwrap();
}
