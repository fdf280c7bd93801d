//! Amounts of money: no minor unit is ever lost, and none comes of nothing.

use proptest::prelude::*;
use sidegate::domain::money::{Currency, Money};

/// Any currency of the table.
fn currency() -> impl Strategy<Value = Currency> {
    prop::sample::select(Currency::all().collect::<Vec<_>>())
}

/// Small ones, large ones, and those at the edges of what a unit of another size can hold.
fn amount() -> impl Strategy<Value = u64> {
    let edges = [
        0,
        1,
        9,
        10,
        99,
        100,
        999,
        1000,
        99_999_999,
        u64::MAX / 1000,
        u64::MAX / 100,
        u64::MAX - 1,
        u64::MAX,
    ];
    prop_oneof![prop::sample::select(edges.to_vec()), 0_u64..1_000_000, any::<u64>()]
}

proptest! {
    #[test]
    fn an_amount_survives_being_written_as_a_decimal(amount in amount(), currency in currency()) {
        let money = Money { amount, currency };
        let text = money.to_decimal(currency.decimals()).unwrap();
        prop_assert_eq!(Money::from_decimal(&text, currency), Some(money), "{}", text);
        let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        prop_assert_eq!(fraction, usize::from(currency.decimals()), "{}", text);
        // Not by way of a float, which would lose the last digits of large ones.
        prop_assert_eq!(text.replace('.', "").parse(), Ok(amount), "{}", text);
    }

    #[test]
    fn other_units_hold_the_same_amount_or_are_refused(amount in amount(), currency in currency(), decimals in 0_u8..=6) {
        let money = Money { amount, currency };
        let own = currency.decimals();
        let exact = if decimals >= own {
            u128::from(amount) * 10_u128.pow(u32::from(decimals - own))
        } else {
            let by = 10_u128.pow(u32::from(own - decimals));
            if u128::from(amount) % by == 0 { u128::from(amount) / by } else { u128::MAX }
        };
        let expected = u64::try_from(exact).ok();
        prop_assert_eq!(money.in_units_of(decimals), expected);
        if let Some(units) = expected {
            prop_assert_eq!(Money::from_units(units, decimals, currency), Some(money));
        }
    }

    #[test]
    fn more_decimals_than_the_currency_has_must_be_zeros(
        amount in amount(), currency in currency(), zeros in 0_usize..=4, last in 1_u8..=9,
    ) {
        let money = Money { amount, currency };
        let text = money.to_decimal(currency.decimals()).unwrap();
        let dot = if text.contains('.') || zeros == 0 { "" } else { "." };
        let longer = format!("{text}{dot}{}", "0".repeat(zeros));
        // So many digits that a whole number of 64 bits holds them no more are no amount that anybody pays.
        if amount.checked_mul(10_u64.pow(u32::try_from(zeros).unwrap())).is_some() {
            prop_assert_eq!(Money::from_decimal(&longer, currency), Some(money), "{}", longer);
        }
        let dot = if longer.contains('.') { "" } else { "." };
        let finer = format!("{longer}{dot}{last}");
        prop_assert_eq!(Money::from_decimal(&finer, currency), None, "{}", finer);
    }

    #[test]
    fn what_is_no_decimal_number_is_no_amount(text in "[-+0-9., eE_x]{0,8}", currency in currency()) {
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !(digits(whole) && digits(fraction)) {
            prop_assert_eq!(Money::from_decimal(&text, currency), None, "{:?}", text);
        }
    }

    #[test]
    fn people_read_every_digit_of_an_amount_and_its_currency(amount in amount(), currency in currency()) {
        let money = Money { amount, currency };
        let shown = money.to_string();
        let start = shown.find(|c: char| c.is_ascii_digit()).unwrap();
        let (sign, number) = shown.split_at(start);
        prop_assert_eq!(number.replace(',', ""), money.to_decimal(currency.decimals()).unwrap());
        let whole = number.split('.').next().unwrap();
        for (index, group) in whole.split(',').enumerate() {
            prop_assert!(if index == 0 { (1..=3).contains(&group.len()) } else { group.len() == 3 }, "{}", shown);
        }
        prop_assert!(!sign.trim_end_matches('\u{a0}').is_empty(), "{}", shown);
    }
}

#[test]
fn each_currency_has_its_own_code_and_its_own_sign() {
    let all: Vec<Currency> = Currency::all().collect();
    let mut signs = std::collections::BTreeSet::new();
    for currency in &all {
        assert_eq!(currency.code().len(), 3);
        assert!(currency.code().bytes().all(|byte| byte.is_ascii_uppercase()), "{}", currency.code());
        for written in [currency.code().to_owned(), currency.code().to_ascii_lowercase()] {
            assert_eq!(written.parse::<Currency>().unwrap(), *currency);
        }
        let shown = Money { amount: 1, currency: *currency }.to_string();
        let sign = shown.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        assert!(signs.insert(sign.to_owned()), "two currencies are written {sign}");
    }
    let sorted = all.windows(2).all(|pair| pair[0].code() < pair[1].code());
    assert!(sorted, "the table is in the order of the codes, none twice");
}

/// The minor units of ISO 4217 that are not the usual two, so that a slip in the table is seen.
#[test]
fn the_currencies_without_cents_are_those_of_the_standard() {
    let with = |decimals| {
        let found = Currency::all().filter(move |currency| currency.decimals() == decimals);
        found.map(Currency::code).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(with(0), "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",);
    assert_eq!(with(3), "BHD IQD JOD KWD LYD OMR TND");
    assert!(Currency::all().all(|currency| matches!(currency.decimals(), 0 | 2 | 3)));
    for none in ["", "us", "usdd", "XXX", "XTS", "XAU", "u\u{15b}d", "US ", " USD", "\u{20ac}"] {
        assert!(none.parse::<Currency>().is_err(), "{none:?}");
    }
}
