//! The controller: watches Resources and records, reconciles the real objects, and reports their status.
//!
//! ```text
//! watch --events--> namespaces: one index each --wake--> namespace task: plan, adopt, run --> status, events
//!                                                                |
//!                        shards: may steps start? ---------------+
//! ```
//!
//! The index, the debounce, the summary and the decisions about shards and holders are pure and synchronous. The tasks
//! around them only do the I/O.
#![forbid(unsafe_code)]

pub mod approvals;
pub mod backlog;
pub mod context;
pub mod events;
pub mod fair_queue;
pub mod crd_guard;
pub mod elector;
pub mod heartbeat;
pub mod holders;
pub mod http;
pub mod inputs;
pub mod leadership;
pub mod lease;
pub mod metrics;
mod modules;
pub mod namespace;
pub mod observed_client;
pub mod observed_journal;
pub mod options;
pub mod pages;
pub mod previews;
pub mod providers;
pub mod shards;
pub mod status;
pub mod supervise;
pub mod ui;
pub mod watch;
pub mod namespaces;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinSet;

use self::context::Context;
use self::elector::Elector;
use self::holders::Holders;
use self::leadership::Leadership;
use self::metrics::{Metrics, ProcessSample};
use self::modules::{ModuleKey, Modules, WatchedModules};
use self::namespaces::Namespaces;
use self::observed_client::observed;
use self::observed_journal::ObservedJournal;
use self::providers::{ObservedProvider, ProviderChecks};
use self::shards::Division;
use self::watch::{DesiredObjects, NamespaceObjects, PlanEvent, Plans, Records, Watch};
use crate::ui::cluster::Users;
use crate::ui::server::Server;
use drivers::hook::job::JobHooks;
use drivers::kubernetes_object::{KubernetesObject, OwnerScope};
use drivers::{Confinement, ObjectChange, ProviderOptions, Providers, Registry, RunnerPods, RunnerSettings};
use model::Holder;
use process::{Clock, Random, Readiness, Shutdown, SystemClock, SystemRandom, Threads, hide_from_others, memory_limit};
use runtime::execute::{Engine, Pool};
use runtime::reconcile::index::Event;
use runtime::store::{ClusterJournal, Secrets};
use tfprovider::install::{InstallOptions, Installer};
use tfprovider::plugin::{self, PlaceLimits, PoolOptions};

pub use heartbeat::Heartbeat;
pub use options::{ElectionTimes, Options, Pod, ProviderProcesses};

/// How many plannings compute at the same time, each on its own thread: far fewer than the runtime allows, so that
/// threads remain for the calls that plannings wait for.
const MAX_PLANNINGS: usize = 64;
/// The maximum size of a provider's response in bytes, except for schemas: many times the largest record.
const MAX_RESPONSE: usize = 16 * 1024 * 1024;
/// The time limit for the last status writes and for the release of the Lease.
const FINAL_WRITES_LIMIT: Duration = Duration::from_secs(10);

/// Why the controller failed.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    #[error("cannot connect to a cluster: {0} (hint: set `--kubeconfig`, or run in a Pod)")]
    Connect(String),
    #[error("cannot serve metrics and health: {0}")]
    Bind(#[source] std::io::Error),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    /// The grace period ended before all running calls.
    #[error("terminated before all running calls had ended; the next start resolves their outcome")]
    CallsAborted,
    /// The results of this many calls could not be recorded.
    #[error("terminated before the results of {0} calls could be recorded; the log names the objects")]
    ResultsLost(usize),
}

/// The external services of a controller. A simulation replaces those of [`Services::system`].
pub struct Services {
    pub client: Client,
    pub heartbeat: Heartbeat,
    pub clock: Arc<dyn Clock>,
    /// For ids and jitter.
    pub random: Arc<dyn Random>,
    /// The drivers of all types except the built-in ones.
    pub drivers: Registry,
    /// Installs provider binaries.
    pub installer: Arc<Installer>,
    pub threads: Threads,
    pub metrics: Metrics,
    /// Where the files of modules are kept.
    pub module_directory: PathBuf,
}

