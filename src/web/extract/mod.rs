//! What handlers take from a request: who calls, what they send, and what their browser tells.

pub mod body;
pub mod browser;
pub mod caller;
pub mod form;
pub mod id;
pub mod json;
