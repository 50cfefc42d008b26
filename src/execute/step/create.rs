//! Creating: a new object, or the new one of a replacement in either order.

use std::sync::Arc;

use super::finalize::finalize;
use super::{Called, Fate, StepTask, Unfinished, call, conditions, hooks, made_object, settled, write_result};
use crate::driver::{ApplyRequest, ApplyResponse};
use crate::execute::Engine;
use crate::execute::failure::Failure;
use crate::model::{
    ConfigDigest, Diagnostic, Intent, ObjectStatus, Operation, Readiness, Reason, Record, RecordedObject, ReplaceOrder,
    Schema, Stored, Value,
};
use crate::plan::finalize::{Final, check_result};

/// Everything about the new object is known before anything is given up: the old object of a create-first
/// replacement is deposed in the very write that records the intent, immediately before the call.
pub(super) async fn run(task: &StepTask) -> Result<Fate, Unfinished> {
    let is_pending = task.stored.as_ref().is_some_and(|stored| stored.record.replacement_pending);
    let made = create(task).await;
    made.map_err(|unfinished| match is_pending {
        true => Unfinished { failure: unfinished.failure.of_replacement(), ..unfinished },
        false => unfinished,
    })
}

async fn create(task: &StepTask) -> Result<Fate, Unfinished> {
    let driver = task.driver()?;
    let prepared = task.prepared()?;
    conditions::before(task)?;
    let last = finalize(task).await?;
    refuse_fixed_identity(task, &last)?;

    let mut record = task.record();
    let deposed = match (task.order, record.current.take()) {
        (Some(ReplaceOrder::CreateFirst), Some(old)) => {
            let judged = task.instance.as_deref().is_some_and(|instance| !instance.postconditions.is_empty());
            record.deposed.insert(prepared.deposed_key, with_wait(old, judged));
            Some(prepared.deposed_key)
        }
        // A create that replaces nothing is planned over an object only when that was read and found gone.
        (None, Some(_)) if !task.step.replaces => None,
        (_, Some(_)) => return Err(Failure::internal("a create is planned for an object that exists").into()),
        (_, None) => None,
    };
    let timeout = task.timeouts().create;
    let planned = task.planned_object(&last, timeout).await?;
    let before = task.intend(record, Operation::Create, deposed, Some(planned), timeout).await?;

    let context = task.context(&prepared.recorded, timeout, before.record.intent.as_deref());
    let request = ApplyRequest { prior: None, config: last.config, planned: Some(last.planned), private: last.private };
    let called = call(&task.engine, &before, driver.as_ref(), &context, request, &task.read()).await;
    let Called { response, before } = called;
    let (generation, requested) = task
        .instance
        .as_deref()
        .map_or((0, Arc::from("")), |instance| (instance.generation, Arc::clone(&instance.replace_requested)));
    // The hooks follow under the same intent.
    let keeps_open = |intent| hooks::kept_open(task, intent, timeout);
    settle_create(&task.engine, &before, response, generation, &requested, Some(&keeps_open)).await
}

/// Both objects of a create-first replacement exist for a while, which one fixed name forbids. Planning refuses it
/// when the name is known then; here it is known for certain.
fn refuse_fixed_identity(task: &StepTask, last: &Final) -> Result<(), Failure> {
    if task.order != Some(ReplaceOrder::CreateFirst) {
        return Ok(());
    }
    let old = task.stored.as_ref().and_then(|stored| stored.record.current.as_ref()?.identity.clone());
    match (&last.identity, old) {
        (Some(new), Some(old)) if new.same(&old) => {
            let error = Diagnostic::error(
                &task.step.address,
                Reason::FixedIdentity,
                "the new object would have the identity of the old one, so it cannot be created first",
            );
            Err(error.hint("let the name be generated, or switch createBeforeDestroy off").into())
        }
        _ => Ok(()),
    }
}

/// Keeps an intent open for what follows the call.
pub(crate) type KeepOpen<'a> = &'a (dyn Fn(Intent) -> Box<Intent> + Send + Sync);

