//! Word of changes within one process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

use super::{Notify, Subscription, Wake};
use crate::domain::ElicitationId;

/// A registry of listeners. It holds an entry only for what somebody listens to. Clones share it.
#[derive(Clone, Default)]
pub struct Local {
    topics: Arc<Mutex<HashMap<ElicitationId, watch::Sender<()>>>>,
}

struct Listener {
    id: ElicitationId,
    receiver: watch::Receiver<()>,
    topics: Weak<Mutex<HashMap<ElicitationId, watch::Sender<()>>>>,
}

impl Local {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everyone: what they listen for may have changed unheard.
    pub fn publish_to_all(&self) {
        for topic in self.topics.lock().unwrap_or_else(PoisonError::into_inner).values() {
            topic.send_replace(());
        }
    }

    /// How many elicitations are listened to.
    #[must_use]
    pub fn topics(&self) -> usize {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Notify for Local {
    fn subscribe(&self, id: ElicitationId) -> Box<dyn Subscription> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let topic = topics.entry(id).or_insert_with(|| watch::Sender::new(()));
        let receiver = topic.subscribe();
        Box::new(Listener { id, receiver, topics: Arc::downgrade(&self.topics) })
    }

    fn publish(&self, id: ElicitationId) {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(topic) = topics.get(&id) {
            topic.send_replace(());
        }
    }
}

impl Subscription for Listener {
    fn changed(&mut self) -> Wake<'_> {
        Box::pin(async {
            // An error means that the registry is gone: time to read again as well.
            let _ = self.receiver.changed().await;
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(topics) = self.topics.upgrade() else { return };
        let mut topics = topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(entry) = topics.entry(self.id)
            && entry.get().receiver_count() <= 1
        {
            entry.remove();
        }
    }
}
