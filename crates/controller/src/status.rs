//! Writes the status of Resources. One writer serves the whole process: it keeps only the latest status of each object
//! and writes many objects concurrently. Namespaces take turns, and a status whose write failed occupies no request while
//! it waits for the next attempt.
//!
//! A JSON patch replaces the whole status: a merge patch would not remove fields. The patch tests the UID, so that a
//! status never reaches another Resource of the same name, and the generation, so that a new leader whose watch lags
//! does not replace the status of a newer generation. It has no resourceVersion, because only the leader writes status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use kube::Client;
use kube::core::Request;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::fair_queue::{Choice, FairQueue};
use super::leadership::Leadership;
use model::{Address, Name, Namespace, Uid, Version};
use process::{Random, request_error};
use runtime::reconcile::index::StatusOutcome;
use runtime::reconcile::{StatusTarget, StatusUpdate, Urgency, retry};

/// How many requests run at the same time: enough to use an API server with two cores, without exhausting the default
/// priority level of one client.
const AT_ONCE: usize = 32;
/// Requests only the metadata of the Resource in the response.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// How many of these requests may be interim statuses. In a burst, a final status replaces most of them before they are
/// written; an idle server handles hundreds a second.
const INTERIM_AT_ONCE: usize = 1;
/// The longest delay between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Receives how the write of the status with this digest ended.
pub type WriteCallback = Arc<dyn Fn(&StatusTarget, u64, StatusOutcome) + Send + Sync>;

/// A cheap handle to the writer. The writer ends when all clones are dropped and everything is written.
#[derive(Clone)]
pub struct StatusWriter {
    sender: mpsc::UnboundedSender<(StatusTarget, StatusUpdate)>,
}

impl StatusWriter {
    /// Queues a status. It replaces a queued status of the same object.
    pub fn write(&self, target: StatusTarget, update: StatusUpdate) {
        // The writer outlives its handles, except in an aborted shutdown.
        let _ = self.sender.send((target, update));
    }
}

enum Outcome {
    Done(StatusOutcome),
    /// The write failed with this error.
    Again(Box<StatusUpdate>, String),
}

/// The latest queued status of each object.
#[derive(Default)]
struct Queue {
    latest: BTreeMap<StatusTarget, StatusUpdate>,
    no_longer_ready: FairQueue<StatusTarget>,
    finals: FairQueue<StatusTarget>,
    interim: FairQueue<StatusTarget>,
    in_flight: BTreeMap<StatusTarget, Urgency>,
    /// Objects that wait for the next attempt after a failed one.
    pausing: BTreeSet<StatusTarget>,
    attempts: BTreeMap<StatusTarget, u32>,
}

impl Queue {
    fn push(&mut self, target: StatusTarget, mut pending: StatusUpdate) {
        let before = self.latest.get(&target).map(|before| before.urgency);
        if before == Some(Urgency::NoLongerReady) && pending.urgency == Urgency::Interim {
            pending.urgency = Urgency::NoLongerReady;
        }
        let urgency = pending.urgency;
        self.latest.insert(target.clone(), pending);
        // An entry with another urgency remains and is skipped later.
        if before != Some(urgency) && !self.pausing.contains(&target) {
            self.enqueue(target, urgency);
        }
    }

    fn enqueue(&mut self, target: StatusTarget, urgency: Urgency) {
        self.queue(urgency).push(&target.namespace.clone(), target);
    }

    fn queue(&mut self, urgency: Urgency) -> &mut FairQueue<StatusTarget> {
        match urgency {
            Urgency::Interim => &mut self.interim,
            Urgency::Final => &mut self.finals,
            Urgency::NoLongerReady => &mut self.no_longer_ready,
        }
    }

    /// The next status to write. Each object is written by one request at a time.
    fn pop(&mut self) -> Option<(StatusTarget, StatusUpdate)> {
        if self.in_flight.len() >= AT_ONCE {
            return None;
        }
        let interim = self.in_flight.values().filter(|urgency| **urgency == Urgency::Interim).count();
        let target = match self.next(Urgency::NoLongerReady).or_else(|| self.next(Urgency::Final)) {
            None if interim < INTERIM_AT_ONCE => self.next(Urgency::Interim)?,
            target => target?,
        };
        let pending = self.latest.remove(&target)?;
        self.in_flight.insert(target.clone(), pending.urgency);
        Some((target, pending))
    }

