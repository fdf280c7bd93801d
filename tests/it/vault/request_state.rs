//! The request state that an MCP client carries from round to round.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use sidegate::domain::{Binding, Digest, Timestamp};
use sidegate::vault::{RequestState, Ring};

use crate::sample::{START, client, id, key, ring, subject, terms};

fn one_key() -> Ring {
    ring(key("one", 1), Vec::new())
}

fn state() -> RequestState {
    let expires_at = START + Duration::from_mins(10);
    RequestState { id: id(7), round: 3, issued_at: START, expires_at }
}

fn sealed(ring: &Ring) -> String {
    ring.seal_request_state(&state(), &terms().binding()).unwrap()
}

fn opened(text: &str, binding: &Binding, now: Timestamp) -> Option<RequestState> {
    one_key().open_request_state(text, binding, now)
}

#[test]
fn a_request_state_comes_back_as_it_was_sealed() {
    assert_eq!(opened(&sealed(&one_key()), &terms().binding(), START), Some(state()));
}

#[test]
fn r01_a_request_state_has_at_most_512_bytes_for_the_longest_names() {
    let longest = "n".repeat(64);
    let ring = ring(key(&longest, 1), Vec::new());
    let binding =
        Binding { client: client(&longest), subject: subject(&"s".repeat(2048)), ..terms().binding() };
    let text = ring.seal_request_state(&state(), &binding).unwrap();
    assert!(text.len() <= 512, "{} bytes", text.len());
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
    assert_eq!(ring.open_request_state(&text, &binding, START), Some(state()));
}

#[test]
fn r01_a_request_state_holds_nothing_of_subject_or_operation_or_elicitation() {
    let (binding, text) = (terms().binding(), sealed(&one_key()));
    let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix("sg1.").unwrap()).unwrap();
    let tells = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    for part in ["user-1", "idp.example", "weather", "tools/call", "forecast"] {
        assert!(!text.contains(part) && !tells(part.as_bytes()), "{part}");
    }
    assert!(!tells(binding.digest.as_bytes()) && !tells(id(7).as_bytes()));
    // Equal bindings cannot be recognised either.
    assert_ne!(sealed(&one_key())[20..], text[20..]);
}

#[test]
fn r07_a_request_state_of_another_client_subject_or_operation_does_not_open() {
    let (right, text) = (terms().binding(), sealed(&one_key()));
    let digest = Digest::of("tools/call:transfer", None, None).unwrap();
    for (what, binding) in [
        ("client", Binding { client: client("maps"), ..right.clone() }),
        ("subject", Binding { subject: subject("user-2"), ..right.clone() }),
        ("operation", Binding { digest, ..right.clone() }),
    ] {
        assert_eq!(opened(&text, &binding, START), None, "other {what}");
    }
}

#[test]
fn r07_a_request_state_opens_until_it_expires_and_not_then() {
    let (binding, text) = (terms().binding(), sealed(&one_key()));
    let end = state().expires_at;
    assert!(opened(&text, &binding, Timestamp::from_millis(end.millis() - 1)).is_some());
    assert_eq!(opened(&text, &binding, end), None);
    assert_eq!(opened(&text, &binding, end + Duration::from_hours(1000)), None);
}

#[test]
fn r26_a_request_state_opens_after_rotation_until_its_key_is_removed() {
    let text = sealed(&one_key());
    let rotated = ring(key("two", 2), vec![key("one", 1)]);
    assert_eq!(rotated.open_request_state(&text, &terms().binding(), START), Some(state()));
    let retired = ring(key("two", 2), Vec::new());
    assert_eq!(retired.open_request_state(&text, &terms().binding(), START), None);
}

#[test]
fn a_request_state_sealed_under_a_key_of_the_same_name_is_forged() {
    let forged = sealed(&ring(key("one", 9), Vec::new()));
    assert_eq!(opened(&forged, &terms().binding(), START), None);
}

#[test]
fn there_is_one_version_and_one_spelling() {
    let (binding, text) = (terms().binding(), sealed(&one_key()));
    let body = text.strip_prefix("sg1.").unwrap();
    for other in [
        body.to_owned(),
        format!("sg2.{body}"),
        format!("SG1.{body}"),
        format!(" {text}"),
        format!("{text}\n"),
        format!("{text}="),
        format!("{text}{}", "A".repeat(512)),
        String::new(),
        "sg1.".to_owned(),
    ] {
        assert_eq!(opened(&other, &binding, START), None, "{other}");
    }
}

proptest! {
    #[test]
    fn r07_a_request_state_with_any_character_changed_or_cut_off_does_not_open(
        at in any::<prop::sample::Index>(), put in "[A-Za-z0-9_-]"
    ) {
        let (binding, text) = (terms().binding(), sealed(&one_key()));
        let at = at.index(text.len());
        prop_assert_eq!(opened(&text[..at], &binding, START), None);
        let changed = format!("{}{put}{}", &text[..at], &text[at + 1..]);
        prop_assume!(changed != text);
        prop_assert_eq!(opened(&changed, &binding, START), None, "character {}", at);
    }

    #[test]
    fn any_text_at_all_may_come_as_a_request_state(text in "(sg1\\.)?\\PC{0,600}") {
        prop_assert_eq!(opened(&text, &terms().binding(), START), None);
    }
}
