//! Destroys or forgets an object: the current one, or a deposed one.

use std::sync::Arc;

use super::finalize::check_replacement;
use super::{
    ApplyResult, RecordEffect, StepError, StepTask, apply, hooks, outcome, refreshed_object, require_outcome,
    with_awaits_postconditions, without_intent, write_result,
};
use crate::execute::failure::Failure;
use crate::execute::{Engine, publish};
use drivers::{ApplyRequest, ApplyResponse, CallContext, Driver};
use engine::plan::hooks::before_destroy;
use model::{
    ChangeKind, ChangeOutcome, DeposedKey, Diagnostic, HistoryEntry, Operation, Reason, Record, RecordedObject,
    ReplaceOrder, Stored, Value,
};

/// The object of a record that a step removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemovalTarget {
    /// The deposed object, or `None` for the current one.
    pub deposed: Option<DeposedKey>,
    /// A new object follows, so the record stays although it is empty.
    pub replacement_follows: bool,
}

pub async fn run(task: &StepTask) -> Result<RecordEffect, StepError> {
    let removed = removal_target(task)?;
    if removed.replacement_follows {
        check_replacement(task).await.map_err(|failure| Failure {
            message: format!(
                "the old object was not destroyed because the new one cannot be planned: {}",
                failure.message
            ),
            ..failure
        })?;
    }
    let mut record = task.record();
    let object = match (removed.deposed, task.refreshed()) {
        (None, Some(now)) => {
            record.current = Some(Arc::clone(now));
            Arc::clone(now)
        }
        _ => target_object(&record, removed.deposed)?,
    };
    if let Some(key) = removed.deposed {
        // Its successor satisfies its postconditions, or this step would not run.
        record.deposed.insert(key, with_awaits_postconditions(Arc::clone(&object), false));
    }
    if removed.replacement_follows {
        record.approved_object.clone_from(&task.approved_object);
    }
    let timeout = task.timeouts().delete;
    let hooks = before_destroy(task.instance.as_deref(), &task.step.address, &object);
    // The hooks have their own time limit before that of the call.
    let span = if hooks.is_empty() { timeout } else { timeout.saturating_mul(2) };
    let before = task.intend(record, Operation::Destroy, removed.deposed, None, span).await?;

    hooks::before_destroy(task, &before, &object, hooks).await?;
    task.check_still_desired(&before).await?;
    let context = task.context(&object, timeout, before.record.intent.as_deref());
    let planned = if removed.replacement_follows { task.prepared()?.destroy_private.clone() } else { Arc::default() };
    let call = apply_destroy(&task.engine, &before, task.driver()?.as_ref(), &context, object, planned);
    let ApplyResult { response, before } = until_stopped(task, &context, call).await;
    if response.interrupted {
        return Err(interrupted(task, &before).await?);
    }
    record_destroy_result(&task.engine, &before, removed, response, ChangeOutcome::Succeeded).await
}

/// Asks the call to return at a shutdown. A run waits for its end, as for that of any call.
async fn until_stopped(
    task: &StepTask,
    context: &CallContext,
    call: impl Future<Output = ApplyResult> + Send,
) -> ApplyResult {
    tokio::pin!(call);
    let mut stop = task.stop.clone();
    let called = tokio::select! {
        biased;
        called = &mut call => Some(called),
        _ = stop.wait_for(|stop| *stop), if !task.limits_waits => None,
    };
    match called {
        Some(called) => called,
        None => {
            context.stop.request();
            call.await
        }
    }
}

/// The object is still being destroyed, which the next plan waits for again, also after a restart.
async fn interrupted(task: &StepTask, before: &Stored) -> Result<StepError, StepError> {
    let stored = write_result(&task.engine, before, without_intent(&before.record)).await?;
    let message = "the object still exists; the next plan waits again until it does not".to_owned();
    let failure = Failure { reason: Reason::Progressing, message, retryable: true };
    Ok(StepError { effect: RecordEffect::WaitInterrupted(stored), failure })
}

pub async fn forget(task: &StepTask) -> Result<RecordEffect, StepError> {
    let removed = removal_target(task)?;
    let Some(stored) = &task.stored else { return Ok(RecordEffect::Unchanged) };
    if !task.is_still_desired() {
        return Err(StepError::superseded(None));
    }
    let mut record = stored.record.as_ref().clone();
    // After a failed first create there is no object.
    if let Ok(object) = target_object(&record, removed.deposed) {
        release(task, &object).await?;
        drop_object(&mut record, removed);
        let now = task.engine.clock.now();
        let entry = HistoryEntry::new(ChangeKind::Forget, task.cause.clone(), now, now, ChangeOutcome::Succeeded);
        record.history.add(HistoryEntry { deposed: removed.deposed, ..entry });
    } else if record.has_objects() {
        return Ok(RecordEffect::Unchanged);
    }
    finish_removal(&task.engine, stored, record, removed).await
}

