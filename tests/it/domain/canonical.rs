//! Canonical JSON (RFC 8785) and the operation digest made of it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sidegate::domain::Digest;
use sidegate::domain::operation::{Identified, NotCanonical, canonical_json, digest_of};

/// RFC 8785, appendix B: the bits of a double and its canonical text.
const NUMBERS: [(u64, &str); 24] = [
    (0x0000_0000_0000_0000, "0"),
    (0x8000_0000_0000_0000, "0"),
    (0x0000_0000_0000_0001, "5e-324"),
    (0x8000_0000_0000_0001, "-5e-324"),
    (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
    (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
    (0x4340_0000_0000_0000, "9007199254740992"),
    (0xc340_0000_0000_0000, "-9007199254740992"),
    (0x4430_0000_0000_0000, "295147905179352830000"),
    (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
    (0x44b5_2d02_c7e1_4af6, "1e+23"),
    (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
    (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
    (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
    (0x444b_1ae4_d6e2_ef50, "1e+21"),
    (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
    (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
    (0x41b3_de43_5555_5553, "333333333.3333332"),
    (0x41b3_de43_5555_5554, "333333333.33333325"),
    (0x41b3_de43_5555_5555, "333333333.3333333"),
    (0x41b3_de43_5555_5556, "333333333.3333334"),
    (0x41b3_de43_5555_5557, "333333333.33333343"),
    (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
];

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn canonical(value: &Value) -> String {
    String::from_utf8(canonical_json(value).unwrap()).unwrap()
}

fn digest(arguments: &str) -> Digest {
    Digest::of("tools/call:x", Some(&parse(arguments)), None).unwrap()
}

#[test]
fn numbers_are_written_as_in_appendix_b_of_rfc_8785() {
    for (bits, text) in NUMBERS {
        let written = canonical_json(&f64::from_bits(bits)).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text, "{bits:016x}");
    }
}

#[test]
fn numbers_of_appendix_b_survive_being_read_from_text() {
    for (bits, text) in NUMBERS {
        assert_eq!(canonical(&parse(text)), text, "{bits:016x}");
    }
}

#[test]
fn what_is_no_number_in_json_has_no_canonical_form() {
    for value in
        [f64::from_bits(0x7fff_ffff_ffff_ffff), f64::from_bits(0x7ff0_0000_0000_0000), f64::NEG_INFINITY]
    {
        assert_eq!(canonical_json(&value), Err(NotCanonical), "{value}");
        assert_eq!(serde_json::Number::from_f64(value), None);
    }
    assert!(serde_json::from_str::<Value>("[1e400]").is_err());
}

#[test]
fn whole_numbers_are_doubles_too() {
    assert_eq!(canonical(&parse("9007199254740993")), "9007199254740992");
    assert_eq!(canonical(&parse("18446744073709551615")), "18446744073709552000");
    assert_eq!(canonical(&parse("-9223372036854775808")), "-9223372036854776000");
    assert_eq!(canonical(&parse("-0")), "0");
    assert_eq!(canonical(&parse("-0.0")), "0");
}

#[test]
fn the_example_of_section_3_2_2_comes_out_as_printed_there() {
    let input = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let output = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(canonical(&parse(input)), output);
}

#[test]
fn the_keys_of_section_3_2_3_are_sorted_by_utf_16() {
    let input = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let output = canonical(&parse(input));
    let mut rest = output.as_str();
    for value in ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"] {
        let at = rest.find(value).unwrap_or_else(|| panic!("{value} is not next in {output}"));
        rest = &rest[at..];
    }
    assert!(output.starts_with(r#"{"\r":"Carriage Return","1":"One","#) && output.contains("\"\u{80}\""));
}

#[test]
fn control_characters_are_escaped_the_one_way_that_the_rfc_allows() {
    let all: String = (0..0x20_u8).map(char::from).chain(['"', '\\', '/', '\u{7f}', '\u{2028}']).collect();
    let expected = [
        r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#,
        r"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f",
        r#"\"\\/"#,
        "\u{7f}\u{2028}\"",
    ];
    assert_eq!(canonical(&Value::String(all)), expected.concat());
}

#[test]
fn unicode_is_not_normalised() {
    assert_eq!(canonical(&json!(["A\u{30a}", "\u{c5}"])), "[\"A\u{30a}\",\"\u{c5}\"]");
    assert_ne!(digest(r#"{"city": "A\u030angstrom"}"#), digest(r#"{"city": "\u00c5ngstrom"}"#));
}

#[test]
fn r07_the_digest_is_the_same_for_every_spelling_of_the_same_arguments() {
    let plain = digest(r#"{"amount":1,"city":"Oslo","deep":{"a":[1,2],"b":null}}"#);
    for other in [
        "{ \"city\" : \"Oslo\",\n\t\"deep\": {\"b\":null,\"a\":[ 1 , 2 ]}, \"amount\":1 }",
        r#"{"amount":1.0,"city":"Oslo","deep":{"a":[1.0,2e0],"b":null}}"#,
        r#"{"amount":10E-1,"city":"\u004fsl\u006F","deep":{"a":[1,0.2e1],"\u0062":null}}"#,
    ] {
        assert_eq!(digest(other), plain, "{other}");
    }
}

#[test]
fn r07_the_digest_differs_for_every_other_name_arguments_or_id() {
    let arguments = json!({"a": 1});
    let of = |name, arguments, id| Digest::of(name, arguments, id).unwrap().to_string();
    let all = [
        of("x", Some(&arguments), Some("1")),
        of("y", Some(&arguments), Some("1")),
        of("X", Some(&arguments), Some("1")),
        of("x", Some(&json!({"a": "1"})), Some("1")),
        of("x", Some(&json!({"a": [1]})), Some("1")),
        of("x", Some(&json!({"a": 1, "b": null})), Some("1")),
        of("x", Some(&json!({})), Some("1")),
        of("x", Some(&Value::Null), Some("1")),
        of("x", None, Some("1")),
        of("x", Some(&arguments), Some("2")),
        of("x", Some(&arguments), Some("")),
        of("x", Some(&arguments), None),
        of("x", None, None),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "number {at}");
    }
}

#[test]
fn the_digest_is_sha_256_over_the_canonical_json_of_name_arguments_and_id() {
    // printf '%s' '{"arguments":{"city":"Oslo"},"id":"7","name":"tools/call:forecast"}' | sha256sum
    let digest = Digest::of("tools/call:forecast", Some(&json!({"city": "Oslo"})), Some("7")).unwrap();
    assert_eq!(digest.to_string(), "sha256:7762718604b91c269b0a8e6242b1f930487af9d10bb3a7d6318825609b60b03a");
    let given = digest_of("tools/call:forecast", Identified::Digest(&digest.to_string())).unwrap();
    assert_eq!(given, digest);
}

#[test]
fn a_malformed_digest_is_refused_by_name_and_never_repeated() {
    let right = "0123456789abcdef".repeat(4);
    for text in [
        String::new(),
        "sha256:".to_owned(),
        format!("sha256:{}", &right[1..]),
        format!("sha256:{right}0"),
        format!("sha256:{}", right.to_uppercase()),
        format!("SHA256:{right}"),
        format!("sha512:{right}"),
        format!("sha256:{} ", &right[1..]),
        format!("sha256:sha256:{right}"),
    ] {
        let error = digest_of("tools/call:x", Identified::Digest(&text)).map_err(|error| error.to_string());
        let expected = "operation.digest must be `sha256:` and 64 lower-case hexadecimal digits";
        assert_eq!(error, Err(expected.to_owned()), "{text}");
    }
}

/// Any JSON value, some levels deep.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::hash_map(any::<String>(), inner, 0..5)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_json_is_its_own_canonical_form(value in value()) {
        let once = canonical(&value);
        prop_assert_eq!(canonical(&parse(&once)), once);
    }

    #[test]
    fn r07_white_space_between_the_parts_makes_no_difference(value in value()) {
        let spread = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(digest(&spread), Digest::of("tools/call:x", Some(&value), None).unwrap());
    }
}
