//! Gets shards for this replica, and gives them back: reads and writes the Leases.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Api, Client};
use tokio::time::Instant;

use super::leadership::Leadership;
use super::lease::{
    Admission, INSTALLATION, LABEL, LEASE, LeaseView, admission, member_name, must_step_down, shard_name,
};
use super::metrics::Metrics;
use super::options::ElectionTimes;
use super::shards::{Distribution, Shard};
use process::backoff::LoggedErrors;
use process::{Clock, Shutdown, request_error};

/// How many times its duration a Lease of a replica is kept after it has expired.
const KEPT: u32 = 10;

/// All Leases of the installation at one moment.
#[derive(Default)]
struct Leases {
    installation: Option<LeaseView>,
    members: Vec<LeaseView>,
    shards: BTreeMap<Shard, LeaseView>,
    /// Those of shards of another division.
    obsolete: Vec<LeaseView>,
}

/// Participates in the distribution of shards.
pub struct Elector {
    api: Api<Lease>,
    /// The identity of this process, and the name of its Lease.
    me: String,
    member: String,
    times: ElectionTimes,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    leadership: Leadership,
    /// The last observed version of each Lease that expires, and since when it is unchanged.
    observed: BTreeMap<String, (String, Instant)>,
    renewed: Option<Instant>,
    /// The shards that this replica has taken since it last could not renew in time. Until it has written the Lease of a shard
    /// again, another replica may be about to take it.
    confirmed: BTreeSet<Shard>,
    /// What this replica waits for instead of holding shards, if the log has it already.
    waits: Option<Admission>,
    /// It shuts down, so it takes no more shards.
    leaving: bool,
    errors: LoggedErrors,
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
        leadership: Leadership,
    ) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            member: member_name(&me),
            me,
            times,
            clock,
            metrics,
            leadership,
            observed: BTreeMap::new(),
            renewed: None,
            confirmed: BTreeSet::new(),
            waits: None,
            leaving: false,
            errors: LoggedErrors::default(),
        }
    }

    /// Participates until `drained`, then gives everything back. From `shutdown` on it takes nothing more, and renews while
    /// running calls are awaited, so that no other replica works on the same objects.
    pub async fn run(mut self, shutdown: Shutdown, drained: Shutdown) {
        let leadership = self.leadership.clone();
        loop {
            self.leaving = shutdown.is_triggered();
            let succeeded = tokio::select! {
                biased;
                () = drained.triggered() => break,
                succeeded = self.attempt() => succeeded,
            };
            // A shard that this attempt could not release waits for the next one.
            let has_released = succeeded && leadership.drained().is_empty();
            tokio::select! {
                biased;
                () = drained.triggered() => break,
                () = leadership.becomes_drained(), if has_released => {}
                () = tokio::time::sleep(self.times.retry) => {}
            }
        }
        self.hand_over().await;
    }

    /// One attempt. Stops all shards as soon as this replica could not renew in time. Returns whether it succeeded.
    async fn attempt(&mut self) -> bool {
        let limit = self.times.renew.min(Duration::from_secs(5));
        let until = self.renewed.map(|at| at + self.times.renew);
        let leadership = self.leadership.clone();
        let step_down = async {
            if let Some(until) = until {
                tokio::time::sleep_until(until).await;
                leadership.suspend();
            }
            std::future::pending::<Infallible>().await
        };
        let result = tokio::select! {
            biased;
            result = tokio::time::timeout(limit, self.compete()) => result,
            never = step_down => match never {},
        };
        let held = result.as_ref().ok().and_then(|result| result.as_ref().ok()).copied();
        self.metrics.lease_attempted(held, self.clock.now());
        let error = match result {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(request_error(&error)),
            Err(_) => Some("the API server did not respond in time".to_owned()),
        };
        match error {
            Some(error) if self.errors.is_news(&error) => tracing::warn!(error, "could not renew the Lease; retrying"),
            None if self.errors.succeeded() => tracing::info!("the Lease is renewed again"),
            _ => {}
        }
        if !self.is_valid() {
            self.leadership.suspend();
        }
        held.is_some()
    }

    /// Whether the last renewal is recent enough.
    fn is_valid(&self) -> bool {
        self.renewed.is_some_and(|at| !must_step_down(&self.times, at.elapsed()))
    }

    /// Reads all Leases, renews that of this replica, and moves shards. Returns whether this replica may hold shards.
    async fn compete(&mut self) -> Result<bool, kube::Error> {
        let mut leases = self.read().await?;
        if !self.is_admitted(&mut leases).await? {
            self.leadership.hold(&BTreeSet::new(), &BTreeSet::new());
            return Ok(false);
        }
        // The renewal counts from before the write: other replicas may count from any later time.
        let before = Instant::now();
        self.renew(&mut leases).await?;
        let was_valid = self.is_valid();
        self.renewed = Some(before);
        if !was_valid {
            // Other replicas may have taken shards in the meantime, or be about to: each one is taken again.
            self.confirmed.clear();
            leases = self.read().await?;
        }
        let named = leases.shards.iter().filter(|(_, lease)| lease.holder == self.me).map(|(shard, _)| *shard);
        let named: BTreeSet<Shard> = named.collect();
        let unconfirmed: BTreeSet<Shard> = named.difference(&self.confirmed).copied().collect();
        self.take(&leases, &unconfirmed).await;
        let mut held: BTreeSet<Shard> = named.intersection(&self.confirmed).copied().collect();
        let leadership = self.leadership.clone();
        let distribution = self.distribution(&leases, &named);
        let moves = distribution.moves(leadership.division(), &self.me, |shard| leadership.cost(shard));
        held.extend(self.take(&leases, &moves.take).await);
        if !self.is_valid() {
            return Ok(true);
        }
        self.log_moves(&held);
        self.leadership.hold(&held, &moves.give_back);
        let released = self.release(&leases, &self.leadership.drained()).await;
        if !released.is_empty() {
            held.retain(|shard| !released.contains(shard));
            self.log_moves(&held);
            self.leadership.hold(&held, &moves.give_back);
        }
        self.sweep(&leases).await;
        Ok(true)
    }

    /// Reads the Leases, and observes which have changed.
    async fn read(&mut self) -> Result<Leases, kube::Error> {
        let list = self.api.list(&ListParams::default().labels(LABEL)).await?;
        let mut leases = Leases::default();
        for lease in list.items.iter().map(LeaseView::of) {
            match lease.shard(self.leadership.division()) {
                Some(shard) => drop(leases.shards.insert(shard, lease)),
                None if lease.is_shard() => leases.obsolete.push(lease),
                None if lease.name == LEASE => leases.installation = Some(lease),
                None if lease.is_member() => leases.members.push(lease),
                None => {}
            }
        }
        if leases.installation.is_none() {
            // That of a version without shards has no label.
            leases.installation = self.api.get_opt(LEASE).await?.map(|lease| LeaseView::of(&lease));
        }
        let now = Instant::now();
        let before = std::mem::take(&mut self.observed);
        for lease in leases.installation.iter().chain(&leases.members) {
            let same = before.get(&lease.name).filter(|(version, _)| *version == lease.version);
            let since = same.map_or(now, |(_, since)| *since);
            self.observed.insert(lease.name.clone(), (lease.version.clone(), since));
        }
        Ok(leases)
    }

    fn unchanged_for(&self, lease: &LeaseView) -> Duration {
        let same = self.observed.get(&lease.name).filter(|(version, _)| *version == lease.version);
        same.map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }

    fn is_alive(&self, member: &LeaseView) -> bool {
        member.name == self.member || self.unchanged_for(member) < member.duration
    }

    /// Whether this replica may hold shards. Renews the Lease of the installation if it must be.
    async fn is_admitted(&mut self, leases: &mut Leases) -> Result<bool, kube::Error> {
        let mut found = self.admission(leases);
        if found == Admission::Write {
            let known = leases.installation.clone();
            let known = known.unwrap_or_else(|| LeaseView { name: LEASE.to_owned(), ..LeaseView::default() });
            let shards = Some(self.leadership.division().count());
            match self.write(LeaseView { shards, ..known }.held_by(INSTALLATION)).await? {
                Some(written) => {
                    leases.installation = Some(written);
                    found = Admission::Admitted;
                }
                // Another replica has written it at the same time.
                None => {
                    *leases = self.read().await?;
                    found = self.admission(leases);
                }
            }
        }
        let is_admitted = found == Admission::Admitted;
        self.report_wait(found);
        Ok(is_admitted)
    }

    fn admission(&self, leases: &Leases) -> Admission {
        let lease = leases.installation.as_ref();
        let unchanged_for = lease.map_or(Duration::ZERO, |lease| self.unchanged_for(lease));
        admission(lease, unchanged_for, self.leadership.division(), &self.times)
    }

    fn report_wait(&mut self, admission: Admission) {
        let waits = Some(admission).filter(|admission| !matches!(admission, Admission::Admitted | Admission::Write));
        if self.waits == waits {
            return;
        }
        match &waits {
            Some(Admission::OldVersion(holder)) => tracing::warn!(
                holder,
                "waiting: a controller of a version without shards is the leader (hint: it hands over when it stops)"
            ),
            Some(Admission::OtherDivision(theirs)) => tracing::error!(
                shards = self.leadership.division().count(),
                theirs,
                "waiting: the running replicas divide the work into another number of shards (hint: set the same \
                 `--shards` for all replicas; this one continues when the others have stopped)"
            ),
            _ => {}
        }
        self.waits = waits;
    }

    /// Writes a Lease. `None`: it has another version.
    async fn write(&self, lease: LeaseView) -> Result<Option<LeaseView>, kube::Error> {
        let params = PostParams::default();
        let new = lease.write(&self.times, self.clock.now());
        let result = match lease.version.is_empty() {
            true => self.api.create(&params, &new).await,
            false => self.api.replace(&lease.name, &params, &new).await,
        };
        match result {
            Ok(lease) => Ok(Some(LeaseView::of(&lease))),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Renews the Lease of this replica.
    async fn renew(&self, leases: &mut Leases) -> Result<(), kube::Error> {
        let known = leases.members.iter().find(|lease| lease.name == self.member).cloned();
        let known = known.unwrap_or_else(|| LeaseView { name: self.member.clone(), ..LeaseView::default() });
        let new = LeaseView { leaving: self.leaving, ..known }.held_by(&self.me);
        match self.write(new).await? {
            Some(written) => {
                leases.members.retain(|lease| lease.name != self.member);
                leases.members.push(written);
                Ok(())
            }
            None => {
                let message = format!("another client has changed the Lease {}", self.member);
                Err(kube::Error::Service(message.into()))
            }
        }
    }

    /// Who holds what. `held`: the shards of this replica.
    fn distribution(&self, leases: &Leases, held: &BTreeSet<Shard>) -> Distribution {
        let alive: Vec<&LeaseView> = leases.members.iter().filter(|member| self.is_alive(member)).collect();
        let mut holders: BTreeMap<Shard, String> = leases
            .shards
            .iter()
            .filter(|(_, lease)| lease.holder != self.me && alive.iter().any(|member| member.holder == lease.holder))
            .map(|(shard, lease)| (*shard, lease.holder.clone()))
            .collect();
        holders.extend(held.iter().map(|shard| (*shard, self.me.clone())));
        let replicas = alive.iter().filter(|member| !member.leaving).map(|member| member.holder.clone()).collect();
        Distribution { replicas, holders }
    }

    /// Takes shards, and returns those that it got.
    async fn take(&mut self, leases: &Leases, shards: &BTreeSet<Shard>) -> BTreeSet<Shard> {
        let taken = self.assign(leases, shards, |lease| lease.taken_by(&self.me)).await;
        self.confirmed.extend(&taken);
        taken
    }

    /// Gives shards back, and returns those that it gave back.
    async fn release(&mut self, leases: &Leases, shards: &BTreeSet<Shard>) -> BTreeSet<Shard> {
        let released = self.assign(leases, shards, |lease| lease.with_release(&self.me).held_by("")).await;
        self.confirmed.retain(|shard| !released.contains(shard));
        released
    }

    /// Writes the Leases of shards, and returns those that were written. A write that fails or takes long affects only its
    /// shard: the next attempt reads whether it took effect.
    async fn assign(
        &self,
        leases: &Leases,
        shards: &BTreeSet<Shard>,
        change: impl Fn(LeaseView) -> LeaseView,
    ) -> BTreeSet<Shard> {
        let (limit, division) = (self.times.renew / 4, self.leadership.division());
        let writes = shards.iter().map(|shard| {
            let known = leases.shards.get(shard).cloned();
            let known =
                known.unwrap_or_else(|| LeaseView { name: shard_name(division, *shard), ..LeaseView::default() });
            tokio::time::timeout(limit, self.write(change(known)))
        });
        let mut assigned = BTreeSet::new();
        for (shard, written) in shards.iter().zip(join_all(writes).await) {
            match written {
                Ok(Ok(Some(_))) => drop(assigned.insert(*shard)),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    let error = request_error(&error);
                    tracing::warn!(%shard, error, "could not write the Lease of a shard");
                }
                Err(_) => {
                    let error = "the API server did not respond in time";
                    tracing::warn!(%shard, error, "could not write the Lease of a shard");
                }
            }
        }
        assigned
    }

    fn log_moves(&self, held: &BTreeSet<Shard>) {
        let before = self.leadership.held();
        let (taken, given): (BTreeSet<Shard>, BTreeSet<Shard>) =
            (held.difference(&before).copied().collect(), before.difference(held).copied().collect());
        self.metrics.shards_moved(taken.len(), given.len());
        if !taken.is_empty() || !given.is_empty() {
            let (identity, holds) = (self.me.as_str(), held.len());
            tracing::info!(identity, taken = joined(&taken), gave_back = joined(&given), holds, "shards have moved");
        }
    }

    /// Removes Leases that nothing needs any more: one of a replica that ended long ago, or one of a shard that no longer
    /// exists. Failures are ignored: the next attempt tries again.
    async fn sweep(&self, leases: &Leases) {
        let ended = leases.members.iter().find(|member| {
            member.name != self.member && self.unchanged_for(member) >= member.duration.saturating_mul(KEPT)
        });
        if let Some(lease) = ended.or(leases.obsolete.first())
            && let Err(error) = self.delete(lease).await
        {
            tracing::debug!(error = request_error(&error), lease = lease.name, "could not remove a Lease");
        }
    }

    async fn delete(&self, lease: &LeaseView) -> Result<(), kube::Error> {
        let version = Preconditions { resource_version: Some(lease.version.clone()), uid: None };
        match self.api.delete(&lease.name, &DeleteParams::default().preconditions(version)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives everything back. Call it only when all running calls are recorded.
    async fn hand_over(mut self) {
        self.leadership.suspend();
        for _ in 0..3 {
            match tokio::time::timeout(Duration::from_secs(5), self.leave()).await {
                Ok(Ok(())) => return tracing::info!(identity = self.me, "released the Lease"),
                Ok(Err(error)) => tracing::warn!(error = request_error(&error), "could not release the Lease"),
                Err(_) => tracing::warn!("could not release the Lease: the API server did not respond in time"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Records that this process has no running calls, and then removes its Lease, which frees its shards.
    async fn leave(&mut self) -> Result<(), kube::Error> {
        let leases = self.read().await?;
        let Some(member) = leases.members.iter().find(|lease| lease.name == self.member) else { return Ok(()) };
        if let Some(installation) = leases.installation.clone().filter(|lease| lease.holder == INSTALLATION) {
            let is_last = !leases.members.iter().any(|other| other.name != self.member && self.is_alive(other));
            let holder = if is_last { "" } else { INSTALLATION };
            if self.write(installation.with_release(&self.me).held_by(holder)).await?.is_none() {
                return Err(kube::Error::Service("another replica has changed the Lease at the same time".into()));
            }
        }
        self.delete(member).await
    }
}

fn joined(shards: &BTreeSet<Shard>) -> String {
    shards.iter().map(Shard::to_string).collect::<Vec<_>>().join(",")
}
