//! The tool handler of the demo: the same HTTP call for every round, as a tool author would write it.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use url::Url;

use crate::cli::{Failure, text};
use crate::upstream;

/// A tool handler and the MCP client before it.
pub(super) struct Handler {
    http: reqwest::Client,
    rounds: String,
    key: SecretString,
    expires_in: u64,
    request_state: Option<String>,
}

/// How it ended.
pub(super) enum Ended {
    /// Names and lengths of the values that arrived.
    Received(Vec<(String, usize)>),
    /// What the tool would answer instead.
    Otherwise { outcome: String, sentence: String },
}

impl Handler {
    pub(super) fn new(url: &Url, key: SecretString, expires_in: u64) -> Result<Self, Failure> {
        let rounds = format!("{}/v1/rounds", url.as_str().trim_end_matches('/'));
        Ok(Self { http: upstream::http::plain()?, rounds, key, expires_in, request_state: None })
    }

    /// The first round: returns the link to show.
    pub(super) async fn first_round(&mut self) -> Result<String, Failure> {
        let answer = self.round().await?;
        text(&answer, "/result/inputRequests/sidegate/params/url")
            .map(str::to_owned)
            .ok_or_else(|| Failure::new("the first round gave no link"))
    }

    /// Retries, as an MCP client does, until the person is done.
    pub(super) async fn wait(&mut self) -> Result<Ended, Failure> {
        loop {
            let answer = self.round().await?;
            let outcome = text(&answer, "/outcome").unwrap_or_default();
            match outcome {
                "completed" => {
                    let values = answer.pointer("/credential/values").and_then(Value::as_object);
                    let measured = |(name, value): (&String, &Value)| {
                        (name.clone(), value.as_str().unwrap_or_default().chars().count())
                    };
                    return Ok(Ended::Received(values.into_iter().flatten().map(measured).collect()));
                }
                "input_required" => {}
                // The client's retries are used up: the person asks again.
                "unfinished" => self.request_state = None,
                _ => {
                    let sentence = text(&answer, "/toolResult/content/0/text").unwrap_or_default();
                    let sentence = sentence.trim_end_matches('.').to_owned();
                    return Ok(Ended::Otherwise { outcome: outcome.to_owned(), sentence });
                }
            }
        }
    }

    async fn round(&mut self) -> Result<Value, Failure> {
        let mut body = json!({
            "kind": "secret",
            "protocolVersion": "2026-07-28",
            "operation": {
                "name": "tools/call:forecast",
                "arguments": {"city": "Oslo"},
                "summary": "Look up the weather in Oslo",
            },
            "message": "Your WeatherCo API key is needed to look up the forecast.",
            "expiresIn": self.expires_in,
            "secret": {"fields": [{
                "name": "api_key",
                "label": "WeatherCo API key",
                "help": "This is a demo: enter anything, but no real key.",
            }]},
        });
        if let (Some(state), Some(body)) = (&self.request_state, body.as_object_mut()) {
            body.insert("requestState".to_owned(), json!(state));
            body.insert("inputResponses".to_owned(), json!({"sidegate": {"action": "accept"}}));
        }
        let request = self.http.post(&self.rounds).bearer_auth(self.key.expose_secret()).json(&body);
        let answer =
            request.send().await.map_err(|_| Failure::new("the server of the demo does not answer"))?;
        let status = answer.status();
        let answer: Value =
            answer.json().await.map_err(|_| Failure::new("the server of the demo gave no JSON"))?;
        if !status.is_success() {
            return Err(Failure::new(text(&answer, "/detail").unwrap_or("the round was refused")));
        }
        if let Some(state) = text(&answer, "/result/requestState") {
            self.request_state = Some(state.to_owned());
        }
        Ok(answer)
    }
}
