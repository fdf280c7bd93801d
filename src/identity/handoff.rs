//! The MCP server's own login: the browser is sent to a page of the server, which checks its session and tells us who it
//! is (`POST /v1/handoffs/{handoff}`).

use url::Url;

use super::{IdentitySource, Way};

/// Where the MCP server's page is.
#[derive(Debug, Clone)]
pub struct HandoffSettings {
    /// The `issuer` of the subjects that the server may name.
    pub issuer: String,
    /// The page; gets `?handoff=…`.
    pub verify_url: Url,
}

/// The identity source `handoff`.
pub struct Handoff(HandoffSettings);

impl Handoff {
    /// The source with these settings.
    #[must_use]
    pub const fn new(settings: HandoffSettings) -> Self {
        Self(settings)
    }

    /// Where the browser goes with this hand-off. Nothing but its name is in the URL.
    #[must_use]
    pub fn verify_url(&self, handoff: &str) -> Url {
        let mut url = self.0.verify_url.clone();
        url.query_pairs_mut().append_pair("handoff", handoff);
        url
    }
}

impl IdentitySource for Handoff {
    fn word(&self) -> &'static str {
        "handoff"
    }

    fn vouches_for(&self, issuer: &str) -> bool {
        issuer == self.0.issuer
    }

    fn way(&self) -> Way<'_> {
        Way::Handoff(self)
    }
}
