//! Hooks as part of a step. They run under the step's intent, so no other process changes the object meanwhile.
//!
//! The write that records a new object also records that its hooks are pending. If they are interrupted, the next plan
//! has a step that runs them again: at least once for each object.

use std::sync::Arc;
use std::time::Duration;

use super::{RecordEffect, StepError, StepTask, outcome, write_result};
use crate::execute::engine::after;
use crate::execute::failure::Failure;
use crate::execute::hooks::{self, HookTarget};
use engine::plan::hooks::{self as planned, EvaluatedHook};
use model::{Intent, ObjectStatus, RecordedObject, Stored};

/// The intent of a successful call, kept open for the hooks that follow.
pub fn keep_intent_open(task: &StepTask, intent: Intent, timeout: Duration) -> Box<Intent> {
    let deadline = after(task.engine.clock.now(), timeout);
    Box::new(Intent { deadline, deposed: None, planned: None, ..intent })
}

/// Runs the hooks of a new object, and closes the intent that `stored` holds. A failed hook taints the object.
pub async fn after_create(task: &StepTask, stored: Stored) -> Result<RecordEffect, StepError> {
    let timeout = task.timeouts().create;
    let Some(object) = stored.record.current.clone().filter(|object| object.hooks_pending) else {
        return Ok(RecordEffect::Written(stored));
    };
    let instance = task.instance.as_deref();
    let hooks = match instance {
        Some(instance) => task.evaluate(|| planned::after_create(instance, &object.value, &task.scope)),
        None => Vec::new(),
    };
    let ended = run(task, &stored, &object, hooks, timeout).await;
    let mut record = stored.record.as_ref().clone();
    if let Some(intent) = record.intent.take() {
        record.add_ended(&intent, task.engine.clock.now(), outcome(ended.as_ref().err()));
    }
    let status = if ended.is_err() { ObjectStatus::Tainted } else { object.status };
    record.current = Some(Arc::new(RecordedObject { hooks_pending: false, status, ..object.as_ref().clone() }));
    let generation = instance.map_or(0, |instance| instance.generation);
    match ended {
        Ok(()) => record.failed_creates = 0,
        Err(_) => record.count_failed_create(generation),
    }
    let stored = write_result(&task.engine, &stored, record).await?;
    match ended {
        Ok(()) => Ok(RecordEffect::Written(stored)),
        Err(failure) => Err(StepError { effect: RecordEffect::Written(stored), failure }),
    }
}

/// Runs the hooks before a destroy, under the intent that `stored` holds. If one fails, closes the intent; the object
/// stays unchanged.
pub async fn before_destroy(
    task: &StepTask,
    stored: &Stored,
    object: &RecordedObject,
    hooks: Vec<EvaluatedHook>,
) -> Result<(), StepError> {
    if hooks.is_empty() {
        return Ok(());
    }
    let Err(failure) = run(task, stored, object, hooks, task.timeouts().delete).await else { return Ok(()) };
    let mut record = stored.record.as_ref().clone();
    if let Some(intent) = record.intent.take() {
        record.add_ended(&intent, task.engine.clock.now(), outcome(Some(&failure)));
    }
    let stored = write_result(&task.engine, stored, record).await?;
    Err(StepError { effect: RecordEffect::Written(stored), failure })
}

async fn run(
    task: &StepTask,
    stored: &Stored,
    object: &RecordedObject,
    hooks: Vec<EvaluatedHook>,
    timeout: Duration,
) -> Result<(), Failure> {
    let context = task.context(object, timeout, stored.record.intent.as_deref());
    let of = HookTarget { engine: &task.engine, context, uid: &stored.record.uid, object };
    let mut notes = Vec::new();
    let ended = hooks::run(&of, hooks, &mut notes).await;
    task.add_hook_notes(notes);
    ended
}
