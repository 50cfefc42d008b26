//! Destroying and forgetting: the current object, the one that a create-first replacement left, or a leftover.

use std::sync::Arc;

use super::finalize::rehearse;
use super::{Called, Fate, StepTask, Unfinished, call, hooks, seen_object, settled, with_wait, write_result};
use crate::driver::{ApplyRequest, ApplyResponse, CallContext, Driver};
use crate::execute::failure::Failure;
use crate::execute::{Engine, publish};
use crate::model::{DeposedKey, Operation, Record, RecordedObject, ReplaceOrder, Stored, Value};
use crate::plan::hooks::before_destroy;

/// Which object of a record a step removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    /// The deposed one; `None` for the current.
    pub deposed: Option<DeposedKey>,
    /// A new object follows: the record stays though it is empty.
    pub makes_room: bool,
}

pub(super) async fn run(task: &StepTask) -> Result<Fate, Unfinished> {
    let removed = what(task)?;
    if removed.makes_room {
        rehearse(task).await.map_err(|failure| Failure {
            message: format!("the old object is kept, since the new one cannot be planned: {}", failure.message),
            ..failure
        })?;
    }
    let mut record = task.record();
    let object = chosen(&record, removed.deposed)?;
    if let Some(key) = removed.deposed {
        // Its successor is as it must be, or this step would not run.
        record.deposed.insert(key, with_wait(Arc::clone(&object), false));
    }
    let timeout = task.timeouts().delete;
    let hooks = before_destroy(task.instance.as_deref(), &task.step.address, &object);
    // The hooks have their own time before that of the call.
    let span = if hooks.is_empty() { timeout } else { timeout.saturating_mul(2) };
    let before = task.intend(record, Operation::Destroy, removed.deposed, None, span).await?;

    hooks::before_destroy(task, &before, &object, hooks).await?;
    task.go_on(&before).await?;
    let context = task.context(&object, timeout, before.record.intent.as_deref());
    let called = call_destroy(&task.engine, &before, task.driver()?.as_ref(), &context, object).await;
    let Called { response, before } = called;
    settle_destroy(&task.engine, &before, removed, response).await
}

/// Drops the object from the record; the object itself stays.
pub(super) async fn forget(task: &StepTask) -> Result<Fate, Unfinished> {
    let removed = what(task)?;
    let Some(stored) = &task.stored else { return Ok(Fate::Untouched) };
    if !task.is_still_wished() {
        return Err(Unfinished::withdrawn(None));
    }
    let mut record = stored.record.as_ref().clone();
    // After a first create that failed there is none.
    if chosen(&record, removed.deposed).is_ok() {
        drop_object(&mut record, removed);
    } else if record.has_objects() {
        return Ok(Fate::Untouched);
    }
    finish_removal(&task.engine, stored, record, removed).await
}

/// A create-first replacement has deposed the old object by now, under the key that the plan drew.
fn what(task: &StepTask) -> Result<Removed, Failure> {
    let deposed = match (task.step.deposed, task.order) {
        (Some(key), _) => Some(key),
        (None, Some(ReplaceOrder::CreateFirst)) => Some(task.prepared()?.deposed_key),
        (None, _) => None,
    };
    Ok(Removed { deposed, makes_room: task.step.replaces && deposed.is_none() })
}

fn chosen(record: &Record, deposed: Option<DeposedKey>) -> Result<Arc<RecordedObject>, Failure> {
    let object = match deposed {
        Some(key) => record.deposed.get(&key),
        None => record.current.as_ref(),
    };
    object.cloned().ok_or_else(|| Failure::internal("the object to destroy is not recorded any more"))
}

/// The call itself.
pub(crate) async fn call_destroy(
    engine: &Engine,
    before: &Stored,
    driver: &dyn Driver,
    context: &CallContext,
    object: Arc<RecordedObject>,
) -> Called {
    let private = Arc::clone(&object.private);
    let request = ApplyRequest { prior: Some(object), config: Value::Null, planned: None, private };
    call(engine, before, driver, context, request, &[]).await
}

/// Records what a destroy came to: on an error the object, its status and its dependencies stay as they were (what
/// the driver returned of it is recorded), otherwise it is gone, and with its last object the record.
pub(crate) async fn settle_destroy(
    engine: &Engine,
    before: &Stored,
    removed: Removed,
    response: ApplyResponse,
) -> Result<Fate, Unfinished> {
    let response = settled(before, response)?;
    let mut record = before.record.as_ref().clone();
    record.intent = None;
    let Some(error) = response.error else {
        drop_object(&mut record, removed);
        return finish_removal(engine, before, record, removed).await;
    };
    if let Some(state) = response.object {
        let object = chosen(&record, removed.deposed)?;
        let schema = engine.schema(&record.type_name, object.provider.as_ref());
        let kept = Arc::new(seen_object(&object, state, schema.as_deref()));
        match removed.deposed {
            Some(key) => drop(record.deposed.insert(key, kept)),
            None => record.current = Some(kept),
        }
    }
    let stored = write_result(engine, before, record).await?;
    Err(Unfinished { fate: Fate::Kept(stored), failure: error.into() })
}

fn drop_object(record: &mut Record, removed: Removed) {
    match removed.deposed {
        Some(key) => drop(record.deposed.remove(&key)),
        None => record.current = None,
    }
    if removed.makes_room {
        record.replacement_pending = true;
    }
}

async fn finish_removal(
    engine: &Engine,
    before: &Stored,
    mut record: Record,
    removed: Removed,
) -> Result<Fate, Unfinished> {
    let goes = !removed.makes_room && (removed.deposed.is_none() || !record.has_objects());
    if goes && let Err(failure) = publish::remove_all(engine, &mut record).await {
        // The copies that are left go with the next attempt, so the object stays recorded until then.
        let mut kept = before.record.as_ref().clone();
        kept.intent = None;
        kept.published = record.published;
        let stored = write_result(engine, before, kept).await?;
        return Err(Unfinished { fate: Fate::Kept(stored), failure });
    }
    if record.has_objects() || removed.makes_room {
        return write_result(engine, before, record).await.map(Fate::Kept);
    }
    match engine.journal.erase(before.clone()).await {
        Ok(()) => Ok(Fate::Erased),
        Err(error) => Err(Unfinished { fate: Fate::Kept(before.clone()), failure: super::lost_result(error) }),
    }
}
