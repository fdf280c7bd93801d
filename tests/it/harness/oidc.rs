//! A real OpenID Connect issuer: `oidc-provider`, in a process of its own.

use serde_json::json;

use super::node::Node;

/// The issuer. Ends when dropped.
pub(crate) struct OidcProvider(Node);

pub(crate) const SECRET: &str = "a secret of the tests alone, long enough";

impl OidcProvider {
    /// Takes a port; serves once it [knows](Self::knows) whom.
    pub(crate) async fn start() -> Self {
        Self(Node::start("issuer", "issuer.mjs").await)
    }

    pub(crate) fn url(&self) -> &str {
        self.0.url()
    }

    /// Serves the client `sidegate`, which may be returned to here.
    pub(crate) async fn knows(&mut self, redirect_uri: &str) {
        assert_eq!(self.0.ask(&json!({"redirectUris": [redirect_uri], "secret": SECRET})).await, "ready");
    }
}
