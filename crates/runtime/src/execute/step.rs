//! One step: finalize, intend, call, record. However it ends, its result says what is recorded now.

mod apply_call;
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
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::engine::{Call, after, service_account};
use super::in_flight::Delay;
use crate::execute::failure::{Failure, below_config, with_address};
use crate::execute::{Engine, HookNote, JournalError};
use drivers::{ApplyResponse, CallContext, Driver, Warnings};
use engine::load::expression::Scope;
use engine::load::{Instance, Timeouts};
use model::{
    Address, ApprovedObject, Cause, ChangeOutcome, DeposedKey, Diagnostic, Diagnostics, Intent, Name, Namespace,
    ObjectState, Operation, PlannedObject, ReadResult, Reason, Record, RecordedObject, ReplaceOrder, Revision, Schema,
    Severity, Step, Stored, TypeName, Uid, Value, Version,
};

use engine::plan::PreparedStep;
use engine::plan::finalize::{FinalPlan, recorded, recorded_value};
use engine::plan::hooks::after_change;

pub(crate) use apply_call::{ApplyResult, apply};
pub(crate) use create::{record_create_result, with_awaits_postconditions};
pub(crate) use destroy::{RemovalTarget, apply_destroy, record_destroy_result};
pub(crate) use update::merged_dependencies;

/// The input of a step at the time it starts.
#[derive(Debug)]
pub struct StepInput {
    pub(crate) namespace: Namespace,
    pub(crate) step: Step,
    pub(crate) type_name: TypeName,
    /// The order of a replacement.
    pub(crate) order: Option<ReplaceOrder>,
    /// The desired instance; `None` for an orphan.
    pub(crate) instance: Option<Arc<Instance>>,
    pub(crate) stored: Option<Stored>,
    /// The planned change of a create, update or record step, and of both steps of a replacement.
    pub(crate) prepared: Option<Arc<PreparedStep>>,
    /// The values that the object's expressions read.
    pub(crate) scope: StepScope,
    /// The digest of the desired state that the step was planned for, if that can change during execution.
    pub(crate) desired_digest: Option<u64>,
    /// The first name of the component, for the log.
    pub(crate) component: Name,
    /// Why the object is changed, for the history.
    pub(crate) cause: Cause,
    /// What was approved as the new object of a replacement.
    pub(crate) approved_object: Option<Box<ApprovedObject>>,
}

impl StepInput {
    pub fn step(&self) -> &Step {
        &self.step
    }

    pub fn type_name(&self) -> &TypeName {
        &self.type_name
    }
}

/// A running step.
pub(crate) struct StepTask {
    pub engine: Arc<Engine>,
    /// The latest desired states.
    pub desired: DesiredDigests,
    /// Turns true when waits must end.
    pub stop: watch::Receiver<bool>,
    /// Whether a wait for readiness ends when the object has failed or its time limit has passed.
    pub limits_waits: bool,
    pub input: StepInput,
    /// The reports of hooks.
    pub notes: Mutex<Vec<HookNote>>,
    /// The warnings of the driver.
    pub warnings: Warnings,
}

impl std::ops::Deref for StepTask {
    type Target = StepInput;

    fn deref(&self) -> &StepInput {
        &self.input
    }
}

/// Returns the digest of the latest known desired state of a Resource.
type Latest = dyn Fn(&str) -> u64 + Send + Sync;

/// The latest desired states of a namespace. A step that destroys or replaces an object compares them right before its
/// intent, because the desired state may have changed during planning or while the step waited.
#[derive(Clone, Default)]
pub struct DesiredDigests(Option<Arc<Latest>>);

impl DesiredDigests {
    /// Desired states that can change while a plan is executed. `latest` is called for each step, so it must be cheap.
    pub fn live(latest: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(latest)))
    }

    /// Whether the desired state of this Resource is still the planned one. Always true for plans that are executed
    /// without changes, as by `purlin apply`.
    pub fn is_latest(&self, name: &str, planned: Option<u64>) -> bool {
        self.0.as_ref().is_none_or(|latest| planned == Some(latest(name)))
    }
}

