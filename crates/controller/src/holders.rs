//! Determines whether the process that holds an open intent has terminated.
//!
//! A second call must not start while the first one may still be running. So another process counts as terminated only
//! with evidence: it released its Lease, its Pod no longer exists or has ended, or its Pod has a later process. Without
//! evidence, the deadline of the intent counts, which a process extends as long as its call is running. A process whose
//! Pod exists may be cut off from the API server, so it gets the time after which it kills its providers. A provider in a
//! Pod of its own outlives its controller for a moment, so even a process that has terminated gets that time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::lease::{LEASE, LeaseView, process_of, shard_name};
use super::shards::Division;
use model::{Holder, Intent};
use process::{lock, request_error};
use runtime::execute::HolderState;
use tfprovider::plugin::remote::LOST_AFTER;

/// The name of the controller's container in the chart.
pub const CONTAINER: &str = "controller";

/// How long after the deadline of an intent a process that is cut off from the API server may still run its call: a
/// provider that does not stop is killed ten minutes after the time limit of its call.
const CUT_OFF_LIMIT: Duration = Duration::from_mins(15);

/// How long a provider in a Pod of its own may run after its controller: the runner kills it after [`LOST_AFTER`], and the
/// rest is for messages that a network delivers late.
const RUNNER_LIMIT: Duration = LOST_AFTER.saturating_mul(2);

/// The evidence about other processes.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The processes that shut down cleanly, or gave back the shard of the intent.
    pub released: BTreeSet<String>,
    /// The existing Pods by UID; `None`: they could not be listed.
    pub pods: Option<BTreeMap<String, PodEvidence>>,
}

/// What a Pod shows about the processes in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodEvidence {
    /// All containers have terminated for good, such as after an eviction.
    pub is_over: bool,
    /// Every process that started before this time has ended, by the clock of its node.
    pub ended_before: Option<Timestamp>,
}

impl PodEvidence {
    fn of(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        let mut containers = status.and_then(|status| status.container_statuses.as_ref()).into_iter().flatten();
        let container = containers.find(|container| container.name == CONTAINER);
        let ended_before = container.and_then(|container| {
            let running = container.state.as_ref().and_then(|state| state.running.as_ref());
            match running {
                Some(running) => running.started_at.clone(),
                None => finished_at(container.state.as_ref()).or_else(|| finished_at(container.last_state.as_ref())),
            }
        });
        Self { is_over: matches!(phase, Some("Failed" | "Succeeded")), ended_before: ended_before.map(|time| time.0) }
    }
}

fn finished_at(state: Option<&ContainerState>) -> Option<Time> {
    state?.terminated.as_ref()?.finished_at.clone()
}

/// Judges the holder of an intent whose step does not run in this process.
pub fn judge(intent: &Intent, me: &Holder, evidence: &Evidence, lease: Duration, now: Timestamp) -> HolderState {
    let holder = &intent.holder;
    // Intents of running steps of this process are not judged.
    let is_mine = holder == me;
    let earlier_in_my_pod = !me.pod.is_empty() && holder.pod == me.pod;
    let handed_over = evidence.released.contains(holder.process.as_ref());
    let ended_in_pod = match &evidence.pods {
        Some(pods) if !holder.pod.is_empty() => pods
            .get(holder.pod.as_ref())
            .is_none_or(|pod| pod.is_over || pod.ended_before.is_some_and(|before| intent.started < before)),
        _ => false,
    };
    let until = expiry(intent, lease);
    if is_mine || earlier_in_my_pod || handed_over || ended_in_pod || now > until {
        HolderState::Ended
    } else {
        HolderState::MayRun { until }
    }
}

/// Judges a provider in a Pod whose controller was known to have terminated since then.
fn after_runner(since: Timestamp, now: Timestamp) -> HolderState {
    let limit = SignedDuration::try_from(RUNNER_LIMIT).unwrap_or(SignedDuration::ZERO);
    let until = since.saturating_add(limit).unwrap_or(Timestamp::MAX);
    if now >= until { HolderState::Ended } else { HolderState::MayRun { until } }
}

