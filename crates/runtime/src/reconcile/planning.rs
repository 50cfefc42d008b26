//! The plans of components: their input, their result in parts that are adopted separately, and what happens to parts that
//! come too late. A part is stale when its input has changed during planning; then the schedule pauses for the next plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::debounce::{BacklogShare, Debounce};
use super::held_plan::{GuardedComponent, held_plan};
use super::index::{Index, Work};
use super::progress::AdoptedPlans;
use super::time::Time;
use super::{Command, Environment, Phase, Reconciler};
use crate::execute::Adoption;
use crate::pipeline;
use engine::graph::ActionGraph;
use engine::load::Config;
use engine::plan::approval::{Approvals, Digester, followers};
use engine::plan::moves::Move;
use engine::plan::{ObjectBlock, Plan, PlanOptions, Refresh, ResponseCache};
use model::{Action, Address, ChangeApproval, Name, Reason, Recorded, Version, has_errors, in_family};

/// Why an object is left as it is while its last operation, which was interrupted, is resolved.
pub const RESOLVING: &str = "Purlin is resolving an interrupted operation";

/// How often destroys that are held because of the CRD are retried.
pub const CRD_AGAIN: Duration = Duration::from_secs(15);
/// How often destroys are retried while Resources are being listed: a page takes about that long.
const RELISTED_AGAIN: Duration = Duration::from_millis(100);
/// The delay after a planning that panicked.
const AFTER_PANIC: Duration = Duration::from_secs(30);
/// Consecutive failed creates after which Purlin stops replacing an object.
const MAX_FAILED_CREATES: u32 = 3;
/// The longest pause of steps for a plan: a provider may be slow.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct PlanRequest {
    /// The desired state.
    pub config: Arc<Config>,
    pub recorded: Recorded,
    pub options: PlanOptions,
    /// Cached provider responses; planning adds new ones.
    pub memo: ResponseCache,
    /// What is approved; `None` if nothing needs an approval.
    pub(crate) approvals: Option<Approvals>,
    pub(crate) guarded: Vec<GuardedComponent>,
    /// The approvals of changes of the last plan.
    pub(crate) approved: BTreeMap<Address, ChangeApproval>,
    pub(crate) scope: PlanScope,
    /// The known objects; planning may add instances of families.
    pub(crate) addresses: BTreeSet<Address>,
    pub(crate) fingerprints: BTreeMap<Address, u64>,
    pub(crate) desired_digests: Arc<BTreeMap<Name, u64>>,
    pub(crate) began: Time,
}

/// A plan with its scope.
#[derive(Debug)]
pub struct PlanResult {
    pub(crate) parts: Vec<PlanPart>,
    pub(crate) memo: ResponseCache,
    pub(crate) scope: PlanScope,
    pub(crate) began: Time,
}

impl PlanResult {
    /// Whether an object cannot be planned because of an error.
    pub fn has_errors(&self) -> bool {
        self.parts.iter().any(|part| has_errors(&part.adoption.plan.diagnostics))
    }
}

/// What one plan covers. Only components that use the same providers are planned together: a slow provider delays only
/// its own components.
#[derive(Debug, Default)]
pub struct PlanScope {
    pub names: BTreeSet<Name>,
    /// The components of `names`. A running plan can join several, which must be planned together until it ends.
    pub components: Vec<BTreeSet<Name>>,
    /// The same without what only a running plan joins. Users decide on each of these.
    pub connected: Vec<BTreeSet<Name>>,
    /// Whether planning calls providers, which may be slow.
    pub asks_providers: bool,
}

/// The part of a plan that covers some components.
#[derive(Debug)]
pub struct PlanPart {
    pub names: BTreeSet<Name>,
    pub adoption: Arc<Adoption>,
    pub versions: BTreeMap<Address, Version>,
    pub fingerprints: BTreeMap<Address, u64>,
    /// The components with changes that need an approval.
    pub guarded: Vec<GuardedComponent>,
    pub kind: PartKind,
}

/// What a part of a plan contains.
#[derive(Debug, PartialEq)]
pub enum PartKind {
    /// Moves of records. The rest of the plan is dropped: the component is planned again afterwards.
    Moves(Vec<Move>),
    /// Steps that destroy, replace or forget an object.
    Destructive,
    /// Steps that destroy, replace and forget nothing.
    NonDestructive,
}

