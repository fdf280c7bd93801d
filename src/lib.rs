//! Sidegate: the side gate of an MCP server, the place where a person hands over what must never pass through
//! the MCP client or a model's context.
//!
//! The life of an elicitation in five steps, each with the file where it happens:
//!
//! 1. A tool handler asks for a link: [`flow::issue`], or all in one [`flow::round`] (HTTP: [`web::api`]).
//! 2. The person opens it, and is found to be the one it was made for: [`flow::open`], [`identity`]
//!    (pages: [`web::pages`]).
//! 3. The person enters a secret: [`flow::submit_secret`]; what they produced is sealed by [`vault`].
//! 4. The handler learns that it is done: [`flow::poll`], woken by [`notify`].
//! 5. The handler claims the outcome, once: [`flow::claim`].
//!
//! The rules of all this are in [`domain`], which does no input or output. Everything is kept in [`store`].
//! [`app`] puts the parts together. See `docs/ARCHITECTURE.md` for the map and longer walks through the code.

pub mod api_key;
pub mod app;
pub mod cli;
pub mod config;
pub mod domain;
pub mod flow;
pub mod identity;
pub mod mcp;
pub mod notify;
pub mod redis_client;
pub mod store;
pub mod system;
pub mod telemetry;
pub mod upstream;
pub mod vault;
pub mod web;
