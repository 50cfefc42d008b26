//! Requests plans for names that are due, and adopts the results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::adopted_plans::AdoptedPlans;
use super::debounce::Debounce;
use super::index::{Index, Work};
use super::plan_request::{PartKind, PlanPart, PlanRequest, PlanResult, PlanScope};
use super::scope::BacklogShare;
use super::time::Time;
use super::{Command, Environment, Phase, Reconciler};
use engine::load::Config;
use engine::plan::{ObjectBlock, PlanOptions, Refresh, ResponseCache};
use model::{Address, Reason, in_family};

/// How often destroys that are held because of the CRD are retried.
pub const CRD_AGAIN: Duration = Duration::from_secs(15);
/// How often destroys are retried while Resources are being listed: a page takes about that long.
const RELISTED_AGAIN: Duration = Duration::from_millis(100);
/// The delay after a planning that panicked.
const AFTER_PANIC: Duration = Duration::from_secs(30);
/// Consecutive failed creates after which Purlin stops replacing an object.
const MAX_FAILED_CREATES: u32 = 3;

#[derive(Debug, Default)]
pub struct Planning {
    /// Names that changed and are not planned yet.
    pub debounce: Debounce,
    /// The share of this namespace in the steps that may wait. `None`: no limit.
    pub share: Option<BacklogShare>,
    /// When names were last released that were held back, for each [`Queue`](super::debounce::Queue).
    pub released_at: [Time; 2],
    /// The names of plans that are being computed. They are disjoint.
    pub in_progress: BTreeSet<Arc<str>>,
    /// Names that have joined a component that is being planned or moved. They are planned afterwards.
    pub joining: BTreeSet<Arc<str>>,
    /// Names whose last plan was stale because steps continued during planning.
    pub stale_names: BTreeSet<Arc<str>>,
    /// Names for which the schedule is paused during planning, and until when at the latest.
    pub pauses: Vec<(Time, BTreeSet<Arc<str>>)>,
    /// Destructive plan parts that wait until their component is quiet.
    pub deferred: Vec<DeferredPart>,
    /// Plans with open steps.
    pub adopted: AdoptedPlans,
    /// Cached provider responses for objects that wait to be created or changed.
    pub memo: ResponseCache,
}

impl Planning {
    /// Stops planning and adopting.
    pub fn stop(&mut self) {
        self.deferred.clear();
        self.pauses.clear();
        self.in_progress.clear();
    }

    /// Whether a name has changed since its last plan, or is being planned.
    pub fn is_unplanned(&self, name: &Arc<str>) -> bool {
        self.debounce.contains(name) || self.in_progress.contains(name) || self.joining.contains(name)
    }

    /// Whether any name has changed since its last plan, or is being planned.
    pub fn has_unplanned(&self) -> bool {
        self.debounce.len() > 0 || !self.in_progress.is_empty() || !self.joining.is_empty()
    }

    pub fn is_quiet(&self) -> bool {
        self.in_progress.is_empty() && self.deferred.is_empty()
    }

    /// The number of names of the parts that wait until their component is quiet.
    pub fn deferred_names(&self) -> usize {
        self.deferred.iter().map(|deferred| deferred.part.names.len()).sum()
    }

    fn finish(&mut self, names: &BTreeSet<Arc<str>>) {
        names.iter().for_each(|name| _ = self.in_progress.remove(name));
        self.joining.clear();
        self.debounce.finish(names);
    }

    /// Executes a part of a plan later, unless a newer plan covers any of its names.
    fn defer(&mut self, part: PlanPart, at: Time) {
        self.debounce.defer(&part.names);
        self.deferred.push(DeferredPart { part, at });
    }

    /// Drops the deferred parts that a new plan of these names replaces. Returns their names, which are due again.
    pub fn drop_deferred(&mut self, names: &BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
        let dropped = self.deferred.extract_if(.., |deferred| !deferred.part.names.is_disjoint(names));
        let due: BTreeSet<Arc<str>> = dropped.flat_map(|dropped| dropped.part.names).collect();
        self.debounce.finish(&due);
        due
    }
}

#[derive(Debug)]
pub struct DeferredPart {
    pub part: PlanPart,
    at: Time,
}

