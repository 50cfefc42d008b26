//! The Modules of the cluster: keeps each with its program, which is made from the source of the module.
//!
//! A program belongs to one generation of its Module. Until it is made, or while it cannot be, the Module has none: nothing of it
//! is planned, and nothing is destroyed.

mod load;
mod source;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::{Api, ResourceExt as _};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::namespaces::Namespaces;
use super::watch::{Watch, WatchedKind, namespace_of, observed};
use api::{ModuleStatus, RawObject};
use drivers::Providers;
use engine::load::{self as desired, Instance, Interner, Program, ProviderSpec, ServiceAccounts};
use model::{Diagnostics, Name, Namespace, Uid};
use process::{Clock, Random, lock};
use runtime::reconcile::index::{Event, ListedKind, ObservedResource};
use runtime::reconcile::retry;

/// How many modules are loaded at the same time.
const AT_ONCE: usize = 4;

/// The namespace and the name in addresses of a Module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleKey {
    pub namespace: Namespace,
    pub name: Name,
}

/// What a program is made for.
type Version = (Uid, i64);

/// A Module as the watch has delivered it last, with what was made of it.
struct Known {
    observed: ObservedResource,
    spec: Arc<api::ModuleSpec>,
    loaded: Loaded,
    failures: u32,
}

enum Loaded {
    No,
    Yes(Arc<dyn Program>),
    Failed(Diagnostics),
}

impl Known {
    fn version(&self) -> Version {
        (self.observed.instance.uid.clone(), self.observed.instance.generation)
    }

    /// Whether its source matters: a Module that is being deleted destroys what is recorded.
    fn needs_program(&self) -> bool {
        let instance = &self.observed.instance;
        !instance.deleting && !instance.has_errors()
    }

    /// The Module with its program, or with why it has none.
    fn event(&self) -> Event {
        let mut instance = Instance::clone(&self.observed.instance);
        match &self.loaded {
            Loaded::No => {}
            Loaded::Yes(program) => instance.program = Some(program.clone()),
            Loaded::Failed(problems) => {
                let address = Some(instance.address.clone());
                let own = problems.iter().cloned();
                instance.problems.extend(own.map(|problem| model::Diagnostic { address: address.clone(), ..problem }));
            }
        }
        Event::ResourceApplied(ObservedResource { instance: Arc::new(instance), ..self.observed.clone() })
    }
}

/// The dependencies of loading.
pub struct Services {
    pub providers: Option<Arc<Providers>>,
    /// Where the files of modules are kept.
    pub directory: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
}

/// All Modules that this replica watches.
pub struct Modules {
    known: Mutex<BTreeMap<ModuleKey, Known>>,
    namespaces: Arc<Namespaces>,
    changed: mpsc::UnboundedSender<ModuleKey>,
}

impl Modules {
    /// An empty set, and the Modules to load.
    pub fn new(namespaces: Arc<Namespaces>) -> (Arc<Self>, mpsc::UnboundedReceiver<ModuleKey>) {
        let (changed, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { known: Mutex::default(), namespaces, changed }), receiver)
    }

    fn applied(&self, key: ModuleKey, observed: ObservedResource, spec: api::ModuleSpec) {
        let mut known = lock(&self.known);
        let version = (observed.instance.uid.clone(), observed.instance.generation);
        let before = known.remove(&key).filter(|before| before.version() == version);
        let is_new = before.is_none();
        let (loaded, failures) = before.map_or((Loaded::No, 0), |before| (before.loaded, before.failures));
        let now = Known { observed, spec: Arc::new(spec), loaded, failures };
        if is_new && now.needs_program() {
            self.load(key.clone());
        }
        self.namespaces.apply(&key.namespace, now.event());
        known.insert(key, now);
    }

    fn load(&self, key: ModuleKey) {
        // The receiver may be dropped during shutdown.
        let _ = self.changed.send(key);
    }

    fn deleted(&self, key: &ModuleKey) {
        lock(&self.known).remove(key);
        self.namespaces.apply(&key.namespace, Event::ResourceDeleted(key.name.clone()));
    }

    /// What is to be loaded of a Module now.
    fn wanted(&self, key: &ModuleKey) -> Option<(Version, Arc<Instance>, Arc<api::ModuleSpec>)> {
        let known = lock(&self.known);
        let module = known.get(key).filter(|module| module.needs_program())?;
        Some((module.version(), module.observed.instance.clone(), module.spec.clone()))
    }

    /// Takes the result of loading this version of a Module. Returns the number of failures after which it is loaded again.
    fn loaded(&self, key: &ModuleKey, version: &Version, result: Result<Arc<dyn Program>, Diagnostics>) -> Option<u32> {
        let mut known = lock(&self.known);
        let module = known.get_mut(key).filter(|module| module.version() == *version)?;
        let failures = match result {
            Ok(program) => {
                module.failures = 0;
                module.loaded = Loaded::Yes(program);
                None
            }
            Err(problems) => {
                module.failures += 1;
                match module.loaded {
                    // What is in force stays so.
                    Loaded::Yes(_) => log(key, &problems),
                    Loaded::No | Loaded::Failed(_) => module.loaded = Loaded::Failed(problems),
                }
                Some(module.failures)
            }
        };
        self.namespaces.apply(&key.namespace, module.event());
        failures
    }

    fn keys(&self) -> Vec<ModuleKey> {
        lock(&self.known).keys().cloned().collect()
    }
}

