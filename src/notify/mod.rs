//! How waiting polls learn that an elicitation changed, without asking the store again and again.
//!
//! The order that loses no wake-up: subscribe, read, wait. A wake-up means "read again", never what changed.

pub mod local;
pub mod redis;

use std::future::Future;
use std::pin::Pin;

use crate::domain::ElicitationId;

/// A subscription's next wake-up. Resolves at once if one came since the subscription was made or last woke.
pub type Wake<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Carries word of changes to everyone who waits for them.
pub trait Notify: Send + Sync {
    /// Begins to listen for changes of `id`.
    fn subscribe(&self, id: ElicitationId) -> Box<dyn Subscription>;

    /// Wakes all who listen for `id`.
    fn publish(&self, id: ElicitationId);
}

/// One listener. Dropping it ends the listening.
pub trait Subscription: Send + Sync {
    /// Waits for the next change.
    fn changed(&mut self) -> Wake<'_>;
}
