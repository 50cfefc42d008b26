//! The controller: watches Resources and records, keeps the real objects in line with them, and says so in status.

pub mod context;
pub mod events;
pub mod guard;
pub mod holders;
pub mod http;
pub mod index;
pub mod lease;
pub mod metrics;
pub mod namespace;
pub mod options;
pub mod retry;
pub mod settle;
pub mod status;
pub mod summarize;
pub mod watch;
pub mod world;
