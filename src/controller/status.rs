//! Writes status. One writer for the whole process: of one object only the latest status is kept and written, and
//! many objects are written at once.
//!
//! A status is replaced as a whole, by a JSON patch: a merge patch would leave behind what the new status no longer
//! has. The patch tests the UID, so that a status never reaches another Resource of the same name, and carries no
//! resourceVersion, since nobody else writes status.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use kube::Client;
use kube::api::PartialObjectMeta;
use kube::core::Request;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::lease::Leadership;
use super::metrics::Metrics;
use crate::api;
use crate::model::{Address, Version};
use crate::process::Random;
use crate::reconcile::{Urgency, retry};

/// How many status are written at once: an API server with two cores is busy with that, and its default share of
/// requests for one client is not used up.
const AT_ONCE: usize = 32;
/// The answer would be the whole Resource; nobody reads it.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// How many of these may be about objects that are still on their way. In a burst their status is about to be replaced
/// by the last one, which then is the only one to be written; a server with time to spare takes hundreds a second.
const INTERIM_AT_ONCE: usize = 1;
/// No pause between two attempts is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Which Resource, or which `DataSource`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name, as addresses have it.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
}

/// Takes what became of the status with a digest: the version that the Resource has since, or nothing when it will not
/// be written.
pub type Report = Arc<dyn Fn(&Target, u64, Option<Version>) + Send + Sync>;

/// A status to be written.
#[derive(Clone, Debug)]
struct Pending {
    status: api::ResourceStatus,
    digest: u64,
    urgency: Urgency,
}

/// Takes status to be written. Cheap to clone; the writer ends when all clones are gone and all is written.
#[derive(Clone)]
pub struct StatusWriter {
    sender: mpsc::UnboundedSender<(Target, Pending)>,
}

impl StatusWriter {
    /// Hands a status over. It replaces one of the same object that is not written yet. By `digest` it is known again
    /// when it was written.
    pub fn write(&self, target: Target, status: api::ResourceStatus, digest: u64, urgency: Urgency) {
        // The writer outlives all who write, but for an aborted stop.
        let _ = self.sender.send((target, Pending { status, digest, urgency }));
    }
}

/// What became of an attempt.
enum Outcome {
    Done(Option<Version>),
    Again(Box<Pending>),
}

/// What waits to be written, the latest of each object.
#[derive(Default)]
struct Queue {
    latest: BTreeMap<Target, Pending>,
    settled: VecDeque<Target>,
    interim: VecDeque<Target>,
    in_flight: BTreeMap<Target, Urgency>,
    attempts: BTreeMap<Target, u32>,
}

impl Queue {
    fn push(&mut self, target: Target, pending: Pending) {
        let urgency = pending.urgency;
        let before = self.latest.insert(target.clone(), pending).map(|before| before.urgency);
        // A place under another urgency stays behind, and is passed over when its turn comes.
        if before != Some(urgency) {
            self.order(urgency).push_back(target);
        }
    }

    fn order(&mut self, urgency: Urgency) -> &mut VecDeque<Target> {
        match urgency {
            Urgency::Interim => &mut self.interim,
            Urgency::Settled => &mut self.settled,
        }
    }

    /// The next status to be written. An object is written by one request at a time.
    fn pop(&mut self) -> Option<(Target, Pending, u32)> {
        if self.in_flight.len() >= AT_ONCE {
            return None;
        }
        let interim = self.in_flight.values().filter(|urgency| **urgency == Urgency::Interim).count();
        let target = match self.next(Urgency::Settled) {
            None if interim < INTERIM_AT_ONCE => self.next(Urgency::Interim)?,
            settled => settled?,
        };
        let pending = self.latest.remove(&target)?;
        self.in_flight.insert(target.clone(), pending.urgency);
        let attempts = self.attempts.get(&target).copied().unwrap_or(0);
        Some((target, pending, attempts))
    }

