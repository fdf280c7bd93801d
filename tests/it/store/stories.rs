//! Stories of records, slots, quotas and outcomes that go the same way in every store.

use sidegate::domain::Timestamp;
use sidegate::store::{Committed, Outcome};

use super::commits::{LATER, create, erase, holder, ids, replace, tag, verified_trail, version};
use super::opened::Opened;
use crate::sample::id;

pub(super) async fn nothing_is_there_at_first(opened: &Opened) {
    let store = opened.store();
    assert_eq!(store.load(id(1)).await.unwrap(), None);
    assert_eq!(store.find(tag(1)).await.unwrap(), None);
    assert_eq!(store.outcome(id(1)).await.unwrap(), None);
    assert_eq!(store.due(Timestamp::from_millis(i64::MAX), 10).await.unwrap(), []);
    assert_eq!(store.scan(None, 10).await.unwrap(), []);
    assert_eq!(store.entries(0, 10).await.unwrap(), []);
}

pub(super) async fn versions_grow_by_one_with_each_commit(opened: &Opened) {
    let store = opened.store();
    create(id(1)).record(b"first").wants(tag(1)).done(store).await;
    let stored = store.load(id(1)).await.unwrap().unwrap();
    assert_eq!((stored.id, stored.version, stored.record.as_slice()), (id(1), 1, &b"first"[..]));
    replace(id(1), 1).record(b"second").done(store).await;
    let stored = store.load(id(1)).await.unwrap().unwrap();
    assert_eq!((stored.version, stored.record.as_slice()), (2, &b"second"[..]));
    assert_eq!(store.find(tag(1)).await.unwrap(), Some(stored));
    assert_eq!(version(store, id(2)).await, None);
}

pub(super) async fn a_commit_that_expects_something_else_is_a_conflict(opened: &Opened) {
    let store = opened.store();
    create(id(1)).done(store).await;
    replace(id(1), 1).done(store).await;
    for change in [create(id(1)), replace(id(1), 1), replace(id(1), 3), replace(id(1), 0)] {
        assert_eq!(change.on(store).await, Committed::Conflict);
    }
    for absent in [replace(id(2), 0), replace(id(2), 1), erase(id(2), 1, vec![], vec![])] {
        assert_eq!(absent.on(store).await, Committed::Conflict);
    }
    assert_eq!(erase(id(1), 1, vec![], vec![]).on(store).await, Committed::Conflict);
    assert_eq!((version(store, id(1)).await, version(store, id(2)).await), (Some(2), None));
}

pub(super) async fn a_conflict_changes_nothing(opened: &Opened) {
    let store = opened.store();
    create(id(1)).record(b"right").put(b"outcome").wants(tag(1)).joins(tag(9), 1).done(store).await;
    let stale = replace(id(1), 7).record(b"wrong").due(0).put(b"wrong").wants(tag(2)).releases(tag(1));
    assert_eq!(stale.leaves(tag(9)).event(b"wrong").on(store).await, Committed::Conflict);
    let gone = erase(id(1), 7, vec![tag(1)], vec![tag(9)]);
    assert_eq!(gone.event(b"wrong").on(store).await, Committed::Conflict);

    assert_eq!(store.load(id(1)).await.unwrap().unwrap().record, b"right");
    assert_eq!(store.outcome(id(1)).await.unwrap().unwrap(), b"outcome");
    assert_eq!((holder(store, tag(1)).await, holder(store, tag(2)).await), (Some(id(1)), None));
    assert_eq!(create(id(2)).joins(tag(9), 1).on(store).await, Committed::Full(tag(9)));
    assert_eq!(store.due(Timestamp::from_millis(0), 10).await.unwrap(), []);
    assert_eq!(verified_trail(store).await, []);
}

pub(super) async fn a_required_slot_that_is_taken_stops_the_commit(opened: &Opened) {
    let store = opened.store();
    create(id(1)).requires(tag(1)).done(store).await;
    let second = create(id(2)).wants(tag(3)).requires(tag(2)).requires(tag(1)).put(b"x").joins(tag(9), 1);
    assert_eq!(second.event(b"x").on(store).await, Committed::Taken(id(1)));
    assert_eq!(version(store, id(2)).await, None);
    assert_eq!((holder(store, tag(2)).await, holder(store, tag(3)).await), (None, None));
    assert_eq!(store.outcome(id(2)).await.unwrap(), None);
    assert_eq!(verified_trail(store).await, []);
    create(id(3)).joins(tag(9), 1).requires(tag(2)).done(store).await;
    assert_eq!(replace(id(3), 1).requires(tag(1)).on(store).await, Committed::Taken(id(1)));
    assert_eq!(version(store, id(3)).await, Some(1));
}

