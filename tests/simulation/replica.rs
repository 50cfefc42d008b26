//! One process of the controller, with its Pod.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use apiserver::Cluster;
use jiff::{SignedDuration, Timestamp};
use purlin::controller::holders::CONTAINER;
use purlin::controller::metrics::Metrics;
use purlin::controller::{self, ControllerError, ElectionTimes, Heartbeat, Options, Pod, ProviderProcesses, Services};
use purlin::driver::Registry;
use purlin::execute::Limits;
use purlin::install::{InstallOptions, Installer};
use purlin::load::ServiceAccount;
use purlin::process::{Clock, Shutdown, Threads};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::judge::Judge;
use crate::observer::Observer;
use crate::outside::{FaultyDriver, Outside};
use crate::random::{SeededRandom, SimulatedClock};

/// The namespace of the controller, its records and its Lease.
pub(crate) const HOME: &str = "purlin-system";

/// The state that all replicas share.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(crate) seed: u64,
    pub(crate) began: Instant,
    pub(crate) cluster: Cluster,
    pub(crate) outside: Arc<Outside>,
    pub(crate) judge: Arc<Judge>,
    /// The option `--shards` of the replicas that start from now on.
    pub(crate) shards: Arc<AtomicU16>,
    pub(crate) limits: Limits,
}

/// A running controller.
pub(crate) struct Replica {
    pub(crate) name: Arc<str>,
    pub(crate) pod: Pod,
    pub(crate) is_stopping: bool,
    shutdown: Shutdown,
    process: JoinSet<Result<(), ControllerError>>,
}

impl Replica {
    /// Starts a process in a new Pod. `name` must be unique.
    pub(crate) fn start(env: &Environment, name: &str, skew: SignedDuration) -> Self {
        let uid = env.cluster.with(|server, now| {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "namespace": HOME, "name": name },
                "spec": { "containers": [{ "name": CONTAINER, "image": "purlin" }] },
            });
            server.insert(now, pod).value["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
        });
        let service_account = ServiceAccount { namespace: HOME.into(), name: "purlin".into() };
        Self::start_in(env, name, Pod { name: name.to_owned(), uid, service_account }, skew)
    }

    /// Starts a process in an existing Pod, as the kubelet does after a crash.
    pub(crate) fn start_in(env: &Environment, name: &str, pod: Pod, skew: SignedDuration) -> Self {
        let name: Arc<str> = name.into();
        let clock = SimulatedClock::new(env.began, skew);
        report_start(env, &pod, &clock);
        let connection = env.cluster.connection(&name);
        let tap = Observer { line: connection, judge: env.judge.clone(), replica: name.clone() };
        let scripted = Arc::new(FaultyDriver::new(env.outside.clone(), name.clone()));
        let client = kube::Client::new(tap, "default");
        let surroundings = Services {
            heartbeat: Heartbeat::shared(client.clone()),
            client,
            clock: Arc::new(clock),
            random: Arc::new(SeededRandom::new(env.seed, &name)),
            drivers: Registry::default().with_family("scripted", scripted),
            installer: Arc::new(Installer::new(InstallOptions::from_environment())),
            threads: Threads::Caller,
            metrics: Metrics::default(),
            module_directory: std::env::temp_dir().join("purlin-simulation-modules"),
        };
        let times = ElectionTimes::default();
        let options = Options {
            kubeconfig: None,
            context: None,
            namespace: HOME.to_owned(),
            pod: Some(pod.clone()),
            watch_namespaces: Vec::new(),
            runner_image: None,
            allow_unconfined_providers: false,
            provider_processes: ProviderProcesses { total: 1, memory: 1 << 30 },
            default_service_account: "default".to_owned(),
            limits: env.limits,
            grace: Duration::from_mins(2),
            ui: false,
            shards: env.shards.load(Ordering::Relaxed),
            metrics_address: None,
            election: Some(times),
        };
        let shutdown = Shutdown::default();
        let mut process = JoinSet::new();
        process.spawn(controller::run(options, surroundings, shutdown.clone()));
        env.judge.note(&format!("{name} starts"));
        Self { name, pod, is_stopping: false, shutdown, process }
    }

    /// Why the process has exited on its own. `None` while it runs.
    pub(crate) fn exit_reason(&mut self) -> Option<String> {
        match self.process.try_join_next()? {
            Ok(Ok(())) => Some("it stopped".to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(format!("it panicked: {error}")),
        }
    }

    /// Kills the process immediately, and deletes its Pod.
    pub(crate) async fn kill(self, env: &Environment) {
        let pod = self.crash(env).await;
        delete_pod(env, &pod);
    }

    /// Kills the process, and keeps its Pod for the next one.
    pub(crate) async fn crash(mut self, env: &Environment) -> Pod {
        env.judge.note(&format!("{} is killed", self.name));
        self.process.shutdown().await;
        env.cluster.disconnect(&self.name);
        self.pod
    }

    /// Requests a shutdown, and does not wait for it.
    pub(crate) fn begin_shutdown(&mut self, env: &Environment) {
        env.judge.note(&format!("{} begins to shut down", self.name));
        self.is_stopping = true;
        self.shutdown.trigger();
    }

    /// Requests a shutdown, and waits for it.
    pub(crate) async fn stop(mut self, env: &Environment) {
        self.begin_shutdown(env);
        if let Some(Err(error)) = self.process.join_next().await {
            env.judge.object(&format!("{} failed while it shut down: {error}", self.name));
        }
        env.judge.note(&format!("{} has shut down", self.name));
        env.cluster.disconnect(&self.name);
        delete_pod(env, &self.pod);
    }
}

/// Reports the start of a process as the kubelet does: with the clock of the node, in seconds.
fn report_start(env: &Environment, pod: &Pod, clock: &dyn Clock) {
    let started = Timestamp::from_second(clock.now().as_second()).unwrap().to_string();
    let status = json!({ "status": { "containerStatuses": [
        { "name": CONTAINER, "image": "purlin", "imageID": "", "ready": true, "restartCount": 0,
          "state": { "running": { "startedAt": started } } },
    ] } });
    let path = format!("/api/v1/namespaces/{HOME}/pods/{}/status", pod.name);
    env.cluster.with(|server, now| server.modify(now, &path, &status));
}

pub(crate) fn delete_pod(env: &Environment, pod: &Pod) {
    let path = format!("/api/v1/namespaces/{HOME}/pods/{}", pod.name);
    env.cluster.with(|server, now| server.erase(now, &path));
}
