//! The kind `secret`: what may be asked and what is accepted.

use proptest::prelude::*;
use sidegate::domain::secret::{Accepted, FieldError, FieldSpec, Format, Problem, SecretRequest};

fn field(format: Format) -> FieldSpec {
    FieldSpec { name: "key".into(), label: "Key".into(), format, ..FieldSpec::default() }
}

fn accept(spec: FieldSpec, entered: &str) -> Result<Accepted, Vec<FieldError>> {
    SecretRequest::new(vec![spec]).unwrap().accept(|_| Some(entered))
}

/// The one value that was accepted, and whether it was trimmed; or what is wrong with it.
fn entered(spec: FieldSpec, text: &str) -> Result<Option<(String, bool)>, Problem> {
    let accepted = accept(spec, text).map_err(|errors| errors[0].problem)?;
    let trimmed = accepted.trimmed == ["key"];
    Ok(accepted.values.iter().next().map(|(_, value)| (value.to_owned(), trimmed)))
}

/// The value as it was entered.
fn kept(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

const ONE_LINE: [Format; 2] = [Format::Password, Format::Text];

proptest! {
    #[test]
    fn a_control_character_in_a_single_line_is_refused(
        before in "[a-z]{1,8}", control in "[\\x00-\\x1f\\x7f-\\u{9f}]", after in "[a-z]{1,8}"
    ) {
        for format in ONE_LINE {
            let text = format!("{before}{control}{after}");
            prop_assert_eq!(entered(field(format), &text), Err(Problem::ControlCharacter));
        }
    }

    #[test]
    fn white_space_around_a_single_line_is_removed_and_reported(
        before in "[ \t\n\r\u{a0}\u{2003}]{0,4}", value in "[!-~]([ -~é]{0,30}[!-~])?", after in "[ \t\n\r\u{a0}]{0,4}"
    ) {
        for format in ONE_LINE {
            let text = format!("{before}{value}{after}");
            let expected = Some((value.clone(), text != value));
            prop_assert_eq!(entered(field(format), &text), Ok(expected));
        }
    }

    #[test]
    fn a_multiline_value_keeps_its_white_space_and_gets_plain_line_breaks(
        lines in prop::collection::vec("[ -~]{0,12}", 1..6)
    ) {
        prop_assume!(lines.iter().any(|line| !line.trim().is_empty()));
        let expected = Ok(Some(kept(&lines.join("\n"))));
        prop_assert_eq!(&entered(field(Format::Multiline), &lines.join("\r\n")), &expected);
        prop_assert_eq!(&entered(field(Format::Multiline), &lines.join("\n")), &expected);
    }

    #[test]
    fn what_a_paste_leaves_around_a_single_line_is_removed_and_reported(
        before in "[\u{feff}\u{200b}\u{2060} ]{1,4}", value in "[!-~]{1,20}", after in "[\u{200b} ]{0,4}"
    ) {
        for format in ONE_LINE {
            let text = format!("{before}{value}{after}");
            prop_assert_eq!(entered(field(format), &text), Ok(Some((value.clone(), true))));
        }
    }

    #[test]
    fn a_multiline_value_may_be_indented_with_tabs_and_has_no_other_control_character(
        before in "[a-z]{1,8}", control in "[\\x00-\\x08\x0b-\x1f\x7f-\u{9f}]"
    ) {
        prop_assert_eq!(
            entered(field(Format::Multiline), "{\n\t\"key\": 1\n}"),
            Ok(Some(kept("{\n\t\"key\": 1\n}")))
        );
        let text = format!("{before}{control}z");
        prop_assert_eq!(entered(field(Format::Multiline), &text), Err(Problem::ControlCharacter));
    }

    #[test]
    fn length_is_counted_in_characters_and_both_ends_are_allowed(length in 1_usize..12) {
        let spec = FieldSpec { min_length: Some(4), max_length: Some(8), ..field(Format::Text) };
        let text = "ß".repeat(length);
        let expected = match length {
            ..4 => Err(Problem::TooShort(4)),
            4..=8 => Ok(Some(kept(&text))),
            _ => Err(Problem::TooLong(8)),
        };
        prop_assert_eq!(entered(spec, &text), expected);
    }

    #[test]
    fn a_pattern_matches_the_whole_value_or_not_at_all(before in "[a-z]{0,2}", after in "[a-z]{0,2}") {
        for pattern in ["[0-9]{4}", "12|1234", "1234|9"] {
            let spec = FieldSpec { pattern: Some(pattern.to_owned()), ..field(Format::Text) };
            let text = format!("{before}1234{after}");
            let whole = before.is_empty() && after.is_empty();
            prop_assert_eq!(entered(spec, &text), if whole { Ok(Some(kept("1234"))) } else { Err(Problem::Pattern) });
        }
    }

    #[test]
    fn an_error_and_a_debug_print_never_show_the_value(value in "canary[a-z]{20,60}") {
        let strict = FieldSpec { max_length: Some(20), ..field(Format::Text) };
        let shown = format!("{:?} {:?}", accept(strict, &value), accept(field(Format::Text), &value));
        prop_assert!(!shown.contains("canary"));
    }
}

#[test]
fn a_pattern_is_not_satisfied_by_one_line_of_several() {
    let spec = FieldSpec { pattern: Some("[0-9]+".to_owned()), ..field(Format::Multiline) };
    assert_eq!(entered(spec.clone(), "123\nx"), Err(Problem::Pattern));
    assert_eq!(entered(spec.clone(), "x\n123"), Err(Problem::Pattern));
    assert_eq!(entered(spec, "123\n"), Err(Problem::Pattern));
    let many = FieldSpec { pattern: Some("(?m)^[0-9]+$".to_owned()), ..field(Format::Multiline) };
    assert_eq!(entered(many, "123\nx"), Err(Problem::Pattern));
}

#[test]
fn a_line_break_and_a_tab_are_the_only_control_characters_of_a_multiline_value() {
    for text in ["a\rb", "a\0b", "a\u{85}b", "a\n\rb"] {
        assert_eq!(entered(field(Format::Multiline), text), Err(Problem::ControlCharacter), "{text:?}");
    }
}

#[test]
fn a_required_value_must_be_there_and_an_optional_one_may_be_left_out() {
    for format in [Format::Password, Format::Text, Format::Multiline] {
        for text in ["", "  ", " \r\n\t "] {
            assert_eq!(entered(field(format), text), Err(Problem::Missing), "{format:?} {text:?}");
            let optional = FieldSpec { required: Some(false), min_length: Some(4), ..field(format) };
            assert_eq!(entered(optional, text), Ok(None), "{format:?} {text:?}");
        }
    }
    let absent = SecretRequest::new(vec![field(Format::Text)]).unwrap().accept(|_| None);
    assert_eq!(absent.unwrap_err()[0].problem, Problem::Missing);
}

#[test]
fn every_field_that_is_wrong_is_reported_in_order() {
    let named = |name: &str| FieldSpec { name: name.into(), ..field(Format::Text) };
    let form = SecretRequest::new(vec![named("a"), named("b"), named("c")]).unwrap();
    let errors = form.accept(|name| (name == "b").then_some("fine")).unwrap_err();
    assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

#[test]
fn a_form_that_cannot_be_shown_or_checked_is_refused_by_the_path_of_its_field() {
    let with = |change: fn(&mut FieldSpec)| {
        let mut spec = field(Format::Text);
        change(&mut spec);
        vec![FieldSpec { name: "first".into(), ..field(Format::Text) }, spec]
    };
    for (specs, path) in [
        (Vec::new(), "secret.fields"),
        (vec![field(Format::Text); 11], "secret.fields"),
        (with(|spec| spec.name = "first".into()), "secret.fields[1].name"),
        (with(|spec| spec.name = "1st".into()), "secret.fields[1].name"),
        (with(|spec| spec.name = "a b".into()), "secret.fields[1].name"),
        (with(|spec| spec.name = "é".into()), "secret.fields[1].name"),
        (with(|spec| spec.label = "\u{202e}".into()), "secret.fields[1].label"),
        (with(|spec| spec.help = Some(String::new())), "secret.fields[1].help"),
        (with(|spec| spec.max_length = Some(0)), "secret.fields[1].maxLength"),
        (with(|spec| spec.max_length = Some(32_769)), "secret.fields[1].maxLength"),
        (with(|spec| spec.max_length = Some(u64::MAX)), "secret.fields[1].maxLength"),
        (with(|spec| (spec.min_length, spec.max_length) = (Some(9), Some(8))), "secret.fields[1].minLength"),
        (with(|spec| spec.pattern = Some("(".into())), "secret.fields[1].pattern"),
        (with(|spec| spec.pattern = Some("a)|(b".into())), "secret.fields[1].pattern"),
        (with(|spec| spec.pattern = Some("(?=a)".into())), "secret.fields[1].pattern"),
        (with(|spec| spec.pattern = Some("x".repeat(513))), "secret.fields[1].pattern"),
        (with(|spec| spec.pattern = Some("((a{99}){99}){99}".into())), "secret.fields[1].pattern"),
    ] {
        assert_eq!(SecretRequest::new(specs).unwrap_err().field, path);
    }
    assert!(SecretRequest::new(with(|spec| spec.max_length = Some(32_768))).is_ok());
}
