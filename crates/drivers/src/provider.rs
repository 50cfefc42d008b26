//! Terraform and OpenTofu providers as drivers, for every type without a built-in driver.
//!
//! A provider runs as a separate process for each configuration in each namespace. This module validates its responses by the rules of
//! the plugin protocol.

mod adopt;
mod calls;
mod data;
mod diagnostics;
mod ephemeral;
mod functions;
mod host;
mod mask;
mod object_client;
mod private;
mod reattach;
mod runners;
mod schema;
mod search;
mod served_types;
mod sessions;
mod spares;
pub mod values;
mod waiting;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::SignedDuration;

use super::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataSources, Driver, SearchCreated, SearchResult,
    TakeOver,
};
use calls::SchemaCalls;
use model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, Namespace, ObjectState, PlanRequest, PlanResponse, Provider,
    ProviderUse, RecordedObject, Schema, Value,
};
use object_client::ObjectClient;
use process::{Clock, lock};
use schema::ResourceType;
use served_types::ServedTypes;
use sessions::Sessions;

pub use adopt::{AdoptedObject, ForeignObject, ReconstructedConfig};
pub use ephemeral::EphemeralRequest;
pub use functions::{FunctionCall, FunctionProblem};
pub use host::{Preparation, ProviderInfo};
pub use mask::ProcessMask;
pub use reattach::Reattach;
pub use runners::{RunnerPods, RunnerSettings};
pub use sessions::{ConfigurationMode, Confinement, ProviderOptions, requirement};
pub use waiting::WaitingCalls;

/// How long a repeated call waits for other repeated calls, so that a hanging call does not block the others.
const RETRY_TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// A namespace, and the name of a configuration in it.
type ConfigurationName = (Namespace, Arc<str>);

pub struct Providers {
    clock: Arc<dyn Clock>,
    sessions: Sessions,
    schema_calls: SchemaCalls,
    /// Serializes the calls that are repeated after a crash.
    retry_locks: Mutex<BTreeMap<ConfigurationName, Arc<tokio::sync::Mutex<()>>>>,
    /// All calls received a stop request.
    stopped: AtomicBool,
    /// The current provider configurations of each namespace.
    configurations: Mutex<BTreeMap<Namespace, NamespaceConfigurations>>,
    /// The current providers by name.
    current: Mutex<BTreeMap<Arc<str>, Arc<Provider>>>,
}

/// The provider configurations of a namespace.
#[derive(Default)]
struct NamespaceConfigurations {
    version: u64,
    uses: Vec<Arc<ProviderUse>>,
}

