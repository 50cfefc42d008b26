//! Kubernetes events, on transitions only.
//!
//! kube's `Recorder` was looked at: it tells events apart without their text, so a second, different failure would be
//! counted as a repetition of the first and its text lost; and it has no bound on the rate. This one drops a repeated
//! text for ten minutes, sends at a bounded rate, and drops what does not fit, which is counted: events are hints for
//! people, and must never slow down the work or the API server.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::metrics::Metrics;
use crate::process::{Clock, Random};
use crate::reconcile::Note;

/// How many events wait at most: what one wave of ten thousand new objects tells beyond it nobody could read.
const WAITING: usize = 2048;
/// How many may be sent at once after a quiet time, and how many a second in the long run. An API server with two
/// cores takes about two thousand creates a second; events may have a small part of it.
const BURST: f64 = 100.0;
const PER_SECOND: f64 = 50.0;
/// For how long the same text about the same object is not repeated.
const REPEAT: Duration = Duration::from_mins(10);
/// How many texts are remembered for that.
const REMEMBERED: usize = 4096;

struct Told {
    regarding: ObjectReference,
    note: Note,
}

/// Takes events. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<Told>,
    metrics: Metrics,
}

impl Events {
    /// Hands an event over; drops it when too many wait.
    pub fn tell(&self, regarding: ObjectReference, note: Note) {
        if self.sender.try_send(Told { regarding, note }).is_err() {
            self.metrics.event_dropped();
        }
    }
}

/// Lets through at most `BURST` at once and `PER_SECOND` in the long run. Pure: the time comes in.
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn new(now: Instant) -> Self {
        Self { tokens: BURST, filled: now }
    }

    /// Takes a token, or says how long to wait for one.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let gained = now.saturating_duration_since(self.filled).as_secs_f64() * PER_SECOND;
        self.tokens = (self.tokens + gained).min(BURST);
        self.filled = now;
        if self.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.tokens) / PER_SECOND));
        }
        self.tokens -= 1.0;
        Ok(())
    }
}

/// Which texts were told lately. Pure: the time comes in.
#[derive(Default)]
struct Memory {
    told: BTreeMap<u64, Instant>,
}

impl Memory {
    /// Whether this is news.
    fn is_news(&mut self, told: &Told, now: Instant) -> bool {
        let mut hasher = DefaultHasher::new();
        (&told.regarding.uid, told.note.reason, &told.note.note).hash(&mut hasher);
        if self.told.len() >= REMEMBERED {
            self.told.retain(|_, at| *at + REPEAT > now);
        }
        if self.told.len() >= REMEMBERED {
            self.told.clear();
        }
        let key = hasher.finish();
        let news = self.told.get(&key).is_none_or(|at| *at + REPEAT <= now);
        if news {
            self.told.insert(key, now);
        }
        news
    }
}

/// Who reports.
pub struct Reporter {
    /// The API.
    pub client: Client,
    /// The name of the Pod, or of the process.
    pub instance: String,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for names of events.
    pub random: Arc<dyn Random>,
    /// Counts.
    pub metrics: Metrics,
}

impl Reporter {
    /// The events, and the task to run for them. It ends when all clones of `Events` are gone.
    pub fn start(self) -> (Events, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let events = Events { sender, metrics: self.metrics.clone() };
        (events, self.work(receiver))
    }

    async fn work(self, mut receiver: mpsc::Receiver<Told>) {
        let mut bucket = Bucket::new(Instant::now());
        let mut memory = Memory::default();
        while let Some(told) = receiver.recv().await {
            if !memory.is_news(&told, Instant::now()) {
                continue;
            }
            while let Err(wait) = bucket.take(Instant::now()) {
                tokio::time::sleep(wait).await;
            }
            self.send(told).await;
        }
    }

    async fn send(&self, told: Told) {
        let namespace = told.regarding.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let event = event(told, &self.instance, self.clock.now(), self.random.number());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let params = PostParams::default();
        let result = tokio::time::timeout(Duration::from_secs(10), api.create(&params, &event)).await;
        self.metrics.wrote("event", matches!(result, Ok(Ok(_))));
        match result {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(namespace, %error, "an event was not written"),
            Err(_) => tracing::debug!(namespace, "an event was not written: no answer in time"),
        }
    }
}

fn event(told: Told, instance: &str, now: Timestamp, random: u64) -> Event {
    let Told { regarding, note } = told;
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

    fn told(note: &str) -> Told {
        let regarding = ObjectReference { uid: Some("u".into()), ..ObjectReference::default() };
        Told { regarding, note: Note { warning: true, reason: "OperationFailed", action: "Update", note: note.into() } }
    }

    #[test]
    fn the_same_text_is_not_repeated_for_ten_minutes_and_another_one_is_told() {
        let (mut memory, start) = (Memory::default(), Instant::now());
        assert!(memory.is_news(&told("a"), start));
        assert!(!memory.is_news(&told("a"), start + Duration::from_secs(599)));
        assert!(memory.is_news(&told("b"), start));
        assert!(memory.is_news(&told("a"), start + REPEAT));
    }

    #[test]
    fn the_rate_is_bounded() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        let sent = (0..1000).filter(|_| bucket.take(start).is_ok()).count();
        assert_eq!(sent, 100);
        assert!(bucket.take(start).is_err());
        assert!(bucket.take(start + Duration::from_secs(1)).is_ok());
    }
}
