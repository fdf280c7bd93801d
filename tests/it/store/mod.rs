//! Every store keeps the same contract: the same stories and the same races against each of them.

mod child;
mod commits;
mod crash;
mod disk;
mod forgetting;
mod opened;
mod races;
mod shared;
mod sqlite;
mod stories;
mod trail;

use sidegate::domain::Digest;
use sidegate::store::entry_hash;

/// Makes a test of each story for each store.
macro_rules! contract {
    ($($store:ident => $open:path;)*) => {
        $(mod $store {
            contract!(@stories $open,
                stories: nothing_is_there_at_first, versions_grow_by_one_with_each_commit,
                a_commit_that_expects_something_else_is_a_conflict, a_conflict_changes_nothing,
                a_required_slot_that_is_taken_stops_the_commit, an_optional_slot_that_is_taken_is_left_alone,
                a_slot_of_ones_own_can_be_taken_again, a_released_slot_is_free,
                a_slot_of_another_is_not_released, a_quota_lets_in_up_to_its_limit,
                a_full_quota_changes_nothing, leaving_a_quota_makes_room, quotas_do_not_mix,
                an_outcome_is_put_kept_replaced_and_erased, erasing_frees_everything,
                what_was_erased_can_be_issued_anew, due_lists_the_longest_waiting_first_up_to_a_limit,
                due_follows_the_record, scan_turns_the_pages_without_gap_or_repetition,
                large_and_empty_values_come_back_whole, a_store_that_works_answers_a_ping,
                a_postponed_record_is_due_later_and_otherwise_as_it_was,
                a_visit_is_kept_until_its_time_and_taken_once;
                trail: entries_are_numbered_from_one_in_the_order_of_events, entries_can_be_paged,
                appended_events_belong_to_no_record, r37_a_commit_that_is_refused_leaves_no_event,
                r37_the_hashes_chain_as_documented,
                r37_what_was_written_together_may_lie_in_two_parts_of_the_trail,
                the_trail_says_from_where_to_where_it_goes,
                what_is_cut_is_gone_and_the_rest_still_follows;
                races: r20_of_64_commits_on_one_version_exactly_one_is_done,
                of_64_commits_that_create_one_record_exactly_one_is_done,
                of_64_that_race_for_a_required_slot_one_wins_and_is_known_to_the_others,
                of_64_that_race_for_an_optional_slot_one_is_found,
                r09_of_64_that_take_a_visit_one_gets_it,
                r09_what_is_taken_stays_taken_whoever_renews_it,
                r22_of_64_commits_of_one_record_that_take_a_slot_the_one_that_is_done_has_it, r35_of_64_that_race_for_a_quota_of_10_10_get_in,
                r35_a_quota_holds_while_records_join_and_leave, r37_appends_and_commits_at_once_leave_no_gap;
            );
        })*
    };
    (@stories $open:path, $($file:ident: $($story:ident),*;)*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $story() {
                super::$file::$story(&$open().await).await;
            }
        )*)*
    };
}

contract! {
    memory => super::opened::memory;
    embedded => super::opened::sqlite;
    redis => super::opened::redis;
    valkey => super::opened::valkey;
    cluster => super::opened::cluster;
    sentinel => super::opened::sentinel;
}

/// Pinned: a trail that was exported must verify for ever.
#[test]
fn r37_the_entry_hash_is_sha_256_over_previous_hash_number_and_event() {
    // (head -c 32 /dev/zero; printf '\0\0\0\0\0\0\0\1'; printf event) | sha256sum
    let hash =
        "sha256:b62836bfd11483ac518df569e76b40b52a937bd43e9a59a42541f2fbe39265ba".parse::<Digest>().unwrap();
    assert_eq!(&entry_hash(&[0; 32], 1, b"event"), hash.as_bytes());
}
