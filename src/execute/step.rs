//! One step: finalize, intend, call, record. Whatever happens, the end says what is recorded now.

mod calling;
mod conditions;
mod create;
mod destroy;
mod finalize;
mod hooks;
mod publish;
mod read;
mod ready;
mod update;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::engine::{Call, after, service_account};
use super::under_way::Delay;
use crate::driver::{ApplyResponse, CallContext, Driver, Warnings};
use crate::execute::failure::{Failure, below_config, told};
use crate::execute::{Engine, HookNote, JournalError, Wishes};
use crate::load::expression::Scope;
use crate::load::{Instance, Timeouts};
use crate::model::{
    Address, DeposedKey, Diagnostic, Diagnostics, Intent, ObjectState, Operation, PlannedObject, Reading, Reason,
    Record, RecordedObject, ReplaceOrder, Revision, Schema, Severity, Step, Stored, Value, Version,
};

use crate::plan::Prepared;
use crate::plan::finalize::{Final, recorded, recorded_value};

pub(crate) use calling::{Called, call};
pub(crate) use create::{settle_create, with_wait};
pub(crate) use destroy::{Removed, call_destroy, settle_destroy};
pub(crate) use update::both;

/// Everything one step needs to know, as of the moment in which it starts.
#[derive(Debug)]
pub struct StepInput {
    pub(crate) namespace: Arc<str>,
    pub(crate) step: Step,
    pub(crate) type_name: Arc<str>,
    /// Of a replacement: in which order.
    pub(crate) order: Option<ReplaceOrder>,
    /// What is wanted; `None` for an orphan.
    pub(crate) instance: Option<Arc<Instance>>,
    /// The record as it is now.
    pub(crate) stored: Option<Stored>,
    /// The planned change of a create, update or record-only step, and of both legs of a replacement.
    pub(crate) prepared: Option<Arc<Prepared>>,
    /// What the object's expressions read.
    pub(crate) scope: StepScope,
    /// The wish that the step was planned for, where wishes can change.
    pub(crate) wish: Option<u64>,
}

impl StepInput {
    /// Which step.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// The type of its object.
    pub fn type_name(&self) -> &Arc<str> {
        &self.type_name
    }
}

/// A step under way.
pub(crate) struct StepTask {
    pub engine: Arc<Engine>,
    /// The newest wishes.
    pub wishes: Wishes,
    /// Waits for readiness are to end.
    pub stop: watch::Receiver<bool>,
    pub input: StepInput,
    /// What became of hooks.
    pub notes: Mutex<Vec<HookNote>>,
    /// What the driver has warned of.
    pub warnings: Warnings,
}

impl std::ops::Deref for StepTask {
    type Target = StepInput;

    fn deref(&self) -> &StepInput {
        &self.input
    }
}

/// How a step ended.
#[derive(Debug)]
pub struct StepEnd {
    pub(crate) step: Step,
    pub(crate) fate: Fate,
    pub(crate) failure: Option<Failure>,
    pub(crate) notes: Vec<HookNote>,
    pub(crate) warnings: Diagnostics,
}

/// What is recorded after a step.
#[derive(Debug)]
pub(crate) enum Fate {
    /// The record as it stands.
    Kept(Stored),
    /// There is none any more.
    Erased,
    /// A data source was read. Nothing is written.
    Read(Arc<Reading>),
    /// Nothing was written.
    Untouched,
    /// A newer wish is known, so nothing was done; the record as it stands if an intent was taken back.
    Withdrawn(Option<Stored>),
    /// The wait for readiness was ended by a stop. The record says that it is still to be waited for.
    LetGo(Stored),
}

/// The values that one object's expressions read, as they are when its step starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepScope {
    pub objects: BTreeMap<Address, Value>,
    /// The objects that each reference of a trigger means, with their revisions.
    pub revisions: BTreeMap<Address, Vec<(Address, Revision)>>,
    pub namespace: Value,
}

impl Scope for StepScope {
    fn object(&self, address: &Address) -> Option<Value> {
        self.objects.get(address).cloned()
    }

    fn namespace(&self) -> Value {
        self.namespace.clone()
    }
}

/// A step ended without its success. The record is as `fate` says.
pub(crate) struct Unfinished {
    pub fate: Fate,
    pub failure: Failure,
}

