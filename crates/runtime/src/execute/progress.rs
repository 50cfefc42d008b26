//! Progress events, the only source for the CLI, status, Kubernetes events and metrics.

use jiff::Timestamp;

use crate::execute::HookNote;
use model::{Diagnostic, Reason, Step};

#[derive(Clone, Debug)]
pub struct Progress {
    pub step: Step,
    pub at: Timestamp,
    pub kind: ProgressKind,
}

#[derive(Clone, Debug)]
pub enum ProgressKind {
    Started,
    /// A hook of the step ended. The step has not ended yet.
    Hook(HookNote),
    /// The driver warned about the step. The step has not ended yet.
    Warning(Diagnostic),
    /// The step is still running; the diagnostic says why.
    Delayed(Diagnostic),
    Finished,
    Failed {
        reason: Reason,
        /// One line, without sensitive values.
        message: String,
        /// Whether a retry may help.
        retryable: bool,
    },
    /// The step did nothing because the desired state has changed. The next plan decides about the object.
    Superseded,
    /// The step was interrupted while it waited for the object to become ready. The next plan continues the wait.
    WaitInterrupted,
    /// The step did not start.
    Skipped {
        /// The failed step that is the cause; `None` after a shutdown.
        because_of: Option<Step>,
    },
}

/// Counts of steps by outcome. Finished record, forget and read steps are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// The objects that existed before. Their steps are counted too.
    pub imported: usize,
    pub created: usize,
    pub updated: usize,
    pub destroyed: usize,
    pub failed: usize,
    pub skipped: usize,
}