pub(super) async fn an_optional_slot_that_is_taken_is_left_alone(opened: &Opened) {
    let store = opened.store();
    create(id(1)).wants(tag(1)).done(store).await;
    create(id(2)).wants(tag(1)).wants(tag(2)).done(store).await;
    assert_eq!((holder(store, tag(1)).await, holder(store, tag(2)).await), (Some(id(1)), Some(id(2))));
    assert_eq!(create(id(3)).requires(tag(1)).on(store).await, Committed::Taken(id(1)));
}

pub(super) async fn a_slot_of_ones_own_can_be_taken_again(opened: &Opened) {
    let store = opened.store();
    create(id(1)).requires(tag(1)).done(store).await;
    replace(id(1), 1).requires(tag(1)).wants(tag(1)).done(store).await;
    assert_eq!(holder(store, tag(1)).await, Some(id(1)));
    // Released and taken in one commit, it stays.
    replace(id(1), 2).releases(tag(1)).requires(tag(1)).done(store).await;
    assert_eq!(holder(store, tag(1)).await, Some(id(1)));
}

pub(super) async fn a_released_slot_is_free(opened: &Opened) {
    let store = opened.store();
    create(id(1)).requires(tag(1)).wants(tag(2)).done(store).await;
    replace(id(1), 1).releases(tag(1)).done(store).await;
    assert_eq!((holder(store, tag(1)).await, holder(store, tag(2)).await), (None, Some(id(1))));
    create(id(2)).requires(tag(1)).done(store).await;
    assert_eq!(holder(store, tag(1)).await, Some(id(2)));
}

pub(super) async fn a_slot_of_another_is_not_released(opened: &Opened) {
    let store = opened.store();
    create(id(1)).requires(tag(1)).done(store).await;
    create(id(2)).releases(tag(1)).done(store).await;
    erase(id(2), 1, vec![tag(1)], vec![]).done(store).await;
    assert_eq!(holder(store, tag(1)).await, Some(id(1)));
}

pub(super) async fn a_quota_lets_in_up_to_its_limit(opened: &Opened) {
    let store = opened.store();
    for number in 1..=3 {
        create(id(number)).joins(tag(9), 3).done(store).await;
    }
    assert_eq!(create(id(4)).joins(tag(9), 3).on(store).await, Committed::Full(tag(9)));
    // The limit is the asker's: it may have been raised since.
    create(id(4)).joins(tag(9), 4).done(store).await;
    assert_eq!(create(id(5)).joins(tag(8), 0).on(store).await, Committed::Full(tag(8)));
}

pub(super) async fn a_full_quota_changes_nothing(opened: &Opened) {
    let store = opened.store();
    create(id(1)).joins(tag(9), 1).done(store).await;
    let change = create(id(2)).put(b"x").requires(tag(1)).joins(tag(8), 1).joins(tag(9), 1).event(b"x");
    assert_eq!(change.on(store).await, Committed::Full(tag(9)));
    assert_eq!((version(store, id(2)).await, holder(store, tag(1)).await), (None, None));
    assert_eq!(store.outcome(id(2)).await.unwrap(), None);
    assert_eq!(verified_trail(store).await, []);
    create(id(3)).joins(tag(8), 1).done(store).await;
}

pub(super) async fn leaving_a_quota_makes_room(opened: &Opened) {
    let store = opened.store();
    create(id(1)).joins(tag(9), 2).done(store).await;
    create(id(2)).joins(tag(9), 2).done(store).await;
    replace(id(1), 1).leaves(tag(9)).done(store).await;
    erase(id(2), 1, vec![], vec![tag(9)]).done(store).await;
    create(id(3)).joins(tag(9), 2).done(store).await;
    create(id(4)).joins(tag(9), 2).done(store).await;
    assert_eq!(create(id(5)).joins(tag(9), 2).on(store).await, Committed::Full(tag(9)));
    // A count that nobody is in does not go below nothing.
    replace(id(1), 2).leaves(tag(7)).done(store).await;
    create(id(6)).joins(tag(7), 1).done(store).await;
    assert_eq!(create(id(7)).joins(tag(7), 1).on(store).await, Committed::Full(tag(7)));
}

