//! Terraform's and OpenTofu's providers as drivers: every type that no built-in driver serves.
//!
//! A provider is a program that runs beside us, once for each configuration. What it says is checked here, by the rules
//! of its protocol, before anybody relies on it.

mod adopt;
mod asking;
mod data;
mod host;
mod mask;
mod object;
mod private;
mod program;
mod reattach;
mod schema;
mod served;
mod sessions;
mod spares;
mod told;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::SignedDuration;

use super::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataSources, Driver, TakeOver, Warnings};
use crate::model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider, ProviderUse,
    RecordedObject, Schema, Secrets, Value,
};
use crate::process::{Clock, lock};
use asking::Asking;
use object::Object;
use schema::ResourceType;
use served::Served;
use sessions::Sessions;

pub use adopt::{Adopted, ForeignObject, Reconstructed};
pub use host::{Preparation, ProviderFacts};
pub use reattach::Reattach;
pub use sessions::{ProviderOptions, SettingsUse};

/// How long a call that is made once more waits for others of that kind. One that hangs holds up the others no longer.
const TURN: Duration = Duration::from_secs(10);

/// Serves the types of all providers.
pub struct Providers {
    clock: Arc<dyn Clock>,
    sessions: Sessions,
    /// What each provider serves.
    asking: Asking,
    /// Held by the one call after a crash that is made again: by the name of a configuration.
    again: Mutex<BTreeMap<Arc<str>, Arc<tokio::sync::Mutex<()>>>>,
    /// All calls were asked to end early.
    stopped: AtomicBool,
    /// The settings that hold now in each namespace.
    settled: Mutex<BTreeMap<Arc<str>, Settled>>,
    /// The providers that there are now, by name.
    current: Mutex<BTreeMap<Arc<str>, Arc<Provider>>>,
}

/// The settings of a namespace.
#[derive(Default)]
struct Settled {
    /// Which state of them this is.
    version: u64,
    uses: Vec<Arc<ProviderUse>>,
}

