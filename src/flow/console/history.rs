//! The story of one elicitation, from the audit trail.

use std::time::Duration;

use crate::domain::{Elicitation, ElicitationId, Event, Timestamp};
use crate::flow::{Error, Gate};

/// What happened to an elicitation.
#[derive(Debug)]
pub struct History {
    /// In the order of the trail.
    pub events: Vec<Event>,
    /// Whether all of the trail was looked through in which there may be any.
    pub is_whole: bool,
}

/// How many entries are read at once.
const PAGE: usize = 1000;
/// How many are read at most.
const MOST: u64 = 100_000;
/// How far the clocks of two instances may be apart, and how late an entry may come onto the trail.
const SLACK: Duration = Duration::from_mins(5);

impl Gate {
    /// An elicitation, as it stands.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn look_up(&self, id: ElicitationId) -> Result<Elicitation, Error> {
        let stored = self.store.load(id).await?.ok_or(Error::NotFound)?;
        Ok(self.open_stored(&stored)?.elicitation.settle(self.now()))
    }

    /// What happened to an elicitation. The trail is as good as in the order of time: it is not read from its beginning.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn history(&self, elicitation: &Elicitation) -> Result<History, Error> {
        let end = self.store.trail().await?.end.number;
        let mut last = self.trail_before(elicitation.terms().created_at).await?;
        let (first, mut events) = (last, Vec::new());
        while last < end && last - first < MOST {
            let page = self.store.entries(last, PAGE).await?;
            let Some(newest) = page.last() else { break };
            last = newest.number;
            events.extend(page.iter().filter_map(|entry| {
                self.opened(&entry.event).filter(|event| event.elicitation == Some(elicitation.id()))
            }));
        }
        Ok(History { events, is_whole: last >= end })
    }

    /// The number of an entry before which nothing is as young as this.
    async fn trail_before(&self, at: Timestamp) -> Result<u64, Error> {
        let extent = self.store.trail().await?;
        let (mut low, mut high) = (extent.start.number, extent.end.number);
        while high - low > PAGE as u64 {
            let middle = low + (high - low) / 2;
            let entry = self.store.entries(middle, 1).await?.pop();
            // What does not open is older than the oldest key.
            let event = entry.and_then(|entry| self.opened(&entry.event));
            if event.is_some_and(|event| event.at + SLACK >= at) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(low)
    }
}
