//! Runs providers in Pods of the namespaces that they serve: one Pod for each configuration.
//!
//! A Pod is created with the rights of a service account of its namespace, so that the controller needs none of its own. It
//! takes a while until it runs. Callers wait for a short time, then the start goes on without them: the next attempt
//! finds it, and [`RunnerPods::ready`] reports when it has ended.

mod create;
mod manifest;
mod pod_host;
mod pod_state;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::kubernetes_object::server::{Caller, Connection, Server};
use crate::kubernetes_object::wait::ObjectRef;
use model::{Namespace, PodRunner};
use process::{Clock, lock};
use tfprovider::plugin::remote::Package;
use tfprovider::plugin::{Client, Launch, PluginError, PoolKey, RESERVATION, StartError};

/// How long the Pods may take to end when the controller ends.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// How long a request to the API server may take, with its repetitions.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// What all Pods of a controller share.
#[derive(Clone, Debug)]
pub struct RunnerSettings {
    /// The image of the controller itself; `None` if it is not known.
    pub image: Option<String>,
    /// The service account that creates Pods for configurations that name none.
    pub default_account: Arc<str>,
    /// The namespace and name of the controller's service account, which no Pod may use.
    pub own_account: Option<(Namespace, Arc<str>)>,
    /// Identifies this process in the labels of its Pods.
    pub controller: Arc<str>,
}

/// The Pods of a controller.
pub struct RunnerPods {
    server: Server,
    settings: RunnerSettings,
    clock: Arc<dyn Clock>,
    /// The number of the next Pod.
    next: AtomicU64,
    state: Mutex<RunnerState>,
    /// The namespaces in which a start has ended after its callers had gone.
    ready: Mutex<BTreeSet<Namespace>>,
    changed: Notify,
    /// One task for each Pod, from its creation until its end.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct RunnerState {
    closing: bool,
    starting: HashMap<PoolKey, Arc<StartingPod>>,
}

/// A provider to start in a Pod.
pub struct PodRequest {
    pub runner: Arc<PodRunner>,
    /// The name of the provider configuration.
    pub configuration: Arc<str>,
    pub launch: Launch,
    pub package: Package,
    /// The checksum of the files in the package.
    pub hash: String,
    /// Variables of the provider besides those of the Pod.
    pub environment: BTreeMap<String, String>,
    /// The memory limit of the provider in bytes, if it has one.
    pub memory: Option<u64>,
}

impl PodRequest {
    fn start_error(&self, why: StartError) -> PluginError {
        PluginError::Start { provider: self.launch.name.clone(), why }
    }
}

struct StartingPod {
    state: watch::Sender<StartState>,
    /// When it was last asked for.
    asked: Mutex<Timestamp>,
    abandoned: Notify,
}

#[derive(Clone)]
enum StartState {
    /// What the start waits for.
    Waiting(String),
    Ready(Client),
    Failed(PluginError),
}

