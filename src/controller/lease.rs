//! Leader election by a Lease.
//!
//! The Lease only keeps replicas from working at the same time most of the time; what keeps them from harm is the
//! compare-and-swap on records. Every write of the Lease carries the resourceVersion it was read at. Expiry is judged
//! by the own clock: from when this process last saw the Lease change, not from the times written in it.
//!
//! Ready-made crates were looked at: `kube-leader-election` writes without compare-and-swap, and neither it nor
//! `kube-lease-manager` can say who handed over cleanly, which recovery of open intents needs to know.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::Instant;

use super::options::ElectionTimes;
use crate::process::{Clock, Shutdown};

/// The name of the Lease.
pub const LEASE: &str = "purlin-controller";
/// The identities that last handed over cleanly, newest first, separated by commas.
pub const RELEASED_BY: &str = "purlin.dev/released-by";
/// How many of them are kept. Each is a sentence to recovery that its process has nothing under way any more; open
/// intents of processes that left longer ago are resolved by their deadline.
const RELEASES_KEPT: usize = 8;

/// What the Lease says, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseView {
    /// Who holds it; empty: nobody.
    pub holder: String,
    /// The compare-and-swap version.
    pub version: String,
    /// For how long the holder claims it.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: i32,
    /// Who handed over cleanly, newest first.
    pub released_by: Vec<String>,
}

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// There is none: create it.
    Create,
    /// It is free or has expired: take it.
    Take,
    /// It is ours: renew it.
    Renew,
    /// Somebody else has it.
    Follow,
}

/// Decides. `unchanged_for` is for how long this process has seen the Lease in this very version.
pub fn decide(me: &str, lease: Option<&LeaseView>, unchanged_for: Duration) -> Decision {
    match lease {
        None => Decision::Create,
        Some(lease) if lease.holder == me => Decision::Renew,
        Some(lease) if lease.holder.is_empty() || unchanged_for >= lease.duration => Decision::Take,
        Some(_) => Decision::Follow,
    }
}

/// Whether a leader must stop to lead: it could not renew for too long, so that others may take over soon.
pub fn must_step_down(times: &ElectionTimes, since_renewal: Duration) -> bool {
    since_renewal >= times.renew
}

/// The Lease after `me` took, renewed or gave it up.
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

/// The Lease after a clean hand-over: nobody holds it, and it says who left.
fn released(me: &str, before: &LeaseView, times: &ElectionTimes, now: Timestamp) -> Lease {
    let mut leavers = vec![me.to_owned()];
    leavers.extend(before.released_by.iter().filter(|other| *other != me).cloned());
    leavers.truncate(RELEASES_KEPT);
    let view = LeaseView { released_by: leavers, ..before.clone() };
    let mut lease = written("", Some(&view), Decision::Renew, times, now);
    if let Some(spec) = &mut lease.spec {
        // The API refuses an empty identity; an absent one means that nobody holds it.
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
    }
    lease
}

impl LeaseView {
    /// Reads a Lease.
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

/// What the rest of the process may know about leadership.
#[derive(Clone, Debug)]
pub struct Leadership {
    leading: watch::Receiver<bool>,
}

impl Leadership {
    /// Leadership of the only replica: always.
    pub fn alone() -> Self {
        Self { leading: watch::Sender::new(true).subscribe() }
    }

    /// Whether this replica may start steps.
    pub fn is_leading(&self) -> bool {
        *self.leading.borrow()
    }

