//! The API clients: who may issue elicitations, for whom, and how the person is recognised.

use std::collections::HashMap;
use std::sync::Arc;

use super::Error;
use crate::domain::{Binding, ClientId, Digest, Invalid, Kind, Subject};
use crate::identity::IdentitySource;
use crate::upstream::webhook::Endpoint;

/// An API client as configured.
pub struct Client {
    /// Its id.
    pub id: ClientId,
    /// What people read: who asks.
    pub name: String,
    /// The host that the operator verified to be the client's; shown beside the name.
    pub host: Option<String>,
    /// What it may ask for.
    pub kinds: Vec<Kind>,
    /// Which providers its people may be asked to authorise; all of them if it is not said.
    pub providers: Option<Vec<String>>,
    /// The name of its identity source.
    pub source: String,
    /// How the person at the browser is recognised.
    pub identity: Arc<dyn IdentitySource>,
    /// How many calls of one tool its MCP clients make before they give up.
    pub round_budget: u8,
    /// Where its server is told what became of its elicitations, if it is.
    pub endpoint: Option<Arc<Endpoint>>,
}

/// Longest issuer or id of a subject, in bytes.
const LONGEST_SUBJECT: usize = 1024;

impl Client {
    /// Whom a request means: the subject it names, or the only one there can be.
    ///
    /// # Errors
    /// [`Invalid`] at `subject…` if it is needed and absent, empty, or of an issuer that the identity source does
    /// not name. It never becomes "anyone" (R48).
    pub fn subject(&self, named: Option<Subject>) -> Result<Subject, Invalid> {
        let Some(subject) = named else {
            return self.identity.default_subject().ok_or_else(|| {
                Invalid::new(
                    "subject",
                    "is required: the issuer and id of the person, from the verified token",
                )
            });
        };
        for (field, value) in [("subject.issuer", &subject.issuer), ("subject.id", &subject.id)] {
            if value.trim().is_empty() {
                return Err(Invalid::new(field, "must not be empty"));
            }
            if value.len() > LONGEST_SUBJECT {
                return Err(Invalid::new(field, format!("must have at most {LONGEST_SUBJECT} bytes")));
            }
        }
        if self.identity.vouches_for(&subject.issuer) {
            Ok(subject)
        } else {
            Err(Invalid::new("subject.issuer", "is not the issuer of this client's identity source"))
        }
    }

    /// The binding of an operation for a subject, if this client may ask for this kind.
    pub(super) fn binding(
        &self,
        named: Option<Subject>,
        digest: Digest,
        kind: Kind,
    ) -> Result<Binding, Error> {
        if !self.kinds.contains(&kind) {
            return Err(Error::KindNotAllowed);
        }
        Ok(Binding { client: self.id.clone(), subject: self.subject(named)?, digest, kind })
    }
}

/// All clients, by id.
#[derive(Clone)]
pub struct Clients(Arc<HashMap<ClientId, Arc<Client>>>);

impl FromIterator<Client> for Clients {
    fn from_iter<I: IntoIterator<Item = Client>>(clients: I) -> Self {
        Self(Arc::new(clients.into_iter().map(|client| (client.id.clone(), Arc::new(client))).collect()))
    }
}

impl Clients {
    /// Every client, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Client>> {
        self.0.values()
    }

    /// The client with this id, if it is still configured.
    #[must_use]
    pub fn find(&self, id: &ClientId) -> Option<&Arc<Client>> {
        self.0.get(id)
    }
}