impl Providers {
    /// No provider is started yet.
    pub fn new(options: ProviderOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            sessions: Sessions::new(options, clock.clone()),
            clock,
            asking: Asking::default(),
            again: Mutex::default(),
            stopped: AtomicBool::new(false),
            settled: Mutex::default(),
            current: Mutex::default(),
        }
    }

    /// What a provider serves, or why it does not tell; `None` when it was not asked yet.
    fn known(&self, provider: &Provider) -> Option<Result<Arc<Served>, DriverError>> {
        let current = self.given(provider);
        self.asking.known(current.as_deref().unwrap_or(provider))
    }

    /// The provider of that name as it is given now.
    fn given(&self, provider: &Provider) -> Option<Arc<Provider>> {
        lock(&self.current).get(&provider.name).filter(|current| current.source == provider.source).cloned()
    }

    /// The same; else as it was recorded.
    fn current(&self, provider: &Arc<Provider>) -> Arc<Provider> {
        self.given(provider).unwrap_or_else(|| Arc::clone(provider))
    }

    /// The settings, of the provider as it is called now.
    fn as_served(&self, used: &ProviderUse) -> ProviderUse {
        ProviderUse { provider: self.current(&used.provider), ..used.clone() }
    }

    /// The settings to call a provider with: those that hold now, when there are any of that name in the namespace.
    fn settings(&self, context: &CallContext) -> Result<Arc<ProviderUse>, DriverError> {
        let missing = || DriverError {
            kind: ErrorKind::Terminal,
            message: format!("no provider serves the type `{}`", context.type_name),
            path: None,
            hint: Some("add a document of kind Provider, named like what the type begins with".to_owned()),
        };
        let used = context.provider.as_ref().ok_or_else(missing)?;
        let same = |one: &&Arc<ProviderUse>| one.name == used.name && one.provider.source == used.provider.source;
        let settled =
            lock(&self.settled).get(&context.namespace).and_then(|settled| settled.uses.iter().find(same).cloned());
        let used = settled.unwrap_or_else(|| used.clone());
        let provider = self.current(&used.provider);
        if *provider == *used.provider {
            return Ok(used);
        }
        Ok(Arc::new(ProviderUse { provider, ..used.as_ref().clone() }))
    }

    /// These are the settings of a namespace from now on, unless later ones are known. Gives those that hold no more.
    fn settle(&self, namespace: &Arc<str>, settled: Settled) -> Vec<Arc<ProviderUse>> {
        let mut all = lock(&self.settled);
        let known = all.entry(Arc::clone(namespace)).or_default();
        // Several plans of a namespace are made at once, and one that began earlier may come later.
        if settled.version < known.version {
            return Vec::new();
        }
        let before = std::mem::replace(known, settled).uses;
        let holds = |used: &Arc<ProviderUse>| all.values().any(|others| others.uses.contains(used));
        before.into_iter().filter(|used| !holds(used)).collect()
    }

    /// Asks a provider what it serves, unless it was asked before.
    async fn ask(&self, provider: &Arc<Provider>) -> Result<Arc<Served>, DriverError> {
        let ask = async || self.sessions.describe(provider).await.map(Arc::new);
        self.asking.ask(provider, self.clock.as_ref(), ask).await
    }

    /// A configured provider, to be called about an object.
    async fn object<'a>(&'a self, context: &'a CallContext) -> Result<Object<'a>, DriverError> {
        let kind = |served: &Served| served.resource(&context.type_name);
        self.called(context, "type", kind).await
    }

    /// A configured provider, to be called about a data source.
    async fn data_source<'a>(&'a self, context: &'a CallContext) -> Result<Object<'a>, DriverError> {
        let kind = |served: &Served| served.data(&context.type_name);
        self.called(context, "data source", kind).await
    }

    async fn called<'a>(
        &'a self,
        context: &'a CallContext,
        word: &str,
        kind: impl Fn(&Served) -> Result<Option<Arc<ResourceType>>, DriverError>,
    ) -> Result<Object<'a>, DriverError> {
        let used = self.settings(context)?;
        let served = self.ask(&used.provider).await?;
        let kind = kind(&served)?.ok_or_else(|| unserved(&used.provider, word, context))?;
        let (lease, mask) = self.sessions.configured(&used, &served).await?;
        let left = context.deadline.duration_since(self.clock.now()).max(SignedDuration::from_secs(1));
        let client = lease.within(left.unsigned_abs());
        let (plans_destroys, generates_config) = (served.plans_destroys(), served.generates_config());
        let stopped = &self.stopped;
        let said = Warnings::default();
        Ok(Object { client, _lease: lease, mask, kind, plans_destroys, generates_config, context, said, stopped })
    }

    /// A turn to make a call once more that failed because the process ended; `None` when it failed otherwise. There is
    /// no guard in it when others had theirs for too long.
    async fn turn_after(&self, object: Object<'_>) -> Option<Option<tokio::sync::OwnedMutexGuard<()>>> {
        if object.client.is_alive() {
            return None;
        }
        let name = object.context.provider.as_ref().map(|used| used.name.clone()).unwrap_or_default();
        drop(object);
        let turn = Arc::clone(lock(&self.again).entry(name).or_default());
        Some(tokio::time::timeout(TURN, turn.lock_owned()).await.ok())
    }
}

/// Makes a call that changes nothing. When the process ends meanwhile, it is made once more: the end was most likely about
/// another object. Such calls are made one at a time, so that the object that it was about disturbs no other.
macro_rules! harmless {
    ($providers:ident, $context:ident, hush($config:expr, $prior:expr), $method:ident($argument:expr)) => {
        async move {
            let called = $providers.object($context).await?;
            called.hush($config, $prior);
            let answer = called.masked(called.$method($argument).await);
            if answer.is_ok() {
                return answer;
            }
            match $providers.turn_after(called).await {
                None => answer,
                Some(_turn) => {
                    let called = $providers.object($context).await?;
                    called.hush($config, $prior);
                    called.masked(called.$method($argument).await)
                }
            }
        }
        .boxed()
    };
}

