//! The traits that drivers implement.
//!
//! Every driver implements [`Driver`]. Optional capabilities are separate traits, which a driver returns from a method
//! such as [`Driver::data`].

use std::sync::Arc;

use async_trait::async_trait;

use super::{ApplyRequest, ApplyResponse, CallContext, ReadinessError};
use model::{
    Address, Diagnostics, DriverError, ErrorKind, Health, ImportRequest, Namespace, ObjectState, Observed, Path,
    PlanRequest, PlanResponse, Provider, RecordedObject, Schema, Value,
};

/// Receives the health of an object whenever it changes.
pub type HealthReport<'a> = dyn Fn(&Health) + Send + Sync + 'a;

impl dyn Driver + '_ {
    /// The schema of the object or data source that the context addresses.
    pub fn schema_of(&self, context: &CallContext) -> Option<Arc<Schema>> {
        match context.address.parse::<Address>().is_ok_and(|address| address.is_data()) {
            true => self.data()?.data_schema(&context.type_name, context.provider()),
            false => self.schema(&context.type_name, context.provider()),
        }
    }

    /// The data sources of the driver.
    ///
    /// # Errors
    /// If it has none.
    pub fn sources(&self, context: &CallContext) -> Result<&dyn DataSources, DriverError> {
        self.data().ok_or_else(|| {
            let message = format!("the data source `{}` does not exist", context.type_name);
            DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
        })
    }
}

/// Serves one or more resource types.
///
/// Reads, plans and repeatable `apply` calls return a `Transient` error at `CallContext::deadline`. Any other `apply`
/// continues past the deadline, because its response must not be lost: it returns when the call returns or when the
/// process is known to be dead. Purlin never cancels it.
#[async_trait]
pub trait Driver: Send + Sync {
    /// For a layer around another driver: the properties that the layer does not define are those of that driver. Calls
    /// are never passed on by default, so that a new one cannot pass by the layer that masks secrets.
    fn wrapped(&self) -> Option<&dyn Driver> {
        None
    }

    /// The schema of a served type; `provider` selects one if the driver has several. `None` for other types. Must not
    /// block.
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>>;

    /// Validates a configuration, which may contain unknown values. Has no side effects. Paths in the diagnostics are
    /// relative to `spec.config`.
    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError>;

    /// Plans a change. Has no side effects. For each attribute set in the configuration, the planned value is either
    /// the configured value or exactly the prior value.
    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError>;

    /// Reads the current state of an object; `Ok(None)` only if the object certainly no longer exists.
    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError>;

    /// Creates, updates or destroys an object. The only method with side effects. Errors are part of the response,
    /// since a failed call may still return an object. Purlin does nothing else with the object until the call returns.
    /// `wait_ready` waits until the object is ready.
    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse;

    /// Reads an existing object to import; `Ok(None)` if no object matches the request. A type without identities
    /// returns `InvalidConfig` for a request by identity.
    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError>;

    /// Waits until an object that `apply` returned with `ready_by` is ready, and returns its state. Has no side
    /// effects, so it can be dropped and restarted, also by another process. Returns by `CallContext::deadline` and
    /// reads the object at least once. `_report` receives the health whenever it changes: an object that has failed may
    /// still become ready, so that does not end the wait.
    async fn wait_ready(
        &self,
        _context: &CallContext,
        object: &RecordedObject,
        _report: &HealthReport<'_>,
    ) -> Result<ObjectState, ReadinessError> {
        Ok(object.into())
    }

    /// Whether the response to `plan` depends on objects that may have changed since. Then a create is planned again
    /// directly before an object is destroyed for it.
    fn plan_depends_on_others(&self) -> bool {
        self.wrapped().is_some_and(Driver::plan_depends_on_others)
    }

    /// Removes the driver's marks from an object that Purlin no longer manages. Does nothing if the object no longer
    /// exists.
    async fn release(&self, _context: &CallContext, _object: &RecordedObject) -> Result<(), DriverError> {
        Ok(())
    }

    /// The identities that an object may have which a Resource of the namespace imports by this request, as far as the
    /// request shows them. Must not block.
    fn import_identities(&self, namespace: &str, request: &ImportRequest) -> Vec<Value> {
        self.wrapped().map_or_else(Vec::new, |driver| driver.import_identities(namespace, request))
    }

    /// The identities that an object with this configuration may have, as far as the configuration shows them. Must not
    /// block.
    fn config_identities(&self, namespace: &str, config: &Value) -> Vec<Value> {
        self.wrapped().map_or_else(Vec::new, |driver| driver.config_identities(namespace, config))
    }

    /// How to recover a create that a crash interrupted.
    fn recovery(&self) -> CreateRecovery<'_>;

    /// Identifies the configuration under which calls are made: the digest of the provider configuration, or the
    /// cluster. An object counts as deleted only if it is missing under the configuration that last returned it. Empty
    /// if there is only one configuration, or if it cannot be identified.
    async fn configuration(&self, _context: &CallContext) -> Result<Arc<str>, DriverError> {
        Ok(Arc::default())
    }

