//! Updates an object in place, or only its record.

use std::sync::Arc;
use std::time::Duration;

use super::create::check_response;
use super::finalize::finalize;
use super::{
    ApplyResult, RecordEffect, StepError, StepTask, applied_object, apply, conditions, hooks, outcome, require_outcome,
    write_result,
};
use crate::execute::failure::Failure;
use drivers::{ApplyRequest, ApplyResponse};
use model::{
    ChangeKind, ChangeOutcome, ConfigDigest, HistoryEntry, Operation, Readiness, Record, RecordedObject, Stored,
};

pub async fn run(task: &StepTask) -> Result<RecordEffect, StepError> {
    let driver = task.driver()?;
    let prepared = task.prepared()?;
    let prior = prepared.prior.as_ref().ok_or_else(|| Failure::internal("an update is planned for no object"))?;
    conditions::before(task)?;
    let last = finalize(task).await?;

    let mut record = task.record();
    // The update starts from the refreshed object; an imported object is recorded here for the first time.
    record.current = Some(Arc::clone(prior));
    if last.unchanged {
        // The final plan equals the prior object, so no call is needed.
        let object = RecordedObject {
            value: last.planned,
            private: Arc::clone(&prior.private),
            identity: prior.identity.clone(),
            matching_config: ConfigDigest::new(&last.config, prior.revision),
            ..task.recorded()?
        };
        if !task.cause.approval.is_empty() {
            // Nothing remains of the change, and its approval is used up.
            let now = task.engine.clock.now();
            let cause = task.cause.clone();
            record.history.add(HistoryEntry::new(ChangeKind::Update, cause, now, now, ChangeOutcome::Succeeded));
        }
        return write_record(task, record, object).await;
    }
    let timeout = task.timeouts().update;
    let planned = task.planned_object(&last, timeout).await?;
    let before = task.intend(record, Operation::Update, None, Some(planned), timeout).await?;

    let context = task.context(&prepared.recorded, timeout, before.record.intent.as_deref());
    let request = ApplyRequest {
        prior: Some(Arc::clone(prior)),
        config: last.config,
        planned: Some(last.planned),
        private: last.private,
    };
    let called = apply(&task.engine, &before, driver.as_ref(), &context, request).await;
    let ApplyResult { response, before } = called;
    record_update_result(task, &before, response, timeout).await
}

/// Records the result of an update. A failed update never taints the object: the state that the driver returned is
/// recorded, or the object stays unchanged. The new dependencies are recorded in both cases, because the object may
/// already use them; the old ones stay until an update succeeds.
async fn record_update_result(
    task: &StepTask,
    before: &Stored,
    response: ApplyResponse,
    timeout: Duration,
) -> Result<RecordEffect, StepError> {
    let response = require_outcome(before, response)?;
    let mut record = before.record.as_ref().clone();
    let intent = record.intent.take();
    let planned = intent.as_ref().and_then(|intent| intent.planned.clone());
    let (Some(planned), Some(prior)) = (planned, record.current.clone()) else {
        return Err(Failure::internal("an update has a result but no intent").into());
    };
    let mut failure = response.error.map(Failure::from);
    let has_object = response.object.is_some();
    if let (None, Some(state), false) = (&failure, &response.object, response.allows_differences) {
        failure = check_response(&record, &planned.planned, &state.value);
    }
    if failure.is_none() && !has_object {
        failure = Some(Failure::driver("the driver returned no object and reported no error"));
    }
    let state = response.object.unwrap_or_else(|| prior.as_ref().into());
    let mut object = applied_object(&planned, state, Some(task.schema()?.as_ref()), task.instance.as_deref());
    if !has_object {
        object.revision = prior.revision;
    }
    object.matching_config = ConfigDigest::new(&planned.config, object.revision).filter(|_| failure.is_none());
    if failure.is_some() {
        object = RecordedObject {
            dependencies: merged_dependencies(&prior, &planned.recorded),
            status: prior.status,
            ..object
        };
    } else if let Some(instance) = &task.instance {
        record.handled_replace_request = Arc::clone(&instance.replace_requested);
    }
    let ready_by = response.ready_by.filter(|_| failure.is_none());
    object.readiness = ready_by.map(|until| Readiness { until, is_new: false, deposed: None });
    if object.readiness.is_some() {
        // The object may use its old dependencies until it is ready.
        object.dependencies = merged_dependencies(&prior, &planned.recorded);
    } else if object.hooks_pending && failure.is_none() {
        record.intent = intent.clone().map(|intent| hooks::keep_intent_open(task, *intent, timeout));
    }
    if let Some(ended) = intent.filter(|_| record.intent.is_none()) {
        let outcome = match object.readiness {
            Some(_) => ChangeOutcome::NotReady,
            None => outcome(failure.as_ref()),
        };
        record.add_ended(&ended, task.engine.clock.now(), outcome);
    }
    record.current = Some(Arc::new(object));
    let stored = write_result(&task.engine, before, record).await?;
    match failure {
        None => Ok(RecordEffect::Written(stored)),
        Some(failure) => Err(StepError { effect: RecordEffect::Written(stored), failure }),
    }
}

/// The dependencies of both objects, in address order.
pub(crate) fn merged_dependencies(prior: &RecordedObject, planned: &RecordedObject) -> Arc<[model::Address]> {
    let mut addresses: Vec<_> = prior.dependencies.iter().chain(planned.dependencies.iter()).cloned().collect();
    addresses.sort();
    addresses.dedup();
    addresses.into()
}

/// A step that only updates the record: lifecycle settings, dependencies, or a refreshed value. It makes no call, so it
/// has no intent unless hooks are pending. A wait step starts with it as well.
pub async fn record_only(task: &StepTask) -> Result<RecordEffect, StepError> {
    conditions::before(task)?;
    write_record(task, task.record(), task.recorded()?).await
}

async fn write_record(task: &StepTask, mut record: Record, object: RecordedObject) -> Result<RecordEffect, StepError> {
    let hooks_follow = object.hooks_pending && object.readiness.is_none() && !task.is_record_only();
    if task.stored.as_ref().is_none_or(|stored| stored.record.current.is_none()) {
        let now = task.engine.clock.now();
        record.history.add(HistoryEntry::new(
            ChangeKind::Import,
            task.cause.clone(),
            now,
            now,
            ChangeOutcome::Succeeded,
        ));
    }
    record.current = Some(Arc::new(object));
    if hooks_follow {
        return task
            .intend(record, Operation::Record, None, None, task.timeouts().create)
            .await
            .map(RecordEffect::Written);
    }
    // The record may already be as the update leaves it.
    if task.stored.as_ref().is_some_and(|stored| *stored.record == record) && !task.must_claim() {
        return Ok(RecordEffect::Unchanged);
    }
    let record = Arc::new(record);
    let journal = &task.engine.journal;
    let version = match &task.stored {
        Some(stored) if !task.must_claim() => journal.record(Arc::clone(&record), stored.clone()).await?,
        stored => journal.intend(Arc::clone(&record), stored.as_ref().map(|stored| stored.version)).await?,
    };
    Ok(RecordEffect::Written(Stored { record, version }))
}
