//! Waiting until an object is ready. It is recorded by now, so the wait is no call: it holds no place, a stop ends it at
//! once, and whoever plans the object next goes on with it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Fate, StepTask, Unfinished, seen_object, with_wait, write_result};
use crate::driver::{Driver, LastSeen, NotReady};
use crate::execute::engine::after;
use crate::execute::failure::Failure;
use crate::execute::mask;
use crate::execute::under_way::Delay;
use crate::model::{ObjectState, ObjectStatus, Operation, Readiness, Reason, RecordedObject, Secrets, Stored, Value};
use crate::process::lock;

/// What ends sooner is not worth a word.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Then it is told again and again, since a new plan begins with a clean sheet.
const AGAIN: Duration = Duration::from_secs(10);

/// A wait that begins after its time looks at the object once all the same, and has so long for it.
const LATE: Duration = Duration::from_secs(10);

/// Goes on with the object of a step that is not ready yet, and records what became of it.
pub(super) async fn wait(task: &StepTask, fate: Fate) -> Result<Fate, Unfinished> {
    let marked = task.left_by(&fate).and_then(|stored| {
        let object = stored.record.current.clone()?;
        Some((stored.clone(), object.readiness?, object))
    });
    let Some((stored, readiness, object)) = marked else { return Ok(fate) };
    let driver = match task.driver() {
        Ok(driver) => driver.as_ref(),
        Err(failure) => return Err(Unfinished { fate: Fate::Kept(stored), failure }),
    };
    match awaited(task, driver, &stored, &object, readiness).await {
        None => Err(Unfinished { failure: let_go(), fate: Fate::LetGo(stored) }),
        Some(Ok(state)) => got_ready(task, stored, &object, readiness, state).await,
        Some(Err(NotReady { error, last: LastSeen::Nothing })) => {
            Err(Unfinished { fate: Fate::Kept(stored), failure: error.into() })
        }
        Some(Err(NotReady { error, last })) => failed(task, stored, &object, readiness, error.into(), last).await,
    }
}

/// What the driver says in the end; `None` after a stop.
async fn awaited(
    task: &StepTask,
    driver: &dyn Driver,
    stored: &Stored,
    object: &RecordedObject,
    readiness: Readiness,
) -> Option<Result<ObjectState, NotReady>> {
    let mut context = task.context(object, Duration::ZERO, None);
    context.deadline = readiness.until.max(after(task.engine.clock.now(), LATE));
    let secrets = || mask::secrets(driver, &context, &Value::Null, Some(object), &task.read());
    let missing = Mutex::new(String::new());
    let tell = |what: &str| what.clone_into(&mut lock(&missing));
    let under_way = &task.engine.under_way;
    under_way.release(&stored.record);
    let mut stop = task.stop.clone();
    let work = driver.wait_ready(&context, object, &tell);
    tokio::pin!(work);
    let mut pause = WORTH_TELLING;
    let ended = loop {
        tokio::select! {
            // What has ended is recorded, also when it is to stop.
            biased;
            ended = &mut work => break ended,
            _ = stop.wait_for(|stop| *stop) => return None,
            () = tokio::time::sleep(pause) => {
                under_way.tell(&stored.record, delay(&secrets(), &lock(&missing)));
                pause = AGAIN;
            }
        }
    };
    context.warnings.mask(secrets);
    Some(ended.map_err(|NotReady { error, last }| NotReady { error: secrets().error(error), last }))
}

fn delay(secrets: &Secrets, missing: &str) -> Delay {
    let message = match missing.is_empty() {
        true => "waits until the object is ready".to_owned(),
        false => secrets.text(format!("waits until the object is ready: {missing}")),
    };
    Delay { reason: Reason::Progressing, message }
}

fn let_go() -> Failure {
    let message = "the object is not ready yet, and is waited for again later".to_owned();
    Failure { reason: Reason::Progressing, message, retryable: true }
}

/// Takes the mark away. Hooks of a new object follow, under an intent of their own.
async fn got_ready(
    task: &StepTask,
    stored: Stored,
    object: &RecordedObject,
    readiness: Readiness,
    state: ObjectState,
) -> Result<Fate, Unfinished> {
    let mut record = stored.record.as_ref().clone();
    let ready = RecordedObject {
        readiness: None,
        agrees_with: object.agrees_with,
        dependencies: task.prepared()?.recorded.dependencies.clone(),
        ..as_seen(task, &stored, object, state)
    };
    let hooks_follow = ready.hooks_pending;
    record.current = Some(Arc::new(ready));
    if readiness.is_new {
        record.replacement_pending = false;
        record.failed_creates = if hooks_follow { record.failed_creates } else { 0 };
    }
    if hooks_follow {
        let (base, timeout) = (Some(stored.version), task.timeouts().create);
        let intended = task.intend_after(base, record, Operation::Record, None, None, timeout).await;
        return intended.map(Fate::Kept).map_err(|unfinished| still(stored, unfinished));
    }
    write_result(&task.engine, &stored, record).await.map(Fate::Kept)
}

/// A new object that does not get ready is tainted, as one whose creation failed half way. One that was changed stays as
/// it is; the next plan looks at it again.
async fn failed(
    task: &StepTask,
    stored: Stored,
    object: &RecordedObject,
    readiness: Readiness,
    failure: Failure,
    last: LastSeen,
) -> Result<Fate, Unfinished> {
    let mut record = stored.record.as_ref().clone();
    let unready = |object: RecordedObject| {
        let status = if readiness.is_new { ObjectStatus::Tainted } else { object.status };
        Some(Arc::new(RecordedObject { readiness: None, agrees_with: None, status, ..object }))
    };
    record.current = match last {
        LastSeen::Object(state) => unready(as_seen(task, &stored, object, state)),
        LastSeen::Gone if readiness.is_new => {
            let old = readiness.deposed.and_then(|key| record.deposed.remove(&key));
            old.map(|old| with_wait(old, false))
        }
        LastSeen::Gone | LastSeen::Nothing => unready(object.clone()),
    };
    let mut failure = failure;
    if readiness.is_new && (readiness.deposed.is_some() || record.replacement_pending) {
        record.count_failed_create(task.instance.as_deref().map_or(0, |instance| instance.generation));
    }
    if readiness.is_new && record.replacement_pending {
        failure = failure.of_replacement();
    }
    let stored = write_result(&task.engine, &stored, record).await?;
    Err(Unfinished { fate: Fate::Kept(stored), failure })
}

fn as_seen(task: &StepTask, stored: &Stored, object: &RecordedObject, state: ObjectState) -> RecordedObject {
    let schema = task.engine.schema(&stored.record.type_name, object.provider.as_ref());
    seen_object(object, state, schema.as_deref())
}

/// What follows could not be begun, and the record is as the step has left it.
fn still(stored: Stored, unfinished: Unfinished) -> Unfinished {
    match unfinished.fate {
        Fate::Untouched => Unfinished { fate: Fate::Kept(stored), ..unfinished },
        _ => unfinished,
    }
}
