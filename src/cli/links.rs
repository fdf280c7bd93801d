//! `sidegate links`: sees and revokes links through the admin API of a running service.
//!
//! Exit codes: 0 done; 1 it did not work, such as a service that does not answer; 2 what was asked for makes no sense; 3 there
//! is no such link; 4 the service refused.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use super::local::Local;
use super::{Done, Failure, block_on, say, text};
use crate::upstream;

/// See and revoke links.
#[derive(Subcommand)]
pub(super) enum Links {
    /// List links that have not ended
    List {
        #[command(flatten)]
        service: Service,
        #[command(flatten)]
        filter: Filter,
        /// Also those that have ended in one of these states
        #[arg(long, value_name = "STATE")]
        state: Vec<String>,
        /// Print JSON, one link a line
        #[arg(long)]
        json: bool,
    },
    /// Show one link, and what happened to it
    Show {
        #[command(flatten)]
        service: Service,
        /// The link's id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke one link, or all that match
    Revoke {
        #[command(flatten)]
        service: Service,
        /// The link's id; without it, all that match
        id: Option<String>,
        #[command(flatten)]
        filter: Filter,
        /// Why, for the audit trail
        #[arg(long)]
        reason: String,
        /// Pay back what is paid and nobody has claimed; without it those links are left
        #[arg(long)]
        refund: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(super) struct Service {
    /// The data folder of a local service, whose `dev.json` tells its URL and key
    #[arg(long, value_name = "DIR", default_value = "./sidegate-data")]
    data: PathBuf,
    /// The service's public URL
    #[arg(long, requires = "operator_key_file")]
    url: Option<String>,
    /// A file with the operator's key
    #[arg(long, value_name = "FILE", requires = "url")]
    operator_key_file: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct Filter {
    /// Issued by this client
    #[arg(long)]
    client: Option<String>,
    /// Made for the subject of this issuer
    #[arg(long, requires = "subject")]
    issuer: Option<String>,
    /// Made for this subject
    #[arg(long, requires = "issuer")]
    subject: Option<String>,
    /// Asks for this kind
    #[arg(long)]
    kind: Option<String>,
    /// For the operation of this name
    #[arg(long)]
    operation: Option<String>,
    /// At this provider or payment processor
    #[arg(long)]
    provider: Option<String>,
    /// Issued before this moment, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "MOMENT")]
    issued_before: Option<String>,
}

impl Filter {
    fn to_json(&self) -> Map<String, Value> {
        let mut filter = Map::new();
        for (name, value) in [
            ("client", &self.client),
            ("kind", &self.kind),
            ("operation", &self.operation),
            ("provider", &self.provider),
            ("issuedBefore", &self.issued_before),
        ] {
            if let Some(value) = value {
                filter.insert(name.to_owned(), json!(value));
            }
        }
        if let (Some(issuer), Some(id)) = (&self.issuer, &self.subject) {
            filter.insert("subject".to_owned(), json!({"issuer": issuer, "id": id}));
        }
        filter
    }
}

impl Links {
    pub(super) fn run(self) -> Done {
        block_on(async {
            match self {
                Self::List { service, filter, state, json } => list(&service, &filter, state, json).await,
                Self::Show { service, id, json } => show(&service, &id, json).await,
                Self::Revoke { service, id, filter, reason, refund, json } => {
                    let why = json!({"reason": reason, "refund": refund});
                    revoke(&service, id.as_deref(), &filter, why, json).await
                }
            }
        })
    }
}

async fn list(service: &Service, filter: &Filter, states: Vec<String>, as_json: bool) -> Done {
    let caller = service.caller()?;
    let mut body = filter.to_json();
    body.insert("states".to_owned(), json!(states));
    let mut count = 0;
    loop {
        let page = caller.post("/v1/admin/elicitations/search", &Value::Object(body.clone())).await?;
        for link in page.get("elicitations").and_then(Value::as_array).into_iter().flatten() {
            if count == 0 && !as_json {
                say(row("ID", "STATE", "KIND", "CLIENT", "EXPIRES", "OPERATION"))?;
            }
            count += 1;
            let at = |place: &str| text(link, place).unwrap_or_default();
            let [id, state, kind] = [at("/id"), at("/state"), at("/kind")];
            say(if as_json {
                link.to_string()
            } else {
                row(id, state, kind, at("/client"), at("/expiresAt"), at("/operation/name"))
            })?;
        }
        match page.get("next") {
            Some(next) => body.insert("after".to_owned(), next.clone()),
            None => break,
        };
    }
    if count == 0 && !as_json {
        say("no links")?;
    }
    Ok(())
}

fn row(id: &str, state: &str, kind: &str, client: &str, expires: &str, operation: &str) -> String {
    let expires = expires.split('.').next().unwrap_or_default().trim_end_matches('Z');
    let row = format!("{id:32}  {state:11}  {kind:7}  {client:12}  {expires:19}  {operation}");
    // A terminal would break what is longer; a file takes all of it.
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    match size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0) {
        Some(columns) => row.chars().take(columns).collect(),
        None => row,
    }
}

async fn show(service: &Service, id: &str, as_json: bool) -> Done {
    let link = service.caller()?.get(&format!("/v1/admin/elicitations/{id}")).await?;
    if as_json {
        return Ok(say(link.to_string())?);
    }
    let at = |place: &str| text(&link, place).unwrap_or_default();
    for (name, value) in [
        ("id", at("/id")),
        ("state", at("/state")),
        ("kind", at("/kind")),
        ("client", at("/client")),
        ("operation", at("/operation/name")),
        ("summary", at("/operation/summary")),
        ("issued", at("/createdAt")),
        ("expires", at("/expiresAt")),
    ] {
        say(format!("{name:10}  {value}"))?;
    }
    say("")?;
    for step in link.get("history").and_then(Value::as_array).into_iter().flatten() {
        let at = |place: &str| text(step, place).unwrap_or_default();
        let actor = match (at("/actor/type"), at("/actor/id")) {
            (actor, "") => actor.to_owned(),
            (actor, id) => format!("{actor} {id}"),
        };
        let shown = format!("{}  {:12}  {actor:20}  {}", at("/at"), at("/what"), at("/reason"));
        say(shown.trim_end())?;
    }
    if link.get("historyIsWhole") == Some(&json!(false)) {
        say("The trail is too long to be looked through here; `sidegate audit export` has all of it.")?;
    }
    Ok(())
}

async fn revoke(service: &Service, id: Option<&str>, filter: &Filter, why: Value, as_json: bool) -> Done {
    let caller = service.caller()?;
    let mut body = filter.to_json();
    let (answer, words) = if let Some(id) = id {
        if !body.is_empty() {
            return Err(Failure::with_code(
                USAGE,
                "name either one link by its id, or what to match, not both",
            ));
        }
        let answer = caller.post(&format!("/v1/admin/elicitations/{id}/revoke"), &why).await?;
        (answer, format!("revoked {id}"))
    } else {
        body.extend(why.as_object().cloned().unwrap_or_default());
        let answer = caller.post("/v1/admin/elicitations/revoke", &Value::Object(body)).await?;
        let count = |name| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
        let mut words = format!("revoked {}", count("revoked"));
        if count("paid") > 0 {
            words = format!("{words}, left {} that are paid; --refund pays them back", count("paid"));
        }
        (answer, words)
    };
    Ok(say(if as_json { answer.to_string() } else { words })?)
}

/// Exit codes beside 0 and 1, which is for what did not work.
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const REFUSED: u8 = 4;

struct Caller {
    http: reqwest::Client,
    url: String,
    key: SecretString,
}

impl Service {
    fn caller(&self) -> Result<Caller, Failure> {
        let (url, key) = if let (Some(url), Some(file)) = (&self.url, &self.operator_key_file) {
            let key = std::fs::read_to_string(file)
                .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
            (url.clone(), SecretString::from(key.trim()))
        } else {
            let local = Local::load(&self.data)?;
            (local.url().to_owned(), local.operator_key().clone())
        };
        let url = url.trim_end_matches('/').to_owned();
        Ok(Caller { http: upstream::http::plain()?, url, key })
    }
}

impl Caller {
    async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.ask(self.http.post(format!("{}{path}", self.url)).json(body)).await
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(self.http.get(format!("{}{path}", self.url))).await
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Value, Failure> {
        let answer = request
            .bearer_auth(self.key.expose_secret())
            .send()
            .await
            .map_err(|_| Failure::new(format!("the service at {} does not answer", self.url)))?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let detail = text(&body, "/detail").unwrap_or("the service refused").trim_end_matches('.');
        Err(match status.as_u16() {
            404 => Failure::with_code(NOT_FOUND, "there is no such link"),
            422 => Failure::with_code(USAGE, detail),
            401 | 403 | 409 => Failure::with_code(REFUSED, detail),
            _ => Failure::new(detail),
        })
    }
}
