//! Leader election by a Lease.
//!
//! The Lease usually keeps replicas from working at the same time; safety depends on the compare-and-swap of records.
//! Every write of the Lease has the resourceVersion of its read. Expiry is measured by the local clock, from the last
//! observed change of the Lease, not by the times in it.
//!
//! Existing crates are not sufficient: `kube-leader-election` writes without compare-and-swap, and neither it nor
//! `kube-lease-manager` records which processes shut down cleanly, which the recovery of open intents needs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::Instant;

use super::metrics::Metrics;
use super::options::ElectionTimes;
use crate::process::{Clock, Shutdown};

pub const LEASE: &str = "purlin-controller";
/// The annotation with the identities that last released the Lease, newest first, separated by commas.
pub const RELEASED_BY: &str = "purlin.dev/released-by";
/// How many identities are kept. Each one shows recovery that its process has no running call; open intents of earlier
/// processes are resolved after their deadline.
const RELEASES_KEPT: usize = 8;

/// The relevant fields of the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseView {
    /// The identity of the holder; empty: no holder.
    pub holder: String,
    /// The resourceVersion, for compare-and-swap.
    pub version: String,
    /// The lease duration.
    pub duration: Duration,
    /// How often the holder has changed.
    pub transitions: i32,
    /// The identities that released it, newest first.
    pub released_by: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No Lease exists: create it.
    Create,
    /// It is free or has expired: take it.
    Take,
    /// This process holds it: renew it.
    Renew,
    /// Another process holds it.
    StandBy,
}

/// `unchanged_for`: for how long this process has observed the same version of the Lease.
pub fn decide(me: &str, lease: Option<&LeaseView>, unchanged_for: Duration) -> Decision {
    match lease {
        None => Decision::Create,
        Some(lease) if lease.holder == me => Decision::Renew,
        Some(lease) if lease.holder.is_empty() || unchanged_for >= lease.duration => Decision::Take,
        Some(_) => Decision::StandBy,
    }
}

/// Whether a leader must step down because it could not renew for too long.
pub fn must_step_down(times: &ElectionTimes, since_renewal: Duration) -> bool {
    since_renewal >= times.renew
}

