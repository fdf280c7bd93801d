//! Sealed records and outcomes, and the rotation of the keys that seal them.

use proptest::prelude::*;
use sidegate::domain::secret::SecretValues;
use sidegate::domain::{Kind, Outcome};
use sidegate::vault::{Lookup, OpenError, Place, Ring};
use zeroize::Zeroizing;

use crate::sample::{client, id, key, ring, subject, terms};

const PLAIN: &[u8] = b"canary: what is sealed";

fn one_key() -> Ring {
    ring(key("one", 1), Vec::new())
}

fn outcome(value: &str) -> Outcome {
    let values = [("api_key".to_owned(), Zeroizing::new(value.to_owned()))];
    Outcome::Secret(SecretValues::from_iter(values))
}

#[test]
fn r24_what_was_sealed_for_one_place_opens_in_no_other() {
    let (ring, mine, other) = (one_key(), client("weather"), client("maps"));
    let places = [
        Place::Owner(id(1)),
        Place::Owner(id(2)),
        Place::Record(id(1), &mine, Kind::Secret),
        Place::Record(id(2), &mine, Kind::Secret),
        Place::Record(id(1), &other, Kind::Secret),
        Place::Outcome(id(1), &mine, Kind::Secret),
        Place::Outcome(id(2), &mine, Kind::Secret),
        Place::Outcome(id(1), &other, Kind::Secret),
        Place::Event,
        Place::RequestState(&mine),
        Place::RequestState(&other),
    ];
    for (sealed_at, place) in places.iter().enumerate() {
        let sealed = ring.seal(*place, PLAIN).unwrap();
        for (opened_at, other) in places.iter().enumerate() {
            let opened = ring.open(*other, &sealed).map(|plain| plain.to_vec());
            let expected = if opened_at == sealed_at { Ok(PLAIN.to_vec()) } else { Err(OpenError::Broken) };
            assert_eq!(opened, expected, "{place:?} opened as {other:?}");
        }
    }
}

#[test]
fn r24_an_outcome_moved_to_another_elicitation_or_client_does_not_open() {
    let (ring, mine) = (one_key(), client("weather"));
    let sealed = ring.seal_outcome(id(1), &mine, Kind::Secret, &outcome("s3cret")).unwrap();
    let open = |id, client| ring.open_outcome(id, client, Kind::Secret, &sealed);
    let Outcome::Secret(values) = open(id(1), &mine).unwrap() else { panic!("another kind") };
    assert_eq!(values.iter().collect::<Vec<_>>(), [("api_key", "s3cret")]);
    assert_eq!(open(id(2), &mine).unwrap_err(), OpenError::Broken);
    assert_eq!(open(id(1), &client("maps")).unwrap_err(), OpenError::Broken);
    assert_eq!(ring.open(Place::Record(id(1), &mine, Kind::Secret), &sealed).unwrap_err(), OpenError::Broken);
}

#[test]
fn r24_a_client_name_cannot_borrow_bytes_from_its_neighbour() {
    let ring = one_key();
    let (short, long) = (client("a"), client("asecret"));
    let sealed = ring.seal(Place::Record(id(1), &long, Kind::Secret), PLAIN).unwrap();
    assert!(ring.open(Place::Record(id(1), &short, Kind::Secret), &sealed).is_err());
}

proptest! {
    #[test]
    fn r24_anything_changed_or_cut_off_or_added_does_not_open(
        plain in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), bit in 0..8_u8
    ) {
        let (ring, mine) = (ring(key("one", 1), vec![key("onf", 2)]), client("weather"));
        let place = Place::Outcome(id(1), &mine, Kind::Secret);
        let sealed = ring.seal(place, &plain).unwrap();
        let opened = ring.open(place, &sealed).unwrap();
        prop_assert_eq!(&*opened, &plain);

        let at = at.index(sealed.len());
        let mut flipped = sealed.clone();
        flipped[at] ^= 1 << bit;
        prop_assert!(ring.open(place, &flipped).is_err(), "bit {} of byte {}", bit, at);
        prop_assert!(ring.open(place, &sealed[..at]).is_err(), "cut to {} bytes", at);
        let longer = [&sealed[..], &[bit]].concat();
        prop_assert!(ring.open(place, &longer).is_err());
    }

    #[test]
    fn bytes_that_nobody_sealed_do_not_open(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(one_key().open(Place::Event, &bytes).is_err());
    }

    #[test]
    fn an_outcome_is_the_same_after_it_was_sealed_and_opened(
        given in prop::collection::vec((any::<String>(), any::<String>()), 0..10)
    ) {
        let values = given.iter().map(|(name, value)| (name.clone(), Zeroizing::new(value.clone())));
        let (ring, mine) = (one_key(), client("weather"));
        let outcome = Outcome::Secret(values.collect());
        let sealed = ring.seal_outcome(id(1), &mine, Kind::Secret, &outcome).unwrap();
        let opened = ring.open_outcome(id(1), &mine, Kind::Secret, &sealed).unwrap();
        let Outcome::Secret(opened) = opened else { panic!("another kind") };
        let opened: Vec<_> = opened.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        prop_assert_eq!(opened, given);
    }
}

