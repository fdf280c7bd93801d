//! Requests that the service itself makes to others.

pub mod address;
pub mod http;

pub use http::{Upstream, UpstreamError};