impl fmt::Debug for DesiredDigests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "DesiredDigests(live)" } else { "DesiredDigests(fixed)" })
    }
}

/// The result of a step.
#[derive(Debug)]
pub struct StepEnd {
    pub(crate) step: Step,
    pub(crate) effect: RecordEffect,
    pub(crate) failure: Option<Failure>,
    pub(crate) notes: Vec<HookNote>,
    pub(crate) warnings: Diagnostics,
}

/// The record after a step.
#[derive(Debug)]
pub(crate) enum RecordEffect {
    /// The record as last written.
    Written(Stored),
    /// The record was removed.
    Erased,
    /// A data source was read; readings have no record.
    Read(Arc<ReadResult>),
    /// The record did not change.
    Unchanged,
    /// The desired state has changed, so nothing was done. Holds the record if an intent was reverted.
    Superseded(Option<Stored>),
    /// The wait for readiness, or for the end of a destroyed object, was interrupted. The record says what to wait for.
    WaitInterrupted(Stored),
}

/// The values that an object's expressions read, at the time its step starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepScope {
    pub objects: BTreeMap<Address, Value>,
    /// The objects that each trigger reference resolves to, with their revisions.
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

    fn is_final(&self) -> bool {
        true
    }
}

/// A failed step, and its effect on the record.
pub(crate) struct StepError {
    pub effect: RecordEffect,
    pub failure: Failure,
}

impl StepError {
    /// The desired state has changed before a call.
    fn superseded(stored: Option<Stored>) -> Self {
        let failure = Failure {
            reason: Reason::Progressing,
            message: "the configuration has changed since the plan was computed".to_owned(),
            retryable: true,
        };
        Self { effect: RecordEffect::Superseded(stored), failure }
    }
}

impl<T: Into<Failure>> From<T> for StepError {
    fn from(failure: T) -> Self {
        Self { effect: RecordEffect::Unchanged, failure: failure.into() }
    }
}

impl StepTask {
    /// Runs the step to its end. Never cancelled: a running call is always awaited.
    pub async fn run(self) -> StepEnd {
        let done = match self.step.operation {
            _ if self.has_open_intent() => Err(open_intent_failure(&self.step).into()),
            Operation::Create => create::run(&self).await,
            Operation::Update => update::run(&self).await,
            Operation::Record | Operation::Wait => update::record_only(&self).await,
            Operation::Destroy => destroy::run(&self).await,
            Operation::Forget => destroy::forget(&self).await,
            Operation::Read => read::run(&self).await,
        };
        let done = match done {
            Ok(effect) if !self.step.operation.removes() && !self.is_record_only() => ready::wait(&self, effect).await,
            other => other,
        };
        let done = match done {
            // The call succeeded, and its intent stays open for the hooks.
            Ok(RecordEffect::Written(stored)) if stored.record.intent.is_some() => {
                hooks::after_create(&self, stored).await
            }
            other => other,
        };
        let done = match done {
            Ok(effect) if !self.step.operation.removes() && !self.is_record_only() => {
                publish::after(&self, effect).await
            }
            other => other,
        };
        let done = done.and_then(|effect| conditions::after(&self, effect));
        let (effect, failure) = match done {
            Ok(effect) => (effect, None),
            Err(unfinished) => (unfinished.effect, Some(unfinished.failure)),
        };
        let notes = self.notes.into_inner().unwrap_or_default();
        let warnings = with_address(&self.input.step.address, self.warnings.take());
        StepEnd { step: self.input.step, effect, failure, notes, warnings }
    }

    /// Adds hook reports to the result of the step.
    fn add_hook_notes(&self, notes: Vec<HookNote>) {
        if let Ok(mut known) = self.notes.lock() {
            known.extend(notes);
        }
    }

