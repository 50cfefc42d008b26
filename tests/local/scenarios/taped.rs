//! A driver and a journal that write down what they are called for, in the order in which it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use purlin::driver::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, Driver, Scripted};
use purlin::execute::{Journal, JournalError};
use purlin::model::{
    Diagnostics, DriverError, ObjectState, PlanRequest, PlanResponse, Record, RecordedObject, Schema, Value, Version,
};
use purlin::store::memory::MemoryJournal;

/// What happened, a line each.
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

/// Notes every call that changes something, and what recovery asks.
pub(super) struct TapedDriver {
    pub inner: Scripted,
    pub tape: Tape,
    /// The calls for which each object was made, for naming objects after their addresses.
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

impl Driver for TapedDriver {
    fn schema(&self, type_name: &str) -> Option<Arc<Schema>> {
        self.inner.schema(type_name)
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        self.inner.validate(context, config)
    }

    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        self.inner.read(context, object)
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        self.inner.plan(context, request)
    }

    fn apply<'a>(&'a self, context: &'a CallContext, request: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        async move {
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
        .boxed()
    }

    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        self.inner.import(context, id)
    }

    fn create_recovery(&self) -> CreateRecovery {
        self.inner.create_recovery()
    }

    fn find_created<'a>(
        &'a self,
        context: &'a CallContext,
        planned: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        async move {
            self.tape.note(format!("  find what was made for {}", context.address));
            let found = self.inner.find_created(context, planned).await;
            self.name(context, found.as_ref().ok().and_then(Option::as_ref));
            found
        }
        .boxed()
    }

    fn concurrency(&self) -> Option<usize> {
        self.inner.concurrency()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// Notes every write, and keeps the marks that a Resource would carry in a cluster.
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
                // Without an intent it is a record for a Resource, which gets its marks if it has none.
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

    fn record(&self, record: Arc<Record>, base: Version) -> BoxFuture<'_, Result<Version, JournalError>> {
        async move {
            self.tape.note(format!("  record {}{}", record.address, status(&record)));
            self.inner.record(record, base).await
        }
        .boxed()
    }

    fn erase(&self, record: Arc<Record>, base: Version) -> BoxFuture<'_, Result<(), JournalError>> {
        async move {
            let address = record.address.to_string();
            self.tape.note(format!("  erase {address}"));
            self.marks.lock().unwrap().remove(&address);
            self.inner.erase(record, base).await
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
