//! `kubernetes_object`: manages any Kubernetes object from its manifest with server-side apply.
//!
//! - Each request impersonates the service account of the Resource, so RBAC limits what it may do.
//! - Created objects carry an owner annotation. An object without it is never changed unless it was imported.
//! - Updates and deletes send the recorded UID, so another object of the same name is never changed.
//! - Fields of tools such as kubectl or Helm that the manifest sets are taken over with the first update. A field that is
//!   removed from the manifest and stays, because a controller owns it too, is reported.
//! - Field conflicts are forced only for fields that Purlin set before (another client's change is drift) and for
//!   imported objects. All other conflicts are errors.
//!
//! Decisions are pure functions (`planning`, `api_error`, `kstatus`, `manifest`). `read` and `apply` combine them with
//! the requests of `server`, `patch` and `wait`.

pub(crate) mod api_error;
mod apply;
mod data;
mod discovery;
pub mod kstatus;
mod kubeconfig;
mod manifest;
mod namespace;
mod object;
mod ownership;
mod patch;
mod planning;
mod publish;
mod read;
mod rehearsal;
mod takeover;
pub(crate) mod server;
mod target;
pub(crate) mod wait;
pub(crate) mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use model::{
    Attribute, AttributeType, Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, Path, PlanRequest,
    PlanResponse, Provider, RecordedObject, Schema, Value,
};
use process::Clock;

use super::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataSources, Driver, FindCreated, HealthReport,
    ObjectWatcher, ReadinessError, arguments,
};
use api_error::{ErrorContext, RequestError};
use discovery::ApiKind;
use object::LAST_APPLIED;
use server::{Caller, Connection, Server};
use target::Target;
use watches::Watches;

pub use kubeconfig::{client, inference_problem, problem as kubeconfig_problem};
pub use target::OWNER_ANNOTATION;
pub(crate) use target::owner_annotation;
pub use watches::Sink;

pub const TYPE_NAME: &str = "kubernetes_object";

/// The field manager of Purlin's server-side applies.
pub const FIELD_MANAGER: &str = "purlin";

/// A create or update is about three short requests. One namespace can use half of these calls, and 64 concurrent calls
/// keep two cores of an API server busy without queueing.
const CALLS_AT_ONCE: usize = 128;

/// The first part of owner annotations. Within a scope, namespace and name of a Resource are unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerScope {
    /// The UID of the namespace `kube-system` of the client's cluster.
    Cluster,
    /// A fixed string: the ID of a state file, or the UID of the controller's cluster for objects in another cluster.
    /// Two state files with the same string would claim each other's objects.
    Fixed(Arc<str>),
}

/// The driver of `kubernetes_object`, for one API server.
pub struct KubernetesObject {
    server: Arc<Server>,
    watches: Option<Watches>,
    /// Identifies the cluster, once it was queried.
    cluster: OnceCell<Arc<str>>,
    scope: OwnerScope,
    impersonates: bool,
    schema: Arc<Schema>,
    data_schema: Arc<Schema>,
}

impl KubernetesObject {
    /// For a controller: impersonates the service account of each Resource. Only the UID of `kube-system`,
    /// the status of a namespace that is being deleted, and discovery that the service account is denied are read with
    /// the controller's own identity.
    pub fn impersonating(client: kube::Client, scope: OwnerScope, clock: Arc<dyn Clock>) -> Self {
        Self::new(Connection::Ready(client), scope, true, clock)
    }

    /// Uses the identity of the client: for another cluster with its kubeconfig, or for a test.
    pub fn as_client(client: kube::Client, scope: OwnerScope, clock: Arc<dyn Clock>) -> Self {
        Self::new(Connection::Ready(client), scope, false, clock)
    }

    /// For local runs: uses the kubeconfig of the user, which is read with the first request.
    pub fn local(scope: OwnerScope, clock: Arc<dyn Clock>) -> Self {
        Self::new(Connection::Kubeconfig(OnceCell::new()), scope, false, clock)
    }