/// When an intent counts as abandoned without any evidence about its holder.
fn expiry(intent: &Intent, lease: Duration) -> Timestamp {
    let longest = if intent.holder.pod.is_empty() { lease } else { CUT_OFF_LIMIT.max(lease) };
    let longest = SignedDuration::try_from(longest).unwrap_or(SignedDuration::ZERO);
    intent.deadline.saturating_add(longest).unwrap_or(Timestamp::MAX)
}

/// The identity of a process in the Lease. Its last part is the process id of intents.
pub fn identity(host: &str, holder: &Holder) -> String {
    format!("{host}_{}", holder.process)
}

/// Collects evidence in the controller's namespace.
#[derive(Clone)]
pub struct Holders {
    pods: Api<Pod>,
    leases: Api<Lease>,
    me: Holder,
    lease: Duration,
    /// When this process learned that another one has terminated, for those that had providers in Pods.
    terminated: Arc<Mutex<BTreeMap<Holder, Timestamp>>>,
    division: Division,
}

impl Holders {
    /// `me` is the current process.
    pub fn new(client: Client, namespace: &str, me: Holder, lease: Duration, division: Division) -> Self {
        let pods = Api::namespaced(client.clone(), namespace);
        Self { pods, leases: Api::namespaced(client, namespace), me, lease, terminated: Arc::default(), division }
    }

    /// As [`Self::state`], for an intent whose call runs in a Pod of its own, which outlives its controller for a moment.
    pub async fn state_with_runner(&self, namespace: &str, intent: &Intent, now: Timestamp) -> HolderState {
        let state = self.state(namespace, intent, now).await;
        // The calls of this process have ended with their steps.
        if state != HolderState::Ended || intent.holder == self.me {
            return state;
        }
        let since = *lock(&self.terminated).entry(intent.holder.clone()).or_insert(now);
        after_runner(since, now)
    }

    /// Judges the holder of an intent in a namespace with current evidence.
    pub async fn state(&self, namespace: &str, intent: &Intent, now: Timestamp) -> HolderState {
        // Avoids requests if the intent alone is sufficient.
        let known = judge(intent, &self.me, &Evidence::default(), self.lease, now);
        if known == HolderState::Ended {
            return known;
        }
        judge(intent, &self.me, &self.evidence(namespace).await, self.lease, now)
    }

