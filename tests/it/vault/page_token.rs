//! The token that a page's form carries: for one render of one elicitation's page in one session.

use proptest::prelude::*;
use sidegate::vault::Ring;

use crate::sample::{id, key, ring};

fn one_key() -> Ring {
    ring(key("one", 1), Vec::new())
}

#[test]
fn r28_a_token_holds_for_its_own_render_elicitation_and_session() {
    let token = one_key().page_token(&[1; 32], id(1).as_bytes(), "render");
    assert!(one_key().page_token_holds(&token, &[1; 32], id(1).as_bytes(), "render"));
    assert_eq!(token.len(), 43);
}

#[test]
fn r28_a_token_of_another_session_render_or_elicitation_is_refused() {
    let ring = one_key();
    let token = ring.page_token(&[1; 32], id(1).as_bytes(), "render");
    assert!(!ring.page_token_holds(&token, &[2; 32], id(1).as_bytes(), "render"), "session");
    assert!(!ring.page_token_holds(&token, &[1; 32], id(2).as_bytes(), "render"), "elicitation");
    for render in ["Render", "rende", "renders", ""] {
        assert!(!ring.page_token_holds(&token, &[1; 32], id(1).as_bytes(), render), "render {render}");
    }
}

#[test]
fn r28_a_token_made_with_another_key_is_refused() {
    let forged = ring(key("one", 2), Vec::new()).page_token(&[1; 32], id(1).as_bytes(), "render");
    assert!(!one_key().page_token_holds(&forged, &[1; 32], id(1).as_bytes(), "render"));
}

#[test]
fn r26_a_page_shown_before_rotation_can_still_be_submitted() {
    let token = one_key().page_token(&[1; 32], id(1).as_bytes(), "render");
    let rotated = ring(key("two", 2), vec![key("one", 1)]);
    assert!(rotated.page_token_holds(&token, &[1; 32], id(1).as_bytes(), "render"));
    assert!(!ring(key("two", 2), Vec::new()).page_token_holds(&token, &[1; 32], id(1).as_bytes(), "render"));
}

#[test]
fn every_render_has_a_name_of_its_own() {
    let ring = one_key();
    let (one, two) = (ring.fresh_render(), ring.fresh_render());
    assert_ne!(one, two);
    assert_eq!(one.len(), 22);
}

proptest! {
    #[test]
    fn r28_a_token_that_is_changed_cut_or_made_up_is_refused(
        at in 0_usize..43, put in "[A-Za-z0-9_-]", made_up in "[A-Za-z0-9_=-]{0,50}"
    ) {
        let ring = one_key();
        let token = ring.page_token(&[1; 32], id(1).as_bytes(), "render");
        let holds = |token: &str| ring.page_token_holds(token, &[1; 32], id(1).as_bytes(), "render");
        let changed = format!("{}{put}{}", &token[..at], &token[at + 1..]);
        prop_assert_eq!(holds(&changed), changed == token);
        prop_assert!(!holds(&token[..at]) && !holds(&made_up));
    }
}
