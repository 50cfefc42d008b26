//! The process of a plugin, on this machine or in a runner.

use tokio::sync::watch;

use super::crash::Crash;
use super::process::Process;
use super::remote::RemoteProcess;

/// A running plugin. Dropping it kills the plugin.
#[derive(Debug)]
pub enum PluginProcess {
    Local(Process),
    Remote(RemoteProcess),
}

impl PluginProcess {
    /// The process id on this machine.
    pub fn id(&self) -> Option<u32> {
        match self {
            Self::Local(process) => Some(process.id()),
            Self::Remote(_) => None,
        }
    }

    /// The memory in bytes, if it is known.
    pub fn memory(&self) -> Option<u64> {
        match self {
            Self::Local(process) => process.memory(),
            Self::Remote(process) => process.memory(),
        }
    }

    /// Waits until the process can no longer run.
    pub async fn ended(&self) -> Crash {
        Crash::reported(self.end()).await
    }

    /// `None` while the process may run.
    pub fn crash(&self) -> Option<Crash> {
        self.end().borrow().clone()
    }

    /// Kills the process. It may run for a while: [`Self::ended`] returns when it does not.
    pub fn kill(&self) {
        match self {
            Self::Local(process) => process.kill(),
            Self::Remote(process) => process.kill(),
        }
    }

    /// Whether another process must take over, because the runner was asked to end.
    pub fn is_leaving(&self) -> bool {
        matches!(self, Self::Remote(process) if process.is_leaving())
    }

    /// Whether the runner was asked to end, and no other process can take over.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Remote(process) if process.is_last())
    }

    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    fn end(&self) -> &watch::Receiver<Option<Crash>> {
        match self {
            Self::Local(process) => process.end(),
            Self::Remote(process) => process.end(),
        }
    }
}
