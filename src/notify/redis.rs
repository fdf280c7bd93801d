//! Word of changes among all instances that share a Redis.
//!
//! Every commit publishes the id of what it changed, in the script that makes the change, on one channel. Each instance
//! listens to that channel over one connection of its own and wakes those of its polls that wait for that id: a poll
//! costs the server nothing while it waits. Whenever an instance may have missed something, which is when the
//! connection breaks and when nothing at all is heard for a while, everyone is woken to read again.

use std::time::Duration;

use redis::{PushInfo, PushKind, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::local::Local;
use super::{Notify, Subscription};
use crate::domain::ElicitationId;
use crate::redis_client::{Listener, Settings};

/// Word of changes among all instances.
pub struct Redis {
    local: Local,
    listening: JoinHandle<()>,
}

/// The instance that sweeps publishes every second. Whoever hears nothing for this long listens in vain.
const SILENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

impl Redis {
    /// Listens to `channel` on this server. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(settings: &Settings, channel: String) -> Self {
        let local = Local::new();
        let listening = tokio::spawn(listen(settings.clone(), channel, local.clone()));
        Self { local, listening }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Notify for Redis {
    fn subscribe(&self, id: ElicitationId) -> Box<dyn Subscription> {
        self.local.subscribe(id)
    }

    /// The commit has told the other instances; this one need not wait for its own word to come back.
    fn publish(&self, id: ElicitationId) {
        self.local.publish(id);
    }
}

async fn listen(settings: Settings, channel: String, local: Local) {
    let mut deaf = false;
    for turn in 0.. {
        let (pushes, mut heard) = mpsc::unbounded_channel();
        match Listener::connect(&settings, turn, &channel, pushes).await {
            Ok(_connection) => {
                if std::mem::take(&mut deaf) {
                    tracing::info!("word of changes is heard again");
                }
                // What changed while nobody listened is read now.
                local.publish_to_all();
                while let Ok(Some(push)) = tokio::time::timeout(SILENCE, heard.recv()).await {
                    if push.kind == PushKind::Disconnection {
                        break;
                    }
                    if let Some(id) = changed(&push) {
                        local.publish(id);
                    }
                }
                tracing::debug!("the connection that hears of changes is replaced");
            }
            Err(error) => {
                if !std::mem::replace(&mut deaf, true) {
                    tracing::warn!(%error, "no word of changes is heard; waiting polls read again and again until it is");
                }
            }
        }
        local.publish_to_all();
        tokio::time::sleep(PAUSE).await;
    }
}

/// The id that a message names.
fn changed(push: &PushInfo) -> Option<ElicitationId> {
    match (&push.kind, push.data.as_slice()) {
        (PushKind::Message, [_, Value::BulkString(id)]) => {
            <[u8; 16]>::try_from(id.as_slice()).ok().map(ElicitationId::from_bytes)
        }
        _ => None,
    }
}
