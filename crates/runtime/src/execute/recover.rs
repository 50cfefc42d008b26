//! Recovery of intents that a crash left open. The outcome of each is resolved before the object is planned again.

mod create;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::engine::{Call, after, service_account};
use super::failure::{Failure, with_address};
use super::hooks::{self, HookTarget};
use super::step::{
    ApplyResult, RecordEffect, RemovalTarget, StepError, apply_destroy, record_destroy_result, write_result,
};
use crate::execute::Engine;
use drivers::{ApplyResponse, CallContext, CreateRecovery, Driver, FindCreated, SearchCreated, Warnings};
use engine::load::{Instance, Timeouts};
use engine::plan::hooks::before_destroy;
use engine::plan::{MISSING_AFTER_CONFIG_CHANGE, ObjectBlock};
use model::{
    ChangeOutcome, Diagnostics, DriverError, ImportRequest, Intent, Operation, Reason, Record, RecordedObject,
    Resolution, Stored, Value,
};
use process::lock;

/// The delay before recovery is retried after a failed call.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often Purlin checks whether another process has terminated.
const HOLDER_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The delay after a call was forbidden, because an administrator must grant a permission first.
const FORBIDDEN_RETRY_DELAY: Duration = Duration::from_mins(1);

/// How many unsent calls are kept: about 10 MB. Without the earlier ones, recovery handles them as possibly sent.
const UNSENT_CALLS: usize = 100_000;

/// The state of the process that wrote an open intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderState {
    /// Certainly not running, or it has released the lease.
    Ended,
    /// It may still be running, at the latest until this time.
    MayRun { until: Timestamp },
}

/// The outcome of recovery.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// The intent is closed; the record is as given.
    Resolved(Stored),
    /// The record was removed, because there is no object.
    Erased,
    /// Another client removed the record. An object may exist.
    Missing,
    /// The object is blocked until the given time, or if `None`, until something changes.
    Blocked(ObjectBlock, Option<Timestamp>),
}

/// How to recover an open intent.
#[derive(Clone, Copy)]
enum RecoveryAction<'a> {
    /// A step of this process is executing it.
    InProgress,
    /// Another process may still be executing it until the given time.
    OtherProcess(Timestamp),
    /// The call was not sent: the record proves it, or this process knows it.
    NeverSent,
    /// A create: repeating the call completes it.
    RepeatCreate(&'a dyn FindCreated),
    /// A create: the driver looks up the created object.
    Find(&'a dyn FindCreated),
    /// A create: the user says how to import the created object.
    Import(&'a ImportRequest),
    /// A create: the driver searches for the created object, or imports the one that the user named.
    Search(&'a dyn SearchCreated, Option<&'a ImportRequest>),
    /// A create: only the user can say whether the object exists.
    AskUser,
    /// A completed create, or a step without a call, whose hooks did not end: they run again with the next plan.
    HooksInterrupted,
    ReadUpdated,
    /// A destroy that must be finished, because the Resource does not exist anymore.
    FinishDestroy,
    ReadDestroyed,
}

fn recovery_action<'a>(
    record: &Record,
    intent: &'a Intent,
    instance: Option<&'a Instance>,
    holder: HolderState,
    recovery: CreateRecovery<'a>,
    is_uncalled: bool,
) -> RecoveryAction<'a> {
    let finishes = intent.operation == Operation::Destroy && instance.is_none();
    if is_uncalled && !finishes {
        return RecoveryAction::NeverSent;
    }
    if let HolderState::MayRun { until } = holder {
        return RecoveryAction::OtherProcess(until);
    }
    match intent.operation {
        Operation::Create if record.current.is_some() => RecoveryAction::HooksInterrupted,
        Operation::Create if is_unclaimed_first_create(record, intent, instance) => RecoveryAction::NeverSent,
        Operation::Create => create_action(record, intent, instance, recovery),
        Operation::Destroy if finishes => RecoveryAction::FinishDestroy,
        Operation::Destroy => RecoveryAction::ReadDestroyed,
        Operation::Record => RecoveryAction::HooksInterrupted,
        _ => RecoveryAction::ReadUpdated,
    }
}

