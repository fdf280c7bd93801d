//! An identity-aware proxy's side: signed tokens for people, and the keys that verify them, in a file or served
//! over HTTP on loopback.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Signs people's tokens.
pub(crate) struct Issuer {
    keys: Mutex<Vec<(String, EcdsaKeyPair)>>,
    place: Place,
}

enum Place {
    File { path: PathBuf, _folder: tempfile::TempDir },
    Served { url: String, set: Arc<Mutex<Option<String>>>, fetches: Arc<AtomicUsize> },
}

impl Issuer {
    pub(crate) const HEADER: &'static str = "X-Identity-Token";
    pub(crate) const AUDIENCE: &'static str = "sidegate-tests";

    /// An issuer whose keys are in a file.
    pub(crate) fn in_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File { path: folder.path().join("keys.json"), _folder: folder };
        let issuer = Self { keys: Mutex::default(), place };
        issuer.rotate("first");
        issuer
    }

    /// An issuer that serves its keys over HTTP, until the test ends.
    pub(crate) async fn served() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let set = Arc::new(Mutex::new(None));
        let fetches = Arc::new(AtomicUsize::new(0));
        tokio::spawn(serve(listener, Arc::clone(&set), Arc::clone(&fetches)));
        let issuer = Self { keys: Mutex::default(), place: Place::Served { url, set, fetches } };
        issuer.rotate("first");
        issuer
    }

    #[expect(clippy::unused_self, reason = "the name belongs to the issuer")]
    pub(crate) const fn name(&self) -> &'static str {
        "https://idp.example"
    }

    pub(crate) fn keys_setting(&self) -> String {
        match &self.place {
            Place::File { path, .. } => format!("jwks_file = \"{}\"", path.display()),
            Place::Served { url, .. } => format!("jwks_url = \"{url}\""),
        }
    }

    pub(crate) const fn is_served(&self) -> bool {
        matches!(self.place, Place::Served { .. })
    }

    /// The published keys, of an issuer that has them in a file.
    pub(crate) fn key_set(&self) -> String {
        match &self.place {
            Place::File { path, .. } => std::fs::read_to_string(path).unwrap(),
            Place::Served { .. } => unreachable!("they are served"),
        }
    }

    /// How often the keys were fetched.
    pub(crate) fn fetches(&self) -> usize {
        match &self.place {
            Place::File { .. } => 0,
            Place::Served { fetches, .. } => fetches.load(Ordering::SeqCst),
        }
    }

    /// From now on signs with a new key, and publishes that one alone.
    pub(crate) fn rotate(&self, id: &str) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let point = pair.public_key().as_ref();
        let coordinate = |range| URL_SAFE_NO_PAD.encode(&point[range]);
        let set = json!({"keys": [{
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id,
            "x": coordinate(1..33), "y": coordinate(33..65),
        }]});
        self.keys.lock().unwrap().push((id.to_owned(), pair));
        match &self.place {
            Place::File { path, .. } => std::fs::write(path, set.to_string()).unwrap(),
            Place::Served { set: served, .. } => *served.lock().unwrap() = Some(set.to_string()),
        }
    }

    /// Serves errors from now on.
    pub(crate) fn go_down(&self) {
        if let Place::Served { set, .. } = &self.place {
            *set.lock().unwrap() = None;
        }
    }

    /// A token for a person, as the proxy would send it.
    pub(crate) fn token(&self, person: &str) -> String {
        self.sign(&json!({}), &self.claims(person))
    }

    /// The claims of such a token.
    pub(crate) fn claims(&self, person: &str) -> Value {
        json!({
            "iss": self.name(), "aud": Self::AUDIENCE, "sub": person, "email": format!("{person}@example.com"),
            "iat": now(), "exp": now() + 600,
        })
    }

    /// A token with these claims; `header` is laid over the usual one.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let keys = self.keys.lock().unwrap();
        let (id, pair) = keys.last().unwrap();
        let mut full = json!({"alg": "ES256", "typ": "JWT", "kid": id});
        for (name, value) in header.as_object().unwrap() {
            full[name] = value.clone();
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&full), part(claims));
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// The time in seconds.
#[expect(clippy::disallowed_methods, reason = "tokens are made for the real time")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

async fn serve(listener: TcpListener, set: Arc<Mutex<Option<String>>>, fetches: Arc<AtomicUsize>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        fetches.fetch_add(1, Ordering::SeqCst);
        let set = set.lock().unwrap().clone();
        let (status, body) = set.map_or(("503 Service Unavailable", String::new()), |set| ("200 OK", set));
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}
