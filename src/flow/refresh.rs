//! Kept tokens are renewed at their provider: by one at a time among all instances, whoever asked for it.
//!
//! Where a provider takes the use of an old refresh token for theft, two renewals at once would end the whole grant. So
//! whoever renews has the slot's lease, and what they bring back counts only under it.

use std::time::Duration;

use super::keep::KeptDecision;
use super::{Error, Gate};
use crate::domain::kept::{Lease, Renewed};
use crate::domain::oauth::Tokens;
use crate::domain::{Actor, ClientId, Subject};
use crate::upstream::oauth::{Failure, Fault};

/// A renewal, under a lease that has been taken for it.
pub(super) struct Refresh {
    pub client: ClientId,
    pub subject: Subject,
    pub slot: String,
    pub provider: String,
    pub lease: Lease,
    /// The tokens to be renewed.
    pub old: Tokens,
}

/// What a renewal may take: metadata, and a request that is sent twice.
const LEAST_LEASE: Duration = Duration::from_secs(25);

impl Gate {
    /// Renews, and puts back what came of it.
    pub(super) async fn refresh(&self, refresh: Refresh) {
        // With too little of the lease left another may begin before this one is done.
        if self.now().until(refresh.lease.until) < LEAST_LEASE {
            tracing::warn!("a renewal waited too long for its turn; the next call tries it again");
            return;
        }
        let came = match self.providers.get(&refresh.provider) {
            Some(provider) => provider.refresh(&refresh.old).await,
            None => Err(Failure::Passing(Fault::Configuration)),
        };
        // What the provider has issued must not be lost to a store that is busy for a moment.
        for pause in [0, 100, 500, 2000, 5000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            match self.put_renewed(&refresh, &came).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::error!(%error, "renewed tokens could not be kept; it will be tried again");
                }
            }
        }
    }

    async fn put_renewed(&self, refresh: &Refresh, came: &Result<Tokens, Failure>) -> Result<(), Error> {
        let Refresh { client, subject, slot, provider, lease, old } = refresh;
        self.change_kept(client, subject, &Actor::Clock, |kept, _| {
            let unneeded = match came {
                Ok(new) => match kept.renewed(slot, lease, old, new.clone()) {
                    Renewed::Kept | Renewed::Superseded => Vec::new(),
                    Renewed::Gone => vec![(provider.clone(), new.clone())],
                },
                Err(failure) => {
                    let lapsed = *failure == Failure::Final(Fault::RefreshToken);
                    kept.not_renewed(slot, lease, old, lapsed);
                    Vec::new()
                }
            };
            Ok(KeptDecision::Change((), unneeded))
        })
        .await
    }
}
