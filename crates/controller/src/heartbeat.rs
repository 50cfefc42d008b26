//! The runtime of the Lease and of the HTTP server. With every thread of the main runtime busy, the Lease is renewed and
//! health checks are answered: otherwise the kubelet would restart the controller, and another replica would take over,
//! because of the work of one tenant.

use axum::Router;
use kube::Client;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::elector::Elector;
use super::http;
use super::metrics::Metrics;
use super::options::{ElectionTimes, Options};
use process::{Readiness, Shutdown};

/// The tasks that show that this process is alive.
pub struct Heartbeat {
    runtime: Handle,
    /// Its connections belong to the runtime.
    client: Client,
}

impl Heartbeat {
    /// Uses the runtime of the caller, as in a simulation, which has only one thread.
    pub fn shared(client: Client) -> Self {
        Self { runtime: Handle::current(), client }
    }

    /// Connects to the API server on a runtime of its own.
    ///
    /// # Errors
    /// Why the API server cannot be configured.
    pub async fn start(runtime: Handle, options: &Options) -> Result<Self, String> {
        let options = options.clone();
        let client = runtime.spawn(async move { options.connect().await }).await;
        let client = client.unwrap_or_else(|error| Err(error.to_string()))?;
        Ok(Self { runtime, client })
    }

    /// Serves metrics, health and the live view until `ended`, if the options have an address.
    ///
    /// # Errors
    /// When the address is in use or not available.
    pub async fn serve(
        &self,
        tasks: &mut JoinSet<()>,
        options: &Options,
        metrics: &Metrics,
        readiness: &Readiness,
        ui: Option<Router>,
        ended: &Shutdown,
    ) -> std::io::Result<()> {
        let Some(address) = options.metrics_address else { return Ok(()) };
        let bound = self.runtime.spawn(http::bind(address)).await;
        let listener = bound.unwrap_or_else(|error| Err(error.into()))?;
        let serve = http::serve(listener, metrics.clone(), readiness.clone(), ui, ended.clone());
        tasks.spawn_on(serve, &self.runtime);
        Ok(())
    }

    /// Gets shards until `shutdown`, and keeps them until `ended`. The tasks end after the release of the Leases. Without
    /// election times, nothing is elected.
    pub fn elect(
        self,
        times: Option<ElectionTimes>,
        elector: impl FnOnce(Client, ElectionTimes) -> Elector,
        shutdown: &Shutdown,
        ended: &Shutdown,
    ) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if let Some(times) = times {
            let elector = elector(self.client, times);
            tasks.spawn_on(elector.run(shutdown.clone(), ended.clone()), &self.runtime);
        }
        tasks
    }
}
