//! The Leases of an installation, as values.
//!
//! - `purlin-controller` says that the installation divides its work into shards, and into how many. Any replica renews it.
//!   A version of Purlin without shards, and a replica with another number of shards, wait until it expires. It names the
//!   processes that shut down cleanly, and the Lease of a shard those that gave it back: the recovery of open intents needs it.
//! - `purlin-member-<process>` shows that a replica is alive. Only that replica renews it.
//! - `purlin-shard-<shards>-<number>` names the replica that holds a shard. It is written only when that changes: it is valid
//!   as long as the Lease of the replica. The same number means other namespaces if there is another number of shards, so
//!   each division has Leases of its own.
//!
//! Every write has the resourceVersion of its read. Expiry is measured by the local clock, from the last observed change of
//! a Lease, not by the times in it. Leases usually keep replicas from working on the same objects; safety depends on the
//! compare-and-swap of records.
//!
//! Existing crates are not sufficient: `kube-leader-election` writes without compare-and-swap, and neither it nor
//! `kube-lease-manager` has several Leases that depend on one.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;

use super::options::ElectionTimes;
use super::shards::{Division, Shard};

/// The Lease of the installation.
pub const LEASE: &str = "purlin-controller";
/// The holder of that Lease.
pub const INSTALLATION: &str = "purlin-shards";
/// The label of all Leases of an installation. Its value: `installation`, `member` or `shard`.
pub const LABEL: &str = "purlin.dev/lease";
/// The annotation with the number of shards.
const SHARDS: &str = "purlin.dev/shards";
/// The annotation of a replica that takes no more shards because it shuts down.
const LEAVING: &str = "purlin.dev/leaving";
/// The annotation with the identities that last shut down cleanly, newest first, separated by commas.
const RELEASED_BY: &str = "purlin.dev/released-by";
/// How many identities are kept. Each one shows recovery that its process has no running call; open intents of earlier
/// processes are resolved after their deadline.
const RELEASES_KEPT: usize = 64;
const MEMBER: &str = "purlin-member-";
const SHARD: &str = "purlin-shard-";

/// The relevant fields of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseView {
    pub name: String,
    /// The identity of the holder; empty: no holder.
    pub holder: String,
    /// The resourceVersion, for compare-and-swap.
    pub version: String,
    pub duration: Duration,
    /// How often the holder has changed.
    pub transitions: i32,
    /// The identities that shut down cleanly, or gave the shard back, newest first.
    pub released_by: Vec<String>,
    /// The number of shards.
    pub shards: Option<u16>,
    /// The replica takes no more shards.
    pub leaving: bool,
}

impl LeaseView {
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let released = annotation(lease, RELEASED_BY).unwrap_or_default();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            name: lease.metadata.name.clone().unwrap_or_default(),
            holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
            duration: Duration::from_secs(seconds.unwrap_or(0)),
            transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or(0),
            released_by: released.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            shards: annotation(lease, SHARDS).and_then(|text| text.parse().ok()),
            leaving: annotation(lease, LEAVING).is_some(),
        }
    }

    pub fn is_member(&self) -> bool {
        self.name.starts_with(MEMBER)
    }

    /// The shard of this division of which it is the Lease.
    pub fn shard(&self, division: Division) -> Option<Shard> {
        let (count, number) = self.name.strip_prefix(SHARD)?.split_once('-')?;
        let shard = number.parse().ok().filter(|_| count.parse() == Ok(division.count()))?;
        division.all().any(|known| known == shard).then_some(shard)
    }

    /// Whether it is the Lease of a shard, of any division.
    pub fn is_shard(&self) -> bool {
        self.name.starts_with(SHARD)
    }

    /// The Lease with one more identity that has no running calls: in the installation, or in the shard.
    #[must_use]
    pub fn with_release(mut self, identity: &str) -> Self {
        self.released_by.retain(|other| other != identity);
        self.released_by.insert(0, identity.to_owned());
        self.released_by.truncate(RELEASES_KEPT);
        self
    }

    /// The Lease of a shard for a replica that takes it: an earlier release by it is no evidence about its next calls.
    #[must_use]
    pub fn taken_by(mut self, holder: &str) -> Self {
        self.released_by.retain(|other| other != holder);
        self.held_by(holder)
    }

    /// The Lease with a holder; empty: without one.
    #[must_use]
    pub fn held_by(mut self, holder: &str) -> Self {
        self.transitions += i32::from(self.holder != holder);
        holder.clone_into(&mut self.holder);
        self
    }

    /// The Lease to write. Without a version it is created.
    pub fn write(&self, times: &ElectionTimes, now: Timestamp) -> Lease {
        let texts = [
            (RELEASED_BY, Some(self.released_by.join(",")).filter(|text| !text.is_empty())),
            (SHARDS, self.shards.map(|count| count.to_string())),
            (LEAVING, self.leaving.then(|| "true".to_owned())),
        ];
        let annotations = texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?)));
        let kind = match () {
            () if self.is_member() => "member",
            () if self.name == LEASE => "installation",
            () => "shard",
        };
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: Some(self.version.clone()).filter(|version| !version.is_empty()),
                labels: Some(BTreeMap::from([(LABEL.to_owned(), kind.to_owned())])),
                annotations: Some(annotations.collect()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                // The API server rejects an empty identity; without one the Lease has no holder.
                holder_identity: Some(self.holder.clone()).filter(|holder| !holder.is_empty()),
                lease_duration_seconds: i32::try_from(times.lease.as_secs().max(1)).ok(),
                lease_transitions: Some(self.transitions),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        }
    }
}

