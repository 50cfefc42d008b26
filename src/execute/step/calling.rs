//! The call itself: awaited until it has ended, however long that takes.
//!
//! The limit of a call is for the user, who is told, and for its driver, which asks for an early end. The intent says until
//! when the call may run for certain, for other processes, which know nothing else of it: while it runs on, that is moved.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::driver::{ApplyRequest, ApplyResponse, CallContext, Driver};
use crate::execute::engine::after;
use crate::execute::under_way::Delay;
use crate::execute::{Engine, mask};
use crate::model::{Reason, Record, Secrets, Stored, Value};

/// Drivers that end by themselves at the limit need a moment for it.
const MOMENT: Duration = Duration::from_secs(2);

/// How often a call that is past its limit is looked at: a new plan says nothing of it at first.
const LOOK: Duration = Duration::from_secs(10);

/// So long before another process may take the call for over, its end is moved. Time enough for a store that is away.
const AHEAD: Duration = Duration::from_mins(5);

/// What a call came to.
pub(crate) struct Called {
    /// The answer.
    pub response: ApplyResponse,
    /// The record with the intent, as it is stored now.
    pub before: Stored,
}

/// Calls the driver: the one place that changes anything outside. `before` holds the intent. `read` is what the expressions
/// of the object have read.
pub(crate) async fn call(
    engine: &Engine,
    before: &Stored,
    driver: &dyn Driver,
    context: &CallContext,
    request: ApplyRequest,
    read: &[&Value],
) -> Called {
    let config = mask::marked(driver, context, &request.config);
    let (planned, prior) = (request.planned.clone(), request.prior.clone());
    let limit = context.deadline.duration_since(engine.clock.now());
    let mut before = before.clone();
    let mut answer = driver.apply(context, request);
    let mut wait = limit.unsigned_abs().saturating_add(MOMENT);
    let mut response = loop {
        match tokio::time::timeout(wait, &mut answer).await {
            Ok(response) => break response,
            Err(_) => {
                engine.under_way.tell(&before.record, too_long(&before.record, limit));
                before = move_end(engine, before).await;
                wait = LOOK;
            }
        }
    };
    let own = [Some(&config), planned.as_ref(), prior.as_ref().map(|object| &object.value)];
    let secrets = || Secrets::of(own.into_iter().flatten().chain(read.iter().copied()));
    context.warnings.mask(secrets);
    response.error = response.error.map(|error| secrets().error(error));
    Called { response, before }
}

fn too_long(record: &Record, limit: SignedDuration) -> Delay {
    let operation = record.intent.as_ref().map_or("call", |intent| intent.operation.as_str());
    let limit = SignedDuration::from_secs(limit.as_secs() + i64::from(limit.subsec_millis() >= 500));
    let message = format!(
        "the {operation} takes longer than its limit of {limit:#}: its provider is asked to give up, and Purlin waits for its \
         answer"
    );
    Delay { reason: Reason::TimeLimitExceeded, message }
}

/// Moves the time until which the call may run, when that is near. Should it fail, the next look tries again; whoever
/// has settled the intent meanwhile gets no answer of ours.
async fn move_end(engine: &Engine, before: Stored) -> Stored {
    let now = engine.clock.now();
    let near = |deadline: Timestamp| deadline < after(now, AHEAD);
    let Some(intent) = before.record.intent.as_ref().filter(|intent| near(intent.deadline)) else { return before };
    let mut record = before.record.as_ref().clone();
    let mut moved = intent.clone();
    moved.deadline = after(now, AHEAD.saturating_mul(2));
    record.intent = Some(moved);
    let record = Arc::new(record);
    match engine.journal.record(Arc::clone(&record), before.clone()).await {
        Ok(version) => Stored { record, version },
        Err(error) => {
            tracing::warn!(address = %record.address, %error, "the end of a call that runs on could not be moved");
            before
        }
    }
}
