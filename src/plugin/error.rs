//! What can go wrong between us and a plugin. What a provider has to say about an object is no error here: that comes
//! as [`super::Diagnostic`]s of an answer.

use std::path::PathBuf;
use std::time::Duration;

use super::Crash;
use super::handshake::InvalidHandshake;

/// A call that gave no answer, or a plugin that did not start. One line, which names the provider.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PluginError {
    /// It did not come up.
    #[error("the provider {provider} did not start: {why}")]
    Start {
        /// The provider, as [`super::Launch::name`] has it.
        provider: String,
        /// Why.
        why: StartError,
    },
    /// Its process ended while the call ran, or before. Whether the call did its work is unknown.
    #[error("the provider {provider} ended during {call}: {crash}")]
    Crashed {
        /// The provider.
        provider: String,
        /// The method.
        call: &'static str,
        /// How it ended, and its last words.
        crash: Crash,
    },
    /// Its process had ended before it was the call's turn, so the call was not made.
    #[error("the provider {provider} ended before {call}: {crash}")]
    NotCalled {
        /// The provider.
        provider: String,
        /// The method.
        call: &'static str,
        /// How it ended, and its last words.
        crash: Crash,
    },
    /// Its process lives and the connection does not. Whether the call did its work is unknown.
    #[error("the provider {provider} broke the connection during {call}: {why}")]
    Disconnected {
        /// The provider.
        provider: String,
        /// The method.
        call: &'static str,
        /// What the transport says.
        why: String,
    },
    /// It took too long.
    #[error("the provider {provider} did not answer {call} within {}", super::duration_text(*.limit))]
    TimedOut {
        /// The provider.
        provider: String,
        /// The method.
        call: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It has no such method. The client's methods tell this as `None` where a provider may do without.
    #[error("the provider {provider} does not know {call}")]
    Unimplemented {
        /// The provider.
        provider: String,
        /// The method.
        call: &'static str,
    },
    /// It refused the call as such. Providers should give diagnostics instead.
    #[error("the provider {provider} failed in {call}: {why}")]
    Failed {
        /// The provider.
        provider: String,
        /// The method.
        call: &'static str,
        /// Its words.
        why: String,
    },
    /// It has something against its configuration.
    #[error("the provider {provider} refuses its configuration: {}", super::diagnostic::first_error(.diagnostics))]
    Refused {
        /// The provider.
        provider: String,
        /// The method.
        call: &'static str,
        /// All that it says. May hold sensitive values.
        diagnostics: Vec<super::Diagnostic>,
    },
    /// Whoever was to configure it could not. It is told as it is to all who wait for the same process.
    #[error("{why}")]
    Unconfigured {
        /// Why, without sensitive values.
        why: String,
        /// The next step.
        hint: Option<String>,
    },
    /// It failed too often lately, so it is not started again yet.
    #[error("{last} (it failed {failures} times in a row; the next start is at {until})")]
    BackingOff {
        /// How often it failed.
        failures: u32,
        /// When it may start again.
        until: jiff::Timestamp,
        /// How it failed the last time.
        last: Box<PluginError>,
    },
    /// The pool is closing.
    #[error("the provider {provider} is not started any more: Purlin is stopping")]
    Closing {
        /// The provider.
        provider: String,
    },
}

/// Why a plugin did not come up.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    /// Not there, not executable, or not for this machine.
    #[error("{} cannot be executed: {why}", program.display())]
    Execute {
        /// What was to be executed.
        program: PathBuf,
        /// What the system says.
        why: String,
    },
    /// Its private folder cannot be made.
    #[error("no private folder can be made in {}: {why}", folder.display())]
    Folder {
        /// Where it was to be made.
        folder: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A socket in that folder would have a name that is too long for the system.
    #[error(
        "the path {} is too long for a Unix socket, which may have {limit} bytes \
         (hint: set TMPDIR to a shorter one)", folder.display()
    )]
    LongPath {
        /// The private folder.
        folder: PathBuf,
        /// How long a path of a socket may be.
        limit: usize,
    },
    /// It wrote something else than a handshake.
    #[error(transparent)]
    Handshake(#[from] InvalidHandshake),
    /// It ended without a handshake.
    #[error("it ended without a handshake: {0}")]
    Ended(Crash),
    /// It lives, and does not tell its address.
    #[error("it did not tell its address within {}", super::duration_text(*.0))]
    Silent(Duration),
    /// It told an address and cannot be reached there.
    #[error("it cannot be reached: {0}")]
    Connect(String),
    /// We could not make keys.
    #[error("no certificate could be made: {0}")]
    Certificate(String),
    /// A text that should tell where plugins of a debugger listen does not.
    #[error("TF_REATTACH_PROVIDERS cannot be read: {0}")]
    Reattach(String),
}

impl PluginError {
    /// How it failed, without how often.
    pub fn cause(&self) -> &Self {
        match self {
            Self::BackingOff { last, .. } => last.cause(),
            other => other,
        }
    }

    /// Whether the process is gone, or as good as gone.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Crashed { .. } | Self::NotCalled { .. } | Self::Disconnected { .. })
    }
}
