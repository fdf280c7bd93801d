//! What operators do: who they are and what they may ([`Operator`], [`sign_in`]), what they look for ([`query`]), the story of
//! one elicitation ([`history`]), and revoking many at once ([`bulk`]). To look for links is in [`super::search`], to revoke one
//! in [`super::revoke`].

pub mod bulk;
pub mod history;
pub mod query;
pub mod sign_in;

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::domain::OperatorId;
use crate::identity::IdentitySource;

/// Who may look, and who may revoke.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees what there is, and changes nothing.
    Viewer,
    /// Revokes too.
    #[default]
    Revoker,
}

/// An operator whose key, or whose sign-in, has been verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// Who it is.
    pub id: OperatorId,
    /// What they may do.
    pub role: Role,
}

/// An operator who may revoke. Made here only, so that nobody else can.
#[derive(Debug, Clone, Copy)]
pub struct Revoker<'a>(&'a OperatorId);

impl Operator {
    /// The operator, if they may revoke.
    ///
    /// # Errors
    /// [`Error::NotRevoker`].
    pub const fn revoker(&self) -> Result<Revoker<'_>, Error> {
        match self.role {
            Role::Revoker => Ok(Revoker(&self.id)),
            Role::Viewer => Err(Error::NotRevoker),
        }
    }
}

impl Revoker<'_> {
    /// Who it is.
    #[must_use]
    pub const fn id(&self) -> &OperatorId {
        self.0
    }
}

/// How operators come in, and what more than one of them must agree to.
#[derive(Default)]
pub struct Console {
    /// The operators with keys, by the digest of each key.
    pub keys: HashMap<[u8; 32], Operator>,
    /// Where operators sign in who have no key.
    pub door: Option<OperatorDoor>,
    /// More than so many are revoked at once only if a second operator agrees.
    pub two_persons_above: Option<u64>,
}

impl Console {
    /// Whether anybody is an operator: else there is no console.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.door.is_some() || !self.keys.is_empty()
    }
}

/// Where operators sign in, and who of those who can is one.
pub struct OperatorDoor {
    /// The name of the identity source.
    pub source: String,
    /// The source.
    pub identity: Arc<dyn IdentitySource>,
    /// The claim of the ID token that says so: a text, or a list of texts.
    pub claim: String,
    /// Its values that make a viewer.
    pub viewers: Vec<String>,
    /// Its values that make a revoker.
    pub revokers: Vec<String>,
}
