//! Races that end the same way in every store: 64 tasks that start at once.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidegate::domain::Timestamp;
use sidegate::store::{Committed, Store, Tag};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::commits::{create, holder, replace, tag, verified_trail, version};
use super::opened::Opened;
use crate::sample::id;

const TASKS: usize = 64;

/// Starts all tasks at the same moment and gathers what each came to.
async fn race<T, F>(opened: &Opened, task: impl Fn(u128, Arc<dyn Store>) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let (start, run) = (start.clone(), task(number as u128 + 1, opened.of_task(number)));
        tasks.spawn(async move {
            start.wait().await;
            run.await
        });
    }
    tasks.join_all().await
}

fn count(results: &[Committed], wanted: Committed) -> usize {
    results.iter().filter(|result| **result == wanted).count()
}

pub(super) async fn r20_of_64_commits_on_one_version_exactly_one_is_done(opened: &Opened) {
    create(id(1)).done(opened.store()).await;
    for round in 1..=10_u64 {
        let results = race(opened, |number, store| async move {
            replace(id(1), round).record(&number.to_be_bytes()).event(b"won").on(&*store).await
        });
        let results = results.await;
        assert_eq!((count(&results, Committed::Done), count(&results, Committed::Conflict)), (1, 63));
        assert_eq!(version(opened.store(), id(1)).await, Some(round + 1));
    }
    assert_eq!(verified_trail(opened.store()).await.len(), 10);
}

pub(super) async fn of_64_commits_that_create_one_record_exactly_one_is_done(opened: &Opened) {
    let results = race(opened, |number, store| async move {
        create(id(1)).put(&number.to_be_bytes()).event(&number.to_be_bytes()).on(&*store).await
    });
    let results = results.await;
    assert_eq!((count(&results, Committed::Done), count(&results, Committed::Conflict)), (1, 63));
    let outcome = opened.store().outcome(id(1)).await.unwrap().unwrap();
    let trail = verified_trail(opened.store()).await;
    assert_eq!(trail.iter().map(|entry| &entry.event).collect::<Vec<_>>(), [&outcome]);
}

pub(super) async fn of_64_that_race_for_a_required_slot_one_wins_and_is_known_to_the_others(opened: &Opened) {
    let results = race(opened, |number, store| async move {
        create(id(number)).requires(tag(1)).event(b"won").on(&*store).await
    });
    let results = results.await;
    let winner = holder(opened.store(), tag(1)).await.unwrap();
    assert_eq!((count(&results, Committed::Done), count(&results, Committed::Taken(winner))), (1, 63));
    assert_eq!(opened.store().scan(None, 100).await.unwrap().len(), 1);
    assert_eq!(verified_trail(opened.store()).await.len(), 1);
}

pub(super) async fn of_64_that_race_for_an_optional_slot_one_is_found(opened: &Opened) {
    let results = race(opened, |number, store| async move {
        create(id(number)).wants(tag(1)).event(&number.to_be_bytes()).on(&*store).await
    });
    assert_eq!(count(&results.await, Committed::Done), TASKS);
    assert!(holder(opened.store(), tag(1)).await.is_some());
    let trail = verified_trail(opened.store()).await;
    let different: HashSet<_> = trail.iter().map(|entry| &entry.event).collect();
    assert_eq!((trail.len(), different.len()), (TASKS, TASKS));
}

pub(super) async fn r22_of_64_commits_of_one_record_that_take_a_slot_the_one_that_is_done_has_it(
    opened: &Opened,
) {
    create(id(1)).done(opened.store()).await;
    for round in 1..=20_u64 {
        let slot = Tag([u8::try_from(round).unwrap(); 32]);
        let results =
            race(opened, |_, store| async move { replace(id(1), round).wants(slot).on(&*store).await });
        assert_eq!(count(&results.await, Committed::Done), 1);
        assert_eq!(holder(opened.store(), slot).await, Some(id(1)), "in round {round}");
    }
}

