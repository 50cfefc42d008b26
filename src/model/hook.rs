//! Hooks: what is run besides the calls of a step.

use std::sync::Arc;

use super::Value;

/// What runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookKind {
    /// A program on this machine.
    Exec,
    /// A Job in the namespace of the Resource.
    Job,
}

/// What a failure of a hook means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The step fails.
    #[default]
    Fail,
    /// A warning is told, and the step goes on.
    Continue,
}

/// A hook as records keep it: what is needed to run it without its Resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedHook {
    /// Unique among the hooks of its object.
    pub name: Arc<str>,
    /// What runs it.
    pub kind: HookKind,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// `Exec`: the program and its arguments. `Job`: the template of its Pod. Recorded with an object its texts are as
    /// they were written, expressions included; in an intent they are evaluated.
    pub definition: Value,
}
