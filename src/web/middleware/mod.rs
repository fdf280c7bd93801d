//! What stands before every handler: the log line, the headers, the host, and the limit by address.

pub mod guard;
pub mod headers;
pub mod log;