    fn next(&mut self, urgency: Urgency) -> Option<StatusTarget> {
        let mut queue = std::mem::take(self.queue(urgency));
        let taken = queue.pop(|target| match self.latest.get(target) {
            Some(pending) if pending.urgency == urgency => match self.must_wait(target, urgency) {
                true => Choice::Keep,
                false => Choice::Take,
            },
            _ => Choice::Drop,
        });
        *self.queue(urgency) = queue;
        taken
    }

    /// Whether the object is being written, or another one of the namespace must first be known not to be ready.
    fn must_wait(&self, target: &StatusTarget, urgency: Urgency) -> bool {
        self.in_flight.contains_key(target)
            || (urgency == Urgency::Final && self.has_no_longer_ready(&target.namespace))
    }

    fn has_no_longer_ready(&self, namespace: &Namespace) -> bool {
        self.no_longer_ready.len_of(namespace) > 0
            || self
                .in_flight
                .iter()
                .any(|(target, urgency)| *urgency == Urgency::NoLongerReady && target.namespace == *namespace)
    }

    /// Handles the end of a write. Returns the number of failed attempts if there must be another one: the caller calls
    /// [`Self::resume`] after a pause.
    fn finish(&mut self, target: &StatusTarget, outcome: Outcome) -> Option<u32> {
        self.in_flight.remove(target);
        let Outcome::Again(pending, error) = outcome else {
            self.attempts.remove(target);
            return None;
        };
        let (namespace, name) = (&*target.namespace, &*target.name);
        match self.fails_in(&target.namespace) {
            true => tracing::debug!(namespace, name, error, "could not write a status; retrying"),
            false => tracing::warn!(namespace, name, error, "could not write a status; retrying"),
        }
        let attempts = self.attempts.entry(target.clone()).or_default();
        *attempts += 1;
        self.latest.entry(target.clone()).or_insert(*pending);
        self.pausing.insert(target.clone());
        Some(*attempts)
    }

    /// Whether a status of the namespace could not be written, which was logged then. Such errors have a common cause.
    fn fails_in(&self, namespace: &Namespace) -> bool {
        let (name, uid) = (Name::default(), Uid::default());
        let first = self.attempts.range(StatusTarget { namespace: namespace.clone(), name, uid }..).next();
        first.is_some_and(|(target, _)| target.namespace == *namespace)
    }

    fn resume(&mut self, target: StatusTarget) {
        self.pausing.remove(&target);
        if let Some(urgency) = self.latest.get(&target).map(|pending| pending.urgency) {
            self.enqueue(target, urgency);
        }
    }
}

/// The handle, and the task to run.
pub fn writer(
    client: Client,
    leadership: Leadership,
    report: WriteCallback,
    random: Arc<dyn Random>,
) -> (StatusWriter, impl Future<Output = ()>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (StatusWriter { sender }, work(receiver, client, leadership, report, random))
}

async fn work(
    mut receiver: mpsc::UnboundedReceiver<(StatusTarget, StatusUpdate)>,
    client: Client,
    leadership: Leadership,
    report: WriteCallback,
    random: Arc<dyn Random>,
) {
    let mut queue = Queue::default();
    let (mut requests, mut pauses) = (JoinSet::new(), JoinSet::new());
    let mut open = true;
    while open || !requests.is_empty() || !queue.latest.is_empty() {
        while let Some((target, pending)) = queue.pop() {
            let (client, leadership) = (client.clone(), leadership.clone());
            let digest = pending.digest;
            requests.spawn(async move {
                let outcome = match leadership.leads(&target.namespace) {
                    true => attempt(&client, &target, pending).await,
                    // The replica that leads there writes its own status.
                    false => Outcome::Done(StatusOutcome::NotLeading),
                };
                (target, digest, outcome)
            });
        }
        tokio::select! {
            biased;
            Some(done) = requests.join_next() => match done {
                Ok((target, digest, outcome)) => {
                    if let Outcome::Done(ended) = &outcome {
                        report(&target, digest, *ended);
                    }
                    if let Some(attempts) = queue.finish(&target, outcome) {
                        let pause = retry::delay(attempts, random.number()).min(LONGEST_PAUSE);
                        pauses.spawn(async move {
                            tokio::time::sleep(pause).await;
                            target
                        });
                    }
                }
                Err(_) => tracing::error!("a status write panicked because of a bug in Purlin"),
            },
            Some(Ok(target)) = pauses.join_next() => queue.resume(target),
            message = receiver.recv(), if open => match message {
                Some((target, pending)) => queue.push(target, pending),
                None => open = false,
            },
        }
    }
}