impl Unfinished {
    /// A newer wish is known, and nothing was called.
    fn withdrawn(stored: Option<Stored>) -> Self {
        let failure = Failure {
            reason: Reason::Progressing,
            message: "the Resource has changed since this was planned".to_owned(),
            retryable: true,
        };
        Self { fate: Fate::Withdrawn(stored), failure }
    }
}

impl<T: Into<Failure>> From<T> for Unfinished {
    fn from(failure: T) -> Self {
        Self { fate: Fate::Untouched, failure: failure.into() }
    }
}

impl StepTask {
    /// Runs the step to its end. Never cancelled by us: a call that runs is awaited.
    pub async fn run(self) -> StepEnd {
        let done = match self.step.operation {
            _ if self.is_unsettled() => Err(unsettled(&self.step).into()),
            Operation::Create => create::run(&self).await,
            Operation::Update => update::run(&self).await,
            Operation::Record | Operation::Wait => update::record_only(&self).await,
            Operation::Destroy => destroy::run(&self).await,
            Operation::Forget => destroy::forget(&self).await,
            Operation::Read => read::run(&self).await,
        };
        let done = match done {
            Ok(fate) if !self.step.operation.removes() && !self.only_follows() => ready::wait(&self, fate).await,
            other => other,
        };
        let done = match done {
            // The call has ended well, and its intent is kept open for the hooks.
            Ok(Fate::Kept(stored)) if stored.record.intent.is_some() => hooks::after_create(&self, stored).await,
            other => other,
        };
        let done = match done {
            Ok(fate) if !self.step.operation.removes() && !self.only_follows() => publish::after(&self, fate).await,
            other => other,
        };
        let done = done.and_then(|fate| conditions::after(&self, fate));
        let (fate, failure) = match done {
            Ok(fate) => (fate, None),
            Err(unfinished) => (unfinished.fate, Some(unfinished.failure)),
        };
        let notes = self.notes.into_inner().unwrap_or_default();
        let warnings = told(&self.input.step.address, self.warnings.take());
        StepEnd { step: self.input.step, fate, failure, notes, warnings }
    }

    /// Remembers what became of hooks, to be told at the end of the step.
    fn note(&self, notes: Vec<HookNote>) {
        if let Ok(mut known) = self.notes.lock() {
            known.extend(notes);
        }
    }

    /// Takes what a driver has found before the step acts: warnings are told at the end of the step, and the first error
    /// is its end.
    fn hear(&self, found: Diagnostics) -> Result<(), Failure> {
        let (errors, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.severity == Severity::Error);
        warnings.into_iter().for_each(|warning| self.warnings.add(warning));
        let Some(problem) = errors.into_iter().next() else { return Ok(()) };
        let path = problem.path.as_ref().map(below_config);
        Err(Diagnostic { path, ..problem }.into())
    }