fn create_action<'a>(
    record: &Record,
    intent: &'a Intent,
    instance: Option<&'a Instance>,
    recovery: CreateRecovery<'a>,
) -> RecoveryAction<'a> {
    let import = intent.import.as_ref().or_else(|| instance?.import.as_ref());
    match (recovery, import) {
        (CreateRecovery::Search(searcher), Some(_)) => RecoveryAction::Search(searcher, import),
        // The object of a Resource that no longer exists would be destroyed, so a search is not certain enough.
        (CreateRecovery::Search(searcher), None) if instance.is_some() => RecoveryAction::Search(searcher, None),
        (CreateRecovery::Unknown, Some(import)) => RecoveryAction::Import(import),
        (CreateRecovery::Search(_) | CreateRecovery::Unknown, None) => RecoveryAction::AskUser,
        (_, Some(import)) if intent.import.is_some() => RecoveryAction::Import(import),
        (CreateRecovery::Repeat(finder), _) if !resource_is_missing(record, instance) => {
            RecoveryAction::RepeatCreate(finder)
        }
        (CreateRecovery::Repeat(finder) | CreateRecovery::Find(finder), _) => RecoveryAction::Find(finder),
    }
}

/// The annotation is added to the Resource between the write of the record and the call. If a record holds nothing but
/// the intent of a first create for exactly this Resource, and the Resource has no annotation, then no call was made. Its
/// finalizer proves nothing: the Resource can have it from the beginning. Local state files have no such proof.
fn is_unclaimed_first_create(record: &Record, intent: &Intent, instance: Option<&Instance>) -> bool {
    !record.has_objects()
        && intent.epoch == 1
        && instance.is_some_and(|instance| {
            !instance.uid.is_empty() && instance.uid == record.uid && instance.record_annotation != instance.uid
        })
}

/// Whether the Resource of a record does not exist. Either it never had the finalizer and no call was made, or a user
/// removed the finalizer by force. Then no object is created for it, and a created object is looked up. Locally an
/// object is deleted with its manifest.
fn resource_is_missing(record: &Record, instance: Option<&Instance>) -> bool {
    instance.is_none() && !record.uid.is_empty()
}

/// The interrupted operation that recovery would complete or repeat. `None` if recovery only reads, and changes no object.
pub fn resumed(engine: &Engine, stored: &Stored, instance: Option<&Instance>) -> Option<Operation> {
    let intent = stored.record.intent.as_deref()?;
    let driver = engine.drivers.get(&stored.record.type_name)?;
    let action = recovery_action(&stored.record, intent, instance, HolderState::Ended, driver.recovery(), false);
    matches!(action, RecoveryAction::RepeatCreate(_) | RecoveryAction::FinishDestroy).then_some(intent.operation)
}

/// Resolves the open intent of a record: calls the driver if needed, and writes the outcome. Also returns the warnings
/// of the driver.
pub async fn recover(
    engine: &Engine,
    stored: &Stored,
    instance: Option<&Instance>,
    holder: HolderState,
) -> (Recovery, Diagnostics) {
    let record = &stored.record;
    let Some(intent) = record.intent.as_deref() else {
        return (Recovery::Resolved(stored.clone()), Vec::new());
    };
    let Some(driver) = engine.drivers.get(&record.type_name) else {
        let message = format!("no driver supports the type `{}` of the record", record.type_name);
        return (Recovery::Blocked(ObjectBlock { reason: Reason::UnknownType, message }, None), Vec::new());
    };
    let warnings = Warnings::default();
    let attempt = Attempt { engine, stored, intent, instance, driver: driver.as_ref(), warnings };
    let recovery = attempt.resolve(holder).await;
    (recovery, with_address(&record.address, attempt.warnings.take()))
}

/// The outcome of a destroy that took effect, for the history.
const RECOVERED: ChangeOutcome = ChangeOutcome::Recovered(Resolution::Effective);

