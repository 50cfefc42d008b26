//! `kubernetes_object`: any object of a Kubernetes API by its manifest, through server-side apply.
//!
//! - Each request is made as the Resource's service account, so that RBAC decides what it may do.
//! - What is made carries an owner mark; an object without it is never touched unless it was imported.
//! - Updates and deletes carry the UID on record: another object of the same name is never changed by mistake.
//! - Conflicts of field ownership are settled for us only where we had set the field before (then somebody else's
//!   change is drift), and for imported objects; otherwise they are errors.
//!
//! Decisions are pure functions (`planning`, `refusal`, `kstatus`, `manifest`); `ask` and `act` put them between the
//! requests that `server`, `patch` and `follow` make.

mod act;
mod ask;
mod data;
mod discovery;
pub(super) mod follow;
pub mod kstatus;
mod manifest;
mod namespace;
mod object;
mod patch;
mod planning;
mod publish;
pub(super) mod refusal;
pub(super) mod server;
mod target;
pub(crate) mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::model::{
    Attribute, AttributeType, Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, Path, PlanRequest,
    PlanResponse, Provider, RecordedObject, Schema, Value,
};
use crate::process::Clock;

use super::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataSources, Driver, FindCreated, NotReady,
    ObjectWatcher, arguments,
};
use discovery::ApiKind;
use object::LAST_APPLIED;
use refusal::{Attempt, Failure};
use server::{Connection, Server, Who};
use target::Target;
use watches::Watches;

pub use target::OWNER_ANNOTATION;
pub(crate) use target::owner_mark;
pub use watches::Sink;

/// The resource type.
pub const TYPE_NAME: &str = "kubernetes_object";

/// Under this name the API server keeps which fields are ours.
pub const FIELD_MANAGER: &str = "purlin";

/// Each create or update is about three short requests, so this many at once keep two cores of API server busy
/// without standing in its queue.
const CALLS_AT_ONCE: usize = 64;

/// The first part of owner marks: within it, namespace and name of a Resource are unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerScope {
    /// The UID of the namespace `kube-system` of the cluster that the client leads to.
    Cluster,
    /// A given text: the id of a state file, or the UID of the controller's cluster for objects of another one.
    /// Two state files with one text would take each other's objects for their own.
    Fixed(Arc<str>),
}

/// The driver of `kubernetes_object`, for one API server.
pub struct KubernetesObject {
    server: Arc<Server>,
    watches: Option<Watches>,
    /// Which cluster it is, once that was asked.
    cluster: OnceCell<Arc<str>>,
    scope: OwnerScope,
    impersonates: bool,
    schema: Arc<Schema>,
    data_schema: Arc<Schema>,
}

impl KubernetesObject {
    /// For a controller: acts as the service account of each Resource, by impersonation, and never as itself but
    /// for discovery, the UID of `kube-system`, and what is left in a namespace that is being deleted.
    pub fn impersonating(client: kube::Client, scope: OwnerScope, clock: Arc<dyn Clock>) -> Self {
        Self::new(Connection::Ready(client), scope, true, clock)
    }

    /// Acts as whoever the client is: another cluster by its kubeconfig, or a test.
    pub fn as_client(client: kube::Client, scope: OwnerScope, clock: Arc<dyn Clock>) -> Self {
        Self::new(Connection::Ready(client), scope, false, clock)
    }

    /// For local runs: acts as the user of the kubeconfig, which is read when the first request is made.
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
                    shown_in: Some(Arc::from("object")),
                    ..arguments::argument(object.clone(), true, "The object, as one would give it to `kubectl apply`.")
                },
            ),
            (
                Arc::from("object"),
                arguments::computed(object, "The object as the server has it, without `managedFields`."),
            ),
        ]);
        let schema = Arc::new(Schema { version: 0, attributes });
        let server = Arc::new(Server::new(connection, clock));
        let data_schema = Arc::new(data::schema());
        Self { server, watches: None, cluster: OnceCell::new(), scope, impersonates, schema, data_schema }
    }

    /// Tells `sink` what others do to the objects that it is asked to watch. For a controller.
    #[must_use]
    pub fn telling(mut self, sink: Sink) -> Self {
        self.watches = Some(Watches::new(Arc::clone(&self.server), sink));
        self
    }

    /// As whom a call is made.
    fn who<'a>(&self, context: &'a CallContext) -> Result<Who<'a>, DriverError> {
        match (self.impersonates, context.service_account.is_empty()) {
            (false, _) => Ok(Who::Process),
            (true, false) => Ok(Who::ServiceAccount { namespace: &context.namespace, name: &context.service_account }),
            // Going on would lend the controller's own rights to whoever wrote the Resource.
            (true, true) => Err(DriverError {
                kind: ErrorKind::Terminal,
                message: "no service account is given to act as".to_owned(),
                path: None,
                hint: Some("set `spec.serviceAccountName`".to_owned()),
            }),
        }
    }

    /// The owner mark of the Resource's instance.
    async fn owner(&self, context: &CallContext) -> Result<String, DriverError> {
        Ok(owner_mark(&self.owner_scope(context).await?, &context.namespace, &context.address))
    }

    /// The first part of our marks.
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
                refusal::error(&failure, &attempt(context, "read", "namespaces", &target))
            })?,
        })
    }

    /// Which cluster this is. Empty for who may not know: then nobody can tell one from another.
    async fn cluster(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        let name = self.cluster.get_or_try_init(|| async {
            match self.server.cluster_uid(context.deadline).await {
                Ok(uid) => Ok(format!("cluster:{uid}").into()),
                Err(Failure::Refused(refusal)) if matches!(refusal.code, 401 | 403 | 404) => Ok(Arc::from("")),
                Err(failure) => Err(discovery_error(context, &failure, "v1", "Namespace")),
            }
        });
        name.await.cloned()
    }

    /// The kind, as the server has it now.
    async fn kind(&self, context: &CallContext, api_version: &str, kind: &str) -> Result<Option<ApiKind>, DriverError> {
        let found = self.server.kind(api_version, kind, context.deadline).await;
        found.map_err(|failure| discovery_error(context, &failure, api_version, kind))
    }
}

