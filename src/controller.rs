//! The controller: watches Resources and records, keeps the real objects in line with them, and says so in status.
//!
//! ```text
//! watch --events--> world: one index per namespace --wake--> namespace task: plan, adopt, run --> status, events
//!                                                                |
//!                        lease: may steps start? ----------------+
//! ```
//!
//! The index, the settle window, the summary and the decisions about leases and holders are pure and synchronous; the
//! tasks around them only carry things to and fro.

pub mod context;
pub mod events;
pub mod guard;
pub mod holders;
pub mod http;
pub mod inputs;
pub mod lease;
pub mod metrics;
pub mod namespace;
pub mod options;
pub mod providers;
pub mod status;
pub mod supervise;
pub mod watch;
pub mod world;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use self::context::Context;
use self::holders::Holders;
use self::lease::{Elector, Leadership};
use self::providers::{ProviderChecks, Seen};
use self::watch::Watch;
use self::world::World;
use crate::api;
use crate::driver::hook::job::JobHooks;
use crate::driver::kubernetes_object::{KubernetesObject, OwnerScope};
use crate::driver::{Noticed, ProviderOptions, Providers, Registry};
use crate::execute::Engine;
use crate::install::{InstallOptions, Installer};
use crate::load::ProviderSpec;
use crate::model::Holder;
use crate::plugin::{Confine, launcher};
use crate::process::{Clock, Random, Readiness, Shutdown, SystemClock, SystemRandom, Threads};
use crate::reconcile::index::Event;
use crate::store::{ClusterJournal, Secrets};

pub use options::{ElectionTimes, Options, Pod};

/// How many plannings compute at once, each on a thread of its own: far fewer than the threads the runtime allows, so
/// that some are always left for what plannings wait for.
const PLANNINGS: usize = 64;
/// How long the last status writes and the hand-over may take after everything else has ended.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Why the controller ended other than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// There is no way to the API server.
    #[error("cannot connect to a cluster: {0} (hint: set `--kubeconfig`, or run in a Pod)")]
    Connect(String),
    /// The address for metrics and health cannot be bound.
    #[error("cannot serve metrics and health: {0}")]
    Bind(#[source] std::io::Error),
    /// The signal handlers cannot be installed.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    /// The stop did not wait for all running calls.
    #[error("stopped before all running calls had ended; the next start settles them")]
    CutOff,
    /// Records could not be written until the end.
    #[error("stopped before the results of {0} calls could be recorded; the log names the objects")]
    Lost(usize),
}

/// What a controller works with: how it reaches the API server, its clock and randomness, and who serves which type.
/// A simulation brings others than [`Surroundings::system`].
pub struct Surroundings {
    /// The API server.
    pub client: Client,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness: ids, jitter.
    pub random: Arc<dyn Random>,
    /// All types besides the built-in ones.
    pub drivers: Registry,
    /// How the programs of providers are installed.
    pub installer: Arc<Installer>,
    /// Where plans are computed.
    pub threads: Threads,
}

impl Surroundings {
    /// Those of a real process.
    ///
    /// # Errors
    /// When there is no way to the API server.
    pub async fn system(options: &Options) -> Result<Self, ControllerError> {
        let client = connect(options).await?;
        let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) = (Arc::new(SystemClock), Arc::new(SystemRandom));
        let installer = Arc::new(Installer::new(InstallOptions::from_environment()));
        // Each provider has a folder of its own to run in, and reaches no other.
        let confined = ProviderOptions { confine: Some(Confine::system()), ..ProviderOptions::new(installer.clone()) };
        let drivers = Registry::default().with_providers(Arc::new(Providers::new(confined, clock.clone())));
        Ok(Self { client, clock, random, drivers, installer, threads: Threads::Blocking })
    }
}