/// The outcome of the hooks before an interrupted destroy.
enum HooksOutcome {
    Done,
    ObjectMissing,
    Failed,
    Unreadable(DriverError),
}

/// One attempt to resolve an intent.
struct Attempt<'a> {
    engine: &'a Engine,
    stored: &'a Stored,
    intent: &'a Intent,
    instance: Option<&'a Instance>,
    driver: &'a dyn Driver,
    warnings: Warnings,
}

impl Attempt<'_> {
    async fn resolve(&self, holder: HolderState) -> Recovery {
        let Self { engine, intent, .. } = self;
        let recovery = self.driver.recovery();
        let is_uncalled = engine.unsent_calls.contains(&self.stored.record);
        let meaning = match engine.in_flight.contains(&self.stored.record) {
            true => RecoveryAction::InProgress,
            false => recovery_action(&self.stored.record, intent, self.instance, holder, recovery, is_uncalled),
        };
        match meaning {
            RecoveryAction::InProgress => {
                let message = format!("the {} of this object is still running", intent.operation.as_str());
                let again = after(engine.clock.now(), RETRY_DELAY);
                Recovery::Blocked(ObjectBlock { reason: Reason::OperationInProgress, message }, Some(again))
            }
            RecoveryAction::OtherProcess(until) => {
                let message = format!(
                    "another process started to {} this object at {} and may still be running until {until}{}",
                    intent.operation.as_str(),
                    intent.started,
                    self.earlier_end()
                );
                // Its end may be known earlier.
                let again = until.min(after(engine.clock.now(), HOLDER_CHECK_INTERVAL));
                Recovery::Blocked(ObjectBlock { reason: Reason::OperationInProgress, message }, Some(again))
            }
            RecoveryAction::NeverSent => self.revert().await,
            RecoveryAction::RepeatCreate(finder) => match self.take_over(self.timeouts().create).await {
                Ok(taken) => self.with(&taken).repeat_create(finder).await,
                Err(failure) => self.retry_later(&failure),
            },
            RecoveryAction::Find(finder) => self.find_created(finder).await,
            RecoveryAction::Search(searcher, import) => self.search_created(searcher, import).await,
            RecoveryAction::Import(import) => self.import_created(import).await,
            RecoveryAction::AskUser => self.ask_user(None),
            RecoveryAction::HooksInterrupted => self.close(Resolution::Hooks).await,
            RecoveryAction::ReadUpdated => self.read_updated().await,
            RecoveryAction::FinishDestroy => match self.take_over(self.timeouts().delete).await {
                Ok(taken) => self.with(&taken).finish_destroy().await,
                Err(failure) => self.retry_later(&failure),
            },
            RecoveryAction::ReadDestroyed => self.read_destroyed().await,
        }
    }

    /// The hint how the operation of another process that has crashed ends earlier.
    fn earlier_end(&self) -> String {
        match (&*self.intent.holder.pod, self.intent.operation) {
            ("", Operation::Create) => format!(
                " (hint: wait until then, or, only if that process has ended and has created no object, run `purlin state \
                 rm {} --force`)",
                self.stored.record.address.shell_word()
            ),
            // Without the record, an object that exists would be lost.
            ("", _) => String::new(),
            _ => {
                " (hint: wait until then, or, if its Pod is on a node that is lost for good, delete the Pod)".to_owned()
            }
        }
    }

    /// Makes this process the holder of the intent, before it calls or runs hooks. A recovery that runs for long can
    /// outlast the lease: the next leader then waits for its end, as for that of a step. An attempt soon after a failed
    /// one is still the holder, and has the rest of its time.
    async fn take_over(&self, limit: Duration) -> Result<Stored, Failure> {
        let (engine, intent, now) = (self.engine, self.intent, self.engine.clock.now());
        if intent.holder == engine.holder && intent.deadline >= after(now, limit / 2) {
            return Ok(self.stored.clone());
        }
        let (holder, deadline) = (engine.holder.clone(), after(now, limit));
        let intent = Intent { holder, started: now, deadline, ..intent.clone() };
        let record = Arc::new(Record { intent: Some(Box::new(intent)), ..self.stored.record.as_ref().clone() });
        let version = engine.journal.take_over(Arc::clone(&record), self.stored.version).await?;
        Ok(Stored { record, version })
    }

    /// The attempt after `take_over`.
    fn with<'b>(&'b self, taken: &'b Stored) -> Attempt<'b> {
        let intent = taken.record.intent.as_deref().unwrap_or(self.intent);
        let (engine, instance, driver, warnings) = (self.engine, self.instance, self.driver, self.warnings.clone());
        Attempt { engine, stored: taken, intent, instance, driver, warnings }
    }

    /// The time limit of a call, after `take_over`.
    fn time_left(&self) -> Duration {
        let left = self.intent.deadline.duration_since(self.engine.clock.now());
        left.max(SignedDuration::ZERO).unsigned_abs()
    }

    fn resource_is_missing(&self) -> bool {
        resource_is_missing(&self.stored.record, self.instance)
    }

    /// Restores the record from before the intent. A first create had no record, so it is removed.
    async fn revert(&self) -> Recovery {
        if self.stored.record.has_objects() || self.intent.epoch > 1 {
            // Nothing happened, so the history has no entry.
            return self.restore(self.stored, None).await;
        }
        self.erase(self.stored).await
    }

    async fn erase(&self, before: &Stored) -> Recovery {
        match self.engine.journal.erase(before.clone()).await {
            Ok(()) => Recovery::Erased,
            Err(error) => self.retry_later(&error.into()),
        }
    }

    /// Closes the intent. The object that a create deposed becomes current again.
    async fn restore(&self, before: &Stored, resolution: Option<Resolution>) -> Recovery {
        let mut record = super::step::without_intent(&before.record);
        if let Some(resolution) = resolution {
            self.add_resolved(&mut record, resolution);
        }
        let written = write_result(self.engine, before, record).await;
        self.finish(written.map(RecordEffect::Written))
    }

    /// A read cannot show whether an update happened. The object is read, and the next plan continues from its current
    /// state. An object that is not found stays recorded: the next plan reads it again and decides, because it knows how
    /// many other objects are missing, and what the Resource says about a missing object.
    async fn read_updated(&self) -> Recovery {
        let mut record = self.stored.record.as_ref().clone();
        record.intent = None;
        self.add_resolved(&mut record, Resolution::Read);
        let Some(current) = record.current.clone() else { return self.write(record).await };
        let context = self.context(&current, self.timeouts().read);
        let mut object = match self.driver.read(&context, &current).await {
            Err(error) => return self.retry_later(&error.into()),
            Ok(None) => RecordedObject { matching_config: None, ..current.as_ref().clone() },
            Ok(Some(state)) => {
                let schema = self.engine.schema(&self.stored.record.type_name, current.provider.as_ref());
                super::step::refreshed_object(&current, state, schema.as_deref())
            }
        };
        if let Some(planned) = &self.intent.planned {
            object.dependencies = super::step::merged_dependencies(&current, &planned.recorded);
            if object.value != current.value {
                object.revision = planned.recorded.revision;
            }
        }
        record.current = Some(Arc::new(object));
        self.write(record).await
    }

    async fn finish_destroy(&self) -> Recovery {
        let removed = self.removed();
        let Some(object) = self.object(removed) else { return self.close(Resolution::Effective).await };
        match self.hooks_before(&object).await {
            HooksOutcome::Done => {}
            HooksOutcome::ObjectMissing => {
                let response = ApplyResponse::default();
                return self
                    .finish(record_destroy_result(self.engine, self.stored, removed, response, RECOVERED).await);
            }
            // The next plan destroys the object again and reports errors of the hooks.
            HooksOutcome::Failed => return self.close(Resolution::NoEffect).await,
            HooksOutcome::Unreadable(error) => return self.retry_later(&error.into()),
        }
        // The hooks had a time limit of their own.
        match self.take_over(self.timeouts().delete).await {
            Ok(taken) => self.with(&taken).destroy_again(object, removed).await,
            Err(failure) => self.retry_later(&failure),
        }
    }

    async fn destroy_again(&self, object: Arc<RecordedObject>, removed: RemovalTarget) -> Recovery {
        let context = self.context(&object, self.time_left());
        let called = apply_destroy(self.engine, self.stored, self.driver, &context, object, Arc::from([])).await;
        let ApplyResult { response, before } = called;
        self.finish(record_destroy_result(self.engine, &before, removed, response, RECOVERED).await)
    }

    /// Runs the hooks of an object again, because it is unknown which of them ended. Does not run them if the object
    /// does not exist: the hooks had succeeded then.
    async fn hooks_before(&self, object: &RecordedObject) -> HooksOutcome {
        let record = &self.stored.record;
        let hooks = before_destroy(self.instance, &record.address, object);
        if hooks.is_empty() {
            return HooksOutcome::Done;
        }
        let reading = self.context(object, self.timeouts().read);
        match self.driver.read(&reading, object).await {
            Err(error) => return HooksOutcome::Unreadable(error),
            Ok(None) => return HooksOutcome::ObjectMissing,
            Ok(Some(_)) => {}
        }
        let context = self.context(object, self.time_left());
        let of = HookTarget { engine: self.engine, context, uid: &record.uid, object };
        let mut notes = Vec::new();
        let ended = hooks::run(&of, hooks, &mut notes).await;
        for note in notes {
            tracing::info!(object = %record.address, hook = &*note.hook, failed = note.failed, "{}", note.message);
        }
        match ended {
            Ok(()) => HooksOutcome::Done,
            Err(failure) => {
                tracing::warn!(object = %record.address, "{}", failure.message);
                HooksOutcome::Failed
            }
        }
    }

    async fn read_destroyed(&self) -> Recovery {
        let removed = self.removed();
        let Some(object) = self.object(removed) else { return self.close(Resolution::Effective).await };
        let context = self.context(&object, self.timeouts().read);
        match self.driver.read(&context, &object).await {
            Err(error) => self.retry_later(&error.into()),
            Ok(Some(_)) => self.close(Resolution::NoEffect).await,
            Ok(None) => {
                if let Some(held) = self.missing_after_config_change(&context, &object).await {
                    return held;
                }
                let response = ApplyResponse::default();
                self.finish(record_destroy_result(self.engine, self.stored, removed, response, RECOVERED).await)
            }
        }
    }

    /// Blocks an object that is missing under another provider configuration than the one that last read it. The object
    /// may still exist.
    async fn missing_after_config_change(&self, context: &CallContext, object: &RecordedObject) -> Option<Recovery> {
        match self.driver.configuration(context).await {
            Ok(configuration) if object.was_last_read_with(&configuration) => None,
            Ok(_) => {
                let message = MISSING_AFTER_CONFIG_CHANGE.to_owned();
                Some(Recovery::Blocked(ObjectBlock { reason: Reason::ObjectMissingAfterConfigChange, message }, None))
            }
            Err(error) => Some(self.retry_later(&error.into())),
        }
    }

    fn removed(&self) -> RemovalTarget {
        let deposed = self.intent.deposed;
        let desired = self.instance.is_some_and(Instance::is_desired);
        RemovalTarget { deposed, replacement_follows: desired && deposed.is_none() }
    }

    fn object(&self, removed: RemovalTarget) -> Option<Arc<RecordedObject>> {
        let record = &self.stored.record;
        match removed.deposed {
            Some(key) => record.deposed.get(&key).cloned(),
            None => record.current.clone(),
        }
    }

    /// Closes the intent without other changes.
    async fn close(&self, resolution: Resolution) -> Recovery {
        let mut record = self.stored.record.as_ref().clone();
        record.intent = None;
        self.add_resolved(&mut record, resolution);
        self.write(record).await
    }

    fn add_resolved(&self, record: &mut Record, resolution: Resolution) {
        record.add_ended(self.intent, self.engine.clock.now(), ChangeOutcome::Recovered(resolution));
    }

    async fn write(&self, record: Record) -> Recovery {
        let written = write_result(self.engine, self.stored, record).await;
        self.finish(written.map(RecordEffect::Written))
    }

    /// Even if the call failed, its recorded outcome resolves the intent. The next plan continues from the record.
    fn finish(&self, ended: Result<RecordEffect, StepError>) -> Recovery {
        let (effect, failure) = match ended {
            Ok(effect) => (effect, None),
            Err(unfinished) => (unfinished.effect, Some(unfinished.failure)),
        };
        match (effect, failure) {
            (RecordEffect::Erased, _) => Recovery::Erased,
            (RecordEffect::Written(stored), _) if stored.record.intent.is_none() => Recovery::Resolved(stored),
            (_, Some(failure)) => self.retry_later(&failure),
            (_, None) => Recovery::Resolved(self.stored.clone()),
        }
    }

    fn retry_later(&self, failure: &Failure) -> Recovery {
        let message =
            format!("recovery of an interrupted {} failed: {}", self.intent.operation.as_str(), failure.message);
        let pause = if failure.reason == Reason::Forbidden { FORBIDDEN_RETRY_DELAY } else { RETRY_DELAY };
        let again = failure.retryable.then(|| after(self.engine.clock.now(), pause));
        Recovery::Blocked(ObjectBlock { reason: failure.reason, message }, again)
    }

    /// The values that the object's expressions read, as far as its Resource alone provides them, and those of the plan
    /// and of the objects, which an answer to any call may quote.
    fn read(&self) -> Vec<&Value> {
        let inputs = self.instance.iter().map(|instance| instance.inputs.values());
        let planned = self.intent.planned.iter().flat_map(|planned| [&planned.config, &planned.planned]);
        let record = &self.stored.record;
        let objects = record.current.iter().chain(record.deposed.values());
        inputs.chain(planned).chain(objects.map(|object| &object.value)).collect()
    }

    fn timeouts(&self) -> Timeouts {
        self.instance.map_or_else(Timeouts::default, |instance| instance.timeouts)
    }

    /// The context of a call about a recorded object.
    fn context(&self, object: &RecordedObject, timeout: Duration) -> CallContext {
        let record = &self.stored.record;
        let call = Call {
            type_name: &record.type_name,
            namespace: &record.namespace,
            address: &record.address,
            provider: object.provider.as_ref(),
            service_account: service_account(self.instance, &object.service_account),
            read: &self.read(),
        };
        let context = self.engine.call_context(&call, timeout);
        let (operation_id, warnings) = (Arc::clone(&self.intent.operation_id), self.warnings.clone());
        CallContext { operation_id, warnings, ..context }
    }
}

