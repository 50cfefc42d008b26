//! From names that are due to an adopted plan.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use tokio::time::Instant;

use super::scope::Scope;
use super::{NamespaceTask, State};
use crate::controller::context::Context;
use crate::controller::guard::Guard;
use crate::controller::index::Index;
use crate::execute::{self, Adoption, Consulted, Engine, Wishes};
use crate::graph;
use crate::load::Config;
use crate::model::{Action, Address, Reason, Recorded, Step, Version, of_name};
use crate::plan::moves::Move;
use crate::plan::{Held, Memo, Plan, PlanOptions, Refresh, RunningStep};

/// How often destroys are looked at again while they are held because of the CRD.
const CRD_AGAIN: Duration = Duration::from_secs(15);
/// How often destroys are looked at again while Resources are listed anew: a page takes about that long.
const RELISTED_AGAIN: Duration = Duration::from_millis(100);
/// The pause after a planning that panicked.
const AFTER_PANIC: Duration = Duration::from_secs(30);
/// Replacements that may fail in a row before they are given up.
const MAX_FAILED_CREATES: u32 = 3;

/// A plan, and the situation that it was made for.
pub(super) struct Planned {
    scope: Scope,
    config: Arc<Config>,
    versions: BTreeMap<Address, Version>,
    running: Vec<RunningStep>,
    /// What was known when planning began, and the instances that it has made out.
    addresses: BTreeSet<Address>,
    fingerprints: BTreeMap<Address, u64>,
    wishes: Arc<BTreeMap<Arc<str>, u64>>,
    options: PlanOptions,
    memo: Memo,
    plan: Plan,
    moves: Vec<Move>,
    began: Instant,
}

/// What became of a planning.
pub(super) enum Made {
    Plan(Box<Planned>),
    /// It panicked while it planned these names.
    Lost(BTreeSet<Arc<str>>),
    /// The process ends.
    CutOff,
}

/// A part of a plan that waits until its component is quiet.
pub(super) struct Deferred {
    pub(super) part: Part,
    at: Instant,
}

/// What of a plan concerns some components, ready to be adopted.
pub(super) struct Part {
    pub(super) names: BTreeSet<Arc<str>>,
    pub(super) addresses: BTreeSet<Address>,
    pub(super) config: Arc<Config>,
    pub(super) versions: BTreeMap<Address, Version>,
    running: Vec<RunningStep>,
    pub(super) fingerprints: BTreeMap<Address, u64>,
    wishes: Arc<BTreeMap<Arc<str>, u64>>,
    pub(super) plan: Plan,
    namespace: crate::model::Value,
    pub(super) began: Instant,
    pub(super) destroys: bool,
}

impl NamespaceTask {
    /// Every object of these names: wanted, recorded as the watch knows it, recorded as the run knows it, or planned
    /// before. Which instances of a family are wanted besides is known only when it is planned.
    pub(super) fn addresses(&self, index: &Index, names: &BTreeSet<Arc<str>>) -> BTreeSet<Address> {
        let mut all = BTreeSet::new();
        for name in names {
            let instance = index.instance(name).filter(|instance| instance.repetition.is_none());
            all.extend(instance.map(|instance| instance.address.clone()));
            all.extend(index.addresses(name).cloned());
            all.extend(index.unreadable().keys().filter(|address| address.name == *name).cloned());
            all.extend(of_name(self.run.records(), name).map(|(address, _)| address.clone()));
            all.extend(of_name(&self.tracked, name).map(|(address, _)| address.clone()));
        }
        all
    }