async fn attempt(client: &Client, target: &StatusTarget, pending: StatusUpdate) -> Outcome {
    let Some(request) = patch(target, &pending) else {
        tracing::error!(namespace = &*target.namespace, name = &*target.name, "could not serialize a status");
        return Outcome::Done(StatusOutcome::Rejected);
    };
    let result = client.request::<api::Head>(request).await;
    let (namespace, name) = (&*target.namespace, &*target.name);
    match result {
        Ok(written) => {
            let version = written.metadata.resource_version.and_then(|text| Some(Version(text.parse().ok()?)));
            Outcome::Done(version.map_or(StatusOutcome::Rejected, StatusOutcome::Stored))
        }
        // The Resource was deleted.
        Err(kube::Error::Api(error)) if error.code == 404 => Outcome::Done(StatusOutcome::Rejected),
        // Another one of that name exists, or a newer generation, whose own status follows.
        Err(kube::Error::Api(error)) if matches!(error.code, 400 | 413 | 422) => {
            tracing::debug!(namespace, name, error = error.message, "the API server rejected a status");
            Outcome::Done(StatusOutcome::Rejected)
        }
        Err(error) => Outcome::Again(Box::new(pending), request_error(&error)),
    }
}

fn patch(target: &StatusTarget, update: &StatusUpdate) -> Option<http::Request<Vec<u8>>> {
    let address = Address::single(target.name.clone());
    let status = match address.is_data() {
        false => serde_json::to_value(&update.status),
        true => match update.status.clone() {
            api::Status::Resource(status) => serde_json::to_value(api::DataSourceStatus::from(*status)),
            api::Status::Module(_) => return None,
        },
    };
    let (path, status) = (api::url_path(&target.namespace, &address), status.ok()?);
    let body = serde_json::json!([
        {"op": "test", "path": "/metadata/uid", "value": target.uid},
        {"op": "test", "path": "/metadata/generation", "value": update.generation},
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

    fn target(name: &str) -> StatusTarget {
        StatusTarget { namespace: "shop".into(), name: name.into(), uid: "u".into() }
    }

    fn status(generation: i64) -> api::Status {
        api::ResourceStatus { observed_generation: generation, ..<_>::default() }.into()
    }

    fn pending(generation: i64, urgency: Urgency) -> StatusUpdate {
        StatusUpdate { status: status(generation), generation, digest: 0, urgency }
    }

    #[test]
    fn the_latest_status_wins_and_an_object_is_written_by_one_request_at_a_time() {
        let mut queue = Queue::default();
        queue.push(target("a"), pending(1, Urgency::Final));
        queue.push(target("a"), pending(2, Urgency::Final));
        let (_, first) = queue.pop().unwrap();
        assert_eq!(first.status.observed_generation(), 2);
        queue.push(target("a"), pending(3, Urgency::Final));
        assert!(queue.pop().is_none());
        assert_eq!(queue.finish(&target("a"), Outcome::Again(Box::new(first), "refused".to_owned())), Some(1));
        queue.resume(target("a"));
        let (_, next) = queue.pop().unwrap();
        assert_eq!(next.status.observed_generation(), 3, "a newer status replaces the one that failed");
        assert_eq!(queue.finish(&target("a"), Outcome::Done(StatusOutcome::Rejected)), None);
    }

    #[test]
    fn the_failed_writes_of_a_namespace_are_logged_once() {
        let mut queue = Queue::default();
        let fail = |queue: &mut Queue, name: &str| {
            queue.push(target(name), pending(1, Urgency::Final));
            let (failed, update) = queue.pop().unwrap();
            queue.finish(&failed, Outcome::Again(Box::new(update), "refused".to_owned()));
        };
        assert!(!queue.fails_in(&"shop".into()));
        fail(&mut queue, "a");
        assert!(queue.fails_in(&"shop".into()) && !queue.fails_in(&"sho".into()) && !queue.fails_in(&"shops".into()));
        queue.resume(target("a"));
        let (written, _) = queue.pop().unwrap();
        queue.finish(&written, Outcome::Done(StatusOutcome::Rejected));
        assert!(!queue.fails_in(&"shop".into()));
    }

    #[test]
    fn a_failed_write_occupies_no_request_until_its_next_attempt() {
        let mut queue = Queue::default();
        for number in 0..AT_ONCE {
            queue.push(target(&format!("bad-{number}")), pending(1, Urgency::Final));
        }
        let failing: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(failing.len(), AT_ONCE);
        queue.push(target("good"), pending(1, Urgency::Final));
        assert!(queue.pop().is_none(), "all requests are in use");
        for (target, pending) in failing {
            queue.finish(&target, Outcome::Again(Box::new(pending), "refused".to_owned()));
        }
        assert_eq!(queue.pop().unwrap().0.name, "good".into());
        assert!(queue.pop().is_none());
        queue.push(target("bad-0"), pending(2, Urgency::Final));
        assert!(queue.pop().is_none(), "a newer status waits for the same pause");
        queue.resume(target("bad-0"));
        assert_eq!(queue.pop().unwrap().1.status.observed_generation(), 2);
    }

    #[test]
    fn final_statuses_are_written_before_interim_ones() {
        let mut queue = Queue::default();
        for name in ["a", "b", "c", "d"] {
            queue.push(target(name), pending(1, Urgency::Interim));
        }
        queue.push(target("d"), pending(2, Urgency::Final));
        let mut names = Vec::new();
        while let Some((target, pending)) = queue.pop() {
            names.push((target.name, pending.status.observed_generation()));
        }
        assert_eq!(names, [("d".into(), 2), ("a".into(), 1)], "one at a time");
        queue.finish(&target("a"), Outcome::Done(StatusOutcome::Rejected));
        assert_eq!(queue.pop().unwrap().0.name, "b".into());
    }

    #[test]
    fn final_statuses_wait_until_no_object_of_the_namespace_is_shown_as_ready_that_is_not() {
        let mut queue = Queue::default();
        queue.push(target("follower"), pending(1, Urgency::NoLongerReady));
        queue.push(target("cause"), pending(2, Urgency::Final));
        let elsewhere = StatusTarget { namespace: "other".into(), ..target("cause") };
        queue.push(elsewhere, pending(3, Urgency::Final));
        let popped = |queue: &mut Queue| queue.pop().map(|(target, _)| (target.namespace, target.name));
        assert_eq!(popped(&mut queue), Some(("shop".into(), "follower".into())));
        assert_eq!(popped(&mut queue), Some(("other".into(), "cause".into())));
        assert_eq!(popped(&mut queue), None, "the follower is being written");
        queue.finish(&target("follower"), Outcome::Done(StatusOutcome::Rejected));
        assert_eq!(popped(&mut queue), Some(("shop".into(), "cause".into())));
        queue.finish(&target("cause"), Outcome::Done(StatusOutcome::Rejected));

        // A later interim status keeps the precedence. A final one replaces both.
        queue.push(target("follower"), pending(1, Urgency::NoLongerReady));
        queue.push(target("follower"), pending(1, Urgency::Interim));
        queue.push(target("cause"), pending(2, Urgency::Final));
        assert_eq!(popped(&mut queue), Some(("shop".into(), "follower".into())));
        queue.push(target("follower"), pending(1, Urgency::Final));
        queue.finish(&target("follower"), Outcome::Done(StatusOutcome::Rejected));
        assert_eq!(popped(&mut queue), Some(("shop".into(), "cause".into())));
        assert_eq!(popped(&mut queue), Some(("shop".into(), "follower".into())));
    }

    #[test]
    fn a_failed_write_that_had_precedence_does_not_delay_others() {
        let mut queue = Queue::default();
        queue.push(target("follower"), pending(1, Urgency::NoLongerReady));
        queue.push(target("cause"), pending(2, Urgency::Final));
        let (follower, failed) = queue.pop().unwrap();
        queue.finish(&follower, Outcome::Again(Box::new(failed), "refused".to_owned()));
        assert_eq!(queue.pop().unwrap().0.name, "cause".into());
    }

    #[test]
    fn the_status_of_a_data_source_uses_its_path() {
        let request = patch(&target("data.a"), &pending(1, Urgency::Final)).unwrap();
        assert_eq!(request.uri().path(), "/apis/purlin.dev/v1alpha1/namespaces/shop/datasources/a/status");
    }

    #[test]
    fn a_patch_tests_the_uid_and_the_generation_of_the_resource() {
        let request = patch(&target("a"), &pending(1, Urgency::Final)).unwrap();
        assert_eq!(request.uri().path(), "/apis/purlin.dev/v1alpha1/namespaces/shop/resources/a/status");
        let body = String::from_utf8(request.into_body()).unwrap();
        assert!(body.contains(r#"{"op":"test","path":"/metadata/uid","value":"u"}"#), "{body}");
        assert!(body.contains(r#"{"op":"test","path":"/metadata/generation","value":1}"#), "{body}");
    }
}
