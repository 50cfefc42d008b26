//! A run: a schedule and the workers that execute it, owned by one task.

use std::sync::Arc;

use super::schedule::{Schedule, StepEvent};
use super::worker_command::WorkerCommand;
use super::workers::{WorkerEvent, Workers};
use crate::execute::{DesiredDigests, Engine, Progress};
use model::Recorded;

/// Executes plans whose desired state does not change during the run.
pub struct Run {
    pub schedule: Schedule,
    /// The records as last read or written by this run.
    pub records: Recorded,
    workers: Workers,
}

impl Run {
    /// Creates an idle run over the records of one namespace.
    pub fn new(engine: Arc<Engine>, namespace: Arc<str>, records: Recorded) -> Self {
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
