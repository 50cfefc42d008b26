//! What drivers promise to those who call them.
//!
//! [`Driver`] is what one object of any type needs. What only some types have is a trait of its own, and a driver says
//! by a method whether it has it.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{ApplyRequest, ApplyResponse, CallContext, NotReady};
use crate::model::{
    Address, Diagnostics, DriverError, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider, RecordedObject,
    Schema, Value,
};

impl dyn Driver + '_ {
    /// The schema of what is called about, be it an object or a data source.
    pub fn schema_of(&self, context: &CallContext) -> Option<Arc<Schema>> {
        match context.address.parse::<Address>().is_ok_and(|address| address.is_data()) {
            true => self.data()?.data_schema(&context.type_name, context.provider()),
            false => self.schema(&context.type_name, context.provider()),
        }
    }
}

/// Serves one or more resource types.
///
/// `CallContext::deadline` is for what can be given up. What reads and plans ends by itself by then with a `Transient` error,
/// and so does an `apply` whose request can be made again without harm. Any other `apply` goes on after it, for its answer
/// must not be lost: it ends when the call has ended, or when its process is known to be dead. It is never cancelled by us.
pub trait Driver: Send + Sync {
    /// The schema of a type it serves, under one provider if it has several; `None` for any other type. Must not block.
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>>;

    /// Checks a configuration, unknown places included. Must not change anything outside.
    /// Paths in the diagnostics are below `spec.config`.
    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>>;

    /// Says what a change would lead to. Must not change anything outside. For each attribute set in the
    /// configuration the planned value is the configured one or exactly the prior one.
    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>>;

    /// Reads an object as it is now; `Ok(None)` only when it is certain that it does not exist any more.
    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>>;

    /// Does it. The only method that changes something outside. Errors are part of the response, since an object
    /// may come with them. Until it ends nothing else is done about the object, however long that takes. What the object
    /// takes to get ready after it is for `wait_ready`.
    fn apply<'a>(&'a self, context: &'a CallContext, request: ApplyRequest) -> BoxFuture<'a, ApplyResponse>;

    /// Reads an existing object that is to be managed from now on; `Ok(None)` when there is none that fits the request.
    /// A type whose objects have no identity refuses a request by one, as `InvalidConfig`.
    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        request: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>>;

    /// Waits until an object that `apply` has left with `ready_by` is ready, and gives it as it is then. Changes nothing, so
    /// it may be dropped at any time and begun again, by another process as well. It ends by `CallContext::deadline`, and
    /// looks at the object at least once. `tell` takes what is missing, in one line, whenever that changes.
    fn wait_ready<'a>(
        &'a self,
        _context: &'a CallContext,
        object: &'a RecordedObject,
        _tell: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<ObjectState, NotReady>> {
        Box::pin(async { Ok(object.into()) })
    }

    /// How a create that a crash cut is recovered.
    fn recovery(&self) -> CreateRecovery<'_>;

    /// Which configuration of the provider calls are made under: the hash of its settings, the cluster that it leads to.
    /// Only under the one that last saw an object a missing object is believed to be gone. Empty: there is only one, or
    /// it cannot be told.
    fn configuration<'a>(&'a self, _context: &'a CallContext) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        Box::pin(async { Ok(Arc::default()) })
    }

    /// How many calls may run at once; `None`: no limit but the controller's own and that of a provider's configuration.
    fn concurrency(&self) -> Option<usize> {
        None
    }

    /// Its data sources, if it has any.
    fn data(&self) -> Option<&dyn DataSources> {
        None
    }

    /// Makes its own of objects of other types, if it can.
    fn takeover(&self) -> Option<&dyn TakeOver> {
        None
    }

    /// Notices what others change, if it can.
    fn watcher(&self) -> Option<&dyn ObjectWatcher> {
        None
    }
}

/// What recovery can do about a create whose outcome a crash left open.
#[derive(Clone, Copy)]
pub enum CreateRecovery<'a> {
    /// The create is idempotent by an identity that we drew or know beforehand: the same call again finishes it. Should
    /// that be refused, what the first call has made is looked for.
    Repeat(&'a dyn FindCreated),
    /// The object is looked for; "not found" is certain only after the intent's deadline.
    Find(&'a dyn FindCreated),
    /// Nobody can tell: a person must.
    Unknown,
}

impl CreateRecovery<'_> {
    /// The same way, for a driver that stands before another one and looks by itself.
    #[must_use]
    pub fn through(self, finder: &dyn FindCreated) -> CreateRecovery<'_> {
        match self {
            Self::Repeat(_) => CreateRecovery::Repeat(finder),
            Self::Find(_) => CreateRecovery::Find(finder),
            Self::Unknown => CreateRecovery::Unknown,
        }
    }
}

/// Looks for what a create has made that did not come to its end.
pub trait FindCreated: Send + Sync {
    /// The object that the call of this context may have made as `planned`; `Ok(None)` when none is found.
    fn find_created<'a>(
        &'a self,
        context: &'a CallContext,
        planned: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>>;
}

/// What checking the configuration of a data source gives: what was found, and, without an error in it, what reading
/// will give as far as that is known.
pub type Expected = (Diagnostics, Value);

/// Serves types of data sources: what is read and never managed.
pub trait DataSources: Send + Sync {
    /// As [`Driver::schema`], of a type of data sources.
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>>;

    /// Checks the configuration of a data source, and says what reading it will give: unknown where only reading shows it.
    /// Reads nothing. Paths in the diagnostics are below `spec.config`.
    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>>;

    /// Reads a data source. The configuration is wholly known, and was found to be valid; so is the value that is given.
    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>>;
}

/// Makes objects of other types its own.
pub trait TakeOver: Send + Sync {
    /// An object of the type `type_name` as one of `context.type_name`: the same object outside, which is not touched. An
    /// error that is `Terminal` says that there is no such way; then nothing happens to the object.
    fn take_over<'a>(
        &'a self,
        context: &'a CallContext,
        type_name: &'a str,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<ObjectState, DriverError>>;
}

/// Whose object is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// Namespace of the Resource.
    pub namespace: &'a Arc<str>,
    /// Name and instance.
    pub address: &'a Address,
    /// As which service account to watch.
    pub service_account: &'a Arc<str>,
}

/// Somebody else has changed an object, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noticed {
    /// Namespace of the Resource.
    pub namespace: Arc<str>,
    /// Name and instance.
    pub address: Address,
    /// The object was destroyed.
    pub gone: bool,
}

/// Notices when somebody else changes an object. What calls of the same driver change it does not report.
pub trait ObjectWatcher: Send + Sync {
    /// Watches the object on record of an instance from now on, instead of the one before. Does not block; costs next
    /// to nothing when that object is watched already.
    fn watch(&self, whose: &Watched<'_>, object: &RecordedObject);

    /// Watches nothing of that instance any more.
    fn unwatch(&self, namespace: &Arc<str>, address: &Address);

    /// Whether changes of its object are seen at present, so that it need not be read to find them.
    fn is_watching(&self, namespace: &Arc<str>, address: &Address) -> bool;
}
