//! A real OAuth authorization server, in a process of its own: `oidc-provider`, with whatever of it a test wants. It also
//! plays the person at its own pages.

use serde_json::{Value, json};

use super::node::Node;

/// The server. Ends when dropped.
pub(crate) struct Authority(Node);

pub(crate) const SECRET: &str = "a client's secret of the tests alone, long enough";

impl Authority {
    /// Takes a port; serves once it is [set up](Self::serve).
    pub(crate) async fn start() -> Self {
        Self(Node::start("issuer", "authority.mjs").await)
    }

    pub(crate) fn url(&self) -> &str {
        self.0.url()
    }

    /// Serves the client `sidegate`, which may be returned to here, with these settings more.
    pub(crate) async fn serve(&mut self, redirect_uris: &[String], more: &Value) {
        let mut settings = json!({
            "clients": [{
                "client_id": "sidegate", "client_secret": SECRET, "redirect_uris": redirect_uris,
                "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            }],
            "scopes": ["read", "write", "admin"], "alwaysRefresh": true, "rotation": true, "revocation": true,
        });
        for (name, value) in more.as_object().unwrap() {
            settings[name] = value.clone();
        }
        assert_eq!(self.ask(&settings).await, json!({"ready": true}));
    }

    async fn ask(&mut self, command: &Value) -> Value {
        serde_json::from_str(&self.0.ask(command).await).unwrap()
    }

    /// A person goes there, signs in under this name and allows all: where the browser is sent, or what form it posts.
    pub(crate) async fn approve(&mut self, url: &str, person: &str) -> Value {
        self.ask(&json!({"approve": url, "as": person, "jar": person})).await
    }

    /// The same person says no.
    pub(crate) async fn deny(&mut self, url: &str, person: &str) -> Value {
        self.ask(&json!({"approve": url, "as": person, "jar": person, "deny": true})).await
    }

    /// What has happened at one of its endpoints.
    pub(crate) async fn log(&mut self, at: &str) -> Vec<Value> {
        let log = self.ask(&json!({"log": true})).await;
        log["log"].as_array().unwrap().iter().filter(|entry| entry["at"] == at).cloned().collect()
    }

    /// Whether a token counts, and for what.
    pub(crate) async fn introspect(&mut self, token: &str) -> Value {
        self.ask(&json!({"introspect": token})).await
    }
}