/// Loads Modules until the process ends.
pub async fn run(
    modules: Arc<Modules>,
    mut changed: mpsc::UnboundedReceiver<ModuleKey>,
    mut installed: watch::Receiver<Arc<BTreeMap<Arc<str>, Arc<ProviderSpec>>>>,
    services: Services,
) {
    let services = Arc::new(services);
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let (mut loads, mut pauses) = (JoinSet::new(), JoinSet::new());
    loop {
        tokio::select! {
            biased;
            key = changed.recv() => {
                let Some(key) = key else { return };
                let (modules, services, permits) = (modules.clone(), services.clone(), permits.clone());
                let installed = installed.borrow().clone();
                loads.spawn(async move {
                    // The semaphore is never closed.
                    let _permit = permits.acquire().await;
                    let (version, module, spec) = modules.wanted(&key)?;
                    let result = load::program(&services, &key, &module, &spec, &installed).await;
                    let failures = modules.loaded(&key, &version, result)?;
                    Some((key, retry::delay(failures, services.random.number())))
                });
            }
            Some(done) = loads.join_next() => match done {
                Ok(Some((key, pause))) => drop(pauses.spawn(again(key, pause))),
                Ok(None) => {}
                Err(_) => tracing::error!("loading a Module panicked because of a bug in Purlin"),
            },
            Some(Ok(key)) = pauses.join_next() => modules.load(key),
            Ok(()) = installed.changed() => {
                // Which Provider serves a module, and in which version, may have changed.
                modules.keys().into_iter().for_each(|key| modules.load(key));
            }
        }
    }
}

/// A module that cannot be loaded again has no problem that its status would show.
fn log(key: &ModuleKey, problems: &Diagnostics) {
    let (namespace, name) = (&*key.namespace, &*key.name);
    for problem in problems {
        tracing::warn!(namespace, name, error = %problem, "a module cannot be loaded again; its last revision stays in force");
    }
}

async fn again(key: ModuleKey, pause: Duration) -> ModuleKey {
    tokio::time::sleep(pause).await;
    key
}

/// The watch of Modules.
pub struct WatchedModules {
    modules: Arc<Modules>,
    accounts: ServiceAccounts,
}

impl WatchedModules {
    pub fn new(modules: Arc<Modules>, accounts: ServiceAccounts) -> Self {
        Self { modules, accounts }
    }
}

impl WatchedKind for WatchedModules {
    type Object = RawObject<api::Module>;

    const NAME: &'static str = "modules";

    fn api(&self, watch: &Watch) -> Api<Self::Object> {
        watch.scoped()
    }

    fn relisting(&mut self, watch: &Watch) {
        watch.namespaces.apply_to_all(watch.only.as_deref(), &Event::Relisting(ListedKind::Modules));
    }

    async fn applied(&mut self, _: &Watch, object: Self::Object) {
        // Modules are few, and share few strings: what is interned for one is not kept.
        let strings = &mut Interner::default();
        let (instance, spec) = desired::module_from_raw(&object, &self.accounts, strings);
        let key = ModuleKey { namespace: namespace_of(&object), name: instance.address.name().clone() };
        let status: Option<ModuleStatus> = object.status();
        let observed = observed(&object, instance, status.map(Into::into), strings);
        self.modules.applied(key, observed, spec);
    }

    fn deleted(&mut self, _: &Watch, object: &Self::Object) {
        let name = model::Address::module(&object.name_any()).stem.name;
        self.modules.deleted(&ModuleKey { namespace: namespace_of(object), name });
    }

    fn listed(&mut self, watch: &Watch) {
        watch.namespaces.apply_to_all(watch.only.as_deref(), &Event::Listed(ListedKind::Modules));
    }
}