#[derive(Debug, Default)]
pub struct Planning {
    /// Names that changed and are not planned yet.
    pub debounce: Debounce,
    /// The share of this namespace in the steps that may wait. `None`: no limit.
    pub share: Option<BacklogShare>,
    /// When names were last released that were held back, for each [`Queue`](super::debounce::Queue).
    pub released_at: [Time; 2],
    /// The names of plans that are being computed. They are disjoint.
    pub in_progress: BTreeSet<Name>,
    /// Names that have joined a component that is being planned or moved. They are planned afterwards.
    pub joining: BTreeSet<Name>,
    /// Names whose last plan was stale because steps continued during planning.
    pub stale_names: BTreeSet<Name>,
    /// Names for which the schedule is paused during planning, and until when at the latest.
    pub pauses: Vec<(Time, BTreeSet<Name>)>,
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
    pub fn is_unplanned(&self, name: &Name) -> bool {
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

    fn finish(&mut self, names: &BTreeSet<Name>) {
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
    pub fn drop_deferred(&mut self, names: &BTreeSet<Name>) -> BTreeSet<Name> {
        let dropped = self.deferred.extract_if(.., |deferred| !deferred.part.names.is_disjoint(names));
        let due: BTreeSet<Name> = dropped.flat_map(|dropped| dropped.part.names).collect();
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
        names: &BTreeSet<Name>,
        addresses: &BTreeSet<Address>,
        seed: u64,
    ) -> PlanOptions {
        let readings = names.iter().flat_map(|name| in_family(self.schedule.readings(), name));
        PlanOptions {
            readings: readings.map(|(address, reading)| (address.clone(), reading.clone())).collect(),
            refresh: Refresh::Due(BTreeSet::new()),
            // By name: only their running step may know some instances of a family whose size an expression determines.
            running: self.schedule.running(|address| names.contains(address.name())),
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
    pub fn addresses(&self, index: &Index, names: &BTreeSet<Name>) -> BTreeSet<Address> {
        let mut addresses = BTreeSet::new();
        for name in names {
            let instance = index.instance(name).filter(|instance| !instance.is_family());
            addresses.extend(instance.map(|instance| instance.address.clone()));
            addresses.extend(index.records().unreadable().keys().filter(|address| address.name() == name).cloned());
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
            let message = RESOLVING.to_owned();
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
        let handled = self.index.published(address.name()).map(|published| published.handled_reconcile.clone());
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
    pub fn planning_panicked(&mut self, names: &BTreeSet<Name>) {
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

/// What comes too late.
impl Reconciler {
    /// Whether a plan is stale; then its names are planned again. A plan is stale if a record has changed. A newer
    /// desired state alone does not make it stale: its steps were correct a moment ago, and the newer state is planned
    /// next. But nothing is destroyed while a newer desired state is known, unless changes continue for too long.
    pub fn is_stale(&mut self, part: &PlanPart) -> bool {
        let records = self.index.records();
        if part.adoption.scope.iter().any(|address| records.version(address) != part.versions.get(address).copied()) {
            self.discard_stale(part);
            return true;
        }
        let debounce = &self.planning.debounce;
        let newer = part.names.iter().any(|name| debounce.changed_since_planned(name));
        let waits = part.kind == PartKind::Destructive
            && newer
            && !debounce.has_waited_too_long(part.names.iter(), self.now.time);
        if waits {
            self.plan_again(part);
        }
        waits
    }

    /// Discards a plan whose records have changed since planning started.
    pub fn discard_stale(&mut self, part: &PlanPart) {
        self.planning.stale_names.extend(part.names.iter().cloned());
        self.plan_again(part);
    }

    pub fn plan_again(&mut self, part: &PlanPart) {
        part.names.iter().for_each(|name| self.touch(name));
    }

    /// Pauses steps for the plan that follows a stale one. While steps follow each other quickly, every plan would be
    /// stale when it is ready.
    pub fn pause_if_stale(&mut self, names: &BTreeSet<Name>) {
        if !self.planning.stale_names.is_disjoint(names) {
            self.planning.stale_names.retain(|name| !names.contains(name));
            self.schedule.pause(names);
            self.planning.pauses.push((self.now.time + PAUSE, names.clone()));
        }
    }

    /// Resumes steps that have paused for too long. Returns when to check again.
    pub fn end_long_pauses(&mut self) -> Option<Time> {
        let now = self.now.time;
        self.resume_where(|until, _| until <= now);
        self.planning.pauses.iter().map(|(until, _)| *until).min()
    }

    /// Resumes steps that paused for a plan of any of these names.
    pub fn resume(&mut self, names: &BTreeSet<Name>) {
        self.resume_where(|_, paused| !paused.is_disjoint(names));
    }

    fn resume_where(&mut self, is_over: impl Fn(Time, &BTreeSet<Name>) -> bool) {
        for (_, names) in self.planning.pauses.extract_if(.., |(until, names)| is_over(*until, names)) {
            self.schedule.resume(&names);
        }
        self.handle_progress();
    }
}

impl PlanRequest {
    pub fn names(&self) -> &BTreeSet<Name> {
        &self.scope.names
    }

    /// The first name of each component.
    pub fn components(&self) -> impl Iterator<Item = &Name> {
        self.scope.components.iter().filter_map(BTreeSet::first)
    }

    /// Whether planning calls providers, which may be slow.
    pub fn calls_providers(&self) -> bool {
        self.scope.asks_providers
    }

    /// Whether a plan destroys, replaces or forgets an object.
    pub fn is_destructive(&self, plan: &Plan) -> bool {
        gives_up(plan, &self.scope.names)
    }

    /// Whether a change of this plan can need an approval.
    pub fn may_need_approval(&self) -> bool {
        self.approvals.is_some()
    }

    /// Holds the changes of a plan that need an approval and have none. Returns whether there were any: then it must be
    /// planned again, and the result must be passed here again, because other changes can differ without these.
    pub fn hold_unapproved(&mut self, salt: &[u8], ordered: &pipeline::OrderedPlan) -> bool {
        let Some(approvals) = &self.approvals else { return false };
        let pipeline::OrderedPlan { plan, config, moves, .. } = ordered;
        let mut blocks: Vec<(Address, ObjectBlock)> = Vec::new();
        let digester = Digester::new(salt, plan, config, &self.options.namespace_value);
        self.approved = approvals.second_halves(&digester, &self.recorded);
        for component in &self.scope.connected {
            // After the moves, the component is planned again.
            if moves.iter().any(|moved| component.contains(moved.from.name())) {
                continue;
            }
            let Some(guarded) = approvals.guarded(&digester, &self.recorded, component) else { continue };
            let approved =
                guarded.changes.iter().map(|change| (change.digest.address.clone(), change.approval.clone()));
            self.approved.extend(approved.filter_map(|(address, approval)| Some((address, approval?))));
            // The Plan is that of the first plan with held changes, which is as if all of them were approved.
            let earlier = self.guarded.iter().find(|earlier| earlier.names == *component);
            let known = earlier.filter(|earlier| earlier.held.is_some());
            let (offer, held) = match (known, guarded.held()) {
                (Some(known), _) => (known.offer.clone(), known.held.clone()),
                (None, Some(held)) => {
                    let offer = guarded.offer(|digest| approvals.offers.get(digest).cloned());
                    (offer, Some(Arc::new(held_plan(ordered, component, &guarded, held))))
                }
                (None, None) => (None, None),
            };
            if let Some(offer) = &offer {
                blocks.extend(followers::blocks(&guarded, plan, &self.recorded, offer));
                blocks.extend(guarded.blocks(offer, &self.options));
            }
            if earlier.is_none_or(|earlier| earlier.held.is_some() != held.is_some()) {
                self.guarded.retain(|earlier| earlier.names != *component);
                self.guarded.push(GuardedComponent { names: component.clone(), guarded, offer, held });
            }
        }
        let blocked = &mut self.options.blocked;
        let before = blocked.len();
        blocked.extend(blocks);
        blocked.len() > before
    }

    /// Splits a plan into its parts.
    pub fn into_result(mut self, ordered: pipeline::OrderedPlan) -> PlanResult {
        let pipeline::OrderedPlan { mut plan, graph, config, moves } = ordered;
        self.addresses.extend(plan.changes().map(|change| change.address.clone()));
        for (address, approval) in std::mem::take(&mut self.approved) {
            plan.objects.entry(address).or_default().approval = Some(approval);
        }
        let components = Arc::new(self.scope.first_names());
        let mut parts: Vec<PlanPart> = Vec::new();
        let mut calm: BTreeSet<Name> = BTreeSet::new();
        for names in ordered_together(self.scope.components.clone(), &plan) {
            let moves: Vec<Move> = moves.iter().filter(|moved| names.contains(moved.from.name())).cloned().collect();
            let (kind, graph) = match () {
                () if !moves.is_empty() => (PartKind::Moves(moves), ActionGraph::default()),
                () if gives_up(&plan, &names) => (PartKind::Destructive, graph.subgraph(&names)),
                () => {
                    calm.extend(names);
                    continue;
                }
            };
            parts.push(self.part(plan.take(&names), graph, &config, names, kind, &components));
        }
        if !calm.is_empty() {
            let graph = if parts.is_empty() { graph } else { graph.subgraph(&calm) };
            parts.push(self.part(plan.take(&calm), graph, &config, calm, PartKind::NonDestructive, &components));
        }
        PlanResult { parts, memo: self.memo, scope: self.scope, began: self.began }
    }

    /// The part of the given names, which are whole components.
    fn part(
        &self,
        plan: Plan,
        graph: ActionGraph,
        config: &Arc<Config>,
        names: BTreeSet<Name>,
        kind: PartKind,
        components: &Arc<BTreeMap<Name, Name>>,
    ) -> PlanPart {
        let recorded = self.recorded.iter().filter(|(address, _)| names.contains(address.name()));
        let running = self.options.running.iter().filter(|running| names.contains(running.step.address.name()));
        let adoption = Adoption {
            scope: self.addresses.iter().filter(|address| names.contains(address.name())).cloned().collect(),
            config: Arc::new(Config {
                modules: config.modules.iter().filter(|(name, _)| names.contains(*name)).map(cloned).collect(),
                namespace: config.namespace.clone(),
                instances: only(&config.instances, &names),
                families: config.families.iter().filter(|(stem, _)| names.contains(&stem.name)).map(cloned).collect(),
                incomplete: config.incomplete.clone(),
                unreadable: config.unreadable.clone(),
                providers: config.providers.clone(),
                provider_configs: config.provider_configs.clone(),
                provider_config_version: config.provider_config_version,
            }),
            plan,
            graph: Arc::new(graph),
            namespace: self.options.namespace_value.clone(),
            running: running.cloned().collect(),
            desired_digests: self.desired_digests.clone(),
            components: components.clone(),
        };
        PlanPart {
            adoption: Arc::new(adoption),
            versions: recorded.map(|(address, stored)| (address.clone(), stored.version)).collect(),
            fingerprints: only(&self.fingerprints, &names),
            guarded: self.guarded.iter().filter(|component| component.names.is_subset(&names)).cloned().collect(),
            kind,
            names,
        }
    }
}

impl PlanScope {
    /// The first name of each name's component.
    fn first_names(&self) -> BTreeMap<Name, Name> {
        let mut first_names = BTreeMap::new();
        for component in &self.components {
            let first = component.first().cloned().unwrap_or_default();
            first_names.extend(component.iter().map(|name| (name.clone(), first.clone())));
        }
        first_names
    }
}

pub fn fingerprints(index: &Index, addresses: &BTreeSet<Address>) -> BTreeMap<Address, u64> {
    let mut last: Option<(&Name, u64)> = None;
    let mut fingerprints = BTreeMap::new();
    for address in addresses {
        let known = last.filter(|(name, _)| *name == address.name()).map(|(_, shared)| shared);
        let shared = known.unwrap_or_else(|| index.shared_fingerprint(address.name()));
        last = Some((address.name(), shared));
        fingerprints.insert(address.clone(), index.fingerprint_of(address, shared));
    }
    fingerprints
}

/// The components, joined where a step of one makes a change of another possible: one waits for the other.
fn ordered_together(mut components: Vec<BTreeSet<Name>>, plan: &Plan) -> Vec<BTreeSet<Name>> {
    for (address, object) in plan.objects.iter().filter(|(_, object)| !object.remedies.is_empty()) {
        let joined = std::iter::once(address).chain(&object.remedies).map(Address::name);
        let parts = components.extract_if(.., |names| joined.clone().any(|name| names.contains(name)));
        let component = parts.flatten().collect();
        components.push(component);
    }
    components
}

fn only<T: Clone>(items: &BTreeMap<Address, T>, names: &BTreeSet<Name>) -> BTreeMap<Address, T> {
    items.iter().filter(|(address, _)| names.contains(address.name())).map(cloned).collect()
}

fn cloned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

/// Whether the plan destroys, replaces or forgets an object of these components.
fn gives_up(plan: &Plan, names: &BTreeSet<Name>) -> bool {
    plan.changes().any(|change| {
        matches!(change.action, Action::Replace | Action::Destroy | Action::Forget)
            && names.contains(change.address.name())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_which_one_waits_for_the_other_are_one_part() {
        let components = ["a x", "b", "c", "d"].map(names).to_vec();
        let parts = ordered_together(components.clone(), &plan(&[("a", "b"), ("b", "d")]));
        assert_eq!(parts, ["c", "a b d x"].map(names));
        assert_eq!(ordered_together(components.clone(), &plan(&[("a", "x")])).len(), components.len());
    }

    fn names(names: &str) -> BTreeSet<Name> {
        names.split(' ').map(Name::from).collect()
    }

    /// A plan in which each first object waits for the second one.
    fn plan(waits: &[(&str, &str)]) -> Plan {
        let mut plan = Plan::default();
        for (from, to) in waits {
            plan.objects.entry(Address::single(*from)).or_default().remedies = vec![Address::single(*to)];
        }
        plan
    }
}
