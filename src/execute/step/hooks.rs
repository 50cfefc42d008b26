//! Hooks as part of a step. They run under the step's intent, so nobody else touches the object meanwhile.
//!
//! That hooks after a create are still to run is recorded with the object in the very write that records it. Whatever
//! cuts them, the next plan has a step for the object that runs them again: at least once, for the same object.

use std::sync::Arc;
use std::time::Duration;

use super::{Fate, StepTask, Unfinished, write_result};
use crate::execute::engine::after;
use crate::execute::failure::Failure;
use crate::execute::hooks::{self, Concerning};
use crate::model::{Intent, ObjectStatus, RecordedObject, Stored};
use crate::plan::hooks::{self as planned, Evaluated};

/// The intent of a call that has ended well, kept open for the hooks that follow.
pub(super) fn kept_open(task: &StepTask, intent: Intent, timeout: Duration) -> Box<Intent> {
    let deadline = after(task.engine.clock.now(), timeout);
    Box::new(Intent { deadline, deposed: None, planned: None, ..intent })
}

/// Runs the hooks of a new object, and closes the intent that `stored` holds. A hook that fails taints the object.
pub(super) async fn after_create(task: &StepTask, stored: Stored) -> Result<Fate, Unfinished> {
    let timeout = task.timeouts().create;
    let Some(object) = stored.record.current.clone().filter(|object| object.hooks_pending) else {
        return Ok(Fate::Kept(stored));
    };
    let instance = task.instance.as_deref();
    let hooks = instance.map(|instance| planned::after_create(instance, &object.value, &task.scope));
    let ended = run(task, &stored, &object, hooks.unwrap_or_default(), timeout).await;
    let mut record = stored.record.as_ref().clone();
    record.intent = None;
    let status = if ended.is_err() { ObjectStatus::Tainted } else { object.status };
    record.current = Some(Arc::new(RecordedObject { hooks_pending: false, status, ..object.as_ref().clone() }));
    let generation = instance.map_or(0, |instance| instance.generation);
    match ended {
        Ok(()) => record.failed_creates = 0,
        Err(_) => record.count_failed_create(generation),
    }
    let stored = write_result(&task.engine, &stored, record).await?;
    match ended {
        Ok(()) => Ok(Fate::Kept(stored)),
        Err(failure) => Err(Unfinished { fate: Fate::Kept(stored), failure }),
    }
}

/// Runs the hooks of an object that is about to go, under the intent that `stored` holds. When one fails the intent is
/// closed and the object stays as it is.
pub(super) async fn before_destroy(
    task: &StepTask,
    stored: &Stored,
    object: &RecordedObject,
    hooks: Vec<Evaluated>,
) -> Result<(), Unfinished> {
    if hooks.is_empty() {
        return Ok(());
    }
    let Err(failure) = run(task, stored, object, hooks, task.timeouts().delete).await else { return Ok(()) };
    let mut record = stored.record.as_ref().clone();
    record.intent = None;
    let stored = write_result(&task.engine, stored, record).await?;
    Err(Unfinished { fate: Fate::Kept(stored), failure })
}

async fn run(
    task: &StepTask,
    stored: &Stored,
    object: &RecordedObject,
    hooks: Vec<Evaluated>,
    timeout: Duration,
) -> Result<(), Failure> {
    let context = task.context(object, timeout, stored.record.intent.as_deref());
    let of = Concerning { engine: &task.engine, context, uid: &stored.record.uid, object, read: task.read() };
    let mut notes = Vec::new();
    let ended = hooks::run(&of, hooks, &mut notes).await;
    task.note(notes);
    ended
}
