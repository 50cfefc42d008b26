//! From names that are due to an adopted plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::debounce::Debounce;
use super::index::Index;
use super::plan_request::{Kind, Part, PlanRequest, Planned, Scope};
use super::time::Time;
use super::{Command, Reconciler, State};
use crate::execute::Adoption;
use crate::load::Config;
use crate::model::{Address, Reason, Recorded, Step, of_name};
use crate::plan::{Held, Memo, PlanOptions, Refresh};

/// How often destroys are looked at again while they are held because of the CRD.
pub(super) const CRD_AGAIN: Duration = Duration::from_secs(15);
/// How often destroys are looked at again while Resources are being listed: a page takes about that long.
const RELISTED_AGAIN: Duration = Duration::from_millis(100);
/// The pause after a planning that panicked.
const AFTER_PANIC: Duration = Duration::from_secs(30);
/// Replacements that may fail in a row before they are given up.
const MAX_FAILED_CREATES: u32 = 3;

/// What is being planned, and which plans are under way.
#[derive(Debug, Default)]
pub(super) struct Planning {
    /// The names that changed and were not acted on yet.
    pub(super) debounce: Debounce,
    /// The names that plans cover which are being made. They are disjoint.
    pub(super) under_way: BTreeSet<Arc<str>>,
    /// Names that have joined a component that is being planned, or whose records are being moved: their turn comes after
    /// that.
    pub(super) joining: BTreeSet<Arc<str>>,
    /// Names whose last plan was stale when it was there, since steps had gone on meanwhile.
    pub(super) overtaken: BTreeSet<Arc<str>>,
    /// Names for which the schedule stands still while they are planned, and until when at the latest.
    pub(super) pauses: Vec<(Time, BTreeSet<Arc<str>>)>,
    /// Plans that destroy something and wait until their component is quiet.
    pub(super) deferred: Vec<Deferred>,
    /// Plans whose steps are not all over.
    pub(super) adopted: Vec<Adopted>,
    /// What providers said to plans about objects that wait to be made or changed.
    pub(super) memo: Memo,
}

impl Planning {
    /// Nothing more is planned, and no plan is adopted.
    pub(super) fn stop(&mut self) {
        self.deferred.clear();
        self.pauses.clear();
        self.under_way.clear();
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.under_way.is_empty() && self.deferred.is_empty()
    }

    fn is_over(&mut self, names: &BTreeSet<Arc<str>>) {
        self.under_way.retain(|name| !names.contains(name));
        self.joining.clear();
        self.debounce.wake();
    }
}

/// A plan that is being carried out.
#[derive(Debug)]
pub(super) struct Adopted {
    pub(super) addresses: BTreeSet<Address>,
    pub(super) open: BTreeSet<Step>,
    /// What it did may be what others wait for.
    pub(super) had_steps: bool,
}

/// A part of a plan that waits until its component is quiet.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) part: Part,
    at: Time,
}

impl Reconciler {
    /// Has a scope planned.
    pub(super) fn start_planning(&mut self, scope: Scope) {
        tracing::debug!(namespace = &**self.namespace(), names = ?scope.names, "planning");
        // A new plan of a component replaces the one that waits.
        self.planning.deferred.retain(|deferred| deferred.part.names.is_disjoint(&scope.names));
        self.planning.debounce.begin(&scope.names);
        self.pause_if_overtaken(&scope.names);
        self.start_recoveries(&scope.names);
        let addresses = self.addresses(&scope.names);
        let config = Arc::new(self.index.config(&scope.names));
        let records = self.schedule.records();
        let own = |address: &Address| records.get(address).map(|stored| (address.clone(), stored.clone()));
        let recorded: Recorded = addresses.iter().filter_map(own).collect();
        let fingerprints = fingerprints(&self.index, &addresses);
        let wishes = scope.names.iter().map(|name| (name.clone(), self.index.wish(name))).collect();
        let readings = scope.names.iter().flat_map(|name| of_name(self.schedule.readings(), name));
        let mut options = PlanOptions {
            readings: readings.map(|(address, reading)| (address.clone(), reading.clone())).collect(),
            refresh: Refresh::Due(BTreeSet::new()),
            // By name: of a family whose instances an expression decides, some may be known to their running step only.
            running: self.schedule.running(|address| scope.names.contains(&address.name)),
            seed: self.draws.number(),
            namespace_terminating: self.index.is_terminating(),
            namespace_value: self.index.namespace_value().clone(),
            indexed: self.index.indexed(&scope.names).cloned().collect(),
            destroy_orphans: self.policy.destroys_orphans,
            max_failed_creates: Some(MAX_FAILED_CREATES),
            elsewhere: self.elsewhere(&scope.names, &addresses),
            ..PlanOptions::default()
        };
        let mut due = BTreeSet::new();
        for address in &addresses {
            self.describe(address, &config, fingerprints[address], &mut options, &mut due);
        }
        self.read_together(&mut options, &mut due);
        options.others = self.objects.missing.others(self.schedule.records(), &addresses, &due, self.now.time);
        let mut memo = self.planning.memo.take(&scope.names, self.now.wall);
        due.iter().for_each(|address| memo.forget(address));
        options.refresh = Refresh::Due(due);
        self.planning.under_way.extend(scope.names.iter().cloned());
        let (began, wishes) = (self.now.time, Arc::new(wishes));
        let request = PlanRequest { config, recorded, options, memo, scope, addresses, fingerprints, wishes, began };
        self.commands.push(Command::Plan(Box::new(request)));
    }

