//! Whether the process that left an intent open is gone.
//!
//! A call that may still run somewhere must not be answered by a second one. So another holder's intent counts as left
//! only with evidence: it handed over, its Pod is gone, it is an earlier process of this very Pod, or the intent's
//! deadline has passed by more than a lease. A call may go on past its limit: as long as it does, its process moves the
//! deadline.

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

/// What is known about other processes.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The processes that handed the Lease over cleanly.
    pub released: BTreeSet<String>,
    /// The Pods that exist, by UID; `None` when they could not be listed.
    pub pods: Option<BTreeSet<String>>,
}

/// Decides, for an intent whose step does not run in this process.
pub fn judge(intent: &Intent, me: &Holder, evidence: &Evidence, lease: Duration, now: Timestamp) -> HolderState {
    let holder = &intent.holder;
    // What a step of this process carries out is not settled at all.
    let own = holder == me;
    let earlier_in_my_pod = !me.pod.is_empty() && holder.pod == me.pod;
    let handed_over = evidence.released.contains(holder.process.as_ref());
    let pod_gone = match &evidence.pods {
        Some(pods) => !holder.pod.is_empty() && !pods.contains(holder.pod.as_ref()),
        None => false,
    };
    if own || earlier_in_my_pod || handed_over || pod_gone || now > expiry(intent, lease) {
        HolderState::Gone
    } else {
        HolderState::Unknown
    }
}

/// When an intent counts as left though nothing is known about its holder.
pub fn expiry(intent: &Intent, lease: Duration) -> Timestamp {
    let lease = SignedDuration::try_from(lease).unwrap_or(SignedDuration::ZERO);
    intent.deadline.saturating_add(lease).unwrap_or(Timestamp::MAX)
}

/// The identity of a process in the Lease. Its last part is what intents hold.
pub fn identity(host: &str, holder: &Holder) -> String {
    format!("{host}_{}", holder.process)
}

/// Finds evidence in the controller's namespace.
#[derive(Clone)]
pub struct Holders {
    pods: Api<Pod>,
    leases: Api<Lease>,
    me: Holder,
    lease: Duration,
}

impl Holders {
    /// Looks for evidence as the process `me`.
    pub fn new(client: Client, namespace: &str, me: Holder, lease: Duration) -> Self {
        let pods = Api::namespaced(client.clone(), namespace);
        Self { pods, leases: Api::namespaced(client, namespace), me, lease }
    }

    /// Judges an intent, with evidence as of now. Without evidence the answer is `Unknown`.
    pub async fn state(&self, intent: &Intent, now: Timestamp) -> HolderState {
        // What can be said without asking anybody is.
        let known = judge(intent, &self.me, &Evidence::default(), self.lease, now);
        if known == HolderState::Gone {
            return known;
        }
        judge(intent, &self.me, &self.evidence().await, self.lease, now)
    }

    /// When to look again though nothing happens.
    pub fn expiry(&self, intent: &Intent) -> Timestamp {
        expiry(intent, self.lease)
    }

    async fn evidence(&self) -> Evidence {
        let lease = self.leases.get_opt(LEASE).await;
        // A Pod cannot be asked for by its UID, so all of the controller's namespace are listed, names only.
        let pods = self.pods.list_metadata(&ListParams::default()).await;
        for error in [lease.as_ref().err(), pods.as_ref().err()].into_iter().flatten() {
            tracing::warn!(%error, "cannot tell whether the holder of an open intent is gone");
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
    fn a_holder_whose_pod_lives_may_be_running() {
        check(holder("p1", "a"), &holder("p2", "b"), &["p1", "p2"], &[], 50, HolderState::Unknown);
    }

    #[test]
    fn a_holder_is_gone_with_its_pod_or_its_process() {
        check(holder("p1", "a"), &holder("p2", "b"), &["p2"], &[], 50, HolderState::Gone);
        check(holder("p1", "a"), &holder("p1", "b"), &["p1"], &[], 50, HolderState::Gone);
    }

    #[test]
    fn a_clean_hand_over_is_evidence() {
        check(holder("", "a"), &holder("", "b"), &[], &["a"], 50, HolderState::Gone);
        assert_eq!(process_of(&identity("purlin_7f", &holder("", "a"))), "a");
    }

    #[test]
    fn outside_of_a_pod_only_hand_over_or_deadline_count() {
        check(holder("", "a"), &holder("", "b"), &[], &[], 115, HolderState::Unknown);
        check(holder("", "a"), &holder("", "b"), &[], &[], 116, HolderState::Gone);
    }

    #[test]
    fn without_evidence_nothing_is_assumed() {
        let now = Timestamp::from_second(50).unwrap();
        let state = judge(&intent(holder("p1", "a")), &holder("p2", "b"), &Evidence::default(), Duration::ZERO, now);
        assert_eq!(state, HolderState::Unknown);
    }
}
