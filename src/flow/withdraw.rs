//! Operators look for what is kept, and withdraw it. They see whose it is and what it allows, never the credential.

use serde::{Deserialize, Serialize};

use super::console::Revoker;
use super::console::query::Query;
use super::keep::KeptDecision;
use super::record::Held;
use super::revoke::{Reason, Tally};
use super::{Error, Gate};
use crate::domain::kept::{self, Dropped, Grant, Kept};
use crate::domain::{Actor, ClientId, ElicitationId, GrantId, Kind, Subject};

/// What to look for. What is absent does not matter.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KeptFilter {
    /// The one of this id.
    pub id: Option<GrantId>,
    /// Kept for this client.
    pub client: Option<ClientId>,
    /// Of this person.
    pub subject: Option<Subject>,
    /// In the slot of this name.
    pub slot: Option<String>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// Tokens of this provider.
    pub provider: Option<String>,
}

/// One thing that is kept.
#[derive(Debug)]
pub struct KeptEntry {
    /// For which client.
    pub client: ClientId,
    /// Whose it is.
    pub subject: Subject,
    /// In which slot.
    pub slot: String,
    /// What.
    pub grant: Grant,
}

/// A part of what was found.
#[derive(Debug)]
pub struct KeptPage {
    /// In the order of the records.
    pub found: Vec<KeptEntry>,
    /// Where to go on, if there may be more.
    pub next: Option<ElicitationId>,
}

/// How many records are read at once.
const READ: usize = 512;
/// How many records one call reads at most.
const READ_AT_MOST: usize = 100_000;

impl KeptFilter {
    fn matches(&self, kept: &Kept, slot: &str, grant: &Grant) -> bool {
        let provider = match &grant.held {
            kept::Held::Tokens { provider, .. } => Some(provider),
            kept::Held::Secret { .. } | kept::Held::Ended { .. } => None,
        };
        !matches!(grant.held, kept::Held::Ended { .. })
            && self.id.is_none_or(|id| id == grant.id)
            && self.client.as_ref().is_none_or(|client| client == kept.client())
            && self.subject.as_ref().is_none_or(|subject| subject == kept.subject())
            && self.slot.as_deref().is_none_or(|name| name == slot)
            && self.kind.is_none_or(|kind| kind == grant.held.kind())
            && self.provider.as_ref().is_none_or(|wanted| Some(wanted) == provider)
    }
}

impl Gate {
    /// The next matches in records after `after`, those of `limit` records or a few more.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn search_kept(
        &self,
        filter: &KeptFilter,
        after: Option<ElicitationId>,
        limit: usize,
    ) -> Result<KeptPage, Error> {
        let (mut found, mut last, mut read) = (Vec::new(), after, 0);
        loop {
            let page = self.store.scan(last, READ).await?;
            let full = page.len() == READ;
            for stored in page {
                last = Some(stored.id);
                let Ok(Held::Kept(mut record)) = self.open_held(&stored) else { continue };
                drop(record.kept.settle(self.now()));
                let kept = &record.kept;
                found.extend(kept.slots().filter(|(slot, grant)| filter.matches(kept, slot, grant)).map(
                    |(slot, grant)| KeptEntry {
                        client: kept.client().clone(),
                        subject: kept.subject().clone(),
                        slot: slot.to_owned(),
                        grant: grant.clone(),
                    },
                ));
                if found.len() >= limit {
                    return Ok(KeptPage { found, next: last });
                }
            }
            read += READ;
            if !full {
                return Ok(KeptPage { found, next: None });
            }
            if read >= READ_AT_MOST {
                return Ok(KeptPage { found, next: last });
            }
        }
    }

    /// Withdraws all that match: from then on nothing of it is released, and its provider is told. Returns how many.
    ///
    /// # Errors
    /// [`Error::SecondOperator`] if there are more than one operator may withdraw alone; [`Error::Unavailable`]: some may have
    /// been withdrawn by then.
    pub async fn withdraw_kept(
        &self,
        revoker: Revoker<'_>,
        filter: &KeptFilter,
        reason: &Reason,
    ) -> Result<u64, Error> {
        self.one_is_enough(&Query::Kept(filter.clone())).await?;
        let (mut after, mut sum) = (None, Tally::default());
        loop {
            let (tally, next) = self.withdraw_part(revoker, filter, after, READ, reason).await?;
            sum = sum + tally;
            after = next;
            if after.is_none() {
                return Ok(sum.revoked);
            }
        }
    }

    /// The same for those in about `limit` records after `after`. Returns what became of them, and where to go on.
    pub(super) async fn withdraw_part(
        &self,
        revoker: Revoker<'_>,
        filter: &KeptFilter,
        after: Option<ElicitationId>,
        limit: usize,
        reason: &Reason,
    ) -> Result<(Tally, Option<ElicitationId>), Error> {
        let page = self.search_kept(filter, after, limit).await?;
        let mut tally = Tally::default();
        for entry in page.found {
            let KeptEntry { client, subject, slot, grant } = entry;
            let actor = Actor::Operator(revoker.id().clone());
            tally.revoked += self
                .change_kept(&client, &subject, &actor, |kept, _| {
                    if kept.slot(&slot).is_none_or(|now| now.id != grant.id) {
                        return Ok(KeptDecision::Stay(0));
                    }
                    let dropped = kept.drop_slot(&slot, Dropped::ByOperator(reason.words().to_owned()));
                    Ok(dropped.map_or(KeptDecision::Stay(0), |unneeded| KeptDecision::Change(1, unneeded)))
                })
                .await?;
        }
        Ok((tally, page.next))
    }
}