    /// Handles the diagnostics of a plan or read: adds warnings to the result of the step, and returns the first error.
    fn add_diagnostics(&self, found: Diagnostics) -> Result<(), Failure> {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|diagnostic| diagnostic.severity == Severity::Error);
        warnings.into_iter().for_each(|warning| self.warnings.add(warning));
        let Some(problem) = errors.into_iter().next() else { return Ok(()) };
        let path = problem.path.as_ref().map(below_config);
        let address = Some(self.input.step.address.clone());
        Err(Diagnostic { path, address, ..problem }.into())
    }

    /// Whether the result of an earlier step of this object was not recorded.
    fn has_open_intent(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.record.intent.is_some())
    }

    /// The record after a step with this effect; `None` if no record exists or the step did not complete.
    fn record_after<'a>(&'a self, effect: &'a RecordEffect) -> Option<&'a Stored> {
        match effect {
            RecordEffect::Written(stored) => Some(stored),
            RecordEffect::Unchanged => self.stored.as_ref(),
            RecordEffect::Erased
            | RecordEffect::Read(_)
            | RecordEffect::Superseded(_)
            | RecordEffect::WaitInterrupted(_) => None,
        }
    }

    fn driver(&self) -> Result<&Arc<dyn Driver>, Failure> {
        self.engine
            .drivers
            .get(&self.type_name)
            .ok_or_else(|| Failure::internal(format!("no driver serves the type `{}`", self.type_name)))
    }

    /// Evaluates expressions of the object. Other tasks continue if this takes long.
    fn evaluate<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.instance.as_deref().is_some_and(Instance::is_computed) {
            true => self.engine.threads.run(work),
            false => work(),
        }
    }

    fn schema(&self) -> Result<Arc<Schema>, Failure> {
        let provider = self.prepared()?.recorded.provider.as_ref();
        self.engine
            .schema(&self.type_name, provider)
            .ok_or_else(|| Failure::internal(format!("the driver has no schema of the type `{}`", self.type_name)))
    }

    fn prepared(&self) -> Result<&PreparedStep, Failure> {
        self.prepared.as_deref().ok_or_else(|| Failure::internal("the plan holds nothing for this step"))
    }

    /// The object that a replacement or a destroy removes, as the plan read it.
    fn refreshed(&self) -> Option<&Arc<RecordedObject>> {
        self.prepared.as_ref()?.replaced.as_ref()
    }

    /// The values that the object's expressions read. A message may quote a part of an expression's result, and only
    /// the whole value is marked as sensitive.
    fn read(&self) -> Vec<&Value> {
        let inputs = self.instance.iter().map(|instance| instance.inputs.values());
        inputs.chain(self.scope.objects.values()).collect()
    }

    /// The metadata to record with the object, from the final values of its dependencies.
    fn recorded(&self) -> Result<RecordedObject, Failure> {
        if self.is_record_only() {
            return Ok(self.prepared()?.recorded.clone());
        }
        let prepared = self.prepared()?;
        Ok(self.evaluate(|| {
            recorded(prepared, self.instance.as_deref(), &self.scope, &|target| {
                self.scope.revisions.get(target).cloned().unwrap_or_default()
            })
        }))
    }

    /// Whether the step only updates the record: with a refreshed value, or with lifecycle settings of the manifest.
    fn is_record_only(&self) -> bool {
        self.prepared.as_ref().is_some_and(|prepared| prepared.record_only)
    }

    fn timeouts(&self) -> Timeouts {
        self.instance.as_deref().map_or_else(Timeouts::default, |instance| instance.timeouts)
    }

    /// The current record, or an empty one for the Resource.
    fn record(&self) -> Record {
        let mut record = match &self.stored {
            Some(stored) => stored.record.as_ref().clone(),
            None => {
                Record::empty(self.namespace.clone(), self.step.address.clone(), Uid::default(), self.type_name.clone())
            }
        };
        if let Some(instance) = &self.instance {
            record.uid = instance.uid.clone();
            record.source.clone_from(&instance.source_file);
            if !record.has_objects() && !record.replacement_pending {
                // The request is older than what is known of the object.
                record.handled_replace_request = Arc::clone(&instance.replace_requested);
            }
            if !self.step.operation.removes() && !self.is_record_only() {
                record.handled_import =
                    instance.import.as_ref().map_or_else(|| "".into(), |import| import.to_string().into());
            }
        }
        // An object that is imported and replaced in the same plan is recorded with the intent to destroy it.
        let imported = self.prepared.as_ref().filter(|_| self.stored.is_none() && self.step.replaces);
        record.current = record.current.or_else(|| imported?.replaced.clone());
        record
    }

    /// The context of a call about a recorded object, for the intended operation if there is one.
    fn context(&self, object: &RecordedObject, timeout: Duration, intent: Option<&Intent>) -> CallContext {
        let call = Call {
            type_name: &self.type_name,
            namespace: &self.namespace,
            address: &self.step.address,
            provider: object.provider.as_ref(),
            service_account: service_account(self.instance.as_deref(), &object.service_account),
            read: &self.read(),
        };
        let operation_id = intent.map_or_else(|| Arc::from(""), |intent| Arc::clone(&intent.operation_id));
        let warnings = self.warnings.clone();
        CallContext { operation_id, warnings, ..self.engine.call_context(&call, timeout) }
    }

    /// Whether the Resource lacks the finalizer or the annotation, so that a write without a call must add them.
    fn must_claim(&self) -> bool {
        self.instance.as_deref().is_some_and(|instance| !instance.deleting && !instance.is_marked())
    }

    /// The final plan as the intent records it, with the provider configuration it is executed with.
    async fn planned_object(&self, last: &FinalPlan, timeout: Duration) -> Result<PlannedObject, Failure> {
        let recorded = self.recorded()?;
        let context = self.context(&recorded, timeout, None);
        let provider_config = self.driver()?.configuration(&context).await?;
        let ephemeral = self.instance.as_deref().map_or(&[][..], |instance| &instance.ephemeral);
        Ok(PlannedObject {
            config: last.config.without(ephemeral),
            planned: last.planned.clone(),
            private: Arc::clone(&last.private),
            recorded: Box::new(RecordedObject { provider_config, ..recorded }),
        })
    }

    /// Writes the intent and returns the record with its new version. After an error the driver must not be called.
    async fn intend(
        &self,
        record: Record,
        operation: Operation,
        deposed: Option<DeposedKey>,
        planned: Option<PlannedObject>,
        timeout: Duration,
    ) -> Result<Stored, StepError> {
        let base = self.stored.as_ref().map(|stored| stored.version);
        self.intend_after(base, record, operation, deposed, planned, timeout).await
    }

    /// As `intend`, for a step that has itself written the record at version `base`.
    async fn intend_after(
        &self,
        base: Option<Version>,
        mut record: Record,
        operation: Operation,
        deposed: Option<DeposedKey>,
        mut planned: Option<PlannedObject>,
        timeout: Duration,
    ) -> Result<Stored, StepError> {
        if !self.is_still_desired() {
            return Err(StepError::superseded(None));
        }
        let now = self.engine.clock.now();
        record.epoch += 1;
        let operation_id: Arc<str> = self.engine.random.uuid().into();
        tracing::Span::current().record("operation_id", &*operation_id);
        if let Some(planned) = &mut planned {
            planned.recorded.revision = Revision::new(record.epoch, &operation_id);
        }
        let cause = self.cause.clone().or_default(operation, &record.history);
        record.intent = Some(Box::new(Intent {
            operation,
            operation_id,
            holder: self.engine.holder.clone(),
            epoch: record.epoch,
            started: now,
            deadline: after(now, timeout),
            deposed,
            planned,
            import: None,
            cause,
        }));
        let record = Arc::new(record);
        let intended = self.engine.journal.intend(Arc::clone(&record), base).await;
        if intended.is_err() {
            self.engine.unsent_calls.add(&record);
        }
        let stored = Stored { record, version: intended? };
        // The desired state may have changed during the write.
        self.check_still_desired(&stored).await?;
        Ok(stored)
    }

    /// Whether the desired state still allows the step to destroy or replace.
    fn is_still_desired(&self) -> bool {
        !self.step.is_destructive() || self.desired.is_latest(self.step.address.name(), self.desired_digest)
    }

    /// Reverts the intent if the desired state has changed before the call.
    async fn check_still_desired(&self, intended: &Stored) -> Result<(), StepError> {
        if self.is_still_desired() {
            return Ok(());
        }
        let stored = write_result(&self.engine, intended, without_intent(&intended.record)).await?;
        Err(StepError::superseded(Some(stored)))
    }
}

