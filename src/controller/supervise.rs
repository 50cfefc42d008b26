//! Owns the tasks of all namespaces: starts them while this replica leads, and sees them end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};

use super::context::Context;
use super::namespace::NamespaceTask;
use super::world::Shared;
use crate::process::Readiness;

/// The pause before a task that panicked starts anew: likely enough it panics again.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// So long before the end of the grace period providers are asked to give up the calls that run: they need some time to
/// come back with what they have made so far.
const BEFORE_THE_END: Duration = Duration::from_secs(30);

/// The tasks, at most one for each namespace.
struct Tasks {
    context: Arc<Context>,
    set: JoinSet<Arc<str>>,
    running: BTreeSet<Arc<str>>,
    by_id: BTreeMap<Id, Arc<str>>,
}

/// Works until the process is told to end, and then until every running call was recorded. Gives `false` when the
/// grace period was over before.
pub async fn supervise(
    context: &Arc<Context>,
    mut opened: mpsc::UnboundedReceiver<Arc<Shared>>,
    readiness: &Readiness,
    give_up: &watch::Sender<bool>,
    grace: Duration,
) -> bool {
    let mut tasks =
        Tasks { context: context.clone(), set: JoinSet::new(), running: BTreeSet::new(), by_id: BTreeMap::new() };
    tokio::select! {
        biased;
        () = context.shutdown.triggered() => return true,
        () = readiness.wait() => tracing::info!("ready: every watch has delivered"),
    }
    let mut leadership = context.leadership.clone();
    let mut leading = false;
    loop {
        tokio::select! {
            biased;
            () = context.shutdown.triggered() => break,
            () = leadership.becomes(!leading) => {
                leading = !leading;
                context.metrics.leads(leading);
                if leading {
                    take_over(context).await;
                    tasks.start_all();
                }
            }
            Some(shared) = opened.recv() => if leading { tasks.start(shared, Duration::ZERO) },
            Some(ended) = tasks.set.join_next_with_id() => tasks.ended(ended, leading),
        }
    }
    tasks.drain(give_up, grace).await
}

/// What a new leader does before its first step.
async fn take_over(context: &Context) {
    match context.journal.secrets().sweep_parts(context.engine.clock.now()).await {
        Ok(0) => {}
        Ok(parts) => tracing::info!(parts, "removed parts of records that a crash had left"),
        Err(error) => tracing::warn!(%error, "parts of records that a crash left could not be looked for"),
    }
}

impl Tasks {
    fn start_all(&mut self) {
        for shared in self.context.world.open_namespaces() {
            self.start(shared, Duration::ZERO);
        }
    }

    fn start(&mut self, shared: Arc<Shared>, after: Duration) {
        let name = shared.name().clone();
        if !self.running.insert(name.clone()) {
            return;
        }
        let context = self.context.clone();
        let handle = self.set.spawn({
            let name = name.clone();
            async move {
                tokio::time::sleep(after).await;
                NamespaceTask::new(context, shared).work().await;
                name
            }
        });
        self.by_id.insert(handle.id(), name);
    }

    /// A namespace may have got something again since its task ended, or have been waited for by a new leader.
    fn ended(&mut self, ended: Result<(Id, Arc<str>), JoinError>, leading: bool) {
        let (id, after) = match ended {
            Ok((id, _)) => (id, Duration::ZERO),
            Err(error) => {
                tracing::error!(%error, "the task of a namespace failed by a fault of Purlin; it starts anew");
                (error.id(), AFTER_PANIC)
            }
        };
        let Some(name) = self.by_id.remove(&id) else { return };
        self.running.remove(&name);
        let open = self.context.world.open_namespaces();
        if let Some(shared) = open.into_iter().find(|shared| *shared.name() == name).filter(|_| leading) {
            self.start(shared, after);
        }
    }

    /// The tasks have seen the shutdown themselves; here they are only awaited.
    async fn drain(mut self, give_up: &watch::Sender<bool>, grace: Duration) -> bool {
        let all = async { while self.set.join_next().await.is_some() {} };
        let (context, late) = (self.context.clone(), grace.min(BEFORE_THE_END));
        let out_of_time = async move {
            tokio::time::sleep(grace.saturating_sub(late)).await;
            let asked = match context.engine.drivers.providers() {
                Some(providers) => providers.stop().await,
                None => false,
            };
            if asked {
                tracing::warn!("the grace period is nearly over: providers are asked to give up the calls that run");
            }
            tokio::time::sleep(late).await;
        };
        let drained = tokio::select! {
            biased;
            () = all => true,
            () = out_of_time => false,
            () = self.context.shutdown.aborted() => false,
        };
        // Writes that would be tried for ever end now, whoever still waits for them.
        give_up.send_replace(true);
        if !drained {
            tracing::error!(?grace, "running calls are cut off; their open intents are settled at the next start");
        }
        self.set.shutdown().await;
        drained
    }
}