    pub(super) fn start_planning(&mut self, scope: Scope, now: Instant) {
        tracing::debug!(namespace = &**self.shared.name(), names = ?scope.names, "planning");
        self.drop_deferred(&scope.names);
        self.settle.begin(&scope.names);
        self.pause_if_overtaken(&scope.names, now);
        self.start_recoveries(&scope.names, now);
        let shared = self.shared.clone();
        let index = shared.index();
        let addresses = self.addresses(&index, &scope.names);
        let config = Arc::new(index.config(&scope.names));
        let own = |address: &Address| self.run.records().get(address).map(|stored| (address.clone(), stored.clone()));
        let recorded: Recorded = addresses.iter().filter_map(own).collect();
        let fingerprints = fingerprints(&index, &addresses);
        let wishes = scope.names.iter().map(|name| (name.clone(), index.wish(name))).collect();
        let readings = scope.names.iter().flat_map(|name| of_name(self.run.readings(), name));
        let mut options = PlanOptions {
            readings: readings.map(cloned).collect(),
            refresh: Refresh::Due(BTreeSet::new()),
            // By name: of a family whose instances an expression tells, some may be known to their running step only.
            running: self.run.running(|address| scope.names.contains(&address.name)),
            seed: self.context.engine.random.number(),
            namespace_terminating: index.is_terminating(),
            namespace_value: index.namespace_value().clone(),
            indexed: index.indexed(&scope.names).cloned().collect(),
            destroy_orphans: false,
            max_failed_creates: Some(MAX_FAILED_CREATES),
            ..PlanOptions::default()
        };
        let mut due = BTreeSet::new();
        for address in &addresses {
            self.describe(address, &index, &config, fingerprints[address], now, &mut options, &mut due);
        }
        self.read_together(now, &mut options, &mut due);
        options.elsewhere = self.elsewhere(&index, &scope.names, &addresses);
        drop(index);
        options.others = self.missing.others(self.run.records(), &addresses, &due, now);
        let mut memo = self.memo.take(&scope.names, self.context.engine.clock.now());
        due.iter().for_each(|address| memo.forget(address));
        options.refresh = Refresh::Due(due);
        self.in_planning.extend(scope.names.iter().cloned());
        let planned = Planned {
            versions: recorded.iter().map(|(address, stored)| (address.clone(), stored.version)).collect(),
            running: options.running.clone(),
            addresses,
            scope,
            config,
            fingerprints,
            wishes: Arc::new(wishes),
            options,
            memo,
            plan: Plan::default(),
            moves: Vec::new(),
            began: now,
        };
        self.plannings.spawn(make(self.context.clone(), planned, recorded));
    }

    /// What planning has to know of one object beyond its Resource and its record.
    #[expect(clippy::too_many_arguments, reason = "the parts of one borrow, split")]
    fn describe(
        &mut self,
        address: &Address,
        index: &Index,
        config: &Config,
        fingerprint: u64,
        now: Instant,
        options: &mut PlanOptions,
        due: &mut BTreeSet<Address>,
    ) {
        let tracked = self.tracked.entry(address.clone()).or_default();
        if let Some(held) = index.unreadable().get(address) {
            options.held.insert(address.clone(), held.clone());
            return;
        }
        if self.recovering.contains(address) {
            let message = "an operation that was cut off is being settled".to_owned();
            options.held.insert(address.clone(), Held { reason: Reason::OperationInProgress, message });
            return;
        }
        let doubted = tracked.is_doubted();
        if let Some(held) = tracked.held(fingerprint, now) {
            options.held.insert(address.clone(), held);
            return;
        }
        let handled = index.published(&address.name).map(|published| published.handled_reconcile.clone());
        let requested = config.resource(address).is_some_and(|instance| {
            let asked = &instance.reconcile_requested;
            !asked.is_empty() && *asked != tracked.requested && Some(asked) != handled.as_ref()
        });
        if doubted {
            // What a condition reads is read anew: whoever else has a part in it may have made it true.
            due.extend(tracked.wants.iter().filter(|wanted| config.instances.contains_key(wanted)).cloned());
        }
        if requested || doubted || tracked.unread || tracked.read_at.is_some_and(|at| at <= now) {
            due.insert(address.clone());
        } else if tracked.settled == Some(fingerprint) && !tracked.is_open() {
            options.settled.insert(address.clone());
        }
    }

    /// Takes what became of a planning.
    pub(super) fn take_made(&mut self, made: Made) {
        match made {
            Made::Plan(planned) => self.take_plan(*planned),
            Made::Lost(names) => self.lost_plan(&names),
            Made::CutOff => {}
        }
    }

    /// Takes a finished plan: what may start is adopted, what must wait until its component is quiet is put aside.
    fn take_plan(&mut self, mut planned: Planned) {
        self.no_longer_in_planning(&planned.scope.names);
        if self.state != State::Working {
            return;
        }
        self.memo.put_back(std::mem::take(&mut planned.memo));
        let took = planned.began.elapsed();
        self.context.metrics.planned(took);
        let now = Instant::now();
        let (mut calm, mut harsh) = (BTreeSet::new(), Vec::new());
        let relisting = self.relisted_at(now);
        for component in &planned.scope.components {
            let of = |one: &&Move| component.contains(&one.from.name);
            let moves: Vec<Move> = planned.moves.iter().filter(of).cloned().collect();
            if !moves.is_empty() {
                self.start_moves(&planned.part(component.clone(), false), moves, now);
            } else if destroys(&planned.plan, component) {
                harsh.push(component.clone());
            } else {
                calm.extend(component.iter().cloned());
            }
        }
        for component in harsh {
            let at = self.settle.may_destroy_at(component.iter()).filter(|at| *at > now).or(relisting);
            let part = planned.part(component, true);
            match at {
                Some(at) => self.deferred.push(Deferred { part, at }),
                None => self.adopt_or_plan_again(part, now),
            }
        }
        if !calm.is_empty() {
            self.adopt_or_plan_again(planned.part(calm, false), now);
        }
        let Scope { names, components, .. } = &planned.scope;
        let share = took / u32::try_from(components.len()).unwrap_or(u32::MAX).max(1);
        for component in components.iter().filter(|component| component.is_disjoint(&self.overtaken)) {
            self.settle.rest(component, share, now);
        }
        self.resume(names);
    }