/// Operations of this process whose calls were not sent because the write of their intent failed. The store may have
/// accepted such an intent although the response was lost, and may accept it long after: also when a later operation of
/// the object has ended and its record was removed. Recovery checks this list, so that it needs neither a lookup nor a
/// decision of the user for a call that was never sent.
#[derive(Debug, Default)]
pub(crate) struct UnsentCalls(Mutex<Ids>);

#[derive(Debug, Default)]
struct Ids {
    all: BTreeSet<Arc<str>>,
    /// The earliest first.
    order: VecDeque<Arc<str>>,
}

impl UnsentCalls {
    /// Adds the operation of the record's intent: the intent may be durable, but its call was not sent.
    pub fn add(&self, record: &Record) {
        let Some(intent) = &record.intent else { return };
        let mut ids = lock(&self.0);
        if ids.all.insert(Arc::clone(&intent.operation_id)) {
            ids.order.push_back(Arc::clone(&intent.operation_id));
        }
        if ids.order.len() > UNSENT_CALLS
            && let Some(earliest) = ids.order.pop_front()
        {
            ids.all.remove(&earliest);
        }
    }

    /// Whether the call of the record's open intent was not sent.
    pub fn contains(&self, record: &Record) -> bool {
        record.intent.as_ref().is_some_and(|intent| lock(&self.0).all.contains(&intent.operation_id))
    }
}
