//! The code that a person reads on the finished page and enters in the MCP client, where nobody signed in.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde::{Deserialize, Serialize};

use super::Random;

/// Eight digits, easy to read aloud: 26 bits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(String);

/// How many different codes there are.
const CODES: u64 = 100_000_000;
const DIGITS: usize = 8;

impl Code {
    /// A code like hardly another.
    #[must_use]
    pub fn fresh(random: &dyn Random) -> Self {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        Self(format!("{:08}", u64::from_be_bytes(bytes) % CODES))
    }

    /// The code that somebody entered, with whatever spaces and dashes; `None` if it is no code at all.
    #[must_use]
    pub fn read(entered: &str) -> Option<Self> {
        let between =
            |c: char| c.is_whitespace() || matches!(c, '-' | '.' | '\u{2010}'..='\u{2015}' | '\u{2212}');
        let digits: String = entered.chars().filter(|c| !between(*c)).take(DIGITS + 1).collect();
        (digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit())).then_some(Self(digits))
    }

    /// Whether it is the same, in a time that does not tell how much of it is.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        verify_slices_are_equal(other.0.as_bytes(), self.0.as_bytes()).is_ok()
    }

    /// The code in two groups of four, as people read it.
    #[must_use]
    pub fn shown(&self) -> String {
        let (first, second) = self.0.split_at_checked(4).unwrap_or((&self.0, ""));
        format!("{first} {second}")
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(…)")
    }
}
