//! Waits until an object is ready. The object is already recorded, so the wait is not a call: it holds no permit, a
//! shutdown ends it immediately, and the next plan of the object continues it. Readiness is what the object shows now:
//! an object that has failed or is late is waited for like any other, and is never replaced because of that.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{RecordEffect, StepError, StepTask, outcome, refreshed_object, with_awaits_postconditions, write_result};
use crate::execute::engine::after;
use crate::execute::failure::Failure;
use crate::execute::in_flight::Delay;
use drivers::{Driver, Observation, ReadinessError};
use engine::load::DriftAction;
use model::{DriverError, ErrorKind, Health, ObjectState, Operation, Readiness, Reason, RecordedObject, Stored};
use process::lock;

/// How often the health is checked.
const TICK: Duration = Duration::from_secs(1);

/// How often a wait is reported although its state has not changed, because a new plan resets the reported status.
const REPORT_TICKS: u32 = 10;

/// After how many ticks in a row a run believes that an object has failed: after a change, controllers may still show
/// the state before it.
const FAILED_TICKS: u32 = 10;

/// The minimum time for a wait that starts after its deadline, so that the object is read at least once.
const MINIMUM_WAIT: Duration = Duration::from_secs(15);

/// The time limit of each further call of the driver after the deadline. Only the end of a call shows whether another client
/// has changed the object.
const ROUND: Duration = Duration::from_mins(1);

/// How a wait ended.
enum WaitEnd {
    Ready(ObjectState),
    Missing(DriverError),
    /// Its record still says that it is not ready: the next plan waits again.
    NotReady(Failure),
    /// After a shutdown, a change of the Resource, or a change of the object by another client.
    Interrupted,
}

/// Waits for the step's object if it is not ready, and records the outcome.
pub async fn wait(task: &StepTask, effect: RecordEffect) -> Result<RecordEffect, StepError> {
    let marked = task.record_after(&effect).and_then(|stored| {
        let object = stored.record.current.clone()?;
        Some((stored.clone(), object.readiness?, object))
    });
    let Some((stored, readiness, object)) = marked else { return Ok(effect) };
    let driver = match task.driver() {
        Ok(driver) => driver.as_ref(),
        Err(failure) => return Err(StepError { effect: RecordEffect::Written(stored), failure }),
    };
    let waiting = Waiting { task, driver, stored: &stored, object: &object, readiness };
    match waiting.end().await {
        WaitEnd::Interrupted => {
            Err(StepError { failure: wait_interrupted(), effect: RecordEffect::WaitInterrupted(stored) })
        }
        WaitEnd::Ready(state) => record_ready(task, stored, &object, readiness, state).await,
        WaitEnd::NotReady(failure) => Err(StepError { effect: RecordEffect::Written(stored), failure }),
        WaitEnd::Missing(error) => record_missing(task, stored, &object, readiness, error.into()).await,
    }
}

/// A wait for an object.
struct Waiting<'a> {
    task: &'a StepTask,
    driver: &'a dyn Driver,
    stored: &'a Stored,
    object: &'a RecordedObject,
    readiness: Readiness,
}

