//! Requests that the service itself makes to others: [`http`], and upon it what issuers publish ([`metadata`], [`keys`]), what
//! they sign ([`token`]), and the providers that people authorise ([`oauth`]).

pub mod address;
pub mod http;
pub mod keys;
pub mod metadata;
pub mod oauth;
pub mod token;

pub use http::{Upstream, UpstreamError};