impl Reconciler {
    /// Requests a plan of a scope.
    pub fn start_planning(&mut self, scope: PlanScope, environment: &dyn Environment) {
        tracing::debug!(namespace = &**self.namespace(), names = ?scope.names, "planning");
        self.planning.debounce.begin(&scope.names);
        self.pause_if_stale(&scope.names);
        self.start_recoveries(&scope.names);
        let addresses = self.addresses(&self.index, &scope.names);
        let config = Arc::new(self.index.config(&scope.names));
        let recorded = self.index.records().of(&addresses);
        let fingerprints = fingerprints(&self.index, &addresses);
        let desired_digests = scope.names.iter().map(|name| (name.clone(), self.index.desired_digest(name))).collect();
        let seed = self.random.number();
        let mut options = self.plan_options(&self.index, &scope.names, &addresses, seed);
        let mut due = BTreeSet::new();
        self.read_for_plans(&scope.names);
        for address in &addresses {
            self.add_object_options(address, &config, fingerprints[address], &mut options, &mut due);
        }
        due.extend(self.unseen_objects(&scope.names, &config, environment));
        self.read_together(&mut options, &mut due);
        let records = self.index.records();
        options.missing_counts = self.objects.missing.others(records, &addresses, &due, self.now.time);
        let mut memo = self.planning.memo.take(&scope.names, self.now.wall);
        due.iter().for_each(|address| memo.remove(address));
        options.refresh = Refresh::Due(due);
        self.planning.in_progress.extend(scope.names.iter().cloned());
        let (began, desired_digests) = (self.now.time, Arc::new(desired_digests));
        let approvals = self.policy.requires_approval.then(|| self.approvals());
        let approvals = approvals.filter(|approvals| approvals.concern(&config, &recorded));
        let guarded = Vec::new();
        let request = PlanRequest {
            config,
            recorded,
            options,
            memo,
            approvals,
            guarded,
            approved: BTreeMap::new(),
            scope,
            addresses,
            fingerprints,
            desired_digests,
            began,
        };
        self.commands.push(Command::Plan(Box::new(request)));
    }

    /// The options of a plan of whole components, without those that depend on single objects.
    pub fn plan_options(
        &self,
        index: &Index,
        names: &BTreeSet<Arc<str>>,
        addresses: &BTreeSet<Address>,
        seed: u64,
    ) -> PlanOptions {
        let readings = names.iter().flat_map(|name| in_family(self.schedule.readings(), name));
        PlanOptions {
            readings: readings.map(|(address, reading)| (address.clone(), reading.clone())).collect(),
            refresh: Refresh::Due(BTreeSet::new()),
            // By name: only their running step may know some instances of a family whose size an expression determines.
            running: self.schedule.running(|address| names.contains(&address.name)),
            seed,
            namespace_terminating: index.is_terminating(),
            namespace_value: index.namespace_value().clone(),
            indexed: index.indexed(names).cloned().collect(),
            rebuilt_indexes: index.rebuilt_indexes(names),
            destroy_orphans: self.policy.destroy_orphans,
            max_failed_creates: Some(MAX_FAILED_CREATES),
            object_quota: self.object_quota(names),
            other_components: self.other_components(index, names, addresses),
            ..PlanOptions::default()
        }
    }

    /// Every object of these names that is desired or recorded in the index, recorded in the schedule, or was planned
    /// before. Planning may find more instances of a family.
    pub fn addresses(&self, index: &Index, names: &BTreeSet<Arc<str>>) -> BTreeSet<Address> {
        let mut addresses = BTreeSet::new();
        for name in names {
            let instance = index.instance(name).filter(|instance| instance.repetition.is_none());
            addresses.extend(instance.map(|instance| instance.address.clone()));
            addresses.extend(index.records().unreadable().keys().filter(|address| address.name == *name).cloned());
            addresses.extend(self.recorded(name).map(|(address, _)| address.clone()));
            addresses.extend(self.objects.of(name).map(|(address, _)| address.clone()));
        }
        addresses
    }

    /// Adds the plan options of one object.
    fn add_object_options(
        &mut self,
        address: &Address,
        config: &Config,
        fingerprint: u64,
        options: &mut PlanOptions,
        due: &mut BTreeSet<Address>,
    ) {
        let now = self.now.time;
        let tracked = self.objects.entry(address);
        if let Some(held) = self.index.records().unreadable().get(address) {
            options.blocked.insert(address.clone(), held.clone());
            return;
        }
        if matches!(self.index.records().work_on(address), Some(Work::Recovery)) {
            let message = "Purlin is resolving an interrupted operation".to_owned();
            options.blocked.insert(address.clone(), ObjectBlock { reason: Reason::OperationInProgress, message });
            return;
        }
        if let Some(health) = tracked.health.as_deref() {
            options.health.insert(address.clone(), health.clone());
        }
        let doubted = tracked.has_failed_condition();
        if let Some(held) = tracked.held(fingerprint, now) {
            options.blocked.insert(address.clone(), held);
            return;
        }
        let handled = self.index.published(&address.name).map(|published| published.handled_reconcile.clone());
        let requested = config.resource(address).is_some_and(|instance| {
            let request = &instance.reconcile_requested;
            !request.is_empty() && *request != tracked.requested && Some(request) != handled.as_ref()
        });
        if doubted {
            // The objects that a condition reads are read again: other clients may have changed them.
            due.extend(
                tracked.dependencies.iter().filter(|dependency| config.instances.contains_key(dependency)).cloned(),
            );
        }
        if requested || doubted || tracked.unread || tracked.read_at.is_some_and(|at| at <= now) {
            due.insert(address.clone());
        } else if tracked.up_to_date == Some(fingerprint) && !tracked.is_open() {
            options.up_to_date.insert(address.clone());
        }
    }

