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

impl Code {
    /// A code like hardly another.
    #[must_use]
    pub fn fresh(random: &dyn Random) -> Self {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        Self(format!("{:08}", u64::from_be_bytes(bytes) % CODES))
    }

    /// Whether somebody entered this code, with whatever spaces and hyphens.
    #[must_use]
    pub fn is(&self, entered: &str) -> bool {
        let entered: String = entered.chars().filter(|c| !c.is_whitespace() && !"-.".contains(*c)).collect();
        verify_slices_are_equal(entered.as_bytes(), self.0.as_bytes()).is_ok()
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