fn annotation<'a>(lease: &'a Lease, key: &str) -> Option<&'a str> {
    lease.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The name of the Lease of a replica.
pub fn member_name(identity: &str) -> String {
    format!("{MEMBER}{}", process_of(identity))
}

/// The process in the identity of a replica, which is its last part.
pub fn process_of(identity: &str) -> &str {
    identity.rsplit('_').next().unwrap_or(identity)
}

pub fn shard_name(division: Division, shard: Shard) -> String {
    format!("{SHARD}{}-{shard}", division.count())
}

/// Whether a replica may hold shards, by the Lease of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    /// It may when it has written the Lease.
    Write,
    /// A replica of a version without shards is the leader.
    OldVersion(String),
    /// The other replicas have another number of shards; `None`: it is not known.
    OtherDivision(Option<u16>),
}

/// `unchanged_for`: for how long this process has observed the same version of the Lease.
pub fn admission(
    lease: Option<&LeaseView>,
    unchanged_for: Duration,
    division: Division,
    times: &ElectionTimes,
) -> Admission {
    match lease {
        None => Admission::Write,
        Some(lease) if lease.holder.is_empty() || unchanged_for >= lease.duration => Admission::Write,
        Some(lease) if lease.holder != INSTALLATION => Admission::OldVersion(lease.holder.clone()),
        Some(lease) if lease.shards != Some(division.count()) => Admission::OtherDivision(lease.shards),
        Some(_) if unchanged_for >= times.lease / 3 => Admission::Write,
        Some(_) => Admission::Admitted,
    }
}

/// Whether a replica must stop because it could not renew for too long.
pub fn must_step_down(times: &ElectionTimes, since_renewal: Duration) -> bool {
    since_renewal >= times.renew
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: ElectionTimes =
        ElectionTimes { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) };

    fn held_by(holder: &str) -> LeaseView {
        LeaseView {
            name: LEASE.into(),
            holder: holder.into(),
            version: "7".into(),
            duration: TIMES.lease,
            transitions: 3,
            shards: Some(16),
            ..LeaseView::default()
        }
    }

    fn admitted(lease: Option<&LeaseView>, seconds: u64) -> Admission {
        admission(lease, Duration::from_secs(seconds), Division::new(16), &TIMES)
    }

    #[test]
    fn a_leader_without_shards_is_waited_for() {
        let old = held_by("old_7f");
        assert_eq!(admitted(Some(&old), 14), Admission::OldVersion("old_7f".into()));
        assert_eq!(admitted(Some(&old), 15), Admission::Write);
        assert_eq!(admitted(Some(&held_by("")), 0), Admission::Write);
        assert_eq!(admitted(None, 0), Admission::Write);
    }

    #[test]
    fn replicas_with_another_number_of_shards_are_waited_for() {
        let other = LeaseView { shards: Some(8), ..held_by(INSTALLATION) };
        assert_eq!(admitted(Some(&other), 14), Admission::OtherDivision(Some(8)));
        assert_eq!(admitted(Some(&other), 15), Admission::Write);
    }

    #[test]
    fn the_installation_is_renewed_long_before_a_replica_without_shards_would_take_it() {
        let ours = held_by(INSTALLATION);
        assert_eq!(admitted(Some(&ours), 4), Admission::Admitted);
        assert_eq!(admitted(Some(&ours), 5), Admission::Write);
    }

    #[test]
    fn a_replica_steps_down_before_its_lease_expires() {
        assert!(!must_step_down(&TIMES, Duration::from_secs(9)));
        assert!(must_step_down(&TIMES, TIMES.renew));
        assert!(TIMES.renew < TIMES.lease);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let view = held_by("other").held_by("me").with_release("a").with_release("b").with_release("a");
        let written = view.write(&TIMES, Timestamp::UNIX_EPOCH);
        assert_eq!(written.metadata.resource_version.as_deref(), Some("7"));
        let read = LeaseView::of(&written);
        assert_eq!(read, view);
        assert_eq!((read.transitions, read.released_by), (4, vec!["a".to_owned(), "b".to_owned()]));
        let leaving = LeaseView { name: member_name("pod_7f"), leaving: true, ..LeaseView::default() };
        let read = LeaseView::of(&leaving.write(&TIMES, Timestamp::UNIX_EPOCH));
        assert!(read.is_member() && read.leaving && read.holder.is_empty() && read.version.is_empty());
    }

    #[test]
    fn the_name_of_a_lease_has_its_shard_and_its_division() {
        let division = Division::new(3);
        let named = |name: String| LeaseView { name, ..LeaseView::default() };
        for shard in division.all() {
            let lease = named(shard_name(division, shard));
            assert_eq!((lease.shard(division), lease.is_member(), lease.is_shard()), (Some(shard), false, true));
            assert_eq!(lease.shard(Division::new(4)), None, "another division has other namespaces in it");
        }
        for name in [LEASE, "purlin-shard-1", "purlin-shard-3-3", "purlin-shard-3-x"] {
            assert_eq!(named(name.to_owned()).shard(division), None, "{name}");
        }
    }
}
