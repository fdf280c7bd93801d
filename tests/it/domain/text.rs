//! Text that a client supplies and a person reads.

use proptest::prelude::*;
use sidegate::domain::text::{Shape, plain};

const LINE: Shape = Shape { longest: 40, lines: false };
const LINES: Shape = Shape { longest: 40, lines: true };

/// Unicode's `Bidi_Control` property, all twelve.
const BIDI: [char; 12] = [
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

fn shown(text: &str, shape: Shape) -> Result<String, String> {
    plain("message", text, shape).map_err(|error| error.to_string())
}

#[test]
fn r29_every_bidirectional_control_is_stripped() {
    for control in BIDI {
        let text = format!("{control}pay {control}{control}10{control} EUR{control}");
        assert_eq!(shown(&text, LINE).unwrap(), "pay 10 EUR", "U+{:04X}", u32::from(control));
    }
}

#[test]
fn r29_white_space_hidden_behind_a_bidirectional_control_is_stripped_too() {
    assert_eq!(shown("\u{202e} \u{2066}  key\u{2069} \u{200f}", LINE).unwrap(), "key");
}

#[test]
fn a_text_of_nothing_that_can_be_seen_is_refused() {
    for text in [
        "",
        "  \t\n ",
        "\u{202e}\u{202c}",
        " \u{200f} ",
        "\u{2800} \u{2800}",
        "\u{3164}\u{115f}\u{1160}\u{ffa0}",
    ] {
        assert_eq!(shown(text, LINES).unwrap_err(), "message must not be empty", "{text:?}");
    }
}

#[test]
fn control_characters_are_refused_and_line_breaks_only_where_there_are_lines() {
    for control in ['\0', '\u{1b}', '\u{7}', '\u{7f}', '\u{9b}', '\t', '\r', '\u{2028}', '\u{2029}'] {
        let text = format!("a{control}b");
        for shape in [LINE, LINES] {
            assert_eq!(shown(&text, shape).unwrap_err(), "message must not contain control characters");
        }
    }
    assert!(shown("a\nb", LINE).is_err());
    assert_eq!(shown("a\nb\r\nc", LINES).unwrap(), "a\nb\nc");
}

#[test]
fn length_is_counted_in_characters_after_stripping() {
    let longest = "é".repeat(40);
    assert_eq!(shown(&format!("  \u{202e}{longest} "), LINE).unwrap(), longest);
    assert_eq!(shown(&format!("{longest}é"), LINE).unwrap_err(), "message must have at most 40 characters");
}

proptest! {
    #[test]
    fn r29_what_is_shown_has_no_control_character_and_is_as_short_as_asked(
        text in prop::collection::vec(prop_oneof![any::<char>(), prop::sample::select(BIDI.to_vec())], 0..60)
    ) {
        let text: String = text.into_iter().collect();
        if let Ok(kept) = plain("message", &text, LINES) {
            prop_assert!(!kept.contains(|c: char| BIDI.contains(&c) || (c.is_control() && c != '\n')));
            prop_assert!(!kept.is_empty() && kept.chars().count() <= 40 && kept.trim() == kept);
            prop_assert_eq!(plain("message", &kept, LINES).unwrap(), kept);
        }
    }

    #[test]
    fn a_refusal_never_repeats_the_text(text in "[\u{0}-\u{7}]?canary[a-z]{40,60}") {
        prop_assert!(!shown(&text, LINE).unwrap_err().contains("canary"));
    }
}
