//! The steps in flight: progress reports before a step ends, and the permits that the step holds.
//!
//! A step may last long after its request: the store rejects the record of its result, its call exceeds its time limit,
//! or its object is not ready yet. The reason is then reported, and a step that only waits releases its permit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::permits::Permit;
use model::{Address, Namespace, Reason, Record, Step, Stored};
use process::lock;

/// How often a delay is reported, because its reason can change.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Why a running step has not ended yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    pub reason: Reason,
    /// One line, without sensitive values.
    pub message: String,
    /// Whether the step ends only when a user or another client changes something.
    pub is_stalled: bool,
}

impl Delay {
    pub fn new(reason: Reason, message: String) -> Self {
        Self { reason, message, is_stalled: false }
    }
}

/// A report of a step that has not ended.
#[derive(Debug)]
pub enum StepUpdate {
    Delayed(Delay),
    /// The step has released its permit.
    PermitReleased,
    /// The call has ended and this is recorded. The step only waits until its object is ready, without a permit.
    Recorded(Stored),
}

type RecordKey = (Namespace, Address);

/// The running steps by object: each object has at most one.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlightSteps(Arc<Mutex<BTreeMap<RecordKey, Entry>>>);

/// Removes its step from the index when the step ends.
pub(crate) struct InFlightGuard {
    all: InFlightSteps,
    record_key: RecordKey,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.record_key);
    }
}

#[derive(Debug)]
struct Entry {
    step: Step,
    run: UnboundedSender<(Step, StepUpdate)>,
    permit: Permit,
}

impl InFlightSteps {
    /// Adds a step with its permit. The permit is released when the guard is dropped.
    pub fn begin(
        &self,
        namespace: &Namespace,
        step: &Step,
        run: UnboundedSender<(Step, StepUpdate)>,
        permit: Permit,
    ) -> InFlightGuard {
        let record_key = (namespace.clone(), step.address.clone());
        lock(&self.0).insert(record_key.clone(), Entry { step: step.clone(), run, permit });
        InFlightGuard { all: self.clone(), record_key }
    }

    /// Whether a step of this record's object is running.
    pub fn contains(&self, record: &Record) -> bool {
        lock(&self.0).contains_key(&(record.namespace.clone(), record.address.clone()))
    }

    /// Reports why the step of this record's object has not ended.
    pub fn report_delay(&self, record: &Record, delay: Delay) {
        tracing::debug!(object = %record.address, reason = %delay.reason, "delayed: {}", delay.message);
        self.send(record, |_| StepUpdate::Delayed(delay));
    }

    /// Releases the permit of that step, which only waits from now on.
    pub fn release(&self, record: &Record) {
        self.send(record, |permit| {
            *permit = Permit::default();
            StepUpdate::PermitReleased
        });
    }

    /// Reports the record that the step has written, and releases its permit: it only waits from now on.
    pub fn recorded(&self, stored: &Stored) {
        self.send(&stored.record, |permit| {
            *permit = Permit::default();
            StepUpdate::Recorded(stored.clone())
        });
    }

    fn send(&self, record: &Record, news: impl FnOnce(&mut Permit) -> StepUpdate) {
        let mut entries = lock(&self.0);
        // Recovery and other writers have no running step.
        let Some(entry) = entries.get_mut(&(record.namespace.clone(), record.address.clone())) else { return };
        let news = news(&mut entry.permit);
        // The receiver may already be dropped.
        let _ = entry.run.send((entry.step.clone(), news));
    }

    /// Waits for `work`. While it lasts, releases the permit and reports the reason at intervals.
    pub async fn wait<T>(&self, record: &Record, work: impl Future<Output = T>, why: impl Fn() -> Delay) -> T {
        let mut work = std::pin::pin!(work);
        let mut is_first = true;
        loop {
            match tokio::time::timeout(REPORT_INTERVAL, &mut work).await {
                Ok(done) => return done,
                Err(_) if std::mem::take(&mut is_first) => self.release(record),
                Err(_) => {}
            }
            self.report_delay(record, why());
        }
    }
}