/// Runs until `shutdown`, then until all running calls are recorded.
///
/// # Errors
///
/// When it cannot begin, or when the end had to be forced.
pub async fn run(options: Options, surroundings: Surroundings, shutdown: Shutdown) -> Result<(), ControllerError> {
    let Surroundings { client, clock, random, drivers, installer, threads } = surroundings;
    let me = Holder {
        pod: options.pod.as_ref().map(|pod| pod.uid.as_str()).unwrap_or_default().into(),
        process: random.uuid().into(),
    };
    let (metrics, readiness, ended) = (metrics::Metrics::default(), Readiness::default(), Shutdown::default());
    let mut background = JoinSet::new();
    serve(&mut background, &options, &metrics, &readiness, &ended).await?;
    let (world, opened) = World::new(options.limits.per_namespace, random.clone());
    let (give_up, stop) = tokio::sync::watch::channel(false);
    let secrets = Secrets::new(client.clone(), options.namespace.as_str(), random.clone(), stop);
    watch_everything(&mut background, &options, &client, &world, &secrets, &metrics, &random, &readiness);
    let watch = Watch { world: world.clone(), metrics: metrics.clone(), random: random.clone() };
    let (tell, seen) = mpsc::unbounded_channel();
    let tell = move |object: &api::Provider, spec: &Arc<ProviderSpec>| {
        // Before the Provider is used: what was installed once is installed again.
        installer.hold(&spec.provider, providers::locked(object));
        // Nobody listens while the process ends.
        let _ = tell.send(Seen { object: object.clone(), spec: spec.clone() });
    };
    background.spawn(watch.providers(client.clone(), tell, readiness.gate("providers")));

    let journal = Arc::new(ClusterJournal::new(secrets, world.clone()));
    let told = world.clone();
    let tell =
        move |noticed: Noticed| told.apply(&noticed.namespace, Event::ObjectNoticed(noticed.address, noticed.gone));
    let kubernetes = KubernetesObject::impersonating(client.clone(), OwnerScope::Cluster, clock.clone());
    let drivers = drivers.with_built_in(kubernetes.telling(Arc::new(tell)));
    let providers = drivers.providers().cloned();
    let engine = Engine::new(drivers, journal.clone(), clock.clone(), random.clone(), options.limits, me.clone());
    let engine = Arc::new(engine.with_hooks(Arc::new(JobHooks::new(client.clone(), clock.clone()))));
    let host = options.pod.as_ref().map_or_else(|| "process".to_owned(), |pod| pod.name.clone());
    let (leadership, election) = elect(&options, &client, holders::identity(&host, &me), &clock, &ended);
    if let Some(providers) = providers.clone() {
        let checks = ProviderChecks {
            client: client.clone(),
            providers,
            leadership: leadership.clone(),
            clock: clock.clone(),
            random: random.clone(),
            confines: launcher::can_confine(),
        };
        background.spawn(checks.run(seen));
    }
    let mut writers = JoinSet::new();
    let written = world.clone();
    let report = move |target: &status::Target, digest, version| {
        let (name, uid) = (target.name.clone(), target.uid.clone());
        written.apply(&target.namespace, Event::StatusWritten { name, uid, digest, version });
    };
    let (status, status_task) =
        status::writer(client.clone(), leadership.clone(), Arc::new(report), random.clone(), metrics.clone());
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
    let context = Arc::new(Context {
        holders: Holders::new(client.clone(), &options.namespace, me, options.limits.lease_duration),
        guard: guard::Guard::new(client.clone()),
        engine,
        journal,
        client,
        default_service_account: options.default_service_account.as_str().into(),
        namespace: options.namespace.as_str().into(),
        world,
        status,
        events,
        metrics,
        plannings: Semaphore::new(PLANNINGS),
        asking_plannings: Semaphore::new(PLANNINGS),
        threads,
        leadership,
        shutdown,
        started: tokio::time::Instant::now(),
    });
    tracing::info!(version = env!("CARGO_PKG_VERSION"), namespace = options.namespace, "controller started");
    let drained = supervise::supervise(&context, opened, &readiness, &give_up, options.grace).await;

    let lost = context.journal.report_lost();
    if let Some(providers) = providers {
        providers.close().await;
    }
    // Everything that ran is recorded. Once the last status is written as well, others may take over.
    drop(context);
    let last_words = async { while writers.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_WORDS, last_words).await.is_err() {
        tracing::warn!("the last status could not be written in time; the next leader writes it");
    }
    ended.trigger();
    let mut election = election;
    let handed_over = async { while election.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_WORDS, handed_over).await.is_err() {
        tracing::warn!("the Lease could not be given up in time; it runs out");
    }
    background.shutdown().await;
    tracing::info!(drained, "controller stopped");
    outcome(lost, drained)
}

