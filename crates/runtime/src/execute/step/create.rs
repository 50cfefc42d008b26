//! Creates an object, also as part of a replacement in either order.

use std::sync::Arc;

use super::finalize::finalize;
use super::{
    ApplyResult, RecordEffect, StepError, StepTask, applied_object, apply, conditions, hooks, outcome, require_outcome,
    write_result,
};
use crate::execute::Engine;
use crate::execute::failure::Failure;
use drivers::{ApplyRequest, ApplyResponse};
use engine::load::Instance;
use engine::plan::finalize::{FinalPlan, check_result};
use model::{
    ChangeOutcome, ConfigDigest, Diagnostic, Intent, Lifecycle, ObjectStatus, Operation, Readiness, Reason, Record,
    RecordedObject, ReplaceOrder, Resolution, Schema, Stored, Value, Words,
};

/// Creates an object. All inputs of the new object are known before the old one is given up: a create-before-destroy
/// replacement deposes the old object in the same write that records the intent, immediately before the call.
pub async fn run(task: &StepTask) -> Result<RecordEffect, StepError> {
    let is_pending = task.stored.as_ref().is_some_and(|stored| stored.record.replacement_pending);
    let created = create(task).await;
    created.map_err(|error| match is_pending {
        true => StepError { failure: error.failure.of_replacement(), ..error },
        false => error,
    })
}

async fn create(task: &StepTask) -> Result<RecordEffect, StepError> {
    let driver = task.driver()?;
    let prepared = task.prepared()?;
    conditions::before(task)?;
    let last = finalize(task).await?;
    check_identity(task, &last)?;

    let mut record = task.record();
    let deposed = match (task.order, record.current.take()) {
        (Some(ReplaceOrder::CreateFirst), Some(old)) => {
            let old = task.refreshed().cloned().unwrap_or(old);
            let judged = task.instance.as_deref().is_some_and(|instance| !instance.postconditions.is_empty());
            record.deposed.insert(prepared.deposed_key, with_awaits_postconditions(old, judged));
            Some(prepared.deposed_key)
        }
        // A plan creates an object that is recorded, without replacing it, only if a read did not find it.
        (None, Some(_)) if !task.step.replaces => None,
        (_, Some(_)) => return Err(Failure::internal("a create is planned for an object that exists").into()),
        (_, None) => None,
    };
    let timeout = task.timeouts().create;
    let planned = task.planned_object(&last, timeout).await?;
    let before = task.intend(record, Operation::Create, deposed, Some(planned), timeout).await?;

    let context = task.context(&prepared.recorded, timeout, before.record.intent.as_deref());
    let request = ApplyRequest { prior: None, config: last.config, planned: Some(last.planned), private: last.private };
    let ApplyResult { response, before } = apply(&task.engine, &before, driver.as_ref(), &context, request).await;
    let instance = task.instance.as_deref();
    // The hooks run under the same intent.
    let keep_open: KeepOpen<'_> = &|intent| hooks::keep_intent_open(task, intent, timeout);
    record_create_result(&task.engine, &before, response, instance, Some(keep_open)).await
}

/// Both objects of a create-before-destroy replacement exist at the same time, which a fixed name makes impossible.
/// Planning rejects it if the name is known; here the name is always known.
fn check_identity(task: &StepTask, last: &FinalPlan) -> Result<(), Failure> {
    if task.order != Some(ReplaceOrder::CreateFirst) {
        return Ok(());
    }
    let old = task.stored.as_ref().and_then(|stored| stored.record.current.as_ref()?.identity.clone());
    match (&last.identity, old) {
        (Some(new), Some(old)) if new.equals_unmarked(&old) => {
            let error = Diagnostic::error(
                &task.step.address,
                Reason::CreateBeforeDestroyImpossible,
                "the new object would have the same identity as the old one, so it cannot be created before the old \
                 one is destroyed",
            );
            let setting = Words::of(&task.step.address).setting(Lifecycle::CreateBeforeDestroy);
            Err(error.hint(format!("use a generated name, or disable `{setting}`")).into())
        }
        _ => Ok(()),
    }
}

/// Returns the intent to keep open after the call.
pub(crate) type KeepOpen<'a> = &'a (dyn Fn(Intent) -> Box<Intent> + Send + Sync);