pub(super) async fn r09_of_64_that_take_a_visit_one_gets_it(opened: &Opened) {
    let (now, until) = (Timestamp::from_millis(1000), Timestamp::from_millis(2000));
    for number in 1..=10 {
        opened.store().put_visit(tag(number), vec![number], now, until).await.unwrap();
        let taken =
            race(opened, |_, store| async move { store.take_visit(tag(number), now).await.unwrap() }).await;
        let taken: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!(taken, [vec![number]]);
    }
}

pub(super) async fn r09_what_is_taken_stays_taken_whoever_renews_it(opened: &Opened) {
    let (now, until) = (Timestamp::from_millis(1000), Timestamp::from_millis(2000));
    for number in 1..=10 {
        opened.store().put_visit(tag(number), vec![number], now, until).await.unwrap();
        race(opened, |task, store| async move {
            if task == 32 {
                assert!(store.take_visit(tag(number), now).await.unwrap().is_some());
            } else {
                store.renew_visit(tag(number), vec![0], now, until).await.unwrap();
            }
        })
        .await;
        assert_eq!(opened.store().visit(tag(number), now).await.unwrap(), None);
    }
}

pub(super) async fn r35_of_64_that_race_for_a_quota_of_10_10_get_in(opened: &Opened) {
    let results = race(opened, |number, store| async move {
        create(id(number)).joins(tag(8), 1000).joins(tag(9), 10).event(b"in").on(&*store).await
    });
    let results = results.await;
    assert_eq!((count(&results, Committed::Done), count(&results, Committed::Full(tag(9)))), (10, 54));
    assert_eq!(opened.store().scan(None, 100).await.unwrap().len(), 10);
    assert_eq!(verified_trail(opened.store()).await.len(), 10);
    // Those who did not get in are not counted anywhere.
    create(id(99)).joins(tag(8), 11).done(opened.store()).await;
}

pub(super) async fn r35_a_quota_holds_while_records_join_and_leave(opened: &Opened) {
    let inside = Arc::new(AtomicU64::new(0));
    let results = race(opened, |number, store| {
        let inside = inside.clone();
        async move {
            let mut most = 0;
            let mut next = 0;
            for _ in 0..20 {
                let change = if next == 0 { create(id(number)) } else { replace(id(number), next) };
                if change.joins(tag(9), 10).on(&*store).await != Committed::Done {
                    tokio::task::yield_now().await;
                    continue;
                }
                most = most.max(inside.fetch_add(1, Ordering::SeqCst) + 1);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                replace(id(number), next + 1).leaves(tag(9)).done(&*store).await;
                next += 2;
            }
            most
        }
    });
    let most = results.await.into_iter().max().unwrap();
    assert!((1..=10).contains(&most), "{most} were in at once");
    for number in 100..110 {
        create(id(number)).joins(tag(9), 10).done(opened.store()).await;
    }
    assert_eq!(create(id(110)).joins(tag(9), 10).on(opened.store()).await, Committed::Full(tag(9)));
}

pub(super) async fn r37_appends_and_commits_at_once_leave_no_gap(opened: &Opened) {
    race(opened, |number, store| async move {
        let name = |part: u8| [&number.to_be_bytes()[..], &[part]].concat();
        create(id(number)).event(&name(0)).event(&name(1)).done(&*store).await;
        store.append(vec![name(2), name(3), name(4)]).await.unwrap();
        replace(id(number), 1).event(&name(5)).done(&*store).await;
    })
    .await;
    let trail = verified_trail(opened.store()).await;
    assert_eq!(trail.len(), TASKS * 6);
    // What was written together stands together, and in order.
    for pair in trail.windows(2) {
        let [one, two] = [&pair[0].event, &pair[1].event];
        if matches!(one[16], 0 | 2 | 3) {
            assert_eq!((&one[..16], one[16] + 1), (&two[..16], two[16]));
        }
    }
}
