//! Running hooks. Whoever runs them knows nothing of steps: it gets a hook without expressions, and says what became
//! of it.

pub mod exec;
pub mod job;

use std::sync::Arc;

use futures::future::BoxFuture;

use super::CallContext;
use crate::model::RecordedHook;

/// What is to be run, for whom.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Namespace, address, service account, deadline.
    pub context: CallContext,
    /// UID of the Resource; empty in local mode.
    pub uid: Arc<str>,
    /// Names the object that the hook runs for: a hook is the same run for as long as this and its name are the same.
    pub object: Arc<str>,
    /// The hook, its definition evaluated.
    pub hook: RecordedHook,
}

/// What became of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOutcome {
    /// Why it failed, in a few words: `exit status 3`. `None`: it did not.
    pub failure: Option<String>,
    /// What it wrote, bounded.
    pub output: String,
}

impl HookOutcome {
    /// A hook that failed before it wrote anything.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { failure: Some(why.into()), output: String::new() }
    }
}

/// Runs hooks. It ends by itself at the deadline of the call. Dropping the future gives the hook up: a program is
/// killed, a Job goes on and is found again by the next call for the same object.
pub trait HookRunner: Send + Sync {
    /// Runs one hook to its end.
    fn run<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, HookOutcome>;
}

/// Where nothing is carried out, no hook is run.
pub struct NoHooks;

impl HookRunner for NoHooks {
    fn run<'a>(&'a self, _: &'a HookCall) -> BoxFuture<'a, HookOutcome> {
        Box::pin(async { HookOutcome::failed("hooks cannot be run here") })
    }
}