/// Whether a text names an object in the way of an import id: `v1/ConfigMap/shop/site`.
pub fn is_import_id(id: &str) -> bool {
    Target::from_import_id(id).is_some()
}

/// What was attempted.
fn attempt<'a>(context: &'a CallContext, verb: &'static str, resource: &str, target: &Target) -> Attempt<'a> {
    Attempt {
        verb,
        object: target.to_string(),
        resource: resource.to_owned(),
        service_account: &context.service_account,
        namespace: &context.namespace,
        place: target.namespace.clone(),
        sensitive: false,
    }
}

fn discovery_error(context: &CallContext, failure: &Failure, api_version: &str, kind: &str) -> DriverError {
    let attempt = Attempt {
        verb: "look up",
        object: format!("kind `{kind}` of `{api_version}`"),
        resource: String::new(),
        service_account: &context.service_account,
        namespace: &context.namespace,
        place: String::new(),
        sensitive: false,
    };
    refusal::error(failure, &attempt)
}

/// The server has no such kind. It may come with a CRD, so trying again helps; a group of the server's own never
/// gains one.
fn no_such_kind(api_version: &str, kind: &str) -> DriverError {
    let may_come = discovery::may_gain_kinds(target::group_of(api_version));
    DriverError {
        kind: if may_come { ErrorKind::Transient } else { ErrorKind::InvalidConfig },
        message: format!("the cluster has no kind `{kind}` in `{api_version}`"),
        path: Some(Path::default().name("manifest").name("kind")),
        hint: Some(if may_come {
            "it is there once its CustomResourceDefinition is installed; if a Resource installs it, name that one in \
             `dependsOn`"
                .to_owned()
        } else {
            "check the spelling of `kind` and `apiVersion`".to_owned()
        }),
    }
}

impl Driver for KubernetesObject {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        (type_name == TYPE_NAME).then(|| Arc::clone(&self.schema))
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        Box::pin(async {
            let mut found = arguments::check(context, &self.schema, config);
            found.extend(config.get("manifest").map(|given| manifest::check(context, given)).unwrap_or_default());
            Ok(found)
        })
    }

    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(self.read_object(context, object))
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        Box::pin(self.plan_object(context, request))
    }

    fn apply<'a>(&'a self, context: &'a CallContext, request: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        Box::pin(self.apply_object(context, request))
    }

    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        request: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(async { self.import_object(context, arguments::import_id(context, request)?).await })
    }

    fn wait_ready<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
        tell: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<ObjectState, NotReady>> {
        Box::pin(self.until_ready(context, object, tell))
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        // The name is fixed before the call and the object carries our mark, so the same call again finishes it.
        CreateRecovery::Repeat(self)
    }

    fn configuration<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        Box::pin(self.cluster(context))
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

impl FindCreated for KubernetesObject {
    fn find_created<'a>(
        &'a self,
        context: &'a CallContext,
        planned: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(self.find_own(context, planned))
    }
}

/// The object on record, by its place.
fn recorded_target(object: &RecordedObject) -> Result<Target, DriverError> {
    object.value.get("object").and_then(Target::of_object).ok_or_else(|| DriverError {
        kind: ErrorKind::Terminal,
        message: "the record does not say which object it is about".to_owned(),
        path: None,
        hint: Some("remove it with `purlin state rm` and import the object".to_owned()),
    })
}

#[cfg(test)]
mod tests;
