//! The call of a driver, awaited until it ends, however long that takes.
//!
//! When a call exceeds its time limit, Purlin reports that and the driver requests an early stop. The deadline in the
//! intent shows other processes until when the call may run, so it is extended while the call runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use crate::execute::Engine;
use crate::execute::engine::after;
use crate::execute::in_flight::Delay;
use drivers::{ApplyRequest, ApplyResponse, CallContext, Driver};
use model::{Reason, Record, Stored, Words};

/// The time that drivers need to end a call after its limit.
const DRIVER_GRACE: Duration = Duration::from_secs(2);

/// A call that waits for something is reported after this time.
const FIRST_REPORT: Duration = Duration::from_secs(1);

/// How often a call past its limit is checked and reported, because a new plan resets the reported status.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The deadline of a running call is extended this long before it passes, which leaves time for a store that is
/// unavailable.
const EXTEND_BEFORE: Duration = Duration::from_mins(5);

/// The result of a call.
pub(crate) struct ApplyResult {
    pub response: ApplyResponse,
    /// The record with the intent, as last stored.
    pub before: Stored,
}

/// Calls the driver. This is the only place that changes external objects. `before` holds the intent.
pub(crate) async fn apply(
    engine: &Engine,
    before: &Stored,
    driver: &dyn Driver,
    context: &CallContext,
    request: ApplyRequest,
) -> ApplyResult {
    let limit = context.deadline.duration_since(engine.clock.now());
    let mut before = before.clone();
    let mut answer = driver.apply(context, request);
    let mut left = limit.unsigned_abs().saturating_add(DRIVER_GRACE);
    let mut pause = FIRST_REPORT;
    let response = loop {
        let wait = pause.min(left);
        match tokio::time::timeout(wait, &mut answer).await {
            Ok(response) => break response,
            Err(_) if wait == left => {
                engine.in_flight.report_delay(&before.record, time_limit_exceeded(&before.record, limit));
                before = extend_deadline(engine, before).await;
                (left, pause) = (CHECK_INTERVAL, CHECK_INTERVAL);
            }
            Err(_) => {
                left -= wait;
                if let Some(what) = context.delay.get() {
                    let delay = Delay::new(Reason::Progressing, what);
                    engine.in_flight.report_delay(&before.record, delay);
                    pause = CHECK_INTERVAL;
                }
            }
        }
    };
    let words = Words::of(&before.record.address);
    let error = response.error.map(|error| words.error(error));
    ApplyResult { response: ApplyResponse { error, ..response }, before }
}

fn time_limit_exceeded(record: &Record, limit: SignedDuration) -> Delay {
    let operation = record.intent.as_ref().map_or("call", |intent| intent.operation.as_str());
    let limit = SignedDuration::from_secs(limit.as_secs() + i64::from(limit.subsec_millis() >= 500));
    let message = format!(
        "the {operation} exceeds its time limit of {limit:#}: Purlin has requested that the provider stop it, and \
         waits for the result"
    );
    Delay::new(Reason::TimeLimitExceeded, message)
}

/// Extends the deadline of the intent if it is near. A failed write is retried at the next check. If another process
/// has resolved the intent meanwhile, the record is not changed.
async fn extend_deadline(engine: &Engine, before: Stored) -> Stored {
    let now = engine.clock.now();
    let Some(intent) = before.record.intent.as_ref() else { return before };
    if intent.deadline >= after(now, EXTEND_BEFORE) {
        return before;
    }
    let mut record = before.record.as_ref().clone();
    let mut moved = intent.clone();
    moved.deadline = after(now, EXTEND_BEFORE.saturating_mul(2));
    record.intent = Some(moved);
    let record = Arc::new(record);
    match engine.journal.record(Arc::clone(&record), before.clone()).await {
        Ok(version) => Stored { record, version },
        Err(error) => {
            tracing::warn!(object = %record.address, %error, "extending the deadline of a running call failed");
            before
        }
    }
}
