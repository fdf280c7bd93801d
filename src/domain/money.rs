//! Amounts of money: a whole number of the currency's minor unit, and the currency (ISO 4217).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount in a currency's minor unit: 1999 of USD is 19.99 dollars, 500 of JPY is 500 yen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    /// How many minor units.
    pub amount: u64,
    /// Of which currency.
    pub currency: Currency,
}

/// A currency of ISO 4217 in which people pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency(&'static Row);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Row {
    code: &'static str,
    decimals: u8,
    /// What stands before the amount instead of the code, where that is one currency's alone.
    sign: &'static str,
}

impl Currency {
    /// Every currency in which can be paid.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(Self)
    }

    /// Three capital letters.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.0.code
    }

    /// How many decimals the minor unit has (ISO 4217): 2 for USD, 0 for JPY, 3 for KWD.
    #[must_use]
    pub const fn decimals(self) -> u8 {
        self.0.decimals
    }
}

/// No currency of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no currency of ISO 4217")]
pub struct UnknownCurrency;

impl FromStr for Currency {
    type Err = UnknownCurrency;

    /// A code, in capitals or not.
    fn from_str(text: &str) -> Result<Self, UnknownCurrency> {
        TABLE.iter().find(|row| row.code.eq_ignore_ascii_case(text)).map(Self).ok_or(UnknownCurrency)
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Money {
    /// The amount in units of another number of decimals; `None` if that would have to be rounded, or is too large.
    #[must_use]
    pub fn in_units_of(self, decimals: u8) -> Option<u64> {
        rescaled(self.amount, self.currency.decimals(), decimals)
    }

    /// The amount that is so many units of a number of decimals; `None` as for [`Money::in_units_of`].
    #[must_use]
    pub fn from_units(units: u64, decimals: u8, currency: Currency) -> Option<Self> {
        Some(Self { amount: rescaled(units, decimals, currency.decimals())?, currency })
    }

    /// The amount as a decimal number with this many decimals: `19.99`. `None` as for [`Money::in_units_of`].
    #[must_use]
    pub fn to_decimal(self, decimals: u8) -> Option<String> {
        self.in_units_of(decimals).map(|units| decimal(units, decimals, ""))
    }

    /// Reads an amount that is written as a decimal number, with at most as many decimals as the currency has, zeros aside.
    #[must_use]
    pub fn from_decimal(text: &str, currency: Currency) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || (text.contains('.') && !digits(fraction)) {
            return None;
        }
        let written = u8::try_from(fraction.len()).ok()?;
        Self::from_units(format!("{whole}{fraction}").parse().ok()?, written, currency)
    }
}

impl fmt::Display for Money {
    /// As people write it: `$19.99`, `¥500`, `KWD 18.600`, `€1,250.00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { code, decimals, sign } = self.currency.0;
        let amount = decimal(self.amount, *decimals, ",");
        // A space that no line is broken at.
        if sign.is_empty() { write!(f, "{code}\u{a0}{amount}") } else { write!(f, "{sign}{amount}") }
    }
}

fn rescaled(units: u64, from: u8, to: u8) -> Option<u64> {
    let by = 10_u64.checked_pow(u32::from(from.abs_diff(to)))?;
    if to >= from { units.checked_mul(by) } else { units.is_multiple_of(by).then_some(units / by) }
}

