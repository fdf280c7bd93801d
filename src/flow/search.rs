//! Operators look for elicitations. They see what was agreed and how it stands, never an outcome.

use serde::{Deserialize, Serialize};

use super::{Error, Gate};
use crate::domain::{ClientId, Elicitation, ElicitationId, Kind, Request, StateName, Subject, Timestamp};

/// What to look for. What is absent does not matter.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Filter {
    /// Issued by this client.
    pub client: Option<ClientId>,
    /// Made for this person.
    pub subject: Option<Subject>,
    /// Asks for this.
    pub kind: Option<Kind>,
    /// For an operation of this name.
    pub operation: Option<String>,
    /// At this provider or payment processor.
    pub provider: Option<String>,
    /// Issued before this moment.
    pub issued_before: Option<Timestamp>,
    /// In one of these states; empty for any that has not ended.
    pub states: Vec<StateName>,
}

impl Filter {
    fn matches(&self, elicitation: &Elicitation) -> bool {
        fn same<T: PartialEq>(wanted: Option<&T>, is: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == is)
        }
        let terms = elicitation.terms();
        let state = elicitation.state().name();
        let in_state =
            if self.states.is_empty() { !state.is_terminal() } else { self.states.contains(&state) };
        in_state
            && same(self.client.as_ref(), &terms.client)
            && same(self.subject.as_ref(), &terms.subject)
            && same(self.kind.as_ref(), &terms.kind())
            && same(self.operation.as_ref(), &terms.operation.name)
            && self.provider.as_deref().is_none_or(|wanted| Some(wanted) == provider(&terms.request))
            && self.issued_before.is_none_or(|moment| terms.created_at < moment)
    }

    /// Whether it says nothing of which, so that all match.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.client.is_none()
            && self.subject.is_none()
            && self.kind.is_none()
            && self.operation.is_none()
            && self.provider.is_none()
            && self.issued_before.is_none()
    }

    /// The same, of those that have not ended.
    pub(super) fn that_can_be_revoked(&self) -> Self {
        let states = self.states.iter().copied().filter(|state| !state.is_terminal()).collect();
        Self { states, ..self.clone() }
    }
}

/// Where it is to be authorised or paid.
fn provider(request: &Request) -> Option<&str> {
    match request {
        Request::Secret(_) => None,
        Request::OAuth(request) => Some(&request.provider),
        Request::Payment(request) => Some(&request.provider),
    }
}

/// A part of what was found.
#[derive(Debug)]
pub struct Page {
    /// In the order of their ids.
    pub found: Vec<Elicitation>,
    /// Where to go on, if there may be more.
    pub next: Option<ElicitationId>,
}

/// How many records are read at once.
const READ: usize = 512;
/// How many records one call reads at most.
const READ_AT_MOST: usize = 100_000;

impl Gate {
    /// The next matches after the id `after`, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn search(
        &self,
        filter: &Filter,
        after: Option<ElicitationId>,
        limit: usize,
    ) -> Result<Page, Error> {
        let (mut found, mut last, mut read) = (Vec::new(), after, 0);
        loop {
            let page = self.store.scan(last, READ).await?;
            let (now, full) = (self.now(), page.len() == READ);
            for stored in page {
                last = Some(stored.id);
                // What cannot be opened cannot be shown; the sweep has logged it.
                let Ok(record) = self.open_stored(&stored) else { continue };
                let elicitation = record.elicitation.settle(now);
                if filter.matches(&elicitation) {
                    found.push(elicitation);
                    if found.len() == limit {
                        return Ok(Page { found, next: last });
                    }
                }
            }
            read += READ;
            if !full {
                return Ok(Page { found, next: None });
            }
            if read >= READ_AT_MOST {
                return Ok(Page { found, next: last });
            }
        }
    }
}