    fn no_longer_in_planning(&mut self, names: &BTreeSet<Arc<str>>) {
        self.in_planning.retain(|name| !names.contains(name));
        self.joining.clear();
        self.settle.wake();
    }

    /// A planning that panicked: its names are planned again, after a pause, since they are likely to panic again.
    fn lost_plan(&mut self, names: &BTreeSet<Arc<str>>) {
        self.no_longer_in_planning(names);
        if self.state != State::Working {
            return;
        }
        tracing::error!(namespace = &**self.shared.name(), ?names, "planning failed by a fault of Purlin");
        let now = Instant::now();
        let at = now + AFTER_PANIC;
        self.resume(names);
        for name in names {
            self.settle.clear(name, now);
            let address = Address::single(name.clone());
            self.tracked.entry(address.clone()).or_default().retry_at = Some(at);
            self.timers.insert((at, address));
        }
    }

    /// Adopts what has waited long enough; gives the time at which more may be.
    pub(super) fn adopt_deferred(&mut self, now: Instant) -> Option<Instant> {
        let (due, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.deferred).into_iter().partition(|deferred| deferred.at <= now);
        self.deferred = waiting;
        let relisting = self.relisted_at(now);
        for Deferred { part, .. } in due {
            match relisting {
                Some(at) => self.deferred.push(Deferred { part, at }),
                None => self.adopt_or_plan_again(part, now),
            }
        }
        self.deferred.iter().map(|deferred| deferred.at).min()
    }

    /// While Resources are listed anew nothing is destroyed: one that says that it was another before, or that still
    /// needs it, may be on the next page. Gives when to look again.
    fn relisted_at(&self, now: Instant) -> Option<Instant> {
        self.shared.index().is_relisting().then(|| now + RELISTED_AGAIN)
    }

    /// A new plan of a component replaces the one that waits.
    fn drop_deferred(&mut self, names: &BTreeSet<Arc<str>>) {
        self.deferred.retain(|deferred| deferred.part.names.is_disjoint(names));
    }

    fn adopt_or_plan_again(&mut self, part: Part, now: Instant) {
        if self.is_put_aside(&part, now) {
            return;
        }
        let (graph, warnings) = graph::build(&part.plan, &part.config, &self.recorded(&part), &part.running);
        let mut plan = part.plan.clone();
        plan.diagnostics.extend(warnings);
        let nodes = graph.nodes().map(|node| (graph.step(node).clone(), graph.is_running(node)));
        let steps: Vec<(Step, bool)> = nodes.collect();
        let adoption = Adoption {
            scope: part.addresses.clone(),
            config: part.config.clone(),
            plan,
            graph,
            namespace: part.namespace.clone(),
            running: part.running.clone(),
            wishes: self.wishes(&part.wishes),
        };
        if self.run.adopt(adoption).is_err() {
            return self.came_too_late(&part, now);
        }
        self.run_is_idle = false;
        for name in &part.names {
            self.settle.clear(name, part.began);
        }
        self.follow(part, steps, now);
    }

    /// The wishes that a plan was made for, by which its steps see whether they still stand.
    fn wishes(&self, planned: &Arc<BTreeMap<Arc<str>, u64>>) -> Wishes {
        let (shared, planned) = (self.shared.clone(), planned.clone());
        Wishes::that_change(move |name| planned.get(name).is_some_and(|wish| *wish == shared.index().wish(name)))
    }

    fn recorded(&self, part: &Part) -> Recorded {
        let own = |address: &Address| self.run.records().get(address).map(|stored| (address.clone(), stored.clone()));
        part.addresses.iter().filter_map(own).collect()
    }

    /// The time on the monotonic clock at which the wall clock will show `at`.
    pub(super) fn instant_of(&self, at: Timestamp, now: Instant) -> Instant {
        let wait = at.duration_since(self.context.engine.clock.now());
        now + Duration::try_from(wait).unwrap_or(Duration::ZERO)
    }

    /// Looks at destroys again that are held because of the CRD.
    pub(super) fn crd_again(now: Instant) -> Instant {
        now + CRD_AGAIN
    }
}