pub(super) async fn quotas_do_not_mix(opened: &Opened) {
    let store = opened.store();
    create(id(1)).joins(tag(8), 1).joins(tag(9), 5).done(store).await;
    assert_eq!(create(id(2)).joins(tag(9), 5).joins(tag(8), 1).on(store).await, Committed::Full(tag(8)));
    create(id(2)).joins(tag(9), 5).done(store).await;
    replace(id(1), 1).leaves(tag(9)).done(store).await;
    assert_eq!(create(id(3)).joins(tag(8), 1).on(store).await, Committed::Full(tag(8)));
}

pub(super) async fn an_outcome_is_put_kept_replaced_and_erased(opened: &Opened) {
    let store = opened.store();
    let outcome = async |number| store.outcome(id(number)).await.unwrap();
    create(id(1)).done(store).await;
    assert_eq!(outcome(1).await, None);
    replace(id(1), 1).put(b"sealed").done(store).await;
    create(id(2)).put(b"other").done(store).await;
    replace(id(1), 2).outcome(Outcome::Keep).done(store).await;
    assert_eq!(outcome(1).await.unwrap(), b"sealed");
    replace(id(1), 3).put(b"anew").done(store).await;
    assert_eq!(outcome(1).await.unwrap(), b"anew");
    replace(id(1), 4).outcome(Outcome::Erase).done(store).await;
    replace(id(1), 5).outcome(Outcome::Erase).done(store).await;
    assert_eq!((outcome(1).await, outcome(2).await.unwrap()), (None, b"other".to_vec()));
}

pub(super) async fn erasing_frees_everything(opened: &Opened) {
    let store = opened.store();
    let everything = || create(id(1)).put(b"x").requires(tag(1)).wants(tag(2)).joins(tag(9), 1);
    everything().done(store).await;
    erase(id(1), 1, vec![tag(1), tag(2)], vec![tag(9)]).done(store).await;
    assert_eq!((version(store, id(1)).await, store.outcome(id(1)).await.unwrap()), (None, None));
    assert_eq!((holder(store, tag(1)).await, holder(store, tag(2)).await), (None, None));
    assert_eq!(store.due(LATER, 10).await.unwrap(), []);
    assert_eq!(store.scan(None, 10).await.unwrap(), []);
    create(id(2)).requires(tag(1)).requires(tag(2)).joins(tag(9), 1).done(store).await;
}

pub(super) async fn what_was_erased_can_be_issued_anew(opened: &Opened) {
    let store = opened.store();
    create(id(1)).put(b"old").done(store).await;
    replace(id(1), 1).done(store).await;
    erase(id(1), 2, vec![], vec![]).done(store).await;
    assert_eq!(replace(id(1), 2).on(store).await, Committed::Conflict);
    create(id(1)).done(store).await;
    assert_eq!((version(store, id(1)).await, store.outcome(id(1)).await.unwrap()), (Some(1), None));
}

pub(super) async fn due_lists_the_longest_waiting_first_up_to_a_limit(opened: &Opened) {
    let store = opened.store();
    for (number, at) in [(1, 300), (2, 100), (3, 400), (4, 200), (5, -7)] {
        create(id(number)).due(at).done(store).await;
    }
    let due = async |at, limit| ids(&store.due(Timestamp::from_millis(at), limit).await.unwrap());
    assert_eq!(due(399, 10).await, [id(5), id(2), id(4), id(1)]);
    assert_eq!(due(400, 10).await.len(), 5);
    assert_eq!(due(400, 2).await, [id(5), id(2)]);
    assert_eq!(due(-8, 10).await, []);
    assert_eq!(due(400, 0).await, []);
}

pub(super) async fn due_follows_the_record(opened: &Opened) {
    let store = opened.store();
    create(id(1)).due(100).done(store).await;
    create(id(2)).due(200).record(b"two").done(store).await;
    replace(id(1), 1).due(300).record(b"one").done(store).await;
    let due = store.due(Timestamp::from_millis(300), 10).await.unwrap();
    assert_eq!(ids(&due), [id(2), id(1)]);
    assert_eq!((due[1].version, due[1].record.as_slice()), (2, &b"one"[..]));
}