impl Providers {
    /// Starts no provider.
    pub fn new(options: ProviderOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            sessions: Sessions::new(options, clock.clone()),
            clock,
            schema_calls: SchemaCalls::default(),
            retry_locks: Mutex::default(),
            stopped: AtomicBool::new(false),
            configurations: Mutex::default(),
            current: Mutex::default(),
        }
    }

    /// The types of a provider, or the error of the schema call; `None` if it was not called yet.
    fn cached_types(&self, provider: &Provider) -> Option<Result<Arc<ServedTypes>, DriverError>> {
        let current = self.current_version(provider);
        self.schema_calls.known(current.as_deref().unwrap_or(provider))
    }

    /// The current version of the provider with that name and source.
    fn current_version(&self, provider: &Provider) -> Option<Arc<Provider>> {
        lock(&self.current).get(&provider.name).filter(|current| current.source == provider.source).cloned()
    }

    /// The current version of the provider, or else the recorded one.
    fn current(&self, provider: &Arc<Provider>) -> Arc<Provider> {
        self.current_version(provider).unwrap_or_else(|| Arc::clone(provider))
    }

    fn with_current_provider(&self, used: &ProviderUse) -> ProviderUse {
        used.clone().with_provider(self.current(&used.provider))
    }

    /// The configuration for a call: the current one of that name in the namespace, or else the recorded one.
    fn provider_use(&self, context: &CallContext) -> Result<Arc<ProviderUse>, DriverError> {
        let recorded = context.provider.as_ref().ok_or_else(|| DriverError {
            kind: ErrorKind::Terminal,
            message: format!("no provider serves the type `{}`", context.type_name),
            path: None,
            hint: Some("add a Provider with the prefix of the type as its name".to_owned()),
        })?;
        let current = lock(&self.configurations).get(&context.namespace).and_then(|configurations| {
            let mut uses = configurations.uses.iter();
            uses.find(|used| used.name == recorded.name && used.provider.source == recorded.provider.source).cloned()
        });
        let used = current.unwrap_or_else(|| recorded.clone());
        if used.is_incomplete() {
            return Err(incomplete(&used));
        }
        let provider = self.current(&used.provider);
        if *provider == *used.provider {
            return Ok(used);
        }
        Ok(Arc::new(used.as_ref().clone().with_provider(provider)))
    }

    /// Sets the provider configurations of a namespace unless a newer version is set. Returns those no longer in use.
    fn set_configurations(
        &self,
        namespace: &Namespace,
        configurations: NamespaceConfigurations,
    ) -> Vec<Arc<ProviderUse>> {
        let mut by_namespace = lock(&self.configurations);
        let known = by_namespace.entry(namespace.clone()).or_default();
        // Plans of a namespace run concurrently, so an older version may arrive later.
        if configurations.version < known.version {
            return Vec::new();
        }
        let before = std::mem::replace(known, configurations).uses;
        before.into_iter().filter(|used| !known.uses.contains(used)).collect()
    }

    /// The types of a provider, from its schema, which is cached.
    async fn served_types(&self, provider: &Arc<Provider>) -> Result<Arc<ServedTypes>, DriverError> {
        self.schema_calls
            .get_or_call(provider, self.clock.as_ref(), async || self.sessions.describe(provider).await.map(Arc::new))
            .await
    }

    /// A configured provider for calls about an object.
    async fn object_client<'a>(&'a self, context: &'a CallContext) -> Result<ObjectClient<'a>, DriverError> {
        self.client_for(context, "type", |served| served.resource(&context.type_name)).await
    }

    /// A configured provider for calls about a data source.
    async fn data_source_client<'a>(&'a self, context: &'a CallContext) -> Result<ObjectClient<'a>, DriverError> {
        self.client_for(context, "data source", |served| served.data(&context.type_name)).await
    }

    async fn client_for<'a>(
        &'a self,
        context: &'a CallContext,
        word: &str,
        kind: impl Fn(&ServedTypes) -> Result<Option<Arc<ResourceType>>, DriverError>,
    ) -> Result<ObjectClient<'a>, DriverError> {
        let used = self.provider_use(context)?;
        let served = self.served_types(&used.provider).await?;
        let kind = kind(&served)?.ok_or_else(|| no_such_type(&used.provider, word, &context.type_name))?;
        let (lease, mask) = self.sessions.lease(&context.namespace, &used, &served).await?;
        context.masks.add(&mask);
        let left = context.deadline.duration_since(self.clock.now()).max(SignedDuration::from_secs(1));
        let client = lease.with_limit(left.unsigned_abs()).with_provider_meta(served.has_provider_meta());
        let (plans_destroys, generates_config) = (served.plans_destroys(), served.generates_config());
        let stopped = &self.stopped;
        Ok(ObjectClient { client, _lease: lease, mask, kind, plans_destroys, generates_config, context, stopped })
    }

    /// Waits for the turn to repeat a call that failed because its process ended; `None` if it failed for another
    /// reason. After a timeout, the call is repeated without the lock.
    async fn retry_turn(&self, object: ObjectClient<'_>) -> Option<Option<tokio::sync::OwnedMutexGuard<()>>> {
        if object.client.is_alive() {
            return None;
        }
        let name = object.context.provider.as_ref().map(|used| used.name.clone()).unwrap_or_default();
        let key = (object.context.namespace.clone(), name);
        drop(object);
        let turn = Arc::clone(lock(&self.retry_locks).entry(key).or_default());
        Some(tokio::time::timeout(RETRY_TURN_TIMEOUT, turn.lock_owned()).await.ok())
    }
}

/// Makes a call without side effects. If the process ends during the call, the call is repeated once, since another
/// object probably caused the crash. Repeated calls run one at a time, so that the cause affects no other object.
macro_rules! read_only_call {
    ($providers:ident, $context:ident, mask_values($config:expr, $prior:expr), $method:ident($argument:expr)) => {{
        let client = $providers.object_client($context).await?;
        client.mask_values($config, $prior);
        let result = client.$method($argument).await;
        if result.is_ok() {
            return result;
        }
        match $providers.retry_turn(client).await {
            None => result,
            Some(_turn) => {
                let client = $providers.object_client($context).await?;
                client.mask_values($config, $prior);
                client.$method($argument).await
            }
        }
    }};
}