    /// The maximum number of concurrent calls; `None` for no limit beyond those of the controller and the provider.
    fn concurrency(&self) -> Option<usize> {
        self.wrapped()?.concurrency()
    }

    fn data(&self) -> Option<&dyn DataSources> {
        None
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        None
    }

    fn watcher(&self) -> Option<&dyn ObjectWatcher> {
        self.wrapped()?.watcher()
    }
}

/// How recovery resolves a create whose outcome is unknown after a crash.
#[derive(Clone, Copy)]
pub enum CreateRecovery<'a> {
    /// The create is idempotent by an identity that is generated or known before the call, so recovery repeats the call. If
    /// the repeated call is rejected, recovery looks for the object of the first call.
    Repeat(&'a dyn FindCreated),
    /// Recovery looks for the object. "Not found" is certain only after the deadline of the intent.
    Find(&'a dyn FindCreated),
    /// While the Resource exists, recovery searches for the object by what its configuration fixes. The search may find
    /// nothing that proves the outcome; then the user must resolve it.
    Search(&'a dyn SearchCreated),
    /// Recovery cannot resolve the outcome; the user must.
    Unknown,
}

impl CreateRecovery<'_> {
    /// The same recovery with another finder, for a driver that wraps this one.
    #[must_use]
    pub fn with_finder(self, finder: &dyn FindCreated) -> CreateRecovery<'_> {
        match self {
            Self::Repeat(_) => CreateRecovery::Repeat(finder),
            Self::Find(_) => CreateRecovery::Find(finder),
            Self::Search(_) | Self::Unknown => CreateRecovery::Unknown,
        }
    }
}

/// The result of a search for the object of a create that did not return.
#[derive(Clone, Debug)]
pub enum SearchResult {
    /// The object that the user named, or one that no planned value contradicts.
    Found(ObjectState),
    /// No object has the identity of the planned object, or the user's.
    Missing,
    /// An object can be imported by this request, but the value at this path is not the planned one.
    Differs(ImportRequest, Path),
    /// Nothing identifies the object, or it could not be read, for this reason.
    Unknown(Option<DriverError>),
}

/// Searches for the object of a create that did not return, by what its configuration fixes.
#[async_trait]
pub trait SearchCreated: Send + Sync {
    /// `request` is the request of the create; `import` finds the object if the user knows how. Arguments that an import
    /// does not read have their planned values in the result. Has no side effects.
    async fn search_created(
        &self,
        context: &CallContext,
        request: &ApplyRequest,
        import: Option<&ImportRequest>,
    ) -> Result<SearchResult, DriverError>;
}

/// Finds the object of a create that did not return.
#[async_trait]
pub trait FindCreated: Send + Sync {
    /// Returns the object that the call of this context created from `planned`; `Ok(None)` if there is none.
    async fn find_created(&self, context: &CallContext, planned: &Value) -> Result<Option<ObjectState>, DriverError>;
}

/// The diagnostics of a data source's configuration and, if there is no error, the planned value.
pub type DataPlan = (Diagnostics, Value);

/// Serves data sources.
#[async_trait]
pub trait DataSources: Send + Sync {
    /// As [`Driver::schema`], for a data source.
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>>;

    /// Validates the configuration of a data source and plans its value, with unknown values for what only a read
    /// returns. Reads nothing. Paths in the diagnostics are relative to `spec.config`.
    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError>;

    /// Reads a data source. The configuration is valid and wholly known; the returned value is wholly known.
    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError>;
}

/// Takes over objects of other types, as a move in Terraform does.
#[async_trait]
pub trait TakeOver: Send + Sync {
    /// Converts an object of the type `type_name` to the type of the context, without changing the object itself. A
    /// `Terminal` error means that the conversion is not supported.
    async fn take_over(
        &self,
        context: &CallContext,
        type_name: &str,
        object: &RecordedObject,
    ) -> Result<ObjectState, DriverError>;
}

/// The instance whose object is watched.
#[derive(Clone, Copy, Debug)]
pub struct WatchedInstance<'a> {
    pub namespace: &'a Namespace,
    pub address: &'a Address,
    /// The service account that watches.
    pub service_account: &'a Arc<str>,
}

/// What was seen of the object of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectChange {
    pub namespace: Namespace,
    pub address: Address,
    pub seen: Observed,
}

/// Reports changes of objects by other clients, but not changes by calls of the same driver, and the health of objects.
pub trait ObjectWatcher: Send + Sync {
    /// Starts watching the recorded object of an instance and stops watching its previous one. Does not block, and is
    /// cheap if the object is already watched.
    fn watch(&self, instance: &WatchedInstance<'_>, object: &RecordedObject);

    fn unwatch(&self, namespace: &Namespace, address: &Address);

    /// Whether an object can be missing or not ready although its record exists, so that it counts as ready only when it
    /// was seen.
    fn reports_health(&self) -> bool;

    /// Whether changes of the object are currently observed, so that it need not be read to detect drift.
    fn is_watching(&self, namespace: &Namespace, address: &Address) -> bool;
}
