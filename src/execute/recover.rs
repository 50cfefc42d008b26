//! Recovery of open intents: what a crash left, settled before the object is planned again.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::engine::{Call, after, service_account};
use super::failure::{Failure, told};
use super::hooks::{self, Concerning};
use super::step::{Called, Fate, Removed, Unfinished, call, call_destroy, settle_create, settle_destroy, write_result};
use crate::driver::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, Driver, FindCreated, Warnings};
use crate::execute::Engine;
use crate::load::{Instance, Timeouts};
use crate::model::{
    Diagnostics, DriverError, ErrorKind, Intent, ObjectState, Operation, Reason, Record, RecordedObject, Secrets,
    Stored, Value,
};
use crate::plan::hooks::before_destroy;
use crate::plan::{GONE_ELSEWHERE, Held};

/// How soon recovery is tried again after a call of it failed.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// The same when it was forbidden: somebody has to give a right first.
const TRY_AGAIN_FORBIDDEN: Duration = Duration::from_mins(1);

/// What is known about the holder of an open intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderState {
    /// Certainly not running any more, or it has handed over.
    Gone,
    /// It may be running.
    Unknown,
}

/// What recovery came to.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// The intent is closed; this is the record now.
    Settled(Stored),
    /// There is no record any more.
    Erased,
    /// The object must wait, with the time at which to try again (`None`: until something changes).
    Held(Held, Option<Timestamp>),
}

/// What an open intent means, before anybody is asked.
#[derive(Clone, Copy)]
enum Meaning<'a> {
    /// A step of this process carries it out.
    UnderWay,
    /// Another process may still carry it out until then.
    Busy(Timestamp),
    /// No call was made: the record proves it, or this process knows it of its own.
    NeverCalled,
    /// A create: the same call again finishes it.
    Repeat(&'a dyn FindCreated),
    /// A create: the driver is asked for what was made.
    Find(&'a dyn FindCreated),
    /// A create: only a person can tell.
    AskPerson,
    /// A create that ended well, or no call at all, and hooks that did not end: they run again with the next plan.
    HooksCut,
    /// An update: the object is read.
    ReadUpdated,
    /// A destroy that must be finished, since there is no Resource any more.
    FinishDestroy,
    /// A destroy: the object is read.
    ReadDestroyed,
}

fn meaning<'a>(
    record: &Record,
    intent: &Intent,
    instance: Option<&Instance>,
    may_run_until: Option<Timestamp>,
    recovery: CreateRecovery<'a>,
    is_uncalled: bool,
) -> Meaning<'a> {
    let finishes = intent.operation == Operation::Destroy && instance.is_none();
    if is_uncalled && !finishes {
        return Meaning::NeverCalled;
    }
    if let Some(until) = may_run_until {
        return Meaning::Busy(until);
    }
    match intent.operation {
        Operation::Create if record.current.is_some() => Meaning::HooksCut,
        Operation::Create if is_unclaimed_first_create(record, intent, instance) => Meaning::NeverCalled,
        Operation::Create => match recovery {
            CreateRecovery::Unknown => Meaning::AskPerson,
            CreateRecovery::Repeat(finder) if !has_lost_its_resource(record, instance) => Meaning::Repeat(finder),
            CreateRecovery::Repeat(finder) | CreateRecovery::Find(finder) => Meaning::Find(finder),
        },
        Operation::Destroy if finishes => Meaning::FinishDestroy,
        Operation::Destroy => Meaning::ReadDestroyed,
        Operation::Record => Meaning::HooksCut,
        _ => Meaning::ReadUpdated,
    }
}

/// The finalizer is put on the Resource between the record and the call. So a record that holds nothing but the
/// intent of a first create, for this very Resource, while the Resource has no mark of ours, proves that no call
/// was made. Locally nothing proves it.
fn is_unclaimed_first_create(record: &Record, intent: &Intent, instance: Option<&Instance>) -> bool {
    let unclaimed = |instance: &Instance| {
        !instance.uid.is_empty()
            && instance.uid == record.uid
            && !instance.has_finalizer
            && instance.record_annotation != instance.uid
    };
    !record.has_objects() && intent.epoch == 1 && instance.is_some_and(unclaimed)
}