    /// Handles a finished plan: adopts its parts, and defers destructive parts until their component is quiet.
    pub fn handle_plan(&mut self, planned: PlanResult) {
        let PlanResult { parts, memo, scope, began } = planned;
        self.planning.finish(&scope.names);
        if self.phase != Phase::Active {
            return;
        }
        let now = self.now.time;
        self.planning.memo.put_back(memo);
        let relisting = self.relist_retry_at();
        for part in parts {
            if part.kind == PartKind::Destructive {
                let quiet = self.planning.debounce.may_destroy_at(part.names.iter()).filter(|at| *at > now);
                if let Some(at) = quiet.or(relisting) {
                    self.planning.defer(part, at);
                    continue;
                }
            }
            self.execute_part(part);
        }
        let share = (now - began) / u32::try_from(scope.components.len()).unwrap_or(u32::MAX).max(1);
        for component in &scope.components {
            if component.is_disjoint(&self.planning.stale_names) {
                self.planning.debounce.throttle(component, share, now);
            }
        }
        self.resume(&scope.names);
    }

    /// Plans names again whose planning panicked, after a delay, since they are likely to panic again.
    pub fn planning_panicked(&mut self, names: &BTreeSet<Arc<str>>) {
        self.planning.finish(names);
        if self.phase != Phase::Active {
            return;
        }
        tracing::error!(namespace = &**self.namespace(), ?names, "planning panicked because of a bug in Purlin");
        let now = self.now.time;
        self.resume(names);
        for name in names {
            self.planning.debounce.clear(name);
            self.objects.retry_at(&Address::single(name.clone()), now + AFTER_PANIC);
        }
    }

    /// Adopts the deferred parts that are due. Returns when more may be due.
    pub fn adopt_deferred(&mut self) -> Option<Time> {
        let now = self.now.time;
        let due: Vec<DeferredPart> = self.planning.deferred.extract_if(.., |deferred| deferred.at <= now).collect();
        let relisting = self.relist_retry_at();
        for DeferredPart { part, .. } in due {
            match relisting {
                Some(at) => self.planning.defer(part, at),
                None => {
                    self.planning.debounce.finish(&part.names);
                    self.execute_part(part);
                }
            }
        }
        self.planning.deferred.iter().map(|deferred| deferred.at).min()
    }

    /// Nothing is destroyed while Resources are being listed: a Resource on the next page may declare a move or depend
    /// on the object. Returns when to check again.
    fn relist_retry_at(&self) -> Option<Time> {
        self.index.is_relisting().then(|| self.now.time + RELISTED_AGAIN)
    }

    /// Executes a part of a plan. If the part is stale, its names are planned again.
    fn execute_part(&mut self, part: PlanPart) {
        if self.is_stale(&part) {
            return;
        }
        if let PartKind::Moves(moves) = &part.kind {
            return self.start_moves(&part, moves.clone());
        }
        if self.schedule.adopt(Arc::clone(&part.adoption)).is_err() {
            return self.discard_stale(&part);
        }
        for name in &part.names {
            self.planning.debounce.clear(name);
        }
        self.track_plan(&part);
        self.commands.push(Command::Adopted { names: part.names, adoption: part.adoption });
    }
}

pub fn fingerprints(index: &Index, addresses: &BTreeSet<Address>) -> BTreeMap<Address, u64> {
    let mut last: Option<(&Arc<str>, u64)> = None;
    let mut fingerprints = BTreeMap::new();
    for address in addresses {
        let known = last.filter(|(name, _)| **name == address.name).map(|(_, shared)| shared);
        let shared = known.unwrap_or_else(|| index.shared_fingerprint(&address.name));
        last = Some((&address.name, shared));
        fingerprints.insert(address.clone(), index.fingerprint_of(address, shared));
    }
    fingerprints
}