impl Services {
    /// The services of a real process. `heartbeat` is the runtime of the Lease and of the HTTP server.
    ///
    /// # Errors
    /// When the API server cannot be configured.
    pub async fn system(options: &Options, heartbeat: Handle) -> Result<Self, ControllerError> {
        if let Err(error) = hide_from_others() {
            tracing::warn!(%error, "other processes of the same user can read the memory of this process");
        }
        let client = options.connect().await.map_err(ControllerError::Connect)?;
        let heartbeat = Heartbeat::start(heartbeat, options).await.map_err(ControllerError::Connect)?;
        let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) = (Arc::new(SystemClock), Arc::new(SystemRandom));
        let install = InstallOptions::from_environment();
        let module_directory = install.cache.join("modules");
        let installer = Arc::new(Installer::new(install));
        // Each provider runs in its own directory and cannot access the others.
        let metrics = Metrics::default();
        let runners = Arc::new(RunnerPods::new(client.clone(), runner_settings(options, &*random), clock.clone()));
        let provider_options = provider_options(options, installer.clone(), &metrics, runners);
        let drivers = Registry::default().with_providers(Arc::new(Providers::new(provider_options, clock.clone())));
        Ok(Self {
            client,
            heartbeat,
            clock,
            random,
            drivers,
            installer,
            threads: Threads::Blocking,
            metrics,
            module_directory,
        })
    }
}

/// Runs until `shutdown`, then until all running calls are recorded.
///
/// # Errors
///
/// When it cannot start, or when it terminates before all running calls are recorded.
pub async fn run(options: Options, surroundings: Services, shutdown: Shutdown) -> Result<(), ControllerError> {
    let Services { client, heartbeat, clock, random, drivers, installer, threads, metrics, module_directory } =
        surroundings;
    let client = pages::limited(&observed(&client, &metrics.requests));
    let pod = options.pod.as_ref().map(|pod| pod.uid.as_str()).unwrap_or_default().into();
    let me = Holder { pod, process: random.uuid().into() };
    let (readiness, ended) = (Readiness::default(), Shutdown::default());
    let mut background = JoinSet::new();
    let ui = live_view(&options).await?;
    let serving = heartbeat.serve(&mut background, &options, &metrics, &readiness, ui, &ended).await;
    serving.map_err(ControllerError::Bind)?;
    let division = Division::new(options.shards);
    let leadership = options.election.map_or_else(|| Leadership::alone(division), |_| Leadership::none(division));
    let (namespaces, opened) = Namespaces::new(&options.limits, random.clone(), leadership.clone());
    let give_up = Shutdown::default();
    let secrets = Secrets::new(client.clone(), options.namespace.as_str(), random.clone(), give_up.clone());
    let watch = Watch {
        client: client.clone(),
        only: None,
        namespaces: namespaces.clone(),
        leadership: leadership.clone(),
        metrics: metrics.watches.clone(),
        random: random.clone(),
        clock: clock.clone(),
        readiness: readiness.clone(),
    };
    let (plans, changed_plans) = mpsc::unbounded_channel();
    let (modules, changed_modules) = Modules::new(namespaces.clone());
    let observed_providers = watch_everything(&mut background, &options, &watch, &secrets, installer, &plans, &modules);

    let journal = Arc::new(ClusterJournal::new(secrets, namespaces.clone()));
    let kubernetes = KubernetesObject::impersonating(client.clone(), OwnerScope::Cluster, clock.clone());
    let drivers = drivers.with_built_in(kubernetes.with_change_sink(report_changes(namespaces.clone())));
    let providers = drivers.providers().cloned();
    let observed = Arc::new(ObservedJournal::new(journal.clone(), metrics.requests.clone()));
    let engine = Engine::new(drivers, observed, clock.clone(), random.clone(), options.limits, me.clone());
    let hooks = Arc::new(JobHooks::new(client.clone(), clock.clone()));
    let engine = Arc::new(engine.with_hooks(hooks).with_threads(threads));
    let host = options.pod.as_ref().map_or_else(|| "process".to_owned(), |pod| pod.name.clone());
    let identity = holders::identity(&host, &me);
    let election = heartbeat.elect(
        options.election,
        |client, times| {
            let (clock, metrics, leadership) = (clock.clone(), metrics.clone(), leadership.clone());
            Elector::new(client, &options.namespace, identity, times, clock, metrics, leadership)
        },
        &shutdown,
        &ended,
    );
    load_modules(&mut background, &watch, providers.clone(), (modules, changed_modules), module_directory);
    check_providers(&mut background, watch, providers.clone(), observed_providers);
    let mut writers = JoinSet::new();
    let (status, status_task) =
        status::writer(client.clone(), leadership.clone(), report_statuses(namespaces.clone()), random.clone());
    let reporter = events::Reporter {
        client: client.clone(),
        instance: host,
        clock: clock.clone(),
        random: random.clone(),
        metrics: metrics.clone(),
    };
    let (events, events_task) = reporter.start();
    writers.spawn(status_task);
    background.spawn(events_task);
    let lease = options.election.unwrap_or_default().lease;
    let context = Arc::new(Context {
        holders: Holders::new(client.clone(), &options.namespace, me, lease, division),
        guard: crd_guard::CrdGuard::new(client.clone()),
        engine,
        journal,
        client,
        accounts: options.accounts(),
        namespace: options.namespace.as_str().into(),
        namespaces,
        status,
        events,
        metrics,
        plannings: Pool::shared(MAX_PLANNINGS),
        provider_plannings: Pool::shared(MAX_PLANNINGS),
        threads,
        leadership,
        plans,
        approval_salt: OnceCell::new(),
        shutdown,
        started: tokio::time::Instant::now(),
    });
    sample(&context);
    background.spawn(previews::run(Arc::clone(&context), changed_plans, readiness.clone()));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), namespace = options.namespace, "controller started");
    let drained = supervise::supervise(&context, opened, &readiness, &give_up, options.grace).await;

    let lost = context.journal.report_lost();
    if let Some(providers) = providers {
        providers.close().await;
    }
    // All running calls are recorded. After the last status, another replica may take over.
    drop(context);
    finish(writers, election, &ended).await;
    background.shutdown().await;
    tracing::info!(drained, "controller stopped");
    outcome(lost, drained)
}

