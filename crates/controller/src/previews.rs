//! Previews: computes the Plans that users create, writes their status, and deletes them when they expire.
//!
//! Only the replica that leads in their namespace does this. It reads what a change would read, and writes nothing but the
//! status of Plans. A Plan is requested when its turn comes: a queue with the manifests of hundreds of Plans would need too
//! much memory.

mod compute;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::context::Context;
use super::watch::{PlanEvent, PlanKey};
use model::Uid;
use process::{ProcessorShare, Readiness};
use queue::{Outcome, PreviewQueue};
use runtime::reconcile::index::{ApprovalPlan, Event};
use runtime::reconcile::retry;

/// Computes Plans until the process terminates. Waits until every watch has delivered: a preview of an incomplete state
/// would be wrong.
pub async fn run(context: Arc<Context>, mut events: mpsc::UnboundedReceiver<PlanEvent>, readiness: Readiness) {
    tokio::select! {
        biased;
        () = context.shutdown.triggered() => return,
        () = readiness.wait() => {}
    }
    let mut previews = Previews {
        context,
        processors: ProcessorShare::half(),
        queue: PreviewQueue::default(),
        running: JoinSet::new(),
    };
    let mut seen = None;
    let mut gained = previews.context.leadership.gained();
    loop {
        previews.start_all();
        let context = Arc::clone(&previews.context);
        let due = previews.queue.next_due().map(|at| until(at, context.engine.clock.now()));
        tokio::select! {
            biased;
            () = context.shutdown.triggered() => break,
            // Before the events: those of shards that were gained again follow this change.
            () = context.leadership.changed(&mut seen) => {
                let before = std::mem::replace(&mut gained, context.leadership.gained());
                previews.queue.keep(|namespace| {
                    let shard = context.leadership.division().shard(namespace);
                    before.get(&shard).is_some_and(|since| gained.get(&shard) == Some(since))
                });
            }
            Some(ended) = previews.running.join_next() => match ended {
                Ok(computed) => previews.computed(computed),
                Err(error) => tracing::error!(%error, "the task of a Plan panicked because of a bug in Purlin"),
            },
            Some(event) = events.recv() => previews.observe(event),
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {
                previews.queue.wake(context.engine.clock.now());
            }
        }
    }
    previews.running.shutdown().await;
}

struct Previews {
    context: Arc<Context>,
    /// The processors that all computations may use at the same time: the others remain for changes.
    processors: ProcessorShare,
    queue: PreviewQueue,
    running: JoinSet<Computed>,
}

/// The end of a computation.
struct Computed {
    key: PlanKey,
    uid: Uid,
    outcome: Outcome,
    approval: Option<ApprovalPlan>,
}

impl Previews {
    fn observe(&mut self, event: PlanEvent) {
        match event {
            PlanEvent::Applied { key, uid, generation } => self.queue.observe(&key, &uid, generation),
            PlanEvent::Conflict(key) => self.queue.repeat(&key),
            PlanEvent::Deleted(key) => {
                self.queue.remove(&key);
                self.context.namespaces.apply(&key.namespace, Event::ApprovalDeleted(Arc::clone(&key.name)));
            }
        }
    }

    /// Passes a Plan with a digest to the reconciler, unless it was deleted after it was read.
    fn computed(&mut self, computed: Computed) {
        let Computed { key, uid, outcome, approval } = computed;
        if let Some(plan) = approval.filter(|_| self.queue.knows(&key, &uid)) {
            self.context
                .namespaces
                .apply(&key.namespace, Event::ApprovalApplied(Arc::clone(&key.name), Box::new(plan)));
        }
        self.queue.ended(&key, &uid, outcome);
    }

    /// Starts the computations that may run now.
    fn start_all(&mut self) {
        let leadership = self.context.leadership.clone();
        while let Some((key, uid)) = self.queue.start(|namespace| leadership.leads(namespace)) {
            let (context, failures) = (Arc::clone(&self.context), self.queue.failures(&key));
            let processors = self.processors.clone();
            self.running.spawn(async move {
                let computed = compute::compute(&context, processors, &key, &uid).await;
                let (outcome, approval) = computed.unwrap_or_else(|error| {
                    let (namespace, name) = (&*key.namespace, &*key.name);
                    tracing::warn!(namespace, name, %error, "could not compute a Plan; retrying");
                    let delay = retry::delay(failures + 1, context.engine.random.number());
                    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
                    let again = context.engine.clock.now().saturating_add(delay).unwrap_or(Timestamp::MAX);
                    (Outcome::Failed(again), None)
                });
                Computed { key, uid, outcome, approval }
            });
        }
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