    async fn evidence(&self, namespace: &str) -> Evidence {
        let shard = shard_name(self.division, self.division.shard(namespace));
        let leases = [self.leases.get_opt(LEASE).await, self.leases.get_opt(&shard).await];
        // Pods cannot be requested by UID, so all Pods of the controller's namespace are listed.
        let pods = self.pods.list(&ListParams::default()).await;
        for error in leases.iter().filter_map(|lease| lease.as_ref().err()).chain(pods.as_ref().err()) {
            let error = request_error(error);
            tracing::warn!(error, "cannot determine whether the holder of an open intent has terminated");
        }
        let released = leases.iter().flatten().flatten().flat_map(|lease| LeaseView::of(lease).released_by);
        Evidence {
            released: released.map(|identity| process_of(&identity).to_owned()).collect(),
            pods: pods
                .ok()
                .map(|list| list.items.iter().filter_map(|pod| Some((pod.uid()?, PodEvidence::of(pod)))).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Operation;

    fn holder(pod: &str, process: &str) -> Holder {
        Holder { pod: pod.into(), process: process.into() }
    }

    fn intent(holder: Holder) -> Intent {
        Intent {
            operation: Operation::Create,
            operation_id: "op".into(),
            holder,
            epoch: 1,
            started: Timestamp::UNIX_EPOCH,
            deadline: Timestamp::from_second(100).unwrap(),
            deposed: None,
            planned: None,
            import: None,
            cause: model::Cause::default(),
        }
    }

    #[track_caller]
    fn check(left_by: Holder, me: &Holder, pods: &[&str], released: &[&str], second: i64, is_over: bool) {
        let evidence = Evidence {
            released: released.iter().map(|text| (*text).to_owned()).collect(),
            pods: Some(pods.iter().map(|text| ((*text).to_owned(), PodEvidence::default())).collect()),
        };
        let now = Timestamp::from_second(second).unwrap();
        let state = judge(&intent(left_by), me, &evidence, Duration::from_secs(15), now);
        assert_eq!(state == HolderState::Ended, is_over, "{state:?}");
    }

    #[test]
    fn a_holder_with_an_existing_pod_may_be_cut_off() {
        check(holder("p1", "a"), &holder("p2", "b"), &["p1", "p2"], &[], 50, false);
        check(holder("p1", "a"), &holder("p2", "b"), &["p1", "p2"], &[], 1000, false);
        check(holder("p1", "a"), &holder("p2", "b"), &["p1", "p2"], &[], 1001, true);
    }

    #[test]
    fn a_holder_has_terminated_with_its_pod_or_process() {
        check(holder("p1", "a"), &holder("p2", "b"), &["p2"], &[], 50, true);
        check(holder("p1", "a"), &holder("p1", "b"), &["p1"], &[], 50, true);
    }

    #[test]
    fn a_released_lease_is_evidence() {
        check(holder("", "a"), &holder("", "b"), &[], &["a"], 50, true);
        assert_eq!(process_of(&identity("purlin_7f", &holder("", "a"))), "a");
    }

    #[test]
    fn without_a_pod_only_a_released_lease_or_the_deadline_counts() {
        check(holder("", "a"), &holder("", "b"), &[], &[], 115, false);
        check(holder("", "a"), &holder("", "b"), &[], &[], 116, true);
    }

    #[test]
    fn without_evidence_nothing_is_assumed() {
        let now = Timestamp::from_second(50).unwrap();
        let state = judge(&intent(holder("p1", "a")), &holder("p2", "b"), &Evidence::default(), Duration::ZERO, now);
        assert_eq!(state, HolderState::MayRun { until: Timestamp::from_second(1000).unwrap() });
    }

    #[test]
    fn a_provider_in_a_pod_may_run_for_a_moment_after_its_controller() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(after_runner(at(100), at(100)), HolderState::MayRun { until: at(220) });
        assert_eq!(after_runner(at(100), at(220)), HolderState::Ended);
    }

    #[test]
    fn a_later_process_in_the_pod_is_evidence() {
        let found = |status: serde_json::Value| {
            let pod = serde_json::json!({ "metadata": { "uid": "p1" }, "status": status });
            PodEvidence::of(&serde_json::from_value(pod).unwrap())
        };
        let container = |state: serde_json::Value| {
            let sidecar = serde_json::json!({
                "name": "sidecar", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "state": { "running": { "startedAt": "1970-01-01T00:59:00Z" } },
            });
            let mut own = serde_json::json!(
                { "name": CONTAINER, "image": "", "imageID": "", "ready": true, "restartCount": 1 }
            );
            own.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
            found(serde_json::json!({ "containerStatuses": [sidecar, own] }))
        };
        let at = |time: &str| serde_json::json!({ "running": { "startedAt": time } });
        let finished = serde_json::json!({ "terminated": { "exitCode": 1, "finishedAt": "1970-01-01T00:00:30Z" } });
        let waiting = serde_json::json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        let second = |second| Some(Timestamp::from_second(second).unwrap());
        let running = container(serde_json::json!({ "state": at("1970-01-01T00:00:40Z") }));
        assert_eq!(running.ended_before, second(40));
        assert_eq!(container(serde_json::json!({ "state": &finished })).ended_before, second(30));
        let crashed = container(serde_json::json!({ "state": waiting, "lastState": &finished }));
        assert_eq!(crashed.ended_before, second(30));
        assert!(found(serde_json::json!({ "phase": "Failed" })).is_over);

        let state = |started: i64, pod: PodEvidence| {
            let started = Timestamp::from_second(started).unwrap();
            let left = Intent { started, ..intent(holder("p1", "a")) };
            let evidence = Evidence { pods: Some([("p1".to_owned(), pod)].into()), ..Evidence::default() };
            judge(&left, &holder("p2", "b"), &evidence, Duration::ZERO, Timestamp::from_second(50).unwrap())
        };
        assert_eq!(state(10, crashed), HolderState::Ended);
        assert_ne!(state(45, running), HolderState::Ended, "the intent is of the process that is running");
        assert_ne!(state(40, running), HolderState::Ended, "the times of the kubelet have no fractions of a second");
    }
}