    fn next(&mut self, urgency: Urgency) -> Option<Target> {
        let Self { latest, in_flight, settled, interim, .. } = self;
        let order = if urgency == Urgency::Settled { settled } else { interim };
        let counts = |target: &Target| latest.get(target).is_some_and(|pending| pending.urgency == urgency);
        while order.front().is_some_and(|target| !counts(target)) {
            order.pop_front();
        }
        let at = order.iter().position(|target| counts(target) && !in_flight.contains_key(target))?;
        order.remove(at)
    }

    fn finish(&mut self, target: Target, outcome: Outcome) {
        self.in_flight.remove(&target);
        match outcome {
            Outcome::Done(_) => {
                self.attempts.remove(&target);
                if self.latest.is_empty() {
                    // The room that a burst took is given back.
                    self.settled = VecDeque::new();
                    self.interim = VecDeque::new();
                }
            }
            Outcome::Again(pending) => {
                *self.attempts.entry(target.clone()).or_default() += 1;
                if !self.latest.contains_key(&target) {
                    self.push(target, *pending);
                }
            }
        }
    }
}

/// The writer, and the task to run for it.
pub fn writer(
    client: Client,
    leadership: Leadership,
    report: Report,
    random: Arc<dyn Random>,
    metrics: Metrics,
) -> (StatusWriter, impl Future<Output = ()>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (StatusWriter { sender }, work(receiver, client, leadership, report, random, metrics))
}

async fn work(
    mut receiver: mpsc::UnboundedReceiver<(Target, Pending)>,
    client: Client,
    leadership: Leadership,
    report: Report,
    random: Arc<dyn Random>,
    metrics: Metrics,
) {
    let mut queue = Queue::default();
    let mut requests = JoinSet::new();
    let mut open = true;
    while open || !requests.is_empty() || !queue.latest.is_empty() {
        while let Some((target, pending, attempts)) = queue.pop() {
            let (client, metrics, leadership) = (client.clone(), metrics.clone(), leadership.clone());
            let digest = pending.digest;
            let pause = (attempts > 0).then(|| retry::delay(attempts, random.number()).min(LONGEST_PAUSE));
            requests.spawn(async move {
                tokio::time::sleep(pause.unwrap_or_default()).await;
                let outcome = match leadership.is_leading() {
                    true => attempt(&client, &target, pending, &metrics).await,
                    // Whoever leads now knows more.
                    false => Outcome::Done(None),
                };
                (target, digest, outcome)
            });
        }
        tokio::select! {
            biased;
            Some(done) = requests.join_next() => match done {
                Ok((target, digest, outcome)) => {
                    if let Outcome::Done(version) = &outcome {
                        report(&target, digest, *version);
                    }
                    queue.finish(target, outcome);
                }
                Err(error) => tracing::error!(%error, "a status write was lost"),
            },
            message = receiver.recv(), if open => match message {
                Some((target, pending)) => queue.push(target, pending),
                None => open = false,
            },
        }
    }
}

async fn attempt(client: &Client, target: &Target, pending: Pending, metrics: &Metrics) -> Outcome {
    let Some(request) = patch(target, &pending.status) else {
        tracing::error!(namespace = &*target.namespace, name = &*target.name, "a status cannot be written as JSON");
        return Outcome::Done(None);
    };
    let result = client.request::<PartialObjectMeta>(request).await;
    metrics.wrote("status", result.is_ok());
    let (namespace, name) = (&*target.namespace, &*target.name);
    match result {
        Ok(written) => {
            Outcome::Done(written.metadata.resource_version.and_then(|text| Some(Version(text.parse().ok()?))))
        }
        // Gone, or another Resource of that name by now.
        Err(kube::Error::Api(error)) if error.code == 404 => Outcome::Done(None),
        Err(kube::Error::Api(error)) if matches!(error.code, 400 | 413 | 422) => {
            tracing::debug!(namespace, name, error = error.message, "a status was refused");
            Outcome::Done(None)
        }
        Err(error) => {
            tracing::warn!(namespace, name, %error, "a status could not be written; it is tried again");
            Outcome::Again(Box::new(pending))
        }
    }
}

