//! The audit trail on the command line: what was tampered with is found, with a checkpoint also what was cut off its end or
//! written anew, and a long trail needs no more memory than a short one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sidegate::domain::{Actor, Event, Timestamp, What};
use sidegate::store::Store as _;
use sidegate::store::sqlite::Sqlite;
use sidegate::system::SystemRandom;
use sidegate::vault::{Place, Ring, load_key_file};
use tempfile::TempDir;

use super::harness::{Server, ask, eventually, sidegate};

/// A data folder of a service that has stopped.
struct Trail {
    folder: TempDir,
}

impl Trail {
    /// With so many entries, a second apart.
    async fn of(count: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trail = Self { folder };
        let (code, _, err) = trail.run(&["keys", "new", "--file", "keys.toml"]).await;
        assert_eq!(code, 0, "{err}");
        trail.append(0, count).await;
        trail
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn database(&self) -> PathBuf {
        self.path().join("sidegate.db")
    }

    fn ring(&self) -> Ring {
        load_key_file(&self.path().join("keys.toml"), Arc::new(SystemRandom)).unwrap()
    }

    async fn append(&self, first: u64, count: u64) {
        let (ring, store) = (self.ring(), Sqlite::open(&self.database()).unwrap());
        let event = |number: u64| Event {
            at: Timestamp::from_millis(1_800_000_000_000 + i64::try_from(number).unwrap() * 1000),
            what: What::Refused,
            elicitation: None,
            client: None,
            grant: None,
            kind: None,
            actor: Actor::Visitor,
            from: None,
            to: None,
            reason: Some(format!("number {number}")),
        };
        let all: Vec<u64> = (first..first + count).collect();
        for part in all.chunks(5000) {
            let seal = |number: &u64| {
                ring.seal(Place::Event, &serde_json::to_vec(&event(*number)).unwrap()).unwrap()
            };
            store.append(part.iter().map(seal).collect()).await.unwrap();
        }
        store.close().await;
    }

    async fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = sidegate().args(arguments).current_dir(self.path()).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    async fn verify(&self, checkpoints: Option<&str>) -> (i32, String) {
        let more: &[&str] = match &checkpoints {
            Some(file) => &["--checkpoints", file],
            None => &[],
        };
        let (code, out, err) = self.run(&[&["audit", "verify", "--data", "."], more].concat()).await;
        (code, out + &err)
    }

    /// Signs how far it goes, into a file that holds the earlier ones.
    async fn checkpoint(&self) {
        let (code, line, err) = self.run(&["audit", "checkpoint", "--data", "."]).await;
        assert_eq!((code, line.lines().count()), (0, 1), "{err}");
        let file = self.path().join("checkpoints");
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(&file, before + &line).unwrap();
    }

    fn sql(&self, statements: &str) {
        rusqlite::Connection::open(self.database()).unwrap().execute_batch(statements).unwrap();
    }

    /// The trail from an entry on, chained anew: by one who can write to the store.
    fn chain_anew(&self, from: u64) {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        let mut hash: [u8; 32] = connection
            .query_row("SELECT hash FROM trail WHERE number = ?1", [from - 1], |row| row.get(0))
            .unwrap();
        let mut query =
            connection.prepare("SELECT number, event FROM trail WHERE number >= ?1 ORDER BY number").unwrap();
        let rows: Vec<(u64, Vec<u8>)> = query
            .query_map([from], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for (number, event) in rows {
            hash = sidegate::store::entry_hash(&hash, number, &event);
            connection
                .execute("UPDATE trail SET hash = ?2 WHERE number = ?1", rusqlite::params![number, hash])
                .unwrap();
        }
    }
}

#[tokio::test]
async fn r37_with_a_checkpoint_every_kind_of_tampering_is_found() {
    let trail = Trail::of(40).await;
    trail.checkpoint().await;
    trail.append(40, 20).await;
    trail.checkpoint().await;
    trail.append(60, 5).await;
    let (code, said) = trail.verify(Some("checkpoints")).await;
    assert!(code == 0 && said.contains("it goes through all 2 checkpoints"), "{said}");
    let pristine = std::fs::read(trail.database()).unwrap();
    let renumber = "UPDATE trail SET number = -number WHERE number IN (8, 9);
                    UPDATE trail SET number = 17 + number WHERE number IN (-8, -9);";
    for (what, tamper, anew, sentence) in [
        (
            "changed",
            "UPDATE trail SET event = (SELECT event FROM trail WHERE number = 3) WHERE number = 4",
            None,
            "does not follow the one before it",
        ),
        ("removed", "DELETE FROM trail WHERE number = 7", None, "does not follow"),
        ("reordered", renumber, None, "does not follow"),
        (
            "inserted",
            "INSERT INTO trail SELECT 66, event, hash FROM trail WHERE number = 65",
            None,
            "does not follow",
        ),
        (
            "its own words",
            "UPDATE trail SET event = zeroblob(60) WHERE number = 50",
            Some(50),
            "does not open",
        ),
        ("truncated", "DELETE FROM trail WHERE number > 55", None, "its end was cut off"),
        (
            "truncated to the earlier checkpoint",
            "DELETE FROM trail WHERE number > 40",
            None,
            "its end was cut off",
        ),
        ("emptied", "DELETE FROM trail", None, "its end was cut off"),
        ("reordered and chained anew", renumber, Some(2), "the trail was written anew"),
        (
            "one left out, and chained anew",
            "DELETE FROM trail WHERE number = 7; UPDATE trail SET number = -number WHERE number > 7; UPDATE trail SET number = -number - 1 WHERE number < 0",
            Some(7),
            "the trail was written anew",
        ),
    ] {
        trail.sql(tamper);
        if let Some(from) = anew {
            trail.chain_anew(from);
        }
        let (code, said) = trail.verify(Some("checkpoints")).await;
        assert_eq!(code, 1, "{what}: {said}");
        assert!(said.contains(sentence), "{what}: {said}");
        for side in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{side}", trail.database().display()));
        }
        std::fs::write(trail.database(), &pristine).unwrap();
    }
    assert_eq!(trail.verify(Some("checkpoints")).await.0, 0);
    // A checkpoint that was changed, or signed elsewhere, is none.
    let good = std::fs::read_to_string(trail.path().join("checkpoints")).unwrap();
    let forged = good.replace("\"number\":40", "\"number\":39");
    assert_ne!(forged, good);
    std::fs::write(trail.path().join("forged"), forged).unwrap();
    let (code, said) = trail.verify(Some("forged")).await;
    assert!(
        code == 1
            && said.contains("forged, line 1: the checkpoint was not signed with a key of this key ring"),
        "{said}"
    );
    std::fs::write(trail.path().join("none"), "nothing\n{}\n").unwrap();
    let (code, said) = trail.verify(Some("none")).await;
    assert!(code == 1 && said.contains("there is no checkpoint"), "{said}");
}

/// A service signs its trail from time to time, in its log; that line is a checkpoint.
#[tokio::test]
async fn r37_a_service_signs_how_far_its_trail_goes() {
    let setup = super::harness::Setup::local().with("SIDEGATE_AUDIT__CHECKPOINT_EVERY", "1");
    let server = Server::start(setup).await;
    server.handler().issue(&ask()).await;
    let line = eventually("a checkpoint", async || {
        server.log().lines().rfind(|line| line.contains("\"checkpoint\"")).map(str::to_owned)
    });
    let line = line.await;
    let said: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said["level"], "INFO");
    std::fs::write(server.data().join("lines"), format!("something else\n{line}\n")).unwrap();
    let mut verify = sidegate();
    verify.args(["audit", "verify", "--data", ".", "--checkpoints", "lines"]).current_dir(server.data());
    let output = verify.output().await.unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && out.contains("it goes through all 1 checkpoints"), "{out}");
}

