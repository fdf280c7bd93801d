//! `openapi.json`: what is served, what is in the repository and what is answered are the same.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;

use super::harness::{Handler, Server};

#[tokio::test]
async fn the_description_is_the_one_in_the_repository() {
    let server = Server::local().await;
    let served: Value =
        serde_json::from_str(&server.visitor().get(&server.url("openapi.json")).await.html).unwrap();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, format!("{served:#}\n")).unwrap();
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(
        served == kept,
        "openapi.json is out of date: run this test with UPDATE_OPENAPI=1 and look at the difference"
    );
}

#[tokio::test]
async fn every_path_that_is_described_is_answered_and_every_reference_leads_somewhere() {
    let server = Server::local().await;
    let described: Value =
        serde_json::from_str(&server.visitor().get(&server.url("openapi.json")).await.html).unwrap();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let concrete = path.trim_start_matches('/').replace("{id}", &"0".repeat(32));
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let reply = Handler::send(server.handler().request(method.clone(), &concrete)).await;
            let code = reply.body["code"].as_str().unwrap_or_default();
            let is_there = reply.status != 405 && (reply.status != 404 || path.contains("{id}"));
            assert!(is_there, "{method} {path}: {} {code}", reply.status);
        }
    }
    let text = described.to_string();
    let references: BTreeSet<&str> =
        text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(references.len() > 5);
    for reference in references {
        assert!(described.pointer(reference).is_some(), "{reference}");
    }
}