pub(super) async fn scan_turns_the_pages_without_gap_or_repetition(opened: &Opened) {
    let store = opened.store();
    // In an order that is not that of the ids, with the smallest and the largest there is.
    let mut all = [5, 2, 9, u128::MAX, 1 << 120, 0, 7, 255, 256, 1].map(id);
    for id in all {
        create(id).done(store).await;
    }
    all.sort_unstable();
    let mut seen = Vec::new();
    loop {
        let page = ids(&store.scan(seen.last().copied(), 3).await.unwrap());
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen, all);
    assert_eq!(ids(&store.scan(Some(id(3)), 1).await.unwrap()), [id(5)]);
}

pub(super) async fn large_and_empty_values_come_back_whole(opened: &Opened) {
    let store = opened.store();
    // Ten fields of 32,768 characters of four bytes each.
    let large: Vec<u8> = (0..1_310_720_u32).map(|at| at.to_le_bytes()[usize::from(at % 7 == 0)]).collect();
    create(id(1)).record(&large[..200_000]).put(&large).event(&large[..70_000]).done(store).await;
    create(id(2)).record(b"").put(b"").event(b"").done(store).await;
    assert_eq!(store.load(id(1)).await.unwrap().unwrap().record, large[..200_000]);
    assert_eq!(store.outcome(id(1)).await.unwrap().unwrap(), large);
    assert_eq!(store.load(id(2)).await.unwrap().unwrap().record, b"");
    assert_eq!(store.outcome(id(2)).await.unwrap().unwrap(), b"");
    assert_eq!(verified_trail(store).await.len(), 2);
}

pub(super) async fn a_store_that_works_answers_a_ping(opened: &Opened) {
    opened.store().ping().await.unwrap();
    opened.store().ping().await.unwrap();
    assert_eq!(verified_trail(opened.store()).await, []);
}

pub(super) async fn a_postponed_record_is_due_later_and_otherwise_as_it_was(opened: &Opened) {
    let store = opened.store();
    let due = async |at| ids(&store.due(Timestamp::from_millis(at), 10).await.unwrap());
    create(id(1)).due(100).record(b"one").put(b"outcome").done(store).await;
    let found = store.load(id(1)).await.unwrap().unwrap();
    store.postpone(&found, Timestamp::from_millis(300)).await.unwrap();
    assert_eq!((due(299).await, due(300).await), (vec![], vec![id(1)]));
    assert_eq!(store.load(id(1)).await.unwrap().unwrap(), found);
    assert_eq!(store.outcome(id(1)).await.unwrap().unwrap(), b"outcome");
    replace(id(1), 1).due(200).done(store).await;
    store.postpone(&found, Timestamp::from_millis(400)).await.unwrap();
    assert_eq!(due(200).await, [id(1)], "it had changed");
    erase(id(1), 2, vec![], vec![]).done(store).await;
    store.postpone(&found, Timestamp::from_millis(100)).await.unwrap();
    assert_eq!(due(1000).await, [], "it was gone");
}

pub(super) async fn a_visit_is_kept_until_its_time_and_taken_once(opened: &Opened) {
    let store = opened.store();
    let at = Timestamp::from_millis;
    assert_eq!(store.visit(tag(1), at(0)).await.unwrap(), None);
    assert_eq!(store.take_visit(tag(1), at(0)).await.unwrap(), None);
    for number in 1..=3 {
        store.put_visit(tag(number), vec![number], at(1000), at(2000)).await.unwrap();
    }
    assert_eq!(store.visit(tag(1), at(1999)).await.unwrap(), Some(vec![1]));
    assert_eq!(store.visit(tag(1), at(2000)).await.unwrap(), None);
    assert_eq!(store.take_visit(tag(2), at(2000)).await.unwrap(), None);
    store.put_visit(tag(1), b"longer".to_vec(), at(1500), at(9000)).await.unwrap();
    assert_eq!(store.visit(tag(1), at(8999)).await.unwrap(), Some(b"longer".to_vec()));
    assert_eq!(store.take_visit(tag(3), at(1999)).await.unwrap(), Some(vec![3]));
    for number in [1, 3] {
        store.renew_visit(tag(number), b"renewed".to_vec(), at(1500), at(9500)).await.unwrap();
    }
    assert_eq!(store.visit(tag(1), at(9499)).await.unwrap(), Some(b"renewed".to_vec()));
    assert_eq!(store.take_visit(tag(3), at(1999)).await.unwrap(), None);
    assert_eq!(store.visit(tag(3), at(1999)).await.unwrap(), None);
    assert_eq!(verified_trail(store).await, []);
}