#[tokio::test]
async fn what_happened_since_a_moment_is_exported() {
    let trail = Trail::of(30).await;
    // 1 800 000 000 seconds, and 20 more.
    let since = Timestamp::from_millis(1_800_000_020_000).to_string();
    let (code, lines, err) = trail.run(&["audit", "export", "--data", ".", "--since", &since]).await;
    assert_eq!(code, 0, "{err}");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (lines.len(), &lines[0]["number"], &lines[0]["at"]),
        (10, &Value::from(21), &Value::from(since))
    );
    let (code, _, err) = trail.run(&["audit", "export", "--data", ".", "--since", "yesterday"]).await;
    assert!(code == 2 && err.contains("must be a moment such as"), "{err}");
}

/// The most memory that checking the trail takes, in KiB.
async fn peak(trail: &Trail) -> u64 {
    let mut verify = sidegate();
    verify.args(["audit", "verify", "--data", "."]).current_dir(trail.path());
    let mut child = verify.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id().unwrap());
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0).max(most);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return most;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_million_entries_are_checked_in_bounded_memory() {
    let short = peak(&Trail::of(20_000).await).await;
    let trail = Trail::of(1_000_000).await;
    let long = peak(&trail).await;
    assert!(long < short + 16 * 1024, "{long} KiB and {short} KiB");
    let (code, said) = trail.verify(None).await;
    assert!(code == 0 && said.starts_with("1000000 entries, in order and unchanged: 1 to 1000000"), "{said}");
}