/// Records the result of a create, for the step and for recovery, which repeats the call. The step continues with the
/// hooks of the object, so it keeps the intent open; recovery leaves the hooks to the next plan.
///
/// - An object that is not ready yet becomes current and is marked as not ready; [`ready`](super::ready) waits for it.
/// - An object becomes current. If the response also has an error, the object is tainted and will be replaced, unless
///   Purlin stopped the call itself: then the object is read first, and kept if it is complete.
/// - Without an object, the object that was deposed for it becomes current again, unchanged.
pub(crate) async fn record_create_result(
    engine: &Engine,
    before: &Stored,
    response: ApplyResponse,
    instance: Option<&Instance>,
    keep_open: Option<KeepOpen<'_>>,
) -> Result<RecordEffect, StepError> {
    let response = require_outcome(before, response)?;
    let mut record = before.record.as_ref().clone();
    let Some(intent) = record.intent.take() else {
        return Err(Failure::internal("a create has a result but no intent").into());
    };
    let provider = intent.planned.as_ref().and_then(|planned| planned.recorded.provider.as_ref());
    let schema = engine.schema(&record.type_name, provider);
    let is_replacement = intent.deposed.is_some() || record.replacement_pending;
    let opened = (*intent).clone();
    let ended = Intent { planned: None, ..opened.clone() };
    let failure = apply_response(&mut record, *intent, response, schema.as_deref(), instance);
    if failure.is_some() && !is_replacement {
        // Only failed replacements are counted: a first create may be retried without limit.
    } else if failure.is_some() {
        record.count_failed_create(instance.map_or(0, |instance| instance.generation));
    } else if record.current.as_ref().is_some_and(|object| object.readiness.is_some()) {
        // Whether the create succeeded is known when the object is ready.
        handle_replace_request(&mut record, instance);
    } else {
        let hooks_follow = record.current.as_ref().is_some_and(|object| object.hooks_pending);
        if !hooks_follow {
            record.failed_creates = 0;
        } else if let Some(keep_open) = keep_open {
            record.intent = Some(keep_open(opened));
        }
        record.end_replacement();
        handle_replace_request(&mut record, instance);
    }
    if record.intent.is_none() {
        let not_ready = record.current.as_ref().is_some_and(|object| object.readiness.is_some());
        let outcome = match &failure {
            Some(failure) => outcome(Some(failure)),
            None if not_ready => ChangeOutcome::NotReady,
            None if keep_open.is_none() => ChangeOutcome::Recovered(Resolution::Effective),
            None => ChangeOutcome::Succeeded,
        };
        record.add_ended(&ended, engine.clock.now(), outcome);
    }
    let stored = write_result(engine, before, record).await?;
    match failure {
        None => Ok(RecordEffect::Written(stored)),
        Some(failure) => Err(StepError { effect: RecordEffect::Written(stored), failure }),
    }
}

fn handle_replace_request(record: &mut Record, instance: Option<&Instance>) {
    record.handled_replace_request =
        instance.map_or_else(|| Arc::from(""), |instance| Arc::clone(&instance.replace_requested));
}

fn apply_response(
    record: &mut Record,
    intent: Intent,
    response: ApplyResponse,
    schema: Option<&Schema>,
    instance: Option<&Instance>,
) -> Option<Failure> {
    let Intent { deposed, planned, .. } = intent;
    let mut failure = response.error.map(Failure::from);
    match (response.object, planned) {
        (Some(state), Some(planned)) => {
            if failure.is_none() && !response.allows_differences && !response.recovered {
                failure = check_response(record, &planned.planned, &state.value);
            }
            let mut object = applied_object(&planned, state, schema, instance);
            let ready_by = response.ready_by.filter(|_| failure.is_none());
            object.readiness = ready_by.map(|until| Readiness { until, is_new: true, deposed });
            (object.status, object.matching_config) = match (&failure, response.interrupted) {
                // A found object may differ from the plan; the next plan compares it.
                (None, _) if response.recovered => (ObjectStatus::Ready, None),
                (None, _) => (ObjectStatus::Ready, ConfigDigest::new(&planned.config, object.revision)),
                (Some(_), true) => (ObjectStatus::Interrupted, None),
                (Some(_), false) => (ObjectStatus::Tainted, None),
            };
            record.current = Some(Arc::new(object));
        }
        _ => {
            if let Some(old) = deposed.and_then(|key| record.deposed.remove(&key)) {
                record.current = Some(with_awaits_postconditions(old, false));
            }
            failure.get_or_insert_with(|| Failure::driver("the driver created no object and reported no error"));
        }
    }
    failure
}

/// The object with `awaits_postconditions` set: whether its destroy waits for the postconditions of its successor.
pub(crate) fn with_awaits_postconditions(
    object: Arc<RecordedObject>,
    awaits_postconditions: bool,
) -> Arc<RecordedObject> {
    if object.awaits_postconditions == awaits_postconditions {
        return object;
    }
    Arc::new(RecordedObject { awaits_postconditions, ..object.as_ref().clone() })
}

/// A failure if the returned object does not match the plan. The object is recorded in any case.
pub fn check_response(record: &Record, planned: &Value, result: &Value) -> Option<Failure> {
    let mut broken = check_result(&record.address, planned, result);
    (!broken.is_empty()).then(|| broken.swap_remove(0).into())
}
