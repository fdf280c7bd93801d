//! What only the embedded store does: it keeps a file, for one process alone, and forgets for good.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sidegate::domain::Timestamp;
use sidegate::store::sqlite::{OpenError, Sqlite};
use sidegate::store::{Committed, Store};
use tempfile::TempDir;

use super::commits::{create, erase, holder, ids, replace, tag, verified_trail};
use crate::sample::id;

pub(super) fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sidegate.db");
    (folder, path)
}

fn refusal(path: &Path) -> OpenError {
    match Sqlite::open(path) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let (_folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    create(id(1)).record(b"one").due(5).put(b"sealed").requires(tag(1)).joins(tag(9), 1).done(&store).await;
    replace(id(1), 1).record(b"two").due(7).event(b"a").done(&store).await;
    let before = (store.load(id(1)).await.unwrap(), verified_trail(&store).await);
    drop(store);

    let store = Sqlite::open(&path).unwrap();
    assert_eq!((store.load(id(1)).await.unwrap(), verified_trail(&store).await), before);
    assert_eq!(store.outcome(id(1)).await.unwrap().unwrap(), b"sealed");
    assert_eq!(holder(&store, tag(1)).await, Some(id(1)));
    assert_eq!(ids(&store.due(Timestamp::from_millis(7), 9).await.unwrap()), [id(1)]);
    assert_eq!(create(id(2)).requires(tag(1)).on(&store).await, Committed::Taken(id(1)));
    assert_eq!(create(id(2)).joins(tag(9), 1).on(&store).await, Committed::Full(tag(9)));
    replace(id(1), 2).event(b"b").done(&store).await;
    assert_eq!(verified_trail(&store).await.len(), 2);
}

#[tokio::test]
async fn a_store_that_is_open_is_refused_to_everybody_else_until_it_is_closed() {
    let (_folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::InUse(_)));
    let expected =
        format!("the store at {} is in use by another process; stop that one first", path.display());
    assert_eq!(error.to_string(), expected);
    // The one who has it notices nothing.
    create(id(1)).done(&store).await;
    drop(store);
    Sqlite::open(&path).unwrap();
}

#[tokio::test]
async fn its_files_are_for_their_owner_alone() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    create(id(1)).done(&store).await;
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.path().display());
    }
}

#[tokio::test]
async fn a_reader_reads_beside_the_writer_and_writes_nothing() {
    let (_folder, path) = folder();
    let store = Sqlite::open(&path).unwrap();
    create(id(1)).record(b"one").put(b"x").wants(tag(1)).event(b"a").done(&store).await;
    let reader = Sqlite::open_read_only(&path).unwrap();
    let another = Sqlite::open_read_only(&path).unwrap();
    replace(id(1), 1).record(b"two").event(b"b").done(&store).await;

    for reader in [&reader, &another] {
        assert_eq!(reader.load(id(1)).await.unwrap().unwrap().record, b"two");
        assert_eq!(holder(reader, tag(1)).await, Some(id(1)));
        assert_eq!(verified_trail(reader).await.len(), 2);
        let refused = [
            reader.commit(create(id(2)).commit()).await.map(|_| ()),
            reader.append(vec![b"c".to_vec()]).await,
            reader.ping().await,
        ];
        for result in refused {
            let error = result.unwrap_err().to_string();
            assert_eq!(error, "the store is unavailable: it was opened to read only");
        }
    }
    drop((reader, another));
    create(id(2)).done(&store).await;
    assert_eq!(verified_trail(&store).await.len(), 2);
}

#[tokio::test]
async fn a_reader_opens_what_nobody_has_open_and_makes_nothing() {
    let (folder, path) = folder();
    assert!(Sqlite::open_read_only(&path).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    create(id(1)).done(&Sqlite::open(&path).unwrap()).await;
    let reader = Sqlite::open_read_only(&path).unwrap();
    assert_eq!(ids(&reader.scan(None, 9).await.unwrap()), [id(1)]);
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    drop(Sqlite::open(&path).unwrap());
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    database.close().unwrap();
    let before = fs::read(&path).unwrap();
    let error = refusal(&path);
    assert!(
        matches!(error, OpenError::Newer(_, 99)) && error.to_string().contains("newer version"),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_is_no_store_is_refused_by_name_and_left_as_it_is() {
    let (folder, path) = folder();
    let text = "something else\n".repeat(500);
    fs::write(&path, &text).unwrap();
    for path in [path.clone(), folder.path().join("missing").join("sidegate.db"), folder.path().to_owned()] {
        let error = refusal(&path).to_string();
        assert!(error.starts_with(&format!("cannot open the store at {}: ", path.display())), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

/// The store answers from memory what it wrote lately; another reader of the file has nothing but the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_read_from_memory_is_what_the_file_holds() {
    let (_folder, path) = folder();
    let store = Arc::new(Sqlite::open(&path).unwrap());
    let file = Arc::new(Sqlite::open_read_only(&path).unwrap());
    let lives = (1..=16_u64).map(|number| {
        let (store, file) = (Arc::clone(&store), Arc::clone(&file));
        tokio::spawn(async move {
            let id = id(u128::from(number));
            let same = async |version: Option<u64>| {
                let (memory, file) = (store.load(id).await.unwrap(), file.load(id).await.unwrap());
                assert_eq!(memory, file);
                assert_eq!(memory.map(|stored| stored.version), version);
            };
            same(None).await;
            create(id).record(b"one").done(&*store).await;
            same(Some(1)).await;
            for version in 1..20 {
                replace(id, version)
                    .record(&vec![7; 100 * usize::try_from(version * number).unwrap()])
                    .done(&*store)
                    .await;
                assert_eq!(replace(id, version).record(b"late").on(&*store).await, Committed::Conflict);
                same(Some(version + 1)).await;
            }
            erase(id, 20, Vec::new(), Vec::new()).done(&*store).await;
            same(None).await;
            create(id).record(b"anew").done(&*store).await;
            same(Some(1)).await;
        })
    });
    for life in lives.collect::<Vec<_>>() {
        life.await.unwrap();
    }
}
