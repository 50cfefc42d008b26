//! Workers: the tasks that execute the commands of one namespace's schedule.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::field::{self, Empty};
use tracing::{Instrument as _, Span};

use super::failure::Failure;
use super::in_flight::StepUpdate;
use super::permits::{ExhaustedPools, Permit, Permits};
use super::step::{RecordEffect, StepEnd, StepInput, StepTask};
use crate::execute::{DesiredDigests, Engine};
use drivers::Warnings;
use model::{Namespace, ProviderUse, Step, text};

/// The longest error in a line. The status and the event have the same text.
const MAX_ERROR: usize = 1024;

/// A command from a schedule to its workers.
#[derive(Debug)]
pub enum WorkerCommand {
    /// Start a step, which holds its permit. The worker answers with a [`StepEnd`].
    Start(Box<StepInput>, Permit),
    /// End the wait of a running step for readiness, or for the end of an object that it has destroyed, also if it begins
    /// later.
    EndWait(Step),
}

#[derive(Debug)]
pub enum WorkerEvent {
    StepEnded(Box<StepEnd>),
    /// A step that is still running reported something.
    StepUpdated(Step, StepUpdate),
    /// A permit is available in a pool that was exhausted.
    PermitAvailable,
}

/// Executes the commands of a schedule.
pub struct Workers {
    engine: Arc<Engine>,
    desired: DesiredDigests,
    tasks: JoinSet<StepEnd>,
    updates: UnboundedReceiver<(Step, StepUpdate)>,
    update_sender: UnboundedSender<(Step, StepUpdate)>,
    exhausted: ExhaustedPools,
    /// Whether waits for readiness end with a failure. Otherwise, they last until the object is ready.
    limits_waits: bool,
    /// Ends the readiness wait of each running step.
    readiness_waits: BTreeMap<Step, watch::Sender<bool>>,
}

impl Workers {
    /// Creates the idle workers of a namespace.
    pub fn new(engine: Arc<Engine>, namespace: Namespace, desired: DesiredDigests) -> Self {
        let (update_sender, updates) = unbounded_channel();
        Self {
            engine,
            desired,
            tasks: JoinSet::new(),
            updates,
            update_sender,
            exhausted: ExhaustedPools::new(namespace),
            limits_waits: false,
            readiness_waits: BTreeMap::new(),
        }
    }

    /// Ends waits for readiness when the object has failed or its time limit has passed: a run ends, and the next run
    /// waits again.
    #[must_use]
    pub fn with_limited_waits(self) -> Self {
        Self { limits_waits: true, ..self }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Starts to execute a command and returns immediately.
    pub fn execute(&mut self, order: WorkerCommand) {
        match order {
            WorkerCommand::Start(input, permit) => self.start(*input, permit),
            WorkerCommand::EndWait(step) => {
                self.readiness_waits.get(&step).into_iter().for_each(|wait| _ = wait.send_replace(true));
            }
        }
    }

    /// Whether no step is running and no step waits for a permit.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.exhausted.is_empty()
    }

    /// Returns the next event; waits forever when idle. Cancel safe.
    pub async fn next(&mut self) -> WorkerEvent {
        tokio::select! {
            // A fixed order makes simulated runs reproducible.
            biased;
            Some(ended) = self.tasks.join_next() => match ended {
                Ok(end) => {
                    self.readiness_waits.remove(&end.step);
                    WorkerEvent::StepEnded(Box::new(end))
                }
                // Tasks catch their panics, and are aborted only when the process ends.
                Err(error) => {
                    tracing::error!(%error, "a step's task was aborted");
                    WorkerEvent::PermitAvailable
                }
            },
            Some((step, news)) = self.updates.recv() => WorkerEvent::StepUpdated(step, news),
            () = self.exhausted.any_free() => {
                self.exhausted.clear();
                WorkerEvent::PermitAvailable
            }
        }
    }

    /// Requests that providers stop their running calls. The calls still return a result, which is recorded. Returns
    /// `false` if no provider with running calls supports this.
    pub async fn stop_calls(&self) -> bool {
        match self.engine.drivers.providers() {
            Some(providers) => providers.stop().await,
            None => false,
        }
    }

    /// Clears the list of exhausted pools; the next request for a permit rebuilds it.
    pub fn clear_exhausted(&mut self) {
        self.exhausted.clear();
    }

    fn start(&mut self, input: StepInput, permit: Permit) {
        let step = input.step.clone();
        let guard = self.engine.in_flight.begin(&input.namespace, &step, self.update_sender.clone(), permit);
        let span = step_span(&input);
        let (end_wait, stop) = watch::channel(false);
        self.readiness_waits.insert(step.clone(), end_wait);
        let task = StepTask {
            engine: Arc::clone(&self.engine),
            desired: self.desired.clone(),
            stop,
            limits_waits: self.limits_waits,
            input,
            notes: std::sync::Mutex::default(),
            warnings: Warnings::default(),
        };
        let work = async move {
            let began = Instant::now();
            let end = AssertUnwindSafe(task.run()).catch_unwind().await;
            // A panic leaves the intent open, so the object is blocked until recovery has resolved the intent.
            let end = end.unwrap_or_else(|_| StepEnd {
                step,
                effect: RecordEffect::Unchanged,
                failure: Some(Failure::internal("the step panicked; recovery determines its outcome")),
                notes: Vec::new(),
                warnings: Vec::new(),
            });
            log_end(&end, began.elapsed());
            // The permit is released here and not when the receiver handles the end, because the receiver may be
            // planning and waiting for a permit.
            drop(guard);
            end
        };
        self.tasks.spawn(work.instrument(span));
    }
}

impl Permits for Workers {
    fn try_take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Permit> {
        let pools = self.engine.pools(self.exhausted.namespace(), type_name, provider);
        self.exhausted.try_take(pools)
    }

    fn is_exhausted(&self) -> bool {
        self.exhausted.lacks(self.engine.total_pool())
    }
}

/// The fields that all log lines of a step share. Provider calls, record writes and provider output belong to this span.
/// `operation_id` is that of the intent, once the step has one.
fn step_span(input: &StepInput) -> Span {
    // A span of the highest level, because its fields belong to lines of all levels.
    tracing::error_span!(
        "step",
        namespace = &*input.namespace,
        component = &*input.component,
        object = %input.step.address,
        resource_type = &*input.type_name,
        operation = input.step.operation.as_str(),
        deposed = input.step.deposed.map(field::display),
        operation_id = Empty,
    )
}

/// Logs the end of a step in its span.
fn log_end(end: &StepEnd, took: Duration) {
    let seconds = took.as_secs_f64();
    match (&end.effect, &end.failure) {
        (RecordEffect::Superseded(_), _) => {
            tracing::info!(outcome = "superseded", seconds, "step ended");
        }
        (RecordEffect::WaitInterrupted(_), _) => {
            tracing::info!(outcome = "interrupted", seconds, "step ended");
        }
        (effect, None) => {
            let current = match effect {
                RecordEffect::Written(stored) => stored.record.current.as_ref(),
                _ => None,
            };
            let id = current.and_then(|object| object.visible_id());
            tracing::info!(outcome = "finished", seconds, id, "step ended");
        }
        (_, Some(failure)) => {
            let error = &*text::cut(&failure.message, MAX_ERROR);
            let (reason, retryable) = (failure.reason.as_str(), failure.retryable);
            tracing::info!(outcome = "failed", seconds, reason, retryable, error, "step ended");
        }
    }
}
