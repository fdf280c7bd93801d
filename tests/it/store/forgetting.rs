//! What the embedded store has erased is gone from its files, not only from its answers (R25).

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use sidegate::store::sqlite::Sqlite;
use sidegate::store::{Committed, Outcome, Store as _};
use tokio::time::{sleep, timeout};

use super::commits::{Change, create, erase, replace};
use super::sqlite::folder;
use crate::sample::id;

const CANARY: &[u8] = b"canary-4f1c99e2-sealed-outcome";

/// An outcome of many pages that has the canary all over it.
fn large() -> Vec<u8> {
    CANARY.repeat(2000)
}

/// The files that hold the canary.
fn traces(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let held = files.filter(|file| fs::read(file).unwrap().windows(CANARY.len()).any(|part| part == CANARY));
    held.map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// Waits, for a few seconds at most, until no file holds the canary.
async fn forgotten(folder: &Path) -> bool {
    for _ in 0..50 {
        if traces(folder).is_empty() {
            return true;
        }
        sleep(Duration::from_millis(100)).await;
    }
    false
}

/// Puts outcomes with the canary into the file and gives the three changes that end them.
async fn planted(store: &Sqlite) -> [Change; 3] {
    create(id(1)).put(CANARY).done(store).await;
    create(id(2)).put(&large()).done(store).await;
    create(id(3)).record(CANARY).put(&large()).done(store).await;
    // Neighbours on the same pages, which stay.
    create(id(4)).put(b"stays").done(store).await;
    [
        replace(id(1), 1).outcome(Outcome::Erase),
        replace(id(2), 1).outcome(Outcome::Erase),
        erase(id(3), 1, Vec::new(), Vec::new()),
    ]
}

/// A read transaction of another program, such as a backup, that takes its time.
fn slow_reader(path: &Path) -> Connection {
    let reader = Connection::open(path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM records", [], |_| Ok(())).unwrap();
    reader
}

#[tokio::test]
async fn r25_erased_bytes_are_gone_soon_after() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    let ends = planted(&store).await;
    assert!(!traces(folder.path()).is_empty());
    for end in ends {
        end.done(&store).await;
    }
    assert!(forgotten(folder.path()).await, "still in {:?}", traces(folder.path()));
}

#[tokio::test]
async fn r25_erased_bytes_that_had_reached_the_database_are_gone_once_it_is_closed() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    let ends = planted(&store).await;
    drop(store);
    assert_eq!(traces(folder.path()), ["sidegate.db"]);
    let store = Sqlite::open(&path).unwrap();
    for end in ends {
        end.done(&store).await;
    }
    drop(store);
    assert_eq!(traces(folder.path()), [""; 0]);
}

#[tokio::test]
async fn r25_closing_forgets_at_once_whoever_still_holds_the_store() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    for end in planted(&store).await {
        end.done(&store).await;
    }
    // A reader has the file open too, so that closing the writer alone would not empty the log.
    assert_eq!(store.load(id(9)).await.unwrap(), None);
    store.close().await;
    assert_eq!(traces(folder.path()), [""; 0]);
    assert!(store.ping().await.is_err(), "it takes nothing any more");
    store.close().await;
}

#[tokio::test]
async fn r25_erased_bytes_are_gone_soon_also_from_a_store_that_is_never_idle() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    for end in planted(&store).await {
        end.done(&store).await;
    }
    create(id(5)).done(&store).await;
    let busy = async {
        for version in 1.. {
            replace(id(5), version).done(&store).await;
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = busy => {}
        gone = forgotten(folder.path()) => assert!(gone, "still in {:?}", traces(folder.path())),
    }
}

#[tokio::test]
async fn r25_bytes_erased_just_before_a_crash_are_gone_soon_after_the_next_start() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    let ends = planted(&store).await;
    let reader = slow_reader(&path);
    for end in ends {
        end.done(&store).await;
    }
    // The reader keeps the log from being emptied; this is what a crash would leave.
    let after_crash = self::folder();
    for name in ["sidegate.db", "sidegate.db-wal"] {
        fs::copy(folder.path().join(name), after_crash.0.path().join(name)).unwrap();
    }
    drop(reader);
    let folder = after_crash.0.path();
    assert!(!traces(folder).is_empty());
    let store = Sqlite::open(&after_crash.1).unwrap();
    assert!(forgotten(folder).await, "still in {:?}", traces(folder));
    assert_eq!(create(id(1)).on(&store).await, Committed::Conflict);
}

#[tokio::test]
async fn r25_a_slow_reader_delays_forgetting_but_no_commit() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    let ends = planted(&store).await;
    let reader = slow_reader(&path);
    for end in ends {
        end.done(&store).await;
    }
    create(id(5)).done(&store).await;
    for version in 1..=4 {
        sleep(Duration::from_millis(500)).await;
        let commit = replace(id(5), version).done(&store);
        assert!(timeout(Duration::from_secs(2), commit).await.is_ok(), "the commit waited for the reader");
    }
    drop(reader);
    assert!(forgotten(folder.path()).await, "still in {:?}", traces(folder.path()));
}