#[test]
fn r23_sealing_shows_nothing_and_never_gives_the_same_bytes_twice() {
    let ring = one_key();
    let (one, two) = (ring.seal(Place::Event, PLAIN).unwrap(), ring.seal(Place::Event, PLAIN).unwrap());
    assert!(!one.windows(6).any(|window| window == b"canary"));
    let tail = |sealed: &[u8]| sealed[sealed.len() - PLAIN.len() - 16..].to_vec();
    assert_ne!(tail(&one), tail(&two));
}

#[test]
fn r26_after_rotation_old_things_open_and_new_ones_use_the_new_key() {
    let old = ring(key("old", 1), Vec::new());
    let rotated = ring(key("new", 2), vec![key("old", 1)]);
    let retired = ring(key("new", 2), Vec::new());
    let sealed_before = old.seal(Place::Event, PLAIN).unwrap();
    let sealed_after = rotated.seal(Place::Event, PLAIN).unwrap();
    assert_eq!(&**rotated.open(Place::Event, &sealed_before).unwrap(), PLAIN);
    assert_eq!(&**retired.open(Place::Event, &sealed_after).unwrap(), PLAIN);
    assert_eq!(old.open(Place::Event, &sealed_after), Err(OpenError::UnknownKey("new".to_owned())));
}

#[test]
fn r26_what_a_removed_key_sealed_stays_shut_with_a_sentence_that_names_the_key() {
    let sealed = ring(key("2026-01", 1), Vec::new()).seal(Place::Event, PLAIN).unwrap();
    let error = ring(key("2026-07", 2), Vec::new()).open(Place::Event, &sealed).unwrap_err();
    assert_eq!(error, OpenError::UnknownKey("2026-01".to_owned()));
    assert_eq!(
        error.to_string(),
        "sealed under key `2026-01`, which is not in the key ring; put it back into the key file"
    );
}

#[test]
fn r26_a_key_of_the_same_name_but_with_other_bits_does_not_open() {
    let sealed = one_key().seal(Place::Event, PLAIN).unwrap();
    assert_eq!(ring(key("one", 2), Vec::new()).open(Place::Event, &sealed), Err(OpenError::Broken));
}

#[test]
fn r26_an_entry_filed_under_an_old_key_is_still_among_the_tags_to_look_under() {
    let binding = terms().binding();
    let lookup = Lookup::Binding(&binding);
    let filed = ring(key("old", 1), Vec::new()).tag(lookup);
    let rotated = ring(key("new", 2), vec![key("old", 1)]);
    let tags: Vec<_> = rotated.tags(lookup).collect();
    assert_eq!(tags, [rotated.tag(lookup), filed]);
    assert_ne!(tags[0], filed);
}

#[test]
fn tags_of_different_purposes_or_parts_never_meet() {
    let (ring, mine, other) = (one_key(), client("ab"), client("a"));
    let binding = terms().binding();
    let (joined, split) = (subject("bc"), subject("c"));
    let tags = [
        ring.tag(Lookup::Binding(&binding)),
        ring.tag(Lookup::Attempt(&binding, &[0; 32])),
        ring.tag(Lookup::Attempt(&binding, &[1; 32])),
        ring.tag(Lookup::Idempotency(&mine, "c")),
        ring.tag(Lookup::Idempotency(&other, "bc")),
        ring.tag(Lookup::ClientQuota(&mine)),
        ring.tag(Lookup::ClientQuota(&other)),
        ring.tag(Lookup::SubjectQuota(&mine, &split)),
        ring.tag(Lookup::SubjectQuota(&other, &joined)),
        ring.tag(Lookup::SubjectQuota(&client("weather"), &joined)),
        ring.tag(Lookup::SubjectQuota(&client("weather"), &split)),
    ];
    for (at, tag) in tags.iter().enumerate() {
        assert!(!tags[..at].contains(tag), "number {at}");
    }
}

#[test]
fn a_printed_ring_shows_names_of_keys_and_nothing_else() {
    assert_eq!(format!("{:?}", ring(key("new", 2), vec![key("old", 1)])), r#"["new", "old"]"#);
}
