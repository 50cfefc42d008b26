//! How the controller runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::execute::Limits;

/// How the controller runs. The flags of `purlin controller`, as values.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kubeconfig; `None`: in a Pod its service account, elsewhere `KUBECONFIG` or `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; `None`: its current one.
    pub context: Option<String>,
    /// Where records and the Lease are.
    pub namespace: String,
    /// The Pod this process runs in; `None` outside of a Pod.
    pub pod: Option<Pod>,
    /// The namespaces to serve; empty: all.
    pub watch_namespaces: Vec<String>,
    /// As which service account built-in drivers act when a Resource names none.
    pub default_service_account: String,
    /// How much may happen at once.
    pub limits: Limits,
    /// How long a stop waits for running calls.
    pub grace: Duration,
    /// Where metrics and health are served; `None`: nowhere.
    pub metrics_address: Option<SocketAddr>,
    /// Leader election; `None`: this is the only replica, and the caller answers for that.
    pub election: Option<ElectionTimes>,
}

/// The Pod of this process, from the downward API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
}

/// The times of leader election, with the meaning that all Kubernetes controllers give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionTimes {
    /// How long others wait after the last renewal that they saw.
    pub lease: Duration,
    /// How long the leader tries to renew before it stops to lead. Less than `lease`.
    pub renew: Duration,
    /// How often it is tried.
    pub retry: Duration,
}

impl Default for ElectionTimes {
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

/// Where a Pod finds its namespace when no variable says it.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of the Pod that this process runs in: `POD_NAMESPACE`, or that of the mounted service account.
pub fn own_namespace() -> Option<String> {
    let file = || std::fs::read_to_string(NAMESPACE_FILE).ok().map(|text| text.trim().to_owned());
    variable("POD_NAMESPACE").or_else(file).filter(|name| !name.is_empty())
}

/// The Pod that this process runs in: `POD_NAME` and `POD_UID`.
pub fn own_pod() -> Option<Pod> {
    Some(Pod { name: variable("POD_NAME")?, uid: variable("POD_UID")? })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