    fn new(connection: Connection, scope: OwnerScope, impersonates: bool, clock: Arc<dyn Clock>) -> Self {
        let object = AttributeType::Map(Box::new(AttributeType::Any));
        let attributes = BTreeMap::from([
            (Arc::from("id"), arguments::computed(AttributeType::String, "The UID of the object.")),
            (
                Arc::from("manifest"),
                Attribute {
                    observed_in: Some(Arc::from("object")),
                    ..arguments::argument(object.clone(), true, "The manifest of the object, as for `kubectl apply`.")
                },
            ),
            (
                Arc::from("object"),
                arguments::computed(object, "The object as returned by the API server, without `managedFields`."),
            ),
        ]);
        let schema = Arc::new(Schema { attributes, ..Schema::default() });
        let server = Arc::new(Server::new(connection, clock));
        let data_schema = Arc::new(data::schema());
        Self { server, watches: None, cluster: OnceCell::new(), scope, impersonates, schema, data_schema }
    }

    /// Reports changes of watched objects by other clients to `sink`. For a controller.
    #[must_use]
    pub fn with_change_sink(mut self, sink: Sink) -> Self {
        self.watches = Some(Watches::new(Arc::clone(&self.server), sink));
        self
    }

    /// The identity of a call.
    fn caller<'a>(&self, context: &'a CallContext) -> Result<Caller<'a>, DriverError> {
        match (self.impersonates, context.service_account.is_empty()) {
            (false, _) => Ok(Caller::Process),
            (true, false) => {
                Ok(Caller::ServiceAccount { namespace: &context.namespace, name: &context.service_account })
            }
            // Without impersonation, the author of the Resource would get the rights of the controller.
            (true, true) => Err(DriverError {
                kind: ErrorKind::Terminal,
                message: "no service account is set".to_owned(),
                path: None,
                hint: Some("set `spec.serviceAccountName`".to_owned()),
            }),
        }
    }

    /// The value of the owner annotation for the instance.
    async fn owner(&self, context: &CallContext) -> Result<String, DriverError> {
        Ok(owner_annotation(&self.owner_scope(context).await?, &context.namespace, &context.address))
    }

    async fn owner_scope(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        Ok(match &self.scope {
            OwnerScope::Fixed(text) => Arc::clone(text),
            OwnerScope::Cluster => self.server.cluster_uid(context.deadline).await.map_err(|failure| {
                let target = Target {
                    api_version: "v1".to_owned(),
                    kind: "Namespace".to_owned(),
                    namespace: String::new(),
                    name: "kube-system".to_owned(),
                };
                api_error::to_driver_error(&failure, &error_context(context, "read", "namespaces", &target))
            })?,
        })
    }

    /// Identifies the cluster. Empty if the caller may not read `kube-system`, so clusters cannot be distinguished.
    async fn cluster(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        let name = self.cluster.get_or_try_init(|| async {
            match self.server.cluster_uid(context.deadline).await {
                Ok(uid) => Ok(format!("cluster:{uid}").into()),
                Err(RequestError::Api(api_error)) if matches!(api_error.code, 401 | 403 | 404) => Ok(Arc::from("")),
                Err(failure) => Err(discovery_error(context, &failure, "v1", "Namespace")),
            }
        });
        name.await.cloned()
    }

    /// The kind as the server currently serves it.
    async fn kind(&self, context: &CallContext, api_version: &str, kind: &str) -> Result<Option<ApiKind>, DriverError> {
        self.server
            .kind(self.caller(context)?, api_version, kind, context.deadline)
            .await
            .map_err(|failure| discovery_error(context, &failure, api_version, kind))
    }
}

/// Whether a string is a valid import ID, such as `v1/ConfigMap/shop/site`.
pub fn is_import_id(id: &str) -> bool {
    Target::from_import_id(id).is_some()
}

fn error_context<'a>(
    context: &'a CallContext,
    verb: &'static str,
    resource: &str,
    target: &Target,
) -> ErrorContext<'a> {
    ErrorContext {
        verb,
        object: target.to_string(),
        resource: resource.to_owned(),
        service_account: &context.service_account,
        namespace: &context.namespace,
        object_namespace: target.namespace.clone(),
        sensitive: false,
    }
}