/// Records what a create came to. Used by the step and by recovery, which makes the same call again. The step goes on
/// with the hooks of the object, when there are any, so it keeps the intent open; recovery leaves them to the next plan.
///
/// - an object that is not ready yet: it is current and marked so; [`ready`](super::ready) goes on with it.
/// - an object: it is current; with an error as well, it is tainted and will be replaced, unless the error is of our own
///   stop: then it is read first, and kept if it is complete.
/// - no object: what was deposed for it is current again, unchanged.
pub(crate) async fn settle_create(
    engine: &Engine,
    before: &Stored,
    response: ApplyResponse,
    generation: i64,
    replace_requested: &Arc<str>,
    keep_open: Option<KeepOpen<'_>>,
) -> Result<Fate, Unfinished> {
    let response = settled(before, response)?;
    let mut record = before.record.as_ref().clone();
    let Some(intent) = record.intent.take() else {
        return Err(Failure::internal("a create is settled that was never intended").into());
    };
    let provider = intent.planned.as_ref().and_then(|planned| planned.recorded.provider.as_ref());
    let schema = engine.schema(&record.type_name, provider);
    let is_replacement = intent.deposed.is_some() || record.replacement_pending;
    let opened = (*intent).clone();
    let failure = conclude_create(&mut record, *intent, response, schema.as_deref());
    if failure.is_some() && !is_replacement {
        // Only replacements are counted: what was never there may be tried for ever.
    } else if failure.is_some() {
        record.count_failed_create(generation);
    } else if record.current.as_ref().is_some_and(|object| object.readiness.is_some()) {
        // Whether it was made well shows when it is ready.
        record.handled_replace_request = Arc::clone(replace_requested);
    } else {
        let hooks_follow = record.current.as_ref().is_some_and(|object| object.hooks_pending);
        if !hooks_follow {
            record.failed_creates = 0;
        } else if let Some(keep_open) = keep_open {
            record.intent = Some(keep_open(opened));
        }
        record.replacement_pending = false;
        record.handled_replace_request = Arc::clone(replace_requested);
    }
    let stored = write_result(engine, before, record).await?;
    match failure {
        None => Ok(Fate::Kept(stored)),
        Some(failure) => Err(Unfinished { fate: Fate::Kept(stored), failure }),
    }
}

fn conclude_create(
    record: &mut Record,
    intent: Intent,
    response: ApplyResponse,
    schema: Option<&Schema>,
) -> Option<Failure> {
    let Intent { deposed, planned, .. } = intent;
    let mut failure = response.error.map(Failure::from);
    match (response.object, planned) {
        (Some(state), Some(planned)) => {
            if failure.is_none() && !response.tolerant && !response.found {
                failure = broken_promise(record, &planned.planned, &state.value);
            }
            let mut object = made_object(&planned, state, schema);
            let ready_by = response.ready_by.filter(|_| failure.is_none());
            object.readiness = ready_by.map(|until| Readiness { until, is_new: true, deposed });
            (object.status, object.agrees_with) = match (&failure, response.interrupted) {
                // What was found may be anything; the next plan compares it.
                (None, _) if response.found => (ObjectStatus::Ready, None),
                (None, _) => (ObjectStatus::Ready, ConfigDigest::new(&planned.config, object.revision)),
                (Some(_), true) => (ObjectStatus::Interrupted, None),
                (Some(_), false) => (ObjectStatus::Tainted, None),
            };
            record.current = Some(Arc::new(object));
        }
        _ => {
            if let Some(old) = deposed.and_then(|key| record.deposed.remove(&key)) {
                record.current = Some(with_wait(old, false));
            }
            failure.get_or_insert_with(|| Failure::driver("the driver made no object and reported no error"));
        }
    }
    failure
}

/// The object, waiting for the postconditions of its successor or not.
pub(crate) fn with_wait(object: Arc<RecordedObject>, awaits_postconditions: bool) -> Arc<RecordedObject> {
    if object.awaits_postconditions == awaits_postconditions {
        return object;
    }
    Arc::new(RecordedObject { awaits_postconditions, ..object.as_ref().clone() })
}

/// What a driver returns must be what it planned. The object is kept in any case.
pub(super) fn broken_promise(record: &Record, planned: &Value, result: &Value) -> Option<Failure> {
    let mut broken = check_result(&record.address, planned, result);
    (!broken.is_empty()).then(|| broken.swap_remove(0).into())
}
