//! Sends Kubernetes events, on transitions only.
//!
//! It replaces kube's `Recorder`, which ignores the note when it deduplicates events, so that a second, different
//! failure would count as a repetition, and which has no rate limit. This one drops repeated notes for ten minutes,
//! limits the rate, and drops and counts the events that exceed its queue: events are hints for users and must not slow
//! down the work or the API server. Namespaces take turns, and one namespace can use at most half of the queue.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Fuse, FusedFuture as _, FutureExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::fair_queue::{Choice, FairQueue};
use super::metrics::Metrics;
use model::Namespace;
use process::{Clock, Random, request_error};
use runtime::reconcile::Note;

/// The queue size. More events of one wave of new objects would not be readable.
const WAITING: usize = 2048;
/// How many events may be sent in a burst, and per second in the long run. An API server with two cores handles about
/// two thousand creates a second; events may use a small part of that.
const BURST: f64 = 100.0;
const PER_SECOND: f64 = 50.0;
/// How long the same note about the same object is not repeated.
const REPEAT: Duration = Duration::from_mins(10);
/// How many sent notes are kept for deduplication.
const MAX_RECENT: usize = 4096;

struct QueuedEvent {
    regarding: ObjectReference,
    note: Note,
}

/// A cheap handle to the event queue.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<QueuedEvent>,
    metrics: Metrics,
}

impl Events {
    /// Queues an event, or drops it if the queue is full.
    pub fn send(&self, regarding: ObjectReference, note: Note) {
        if self.sender.try_send(QueuedEvent { regarding, note }).is_err() {
            self.metrics.event_dropped();
        }
    }
}

/// A token bucket with `BURST` tokens that refills with `PER_SECOND`. Pure: the caller passes the time.
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn new(now: Instant) -> Self {
        Self { tokens: BURST, filled: now }
    }

    /// Takes a token. Returns how long to wait until it is there.
    fn take(&mut self, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.filled).as_secs_f64() * PER_SECOND;
        self.tokens = (self.tokens + gained).min(BURST) - 1.0;
        self.filled = now;
        Duration::from_secs_f64((-self.tokens).max(0.0) / PER_SECOND)
    }
}

/// The recently sent notes. Pure: the caller passes the time.
#[derive(Default)]
struct RecentEvents {
    sent: BTreeMap<u64, Instant>,
}

impl RecentEvents {
    /// Whether the event is new. Records it.
    fn is_news(&mut self, queued: &QueuedEvent, now: Instant) -> bool {
        let mut hasher = DefaultHasher::new();
        (&queued.regarding.uid, queued.note.reason, &queued.note.note).hash(&mut hasher);
        if self.sent.len() >= MAX_RECENT {
            self.sent.retain(|_, at| *at + REPEAT > now);
        }
        if self.sent.len() >= MAX_RECENT {
            self.sent.clear();
        }
        let key = hasher.finish();
        let is_new = self.sent.get(&key).is_none_or(|at| *at + REPEAT <= now);
        if is_new {
            self.sent.insert(key, now);
        }
        is_new
    }
}

/// The events that are not sent yet.
#[derive(Default)]
struct EventQueue {
    queue: FairQueue<QueuedEvent>,
    recent: RecentEvents,
}

impl EventQueue {
    /// Queues an event that is not a repetition. Returns `false` if the queue is full for its namespace.
    fn push(&mut self, event: QueuedEvent, now: Instant) -> bool {
        let namespace: Namespace = event.regarding.namespace.as_deref().unwrap_or_default().into();
        if self.queue.len_of(&namespace) >= WAITING - self.queue.total() {
            return false;
        }
        if self.recent.is_news(&event, now) {
            self.queue.push(&namespace, event);
        }
        true
    }

    fn pop(&mut self) -> Option<QueuedEvent> {
        self.queue.pop(|_| Choice::Take)
    }
}

/// The sender of events.
pub struct Reporter {
    pub client: Client,
    /// The name of the Pod, or of the process.
    pub instance: String,
    pub clock: Arc<dyn Clock>,
    /// For names of events.
    pub random: Arc<dyn Random>,
    pub metrics: Metrics,
}