/// What watches do with each change of an object.
fn report_changes(namespaces: Arc<Namespaces>) -> Arc<dyn Fn(ObjectChange) + Send + Sync> {
    Arc::new(move |change| namespaces.apply(&change.namespace, Event::ObjectSeen(change.address, change.seen)))
}

/// What the writer of statuses does after each write.
fn report_statuses(namespaces: Arc<Namespaces>) -> status::WriteCallback {
    Arc::new(move |target, digest, outcome| {
        let (name, uid) = (target.name.clone(), target.uid.clone());
        namespaces.apply(&target.namespace, Event::StatusWritten { name, uid, digest, outcome });
    })
}

/// Adds the metrics of what is only counted for them.
fn sample(context: &Context) {
    let permits = context.metrics.permits.clone();
    let (engine, plannings) = (context.engine.clone(), context.plannings.clone());
    let provider_plannings = context.provider_plannings.clone();
    context.metrics.sample(move || {
        permits.set("calls", &engine.permit_usage());
        permits.set("plans", &plannings.usage());
        permits.set("provider_plans", &provider_plannings.usage());
    });
    if let Some(providers) = context.engine.drivers.providers().cloned() {
        let metrics = context.metrics.providers.clone();
        context.metrics.sample(move || {
            let processes = providers.processes();
            let measured = processes.iter().map(|process| ProcessSample {
                provider: process.name().to_owned(),
                memory: process.memory().unwrap_or_default(),
                in_pod: process.is_remote(),
            });
            metrics.set_processes(measured);
        });
    }
}

/// Makes the programs of Modules, now and when one changes.
fn load_modules(
    tasks: &mut JoinSet<()>,
    watch: &Watch,
    providers: Option<Arc<Providers>>,
    (modules, changed): (Arc<Modules>, mpsc::UnboundedReceiver<ModuleKey>),
    directory: PathBuf,
) {
    let installed = watch.namespaces.installed_providers();
    let (clock, random) = (watch.clock.clone(), watch.random.clone());
    let services = modules::Services { providers, directory, clock, random };
    tasks.spawn(modules::run(modules, changed, installed, services));
}

fn check_providers(
    tasks: &mut JoinSet<()>,
    watch: Watch,
    providers: Option<Arc<Providers>>,
    observed: mpsc::UnboundedReceiver<ObservedProvider>,
) {
    let Some(providers) = providers else { return };
    let Watch { client, namespaces, leadership, clock, random, .. } = watch;
    tasks.spawn(report_available_processes(providers.clone(), namespaces));
    tasks.spawn(ProviderChecks { client, providers, leadership, clock, random }.run(observed));
}

/// Reports to namespaces in which a provider process could not start that it can.
async fn report_available_processes(providers: Arc<Providers>, namespaces: Arc<Namespaces>) {
    loop {
        for namespace in providers.process_available().await {
            namespaces.process_available(&namespace);
        }
    }
}