impl fmt::Debug for RunnerPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerPods").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl RunnerPods {
    /// Creates no Pod.
    pub fn new(client: kube::Client, settings: RunnerSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            server: Server::new(Connection::Ready(client), clock.clone()),
            settings,
            clock,
            next: AtomicU64::new(0),
            state: Mutex::default(),
            ready: Mutex::default(),
            changed: Notify::new(),
            tasks: Mutex::default(),
        }
    }

    /// Returns the provider of a key, which is not configured yet. The first call for a Pod waits for `limit`; after that the
    /// error says what the start waits for, and the start goes on.
    pub(crate) async fn start(
        self: &Arc<Self>,
        key: &PoolKey,
        request: PodRequest,
        limit: Duration,
    ) -> Result<Client, PluginError> {
        let provider = request.launch.name.clone();
        let (starting, is_new) = self.find_or_start(key, request)?;
        *lock(&starting.asked) = self.clock.now();
        let mut state = starting.state.subscribe();
        let ended = state.wait_for(|state| !matches!(state, StartState::Waiting(_)));
        // Later calls do not wait: a plan has many, and they hold the permits of others.
        let limit = if is_new { limit } else { Duration::ZERO };
        let _ = tokio::time::timeout(limit, ended).await;
        let state = starting.state.borrow().clone();
        let ended = match state {
            StartState::Waiting(what) => return Err(PluginError::Waiting { provider, what }),
            StartState::Ready(client) => Ok(client),
            StartState::Failed(error) => Err(error),
        };
        self.forget(key, &Arc::downgrade(&starting));
        ended
    }

    /// Returns the start for a key, and whether it has begun just now.
    fn find_or_start(
        self: &Arc<Self>,
        key: &PoolKey,
        request: PodRequest,
    ) -> Result<(Arc<StartingPod>, bool), PluginError> {
        let mut state = lock(&self.state);
        if state.closing {
            return Err(PluginError::ShuttingDown { provider: request.launch.name });
        }
        if let Some(starting) = state.starting.get(key) {
            return Ok((Arc::clone(starting), false));
        }
        let starting = Arc::new(StartingPod {
            state: watch::Sender::new(StartState::Waiting(format!("a Pod in the namespace `{}`", key.namespace))),
            asked: Mutex::new(self.clock.now()),
            abandoned: Notify::new(),
        });
        state.starting.insert(key.clone(), Arc::clone(&starting));
        drop(state);
        let (pods, task) = (Arc::clone(self), Arc::clone(&starting));
        let key = key.clone();
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { pods.run(key, request, task).await });
        Ok((starting, true))
    }

    /// Creates a Pod, starts the provider in it, and deletes it after the end of the provider.
    async fn run(self: Arc<Self>, key: PoolKey, request: PodRequest, starting: Arc<StartingPod>) {
        let (host, started) = match self.create(&key, &request).await {
            Ok((host, keys)) => {
                let started = tokio::select! {
                    started = self.connect(&host, &request, &keys, &starting.state) => started,
                    () = self.abandoned(&starting) => {
                        self.forget(&key, &Arc::downgrade(&starting));
                        let why = StartError::Runner("it was no longer needed while its Pod started".to_owned());
                        Err(PluginError::Start { provider: request.launch.name.clone(), why })
                    }
                };
                (Some(host), started)
            }
            Err(error) => (None, Err(error)),
        };
        // The provider is killed when nothing holds its client any more, so this task does not.
        let (state, follow) = match started {
            Ok((client, follow)) => (StartState::Ready(client), Some(follow)),
            Err(error) => (StartState::Failed(error), None),
        };
        starting.state.send_replace(state);
        let known = Arc::downgrade(&starting);
        drop(starting);
        self.report_ready(key.namespace.clone().into());
        match (follow, host) {
            (Some(mut follow), _) => {
                if tokio::time::timeout(RESERVATION, &mut follow).await.is_err() {
                    // If nothing has asked for the provider, it ends now.
                    self.forget(&key, &known);
                    follow.await;
                }
            }
            (None, Some(host)) => host.delete().await,
            (None, None) => {}
        }
    }

    /// Removes a start, unless the key belongs to another one.
    fn forget(&self, key: &PoolKey, starting: &Weak<StartingPod>) {
        let mut state = lock(&self.state);
        let is_same = state.starting.get(key).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), starting.as_ptr()));
        let forgotten = if is_same { state.starting.remove(key) } else { None };
        // Its drop may end a provider.
        drop(state);
        drop(forgotten);
    }

    /// Returns when nothing asks for the Pod any more.
    async fn abandoned(&self, starting: &StartingPod) {
        let late = async {
            loop {
                let since = self.clock.now().duration_since(*lock(&starting.asked));
                let left = SignedDuration::try_from(RESERVATION).unwrap_or(SignedDuration::MAX) - since;
                let Ok(left) = Duration::try_from(left) else { return };
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left).await;
            }
        };
        tokio::select! {
            () = late => {}
            () = starting.abandoned.notified() => {}
        }
    }

    /// Whether a namespace is being deleted, so that it accepts no new Pods.
    async fn is_terminating(&self, namespace: &str) -> bool {
        let place = ObjectRef { caller: Caller::Process, collection: "/api/v1/namespaces", name: namespace };
        let namespace = self.server.get(&place, self.server.after(REQUEST_LIMIT)).await;
        matches!(namespace, Ok(Some(namespace)) if !namespace["metadata"]["deletionTimestamp"].is_null())
    }

    fn report_ready(&self, namespace: Namespace) {
        lock(&self.ready).insert(namespace);
        self.changed.notify_one();
    }

    /// Waits until starts have ended, and returns their namespaces.
    pub(crate) async fn ready(&self) -> BTreeSet<Namespace> {
        loop {
            let ready = std::mem::take(&mut *lock(&self.ready));
            if !ready.is_empty() {
                return ready;
            }
            self.changed.notified().await;
        }
    }

    /// Ends the start for a configuration that is outdated.
    pub(crate) fn abandon(&self, key: &PoolKey) {
        if let Some(starting) = lock(&self.state).starting.remove(key) {
            starting.abandoned.notify_one();
        }
    }

    /// Ends all starts, and waits until the Pods of ended providers are deleted. No Pod is created afterwards.
    pub(crate) async fn close(&self) {
        let starting = {
            let mut state = lock(&self.state);
            state.closing = true;
            std::mem::take(&mut state.starting)
        };
        starting.values().for_each(|starting| starting.abandoned.notify_one());
        drop(starting);
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        let tasks_end = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSE_LIMIT, tasks_end).await.is_err() {
            tracing::warn!("could not delete the Pods of all providers in time; they end by themselves");
        }
    }
}
