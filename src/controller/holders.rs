//! Determines whether the process that holds an open intent has terminated.
//!
//! A second call must not start while the first one may still be running. So another process counts as terminated only
//! with evidence: it released the Lease, its Pod no longer exists, it was an earlier process of the same Pod, or the
//! deadline of the intent has passed by more than a lease duration. A process extends the deadline as long as its call
//! is running.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::lease::{LEASE, LeaseView};
use crate::execute::HolderState;
use crate::model::{Holder, Intent};

/// The evidence about other processes.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The processes that released the Lease during a clean shutdown.
    pub released: BTreeSet<String>,
    /// The UIDs of the existing Pods; `None`: they could not be listed.
    pub pods: Option<BTreeSet<String>>,
}

/// Judges the holder of an intent whose step does not run in this process.
pub fn judge(intent: &Intent, me: &Holder, evidence: &Evidence, lease: Duration, now: Timestamp) -> HolderState {
    let holder = &intent.holder;
    // Intents of running steps of this process are not judged.
    let own = holder == me;
    let earlier_in_my_pod = !me.pod.is_empty() && holder.pod == me.pod;
    let handed_over = evidence.released.contains(holder.process.as_ref());
    let pod_gone = match &evidence.pods {
        Some(pods) => !holder.pod.is_empty() && !pods.contains(holder.pod.as_ref()),
        None => false,
    };
    if own || earlier_in_my_pod || handed_over || pod_gone || now > expiry(intent, lease) {
        HolderState::Ended
    } else {
        HolderState::Unknown
    }
}

/// When an intent counts as abandoned without any evidence about its holder.
pub fn expiry(intent: &Intent, lease: Duration) -> Timestamp {
    let lease = SignedDuration::try_from(lease).unwrap_or(SignedDuration::ZERO);
    intent.deadline.saturating_add(lease).unwrap_or(Timestamp::MAX)
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
}

impl Holders {
    /// `me` is the current process.
    pub fn new(client: Client, namespace: &str, me: Holder, lease: Duration) -> Self {
        let pods = Api::namespaced(client.clone(), namespace);
        Self { pods, leases: Api::namespaced(client, namespace), me, lease }
    }

    /// Judges the holder of an intent with current evidence. Without evidence the result is `Unknown`.
    pub async fn state(&self, intent: &Intent, now: Timestamp) -> HolderState {
        // Avoids requests if the intent alone is sufficient.
        let known = judge(intent, &self.me, &Evidence::default(), self.lease, now);
        if known == HolderState::Ended {
            return known;
        }
        judge(intent, &self.me, &self.evidence().await, self.lease, now)
    }

    /// When to judge an intent again.
    pub fn expiry(&self, intent: &Intent) -> Timestamp {
        expiry(intent, self.lease)
    }

    async fn evidence(&self) -> Evidence {
        let lease = self.leases.get_opt(LEASE).await;
        // Pods cannot be requested by UID, so all Pods of the controller's namespace are listed, metadata only.
        let pods = self.pods.list_metadata(&ListParams::default()).await;
        for error in [lease.as_ref().err(), pods.as_ref().err()].into_iter().flatten() {
            tracing::warn!(%error, "cannot determine whether the holder of an open intent has terminated");
        }
        let released = match lease {
            Ok(Some(lease)) => LeaseView::of(&lease).released_by,
            _ => Vec::new(),
        };
        Evidence {
            released: released.iter().map(|identity| process_of(identity).to_owned()).collect(),
            pods: pods.ok().map(|list| list.items.iter().filter_map(ResourceExt::uid).collect()),
        }
    }
}

fn process_of(identity: &str) -> &str {
    identity.rsplit('_').next().unwrap_or(identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Operation;

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
        }
    }

    #[track_caller]
    fn check(left_by: Holder, me: &Holder, pods: &[&str], released: &[&str], second: i64, expected: HolderState) {
        let evidence = Evidence {
            released: released.iter().map(|text| (*text).to_owned()).collect(),
            pods: Some(pods.iter().map(|text| (*text).to_owned()).collect()),
        };
        let now = Timestamp::from_second(second).unwrap();
        assert_eq!(judge(&intent(left_by), me, &evidence, Duration::from_secs(15), now), expected);
    }

    #[test]
    fn a_holder_with_an_existing_pod_may_be_running() {
        check(holder("p1", "a"), &holder("p2", "b"), &["p1", "p2"], &[], 50, HolderState::Unknown);
    }

    #[test]
    fn a_holder_has_terminated_with_its_pod_or_process() {
        check(holder("p1", "a"), &holder("p2", "b"), &["p2"], &[], 50, HolderState::Ended);
        check(holder("p1", "a"), &holder("p1", "b"), &["p1"], &[], 50, HolderState::Ended);
    }

    #[test]
    fn a_released_lease_is_evidence() {
        check(holder("", "a"), &holder("", "b"), &[], &["a"], 50, HolderState::Ended);
        assert_eq!(process_of(&identity("purlin_7f", &holder("", "a"))), "a");
    }

    #[test]
    fn without_a_pod_only_a_released_lease_or_the_deadline_counts() {
        check(holder("", "a"), &holder("", "b"), &[], &[], 115, HolderState::Unknown);
        check(holder("", "a"), &holder("", "b"), &[], &[], 116, HolderState::Ended);
    }

    #[test]
    fn without_evidence_nothing_is_assumed() {
        let now = Timestamp::from_second(50).unwrap();
        let state = judge(&intent(holder("p1", "a")), &holder("p2", "b"), &Evidence::default(), Duration::ZERO, now);
        assert_eq!(state, HolderState::Unknown);
    }
}