/// Makes a plan on a thread of its own: it computes for as long as there are objects, and the threads that serve all
/// the streams and calls must not wait for that. How many at once is bounded, since those threads are.
async fn make(context: Arc<Context>, planned: Planned, recorded: Recorded) -> Made {
    let names = planned.scope.names.clone();
    let places = if planned.scope.asks_providers { &context.asking_plannings } else { &context.plannings };
    let Ok(_place) = places.acquire().await else { return Made::CutOff };
    let surroundings = context.clone();
    let making = async move {
        tokio::select! {
            biased;
            planned = planned.make(&surroundings.engine, &surroundings.guard, &recorded) => Made::Plan(Box::new(planned)),
            () = surroundings.shutdown.triggered() => Made::CutOff,
        }
    };
    let made = AssertUnwindSafe(context.threads.compute(Box::pin(making))).catch_unwind().await;
    match made {
        Ok(made) => made.unwrap_or(Made::CutOff),
        Err(_) => Made::Lost(names),
    }
}

impl Part {
    /// The wish of a Resource that this was planned for.
    pub(super) fn wish(&self, name: &str) -> u64 {
        self.wishes.get(name).copied().unwrap_or_default()
    }
}

impl Planned {
    /// Asks the drivers. When something would be destroyed, the API server is asked whether it may be.
    async fn make(mut self, engine: &Engine, guard: &Guard, recorded: &Recorded) -> Self {
        let wanted = self.config.clone();
        Consulted { plan: self.plan, config: self.config, moves: self.moves, .. } =
            execute::plan(engine, &wanted, recorded, &self.options, &mut self.memo).await;
        if destroys(&self.plan, &self.scope.names)
            && let Some(held) = guard.holds().await
        {
            self.options.hold_destroys = Some(held);
            Consulted { plan: self.plan, config: self.config, moves: self.moves, .. } =
                execute::plan(engine, &wanted, recorded, &self.options, &mut self.memo).await;
        }
        // Instances are known by name only now.
        self.addresses.extend(self.plan.changes.iter().map(|change| change.address.clone()));
        self
    }

    /// What concerns the given names, which are whole components.
    fn part(&self, names: BTreeSet<Arc<str>>, destroys: bool) -> Part {
        let of = |address: &Address| names.contains(&address.name);
        let plan = &self.plan;
        let concerns = |address: &Option<Address>| address.as_ref().is_none_or(of);
        Part {
            addresses: self.addresses.iter().filter(|address| of(address)).cloned().collect(),
            config: Arc::new(Config {
                namespace: self.config.namespace.clone(),
                instances: only(&self.config.instances, of),
                families: self.config.families.iter().filter(|(name, _)| names.contains(*name)).map(cloned).collect(),
                incomplete: self.config.incomplete.clone(),
                providers: self.config.providers.clone(),
                provider_configs: self.config.provider_configs.clone(),
                settings_version: self.config.settings_version,
            }),
            versions: only(&self.versions, of),
            running: self.running.iter().filter(|running| of(&running.step.address)).cloned().collect(),
            fingerprints: only(&self.fingerprints, of),
            wishes: self.wishes.clone(),
            plan: Plan {
                changes: plan.changes.iter().filter(|change| of(&change.address)).cloned().collect(),
                prepared: only(&plan.prepared, of),
                lifecycle: only(&plan.lifecycle, of),
                wants: only(&plan.wants, of),
                readings: only(&plan.readings, of),
                read: plan.read.iter().filter(|address| of(address)).cloned().collect(),
                gone: plan.gone.iter().filter(|address| of(address)).cloned().collect(),
                diagnostics: plan.diagnostics.iter().filter(|d| concerns(&d.address)).cloned().collect(),
            },
            namespace: self.options.namespace_value.clone(),
            began: self.began,
            destroys,
            names,
        }
    }
}

fn only<T: Clone>(all: &BTreeMap<Address, T>, of: impl Fn(&Address) -> bool) -> BTreeMap<Address, T> {
    all.iter().filter(|(address, _)| of(address)).map(|(address, item)| (address.clone(), item.clone())).collect()
}

fn cloned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

/// Whether the plan gives something up in these components.
fn destroys(plan: &Plan, names: &BTreeSet<Arc<str>>) -> bool {
    let harsh = |action| matches!(action, Action::Replace | Action::Destroy | Action::Forget);
    plan.changes.iter().any(|change| harsh(change.action) && names.contains(&change.address.name))
}

/// The fingerprint of each object.
fn fingerprints(index: &Index, addresses: &BTreeSet<Address>) -> BTreeMap<Address, u64> {
    let mut last: Option<(&Arc<str>, u64)> = None;
    let mut all = BTreeMap::new();
    for address in addresses {
        let known = last.filter(|(name, _)| **name == address.name).map(|(_, shared)| shared);
        let shared = known.unwrap_or_else(|| index.shared_fingerprint(&address.name));
        last = Some((&address.name, shared));
        all.insert(address.clone(), index.fingerprint_of(address, shared));
    }
    all
}