fn patch(target: &Target, status: &api::ResourceStatus) -> Option<http::Request<Vec<u8>>> {
    let address = Address::single(target.name.clone());
    let (path, status) = match address.is_data() {
        false => {
            (<api::Resource as kube::Resource>::url_path(&(), Some(&target.namespace)), serde_json::to_value(status))
        }
        true => (
            <api::DataSource as kube::Resource>::url_path(&(), Some(&target.namespace)),
            serde_json::to_value(api::DataSourceStatus::from(status.clone())),
        ),
    };
    let status = status.ok()?;
    let body = serde_json::json!([
        {"op": "test", "path": "/metadata/uid", "value": target.uid},
        {"op": "add", "path": "/status", "value": status},
    ]);
    let params = kube::api::PatchParams::default();
    let empty = kube::api::Patch::Merge(serde_json::json!({}));
    let mut request = Request::new(path).patch_subresource("status", address.object_name(), &params, &empty).ok()?;
    *request.body_mut() = serde_json::to_vec(&body).ok()?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json-patch+json"));
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA_ONLY));
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        Target { namespace: "shop".into(), name: name.into(), uid: "u".into() }
    }

    fn status(generation: i64) -> api::ResourceStatus {
        api::ResourceStatus { observed_generation: generation, ..<_>::default() }
    }

    fn pending(generation: i64, urgency: Urgency) -> Pending {
        Pending { status: status(generation), digest: 0, urgency }
    }

    #[test]
    fn the_latest_status_wins_and_an_object_is_written_by_one_request_at_a_time() {
        let mut queue = Queue::default();
        queue.push(target("a"), pending(1, Urgency::Settled));
        queue.push(target("a"), pending(2, Urgency::Settled));
        let (_, first, _) = queue.pop().unwrap();
        assert_eq!(first.status.observed_generation, 2);
        queue.push(target("a"), pending(3, Urgency::Settled));
        assert!(queue.pop().is_none());
        queue.finish(target("a"), Outcome::Again(Box::new(first)));
        let (_, next, attempts) = queue.pop().unwrap();
        assert_eq!((next.status.observed_generation, attempts), (3, 1), "a newer status replaces the one that failed");
    }

    #[test]
    fn objects_on_their_way_give_way_to_those_at_rest() {
        let mut queue = Queue::default();
        for name in ["a", "b", "c", "d"] {
            queue.push(target(name), pending(1, Urgency::Interim));
        }
        queue.push(target("d"), pending(2, Urgency::Settled));
        let mut names = Vec::new();
        while let Some((target, pending, _)) = queue.pop() {
            names.push((target.name, pending.status.observed_generation));
        }
        assert_eq!(names, [("d".into(), 2), ("a".into(), 1)], "one at a time");
        queue.finish(target("a"), Outcome::Done(None));
        assert_eq!(queue.pop().unwrap().0.name, "b".into());
    }

    #[test]
    fn a_status_of_a_data_source_goes_there() {
        let request = patch(&target("data.a"), &status(1)).unwrap();
        assert_eq!(request.uri().path(), "/apis/purlin.dev/v1alpha1/namespaces/shop/datasources/a/status");
    }

    #[test]
    fn a_patch_replaces_the_status_of_this_very_resource() {
        let request = patch(&target("a"), &status(1)).unwrap();
        assert_eq!(request.uri().path(), "/apis/purlin.dev/v1alpha1/namespaces/shop/resources/a/status");
        let body = String::from_utf8(request.into_body()).unwrap();
        assert!(body.contains(r#"{"op":"test","path":"/metadata/uid","value":"u"}"#), "{body}");
    }
}