    /// Returns once leadership is as wanted; never, when it cannot become so.
    pub async fn becomes(&mut self, wanted: bool) {
        if self.leading.wait_for(|leading| *leading == wanted).await.is_err() {
            // The elector has ended, so nothing changes any more.
            std::future::pending::<()>().await;
        }
    }
}

/// Takes part in the election.
pub struct Elector {
    api: Api<Lease>,
    me: String,
    times: ElectionTimes,
    clock: Arc<dyn Clock>,
    leading: watch::Sender<bool>,
    /// The Lease as last seen, and since when it is as it is.
    seen: Option<(LeaseView, Instant)>,
    renewed: Option<Instant>,
}

impl Elector {
    /// An elector that does not lead yet. `me` names this process and no other one, ever.
    pub fn new(client: Client, namespace: &str, me: String, times: ElectionTimes, clock: Arc<dyn Clock>) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, me, times, clock, leading: watch::Sender::new(false), seen: None, renewed: None }
    }

    /// Where the rest of the process sees whether it leads.
    pub fn leadership(&self) -> Leadership {
        Leadership { leading: self.leading.subscribe() }
    }

    /// Takes part until `drained`: while a stop awaits running calls, the Lease is renewed, so that nobody else starts
    /// on what they work on. Then hands over.
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

    /// One attempt to take or renew the Lease. The leader steps down when it could not renew in time.
    async fn attempt(&mut self) {
        let limit = self.times.renew.min(Duration::from_secs(5));
        let result = tokio::time::timeout(limit, self.compete()).await;
        match result {
            Ok(Ok(leading)) => self.lead(leading),
            Ok(Err(error)) => self.doubt(&error.to_string()),
            Err(_) => self.doubt("the API server did not answer in time"),
        }
    }

    /// Reads and, when it is free or ours, writes the Lease. Whether it is ours now.
    async fn compete(&mut self) -> Result<bool, kube::Error> {
        let lease = self.api.get_opt(LEASE).await?.map(|lease| LeaseView::of(&lease));
        let unchanged_for = self.observe(lease.clone());
        let decision = decide(&self.me, lease.as_ref(), unchanged_for);
        // The time before the write counts as the renewal: others may count from any moment after it.
        let before = Instant::now();
        let new = written(&self.me, lease.as_ref(), decision, &self.times, self.clock.now());
        let result = match decision {
            Decision::Follow => return Ok(false),
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
        match (&self.seen, lease) {
            (Some((seen, since)), Some(lease)) if *seen == lease => now - *since,
            (_, lease) => {
                self.seen = lease.map(|lease| (lease, now));
                Duration::ZERO
            }
        }
    }

    fn lead(&mut self, leading: bool) {
        if self.leading.send_replace(leading) != leading {
            let holder = self.seen.as_ref().map_or("", |(lease, _)| &lease.holder);
            if leading {
                tracing::info!(identity = self.me, "leading");
            } else {
                tracing::warn!(identity = self.me, holder, "no longer leading");
            }
        }
    }

    /// The Lease could not be read or written.
    fn doubt(&mut self, error: &str) {
        tracing::warn!(error, "the Lease could not be renewed");
        if self.renewed.is_none_or(|at| must_step_down(&self.times, at.elapsed())) {
            self.lead(false);
        }
    }

    /// Gives the Lease up, when it is ours. Called only after the last running step was recorded.
    async fn hand_over(mut self) {
        let was_leading = *self.leading.borrow();
        self.leading.send_replace(false);
        if !was_leading {
            return;
        }
        for _ in 0..3 {
            let attempt = tokio::time::timeout(Duration::from_secs(5), self.release()).await;
            match attempt {
                Ok(Ok(())) => return tracing::info!(identity = self.me, "handed over"),
                Ok(Err(error)) => tracing::warn!(%error, "the Lease could not be given up"),
                Err(_) => tracing::warn!("the API server did not answer in time"),
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
    fn a_free_or_expired_lease_is_taken_and_a_live_one_followed() {
        let short = Duration::from_secs(14);
        assert_eq!(decide("me", None, short), Decision::Create);
        assert_eq!(decide("me", Some(&held_by("")), Duration::ZERO), Decision::Take);
        assert_eq!(decide("me", Some(&held_by("other")), short), Decision::Follow);
        assert_eq!(decide("me", Some(&held_by("other")), TIMES.lease), Decision::Take);
        assert_eq!(decide("me", Some(&held_by("me")), TIMES.lease * 9), Decision::Renew);
    }

    #[test]
    fn a_leader_steps_down_before_others_may_take_over() {
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
    fn a_hand_over_leaves_nobody_as_holder_and_remembers_who_left() {
        let before = LeaseView { released_by: vec!["old".into(), "me".into()], ..held_by("me") };
        let view = LeaseView::of(&released("me", &before, &TIMES, Timestamp::UNIX_EPOCH));
        assert_eq!((view.holder.as_str(), view.released_by), ("", vec!["me".to_owned(), "old".to_owned()]));
    }
}