fn no_such_type(provider: &Provider, word: &str, type_name: &str) -> DriverError {
    let message = format!("the provider `{}` has no {word} `{type_name}`", provider.name);
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}

#[async_trait]
impl Driver for Providers {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        let served = self.cached_types(provider?)?.ok()?;
        Some(served.resource(type_name).ok()??.outline.clone())
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        read_only_call!(self, context, mask_values(Some(config), None), validate(config))
    }

    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        read_only_call!(self, context, mask_values(None, Some(object)), read(object))
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        if !self.sessions.configures() {
            return self.object_client(context).await?.propose(&request).await;
        }
        read_only_call!(self, context, mask_values(Some(&request.config), request.prior.as_deref()), plan(&request))
    }

    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        match self.object_client(context).await {
            Ok(called) => {
                called.mask_values(Some(&request.config), request.prior.as_deref());
                called.apply(request).await
            }
            Err(error) => ApplyResponse { error: Some(error), ..ApplyResponse::default() },
        }
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        read_only_call!(self, context, mask_values(None, None), import(request))
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Search(self)
    }

    async fn configuration(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        Ok(self.provider_use(context)?.digest.clone())
    }

    fn data(&self) -> Option<&dyn DataSources> {
        Some(self)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        Some(self)
    }
}

#[async_trait]
impl SearchCreated for Providers {
    async fn search_created(
        &self,
        context: &CallContext,
        request: &ApplyRequest,
        import: Option<&ImportRequest>,
    ) -> Result<SearchResult, DriverError> {
        let searched = (request, import);
        read_only_call!(self, context, mask_values(Some(&request.config), None), search_created(searched))
    }
}

fn incomplete(used: &ProviderUse) -> DriverError {
    DriverError {
        kind: ErrorKind::Unavailable,
        message: format!(
            "the provider configuration `{}` has ephemeral values, which are not recorded and not known now",
            used.name
        ),
        path: None,
        hint: Some("keep its block, and what its values come from, until its objects are destroyed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::context;
    use process::SystemClock;
    use testkit::provider_use;
    use tfprovider::install::{InstallOptions, Installer};

    #[tokio::test]
    async fn provider_configurations_of_different_namespaces_are_separate() {
        let installer = Arc::new(Installer::new(InstallOptions::from_environment()));
        let options = ProviderOptions::new(installer);
        let providers = Providers::new(options, Arc::new(SystemClock));
        let called_with = |namespace: &str, recorded: &str| {
            let context = CallContext {
                namespace: namespace.into(),
                provider: Some(provider_use(recorded)),
                ..context("cloud_disk")
            };
            providers.provider_use(&context).unwrap().configuration.clone()
        };
        for (namespace, settings) in [("shop", "of the shop"), ("bank", "of the bank")] {
            let (namespace, configurations) = (Namespace::from(namespace), [provider_use(settings)]);
            let namespace = Some(&namespace);
            providers
                .prepare(Preparation {
                    namespace,
                    version: 2,
                    needed: &[],
                    current: &[],
                    configurations: &configurations,
                })
                .await;
        }
        // An object is called with the current configuration of its namespace, not with the recorded one.
        assert_eq!(called_with("shop", "old"), Value::from("of the shop"));
        assert_eq!(called_with("bank", "old"), Value::from("of the bank"));
        assert_eq!(called_with("elsewhere", "old"), Value::from("old"));
        let shop: Namespace = "shop".into();
        let prepare = async |version, configurations: &[Arc<ProviderUse>]| {
            let namespace = Some(&shop);
            providers.prepare(Preparation { namespace, version, needed: &[], current: &[], configurations }).await;
        };
        // A plan with an older version does not restore the old configuration.
        prepare(1, &[provider_use("of yesterday")]).await;
        assert_eq!(called_with("shop", "old"), Value::from("of the shop"));
        // A configuration is dropped with its ProviderConfig.
        prepare(3, &[]).await;
        assert_eq!(called_with("shop", "old"), Value::from("old"));
    }
}
