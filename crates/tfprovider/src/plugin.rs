//! Runs Terraform and OpenTofu providers over versions 5 and 6 of the plugin protocol.
//!
//! A [`Client`] is one running provider: it starts the process, negotiates the protocol and TLS, and has one method for
//! each call of the protocol. A [`Pool`] holds one process for each configuration in each namespace. Values stay encoded
//! until they are read with the type of their schema ([`DynamicValue`]).
//!
//! A plugin is third-party code that can hang, crash, write arbitrary output and leave child processes. Such a failure
//! affects only the calls to that plugin.

mod client;
mod connection;
mod crash;
mod diagnostic;
mod environment;
mod error;
mod fields;
mod handshake;
mod launch;
pub mod launcher;
mod messages;
mod method;
mod observer;
mod orphans;
mod output;
mod plugin_process;
mod pool;
mod private_dir;
mod process;
mod reattach;
pub mod remote;
mod schema;
mod start;
mod tls;
mod transport;

use std::sync::Arc;
use std::time::Duration;

pub use client::Client;
pub use crash::Crash;
pub use diagnostic::{AttributePath, Diagnostic};
pub use error::{PluginError, StartError};
pub use handshake::InvalidHandshake;
pub use launch::{CURRENT_EXE, Launch, Limits, Sandbox};
pub use messages::{
    ApplyResourceChange, ApplyResourceChangeResponse, CallFunctionResponse, Capabilities, Deferred, DynamicValue,
    FunctionError, GenerateResourceConfigResponse, Identity, IdentityAttribute, IdentitySchema, ImportResourceState,
    ImportResourceStateResponse, ImportedObject, MoveResourceState, MoveResourceStateResponse,
    OpenEphemeralResourceResponse, PlanResourceChange, PlanResourceChangeResponse, RawState, ReadDataSourceResponse,
    ReadResource, ReadResourceResponse, RenewEphemeralResourceResponse, Timestamp, UpgradeResourceIdentityResponse,
    UpgradeResourceStateResponse,
};
pub use observer::Observer;
pub use orphans::end_orphans;
pub use pool::{Lease, Place, PlaceLimits, Pool, PoolKey, PoolOptions, RESERVATION};
pub use reattach::{REATTACH_PROVIDERS, ReattachTarget, reattach_targets};
pub use schema::{Function, InvalidSchema, Parameter, ProviderSchema};

/// The version of the provider protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    V5,
    V6,
}

/// Removes sensitive values from a string before it is logged or reported.
pub type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Formats a duration in the largest unit that represents it exactly.
fn format_duration(duration: Duration) -> String {
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
