//! Updating in place, and writing the record only.

use std::sync::Arc;
use std::time::Duration;

use super::create::broken_promise;
use super::finalize::finalize;
use super::{Called, Fate, StepTask, Unfinished, call, conditions, hooks, made_object, settled, write_result};
use crate::driver::{ApplyRequest, ApplyResponse};
use crate::execute::failure::Failure;
use crate::model::{ConfigDigest, Operation, Readiness, Record, RecordedObject, Stored};

pub(super) async fn run(task: &StepTask) -> Result<Fate, Unfinished> {
    let driver = task.driver()?;
    let prepared = task.prepared()?;
    let prior = prepared.prior.as_ref().ok_or_else(|| Failure::internal("an update is planned for no object"))?;
    conditions::before(task)?;
    let last = finalize(task).await?;

    let mut record = task.record();
    // The refreshed object is the base; an imported one is recorded here for the first time.
    record.current = Some(Arc::clone(prior));
    if last.unchanged {
        // It turned out equal, so the driver has nothing to do.
        let object = RecordedObject {
            value: last.planned,
            private: Arc::clone(&prior.private),
            identity: prior.identity.clone(),
            agrees_with: ConfigDigest::new(&last.config, prior.revision),
            ..task.recorded()?
        };
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
    let called = call(&task.engine, &before, driver.as_ref(), &context, request, &task.read()).await;
    let Called { response, before } = called;
    settle_update(task, &before, response, timeout).await
}

/// Records what an update came to. A failed one never taints: what the driver returned is recorded as it is, and
/// without that the object stands as before. The dependencies are the new ones either way, since the object may
/// hold on to them already; the old ones stay beside them until an update succeeds.
async fn settle_update(
    task: &StepTask,
    before: &Stored,
    response: ApplyResponse,
    timeout: Duration,
) -> Result<Fate, Unfinished> {
    let response = settled(before, response)?;
    let mut record = before.record.as_ref().clone();
    let intent = record.intent.take();
    let planned = intent.as_ref().and_then(|intent| intent.planned.clone());
    let (Some(planned), Some(prior)) = (planned, record.current.clone()) else {
        return Err(Failure::internal("an update is settled that was never intended").into());
    };
    let mut failure = response.error.map(Failure::from);
    let made = response.object.is_some();
    if let (None, Some(state), false) = (&failure, &response.object, response.tolerant) {
        failure = broken_promise(&record, &planned.planned, &state.value);
    }
    if failure.is_none() && !made {
        failure = Some(Failure::driver("the driver returned no object and reported no error"));
    }
    let state = response.object.unwrap_or_else(|| prior.as_ref().into());
    let mut object = made_object(&planned, state, Some(task.schema()?.as_ref()));
    if !made {
        object.revision = prior.revision;
    }
    object.agrees_with = ConfigDigest::new(&planned.config, object.revision).filter(|_| failure.is_none());
    if failure.is_some() {
        object = RecordedObject { dependencies: both(&prior, &planned.recorded), status: prior.status, ..object };
    } else if let Some(instance) = &task.instance {
        record.handled_replace_request = Arc::clone(&instance.replace_requested);
    }
    let ready_by = response.ready_by.filter(|_| failure.is_none());
    object.readiness = ready_by.map(|until| Readiness { until, is_new: false, deposed: None });
    if object.readiness.is_some() {
        // It holds on to the old ones until it is ready.
        object.dependencies = both(&prior, &planned.recorded);
    } else if object.hooks_pending && failure.is_none() {
        record.intent = intent.map(|intent| hooks::kept_open(task, *intent, timeout));
    }
    record.current = Some(Arc::new(object));
    let stored = write_result(&task.engine, before, record).await?;
    match failure {
        None => Ok(Fate::Kept(stored)),
        Some(failure) => Err(Unfinished { fate: Fate::Kept(stored), failure }),
    }
}

/// The dependencies of both, in address order.
pub(crate) fn both(prior: &RecordedObject, planned: &RecordedObject) -> Arc<[crate::model::Address]> {
    let mut all: Vec<_> = prior.dependencies.iter().chain(planned.dependencies.iter()).cloned().collect();
    all.sort();
    all.dedup();
    all.into()
}

/// A record-only step: flags, edges, or the value as it was read. No call, so no intent, unless hooks are still to run. A
/// step that waits begins with it as well.
pub(super) async fn record_only(task: &StepTask) -> Result<Fate, Unfinished> {
    conditions::before(task)?;
    write_record(task, task.record(), task.recorded()?).await
}

async fn write_record(task: &StepTask, mut record: Record, object: RecordedObject) -> Result<Fate, Unfinished> {
    let hooks_follow = object.hooks_pending && object.readiness.is_none() && !task.only_follows();
    record.current = Some(Arc::new(object));
    if hooks_follow {
        return task.intend(record, Operation::Record, None, None, task.timeouts().create).await.map(Fate::Kept);
    }
    // An update that turned out equal may leave nothing to write.
    if task.stored.as_ref().is_some_and(|stored| *stored.record == record) && !task.must_claim() {
        return Ok(Fate::Untouched);
    }
    let record = Arc::new(record);
    let journal = &task.engine.journal;
    let version = match &task.stored {
        Some(stored) if !task.must_claim() => journal.record(Arc::clone(&record), stored.clone()).await?,
        stored => journal.intend(Arc::clone(&record), stored.as_ref().map(|stored| stored.version)).await?,
    };
    Ok(Fate::Kept(Stored { record, version }))
}