    /// An earlier step of this object has ended and its result could not be recorded.
    fn is_unsettled(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.record.intent.is_some())
    }

    /// The record as a step leaves it that ends so; `None`: there is none, or the step has not come to its end.
    fn left_by<'a>(&'a self, fate: &'a Fate) -> Option<&'a Stored> {
        match fate {
            Fate::Kept(stored) => Some(stored),
            Fate::Untouched => self.stored.as_ref(),
            Fate::Erased | Fate::Read(_) | Fate::Withdrawn(_) | Fate::LetGo(_) => None,
        }
    }

    fn driver(&self) -> Result<&Arc<dyn Driver>, Failure> {
        let missing = || Failure::internal(format!("no driver serves the type `{}`", self.type_name));
        self.engine.drivers.get(&self.type_name).ok_or_else(missing)
    }

    fn schema(&self) -> Result<Arc<Schema>, Failure> {
        let missing = || Failure::internal(format!("the driver has no schema of the type `{}`", self.type_name));
        let provider = self.prepared()?.recorded.provider.as_ref();
        self.engine.schema(&self.type_name, provider).ok_or_else(missing)
    }

    fn prepared(&self) -> Result<&Prepared, Failure> {
        self.prepared.as_deref().ok_or_else(|| Failure::internal("the plan holds nothing for this step"))
    }

    /// What the expressions of the object read: a part of what they give may be quoted, and only the whole is marked.
    fn read(&self) -> Vec<&Value> {
        let inputs = self.instance.iter().map(|instance| instance.inputs.values());
        inputs.chain(self.scope.objects.values()).collect()
    }

    /// What is to be recorded with the object, now that all it depends on is done.
    fn recorded(&self) -> Result<RecordedObject, Failure> {
        if self.only_follows() {
            return Ok(self.prepared()?.recorded.clone());
        }
        let revisions = |target: &Address| self.scope.revisions.get(target).cloned().unwrap_or_default();
        Ok(recorded(self.prepared()?, self.instance.as_deref(), &self.scope, &revisions))
    }

    /// Whether the step only records what was read, or what the manifest says about keeping the object.
    fn only_follows(&self) -> bool {
        self.prepared.as_ref().is_some_and(|prepared| prepared.only_follows)
    }

    fn timeouts(&self) -> Timeouts {
        self.instance.as_deref().map_or_else(Timeouts::default, |instance| instance.timeouts)
    }

    /// The record to start from: the one there is, or an empty one for the Resource.
    fn record(&self) -> Record {
        let mut record = match &self.stored {
            Some(stored) => stored.record.as_ref().clone(),
            None => Record::empty(
                Arc::clone(&self.namespace),
                self.step.address.clone(),
                Arc::from(""),
                Arc::clone(&self.type_name),
            ),
        };
        if let Some(instance) = &self.instance {
            record.uid = Arc::clone(&instance.uid);
        }
        // An object that was imported just now and is replaced at once is recorded with the intent to give it up.
        let imported = self.prepared.as_ref().filter(|_| self.stored.is_none() && self.step.replaces);
        record.current = record.current.or_else(|| imported?.replaced.clone());
        record
    }

    /// The context of a call about an object as it is recorded, of an intended operation when there is one.
    fn context(&self, object: &RecordedObject, timeout: Duration, intent: Option<&Intent>) -> CallContext {
        let call = Call {
            type_name: &self.type_name,
            namespace: &self.namespace,
            address: &self.step.address,
            provider: object.provider.as_ref(),
            service_account: service_account(self.instance.as_deref(), &object.service_account),
        };
        let operation_id = intent.map_or_else(|| Arc::from(""), |intent| Arc::clone(&intent.operation_id));
        let warnings = self.warnings.clone();
        CallContext { operation_id, warnings, ..self.engine.call_context(&call, timeout) }
    }

    /// Whether the Resource does not carry our finalizer and annotation, so that a write without a call must put them there.
    fn must_claim(&self) -> bool {
        self.instance.as_deref().is_some_and(|instance| !instance.deleting && !instance.is_marked())
    }

    /// What an intent keeps of the final plan, and of the configuration under which it is carried out.
    async fn planned_object(&self, last: &Final, timeout: Duration) -> Result<PlannedObject, Failure> {
        let recorded = self.recorded()?;
        let context = self.context(&recorded, timeout, None);
        let provider_config = self.driver()?.configuration(&context).await?;
        Ok(PlannedObject {
            config: last.config.clone(),
            planned: last.planned.clone(),
            private: Arc::clone(&last.private),
            recorded: Box::new(RecordedObject { provider_config, ..recorded }),
        })
    }

    /// Writes the intent and gives the record with its new version. After an error nothing may be called.
    async fn intend(
        &self,
        record: Record,
        operation: Operation,
        deposed: Option<DeposedKey>,
        planned: Option<PlannedObject>,
        timeout: Duration,
    ) -> Result<Stored, Unfinished> {
        let base = self.stored.as_ref().map(|stored| stored.version);
        self.intend_after(base, record, operation, deposed, planned, timeout).await
    }

    /// The same, when the step itself has written the record that the intent follows.
    async fn intend_after(
        &self,
        base: Option<Version>,
        mut record: Record,
        operation: Operation,
        deposed: Option<DeposedKey>,
        mut planned: Option<PlannedObject>,
        timeout: Duration,
    ) -> Result<Stored, Unfinished> {
        if !self.is_still_wished() {
            return Err(Unfinished::withdrawn(None));
        }
        let now = self.engine.clock.now();
        record.epoch += 1;
        let operation_id: Arc<str> = self.engine.random.uuid().into();
        if let Some(planned) = &mut planned {
            planned.recorded.revision = Revision::new(record.epoch, &operation_id);
        }
        record.intent = Some(Box::new(Intent {
            operation,
            operation_id,
            holder: self.engine.holder.clone(),
            epoch: record.epoch,
            started: now,
            deadline: after(now, timeout),
            deposed,
            planned,
        }));
        let record = Arc::new(record);
        let intended = self.engine.journal.intend(Arc::clone(&record), base).await;
        match &intended {
            Ok(_) => self.engine.uncalled.forget(&record),
            Err(_) => self.engine.uncalled.add(&record),
        }
        let stored = Stored { record, version: intended? };
        // The server may have taken its time.
        self.go_on(&stored).await?;
        Ok(stored)
    }

    /// Whether the step may still give something up.
    fn is_still_wished(&self) -> bool {
        !self.step.gives_up() || self.wishes.stands(&self.step.address.name, self.wish)
    }

    /// Goes on after an intent, or takes it back when a newer wish has become known before anything was called.
    async fn go_on(&self, intended: &Stored) -> Result<(), Unfinished> {
        if self.is_still_wished() {
            return Ok(());
        }
        let stored = write_result(&self.engine, intended, without_intent(&intended.record)).await?;
        Err(Unfinished::withdrawn(Some(stored)))
    }
}

