//! A process of its own that writes to an embedded store: this very program, started again for one test that is
//! otherwise ignored. On its standard error it says what it was told.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sidegate::domain::ElicitationId;
use sidegate::store::sqlite::Sqlite;
use sidegate::store::{Committed, Outcome, Store, Tag};
use sidegate::system::SystemRandom;
use tokio::task::JoinSet;

use super::commits::{Change, create, replace, tag};

const STORE: &str = "SIDEGATE_TEST_STORE";
const NAME: &str = "store::child::writes_until_it_is_stopped";
const WRITERS: usize = 8;
/// After so many refusals the child takes its file size limit back.
const REFUSALS: u32 = 40;
/// How much it then writes before it ends.
const RECOVERIES: u32 = 40;

/// What the child was told, line by line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The record is there at this version.
    Done(ElicitationId, u64),
    /// The store was unavailable.
    Refused,
    /// The store works again.
    Recovered,
}

/// The record that the child writes, at each of its two versions: 700 bytes that belong to no other.
pub(super) fn record(id: ElicitationId, version: u64) -> Vec<u8> {
    let mark = [&id.as_bytes()[..], &version.to_be_bytes()].concat();
    mark.into_iter().cycle().take(700).collect()
}

pub(super) fn slot(id: ElicitationId) -> Tag {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(id.as_bytes());
    Tag(bytes)
}

/// The events of a record that has reached `version`.
pub(super) fn events(id: ElicitationId, version: u64) -> impl Iterator<Item = Vec<u8>> {
    (1..=version + 1).map(move |number| record(id, number)[..24].to_vec())
}

fn first(id: ElicitationId) -> Change {
    let mut events = events(id, 1);
    let change =
        create(id).record(&record(id, 1)).put(&record(id, 1)).wants(slot(id)).joins(tag(9), u64::MAX);
    change.event(&events.next().unwrap()).event(&events.next().unwrap())
}

fn second(id: ElicitationId) -> Change {
    let change = replace(id, 1).record(&record(id, 2)).outcome(Outcome::Erase).leaves(tag(9));
    change.event(&events(id, 2).last().unwrap())
}

#[derive(Default)]
struct Tally {
    refused: AtomicU32,
    recovered: AtomicU32,
}

impl Tally {
    /// One commit, and what it came to said in one line. `false` when it is time to end.
    async fn commit(&self, store: &dyn Store, change: Change, id: ElicitationId, version: u64) -> bool {
        let line = match store.commit(change.commit()).await {
            Ok(Committed::Done) => format!("done {id} {version}\n"),
            Ok(other) => panic!("{other:?}"),
            Err(_) => "refused\n".to_owned(),
        };
        let done = line.starts_with("done");
        // One write for one line, past everything that buffers or captures.
        let heard = std::io::stderr().write_all(line.as_bytes()).is_ok();
        if !done && self.refused.fetch_add(1, Ordering::SeqCst) == REFUSALS {
            let limit = getrlimit(Resource::Fsize);
            setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit }).unwrap();
        }
        if done && self.refused.load(Ordering::SeqCst) > REFUSALS {
            self.recovered.fetch_add(1, Ordering::SeqCst);
        }
        heard && self.recovered.load(Ordering::SeqCst) < RECOVERIES
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "runs only as a child of the tests in `crash` and `disk`"]
async fn writes_until_it_is_stopped() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let store = Arc::new(Sqlite::open(Path::new(&path)).unwrap());
    let tally = Arc::new(Tally::default());
    // One alone, before many share a transaction that may be too large from the start.
    let id = ElicitationId::random(&SystemRandom);
    tally.commit(&*store, first(id), id, 1).await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, tally) = (store.clone(), tally.clone());
        writers.spawn(async move {
            loop {
                let id = ElicitationId::random(&SystemRandom);
                let done = tally.commit(&*store, first(id), id, 1).await;
                if !done {
                    return;
                }
                if store.load(id).await.unwrap().is_some() && !tally.commit(&*store, second(id), id, 2).await
                {
                    return;
                }
            }
        });
    }
    // Should the parent forget it.
    let _ = tokio::time::timeout(Duration::from_mins(1), writers.join_all()).await;
    if tally.recovered.load(Ordering::SeqCst) >= RECOVERIES {
        std::io::stderr().write_all(b"recovered\n").unwrap();
    }
}

/// The child, running. Killed when dropped.
pub(super) struct Child {
    process: std::process::Child,
    lines: BufReader<ChildStderr>,
}

impl Child {
    /// Starts it, as it is or with a limit on the size of its files (in `ulimit -f` blocks) that makes writes
    /// fail instead of ending the process.
    pub(super) fn start(store: &Path, largest_file: Option<u32>) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = match largest_file {
            None => Command::new(program),
            Some(blocks) => {
                let mut shell = Command::new("sh");
                let script = format!(r#"trap '' XFSZ; ulimit -S -f {blocks}; exec "$0" "$@""#);
                shell.arg("-c").arg(script).arg(program);
                shell
            }
        };
        command.args(["--ignored", "--exact", NAME, "--nocapture"]).env(STORE, store);
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap());
        Self { process, lines }
    }

    /// The next line; `None` at the end, and for a line that was cut off by it.
    pub(super) fn told(&mut self) -> Option<Told> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let line = line.strip_suffix('\n')?;
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["done", id, version] => Some(Told::Done(id.parse().unwrap(), version.parse().unwrap())),
            ["refused"] => Some(Told::Refused),
            ["recovered"] => Some(Told::Recovered),
            _ => panic!("the child says: {line}"),
        }
    }

    /// Ends it at once, as a crash does: no destructor runs.
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
