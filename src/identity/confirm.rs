//! No login anywhere: whoever has the link may act, and is shown a code at the end. What they produced counts once that code
//! came back through the MCP client, whose user the handler knows.

use super::{IdentitySource, Way};

/// The identity source `confirm`, for subjects of one issuer.
pub struct Confirm {
    issuer: String,
}

impl Confirm {
    /// The source for subjects of this issuer.
    #[must_use]
    pub const fn new(issuer: String) -> Self {
        Self { issuer }
    }
}

impl IdentitySource for Confirm {
    fn word(&self) -> &'static str {
        "confirm"
    }

    fn vouches_for(&self, issuer: &str) -> bool {
        issuer == self.issuer
    }

    fn way(&self) -> Way<'_> {
        Way::Code
    }
}
