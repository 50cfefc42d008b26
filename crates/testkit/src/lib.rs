//! What tests of several crates share. Only development dependencies name this crate.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "only tests use this crate")]

mod provider_use;
pub mod records;
pub mod scripted;
pub mod secrets_server;

pub use provider_use::provider_use;
