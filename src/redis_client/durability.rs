//! What a server does with what it is given: whether it writes it to disk, when, and whether it throws it away. Read
//! from the server itself, said in sentences, and refused where it would lose what was promised.

use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{Cmd, RedisError, Value, cmd};

use super::{Connection, Error, told};

/// What the server must do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demands {
    /// When a step counts as kept.
    pub durability: Durability,
    /// Whether a server may throw keys away when its memory is full.
    pub allow_eviction: bool,
}

/// When a step counts as kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// When the server says so, whatever its own settings make of that.
    #[default]
    Server,
    /// When it is on the server's disk.
    Fsync,
}

/// What was found, for each server that takes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    nodes: Vec<Facts>,
    cluster: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    name: String,
    version: (u32, u32),
    version_text: String,
    policy: String,
    append_only: bool,
    /// Absent where the server does not tell, as managed ones often do not.
    append_fsync: Option<String>,
    min_replicas: Option<u32>,
    replicas: u32,
}

const OLDEST: (u32, u32) = (7, 0);
/// The first version with `WAITAOF`.
const WAITS: (u32, u32) = (7, 2);

/// Asks every server that takes writes.
pub(super) async fn inspect(connection: &mut Connection) -> Result<Report, Error> {
    let infos = everywhere(connection, &cmd("INFO")).await.map_err(|error| told(&error))?;
    let cluster = matches!(connection, Connection::Cluster(_));
    for info in &infos {
        fits_mode(&text(info), cluster)?;
    }
    let wanted = ["appendfsync", "min-replicas-to-write"];
    let configs = everywhere(connection, cmd("CONFIG").arg("GET").arg(&wanted)).await;
    let configs = configs.unwrap_or_default();
    let facts = |(index, info): (usize, &Value)| facts(&text(info), configs.get(index));
    Ok(Report { nodes: infos.iter().enumerate().map(facts).collect(), cluster })
}