    /// Every object of these names: wanted, recorded as the watch knows it, recorded as the schedule knows it, or planned
    /// before. Which instances of a family are wanted besides is known only when it is planned.
    pub(super) fn addresses(&self, names: &BTreeSet<Arc<str>>) -> BTreeSet<Address> {
        let index = &self.index;
        let mut all = BTreeSet::new();
        for name in names {
            let instance = index.instance(name).filter(|instance| instance.repetition.is_none());
            all.extend(instance.map(|instance| instance.address.clone()));
            all.extend(index.addresses(name).cloned());
            all.extend(index.unreadable().keys().filter(|address| address.name == *name).cloned());
            all.extend(self.recorded(name).map(|(address, _)| address.clone()));
            all.extend(self.objects.of(name).map(|(address, _)| address.clone()));
        }
        all
    }

    /// What planning has to know of one object beyond its Resource and its record.
    fn describe(
        &mut self,
        address: &Address,
        config: &Config,
        fingerprint: u64,
        options: &mut PlanOptions,
        due: &mut BTreeSet<Address>,
    ) {
        let now = self.now.time;
        let tracked = self.objects.entry(address);
        if let Some(held) = self.index.unreadable().get(address) {
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
        let handled = self.index.published(&address.name).map(|published| published.handled_reconcile.clone());
        let requested = config.resource(address).is_some_and(|instance| {
            let asked = &instance.reconcile_requested;
            !asked.is_empty() && *asked != tracked.requested && Some(asked) != handled.as_ref()
        });
        if doubted {
            // What a condition reads is read once more: others have a part in it, and may have made it true.
            due.extend(tracked.wants.iter().filter(|wanted| config.instances.contains_key(wanted)).cloned());
        }
        if requested || doubted || tracked.unread || tracked.read_at.is_some_and(|at| at <= now) {
            due.insert(address.clone());
        } else if tracked.settled == Some(fingerprint) && !tracked.is_open() {
            options.settled.insert(address.clone());
        }
    }

    /// Takes a finished plan: what may start is adopted, what must wait until its component is quiet is put aside.
    pub(super) fn take_plan(&mut self, planned: Planned) {
        let Planned { parts, memo, scope, began } = planned;
        self.planning.is_over(&scope.names);
        if self.state != State::Working {
            return;
        }
        let now = self.now.time;
        self.planning.memo.put_back(memo);
        let relisting = self.relisted_at();
        for part in parts {
            if matches!(part.kind, Kind::Destroys(_)) {
                let quiet = self.planning.debounce.may_destroy_at(part.names.iter()).filter(|at| *at > now);
                if let Some(at) = quiet.or(relisting) {
                    self.planning.deferred.push(Deferred { part, at });
                    continue;
                }
            }
            self.carry_out(part);
        }
        let share = (now - began) / u32::try_from(scope.components.len()).unwrap_or(u32::MAX).max(1);
        for component in &scope.components {
            if component.is_disjoint(&self.planning.overtaken) {
                self.planning.debounce.rest(component, share, now);
            }
        }
        self.resume(&scope.names);
    }

    /// A planning that panicked: its names are planned again, after a pause, since they are likely to panic again.
    pub(super) fn lost_plan(&mut self, names: &BTreeSet<Arc<str>>) {
        self.planning.is_over(names);
        if self.state != State::Working {
            return;
        }
        tracing::error!(namespace = &**self.namespace(), ?names, "planning failed by a fault of Purlin");
        let now = self.now.time;
        self.resume(names);
        for name in names {
            self.planning.debounce.clear(name);
            self.objects.retry_at(&Address::single(name.clone()), now + AFTER_PANIC);
        }
    }

    /// Adopts what has waited long enough; returns the time at which more may be.
    pub(super) fn adopt_deferred(&mut self) -> Option<Time> {
        let now = self.now.time;
        let due: Vec<Deferred> = self.planning.deferred.extract_if(.., |deferred| deferred.at <= now).collect();
        let relisting = self.relisted_at();
        for Deferred { part, .. } in due {
            match relisting {
                Some(at) => self.planning.deferred.push(Deferred { part, at }),
                None => self.carry_out(part),
            }
        }
        self.planning.deferred.iter().map(|deferred| deferred.at).min()
    }

    /// While Resources are being listed nothing is destroyed: one that says that it was another before, or that still
    /// needs it, may be on the next page. Returns when to look again.
    fn relisted_at(&self) -> Option<Time> {
        self.index.is_relisting().then(|| self.now.time + RELISTED_AGAIN)
    }

    /// Carries out a part of a plan, if it is still about the situation as it is; otherwise its names are planned again.
    fn carry_out(&mut self, mut part: Part) {
        if self.is_stale(&part) {
            return;
        }
        let graph = match std::mem::replace(&mut part.kind, Kind::Moves(Vec::new())) {
            Kind::Moves(moves) => return self.start_moves(&part, moves),
            Kind::Destroys(graph) | Kind::Calm(graph) => graph,
        };
        let nodes = graph.nodes().map(|node| (graph.step(node).clone(), graph.is_running(node)));
        let steps: Vec<(Step, bool)> = nodes.collect();
        let adoption = Adoption {
            scope: part.addresses.clone(),
            config: part.config.clone(),
            plan: part.plan.clone(),
            graph,
            namespace: part.namespace.clone(),
            running: part.running.clone(),
            wishes: part.wishes.clone(),
        };
        if self.schedule.adopt(adoption).is_err() {
            return self.came_too_late(&part);
        }
        for name in &part.names {
            self.planning.debounce.clear(name);
        }
        self.follow(&part, steps);
        self.commands.push(Command::Adopted { names: part.names, plan: Box::new(part.plan) });
    }
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
