//! The handler looks at an elicitation, and may wait until the person is done with it.
//!
//! A waiting poll holds no store connection and asks nothing while it waits: it subscribes, reads, and sleeps
//! until word of a change, the deadline, its own limit, or shutdown. If the store cannot be read when it wakes, it
//! tries again while its wait lasts.

use std::time::Duration;

use super::{Client, Error, Gate};
use crate::domain::{Elicitation, ElicitationId};
use crate::telemetry::Waiting;

/// The longest wait that is granted.
pub const LONGEST_WAIT: Duration = Duration::from_secs(50);

/// How long a waiting poll leaves a store alone that it could not read.
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl Gate {
    /// The elicitation, once it is no longer pending or in progress, or after `wait`.
    ///
    /// # Errors
    /// [`Error::NotFound`] also for another client's; [`Error::Unavailable`].
    pub async fn poll(
        &self,
        client: &Client,
        id: ElicitationId,
        wait: Duration,
    ) -> Result<Elicitation, Error> {
        self.poll_until(client, id, wait, |elicitation| !elicitation.state().name().is_live()).await
    }

    /// The elicitation, once `done` says so, or after `wait`.
    pub(super) async fn poll_until(
        &self,
        client: &Client,
        id: ElicitationId,
        wait: Duration,
        done: impl Fn(&Elicitation) -> bool,
    ) -> Result<Elicitation, Error> {
        let until = self.now() + wait.min(LONGEST_WAIT);
        // Only for what exists and is theirs is anything registered.
        let mut elicitation = self.read(client, id).await?;
        if wait.is_zero() || done(&elicitation) {
            return Ok(elicitation);
        }
        let mut subscription = self.notify.subscribe(id);
        let _waiting = Waiting::begin();
        loop {
            match self.read(client, id).await {
                Ok(read) => elicitation = read,
                Err(Error::Unavailable(_)) if self.now() < until && !self.shutdown.is_cancelled() => {
                    tokio::time::sleep(TRY_AGAIN).await;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let now = self.now();
            if done(&elicitation) || now >= until || self.shutdown.is_cancelled() {
                return Ok(elicitation);
            }
            // A millisecond more, since the deadline has passed only when the clock has reached it.
            let deadline = elicitation.deadline().map_or(until, |deadline| deadline.min(until));
            let sleep = now.until(deadline) + Duration::from_millis(1);
            tokio::select! {
                () = subscription.changed() => {}
                () = tokio::time::sleep(sleep) => {}
                () = self.shutdown.cancelled() => {}
            }
        }
    }

    async fn read(&self, client: &Client, id: ElicitationId) -> Result<Elicitation, Error> {
        let stored = self.store.load(id).await?.ok_or(Error::NotFound)?;
        let elicitation = self.open_stored(&stored)?.elicitation.settle(self.now());
        if elicitation.terms().client == client.id { Ok(elicitation) } else { Err(Error::NotFound) }
    }
}