fn unserved(provider: &Provider, word: &str, context: &CallContext) -> DriverError {
    let message = format!("the provider `{}` has no {word} `{}`", provider.name, context.type_name);
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}

impl Driver for Providers {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        let served = self.known(provider?)?.ok()?;
        Some(served.resource(type_name).ok()??.outline.clone())
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        harmless!(self, context, hush(Some(config), None), validate(config))
    }

    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        harmless!(self, context, hush(None, Some(object)), read(object))
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        harmless!(self, context, hush(Some(&request.config), request.prior.as_deref()), plan(&request))
    }

    fn apply<'a>(&'a self, context: &'a CallContext, request: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        async move {
            match self.object(context).await {
                Ok(called) => {
                    called.hush(Some(&request.config), request.prior.as_deref());
                    let mut response = called.apply(request).await;
                    called.mask.remember(Secrets::of(response.object.iter().map(|object| &object.value)));
                    called.hand_on_warnings();
                    response.error = response.error.map(|error| called.mask.error(error));
                    response
                }
                Err(error) => ApplyResponse { error: Some(error), ..ApplyResponse::default() },
            }
        }
        .boxed()
    }

    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        request: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        harmless!(self, context, hush(None, None), import(request))
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        // A provider finds objects by the ids that it gives them, and of an unfinished create nobody has one.
        CreateRecovery::Unknown
    }

    fn configuration<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        async move { Ok(self.settings(context)?.digest.clone()) }.boxed()
    }

    fn data(&self) -> Option<&dyn DataSources> {
        Some(self)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::tests::context;
    use crate::install::{InstallOptions, Installer};
    use crate::process::SystemClock;

    #[tokio::test]
    async fn settings_of_one_name_in_two_namespaces_have_nothing_to_do_with_each_other() {
        let installer = Arc::new(Installer::new(InstallOptions::from_environment()));
        let options = ProviderOptions::new(installer);
        let providers = Providers::new(options, Arc::new(SystemClock));
        let called_with = |namespace: &str, recorded: &str| {
            let context = CallContext {
                namespace: namespace.into(),
                provider: Some(ProviderUse::of_cloud(recorded)),
                ..context("cloud_disk")
            };
            providers.settings(&context).unwrap().settings.clone()
        };
        for (namespace, settings) in [("shop", "of the shop"), ("bank", "of the bank")] {
            let (namespace, settled) = (Arc::from(namespace), [ProviderUse::of_cloud(settings)]);
            let namespace = Some(&namespace);
            providers
                .prepare(Preparation { namespace, version: 2, needed: &[], current: &[], settled: &settled })
                .await;
        }
        // An object is called with what holds now where it lives, whatever it was recorded with.
        assert_eq!(called_with("shop", "old"), Value::from("of the shop"));
        assert_eq!(called_with("bank", "old"), Value::from("of the bank"));
        assert_eq!(called_with("elsewhere", "old"), Value::from("old"));
        let shop: Arc<str> = "shop".into();
        let prepare = async |version, settled: &[Arc<ProviderUse>]| {
            let namespace = Some(&shop);
            providers.prepare(Preparation { namespace, version, needed: &[], current: &[], settled }).await;
        };
        // A plan that began before the settings changed brings the old ones back to nobody.
        prepare(1, &[ProviderUse::of_cloud("of yesterday")]).await;
        assert_eq!(called_with("shop", "old"), Value::from("of the shop"));
        // What was known once does not outlive its ProviderConfig.
        prepare(3, &[]).await;
        assert_eq!(called_with("shop", "old"), Value::from("old"));
    }
}