/// The record as it was before an open intent whose call was not sent or had no effect: the object that was deposed for
/// it becomes current again.
pub(crate) fn without_intent(record: &Record) -> Record {
    let mut record = record.clone();
    let intent = record.intent.take().filter(|intent| intent.operation == Operation::Create);
    if let Some(old) = intent.and_then(|intent| record.deposed.remove(&intent.deposed?)) {
        record.current = Some(with_awaits_postconditions(old, false));
    }
    record
}

fn open_intent_failure(step: &Step) -> Failure {
    let message =
        format!("an earlier operation of {} is still open; recovery determines its outcome first", step.address);
    Failure { reason: Reason::OperationInProgress, message, retryable: true }
}

/// Returns the response, or an error that leaves the intent open if the outcome of the call is unknown.
pub(crate) fn require_outcome(before: &Stored, response: ApplyResponse) -> Result<ApplyResponse, StepError> {
    if !response.outcome_unknown {
        return Ok(response);
    }
    let mut failure = response.error.map_or_else(|| Failure::driver("the driver returned no response"), Failure::from);
    failure.message = format!("the outcome of the call is unknown: {}", failure.message);
    failure.retryable = true;
    Err(StepError { effect: RecordEffect::Written(before.clone()), failure })
}

/// Writes the result of a step. If the write fails, the intent stays open for recovery.
pub(crate) async fn write_result(engine: &Engine, before: &Stored, record: Record) -> Result<Stored, StepError> {
    let record = Arc::new(record);
    let written = engine.journal.record(Arc::clone(&record), before.clone());
    match engine.in_flight.wait(&record, written, || pending_write(engine, &record)).await {
        Ok(version) => Ok(Stored { record, version }),
        Err(error) => {
            Err(StepError { effect: RecordEffect::Written(before.clone()), failure: unrecorded_result(error) })
        }
    }
}