fn decimal(units: u64, decimals: u8, group: &str) -> String {
    let width = usize::from(decimals);
    let digits = format!("{units:0>width$}", width = width + 1);
    let (whole, fraction) = digits.split_at(digits.len() - width);
    let mut text = String::with_capacity(digits.len() + 8);
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push_str(group);
        }
        text.push(digit);
    }
    if width > 0 {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

const fn row(code: &'static str, decimals: u8) -> Row {
    Row { code, decimals, sign: "" }
}

const fn with_sign(code: &'static str, decimals: u8, sign: &'static str) -> Row {
    Row { code, decimals, sign }
}

/// The currencies of ISO 4217 in which people pay: no funds codes, metals or testing codes.
#[rustfmt::skip]
static TABLE: [Row; 155] = [
    row("AED", 2), row("AFN", 2), row("ALL", 2), row("AMD", 2), row("AOA", 2), row("ARS", 2), with_sign("AUD", 2, "A$"),
    row("AWG", 2), row("AZN", 2), row("BAM", 2), row("BBD", 2), row("BDT", 2), row("BHD", 3), row("BIF", 0), row("BMD", 2),
    row("BND", 2), row("BOB", 2), with_sign("BRL", 2, "R$"), row("BSD", 2), row("BTN", 2), row("BWP", 2), row("BYN", 2),
    row("BZD", 2), with_sign("CAD", 2, "CA$"), row("CDF", 2), row("CHF", 2), row("CLP", 0), with_sign("CNY", 2, "CN¥"),
    row("COP", 2), row("CRC", 2), row("CUP", 2), row("CVE", 2), row("CZK", 2), row("DJF", 0), row("DKK", 2), row("DOP", 2),
    row("DZD", 2), row("EGP", 2), row("ERN", 2), row("ETB", 2), with_sign("EUR", 2, "€"), row("FJD", 2), row("FKP", 2),
    with_sign("GBP", 2, "£"), row("GEL", 2), row("GHS", 2), row("GIP", 2), row("GMD", 2), row("GNF", 0), row("GTQ", 2),
    row("GYD", 2), with_sign("HKD", 2, "HK$"), row("HNL", 2), row("HTG", 2), row("HUF", 2), row("IDR", 2),
    with_sign("ILS", 2, "₪"), with_sign("INR", 2, "₹"), row("IQD", 3), row("IRR", 2), row("ISK", 0), row("JMD", 2),
    row("JOD", 3), with_sign("JPY", 0, "¥"), row("KES", 2), row("KGS", 2), row("KHR", 2), row("KMF", 0), row("KPW", 2),
    with_sign("KRW", 0, "₩"), row("KWD", 3), row("KYD", 2), row("KZT", 2), row("LAK", 2), row("LBP", 2), row("LKR", 2),
    row("LRD", 2), row("LSL", 2), row("LYD", 3), row("MAD", 2), row("MDL", 2), row("MGA", 2), row("MKD", 2), row("MMK", 2),
    row("MNT", 2), row("MOP", 2), row("MRU", 2), row("MUR", 2), row("MVR", 2), row("MWK", 2), with_sign("MXN", 2, "MX$"),
    row("MYR", 2), row("MZN", 2), row("NAD", 2), row("NGN", 2), row("NIO", 2), row("NOK", 2), row("NPR", 2),
    with_sign("NZD", 2, "NZ$"), row("OMR", 3), row("PAB", 2), row("PEN", 2), row("PGK", 2), with_sign("PHP", 2, "₱"),
    row("PKR", 2), row("PLN", 2), row("PYG", 0), row("QAR", 2), row("RON", 2), row("RSD", 2), row("RUB", 2), row("RWF", 0),
    row("SAR", 2), row("SBD", 2), row("SCR", 2), row("SDG", 2), row("SEK", 2), row("SGD", 2), row("SHP", 2), row("SLE", 2),
    row("SOS", 2), row("SRD", 2), row("SSP", 2), row("STN", 2), row("SVC", 2), row("SYP", 2), row("SZL", 2), row("THB", 2),
    row("TJS", 2), row("TMT", 2), row("TND", 3), row("TOP", 2), row("TRY", 2), row("TTD", 2), with_sign("TWD", 2, "NT$"),
    row("TZS", 2), row("UAH", 2), row("UGX", 0), with_sign("USD", 2, "$"), row("UYU", 2), row("UZS", 2), row("VED", 2),
    row("VES", 2), with_sign("VND", 0, "₫"), row("VUV", 0), row("WST", 2), row("XAF", 0), row("XCD", 2), row("XCG", 2),
    row("XOF", 0), row("XPF", 0), row("YER", 2), row("ZAR", 2), row("ZMW", 2), row("ZWG", 2),
];
