//! Drivers: what makes, changes, reads and destroys objects of the types it serves.
//!
//! Nothing outside of this module and `execute` knows which driver an object has. Planning asks through
//! `plan::Ask`, which `execute` answers by calling the driver.

pub mod hook;
pub mod offline;
pub mod publish;
pub mod published_files;
pub mod registry;

mod arguments;
pub mod kubernetes_object;
pub mod scripted;
pub mod provider;
pub mod terraform_data;
mod warnings;

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::install::Locked;
use crate::model::{
    Address, Diagnostics, DriverError, ErrorKind, ObjectState, PlanRequest, PlanResponse, Provider, ProviderUse,
    RecordedObject, Schema, Value,
};

pub use kubernetes_object::KubernetesObject;
pub use provider::{ProviderOptions, Providers, Reattach, Reconstructed};
pub use publish::Publisher;
pub use published_files::PublishedFiles;
pub use registry::Registry;
pub use scripted::Scripted;
pub use terraform_data::TerraformData;
pub use warnings::Warnings;

/// Everything a call needs besides its values.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The resource type.
    pub type_name: Arc<str>,
    /// Namespace of the Resource.
    pub namespace: Arc<str>,
    /// Name and instance, as text: for owner marks and messages.
    pub address: Arc<str>,
    /// The provider, with its settings; `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    /// As which service account to act; empty: as the process itself (local mode).
    pub service_account: Arc<str>,
    /// How long the call may take. What reads or plans has ended by then. A change that cannot be made again goes on until
    /// it is answered: then its provider is asked to give up, and the user is told.
    pub deadline: Timestamp,
    /// The id of the operation, for drivers that leave it at the object; empty for reads and plans.
    pub operation_id: Arc<str>,
    /// Takes what the driver warns of, whatever becomes of the call. Paths are below `spec.config`.
    pub warnings: Warnings,
}

impl CallContext {
    /// Which provider is called, whatever its settings.
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_ref().map(|used| used.provider.as_ref())
    }

    /// The schema of what is called about, be it an object or a data source.
    pub fn schema(&self, driver: &dyn Driver) -> Option<Arc<Schema>> {
        match self.address.parse::<Address>().is_ok_and(|address| address.is_data()) {
            true => driver.data_schema(&self.type_name, self.provider()),
            false => driver.schema(&self.type_name, self.provider()),
        }
    }
}

/// What `apply` is asked: to create (`prior` is `None`), update, or destroy (`planned` is `None`).
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// The object as it is.
    pub prior: Option<Arc<RecordedObject>>,
    /// The evaluated configuration, wholly known; `Null` for a destroy.
    pub config: Value,
    /// The planned value.
    pub planned: Option<Value>,
    /// The private bytes of the plan.
    pub private: Arc<[u8]>,
}

/// What `apply` answers. Both may be set: an object that was made half way comes with the error.
#[derive(Debug, Default)]
pub struct ApplyResponse {
    /// The object afterwards. `None` after a create: nothing was made. `None` after an update or a destroy with an
    /// error: the prior object stands as far as is known.
    pub object: Option<ObjectState>,
    /// Why it did not work.
    pub error: Option<DriverError>,
    /// Others take part in what the object becomes, so it may differ from its plan, as with the legacy type system of
    /// the plugin protocol: differences are no fault of the driver.
    pub tolerant: bool,
    /// Nobody can tell whether the call did its work: who was called is gone, or did not answer. The intent stays open,
    /// and recovery finds out.
    pub unsettled: bool,
    /// A create came back early because we asked for that ([`Driver::stop`]): the object may be complete all the same.
    pub interrupted: bool,
    /// The object was looked up after a create that was cut, so it need not be what was planned.
    pub found: bool,
}

/// What recovery can do about a create whose outcome a crash left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateRecovery {
    /// The create is idempotent by an identity that we drew or know beforehand: the same call again finishes it. Should
    /// that be refused, `find_created` looks for what the first call has made.
    Repeat,
    /// `find_created` looks the object up; "not found" is certain only after the intent's deadline.
    Find,
    /// Nobody can tell: a person must.
    Unknown,
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

