//! What is kept, as pure rules: nothing granted is lost, one renews at a time, and what is over is over.

use std::time::Duration;

use proptest::prelude::*;
use sidegate::domain::kept::{Dropped, Found, Keep, Kept, Lease, Renewed, Wanted};
use sidegate::domain::oauth::{OAuthRequest, Tokens};
use sidegate::domain::{ElicitationId, GrantId, Outcome, Request, Timestamp};
use zeroize::Zeroizing;

use crate::sample::{client, subject};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn tokens(name: &str, scopes: &[String]) -> Tokens {
    Tokens {
        access_token: Zeroizing::new(name.to_owned()),
        token_type: "Bearer".to_owned(),
        scopes: scopes.to_vec(),
        expires_at: None,
        refresh_token: Some(Zeroizing::new(format!("r-{name}"))),
        id_token_claims: None,
        extra: serde_json::Map::new(),
        account: None,
        dpop_key: None,
        resource: None,
    }
}

fn put(kept: &mut Kept, number: u8, scopes: &[String]) {
    let request = Request::OAuth(OAuthRequest::new("p".to_owned(), scopes.to_vec(), None).unwrap());
    let outcome = Outcome::OAuth(Box::new(tokens(&number.to_string(), scopes)));
    let (keep, origin) = (Keep::new("keep", "slot", 1).unwrap(), ElicitationId::from_bytes([number; 16]));
    let unneeded = kept.put(&keep, &request, origin, &outcome, GrantId::from_bytes([number; 16]), NOW);
    assert!(unneeded.is_empty(), "what another set covers is not revoked: that could end both");
}

fn finds(kept: &Kept, scopes: &[String]) -> bool {
    matches!(kept.find("slot", Wanted::Scopes(scopes), NOW), Found::Tokens(set) if set.cover(scopes))
}

fn lease(name: u8, until: Timestamp) -> Lease {
    Lease { name: [name; 16], until }
}

proptest! {
    /// Whatever is granted after it, what was granted once can still be had.
    #[test]
    fn what_was_granted_is_never_lost(grants in prop::collection::vec(prop::collection::vec("[a-d]", 1..4), 1..6)) {
        let mut kept = Kept::new(client("weather"), subject("ada"));
        for (number, scopes) in (0..).zip(&grants) {
            put(&mut kept, number, scopes);
            for granted in &grants[..=usize::from(number)] {
                prop_assert!(finds(&kept, granted), "{granted:?} after {scopes:?}");
            }
        }
    }

    /// Of many who want to renew one has the lease, until its time is over.
    #[test]
    fn one_renews_at_a_time(names in prop::collection::vec(1_u8.., 2..10)) {
        let mut kept = Kept::new(client("weather"), subject("ada"));
        put(&mut kept, 0, &["a".to_owned()]);
        let (until, old) = (NOW + Duration::from_secs(10), tokens("0", &["a".to_owned()]));
        let won = names.iter().filter(|name| kept.lease("slot", lease(**name, until), &old, NOW)).count();
        prop_assert_eq!(won, 1);
        prop_assert_eq!(kept.renewed_until("slot", NOW), Some(until));
        let later = lease(0, until + Duration::from_secs(1));
        prop_assert!(kept.lease("slot", later, &old, until), "later another may");
    }
}

#[test]
fn what_is_dropped_while_it_is_renewed_stays_dropped() {
    let mut kept = Kept::new(client("weather"), subject("ada"));
    let scopes = ["a".to_owned()];
    put(&mut kept, 0, &scopes);
    let mine = lease(1, NOW + Duration::from_secs(10));
    assert!(kept.lease("slot", mine, &tokens("0", &scopes), NOW));
    let dropped = kept.drop_slot("slot", Dropped::ByPerson).unwrap();
    assert_eq!(dropped.len(), 1);
    assert_eq!(kept.renewed("slot", &mine, &tokens("0", &scopes), tokens("1", &scopes)), Renewed::Gone);
    assert!(!finds(&kept, &scopes) && kept.is_empty());
}

#[test]
fn a_renewal_takes_the_place_of_what_it_renews_and_of_nothing_else() {
    let mut kept = Kept::new(client("weather"), subject("ada"));
    let (one, other) = (["a".to_owned()], ["b".to_owned()]);
    put(&mut kept, 0, &one);
    put(&mut kept, 1, &other);
    let mine = lease(1, NOW + Duration::from_secs(10));
    assert!(kept.lease("slot", mine, &tokens("0", &one), NOW));
    assert_eq!(kept.renewed("slot", &mine, &tokens("0", &one), tokens("2", &one)), Renewed::Kept);
    assert!(finds(&kept, &one) && finds(&kept, &other));
    assert_eq!(kept.renewed_until("slot", NOW), None, "the lease is given up");
    // Whoever saw the old ones before that does not renew them again.
    assert!(!kept.lease("slot", lease(2, mine.until), &tokens("0", &one), NOW));
    // The one that is not renewed any more goes, and takes nothing with it.
    assert!(kept.lease("slot", mine, &tokens("2", &one), NOW));
    kept.not_renewed("slot", &mine, &tokens("2", &one), true);
    assert!(!finds(&kept, &one) && finds(&kept, &other));
}

/// What was given for one resource is no part of what is asked for another (RFC 8707).
#[test]
fn another_resource_is_asked_for_as_new() {
    let mut kept = Kept::new(client("weather"), subject("ada"));
    let wide = ["a".to_owned(), "b".to_owned()];
    let asked = |scopes: &[String], resource: Option<&str>| {
        Request::OAuth(
            OAuthRequest::new("p".to_owned(), scopes.to_vec(), resource.map(str::to_owned)).unwrap(),
        )
    };
    let of_one = Tokens { resource: Some("https://one.example/".to_owned()), ..tokens("0", &wide) };
    let keep = Keep::new("keep", "slot", 1).unwrap();
    let (origin, grant) = (ElicitationId::from_bytes([0; 16]), GrantId::from_bytes([0; 16]));
    let request = asked(&wide, Some("https://one.example/"));
    kept.put(&keep, &request, origin, &Outcome::OAuth(Box::new(of_one)), grant, NOW);
    let find = |request: &Request| match kept.find("slot", Wanted::Request(request), NOW) {
        Found::Tokens(_) => "tokens",
        Found::Again(_) => "again",
        Found::Nothing => "nothing",
        Found::Values(_) => unreachable!(),
    };
    assert_eq!(find(&request), "tokens");
    assert_eq!(find(&asked(&wide, None)), "tokens", "whoever names none takes any");
    assert_eq!(find(&asked(&["c".to_owned()], Some("https://one.example/"))), "again");
    assert_eq!(find(&asked(&wide[..1], Some("https://two.example/"))), "nothing");
}

#[test]
fn days_end_what_is_kept_and_its_tokens_are_not_needed_any_more() {
    let mut kept = Kept::new(client("weather"), subject("ada"));
    put(&mut kept, 0, &["a".to_owned()]);
    let over = NOW + Duration::from_hours(24);
    assert!(kept.settle(Timestamp::from_millis(over.millis() - 1)).is_empty());
    assert_eq!(kept.settle(over).len(), 1);
    assert!(kept.is_empty() && kept.due().is_none());
}
