//! A driver and a journal that log their calls in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use purlin::driver::hook::{HookCall, HookOutcome, HookRunner};
use purlin::driver::publish::CopyTarget;
use purlin::driver::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataPlan, DataSources, Driver, FindCreated, HealthReport,
    Publisher, ReadinessError, TakeOver,
};
use purlin::execute::{Journal, JournalError};
use purlin::model::data::StringData;
use purlin::model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider, Record,
    RecordedObject, Schema, Stored, Uid, Value, Version,
};
use purlin::store::memory::MemoryJournal;
use testkit::scripted::Scripted;

/// The log, with one line for each event.
#[derive(Clone, Default)]
pub(super) struct Tape(Arc<Mutex<Vec<String>>>);

impl Tape {
    pub(super) fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Logs calls that change objects, calls of recovery, and reads of data sources.
pub(super) struct TapedDriver {
    pub inner: Scripted,
    pub tape: Tape,
    /// By address: the IDs of the created objects, in order. Output shows the address and number instead of the ID.
    pub names: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

impl TapedDriver {
    fn name(&self, context: &CallContext, object: Option<&ObjectState>) {
        let Some(id) = object.and_then(|object| object.value.get("id")?.as_str().map(str::to_owned)) else { return };
        let mut names = self.names.lock().unwrap();
        if !names.values().flatten().any(|known| *known == id) {
            names.entry(context.address.to_string()).or_default().push(id);
        }
    }
}

#[async_trait]
impl Driver for TapedDriver {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.inner.schema(type_name, provider)
    }

    fn wrapped(&self) -> Option<&dyn Driver> {
        Some(&self.inner)
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        self.inner.validate(context, config).await
    }

    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        self.inner.read(context, object).await
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        self.inner.plan(context, request).await
    }

    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        let what = match (&request.prior, &request.planned) {
            (None, _) => "create",
            (_, Some(_)) => "update",
            (_, None) => "destroy",
        };
        let id = request.prior.as_ref().and_then(|prior| prior.id()).map(|id| format!(" {id}")).unwrap_or_default();
        self.tape.note(format!("  call {} {what}{id}", context.address));
        let response = self.inner.apply(context, request).await;
        self.name(context, response.object.as_ref());
        response
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        self.inner.import(context, request).await
    }

    async fn wait_ready(
        &self,
        context: &CallContext,
        object: &RecordedObject,
        report: &HealthReport<'_>,
    ) -> Result<ObjectState, ReadinessError> {
        self.tape.note(format!("  wait for {}", context.address));
        self.inner.wait_ready(context, object, report).await
    }

    async fn configuration(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        self.inner.configuration(context).await
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        self.inner.recovery().with_finder(self)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        self.inner.takeover()
    }

    fn data(&self) -> Option<&dyn DataSources> {
        Some(self)
    }
}

#[async_trait]
impl FindCreated for TapedDriver {
    async fn find_created(&self, context: &CallContext, planned: &Value) -> Result<Option<ObjectState>, DriverError> {
        self.tape.note(format!("  find the created object of {}", context.address));
        let found = self.inner.find_created(context, planned).await;
        self.name(context, found.as_ref().ok().and_then(Option::as_ref));
        found
    }
}

#[async_trait]
impl DataSources for TapedDriver {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.inner.data_schema(type_name, provider)
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        self.inner.plan_data(context, config).await
    }

    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        self.tape.note(format!("  read {}", context.address));
        self.inner.read_data(context, config).await
    }
}

/// Logs every hook with its command.
pub(super) struct TapedHooks {
    pub inner: Scripted,
    pub tape: Tape,
}

#[async_trait]
impl HookRunner for TapedHooks {
    async fn run(&self, call: &HookCall) -> HookOutcome {
        let command = call.hook.definition.to_public_json();
        self.tape.note(format!("  hook {} {} for {} {command}", call.context.address, call.hook.name, call.object));
        self.inner.run(call).await
    }
}

/// Logs every write, and holds the annotations that a Resource would have in a cluster.
pub(super) struct TapedJournal {
    pub inner: MemoryJournal,
    pub tape: Tape,
    pub marks: Arc<Mutex<BTreeSet<String>>>,
}

