//! `purlin controller`.

use std::convert::Infallible;

use tokio::runtime::Handle;

use crate::cli::args::{ControllerArgs, Listening};
use crate::cli::failure::{Exit, Failure};
use controller::Services;
use controller::options::{ElectionTimes, Options, ProviderProcesses, own_namespace, own_pod};
use model::Quota;
use process::{Shutdown, panics, telemetry};
use runtime::execute::Limits;
use tfprovider::plugin;

/// Runs until the controller is shut down. `heartbeat` is the runtime of the Lease and of the HTTP server.
pub async fn run(args: ControllerArgs, heartbeat: Handle) -> anyhow::Result<Exit> {
    telemetry::init(args.log_format.into(), args.log_level.as_deref())?;
    panics::log_panics();
    let options = options(args)?;
    let shutdown = Shutdown::default();
    let signals = shutdown.clone().on_signals();
    let orphans = async {
        if let Err(error) = plugin::end_orphans().await {
            tracing::warn!(%error, "processes that a provider leaves behind are not ended if they hide");
        }
        std::future::pending::<Infallible>().await
    };
    let controller = async {
        let surroundings = Services::system(&options, heartbeat).await?;
        controller::run(options, surroundings, shutdown).await
    };
    tokio::select! {
        ended = controller => ended?,
        failed = signals => failed?,
        never = orphans => match never {},
    }
    Ok(Exit::Success)
}

fn options(args: ControllerArgs) -> anyhow::Result<Options> {
    let namespace = args.namespace.or_else(own_namespace).ok_or_else(|| {
        Failure::hinted("the namespace of the records is not known outside a Pod", "specify it with --namespace")
    })?;
    let pod = own_pod().map_err(|variable| {
        let hint = "set it in the Pod with the downward API, as the chart does";
        Failure::hinted(format!("the environment variable {variable} is not set"), hint)
    })?;
    let election = args.leader_elect.then_some(ElectionTimes {
        lease: args.lease_duration,
        renew: args.lease_renew_deadline,
        retry: args.lease_retry_period,
    });
    if election.is_some_and(|times| times.lease <= times.renew || times.renew <= times.retry) {
        return Err(Failure::hinted(
            "invalid lease times: a replica must retry a renewal, and then give up, before its lease expires",
            "set --lease-duration > --lease-renew-deadline > --lease-retry-period",
        ));
    }
    Ok(Options {
        kubeconfig: args.kubeconfig,
        context: args.context,
        namespace,
        pod,
        watch_namespaces: args.watch_namespaces,
        default_service_account: args.default_service_account,
        limits: Limits { quota: args.namespace_quota.or(Quota::DEFAULT), ..Limits::of(args.concurrency as usize) },
        provider_processes: ProviderProcesses {
            total: args.max_provider_processes as usize,
            memory: args.provider_memory,
        },
        runner_image: args.runner_image,
        allow_unconfined_providers: args.allow_unconfined_providers,
        grace: args.grace_period,
        metrics_address: match args.metrics_address {
            Listening::On(address) => Some(address),
            Listening::Off => None,
        },
        ui: args.ui,
        shards: args.shards,
        election,
    })
}
