//! Provider plugins: Terraform's and OpenTofu's providers, driven directly over the plugin protocol, versions 5 and 6.
//!
//! [`Client`] is one running provider: it starts the process, agrees on a protocol and on TLS, and has one method for
//! each call. [`Pool`] keeps a process for each configuration. Values go through as bytes: what they mean, and what a
//! provider may answer, is for `driver`.
//!
//! A plugin is a program of somebody else. It may hang, crash, write anything anywhere, and keep children; none of that
//! may disturb more than the calls that were made to it.

mod calls;
mod client;
mod connection;
mod crash;
mod diagnostic;
mod environment;
mod error;
mod folder;
mod handshake;
mod launch;
pub mod launcher;
mod messages;
mod method;
mod output;
mod pool;
mod process;
mod reattach;
pub mod schema;
mod start;
mod tls;
mod transport;

use std::sync::Arc;
use std::time::Duration;

pub use calls::{
    Applied, ApplyResourceChange, Deferred, Encoded, Generated, ImportResourceState, Imported, ImportedObject,
    MoveResourceState, Moved, Msgpack, PlanResourceChange, Planned, RawState, ReadAnswer, ReadDataAnswer, ReadResource,
    UpgradedIdentity, UpgradedState,
};
pub use client::Client;
pub use crash::Crash;
pub use diagnostic::Diagnostic;
pub use error::{PluginError, StartError};
pub use handshake::InvalidHandshake;
pub use launch::{Confine, Launch, Limits, RUNNING};
pub use pool::{Key, Lease, Pool, PoolSettings};
pub use reattach::{REATTACH_PROVIDERS, ReattachTarget, reattach_targets};

/// The version of the provider protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Version 5.
    V5,
    /// Version 6.
    V6,
}

/// Takes sensitive values out of a text before it is logged or told.
pub type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A duration in the largest unit that says it exactly.
fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration.subsec_nanos() != 0 {
        return format!("{} ms", duration.as_millis());
    }
    match seconds {
        0 => "0 s".to_owned(),
        _ if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}
