//! Waits until an object is ready. The object is already recorded, so the wait is not a call: it holds no permit, a
//! shutdown ends it immediately, and the next plan of the object continues it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{RecordEffect, StepError, StepTask, outcome, refreshed_object, with_awaits_postconditions, write_result};
use crate::driver::{Driver, Observation, ReadinessError};
use crate::execute::engine::after;
use crate::execute::failure::Failure;
use crate::execute::in_flight::Delay;
use crate::execute::mask;
use crate::model::{ObjectState, ObjectStatus, Operation, Readiness, Reason, RecordedObject, Secrets, Stored, Value};
use crate::process::lock;

/// Shorter waits are not reported.
const FIRST_REPORT: Duration = Duration::from_secs(1);

/// How often a wait is reported, because its reason changes.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The minimum time for a wait that starts after its deadline, so that the object is read at least once.
const MINIMUM_WAIT: Duration = Duration::from_secs(10);

/// Waits for the step's object if it is not ready, and records the outcome.
pub(super) async fn wait(task: &StepTask, effect: RecordEffect) -> Result<RecordEffect, StepError> {
    let marked = task.record_after(&effect).and_then(|stored| {
        let object = stored.record.current.clone()?;
        Some((stored.clone(), object.readiness?, object))
    });
    let Some((stored, readiness, object)) = marked else { return Ok(effect) };
    let driver = match task.driver() {
        Ok(driver) => driver.as_ref(),
        Err(failure) => return Err(StepError { effect: RecordEffect::Written(stored), failure }),
    };
    match wait_for_driver(task, driver, &stored, &object, readiness).await {
        None => Err(StepError { failure: wait_interrupted(), effect: RecordEffect::WaitInterrupted(stored) }),
        Some(Ok(state)) => record_ready(task, stored, &object, readiness, state).await,
        Some(Err(ReadinessError { error, last: Observation::Nothing })) => {
            Err(StepError { effect: RecordEffect::Written(stored), failure: error.into() })
        }
        Some(Err(ReadinessError { error, last })) => {
            record_not_ready(task, stored, &object, readiness, error.into(), last).await
        }
    }
}

/// Returns the result of the driver's wait, or `None` after a shutdown.
async fn wait_for_driver(
    task: &StepTask,
    driver: &dyn Driver,
    stored: &Stored,
    object: &RecordedObject,
    readiness: Readiness,
) -> Option<Result<ObjectState, ReadinessError>> {
    let mut context = task.context(object, Duration::ZERO, None);
    context.deadline = readiness.until.max(after(task.engine.clock.now(), MINIMUM_WAIT));
    let secrets = || mask::secrets(driver, &context, &Value::Null, Some(object), &task.read());
    let missing = Mutex::new(String::new());
    let set_missing = |what: &str| what.clone_into(&mut lock(&missing));
    let in_flight = &task.engine.in_flight;
    in_flight.release(&stored.record);
    let mut stop = task.stop.clone();
    let work = driver.wait_ready(&context, object, &set_missing);
    tokio::pin!(work);
    let mut pause = FIRST_REPORT;
    let ended = loop {
        tokio::select! {
            // A finished wait is recorded even during a shutdown.
            biased;
            ended = &mut work => break ended,
            _ = stop.wait_for(|stop| *stop) => return None,
            () = tokio::time::sleep(pause) => {
                in_flight.report_delay(&stored.record, delay(&secrets(), &lock(&missing)));
                pause = REPORT_INTERVAL;
            }
        }
    };
    context.warnings.mask(secrets);
    Some(ended.map_err(|ReadinessError { error, last }| ReadinessError { error: secrets().redact_error(error), last }))
}

fn delay(secrets: &Secrets, missing: &str) -> Delay {
    let message = match missing.is_empty() {
        true => "waiting for the object to become ready".to_owned(),
        false => secrets.redact(format!("waiting for the object to become ready: {missing}")),
    };
    Delay { reason: Reason::Progressing, message }
}

fn wait_interrupted() -> Failure {
    let message = "the object is not ready yet; the next plan waits for it again".to_owned();
    Failure { reason: Reason::Progressing, message, retryable: true }
}

/// Records that the object is ready. Hooks of a new object follow under a separate intent.
async fn record_ready(
    task: &StepTask,
    stored: Stored,
    object: &RecordedObject,
    readiness: Readiness,
    state: ObjectState,
) -> Result<RecordEffect, StepError> {
    let mut record = stored.record.as_ref().clone();
    record.history.conclude(task.engine.clock.now(), outcome(None));
    let ready = RecordedObject {
        readiness: None,
        matching_config: object.matching_config,
        dependencies: task.prepared()?.recorded.dependencies.clone(),
        ..refreshed(task, &stored, object, state)
    };
    let hooks_follow = ready.hooks_pending;
    record.current = Some(Arc::new(ready));
    if readiness.is_new {
        record.end_replacement();
        record.failed_creates = if hooks_follow { record.failed_creates } else { 0 };
    }
    if hooks_follow {
        let (base, timeout) = (Some(stored.version), task.timeouts().create);
        let intended = task.intend_after(base, record, Operation::Record, None, None, timeout).await;
        return intended.map(RecordEffect::Written).map_err(|unfinished| with_written_record(stored, unfinished));
    }
    write_result(&task.engine, &stored, record).await.map(RecordEffect::Written)
}

/// A new object that does not become ready is tainted, as if its create had failed. An updated object keeps its status;
/// the next plan reads it again.
async fn record_not_ready(
    task: &StepTask,
    stored: Stored,
    object: &RecordedObject,
    readiness: Readiness,
    failure: Failure,
    last: Observation,
) -> Result<RecordEffect, StepError> {
    let mut record = stored.record.as_ref().clone();
    record.history.conclude(task.engine.clock.now(), outcome(Some(&failure)));
    let unready = |object: RecordedObject| {
        let status = if readiness.is_new { ObjectStatus::Tainted } else { object.status };
        Some(Arc::new(RecordedObject { readiness: None, matching_config: None, status, ..object }))
    };
    record.current = match last {
        Observation::Object(state) => unready(refreshed(task, &stored, object, state)),
        Observation::Missing if readiness.is_new => {
            let old = readiness.deposed.and_then(|key| record.deposed.remove(&key));
            old.map(|old| with_awaits_postconditions(old, false))
        }
        Observation::Missing | Observation::Nothing => unready(object.clone()),
    };
    let mut failure = failure;
    if readiness.is_new && (readiness.deposed.is_some() || record.replacement_pending) {
        record.count_failed_create(task.instance.as_deref().map_or(0, |instance| instance.generation));
    }
    if readiness.is_new && record.replacement_pending {
        failure = failure.of_replacement();
    }
    let stored = write_result(&task.engine, &stored, record).await?;
    Err(StepError { effect: RecordEffect::Written(stored), failure })
}

fn refreshed(task: &StepTask, stored: &Stored, object: &RecordedObject, state: ObjectState) -> RecordedObject {
    let schema = task.engine.schema(&stored.record.type_name, object.provider.as_ref());
    refreshed_object(object, state, schema.as_deref())
}

/// The hooks could not start, so the record is as the step has written it.
fn with_written_record(stored: Stored, unfinished: StepError) -> StepError {
    match unfinished.effect {
        RecordEffect::Unchanged => StepError { effect: RecordEffect::Written(stored), ..unfinished },
        _ => unfinished,
    }
}