/// Tells when somebody else changes an object. What calls of the same driver change is not told.
pub trait ObjectWatcher: Send + Sync {
    /// Watches the object on record of an instance from now on, instead of the one before. Does not block; costs next
    /// to nothing when that object is watched already.
    fn watch(&self, whose: &Watched<'_>, object: &RecordedObject);

    /// Watches nothing of that instance any more.
    fn unwatch(&self, namespace: &Arc<str>, address: &Address);

    /// Whether changes of its object are seen at present, so that it need not be read to find them.
    fn is_watching(&self, namespace: &Arc<str>, address: &Address) -> bool;
}

/// What providers are to be ready for.
#[derive(Clone, Copy, Debug)]
pub struct Preparation<'a> {
    /// The namespace whose objects are planned; `None`: a Provider is looked at for its own sake.
    pub namespace: Option<&'a Arc<str>>,
    /// Which state of the namespace's settings this is. An older one than is known already says nothing about them.
    pub version: u64,
    /// The providers whose schemas are needed.
    pub needed: &'a [Arc<Provider>],
    /// Providers as they are given now: objects recorded under another version of one are called by these.
    pub current: &'a [Arc<Provider>],
    /// All settings that hold now in the namespace: its objects recorded under older ones of the same name are called
    /// with these. Those of other namespaces have nothing to do with it.
    pub settled: &'a [Arc<ProviderUse>],
}

/// What is known of a provider that was asked what it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderFacts {
    /// Its version; a program that was named by its path has none.
    pub version: Option<String>,
    /// The version of the provider protocol.
    pub protocol: u8,
    /// How many resource types it has.
    pub resource_types: usize,
    /// What every later installation has to keep to.
    pub locked: Option<Locked>,
}

/// What checking the configuration of a data source gives: what was found, and, without an error in it, what reading
/// will give as far as that is known.
pub type Expected = (Diagnostics, Value);

/// No object of that type becomes one of the type that is called.
fn no_way(context: &CallContext, type_name: &str) -> DriverError {
    DriverError {
        kind: ErrorKind::Terminal,
        message: format!("an object of the type `{type_name}` cannot become one of the type `{}`", context.type_name),
        path: None,
        hint: None,
    }
}