impl Waiting<'_> {
    async fn end(&self) -> WaitEnd {
        let clock = &self.task.engine.clock;
        self.task.engine.in_flight.recorded(self.stored);
        let mut deadline = self.readiness.until.max(after(clock.now(), MINIMUM_WAIT));
        loop {
            let seen = Mutex::new(Health::InProgress(String::new()));
            let ended = self.round(deadline, &seen).await;
            match ended {
                Ok(end) => return end,
                // Only a run gives up.
                Err(error) if self.task.limits_waits => return WaitEnd::NotReady(not_ready(error)),
                Err(_) if self.has_drifted() => return WaitEnd::Interrupted,
                Err(error) => {
                    match error.kind {
                        // What the object shows is reported already, and holds until the next call.
                        ErrorKind::Transient => self.report(&match lock(&seen).clone() {
                            Health::InProgress(why) if why.is_empty() => Health::InProgress(error.message),
                            health => health,
                        }),
                        ErrorKind::Terminal => self.report(&Health::Failed(error.message)),
                        // It says nothing about the object, which cannot be seen.
                        kind => self.report_delay(Delay::new(kind.reason(), error.line())),
                    }
                    let mut stop = self.task.stop.clone();
                    let pause = tokio::time::timeout(TICK * REPORT_TICKS, stop.wait_for(|stop| *stop));
                    if pause.await.is_ok() {
                        return WaitEnd::Interrupted;
                    }
                }
            }
            deadline = after(clock.now(), ROUND);
        }
    }

    /// Whether the last round found that another client has changed the object, or that its known drift is over. The next
    /// plan reads the object.
    fn has_drifted(&self) -> bool {
        let has_warned = self.task.warnings.remove(Reason::Drifted);
        let ignores = self.task.instance.as_ref().is_some_and(|instance| instance.drift.action == DriftAction::Ignore);
        let is_known = self.task.prepared.as_ref().is_some_and(|prepared| prepared.is_drift_reported);
        !ignores && has_warned != is_known
    }

    /// One call of the driver, which keeps `seen` up to date. Returns an error if the object is not ready at its end.
    async fn round(&self, deadline: jiff::Timestamp, seen: &Mutex<Health>) -> Result<WaitEnd, DriverError> {
        let mut context = self.task.context(self.object, Duration::ZERO, None);
        context.deadline = deadline;
        let set_seen = |health: &Health| health.clone_into(&mut lock(seen));
        let mut stop = self.task.stop.clone();
        let work = self.driver.wait_ready(&context, self.object, &set_seen);
        tokio::pin!(work);
        let (mut reported, mut ticks, mut failed_ticks) = (None, 0, 0);
        let ended = loop {
            tokio::select! {
                // A finished wait is recorded even during a shutdown.
                biased;
                ended = &mut work => break ended,
                _ = stop.wait_for(|stop| *stop) => return Ok(WaitEnd::Interrupted),
                () = tokio::time::sleep(TICK) => {}
            }
            let health = lock(seen).clone();
            let is_failed = matches!(health, Health::Failed(_));
            failed_ticks = if is_failed { failed_ticks + 1 } else { 0 };
            if self.task.limits_waits && failed_ticks >= FAILED_TICKS {
                let failure = DriverError {
                    kind: ErrorKind::Terminal,
                    message: format!("the object has failed: {health}"),
                    path: None,
                    hint: None,
                };
                return Ok(WaitEnd::NotReady(not_ready(failure)));
            }
            let kind = (std::mem::discriminant(&health), self.is_late());
            if reported != Some(kind) || ticks >= REPORT_TICKS {
                self.report(&health);
                (reported, ticks) = (Some(kind), 0);
            }
            ticks += 1;
        };
        match ended {
            Ok(state) => Ok(WaitEnd::Ready(state)),
            Err(ReadinessError { error, last: Observation::Object(_) }) => Err(error),
            Err(ReadinessError { error, last: Observation::Missing }) => Ok(WaitEnd::Missing(error)),
            // The object could not be read.
            Err(ReadinessError { error, last: Observation::Nothing }) => Ok(WaitEnd::NotReady(error.into())),
        }
    }

    fn is_late(&self) -> bool {
        self.task.engine.clock.now() >= self.readiness.until
    }

    fn report(&self, health: &Health) {
        self.report_delay(delay(health, self.is_late()));
    }

    fn report_delay(&self, delay: Delay) {
        self.task.engine.in_flight.report_delay(&self.stored.record, delay);
    }
}

fn delay(health: &Health, is_late: bool) -> Delay {
    let (reason, what) = match health {
        Health::Failed(_) => (Reason::Degraded, "the object has failed"),
        Health::Terminating(_) => (Reason::Terminating, "another client deletes the object"),
        _ if is_late => (Reason::Degraded, "the object is not ready within its time limit"),
        _ => (Reason::Progressing, "waiting for the object to become ready"),
    };
    let why = health.to_string();
    let message = if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") };
    Delay { reason, message, is_stalled: matches!(health, Health::Failed(_)) }
}

/// The failure of a run that ends while the object is not ready.
fn not_ready(error: DriverError) -> Failure {
    Failure { reason: Reason::Degraded, retryable: true, ..Failure::from(error) }
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
        let intended = intended.map_err(|unfinished| with_written_record(stored, unfinished))?;
        let in_flight = &task.engine.in_flight;
        in_flight.recorded(&intended);
        in_flight.report_delay(&intended.record, Delay::new(Reason::Progressing, "running its hooks".to_owned()));
        return Ok(RecordEffect::Written(intended));
    }
    write_result(&task.engine, &stored, record).await.map(RecordEffect::Written)
}

/// The object has disappeared before it was ready: the object that it replaced becomes current again. An updated object
/// stays recorded; the next plan reads it again.
async fn record_missing(
    task: &StepTask,
    stored: Stored,
    object: &RecordedObject,
    readiness: Readiness,
    failure: Failure,
) -> Result<RecordEffect, StepError> {
    let mut record = stored.record.as_ref().clone();
    record.history.conclude(task.engine.clock.now(), outcome(Some(&failure)));
    record.current = if readiness.is_new {
        let old = readiness.deposed.and_then(|key| record.deposed.remove(&key));
        old.map(|old| with_awaits_postconditions(old, false))
    } else {
        Some(Arc::new(RecordedObject { readiness: None, matching_config: None, ..object.clone() }))
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
