//! The store alone: the commits of a full life, of the usual sizes, without a service before it.

use std::sync::Arc;
use std::time::Duration;

use sidegate::domain::{ElicitationId, Random as _, Timestamp};
use sidegate::redis_client::{Address, Demands, Settings};
use sidegate::store::redis::{Kept, Redis};
use sidegate::store::sqlite::Sqlite;
use sidegate::store::{Commit, Committed, Expect, Outcome, Quota, Slot, Store, Tag, Write};
use sidegate::system::SystemRandom;

use super::process::Backing;

/// A store of its own, on what stands behind the service.
pub(crate) struct Ceiling {
    pub(crate) store: Arc<dyn Store>,
    _data: tempfile::TempDir,
}

/// Bytes of a sealed record, outcome and event, about.
const SIZES: [usize; 3] = [1500, 200, 350];
const LATER: Timestamp = Timestamp::from_millis(9_999_999_999_999);

impl Ceiling {
    pub(crate) async fn of(backing: &Backing) -> Self {
        let data = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = match backing {
            Backing::Embedded => Arc::new(Sqlite::open(&data.path().join("ceiling.db")).unwrap()),
            Backing::Shared(redis) => {
                let settings =
                    Settings { address: Address::parse(&redis.url).unwrap(), demands: Demands::default() };
                let day = Duration::from_hours(24);
                let kept = Kept { records: day, trail: day };
                let store = Redis::start(&settings, "ceiling", kept, Arc::new(SystemRandom));
                store.client().first().await.unwrap();
                Arc::new(store)
            }
        };
        Self { store, _data: data }
    }
}

fn random_tag() -> Tag {
    let mut tag = [0; 32];
    SystemRandom.fill(&mut tag);
    Tag(tag)
}

/// Issue, open, submit and claim, as the store sees them.
pub(crate) async fn life(store: &dyn Store) {
    let id = ElicitationId::random(&SystemRandom);
    let (slot, attempt) = (random_tag(), random_tag());
    let quotas = [Tag([1; 32]), Tag([2; 32])];
    let mut take = vec![Slot { tag: slot, required: false }];
    let mut join: Vec<_> = quotas.iter().map(|tag| Quota { tag: *tag, limit: 1_000_000_000 }).collect();
    for version in 0..4 {
        let (submit, claim) = (version == 2, version == 3);
        let write = Write::Record {
            record: vec![7; SIZES[0]],
            due: LATER,
            outcome: if submit { Outcome::Put(vec![7; SIZES[1]]) } else { Outcome::Keep },
            take: if claim {
                vec![Slot { tag: attempt, required: false }]
            } else {
                std::mem::take(&mut take)
            },
            release: if claim { vec![slot] } else { Vec::new() },
            join: std::mem::take(&mut join),
            leave: if submit { quotas.to_vec() } else { Vec::new() },
        };
        let expect = if version == 0 { Expect::Absent } else { Expect::Version(version) };
        let commit = Commit { id, expect, write, events: vec![vec![7; SIZES[2]]] };
        assert_eq!(store.commit(commit).await.unwrap(), Committed::Done);
    }
}
