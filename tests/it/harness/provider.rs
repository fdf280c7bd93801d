//! An OpenID Connect issuer that does what the test tells it, right or wrong, over HTTP on loopback.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::issuer::{Issuer, now};

/// The issuer. Ends when dropped.
pub(crate) struct Provider {
    url: String,
    pub(crate) signer: Issuer,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    requests: Arc<Mutex<Vec<Sent>>>,
    _serving: JoinSet<()>,
}

/// What a path is answered with.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Status and body.
    With(u16, String),
    /// The same with a content type that is not JSON's.
    Typed(u16, &'static str, String),
    /// Status and body, after a while.
    Late(Duration, u16, String),
    /// Nothing, for a long time.
    Nothing,
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) method: String,
    path: String,
    head: String,
    pub(crate) body: String,
}

impl Sent {
    /// A header's value; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(':'));
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value.trim())
    }
}

pub(crate) const METADATA: &str = "/.well-known/openid-configuration";
pub(crate) const KEYS: &str = "/keys";
pub(crate) const TOKEN: &str = "/token";

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answers, requests) = (Arc::<Mutex<HashMap<_, _>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let mut serving = JoinSet::new();
        let (table, noted) = (Arc::clone(&answers), Arc::clone(&requests));
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, Arc::clone(&table), Arc::clone(&noted)));
            }
        });
        let provider = Self { url, signer: Issuer::in_file(), answers, requests, _serving: serving };
        provider.answer(METADATA, Answer::With(200, provider.metadata().to_string()));
        provider.answer(KEYS, Answer::With(200, provider.signer.key_set()));
        provider
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn metadata(&self) -> Value {
        let url = &self.url;
        json!({
            "issuer": url, "authorization_endpoint": format!("{url}/authorize?fixed=1"),
            "token_endpoint": format!("{url}{TOKEN}"), "jwks_uri": format!("{url}{KEYS}"),
        })
    }

    /// From now on this path is answered so.
    pub(crate) fn answer(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// The bodies of the requests for this path, after who asked.
    pub(crate) fn asked(&self, path: &str) -> Vec<String> {
        let text = |sent: Sent| match sent.header("authorization") {
            "" => format!("\n{}", sent.body),
            who => format!("authorization: {who}\n{}", sent.body),
        };
        self.sent(path).into_iter().map(text).collect()
    }

    /// The requests for this path.
    pub(crate) fn sent(&self, path: &str) -> Vec<Sent> {
        self.requests.lock().unwrap().iter().filter(|sent| sent.path == path).cloned().collect()
    }

    /// The claims of an ID token for this person and sign-in.
    pub(crate) fn claims(&self, person: &str, nonce: &str) -> Value {
        json!({
            "iss": self.url, "aud": "sidegate", "sub": person, "email": format!("{person}@example.com"),
            "iat": now(), "exp": now() + 600, "nonce": nonce,
        })
    }

    /// From now on the token endpoint gives this ID token.
    pub(crate) fn give(&self, id_token: &str) {
        let body = json!({"access_token": "at", "token_type": "Bearer", "id_token": id_token});
        self.answer(TOKEN, Answer::With(200, body.to_string()));
    }

    /// From now on the token endpoint gives an ID token with these claims.
    pub(crate) fn give_claims(&self, claims: &Value) {
        self.give(&self.signer.sign(&json!({}), claims));
    }
}

async fn serve(
    mut stream: TcpStream,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    requests: Arc<Mutex<Vec<Sent>>>,
) {
    let mut request = Vec::new();
    let mut buffer = [0; 8192];
    let (head, body) = loop {
        let Ok(length @ 1..) = stream.read(&mut buffer).await else { return };
        request.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let announced = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        if body.len() >= announced.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let mut line = head.split(' ').map(str::to_owned);
    let (method, target) = (line.next().unwrap_or_default(), line.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default().to_owned();
    requests.lock().unwrap().push(Sent { method, path: path.clone(), head: head.clone(), body });
    let answer = answers.lock().unwrap().get(&path).cloned();
    let json = "application/json";
    let (status, media_type, body) = match answer {
        Some(Answer::With(status, body)) => (status, json, body),
        Some(Answer::Typed(status, media_type, body)) => (status, media_type, body),
        Some(Answer::Late(after, status, body)) => {
            tokio::time::sleep(after).await;
            (status, json, body)
        }
        Some(Answer::Nothing) => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            return;
        }
        None => (404, json, String::new()),
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}
