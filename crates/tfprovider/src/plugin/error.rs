//! Errors of the communication with a plugin. Errors about an object are not included: they are returned as
//! [`super::Diagnostic`]s of a response.

use std::path::PathBuf;
use std::time::Duration;

use super::Crash;
use super::handshake::InvalidHandshake;

/// A call without a response, or a plugin that did not start. The message is one line that names the provider.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PluginError {
    #[error("the provider {provider} did not start: {why}")]
    Start {
        /// [`super::Launch::name`].
        provider: String,
        why: StartError,
    },
    /// The process exited before or during the call. Whether the call took effect is unknown.
    #[error("the provider {provider} exited during {call}: {crash}")]
    Crashed { provider: String, call: &'static str, crash: Crash },
    /// The process exited while the call was queued, so the call was not sent.
    #[error("the provider {provider} exited before {call}: {crash}")]
    NotCalled { provider: String, call: &'static str, crash: Crash },
    /// The connection broke although the process still runs. Whether the call took effect is unknown.
    #[error("the connection to the provider {provider} broke during {call}: {why}")]
    Disconnected { provider: String, call: &'static str, why: String },
    #[error("the provider {provider} did not respond to {call} within {}", super::format_duration(*.limit))]
    TimedOut { provider: String, call: &'static str, limit: Duration },
    /// The provider lacks the method. Client methods return `None` instead for methods that are optional.
    #[error("the provider {provider} does not implement {call}")]
    Unimplemented { provider: String, call: &'static str },
    /// The provider returned a gRPC error. Providers should return diagnostics instead.
    #[error("the provider {provider} returned an error for {call}: {why}")]
    Failed { provider: String, call: &'static str, why: String },
    /// The provider has responded, but with more than is read ([`super::Limits::response`]).
    #[error("the provider {provider} returned an error for {call}: {why}")]
    LargeResponse { provider: String, call: &'static str, why: String },
    /// The provider returned errors for its configuration.
    #[error("the provider {provider} rejected its configuration: {}", super::diagnostic::first_error(.diagnostics))]
    ConfigurationRejected {
        provider: String,
        call: &'static str,
        /// All diagnostics of the provider. They may contain sensitive values.
        diagnostics: Vec<super::Diagnostic>,
    },
    /// The caller could not configure the process. All callers that wait for the same process receive this error.
    #[error("{why}")]
    NotConfigured {
        /// Without sensitive values.
        why: String,
        hint: Option<String>,
    },
    /// The process failed repeatedly, so it is not restarted yet.
    #[error("{last} (failed {failures} times in a row; next start at {until})")]
    BackingOff {
        failures: u32,
        /// When the next start is allowed.
        until: jiff::Timestamp,
        /// The most recent failure.
        last: Box<PluginError>,
    },
    /// Too many processes run, and all of them are in use.
    #[error(
        "the provider {provider} waits for a process: {} (hint: it starts when one of them ends; the administrator can \
        raise --max-provider-processes{} or the memory of the controller's container)",
        .namespace.as_ref().map_or_else(
            || "all processes that the controller may run are in use".to_owned(),
            |namespace| format!("all processes that the namespace `{namespace}` may have are in use"),
        ),
        if namespace.is_some() { "-per-namespace" } else { "" }
    )]
    NoPlace {
        provider: String,
        /// The namespace whose limit is reached; `None` for the limit of all namespaces.
        namespace: Option<String>,
    },
    /// The process can never start.
    #[error(
        "the provider {provider} cannot start: its memory limit of {} MiB exceeds the {} MiB that all provider processes \
        may use together (hint: lower `spec.limits.memory` of the Provider, or raise the memory limit of the controller's \
        container)", memory >> 20, available >> 20
    )]
    TooLarge {
        provider: String,
        /// In bytes.
        memory: u64,
        /// In bytes.
        available: u64,
    },
    /// The process starts elsewhere and is not ready yet. [`super::Pool`] does not count this as a failure.
    #[error("the provider {provider} waits for {what}")]
    Waiting {
        provider: String,
        /// Such as `the Pod shop/purlin-random-1: Unschedulable`.
        what: String,
    },
    #[error("the provider {provider} is not started because Purlin is shutting down")]
    ShuttingDown { provider: String },
}

/// The reason why a plugin did not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    /// The program does not exist, is not executable, or is built for another platform.
    #[error("{} cannot be executed: {why}", program.display())]
    Execute { program: PathBuf, why: String },
    /// The private directory of the plugin cannot be created.
    #[error("cannot create a private directory in {}: {why}", dir.display())]
    PrivateDir { dir: PathBuf, why: String },
    /// The path of a socket in the private directory would exceed the limit of the operating system.
    #[error(
        "the path {} is too long for a Unix socket, whose path can have at most {limit} bytes \
        (hint: set TMPDIR to a shorter path)", dir.display()
    )]
    LongPath {
        dir: PathBuf,
        /// In bytes.
        limit: usize,
    },
    #[error(transparent)]
    Handshake(#[from] InvalidHandshake),
    #[error("it exited before the handshake: {0}")]
    ExitedEarly(Crash),
    #[error("it did not complete the handshake within {}", super::format_duration(*.0))]
    HandshakeTimeout(Duration),
    #[error("cannot connect to it: {0}")]
    Connect(String),
    /// The runner did not start it.
    #[error("{0}")]
    Runner(String),
    /// The runner cannot be created for lack of rights.
    #[error("{0}")]
    Forbidden(String),
    #[error("cannot create a client certificate: {0}")]
    Certificate(String),
    #[error("TF_REATTACH_PROVIDERS is not valid: {0}")]
    Reattach(String),
}

impl PluginError {
    /// The error without the back-off.
    pub fn cause(&self) -> &Self {
        match self {
            Self::BackingOff { last, .. } => last.cause(),
            other => other,
        }
    }

    /// The kind of the error, for metrics and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "not_started",
            Self::Crashed { .. } => "crashed",
            Self::NotCalled { .. } => "not_called",
            Self::Disconnected { .. } => "disconnected",
            Self::TimedOut { .. } => "timed_out",
            Self::Unimplemented { .. } => "unimplemented",
            Self::Failed { .. } | Self::LargeResponse { .. } => "failed",
            Self::ConfigurationRejected { .. } | Self::NotConfigured { .. } => "rejected",
            Self::BackingOff { .. } => "backing_off",
            Self::NoPlace { .. } | Self::TooLarge { .. } => "no_place",
            Self::Waiting { .. } => "waiting",
            Self::ShuttingDown { .. } => "shutting_down",
        }
    }

    /// Whether the process has exited or can no longer be reached.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Crashed { .. } | Self::NotCalled { .. } | Self::Disconnected { .. })
    }
}