/// The Lease after `me` acquired or renewed it.
fn written(me: &str, before: Option<&LeaseView>, decision: Decision, times: &ElectionTimes, now: Timestamp) -> Lease {
    let taken = matches!(decision, Decision::Create | Decision::Take);
    let transitions = before.map_or(0, |lease| lease.transitions + i32::from(taken));
    let released_by = before.map(|lease| lease.released_by.join(",")).filter(|text| !text.is_empty());
    Lease {
        metadata: ObjectMeta {
            name: Some(LEASE.into()),
            resource_version: before.map(|lease| lease.version.clone()),
            annotations: released_by.map(|text| [(RELEASED_BY.to_owned(), text)].into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(me.into()),
            lease_duration_seconds: i32::try_from(times.lease.as_secs().max(1)).ok(),
            lease_transitions: Some(transitions),
            acquire_time: taken.then_some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}

/// The Lease after `me` released it.
fn released(me: &str, before: &LeaseView, times: &ElectionTimes, now: Timestamp) -> Lease {
    let mut identities = vec![me.to_owned()];
    identities.extend(before.released_by.iter().filter(|other| *other != me).cloned());
    identities.truncate(RELEASES_KEPT);
    let view = LeaseView { released_by: identities, ..before.clone() };
    let mut lease = written("", Some(&view), Decision::Renew, times, now);
    if let Some(spec) = &mut lease.spec {
        // The API server rejects an empty identity; without one the Lease has no holder.
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
    }
    lease
}

impl LeaseView {
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let released = lease.metadata.annotations.as_ref().and_then(|all| all.get(RELEASED_BY));
        Self {
            holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
            duration: Duration::from_secs(
                spec.and_then(|spec| spec.lease_duration_seconds).and_then(|s| u64::try_from(s).ok()).unwrap_or(0),
            ),
            transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or(0),
            released_by: released
                .map(|text| text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect())
                .unwrap_or_default(),
        }
    }
}

/// The leadership of this process, for its other tasks.
#[derive(Clone, Debug)]
pub struct Leadership {
    leading: watch::Receiver<bool>,
}

impl Leadership {
    /// For a single replica, which is always the leader.
    pub fn alone() -> Self {
        Self { leading: watch::Sender::new(true).subscribe() }
    }

    pub fn is_leading(&self) -> bool {
        *self.leading.borrow()
    }

    /// Returns when leadership has the given value; never if it cannot change any more.
    pub async fn becomes(&mut self, expected: bool) {
        if self.leading.wait_for(|leading| *leading == expected).await.is_err() {
            // The elector has ended, so leadership no longer changes.
            std::future::pending::<()>().await;
        }
    }
}

/// Participates in the election.
pub struct Elector {
    api: Api<Lease>,
    me: String,
    times: ElectionTimes,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    leading: watch::Sender<bool>,
    /// The last observed Lease, and since when it is unchanged.
    observed: Option<(LeaseView, Instant)>,
    renewed: Option<Instant>,
}

impl Elector {
    /// `me` must be unique to this process.
    pub fn new(
        client: Client,
        namespace: &str,
        me: String,
        times: ElectionTimes,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
    ) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, me, times, clock, metrics, leading: watch::Sender::new(false), observed: None, renewed: None }
    }

    /// A handle for the other tasks.
    pub fn leadership(&self) -> Leadership {
        Leadership { leading: self.leading.subscribe() }
    }

    /// Participates until `drained`, then releases the Lease. It renews the Lease while a shutdown waits for running
    /// calls, so that no other replica works on the same objects.
    pub async fn run(mut self, drained: Shutdown) {
        loop {
            tokio::select! {
                biased;
                () = drained.triggered() => break,
                () = self.attempt() => {}
            }
            tokio::select! {
                biased;
                () = drained.triggered() => break,
                () = tokio::time::sleep(self.times.retry) => {}
            }
        }
        self.hand_over().await;
    }

    /// One attempt to acquire or renew the Lease. The leader steps down if it could not renew in time.
    async fn attempt(&mut self) {
        let limit = self.times.renew.min(Duration::from_secs(5));
        let result = tokio::time::timeout(limit, self.compete()).await;
        let held = result.as_ref().ok().and_then(|result| result.as_ref().ok()).copied();
        self.metrics.lease_attempted(held, self.clock.now());
        match result {
            Ok(Ok(leading)) => self.lead(leading),
            Ok(Err(error)) => self.renewal_failed(&error.to_string()),
            Err(_) => self.renewal_failed("the API server did not respond in time"),
        }
    }

    /// Reads the Lease, and writes it if it is free or held by this process. Returns whether this process holds it.
    async fn compete(&mut self) -> Result<bool, kube::Error> {
        let lease = self.api.get_opt(LEASE).await?.map(|lease| LeaseView::of(&lease));
        let unchanged_for = self.observe(lease.clone());
        let decision = decide(&self.me, lease.as_ref(), unchanged_for);
        // The renewal counts from before the write: other replicas may count from any later time.
        let before = Instant::now();
        let new = written(&self.me, lease.as_ref(), decision, &self.times, self.clock.now());
        let result = match decision {
            Decision::StandBy => return Ok(false),
            Decision::Create => self.api.create(&PostParams::default(), &new).await,
            Decision::Take | Decision::Renew => self.api.replace(LEASE, &PostParams::default(), &new).await,
        };
        match result {
            Ok(lease) => {
                self.observe(Some(LeaseView::of(&lease)));
                self.renewed = Some(before);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn observe(&mut self, lease: Option<LeaseView>) -> Duration {
        let now = Instant::now();
        match (&self.observed, lease) {
            (Some((observed, since)), Some(lease)) if *observed == lease => now - *since,
            (_, lease) => {
                self.observed = lease.map(|lease| (lease, now));
                Duration::ZERO
            }
        }
    }

    fn lead(&mut self, leading: bool) {
        if self.leading.send_replace(leading) != leading {
            let holder = self.observed.as_ref().map_or("", |(lease, _)| &lease.holder);
            if leading {
                tracing::info!(identity = self.me, "started leading");
            } else {
                tracing::warn!(identity = self.me, holder, "stopped leading");
            }
        }
    }

    /// Handles a failed attempt.
    fn renewal_failed(&mut self, error: &str) {
        tracing::warn!(error, "could not renew the Lease");
        if self.renewed.is_none_or(|at| must_step_down(&self.times, at.elapsed())) {
            self.lead(false);
        }
    }

    /// Releases the Lease if this process holds it. Call it only when all running steps are recorded.
    async fn hand_over(mut self) {
        let was_leading = *self.leading.borrow();
        self.leading.send_replace(false);
        if !was_leading {
            return;
        }
        for _ in 0..3 {
            let attempt = tokio::time::timeout(Duration::from_secs(5), self.release()).await;
            match attempt {
                Ok(Ok(())) => return tracing::info!(identity = self.me, "released the Lease"),
                Ok(Err(error)) => tracing::warn!(%error, "could not release the Lease"),
                Err(_) => tracing::warn!("could not release the Lease: the API server did not respond in time"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn release(&mut self) -> Result<(), kube::Error> {
        let Some(lease) = self.api.get_opt(LEASE).await?.map(|lease| LeaseView::of(&lease)) else { return Ok(()) };
        if lease.holder == self.me {
            let new = released(&self.me, &lease, &self.times, self.clock.now());
            self.api.replace(LEASE, &PostParams::default(), &new).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: ElectionTimes =
        ElectionTimes { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) };

    fn held_by(holder: &str) -> LeaseView {
        LeaseView {
            holder: holder.into(),
            version: "7".into(),
            duration: TIMES.lease,
            transitions: 3,
            ..LeaseView::default()
        }
    }

    #[test]
    fn only_a_free_or_expired_lease_is_acquired() {
        let short = Duration::from_secs(14);
        assert_eq!(decide("me", None, short), Decision::Create);
        assert_eq!(decide("me", Some(&held_by("")), Duration::ZERO), Decision::Take);
        assert_eq!(decide("me", Some(&held_by("other")), short), Decision::StandBy);
        assert_eq!(decide("me", Some(&held_by("other")), TIMES.lease), Decision::Take);
        assert_eq!(decide("me", Some(&held_by("me")), TIMES.lease * 9), Decision::Renew);
    }

    #[test]
    fn a_leader_steps_down_before_the_lease_expires() {
        assert!(!must_step_down(&TIMES, Duration::from_secs(9)));
        assert!(must_step_down(&TIMES, TIMES.renew));
        assert!(TIMES.renew < TIMES.lease);
    }

    #[test]
    fn every_write_carries_the_version_and_counts_transitions() {
        let lease = written("me", Some(&held_by("other")), Decision::Take, &TIMES, Timestamp::UNIX_EPOCH);
        let view = LeaseView::of(&lease);
        assert_eq!((view.version.as_str(), view.transitions, view.holder.as_str()), ("7", 4, "me"));
        let renewed = LeaseView::of(&written("me", Some(&view), Decision::Renew, &TIMES, Timestamp::UNIX_EPOCH));
        assert_eq!(renewed.transitions, 4);
    }

    #[test]
    fn a_released_lease_has_no_holder_and_records_the_last_one() {
        let before = LeaseView { released_by: vec!["old".into(), "me".into()], ..held_by("me") };
        let view = LeaseView::of(&released("me", &before, &TIMES, Timestamp::UNIX_EPOCH));
        assert_eq!((view.holder.as_str(), view.released_by), ("", vec!["me".to_owned(), "old".to_owned()]));
    }
}
