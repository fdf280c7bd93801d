//! Stories of the audit trail that go the same way in every store.

use sidegate::store::{Committed, Entry, Extent, Link};

use super::commits::{create, replace, tag, verified_trail};
use super::opened::Opened;
use crate::sample::id;

fn events(trail: &[Entry]) -> Vec<&str> {
    trail.iter().map(|entry| str::from_utf8(&entry.event).unwrap()).collect()
}

pub(super) async fn entries_are_numbered_from_one_in_the_order_of_events(opened: &Opened) {
    let store = opened.store();
    create(id(1)).event(b"a").event(b"b").done(store).await;
    create(id(2)).done(store).await;
    replace(id(1), 1).event(b"c").done(store).await;
    assert_eq!(events(&verified_trail(store).await), ["a", "b", "c"]);
}

pub(super) async fn entries_can_be_paged(opened: &Opened) {
    let store = opened.store();
    store.append((0..10).map(|number| vec![b'a' + number]).collect()).await.unwrap();
    let all = verified_trail(store).await;
    assert_eq!(store.entries(0, 4).await.unwrap(), all[..4]);
    assert_eq!(store.entries(4, 4).await.unwrap(), all[4..8]);
    assert_eq!(store.entries(8, 4).await.unwrap(), all[8..]);
    assert_eq!(store.entries(10, 4).await.unwrap(), []);
    assert_eq!(store.entries(99, 4).await.unwrap(), []);
}

pub(super) async fn appended_events_belong_to_no_record(opened: &Opened) {
    let store = opened.store();
    create(id(1)).event(b"a").done(store).await;
    store.append(vec![b"b".to_vec(), b"b".to_vec()]).await.unwrap();
    store.append(Vec::new()).await.unwrap();
    create(id(2)).event(b"c").done(store).await;
    assert_eq!(events(&verified_trail(store).await), ["a", "b", "b", "c"]);
}

pub(super) async fn r37_a_commit_that_is_refused_leaves_no_event(opened: &Opened) {
    let store = opened.store();
    create(id(1)).requires(tag(1)).joins(tag(9), 1).event(b"a").done(store).await;
    assert_eq!(create(id(1)).event(b"no").on(store).await, Committed::Conflict);
    assert_eq!(create(id(2)).requires(tag(1)).event(b"no").on(store).await, Committed::Taken(id(1)));
    assert_eq!(create(id(2)).joins(tag(9), 1).event(b"no").on(store).await, Committed::Full(tag(9)));
    create(id(2)).event(b"b").done(store).await;
    assert_eq!(events(&verified_trail(store).await), ["a", "b"]);
}

pub(super) async fn r37_the_hashes_chain_as_documented(opened: &Opened) {
    let store = opened.store();
    create(id(1)).event(b"event").event(b"event").done(store).await;
    let trail = verified_trail(store).await;
    assert_eq!(trail[0].hash, sidegate::store::entry_hash(&[0; 32], 1, b"event"));
    // Equal events have different hashes: each stands for all that came before.
    assert_ne!(trail[1].hash, trail[0].hash);
}

/// A store may keep the trail in parts, of 1,024 entries for example.
pub(super) async fn r37_what_was_written_together_may_lie_in_two_parts_of_the_trail(opened: &Opened) {
    let store = opened.store();
    let named = |number: usize| format!("{number:08}").into_bytes();
    store.append((0..1000).map(named).collect()).await.unwrap();
    let mut count = 1000;
    for number in 1..=20 {
        create(id(number))
            .event(&named(count))
            .event(&named(count + 1))
            .event(&named(count + 2))
            .done(store)
            .await;
        count += 3;
        if number % 3 == 0 {
            assert_eq!(store.trail().await.unwrap().end.number, count as u64);
        }
    }
    // More at once than two parts hold.
    store.append((count..count + 2500).map(named).collect()).await.unwrap();
    count += 2500;
    let trail = verified_trail(store).await;
    assert_eq!(trail.len(), count);
    for (number, entry) in trail.iter().enumerate() {
        assert_eq!(entry.event, named(number));
    }
    for after in [0, 1, 1022, 1023, 1024, 1025, 2047, 2048, 3071] {
        let listed = store.entries(after.try_into().unwrap(), 3).await.unwrap();
        assert_eq!(listed, trail[after..][..3]);
    }
}

pub(super) async fn the_trail_says_from_where_to_where_it_goes(opened: &Opened) {
    let store = opened.store();
    let nothing = Link::default();
    assert_eq!(store.trail().await.unwrap(), Extent { start: nothing, end: nothing });
    create(id(1)).event(b"a").event(b"b").done(store).await;
    let trail = verified_trail(store).await;
    assert_eq!(store.trail().await.unwrap(), Extent { start: nothing, end: trail[1].link() });
    assert_eq!(trail[1].link().number, 2);
}

/// Where the store leaves that to others: what is cut is gone, and what is left still follows something that is known.
pub(super) async fn what_is_cut_is_gone_and_the_rest_still_follows(opened: &Opened) {
    let store = opened.store();
    store.append((0..10).map(|number| vec![b'a' + number]).collect()).await.unwrap();
    let all = verified_trail(store).await;
    store.cut_trail(3).await.unwrap();
    let Extent { start, end } = store.trail().await.unwrap();
    assert_eq!(end, all[9].link());
    if start == Link::default() {
        // It lets go of old parts by itself.
        assert_eq!(store.entries(0, 20).await.unwrap(), all);
        return;
    }
    assert_eq!((start, store.entries(0, 20).await.unwrap()), (all[2].link(), all[3..].to_vec()));
    // Cut again, further back, nowhere, and at the end: the last entry stays, since the next one follows it.
    for (up_to, from) in [(2, 3), (0, 3), (5, 5), (99, 5), (10, 5), (9, 9)] {
        store.cut_trail(up_to).await.unwrap();
        let extent = store.trail().await.unwrap();
        assert_eq!((extent.start, extent.end), (all[from - 1].link(), all[9].link()), "{up_to}");
    }
    store.append(vec![b"next".to_vec()]).await.unwrap();
    let next = store.entries(10, 5).await.unwrap().remove(0);
    assert_eq!(next.hash, sidegate::store::entry_hash(&all[9].hash, 11, b"next"));
}