/// Whether the Resource of a record is gone: either it never had our marks, and no call was made, or somebody has taken
/// them off by force. So nothing is made for it any more, and what was made is looked for. Locally an object goes with its
/// manifest.
fn has_lost_its_resource(record: &Record, instance: Option<&Instance>) -> bool {
    instance.is_none() && !record.uid.is_empty()
}

/// Settles the open intent of a record. Calls the driver when needed, and writes the outcome. Gives what the driver has
/// warned of as well.
pub async fn recover(
    engine: &Engine,
    stored: &Stored,
    instance: Option<&Instance>,
    holder: HolderState,
) -> (Recovery, Diagnostics) {
    let record = &stored.record;
    let Some(intent) = record.intent.as_deref() else {
        return (Recovery::Settled(stored.clone()), Vec::new());
    };
    let Some(driver) = engine.drivers.get(&record.type_name) else {
        let message = format!("no driver serves the type `{}` of the record", record.type_name);
        return (Recovery::Held(Held { reason: Reason::UnknownType, message }, None), Vec::new());
    };
    let warnings = Warnings::default();
    let attempt = Attempt { engine, stored, intent, instance, driver: driver.as_ref(), warnings };
    let recovery = attempt.settle_intent(holder).await;
    attempt.warnings.mask(|| attempt.secrets(&recovery));
    (recovery, told(&record.address, attempt.warnings.take()))
}

/// What became of the hooks before a destroy that was cut.
enum Hooks {
    Done,
    Gone,
    Failed,
    Unreadable(DriverError),
}

/// One attempt to settle an intent.
struct Attempt<'a> {
    engine: &'a Engine,
    stored: &'a Stored,
    intent: &'a Intent,
    instance: Option<&'a Instance>,
    driver: &'a dyn Driver,
    /// What the driver warns of.
    warnings: Warnings,
}