impl Reporter {
    /// The handle, and the task to run. The task ends when all clones of the handle are dropped.
    pub fn start(self) -> (Events, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let events = Events { sender, metrics: self.metrics.clone() };
        (events, self.work(receiver))
    }

    async fn work(self, mut receiver: mpsc::Receiver<QueuedEvent>) {
        let mut bucket = Bucket::new(Instant::now());
        let mut queue = EventQueue::default();
        let mut sending: Fuse<BoxFuture<'_, ()>> = Fuse::terminated();
        let mut open = true;
        loop {
            if sending.is_terminated()
                && let Some(event) = queue.pop()
            {
                sending = self.send_after(bucket.take(Instant::now()), event).boxed().fuse();
            }
            if !open && sending.is_terminated() {
                return;
            }
            tokio::select! {
                biased;
                received = receiver.recv(), if open => match received {
                    Some(event) => if !queue.push(event, Instant::now()) {
                        self.metrics.event_dropped();
                    },
                    None => open = false,
                },
                () = &mut sending, if !sending.is_terminated() => {}
            }
        }
    }

    async fn send_after(&self, wait: Duration, queued: QueuedEvent) {
        tokio::time::sleep(wait).await;
        self.send(queued).await;
    }

    async fn send(&self, queued: QueuedEvent) {
        let namespace = queued.regarding.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let event = event(queued, &self.instance, self.clock.now(), self.random.number());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let params = PostParams::default();
        let result = tokio::time::timeout(Duration::from_secs(10), api.create(&params, &event)).await;
        match result {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(namespace, error = request_error(&error), "could not write an event"),
            Err(_) => tracing::debug!(namespace, "could not write an event: no response in time"),
        }
    }
}

fn event(queued: QueuedEvent, instance: &str, now: Timestamp, random: u64) -> Event {
    let QueuedEvent { regarding, note } = queued;
    let about = regarding.name.clone().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{about}.{random:016x}")),
            namespace: regarding.namespace.clone(),
            ..ObjectMeta::default()
        },
        type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(note.reason.to_owned()),
        action: Some(note.action.to_owned()),
        note: Some(note.note),
        event_time: Some(MicroTime(now)),
        reporting_controller: Some("purlin.dev/controller".to_owned()),
        reporting_instance: Some(instance.to_owned()),
        regarding: Some(regarding),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(note: &str) -> QueuedEvent {
        let regarding = ObjectReference { uid: Some("u".into()), ..ObjectReference::default() };
        QueuedEvent {
            regarding,
            note: Note { warning: true, reason: "OperationFailed", action: "Update", note: note.into() },
        }
    }

    #[test]
    fn the_same_note_is_not_repeated_for_ten_minutes() {
        let (mut memory, start) = (RecentEvents::default(), Instant::now());
        assert!(memory.is_news(&queued("a"), start));
        assert!(!memory.is_news(&queued("a"), start + Duration::from_secs(599)));
        assert!(memory.is_news(&queued("b"), start));
        assert!(memory.is_news(&queued("a"), start + REPEAT));
    }

    #[test]
    fn one_namespace_uses_at_most_half_of_the_queue() {
        let (mut queue, start) = (EventQueue::default(), Instant::now());
        let of = |namespace: &str, number: usize| {
            let mut event = queued(&number.to_string());
            event.regarding.namespace = Some(namespace.to_owned());
            event
        };
        let taken = (0..WAITING).filter(|number| queue.push(of("loud", *number), start)).count();
        assert_eq!(taken, WAITING / 2);
        assert!(queue.push(of("quiet", WAITING), start));
        let next = [queue.pop(), queue.pop()].map(|event| event.unwrap().regarding.namespace.unwrap());
        assert_eq!(next, ["loud", "quiet"], "namespaces take turns");
    }

    #[test]
    fn the_rate_is_bounded() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        let sent = (0..100).filter(|_| bucket.take(start).is_zero()).count();
        assert_eq!(sent, 100);
        assert_eq!(bucket.take(start), Duration::from_millis(20));
        assert_eq!(bucket.take(start), Duration::from_millis(40));
        assert!(bucket.take(start + Duration::from_secs(1)).is_zero());
    }
}
