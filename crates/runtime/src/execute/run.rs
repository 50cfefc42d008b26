//! A run: a schedule and the workers that execute it, owned by one task, and what it reports.

use std::sync::Arc;

use jiff::Timestamp;

use super::schedule::{Schedule, StepEvent};
use super::workers::{WorkerCommand, WorkerEvent, Workers};
use crate::execute::{DesiredDigests, Engine, HookNote};
use model::{Diagnostic, Namespace, Reason, Recorded, Step};

/// Executes plans whose desired state does not change during the run.
pub struct Run {
    pub schedule: Schedule,
    /// The records as last read or written by this run.
    pub records: Recorded,
    workers: Workers,
}

impl Run {
    /// Creates an idle run over the records of one namespace.
    pub fn new(engine: Arc<Engine>, namespace: Namespace, records: Recorded) -> Self {
        let schedule = Schedule::new(engine.limits.per_namespace);
        let workers = Workers::new(engine, namespace, DesiredDigests::default()).with_limited_waits();
        Self { schedule, records, workers }
    }

    /// Returns the next event, or `None` when no step runs and none can start. Cancel safe.
    pub async fn next(&mut self) -> Option<Progress> {
        loop {
            for (address, written) in self.schedule.take_written() {
                let before = self.records.remove(address);
                let after = written.record(before.as_ref()).cloned();
                self.records.extend(after.map(|stored| (address.clone(), stored)));
            }
            if let Some(StepEvent { step, kind, .. }) = self.schedule.event() {
                return Some(Progress { step, at: self.workers.engine().clock.now(), kind });
            }
            self.workers.clear_exhausted();
            for order in self.schedule.commands(&self.records, &mut self.workers, &mut (), &|_, _| true) {
                self.workers.execute(order);
            }
            if self.schedule.has_events() {
                continue;
            }
            if self.workers.is_idle() {
                return None;
            }
            match self.workers.next().await {
                WorkerEvent::StepEnded(end) => self.schedule.step_ended(*end),
                WorkerEvent::StepUpdated(step, news) => self.schedule.step_updated(step, news),
                WorkerEvent::PermitAvailable => {}
            }
        }
    }

    /// Starts no more steps and ends readiness waits. Running calls continue.
    pub fn stop(&mut self) {
        self.schedule.stop();
        for step in self.schedule.running_steps() {
            self.workers.execute(WorkerCommand::EndWait(step.clone()));
        }
    }

    pub fn workers(&self) -> &Workers {
        &self.workers
    }
}

/// A progress event, the only source for the CLI, status, Kubernetes events and metrics.
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
