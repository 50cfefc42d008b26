//! Supervises the tasks of all namespaces: starts them while this replica leads there, and waits for their end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};

use super::context::Context;
use super::namespace::NamespaceTask;
use super::namespaces::NamespaceHandle;
use super::shards::Shard;
use model::Namespace;
use process::{Readiness, Shutdown};

/// The delay before a task that panicked is restarted, since it is likely to panic again.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// How long before the end of the grace period providers are asked to stop their running calls: they need time to
/// return the objects created so far.
const PROVIDER_STOP_MARGIN: Duration = Duration::from_secs(30);

struct Tasks {
    context: Arc<Context>,
    set: JoinSet<Namespace>,
    running: BTreeSet<Namespace>,
    by_id: BTreeMap<Id, Namespace>,
}

/// Runs until `shutdown`, then until every running call is recorded. Returns `false` if the grace period ends earlier.
pub async fn supervise(
    context: &Arc<Context>,
    mut opened: mpsc::UnboundedReceiver<Arc<NamespaceHandle>>,
    readiness: &Readiness,
    give_up: &Shutdown,
    grace: Duration,
) -> bool {
    let mut tasks =
        Tasks { context: context.clone(), set: JoinSet::new(), running: BTreeSet::new(), by_id: BTreeMap::new() };
    tokio::select! {
        biased;
        () = context.shutdown.triggered() => return true,
        () = readiness.wait() => tracing::info!("ready: every watch has delivered its first list"),
    }
    let leadership = context.leadership.clone();
    let (mut seen, mut leading) = (None, BTreeSet::new());
    loop {
        tokio::select! {
            biased;
            () = context.shutdown.triggered() => break,
            () = leadership.changed(&mut seen) => {
                context.namespaces.forget_unwatched();
                let before = std::mem::replace(&mut leading, leadership.leading());
                report(context, &leading);
                if !leading.is_subset(&before) {
                    take_over(context).await;
                }
                // Also without a new shard: one may have been lost for a moment, in which tasks have ended.
                tasks.start_all();
            }
            Some(shared) = opened.recv() => tasks.start(shared.name(), Duration::ZERO),
            Some(ended) = tasks.set.join_next_with_id() => tasks.ended(ended),
        }
    }
    tasks.drain(give_up, grace).await
}

fn report(context: &Context, leading: &BTreeSet<Shard>) {
    let namespaces = leading.iter().filter(|shard| **shard != Shard::Cluster).count();
    context.metrics.leads(leading.contains(&Shard::Cluster), namespaces, context.leadership.division().count());
}

/// Cleans up before the first step in shards that were gained.
async fn take_over(context: &Context) {
    match context.journal.secrets().sweep_parts(context.engine.clock.now()).await {
        Ok(0) => {}
        Ok(parts) => tracing::info!(parts, "removed record parts that a crash left behind"),
        Err(error) => tracing::warn!(%error, "could not remove record parts that a crash left behind"),
    }
}

impl Tasks {
    fn start_all(&mut self) {
        for shared in self.context.namespaces.open_namespaces() {
            self.start(shared.name(), Duration::ZERO);
        }
    }

    /// Starts the task of a namespace if it is open, none is running, and this replica leads there.
    fn start(&mut self, name: &Namespace, after: Duration) {
        // One that was announced may have been closed and opened again.
        let Some(shared) = self.context.namespaces.find(name) else { return };
        if self.running.contains(name) || !self.context.leadership.start_task(name) {
            return;
        }
        self.running.insert(name.clone());
        let context = self.context.clone();
        let handle = self.set.spawn({
            let name = name.clone();
            async move {
                tokio::time::sleep(after).await;
                NamespaceTask::new(context, shared).work().await;
                name
            }
        });
        self.by_id.insert(handle.id(), name.clone());
    }

    /// Restarts the task if the namespace is open again and this replica leads there.
    fn ended(&mut self, ended: Result<(Id, Namespace), JoinError>) {
        let (id, after) = match ended {
            Ok((id, _)) => (id, Duration::ZERO),
            Err(error) => {
                tracing::error!("the task of a namespace panicked because of a bug in Purlin; restarting it");
                (error.id(), AFTER_PANIC)
            }
        };
        let Some(name) = self.by_id.remove(&id) else { return };
        self.running.remove(&name);
        self.context.leadership.end_task(&name);
        self.start(&name, after);
    }

    /// Waits for the tasks, which receive the shutdown signal directly.
    async fn drain(mut self, give_up: &Shutdown, grace: Duration) -> bool {
        let all = async { while self.set.join_next().await.is_some() {} };
        let (context, late) = (self.context.clone(), grace.min(PROVIDER_STOP_MARGIN));
        let out_of_time = async move {
            tokio::time::sleep(grace.saturating_sub(late)).await;
            let stopping = match context.engine.drivers.providers() {
                Some(providers) => providers.stop().await,
                None => false,
            };
            if stopping {
                tracing::warn!("the grace period is nearly over: asking providers to stop their running calls");
            }
            tokio::time::sleep(late).await;
        };
        let drained = tokio::select! {
            biased;
            () = all => true,
            () = out_of_time => false,
            () = self.context.shutdown.aborted() => false,
        };
        // Ends writes that would be retried forever.
        give_up.trigger();
        if !drained {
            tracing::error!(?grace, "aborting running calls; the next start resolves their open intents");
        }
        self.set.shutdown().await;
        drained
    }
}