/// Removes Purlin's marks from an object that is kept. An object that keeps them is a warning only: a Resource of the
/// same name would adopt it, and says so.
async fn release(task: &StepTask, object: &RecordedObject) -> Result<(), StepError> {
    let context = task.context(object, task.timeouts().read, None);
    if let Err(error) = task.driver()?.release(&context, object).await {
        let what = format!("the marks of Purlin stay on the object: {}", error.line());
        task.warnings.add(Diagnostic::warning(&task.step.address, Reason::ProviderWarning, what));
    }
    Ok(())
}

/// The object that the step removes. A create-before-destroy replacement has already deposed the old object, with the
/// key of the plan.
fn removal_target(task: &StepTask) -> Result<RemovalTarget, Failure> {
    let deposed = match (task.step.deposed, task.order) {
        (Some(key), _) => Some(key),
        (None, Some(ReplaceOrder::CreateFirst)) => Some(task.prepared()?.deposed_key),
        (None, _) => None,
    };
    Ok(RemovalTarget { deposed, replacement_follows: task.step.replaces && deposed.is_none() })
}

fn target_object(record: &Record, deposed: Option<DeposedKey>) -> Result<Arc<RecordedObject>, Failure> {
    let object = match deposed {
        Some(key) => record.deposed.get(&key),
        None => record.current.as_ref(),
    };
    object.cloned().ok_or_else(|| Failure::internal("the object to destroy is not in the record"))
}

/// Destroys an object. `private` are the private data of the plan that covers the destroy; empty if there is none.
pub(crate) async fn apply_destroy(
    engine: &Engine,
    before: &Stored,
    driver: &dyn Driver,
    context: &CallContext,
    object: Arc<RecordedObject>,
    private: Arc<[u8]>,
) -> ApplyResult {
    let request = ApplyRequest { prior: Some(object), config: Value::Null, planned: None, private };
    apply(engine, before, driver, context, request).await
}

/// Records the result of a destroy. On an error the object keeps its status and dependencies, with the state that the
/// driver returned. Otherwise it is removed, and the record with its last object; `done` is then the outcome.
pub(crate) async fn record_destroy_result(
    engine: &Engine,
    before: &Stored,
    removed: RemovalTarget,
    response: ApplyResponse,
    done: ChangeOutcome,
) -> Result<RecordEffect, StepError> {
    let response = require_outcome(before, response)?;
    let mut record = before.record.as_ref().clone();
    record.intent = None;
    let failure = response.error.map(Failure::from);
    if let Some(intent) = &before.record.intent {
        let outcome = failure.as_ref().map_or(done, |failure| outcome(Some(failure)));
        record.add_ended(intent, engine.clock.now(), outcome);
    }
    let Some(failure) = failure else {
        drop_object(&mut record, removed);
        return finish_removal(engine, before, record, removed).await;
    };
    if let Some(state) = response.object {
        let object = target_object(&record, removed.deposed)?;
        let schema = engine.schema(&record.type_name, object.provider.as_ref());
        let kept = Arc::new(refreshed_object(&object, state, schema.as_deref()));
        match removed.deposed {
            Some(key) => drop(record.deposed.insert(key, kept)),
            None => record.current = Some(kept),
        }
    }
    let stored = write_result(engine, before, record).await?;
    Err(StepError { effect: RecordEffect::Written(stored), failure })
}

fn drop_object(record: &mut Record, removed: RemovalTarget) {
    match removed.deposed {
        Some(key) => drop(record.deposed.remove(&key)),
        None => record.current = None,
    }
    if removed.replacement_follows {
        record.replacement_pending = true;
    }
}

async fn finish_removal(
    engine: &Engine,
    before: &Stored,
    mut record: Record,
    removed: RemovalTarget,
) -> Result<RecordEffect, StepError> {
    let goes = !removed.replacement_follows && (removed.deposed.is_none() || !record.has_objects());
    if goes && let Err(failure) = publish::remove_all(engine, &mut record).await {
        // The next attempt removes the remaining copies, so the object stays recorded until then.
        let mut kept = before.record.as_ref().clone();
        kept.intent = None;
        kept.published = record.published;
        if let Some(intent) = &before.record.intent {
            kept.add_ended(intent, engine.clock.now(), outcome(Some(&failure)));
        }
        let stored = write_result(engine, before, kept).await?;
        return Err(StepError { effect: RecordEffect::Written(stored), failure });
    }
    if record.has_objects() || removed.replacement_follows {
        return write_result(engine, before, record).await.map(RecordEffect::Written);
    }
    match engine.journal.erase(before.clone()).await {
        Ok(()) => Ok(RecordEffect::Erased),
        Err(error) => {
            Err(StepError { effect: RecordEffect::Written(before.clone()), failure: super::unrecorded_result(error) })
        }
    }
}