fn no_data(context: &CallContext) -> DriverError {
    DriverError {
        kind: crate::model::ErrorKind::Terminal,
        message: format!("there is no data source `{}`", context.type_name),
        path: None,
        hint: None,
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

    /// The names of the types that are known to be served, of one provider or of all; those of data sources if asked for.
    fn types(&self, _provider: Option<&Provider>, _is_data: bool) -> Vec<String> {
        Vec::new()
    }

    /// Gets ready to serve providers, so that their schemas are known. What cannot be made ready is told by `fault`.
    fn prepare<'a>(&'a self, _preparation: Preparation<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Why nothing of a provider is served.
    fn fault(&self, _provider: &Provider) -> Option<DriverError> {
        None
    }

    /// What is known of a provider that is served.
    fn facts(&self, _provider: &Provider) -> Option<ProviderFacts> {
        None
    }

    /// Configures a provider, unless it is configured so already. Gives what it warns of; the error tells why it cannot
    /// be used with these settings.
    fn configure<'a>(&'a self, _used: &'a ProviderUse) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// What a provider has warned of when it was configured with these settings last. Paths are below `spec.config`.
    fn warned(&self, _used: &ProviderUse) -> Diagnostics {
        Vec::new()
    }

    /// Checks a configuration, unknown places included. Must not change anything outside.
    /// Paths in the diagnostics are below `spec.config`.
    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>>;

    /// Reads an object as it is now; `Ok(None)` only when it is certain that it does not exist any more.
    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>>;

    /// Says what a change would lead to. Must not change anything outside. For each attribute set in the
    /// configuration the planned value is the configured one or exactly the prior one.
    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>>;

    /// Does it. The only method that changes something outside. Errors are part of the response, since an object
    /// may come with them. Until it ends nothing else is done about the object, however long that takes.
    fn apply<'a>(&'a self, context: &'a CallContext, request: ApplyRequest) -> BoxFuture<'a, ApplyResponse>;

    /// Reads an existing object that is to be managed from now on; `Ok(None)` when there is none of that id.
    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>>;

    /// The same by the identity that its provider gives it: a map of what the type is identified by.
    fn import_by_identity<'a>(
        &'a self,
        context: &'a CallContext,
        _identity: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        let error = DriverError {
            kind: ErrorKind::InvalidConfig,
            message: format!("objects of the type `{}` have no identity", context.type_name),
            path: None,
            hint: Some("write `import.id`".to_owned()),
        };
        Box::pin(async { Err(error) })
    }

    /// The configuration that an object may have come from, for a manifest of it; `None`: the driver leaves that to its
    /// schema.
    fn reconstruct<'a>(
        &'a self,
        _context: &'a CallContext,
        _value: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Reconstructed>, DriverError>> {
        Box::pin(async { Ok(None) })
    }

    /// An object of another type as one of `context.type_name`: the same object outside, which is not touched. An error
    /// that is `Terminal` says that there is no such way; then nothing happens to the object.
    fn take_over<'a>(
        &'a self,
        context: &'a CallContext,
        type_name: &'a str,
        _object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<ObjectState, DriverError>> {
        Box::pin(async move { Err(no_way(context, type_name)) })
    }

    /// How a create that a crash cut is recovered.
    fn create_recovery(&self) -> CreateRecovery;

    /// Finds the object that an interrupted create may have made: for `CreateRecovery::Find`, and for
    /// `CreateRecovery::Repeat` when the repeated call is refused.
    fn find_created<'a>(
        &'a self,
        context: &'a CallContext,
        planned: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>>;

    /// How many calls may run at once for one provider configuration; `None`: no limit but the controller's own.
    fn concurrency(&self) -> Option<usize>;

    /// Which configuration of the provider calls are made under: the hash of its settings, the cluster that it leads to.
    /// Only under the one that last saw an object a missing object is believed to be gone. Empty: there is only one, or
    /// it cannot be told.
    fn configuration<'a>(&'a self, _context: &'a CallContext) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        Box::pin(async { Ok(Arc::default()) })
    }

    /// As `schema`, of a type of data sources.
    fn data_schema(&self, _type_name: &str, _provider: Option<&Provider>) -> Option<Arc<Schema>> {
        None
    }

    /// Checks the configuration of a data source, and says what reading it will give: unknown where only reading tells.
    /// Reads nothing. Paths in the diagnostics are below `spec.config`.
    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        _config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        Box::pin(async { Err(no_data(context)) })
    }

    /// Reads a data source. The configuration is wholly known, and was found to be valid; so is the value that is given.
    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        _config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>> {
        Box::pin(async { Err(no_data(context)) })
    }

    /// Tells what others change, if the driver can.
    fn watcher(&self) -> Option<&dyn ObjectWatcher> {
        None
    }

    /// Asks for an early end of the calls that run: they still answer. `false` when none runs that can be asked.
    fn stop(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    /// Lets go of processes and connections. No call comes after it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::CallContext;
    use crate::model::{RecordedObject, Value};

    /// The surroundings of a call for the Resource `web` in the namespace `shop`.
    pub(crate) fn context(type_name: &str) -> CallContext {
        CallContext {
            type_name: type_name.into(),
            provider: None,
            namespace: "shop".into(),
            address: "web".into(),
            service_account: "deployer".into(),
            deadline: crate::process::Clock::now(&crate::process::SystemClock) + jiff::SignedDuration::from_secs(20),
            operation_id: "op-1".into(),
            warnings: super::Warnings::default(),
        }
    }

    /// A recorded object of the given value.
    pub(crate) fn recorded(value: Value) -> RecordedObject {
        RecordedObject { value, service_account: Arc::from("deployer"), ..RecordedObject::default() }
    }
}