/// Serves metrics and health, where that is asked for.
async fn serve(
    tasks: &mut JoinSet<()>,
    options: &Options,
    metrics: &metrics::Metrics,
    readiness: &Readiness,
    ended: &Shutdown,
) -> Result<(), ControllerError> {
    let Some(address) = options.metrics_address else { return Ok(()) };
    let listener = http::bind(address).await.map_err(ControllerError::Bind)?;
    let (metrics, readiness, ended) = (metrics.clone(), readiness.clone(), ended.clone());
    tasks.spawn(async move {
        if let Err(error) = http::serve(listener, metrics, readiness, ended).await {
            tracing::error!(%error, "metrics and health are no longer served");
        }
    });
    Ok(())
}

/// What the end of the process says of the calls that it made.
fn outcome(lost: usize, drained: bool) -> Result<(), ControllerError> {
    match (lost, drained) {
        (0, true) => Ok(()),
        (0, false) => Err(ControllerError::CutOff),
        (lost, _) => Err(ControllerError::Lost(lost)),
    }
}

async fn connect(options: &Options) -> Result<Client, ControllerError> {
    let told = |error: &dyn std::fmt::Display| ControllerError::Connect(error.to_string());
    let choice = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    let config = match (&options.kubeconfig, &options.context) {
        (Some(path), _) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| told(&error))?;
            Config::from_custom_kubeconfig(kubeconfig, &choice).await.map_err(|error| told(&error))?
        }
        (None, Some(_)) => Config::from_kubeconfig(&choice).await.map_err(|error| told(&error))?,
        (None, None) => Config::infer().await.map_err(|error| told(&error))?,
    };
    Client::try_from(config).map_err(|error| told(&error))
}

#[expect(clippy::too_many_arguments, reason = "the parts of one composition, called once")]
fn watch_everything(
    tasks: &mut JoinSet<()>,
    options: &Options,
    client: &Client,
    world: &Arc<World>,
    secrets: &Secrets,
    metrics: &metrics::Metrics,
    random: &Arc<dyn Random>,
    readiness: &Readiness,
) {
    let watch = Watch { world: world.clone(), metrics: metrics.clone(), random: random.clone() };
    let only = options.watch_namespaces.clone();
    let serves = move |namespace: &str| only.is_empty() || only.iter().any(|other| other == namespace);
    let api: Api<Secret> = Api::namespaced(client.clone(), &options.namespace);
    tasks.spawn(watch.clone().records(api, secrets.clone(), serves, readiness.gate("records")));
    let all = options.watch_namespaces.is_empty().then_some(None);
    let each = all.into_iter().chain(options.watch_namespaces.iter().cloned().map(Some));
    for namespace in each {
        let of = namespace.as_deref().map(|name| format!(" of {name}")).unwrap_or_default();
        let gate = readiness.gate(format!("namespaces{of}"));
        tasks.spawn(watch.clone().namespaces(client.clone(), namespace.clone(), gate));
        let account: Arc<str> = options.default_service_account.as_str().into();
        let gate = readiness.gate(format!("providerconfigs{of}"));
        let configs = watch.clone().provider_configs(client.clone(), namespace.clone(), account.clone(), gate);
        tasks.spawn(configs);
        let gate = readiness.gate(format!("datasources{of}"));
        tasks.spawn(watch.clone().data_sources(client.clone(), namespace.clone(), account.clone(), gate));
        let gate = readiness.gate(format!("resources{of}"));
        tasks.spawn(watch.clone().resources(client.clone(), namespace, account, gate));
    }
}

fn elect(
    options: &Options,
    client: &Client,
    identity: String,
    clock: &Arc<dyn Clock>,
    ended: &Shutdown,
) -> (Leadership, JoinSet<()>) {
    let mut tasks = JoinSet::new();
    let Some(times) = options.election else { return (Leadership::alone(), tasks) };
    let elector = Elector::new(client.clone(), &options.namespace, identity, times, clock.clone());
    let leadership = elector.leadership();
    tasks.spawn(elector.run(ended.clone()));
    (leadership, tasks)
}
