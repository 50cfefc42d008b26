//! Progress: the one event type that CLI, status, Kubernetes events and metrics read.

use jiff::Timestamp;

use crate::execute::HookNote;
use crate::model::{Diagnostic, Reason, Step};

/// Something happened to a step.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Which step.
    pub step: Step,
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: ProgressKind,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum ProgressKind {
    /// The step runs.
    Started,
    /// A hook of the step has run, before the step ends.
    Hook(HookNote),
    /// The driver warns of something that the step did, before the step ends.
    Warning(Diagnostic),
    /// The step goes on, and this is why it lasts.
    Delayed(Diagnostic),
    /// It did what it was to do.
    Finished,
    /// It did not.
    Failed {
        /// The condition reason.
        reason: Reason,
        /// One line, without sensitive values.
        message: String,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// It did nothing, since a newer wish is known; the plan that is made for that decides what becomes of it.
    Withdrawn,
    /// It has done its part, and was not to wait any longer until the object is ready: whoever plans next goes on with that.
    LetGo,
    /// It did not start, because of the step named (or because of a stop: `None`).
    Skipped {
        /// The failed step.
        because_of: Option<Step>,
    },
}

/// Steps counted by outcome; record, forget and read steps are not counted as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Finished creates.
    pub created: usize,
    /// Finished updates.
    pub updated: usize,
    /// Finished destroys.
    pub destroyed: usize,
    /// Failed steps.
    pub failed: usize,
    /// Skipped steps.
    pub skipped: usize,
}