/// Waits for the last status writes, then releases the Lease: another replica may take over after the last status.
async fn finish(mut writers: JoinSet<()>, mut election: JoinSet<()>, ended: &Shutdown) {
    let last_words = async { while writers.join_next().await.is_some() {} };
    if tokio::time::timeout(FINAL_WRITES_LIMIT, last_words).await.is_err() {
        tracing::warn!("could not write the last status in time; the next leader writes it");
    }
    ended.trigger();
    let handed_over = async { while election.join_next().await.is_some() {} };
    if tokio::time::timeout(FINAL_WRITES_LIMIT, handed_over).await.is_err() {
        tracing::warn!("could not release the Lease in time; it expires");
    }
}

/// The result of the process.
fn outcome(lost: usize, drained: bool) -> Result<(), ControllerError> {
    match (lost, drained) {
        (0, true) => Ok(()),
        (0, false) => Err(ControllerError::CallsAborted),
        (lost, _) => Err(ControllerError::ResultsLost(lost)),
    }
}

/// The limits and the confinement of providers. All their memory limits together fit into the container.
fn provider_options(
    options: &Options,
    installer: Arc<Installer>,
    metrics: &Metrics,
    runners: Arc<RunnerPods>,
) -> ProviderOptions {
    let ProviderProcesses { total, memory: each } = options.provider_processes;
    let per_namespace = (total / 4).max(1);
    // The controller itself needs the rest.
    let memory = memory_limit().map_or(u64::MAX, |limit| limit / 4 * 3);
    let each = each.min(memory);
    let defaults = ProviderOptions::new(installer);
    let pool = PoolOptions { places: PlaceLimits { total, per_namespace, memory }, max_memory: each, ..defaults.pool };
    ProviderOptions {
        confinement: Confinement::of_controller(options.allow_unconfined_providers),
        limits: plugin::Limits { memory: Some(each), response: MAX_RESPONSE, ..defaults.limits },
        pool,
        observer: Arc::new(metrics.providers.clone()),
        runners: Some(runners),
        ..defaults
    }
}

/// What the Pods of providers share.
fn runner_settings(options: &Options, random: &dyn Random) -> RunnerSettings {
    let account = options.pod.as_ref().map(|pod| &pod.service_account);
    RunnerSettings {
        image: options.runner_image.clone(),
        default_account: options.default_service_account.as_str().into(),
        own_account: account.map(|account| (account.namespace.clone(), account.name.clone())),
        controller: random.uuid().into(),
    }
}

/// The live view, if it is switched on. Its requests have the credentials of its users, and none of the controller.
async fn live_view(options: &Options) -> Result<Option<axum::Router>, ControllerError> {
    if !options.ui {
        return Ok(None);
    }
    let client = options.connect_without_credentials().await.map_err(ControllerError::Connect)?;
    let users = Users::new(client, &options.namespace);
    Ok(Some(http::on_runtime(Server::new(Arc::new(users)).router(), Handle::current())))
}

/// Starts all watches. Returns the Providers that they deliver.
fn watch_everything(
    tasks: &mut JoinSet<()>,
    options: &Options,
    watch: &Watch,
    secrets: &Secrets,
    installer: Arc<Installer>,
    plans: &mpsc::UnboundedSender<PlanEvent>,
    modules: &Arc<Modules>,
) -> mpsc::UnboundedReceiver<ObservedProvider> {
    let (namespaces, random) = (watch.namespaces.clone(), watch.random.clone());
    let only = options.watch_namespaces.clone();
    tasks.spawn(watch.follow(Records::new(&options.namespace, only, namespaces, secrets.clone(), random)));
    for only in options.watched() {
        let watch = Watch { only, ..watch.clone() };
        tasks.spawn(watch.follow(NamespaceObjects));
        tasks.spawn(watch.follow(DesiredObjects::<api::ProviderConfig>::new(options.accounts())));
        tasks.spawn(watch.follow(WatchedModules::new(modules.clone(), options.accounts())));
        tasks.spawn(watch.follow(DesiredObjects::<api::DataSource>::new(options.accounts())));
        tasks.spawn(watch.follow(DesiredObjects::<api::Resource>::new(options.accounts())));
        tasks.spawn(watch.follow(Plans::new(plans.clone())));
    }
    let (send, observed) = mpsc::unbounded_channel();
    tasks.spawn(watch.follow(watch::Providers::new(installer, send)));
    observed
}
