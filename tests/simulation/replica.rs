//! One process of the controller, with its Pod.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use purlin::controller::{self, ControllerError, ElectionTimes, Options, Pod, Surroundings};
use purlin::driver::Registry;
use purlin::execute::Limits;
use purlin::install::{InstallOptions, Installer};
use purlin::process::{Shutdown, Threads};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::apiserver::Cluster;
use crate::judge::Judge;
use crate::outside::{Line, Outside};
use crate::random::{Drawn, SimulatedClock};
use crate::tap::Tap;

/// Where the controller lives, with its records and its Lease.
pub(crate) const HOME: &str = "purlin-system";

/// What all replicas share.
#[derive(Clone)]
pub(crate) struct Surrounded {
    pub(crate) seed: u64,
    pub(crate) began: Instant,
    pub(crate) cluster: Cluster,
    pub(crate) outside: Arc<Outside>,
    pub(crate) judge: Arc<Judge>,
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
    /// Starts a process in a Pod of its own. No other one ever has its name.
    pub(crate) fn start(around: &Surrounded, name: &str, skew: SignedDuration) -> Self {
        let uid = around.cluster.with(|server, now| {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "namespace": HOME, "name": name },
                "spec": { "containers": [{ "name": "purlin", "image": "purlin" }] },
            });
            server.insert(now, pod).value["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
        });
        Self::start_in(around, name, Pod { name: name.to_owned(), uid }, skew)
    }

    /// Starts a process in a Pod that there is, as its kubelet does after a crash.
    pub(crate) fn start_in(around: &Surrounded, name: &str, pod: Pod, skew: SignedDuration) -> Self {
        let name: Arc<str> = name.into();
        let wire = around.cluster.wire(&name);
        let tap = Tap { line: wire, judge: around.judge.clone(), replica: name.clone() };
        let scripted = Arc::new(Line::new(around.outside.clone(), name.clone()));
        let surroundings = Surroundings {
            client: kube::Client::new(tap, "default"),
            clock: Arc::new(SimulatedClock::new(around.began, skew)),
            random: Arc::new(Drawn::new(around.seed, &name)),
            // The family serves its types; as what stands for the programs of providers it takes their settings, too.
            drivers: Registry::default().with_family("scripted", scripted.clone()).with_providers(scripted),
            installer: Arc::new(Installer::new(InstallOptions::from_environment())),
            threads: Threads::Caller,
        };
        let times = ElectionTimes::default();
        let options = Options {
            kubeconfig: None,
            context: None,
            namespace: HOME.to_owned(),
            pod: Some(pod.clone()),
            watch_namespaces: Vec::new(),
            default_service_account: "default".to_owned(),
            limits: Limits { lease_duration: times.lease, ..Limits::default() },
            grace: Duration::from_mins(2),
            metrics_address: None,
            election: Some(times),
        };
        let shutdown = Shutdown::default();
        let mut process = JoinSet::new();
        process.spawn(controller::run(options, surroundings, shutdown.clone()));
        around.judge.note(&format!("{name} starts"));
        Self { name, pod, is_stopping: false, shutdown, process }
    }

    /// Whether the process has ended by itself, and with what.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self.process.try_join_next()? {
            Ok(Ok(())) => Some("it stopped".to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(format!("it failed by a fault of Purlin: {error}")),
        }
    }

    /// Kills it: whatever it was doing is cut off where it is. Its Pod goes.
    pub(crate) async fn kill(self, around: &Surrounded) {
        let pod = self.crash(around).await;
        delete_pod(around, &pod);
    }

    /// Kills it. Its Pod stays, for the process that comes next.
    pub(crate) async fn crash(mut self, around: &Surrounded) -> Pod {
        around.judge.note(&format!("{} is killed", self.name));
        self.process.shutdown().await;
        around.cluster.disconnect(&self.name);
        self.pod
    }

    /// Asks it to stop, and does not wait for that.
    pub(crate) fn ask_to_stop(&mut self, around: &Surrounded) {
        around.judge.note(&format!("{} is asked to stop", self.name));
        self.is_stopping = true;
        self.shutdown.trigger();
    }

    /// Asks it to stop, and waits for that.
    pub(crate) async fn stop(mut self, around: &Surrounded) {
        self.ask_to_stop(around);
        if let Some(Err(error)) = self.process.join_next().await {
            around.judge.object(&format!("{} failed while it stopped: {error}", self.name));
        }
        around.judge.note(&format!("{} has stopped", self.name));
        around.cluster.disconnect(&self.name);
        delete_pod(around, &self.pod);
    }
}

pub(crate) fn delete_pod(around: &Surrounded, pod: &Pod) {
    let path = format!("/api/v1/namespaces/{HOME}/pods/{}", pod.name);
    around.cluster.with(|server, now| server.erase(now, &path));
}