impl Journal for TapedJournal {
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        async move {
            let address = record.address.to_string();
            let what = record.intent.as_ref().map_or("", |intent| intent.operation.as_str());
            let deposed = record.intent.as_ref().and_then(|intent| intent.deposed);
            let deposed = deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
            match what {
                // Without an intent, it creates the record of a Resource, which gets its annotation.
                "" => self.tape.note(format!("  record {address}{}", status(&record))),
                _ => self.tape.note(format!("  intend {address} {what}{deposed}")),
            }
            let is_destroy = what == "destroy";
            let version = self.inner.intend(record, base).await?;
            if !is_destroy {
                self.marks.lock().unwrap().insert(address);
            }
            Ok(version)
        }
        .boxed()
    }

    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        async move {
            self.tape.note(format!("  record {}{}", record.address, status(&record)));
            self.inner.record(record, base).await
        }
        .boxed()
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        async move {
            let address = base.record.address.to_string();
            self.tape.note(format!("  erase {address}"));
            self.marks.lock().unwrap().remove(&address);
            self.inner.erase(base).await
        }
        .boxed()
    }
}

fn status(record: &Record) -> String {
    match &record.current {
        Some(object) => format!(" {}", purlin::plan::options::status_word(object.status)),
        None => " without a current object".to_owned(),
    }
}

/// The published copies that exist, by kind and name.
#[derive(Default)]
pub(super) struct Copies {
    held: Mutex<BTreeMap<String, (String, StringData)>>,
    /// The fault of the next write, by copy.
    faults: Mutex<BTreeMap<String, String>>,
    crash: tokio::sync::Notify,
}

impl Copies {
    pub(super) fn edit(&self, target: &str, edit: &str) -> Result<(), String> {
        let mut held = self.held.lock().unwrap();
        match edit {
            "foreign" => drop(held.insert(target.to_owned(), ("another client".to_owned(), StringData::new()))),
            "lost" => drop(held.remove(target)),
            "changed" => {
                let (_, texts) = held.get_mut(target).ok_or_else(|| format!("the copy {target} does not exist"))?;
                texts.values_mut().for_each(|text| *text = "changed".into());
            }
            "crash after" | "fail" => drop(self.faults.lock().unwrap().insert(target.to_owned(), edit.to_owned())),
            _ => return Err(format!("unknown edit `{edit}`")),
        }
        Ok(())
    }

    /// Waits until a write crashes.
    pub(super) async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Returns a line for each copy, without sensitive values.
    pub(super) fn lines(&self) -> Vec<String> {
        let held = self.held.lock().unwrap();
        let shown = |(target, (owner, texts)): (&String, &(String, StringData))| {
            let entries = texts.iter().map(|(key, text)| match target.starts_with("Secret") {
                true => format!("{key}: (sensitive)"),
                false => format!("{key}: {text}"),
            });
            format!("{target} of {owner} {{{}}}", entries.collect::<Vec<_>>().join(", "))
        };
        held.iter().map(shown).collect()
    }
}

/// Publishes to memory, and logs writes and removals.
pub(super) struct TapedPublisher {
    pub copies: Arc<Copies>,
    pub tape: Tape,
}

impl TapedPublisher {
    fn name(copy: &CopyTarget<'_>) -> String {
        format!("{}/{}", copy.target.kind.as_str(), copy.target.name)
    }
}

#[async_trait]
impl Publisher for TapedPublisher {
    async fn write(&self, copy: CopyTarget<'_>, texts: &StringData) -> Result<Uid, DriverError> {
        let (name, owner) = (Self::name(&copy), copy.context.address.to_string());
        let error = |kind, message: String| DriverError { kind, message, path: None, hint: None };
        let fault = self.copies.faults.lock().unwrap().remove(&name);
        if fault.as_deref() == Some("fail") {
            self.tape.note(format!("  publish {name}: failed"));
            return Err(error(ErrorKind::Transient, format!("{name} cannot be written")));
        }
        let foreign = self.copies.held.lock().unwrap().get(&name).is_some_and(|(other, _)| *other != owner);
        if foreign {
            self.tape.note(format!("  publish {name}: it already exists"));
            return Err(error(ErrorKind::AlreadyExists, format!("{name} exists and is not managed by this Resource")));
        }
        self.tape.note(format!("  publish {name}"));
        self.copies.held.lock().unwrap().insert(name, (owner, texts.clone()));
        if fault.is_some() {
            self.copies.crash.notify_one();
            futures::future::pending::<()>().await;
        }
        Ok("uid".into())
    }

    async fn read(&self, copy: CopyTarget<'_>) -> Result<Option<StringData>, DriverError> {
        let held = self.copies.held.lock().unwrap().get(&Self::name(&copy)).cloned();
        let ours = held.filter(|(owner, _)| **owner == *copy.context.address);
        Ok(ours.map(|(_, texts)| texts))
    }

    async fn remove(&self, copy: CopyTarget<'_>) -> Result<(), DriverError> {
        let name = Self::name(&copy);
        let mut held = self.copies.held.lock().unwrap();
        if held.get(&name).is_some_and(|(owner, _)| **owner == *copy.context.address) {
            held.remove(&name);
            self.tape.note(format!("  remove {name}"));
        }
        Ok(())
    }
}