impl Attempt<'_> {
    async fn settle_intent(&self, holder: HolderState) -> Recovery {
        let Self { engine, intent, .. } = self;
        let latest = after(intent.deadline, engine.limits.lease_duration);
        let may_run_until = (holder == HolderState::Unknown && engine.clock.now() < latest).then_some(latest);
        let recovery = self.driver.recovery();
        let is_uncalled = engine.uncalled.contains(&self.stored.record);
        let meaning = match engine.under_way.contains(&self.stored.record) {
            true => Meaning::UnderWay,
            false => meaning(&self.stored.record, intent, self.instance, may_run_until, recovery, is_uncalled),
        };
        match meaning {
            Meaning::UnderWay => {
                let message = format!("the {} of this object is under way", intent.operation.as_str());
                let again = after(engine.clock.now(), TRY_AGAIN);
                Recovery::Held(Held { reason: Reason::OperationInProgress, message }, Some(again))
            }
            Meaning::Busy(until) => {
                let message = format!(
                    "another process started to {} this object at {} and may still do so until {until}",
                    intent.operation.as_str(),
                    intent.started
                );
                Recovery::Held(Held { reason: Reason::OperationInProgress, message }, Some(until))
            }
            Meaning::NeverCalled => self.take_back().await,
            Meaning::Repeat(finder) => self.repeat_create(finder).await,
            Meaning::Find(finder) => self.find_created(finder).await,
            Meaning::AskPerson => self.ask_person().await,
            Meaning::HooksCut => self.close().await,
            Meaning::ReadUpdated => self.read_updated().await,
            Meaning::FinishDestroy => self.finish_destroy().await,
            Meaning::ReadDestroyed => self.read_destroyed().await,
        }
    }

    /// What must not be told: what is sensitive in the object as it was, was to be and is now.
    fn secrets(&self, recovery: &Recovery) -> Secrets {
        let planned = self.intent.planned.iter().flat_map(|planned| [&planned.config, &planned.planned]);
        let now = match recovery {
            Recovery::Settled(stored) => Some(&stored.record),
            Recovery::Erased | Recovery::Held(..) => None,
        };
        let objects = [Some(&self.stored.record), now].into_iter().flatten();
        let objects = objects.flat_map(|record| record.current.iter().chain(record.deposed.values()));
        Secrets::of(planned.chain(objects.map(|object| &object.value)).chain(self.read()))
    }

    fn has_lost_its_resource(&self) -> bool {
        has_lost_its_resource(&self.stored.record, self.instance)
    }

    /// The record as it was before the intent: of a first create there was none.
    async fn take_back(&self) -> Recovery {
        if self.stored.record.has_objects() || self.intent.epoch > 1 {
            return self.restore(self.stored).await;
        }
        self.erase(self.stored).await
    }

    async fn erase(&self, before: &Stored) -> Recovery {
        match self.engine.journal.erase(before.clone()).await {
            Ok(()) => Recovery::Erased,
            Err(error) => self.later(&error.into()),
        }
    }

    async fn repeat_create(&self, finder: &dyn FindCreated) -> Recovery {
        let Some(planned) = &self.intent.planned else {
            return self.later(&Failure::internal("the intent of the create holds no plan"));
        };
        let context = self.context(&planned.recorded, self.timeouts().create);
        let request = ApplyRequest {
            prior: None,
            config: planned.config.clone(),
            planned: Some(planned.planned.clone()),
            private: Arc::clone(&planned.private),
        };
        let called = call(self.engine, self.stored, self.driver, &context, request, &self.read()).await;
        let Called { response, before } = called;
        // The call that was cut may have made the object all the same: a refusal of this one says nothing of that.
        match response {
            ApplyResponse { object: None, error: Some(error), .. } if error.kind == ErrorKind::Transient => {
                self.later(&error.into())
            }
            ApplyResponse { object: None, error: Some(_), .. } => {
                match finder.find_created(&context, &planned.planned).await {
                    Err(error) => self.later(&error.into()),
                    Ok(object) => self.adopt_or_restore(&before, object).await,
                }
            }
            response => self.settle(&before, response).await,
        }
    }

    async fn find_created(&self, finder: &dyn FindCreated) -> Recovery {
        let Some(planned) = &self.intent.planned else {
            return self.later(&Failure::internal("the intent of the create holds no plan"));
        };
        let context = self.context(&planned.recorded, self.timeouts().read);
        match finder.find_created(&context, &planned.planned).await {
            Err(error) => self.later(&error.into()),
            Ok(None) if self.engine.clock.now() < self.intent.deadline => self.not_found_yet(),
            Ok(object) => self.adopt_or_restore(self.stored, object).await,
        }
    }

    /// A read that does not find the object may be too early for an eventually consistent service; after the
    /// deadline of the call it counts.
    fn not_found_yet(&self) -> Recovery {
        let message = format!(
            "a creation was cut off and nothing is found of it yet; not found counts from {}",
            self.intent.deadline
        );
        Recovery::Held(Held { reason: Reason::OperationInProgress, message }, Some(self.intent.deadline))
    }

    async fn ask_person(&self) -> Recovery {
        let import = self.instance.and_then(|instance| instance.import.as_ref());
        let (Some(import), Some(planned)) = (import, &self.intent.planned) else {
            let message = match self.has_lost_its_resource() {
                true => format!(
                    "a creation was cut off, its Resource is gone, and it cannot be told whether an object was made \
                     (hint: apply the Resource again, with spec.import.id if there is an object, or declare that there \
                     is none with `purlin state rm {} --force`)",
                    self.stored.record.address
                ),
                false => "a creation was cut off and nobody can tell whether an object was made (hint: set \
                          spec.import.id to the object's id to adopt it, or declare that it never happened with \
                          `purlin state rm --force`)"
                    .to_owned(),
            };
            return Recovery::Held(Held { reason: Reason::CreateOutcomeUnknown, message }, None);
        };
        let context = self.context(&planned.recorded, self.timeouts().read);
        match self.driver.import(&context, import).await {
            Err(error) => self.later(&error.into()),
            Ok(None) => {
                let message = format!("no object `{import}` of spec.import exists");
                Recovery::Held(Held { reason: Reason::ImportNotFound, message }, None)
            }
            Ok(object) => self.adopt_or_restore(self.stored, object).await,
        }
    }

    /// What was found is the new object. Otherwise none was made, and what was deposed for it is current again.
    async fn adopt_or_restore(&self, before: &Stored, object: Option<ObjectState>) -> Recovery {
        let Some(object) = object else {
            let rest = super::step::without_intent(&before.record);
            let is_empty = !rest.has_objects() && rest.published.is_empty();
            return match is_empty && self.has_lost_its_resource() {
                true => self.erase(before).await,
                false => self.restore(before).await,
            };
        };
        // It is what somebody names or a driver finds, and not what a call has promised: the next plan compares it.
        self.settle(before, ApplyResponse { object: Some(object), found: true, ..ApplyResponse::default() }).await
    }

    /// Nothing was done: the intent is closed, and what a create deposed is current again.
    async fn restore(&self, before: &Stored) -> Recovery {
        let written = write_result(self.engine, before, super::step::without_intent(&before.record)).await;
        self.concluded(written.map(Fate::Kept))
    }

    /// An update cannot be told from its absence, but the object can be read; the next plan goes on from there.
    async fn read_updated(&self) -> Recovery {
        let mut record = self.stored.record.as_ref().clone();
        record.intent = None;
        let Some(current) = record.current.clone() else { return self.write(record).await };
        let context = self.context(&current, self.timeouts().read);
        match self.driver.read(&context, &current).await {
            Err(error) => return self.later(&error.into()),
            Ok(None) => match self.looked_elsewhere(&context, &current).await {
                Some(held) => return held,
                None => record.current = None,
            },
            Ok(Some(state)) => {
                let schema = self.engine.schema(&self.stored.record.type_name, current.provider.as_ref());
                let mut object = super::step::seen_object(&current, state, schema.as_deref());
                if let Some(planned) = &self.intent.planned {
                    object.dependencies = super::step::both(&current, &planned.recorded);
                    if object.value != current.value {
                        object.revision = planned.recorded.revision;
                    }
                }
                record.current = Some(Arc::new(object));
            }
        }
        self.write(record).await
    }

    async fn finish_destroy(&self) -> Recovery {
        let removed = self.removed();
        let Some(object) = self.object(removed) else { return self.close().await };
        match self.hooks_before(&object).await {
            Hooks::Done => {}
            Hooks::Gone => {
                let response = ApplyResponse::default();
                return self.concluded(settle_destroy(self.engine, self.stored, removed, response).await);
            }
            // The next plan destroys it again, and tells what happens then.
            Hooks::Failed => return self.close().await,
            Hooks::Unreadable(error) => return self.later(&error.into()),
        }
        let context = self.context(&object, self.timeouts().delete);
        let called = call_destroy(self.engine, self.stored, self.driver, &context, object).await;
        let Called { response, before } = called;
        self.concluded(settle_destroy(self.engine, &before, removed, response).await)
    }

    /// Runs the hooks of an object once more, since nobody knows how far they came; but not when it is gone, which
    /// means that they had ended well.
    async fn hooks_before(&self, object: &RecordedObject) -> Hooks {
        let record = &self.stored.record;
        let hooks = before_destroy(self.instance, &record.address, object);
        if hooks.is_empty() {
            return Hooks::Done;
        }
        let reading = self.context(object, self.timeouts().read);
        match self.driver.read(&reading, object).await {
            Err(error) => return Hooks::Unreadable(error),
            Ok(None) => return Hooks::Gone,
            Ok(Some(_)) => {}
        }
        let context = self.context(object, self.timeouts().delete);
        let of = Concerning { engine: self.engine, context, uid: &record.uid, object, read: self.read() };
        let mut notes = Vec::new();
        let ended = hooks::run(&of, hooks, &mut notes).await;
        for note in notes {
            tracing::info!(address = %record.address, hook = &*note.hook, failed = note.failed, "{}", note.message);
        }
        match ended {
            Ok(()) => Hooks::Done,
            Err(failure) => {
                tracing::warn!(address = %record.address, "{}", failure.message);
                Hooks::Failed
            }
        }
    }

    async fn read_destroyed(&self) -> Recovery {
        let removed = self.removed();
        let Some(object) = self.object(removed) else { return self.close().await };
        let context = self.context(&object, self.timeouts().read);
        match self.driver.read(&context, &object).await {
            Err(error) => self.later(&error.into()),
            Ok(Some(_)) => self.close().await,
            Ok(None) => {
                if let Some(held) = self.looked_elsewhere(&context, &object).await {
                    return held;
                }
                let response = ApplyResponse::default();
                self.concluded(settle_destroy(self.engine, self.stored, removed, response).await)
            }
        }
    }

    /// An object that is missing under another configuration than the one that last saw it is not believed to be gone.
    async fn looked_elsewhere(&self, context: &CallContext, object: &RecordedObject) -> Option<Recovery> {
        match self.driver.configuration(context).await {
            Ok(configuration) if object.is_known_to(&configuration) => None,
            Ok(_) => {
                let message = GONE_ELSEWHERE.to_owned();
                Some(Recovery::Held(Held { reason: Reason::GoneAfterConfigChange, message }, None))
            }
            Err(error) => Some(self.later(&error.into())),
        }
    }

    fn removed(&self) -> Removed {
        let deposed = self.intent.deposed;
        let wanted = self.instance.is_some_and(Instance::is_wanted);
        Removed { deposed, makes_room: wanted && deposed.is_none() }
    }

    fn object(&self, removed: Removed) -> Option<Arc<RecordedObject>> {
        let record = &self.stored.record;
        match removed.deposed {
            Some(key) => record.deposed.get(&key).cloned(),
            None => record.current.clone(),
        }
    }

    /// Closes the intent and changes nothing else.
    async fn close(&self) -> Recovery {
        let mut record = self.stored.record.as_ref().clone();
        record.intent = None;
        self.write(record).await
    }

    async fn write(&self, record: Record) -> Recovery {
        let written = write_result(self.engine, self.stored, record).await;
        self.concluded(written.map(Fate::Kept))
    }

    async fn settle(&self, before: &Stored, response: ApplyResponse) -> Recovery {
        let generation = self.instance.map_or(0, |instance| instance.generation);
        let requested = self.instance.map_or_else(|| Arc::from(""), |instance| Arc::clone(&instance.replace_requested));
        self.concluded(settle_create(self.engine, before, response, generation, &requested, None).await)
    }

    /// A call that failed after its outcome was recorded has settled the intent all the same: the next plan deals
    /// with what is recorded now.
    fn concluded(&self, ended: Result<Fate, Unfinished>) -> Recovery {
        let (fate, failure) = match ended {
            Ok(fate) => (fate, None),
            Err(unfinished) => (unfinished.fate, Some(unfinished.failure)),
        };
        match (fate, failure) {
            (Fate::Erased, _) => Recovery::Erased,
            (Fate::Kept(stored), _) if stored.record.intent.is_none() => Recovery::Settled(stored),
            (_, Some(failure)) => self.later(&failure),
            (_, None) => Recovery::Settled(self.stored.clone()),
        }
    }

    fn later(&self, failure: &Failure) -> Recovery {
        let message = format!(
            "recovering a {} that was cut off did not succeed: {}",
            self.intent.operation.as_str(),
            failure.message
        );
        let pause = if failure.reason == Reason::Forbidden { TRY_AGAIN_FORBIDDEN } else { TRY_AGAIN };
        let again = failure.retryable.then(|| after(self.engine.clock.now(), pause));
        Recovery::Held(Held { reason: failure.reason, message }, again)
    }

    /// What the expressions of the object read, as far as its Resource alone tells.
    fn read(&self) -> Vec<&Value> {
        self.instance.iter().map(|instance| instance.inputs.values()).collect()
    }

    fn timeouts(&self) -> Timeouts {
        self.instance.map_or_else(Timeouts::default, |instance| instance.timeouts)
    }

    /// The context of a call about an object, as its record has it.
    fn context(&self, object: &RecordedObject, timeout: Duration) -> CallContext {
        let record = &self.stored.record;
        let call = Call {
            type_name: &record.type_name,
            namespace: &record.namespace,
            address: &record.address,
            provider: object.provider.as_ref(),
            service_account: service_account(self.instance, &object.service_account),
        };
        let context = self.engine.call_context(&call, timeout);
        let (operation_id, warnings) = (Arc::clone(&self.intent.operation_id), self.warnings.clone());
        CallContext { operation_id, warnings, ..context }
    }
}
