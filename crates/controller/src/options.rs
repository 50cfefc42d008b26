use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use drivers::kubernetes_object::{client, inference_problem, kubeconfig_problem};
use engine::load::{ServiceAccount, ServiceAccounts};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use runtime::execute::Limits;

/// The options of the controller: the flags of `purlin controller` as values.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kubeconfig; `None`: the service account in a Pod, otherwise `KUBECONFIG` or `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; `None`: its current context.
    pub context: Option<String>,
    /// The namespace of the records and of the Leases.
    pub namespace: String,
    /// The Pod of this process; `None` outside of a cluster.
    pub pod: Option<Pod>,
    /// The namespaces to watch; empty: all.
    pub watch_namespaces: Vec<String>,
    /// The service account of built-in drivers for Resources that name none.
    pub default_service_account: String,
    /// The concurrency limits.
    pub limits: Limits,
    /// The image of the Pods of providers; `None`: providers cannot run in Pods.
    pub runner_image: Option<String>,
    /// Whether providers start also if the kernel cannot confine them.
    pub allow_unconfined_providers: bool,
    /// The limits of provider processes.
    pub provider_processes: ProviderProcesses,
    /// How long a shutdown waits for running calls.
    pub grace: Duration,
    /// The address for metrics and health; `None`: not served.
    pub metrics_address: Option<SocketAddr>,
    /// Whether the live view is served at that address too.
    pub ui: bool,
    /// Into how many shards the namespaces are divided, from 1 to 64.
    pub shards: u16,
    /// The election of the replicas that hold the shards; `None`: the caller guarantees that this is the only replica.
    pub election: Option<ElectionTimes>,
}

/// The limits of provider processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderProcesses {
    /// The maximum number of processes. One namespace gets a quarter of them.
    pub total: usize,
    /// The memory limit in bytes of each process whose Provider sets none.
    pub memory: u64,
}

/// The Pod of this process, from the downward API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    pub service_account: ServiceAccount,
}

impl Options {
    /// The service accounts that objects act as.
    pub fn accounts(&self) -> ServiceAccounts {
        ServiceAccounts {
            default: self.default_service_account.as_str().into(),
            own: self.pod.as_ref().map(|pod| pod.service_account.clone()),
        }
    }

    /// The namespaces of each watch; `None`: all namespaces.
    pub fn watched(&self) -> impl Iterator<Item = Option<String>> + use<> {
        let everywhere = self.watch_namespaces.is_empty().then_some(None);
        everywhere.into_iter().chain(self.watch_namespaces.clone().into_iter().map(Some))
    }

    /// Connects to the API server.
    ///
    /// # Errors
    /// Why the API server cannot be configured.
    pub async fn connect(&self) -> Result<Client, String> {
        client(self.client_config().await?).map_err(|error| error.to_string())
    }

    /// The same without any credentials, for requests that have those of a user.
    ///
    /// # Errors
    /// Why the API server cannot be configured.
    pub async fn connect_without_credentials(&self) -> Result<Client, String> {
        let mut config = self.client_config().await?;
        config.auth_info = AuthInfo::default();
        process::client(config).map_err(|error| error.to_string())
    }

    async fn client_config(&self) -> Result<Config, String> {
        let choice = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => match Kubeconfig::read_from(path) {
                Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &choice).await,
                Err(error) => Err(error),
            },
            (None, Some(_)) => Config::from_kubeconfig(&choice).await,
            (None, None) => return Config::infer().await.map_err(|error| inference_problem(&error)),
        };
        config.map_err(|error| kubeconfig_problem(&error))
    }
}

/// The times of the election, with the usual meaning of Kubernetes controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionTimes {
    /// How long other replicas wait after the last renewal that they saw.
    pub lease: Duration,
    /// How long a replica tries to renew before it stops its shards. Less than `lease`.
    pub renew: Duration,
    /// The interval between attempts.
    pub retry: Duration,
}

impl Default for ElectionTimes {
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

/// The namespace file of a Pod, the fallback for `POD_NAMESPACE`.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of this Pod: `POD_NAMESPACE`, or that of the mounted service account.
pub fn own_namespace() -> Option<String> {
    variable("POD_NAMESPACE")
        .or_else(|| std::fs::read_to_string(NAMESPACE_FILE).ok().map(|text| text.trim().to_owned()))
        .filter(|name| !name.is_empty())
}

/// The Pod of this process: `POD_NAME`, `POD_UID` and `POD_SERVICE_ACCOUNT`. `None` outside of a cluster.
///
/// # Errors
/// The name of a variable that is missing in a Pod: without it, objects could act as the controller.
pub fn own_pod() -> Result<Option<Pod>, &'static str> {
    const SERVICE_ACCOUNT: &str = "POD_SERVICE_ACCOUNT";
    let (Some(name), Some(uid)) = (variable("POD_NAME"), variable("POD_UID")) else { return Ok(None) };
    let namespace = own_namespace().ok_or("POD_NAMESPACE")?.into();
    let service_account = variable(SERVICE_ACCOUNT).ok_or(SERVICE_ACCOUNT)?.into();
    let service_account = ServiceAccount { namespace, name: service_account };
    Ok(Some(Pod { name, uid, service_account }))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