/// Why a result is not recorded yet.
fn pending_write(engine: &Engine, record: &Record) -> Delay {
    let known = engine.journal.pending_error(record).unwrap_or_else(|| "the store has not responded".to_owned());
    let message =
        format!("the call has ended, but its result is not recorded yet: {known}; Purlin keeps it and retries");
    Delay::new(Reason::RecordNotWritten, message)
}

fn unrecorded_result(error: JournalError) -> Failure {
    let failure = Failure::from(error);
    let message = format!("the call has ended, but its result could not be recorded: {}", failure.message);
    Failure { message, ..failure }
}

/// The outcome of a change for the history.
pub(crate) fn outcome(failure: Option<&Failure>) -> ChangeOutcome {
    failure.map_or(ChangeOutcome::Succeeded, |failure| ChangeOutcome::failed(&failure.message))
}

/// The object to record after a create or update: paths that are sensitive in the plan stay sensitive.
pub(crate) fn applied_object(
    planned: &PlannedObject,
    state: ObjectState,
    schema: Option<&Schema>,
    instance: Option<&Instance>,
) -> RecordedObject {
    let value = match schema {
        Some(schema) => recorded_value(&planned.planned, state.value, schema),
        None => state.value.unknown_as_null(),
    };
    let hooks = after_change(instance, &planned.recorded.hooks, &value);
    RecordedObject { value, hooks, private: state.private, identity: state.identity, ..(*planned.recorded).clone() }
}

/// The object to record after a read: sensitive paths stay sensitive. The next plan determines whether it matches its
/// configuration.
pub(crate) fn refreshed_object(before: &RecordedObject, state: ObjectState, schema: Option<&Schema>) -> RecordedObject {
    let value = match schema {
        Some(schema) => recorded_value(&before.value, state.value, schema),
        None => state.value.unknown_as_null(),
    };
    RecordedObject { value, private: state.private, identity: state.identity, matching_config: None, ..before.clone() }
}
