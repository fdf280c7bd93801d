//! A tool handler, or an operator, that calls the API.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde_json::{Value, json};

/// A caller of the API with a key.
#[derive(Clone)]
pub(crate) struct Handler {
    http: reqwest::Client,
    base: Url,
    key: String,
}

/// What the API answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// The body, if it is JSON.
    pub(crate) body: Value,
}

impl Reply {
    /// A text member of the body.
    #[track_caller]
    pub(crate) fn text_at(&self, pointer: &str) -> &str {
        self.body
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("no {pointer} in {self:?}"))
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.body
    }

    /// Status and code, to compare with what is expected.
    pub(crate) fn problem(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }
}

impl Handler {
    /// A caller of the service at `base`.
    pub(crate) fn new(base: Url, key: &str) -> Self {
        Self { http: client(), base, key: key.to_owned() }
    }

    /// The same caller with another key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// A request with the key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.base.join(path).unwrap()).bearer_auth(&self.key)
    }

    /// Sends a request that was prepared.
    pub(crate) async fn send(request: RequestBuilder) -> Reply {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Reply { status, headers, text, body }
    }

    /// `POST` with a JSON body.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        Self::send(self.request(Method::POST, path).json(body)).await
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        Self::send(self.request(Method::GET, path)).await
    }

    /// Issues an elicitation: its id and link.
    pub(crate) async fn issue(&self, ask: &Value) -> Issued {
        let body = self.post("v1/elicitations", ask).await.ok();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Issued { id: text("id"), url: text("url"), ask: ask.clone() }
    }

    /// Takes part in a round.
    pub(crate) async fn round(&self, call: &Value) -> Reply {
        self.post("v1/rounds", call).await
    }

    /// Claims in the name of `attempt`, or of a fresh one.
    pub(crate) async fn claim(&self, issued: &Issued, attempt: Option<&str>) -> Reply {
        let mut body = json!({"operation": issued.ask["operation"]});
        for (name, value) in
            [("subject", issued.ask.get("subject").cloned()), ("attempt", attempt.map(Value::from))]
        {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        self.post(&format!("v1/elicitations/{}/claim", issued.id), &body).await
    }

    /// The state, at once.
    pub(crate) async fn state(&self, id: &str) -> String {
        let reply = self.get(&format!("v1/elicitations/{id}")).await;
        reply.text_at("/state").to_owned()
    }

    /// Calls it off.
    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        self.post(&format!("v1/elicitations/{id}/cancel"), &json!({})).await
    }

    /// Revokes, as an operator.
    pub(crate) async fn revoke(&self, id: &str) -> Reply {
        self.post(&format!("v1/admin/elicitations/{id}/revoke"), &json!({"reason": "lost laptop"})).await
    }
}

/// An elicitation that was issued.
#[derive(Debug, Clone)]
pub(crate) struct Issued {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) ask: Value,
}

/// A request for one API key, for an operation that is like no other of this test.
pub(crate) fn ask() -> Value {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    json!({
        "kind": "secret",
        "operation": {
            "name": "tools/call:forecast",
            "arguments": {"city": "Oslo", "number": number},
            "summary": "Look up the weather in Oslo",
        },
        "message": "Your WeatherCo API key is needed to look up the forecast.",
        "secret": {"fields": [{"name": "api_key", "label": "WeatherCo API key"}]},
    })
}

/// An HTTP client that follows no redirects and remembers nothing. It takes the tests' own certificates.
pub(crate) fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    builder.tls_danger_accept_invalid_certs(true).build().unwrap()
}