fn discovery_error(context: &CallContext, failure: &RequestError, api_version: &str, kind: &str) -> DriverError {
    let attempt = ErrorContext {
        verb: "look up",
        object: format!("kind `{kind}` of `{api_version}`"),
        resource: String::new(),
        service_account: &context.service_account,
        namespace: &context.namespace,
        object_namespace: String::new(),
        sensitive: false,
    };
    api_error::to_driver_error(failure, &attempt)
}

/// The server does not serve the kind. A CRD may add it later, so a retry helps, except in built-in groups.
fn no_such_kind(api_version: &str, kind: &str) -> DriverError {
    let may_come = discovery::may_gain_kinds(target::group_of(api_version));
    DriverError {
        kind: if may_come { ErrorKind::Transient } else { ErrorKind::InvalidConfig },
        message: format!("the cluster has no kind `{kind}` in `{api_version}`"),
        path: Some(Path::default().name("manifest").name("kind")),
        hint: Some(if may_come {
            "install its CustomResourceDefinition; if a Resource installs it, add that Resource to `dependsOn`"
                .to_owned()
        } else {
            "check the spelling of `kind` and `apiVersion`".to_owned()
        }),
    }
}

#[async_trait]
impl Driver for KubernetesObject {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        (type_name == TYPE_NAME).then(|| Arc::clone(&self.schema))
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        let mut diagnostics = arguments::check(context, &self.schema, config);
        diagnostics.extend(config.get("manifest").map(|given| manifest::check(context, given)).unwrap_or_default());
        Ok(diagnostics)
    }

    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        self.read_object(context, object).await
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        self.plan_object(context, request).await
    }

    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        self.apply_object(context, request).await
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        self.import_object(context, arguments::import_id(context, request)?).await
    }

    async fn wait_ready(
        &self,
        context: &CallContext,
        object: &RecordedObject,
        report: &HealthReport<'_>,
    ) -> Result<ObjectState, ReadinessError> {
        self.wait_until_ready(context, object, report).await
    }

    fn plan_depends_on_others(&self) -> bool {
        true
    }

    fn import_identities(&self, namespace: &str, request: &ImportRequest) -> Vec<Value> {
        let ImportRequest::Id(id) = request else { return Vec::new() };
        Target::from_import_id(id).map(|target| target.possible_identities(namespace)).unwrap_or_default()
    }

    fn config_identities(&self, namespace: &str, config: &Value) -> Vec<Value> {
        let target = config.get("manifest").and_then(Target::of_object);
        target.map(|target| target.possible_identities(namespace)).unwrap_or_default()
    }

    async fn release(&self, context: &CallContext, object: &RecordedObject) -> Result<(), DriverError> {
        self.remove_owner_annotation(context, object).await
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        // The name is fixed before the call and the object carries the owner annotation, so repeating the call is safe.
        CreateRecovery::Repeat(self)
    }

    async fn configuration(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        self.cluster(context).await
    }

    fn concurrency(&self) -> Option<usize> {
        Some(CALLS_AT_ONCE)
    }

    fn data(&self) -> Option<&dyn DataSources> {
        Some(self)
    }

    fn watcher(&self) -> Option<&dyn ObjectWatcher> {
        self.watches.as_ref().map(|watches| watches as &dyn ObjectWatcher)
    }
}

#[async_trait]
impl FindCreated for KubernetesObject {
    async fn find_created(&self, context: &CallContext, planned: &Value) -> Result<Option<ObjectState>, DriverError> {
        self.find_created_object(context, planned).await
    }
}

/// The apiVersion, kind, namespace and name of the recorded object.
fn recorded_target(object: &RecordedObject) -> Result<Target, DriverError> {
    object.value.get("object").and_then(Target::of_object).ok_or_else(|| DriverError {
        kind: ErrorKind::Terminal,
        message: "the record does not identify an object".to_owned(),
        path: None,
        hint: Some("remove it with `purlin state rm` and import the object".to_owned()),
    })
}

#[cfg(test)]
mod tests;
