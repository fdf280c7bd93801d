//! What the tests stand on: a real service in a process of its own, a handler that calls its API, a person who
//! uses its pages, a browser, and an identity-aware proxy's token issuer.

pub(crate) mod authority;
pub(crate) mod balancer;
pub(crate) mod browser;
pub(crate) mod example;
pub(crate) mod fleet;
pub(crate) mod handler;
pub(crate) mod history;
pub(crate) mod issuer;
pub(crate) mod node;
pub(crate) mod oidc;
pub(crate) mod person;
pub(crate) mod provider;
pub(crate) mod proxy;
pub(crate) mod redis;
pub(crate) mod server;
pub(crate) mod till;

pub(crate) use fleet::{Backing, Fleet};
pub(crate) use handler::{Handler, Reply, ask};
pub(crate) use person::{Page, Visitor};
pub(crate) use server::{Server, Setup, sidegate};

use std::time::Duration;

/// Until `look` finds something; a test fails that waits longer than ten seconds.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..200 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: has not happened within ten seconds");
}