/// The record as it was before an open intent whose call was never made, or has made nothing: what was deposed for it
/// is current again.
pub(crate) fn without_intent(record: &Record) -> Record {
    let mut record = record.clone();
    let intent = record.intent.take().filter(|intent| intent.operation == Operation::Create);
    if let Some(old) = intent.and_then(|intent| record.deposed.remove(&intent.deposed?)) {
        record.current = Some(with_wait(old, false));
    }
    record
}

fn unsettled(step: &Step) -> Failure {
    let message = format!("an earlier operation of {} is open; its outcome is settled first", step.address);
    Failure { reason: Reason::OperationInProgress, message, retryable: true }
}

/// The response, unless nobody can tell what the call has done: then its intent stays open.
pub(crate) fn settled(before: &Stored, response: ApplyResponse) -> Result<ApplyResponse, Unfinished> {
    if !response.unsettled {
        return Ok(response);
    }
    let mut failure = response.error.map_or_else(|| Failure::driver("the driver gave no answer"), Failure::from);
    failure.message = format!("whether it was done is not known: {}", failure.message);
    failure.retryable = true;
    Err(Unfinished { fate: Fate::Kept(before.clone()), failure })
}

/// Writes what a step came to. When even that fails the intent stays open, and recovery settles it.
pub(crate) async fn write_result(engine: &Engine, before: &Stored, record: Record) -> Result<Stored, Unfinished> {
    let record = Arc::new(record);
    let written = engine.journal.record(Arc::clone(&record), before.clone());
    let why = || {
        let known = engine.journal.trouble(&record).unwrap_or_else(|| "the store has not answered".to_owned());
        let message =
            format!("the call has ended, and its result is not recorded yet: {known}; it is kept and tried again");
        Delay { reason: Reason::RecordNotWritten, message }
    };
    match engine.under_way.wait(&record, written, why).await {
        Ok(version) => Ok(Stored { record, version }),
        Err(error) => Err(Unfinished { fate: Fate::Kept(before.clone()), failure: lost_result(error) }),
    }
}

fn lost_result(error: JournalError) -> Failure {
    let failure = Failure::from(error);
    let message = format!("the call has ended, but its result could not be recorded: {}", failure.message);
    Failure { message, ..failure }
}

/// What a driver made of a plan, with what is recorded besides: places that are sensitive in the plan stay so.
pub(crate) fn made_object(planned: &PlannedObject, state: ObjectState, schema: Option<&Schema>) -> RecordedObject {
    let value = match schema {
        Some(schema) => recorded_value(&planned.planned, state.value, schema),
        None => state.value.unknown_as_null(),
    };
    RecordedObject { value, private: state.private, identity: state.identity, ..(*planned.recorded).clone() }
}

/// A recorded object as a driver reports it now: sensitive places stay so. Whether it is as its configuration asks is
/// for the next plan to find out.
pub(crate) fn seen_object(before: &RecordedObject, state: ObjectState, schema: Option<&Schema>) -> RecordedObject {
    let value = match schema {
        Some(schema) => recorded_value(&before.value, state.value, schema),
        None => state.value.unknown_as_null(),
    };
    RecordedObject { value, private: state.private, identity: state.identity, agrees_with: None, ..before.clone() }
}