/// Whether the server is what the URL says that it is.
fn fits_mode(info: &str, cluster: bool) -> Result<(), Error> {
    match (line(info, "redis_mode"), cluster) {
        ("sentinel", _) => Err(Error::Unfit(
            "this is a Sentinel; name the server that it watches: redis+sentinel://HOST:PORT/NAME".to_owned(),
        )),
        ("cluster", false) => Err(Error::Unfit(
            "this is a node of a Cluster; write redis+cluster://HOST:PORT and name a few of its nodes"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

fn line<'a>(info: &'a str, key: &str) -> &'a str {
    info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default().trim()
}

/// The answers of all servers that take writes, always in the same order.
async fn everywhere(connection: &mut Connection, command: &Cmd) -> Result<Vec<Value>, RedisError> {
    match connection {
        Connection::Node(node) => Ok(vec![command.query_async(node).await?]),
        Connection::Cluster(cluster) => {
            let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
            let Value::Map(mut answers) = cluster.route_command(command.clone(), all).await? else {
                return Ok(Vec::new());
            };
            answers.sort_by_key(|(node, _)| text(node));
            Ok(answers.into_iter().map(|(_, answer)| answer).collect())
        }
    }
}

fn text(value: &Value) -> String {
    redis::from_redis_value_ref(value).unwrap_or_default()
}

fn facts(info: &str, config: Option<&Value>) -> Facts {
    let line = |key: &str| line(info, key);
    let number = |key: &str| line(key).parse::<u32>().unwrap_or(0);
    let settings: Vec<(String, String)> = config
        .and_then(|config| redis::from_redis_value_ref::<Vec<(String, String)>>(config).ok())
        .unwrap_or_default();
    let setting = |key: &str| settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let mut parts = line("redis_version").split('.').map(|part| part.parse().unwrap_or(0));
    let valkey = line("valkey_version");
    let (name, version_text) =
        if valkey.is_empty() { ("Redis", line("redis_version")) } else { ("Valkey", valkey) };
    Facts {
        name: name.to_owned(),
        // Valkey tells there the version of Redis that it is compatible with.
        version: (parts.next().unwrap_or(0), parts.next().unwrap_or(0)),
        version_text: version_text.to_owned(),
        policy: line("maxmemory_policy").to_owned(),
        append_only: number("aof_enabled") == 1,
        append_fsync: setting("appendfsync").map(str::to_owned),
        min_replicas: setting("min-replicas-to-write").and_then(|number| number.parse().ok()),
        replicas: number("connected_slaves"),
    }
}

impl Report {
    /// Whether the servers do what is demanded.
    ///
    /// # Errors
    /// One sentence that says what to change.
    pub fn fits(&self, demands: &Demands) -> Result<(), String> {
        if self.nodes.is_empty() {
            return Err("the Cluster names no server that takes writes".to_owned());
        }
        for facts in &self.nodes {
            if facts.version < OLDEST {
                return Err(format!(
                    "the server is {}; Redis 7.0 or newer, or Valkey, is needed",
                    facts.server()
                ));
            }
            if facts.evicts() && !demands.allow_eviction {
                return Err(format!(
                    "the server may throw pending links and claimed outcomes away when its memory is full (maxmemory-policy {}); set it to noeviction, or `store.allow_eviction = true` to take that risk",
                    facts.policy
                ));
            }
            if demands.durability == Durability::Fsync {
                self.keeps(facts)?;
            }
        }
        Ok(())
    }

    fn keeps(&self, facts: &Facts) -> Result<(), String> {
        let demanded = "`store.durability` is `fsync`";
        if !facts.append_only {
            return Err(format!(
                "{demanded}, but the server keeps no append-only file; set `appendonly yes` there"
            ));
        }
        if facts.append_fsync.as_deref() == Some("always") || self.waits() {
            return Ok(());
        }
        let why = if self.cluster { "on a Cluster" } else { "before version 7.2" };
        Err(format!("{demanded}, which {why} needs `appendfsync always` on the server; set it there"))
    }

    /// Whether a writer has to wait, and can, until the server has written to its disk.
    #[must_use]
    pub fn waits(&self) -> bool {
        let unhurried = |facts: &Facts| facts.append_fsync.as_deref() != Some("always");
        !self.cluster
            && self.nodes.iter().all(|facts| facts.version >= WAITS)
            && self.nodes.iter().any(unhurried)
    }

    /// One sentence for each thing that an operator should know, the same ones of several servers once.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = Vec::new();
        for sentence in self.nodes.iter().flat_map(Facts::sentences) {
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        sentences
    }
}

impl Facts {
    fn server(&self) -> String {
        format!("{} {}", self.name, self.version_text)
    }

    fn evicts(&self) -> bool {
        !matches!(self.policy.as_str(), "noeviction" | "")
    }

    fn sentences(&self) -> [String; 4] {
        let disk = match (self.append_only, self.append_fsync.as_deref()) {
            (false, _) => {
                "it keeps no append-only file: if it stops, everything since its last snapshot is lost"
            }
            (true, Some("always")) => {
                "appendfsync is always: what was acknowledged survives a crash of the server"
            }
            (true, Some("everysec")) => {
                "appendfsync is everysec: if its machine crashes, up to two seconds of acknowledged steps are lost"
            }
            (true, Some(_)) => {
                "appendfsync is no: if its machine crashes, what the operating system had not yet written is lost"
            }
            (true, None) => {
                "it does not tell its appendfsync: take it that a crash can lose acknowledged steps"
            }
        };
        let memory = match self.policy.as_str() {
            "noeviction" => "maxmemory-policy is noeviction: when its memory is full, new links are refused and nothing is thrown away".to_owned(),
            "" => "it does not tell its maxmemory-policy: make sure that it is noeviction".to_owned(),
            policy => format!("maxmemory-policy is {policy}: when its memory is full, pending links and claimed outcomes are thrown away"),
        };
        let replicas = match (self.replicas, self.min_replicas) {
            (0, _) => "it has no replica: while it is down nothing works, and if it is lost, so is all that it holds".to_owned(),
            (count, Some(0) | None) => format!("it has {count} replica(s) and does not wait for them (min-replicas-to-write 0): a failover can lose acknowledged steps"),
            (count, Some(least)) => format!("it has {count} replica(s) and refuses writes with fewer than {least} in touch: a failover can lose the steps of its last moments"),
        };
        [self.server(), disk.to_owned(), memory, replicas]
    }
}
