//! All tests, as one program. `harness` is what they stand on; the rest is one file a subject.
//!
//! A test that begins with `rNN_` shows the security rule of that number.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable,
    reason = "a test fails by panicking"
)]
#![expect(clippy::similar_names, reason = "an issuer, and what was issued")]

mod harness;

mod architecture;
mod audit;
mod bad_input;
mod browser;
mod claims;
mod cli;
mod confirm;
mod console;
mod console_browser;
mod crash;
mod demo;
mod domain;
mod elicitations;
mod examples;
mod faults;
mod handoff;
mod limits_of_time;
mod links;
mod metrics;
mod oauth;
mod oauth_answers;
mod oauth_instances;
mod oauth_resource;
mod openapi;
mod pages;
mod payments;
mod payments_asked;
mod payments_browser;
mod payments_crash;
mod payments_down;
mod payments_faults;
mod payments_late;
mod payments_payu;
mod payments_races;
mod payments_rules;
mod payments_webhooks;
mod presets;
mod presets_played;
mod proxy_identity;
mod readme;
mod rounds;
mod sample;
mod secrecy;
mod service;
mod shared;
mod sign_in;
mod sign_in_browser;
mod store;
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod vault;
mod webhooks_out;
