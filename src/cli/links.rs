//! `sidegate links`: sees and revokes links through the admin API of a running service.

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
}

impl Filter {
    fn to_json(&self) -> Map<String, Value> {
        let mut filter = Map::new();
        for (name, value) in [("client", &self.client), ("kind", &self.kind), ("operation", &self.operation)]
        {
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
                Self::Revoke { service, id, filter, reason } => {
                    revoke(&service, id.as_deref(), &filter, &reason).await
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
    format!("{id:32}  {state:11}  {kind:7}  {client:12}  {expires:19}  {operation}")
}

async fn revoke(service: &Service, id: Option<&str>, filter: &Filter, reason: &str) -> Done {
    let caller = service.caller()?;
    let mut body = filter.to_json();
    match id {
        Some(_) if !body.is_empty() => {
            return Err(Failure::new("name either one link by its id, or what to match, not both"));
        }
        Some(id) => {
            let path = format!("/v1/admin/elicitations/{id}/revoke");
            caller.post(&path, &json!({"reason": reason})).await?;
            say(format!("revoked {id}"))?;
        }
        None => {
            body.insert("reason".to_owned(), json!(reason));
            let answer = caller.post("/v1/admin/elicitations/revoke", &Value::Object(body)).await?;
            let count = answer.get("revoked").and_then(Value::as_u64).unwrap_or_default();
            say(format!("revoked {count}"))?;
        }
    }
    Ok(())
}

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
        let request = self.http.post(format!("{}{path}", self.url)).bearer_auth(self.key.expose_secret());
        let answer = request
            .json(body)
            .send()
            .await
            .map_err(|_| Failure::new(format!("the service at {} does not answer", self.url)))?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let detail = text(&body, "/detail").unwrap_or("the service refused");
        Err(Failure::new(detail.trim_end_matches('.')))
    }
}
