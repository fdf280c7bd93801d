//! What the embedded store has acknowledged outlives the process, however it ends.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use sidegate::domain::{ElicitationId, Random as _};
use sidegate::store::Store;
use sidegate::store::sqlite::{OpenError, Sqlite};
use sidegate::system::SystemRandom;

use super::child::{Child, Told, events, record, slot};
use super::commits::{holder, verified_trail};

/// The newest version of each record that was acknowledged.
pub(super) type Acknowledged = HashMap<ElicitationId, u64>;

/// Opens the store and finds every acknowledged commit there, every record whole, and a trail of just these.
pub(super) async fn assert_nothing_lost(path: &Path, acknowledged: &Acknowledged) {
    let store = Sqlite::open(path).unwrap();
    let mut found = HashMap::new();
    let mut after = None;
    loop {
        let page = store.scan(after, 500).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for stored in page {
            let (id, version) = (stored.id, stored.version);
            assert_eq!(stored.record, record(id, version));
            let outcome = (version == 1).then(|| record(id, 1));
            assert_eq!(store.outcome(id).await.unwrap(), outcome);
            assert_eq!(holder(&store, slot(id)).await, Some(id));
            found.insert(id, version);
        }
    }
    for (id, version) in acknowledged {
        assert!(found.get(id).is_some_and(|found| found >= version), "{id} at version {version} is lost");
    }
    let trail: Vec<_> = verified_trail(&store).await.into_iter().map(|entry| entry.event).collect();
    let expected: HashSet<_> = found.iter().flat_map(|(id, version)| events(*id, *version)).collect();
    assert_eq!(trail.len(), expected.len());
    assert_eq!(trail.into_iter().collect::<HashSet<_>>(), expected);
}

/// A pause of up to a quarter of a second.
fn random_pause() -> Duration {
    let mut byte = [0];
    SystemRandom.fill(&mut byte);
    Duration::from_millis(byte[0].into())
}

#[tokio::test]
async fn every_acknowledged_commit_outlives_a_killed_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sidegate.db");
    let mut acknowledged = Acknowledged::new();
    for round in 0..10 {
        let before = acknowledged.len();
        let mut child = Child::start(&path, None);
        let first = child.told();
        let killer = std::thread::spawn({
            let path = path.clone();
            move || {
                assert!(matches!(Sqlite::open(&path), Err(OpenError::InUse(_))), "a second process came in");
                std::thread::sleep(random_pause());
            }
        });
        let mut told = first;
        while let Some(Told::Done(id, version)) = told {
            acknowledged.insert(id, version);
            if killer.is_finished() {
                child.kill();
            }
            told = child.told();
        }
        assert_eq!(told, None, "in round {round}");
        killer.join().unwrap();
        assert!(acknowledged.len() > before, "round {round} acknowledged nothing");
        assert_nothing_lost(&path, &acknowledged).await;
    }
}
