//! Runs hooks. A runner receives a hook whose expressions are evaluated, and returns its outcome.

pub mod exec;
pub mod job;

use std::sync::Arc;

use async_trait::async_trait;

use super::CallContext;
use model::{RecordedHook, Uid};

#[derive(Clone, Debug)]
pub struct HookCall {
    pub context: CallContext,
    /// The UID of the Resource; empty on files.
    pub uid: Uid,
    /// Identifies the object that the hook runs for. The same hook for the same object is the same run.
    pub object: Arc<str>,
    pub hook: RecordedHook,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOutcome {
    /// The reason of the failure, such as `exit status 3`; `None` if the hook succeeded.
    pub failure: Option<String>,
    /// The output of the hook, truncated.
    pub output: String,
}

impl HookOutcome {
    /// A failure without output.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { failure: Some(why.into()), output: String::new() }
    }
}

/// Runs hooks. A run returns by the deadline of the call. Dropping the future kills a program; a Job continues, and the
/// next call for the same object resumes it.
#[async_trait]
pub trait HookRunner: Send + Sync {
    async fn run(&self, call: &HookCall) -> HookOutcome;
}

/// For commands that run no steps.
pub struct NoHooks;

#[async_trait]
impl HookRunner for NoHooks {
    async fn run(&self, _: &HookCall) -> HookOutcome {
        HookOutcome::failed("hooks are not supported here")
    }
}
