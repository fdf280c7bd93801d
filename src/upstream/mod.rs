//! Requests that the service itself makes to others: [`http`], and upon it what issuers publish ([`metadata`], [`keys`]), what
//! they sign ([`token`]), the providers that people authorise ([`oauth`]), and
//! the processors that take payments ([`payment`]), and the endpoints that are told what happened ([`webhook`]).

pub mod address;
#[cfg(feature = "otel")]
pub mod collector;
pub mod http;
pub mod keys;
pub mod metadata;
pub mod oauth;
pub mod payment;
pub mod token;
pub mod webhook;

pub use http::{Upstream, UpstreamError};
