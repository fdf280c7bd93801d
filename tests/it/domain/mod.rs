//! The rules, by themselves: no store, no clock, no network.

mod canonical;
mod kept;
mod life;
mod money;
mod paying;
mod secret;
mod text;
mod time;
mod walk;
