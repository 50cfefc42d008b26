//! What a plan is made from, and what it becomes: parts of whole components, each of which is adopted by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::time::Time;
use crate::graph::ActionGraph;
use crate::load::Config;
use crate::model::{Action, Address, Recorded, Value, Version};
use crate::pipeline;
use crate::plan::moves::Move;
use crate::plan::{Memo, Plan, PlanOptions, RunningStep};

/// What a plan is to be made from.
#[derive(Debug)]
pub struct PlanRequest {
    /// What is wanted.
    pub config: Arc<Config>,
    /// What is recorded.
    pub recorded: Recorded,
    /// How to plan.
    pub options: PlanOptions,
    /// What providers have said before; what they say now is added.
    pub memo: Memo,
    pub(super) scope: Scope,
    /// What is known of: instances of families may come to it with the plan.
    pub(super) addresses: BTreeSet<Address>,
    pub(super) fingerprints: BTreeMap<Address, u64>,
    pub(super) wishes: Arc<BTreeMap<Arc<str>, u64>>,
    pub(super) began: Time,
}

/// A plan, and what it was made from.
#[derive(Debug)]
pub struct Planned {
    pub(super) parts: Vec<Part>,
    pub(super) memo: Memo,
    pub(super) scope: Scope,
    pub(super) began: Time,
}

/// What one planning is about. Only components that use the same providers are planned together: one that hangs holds up
/// its own.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) names: BTreeSet<Arc<str>>,
    /// The components that `names` fall into.
    pub(super) components: Vec<BTreeSet<Arc<str>>>,
    /// Providers are asked, which may take long.
    pub(super) asks_providers: bool,
}

/// What of a plan concerns some components.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) names: BTreeSet<Arc<str>>,
    pub(super) addresses: BTreeSet<Address>,
    pub(super) config: Arc<Config>,
    pub(super) versions: BTreeMap<Address, Version>,
    pub(super) running: Vec<RunningStep>,
    pub(super) fingerprints: BTreeMap<Address, u64>,
    pub(super) wishes: Arc<BTreeMap<Arc<str>, u64>>,
    pub(super) plan: Plan,
    pub(super) namespace: Value,
    pub(super) kind: Kind,
}

/// What a part of a plan asks for.
#[derive(Debug)]
pub(super) enum Kind {
    /// Records get another address first. The plan itself is not carried out: the next one is made on the records as they
    /// are then.
    Moves(Vec<Move>),
    /// Steps in an order, which give something up.
    Destroys(ActionGraph),
    /// Steps in an order, which give nothing up.
    Calm(ActionGraph),
}

impl PlanRequest {
    /// The names that the plan covers.
    pub fn names(&self) -> &BTreeSet<Arc<str>> {
        &self.scope.names
    }

    /// Whether providers are asked, which may take long.
    pub fn asks_providers(&self) -> bool {
        self.scope.asks_providers
    }

    /// Whether a plan gives something up.
    pub fn gives_up(&self, plan: &Plan) -> bool {
        gives_up(plan, &self.scope.names)
    }

    /// The plan that was made, in its parts.
    pub fn planned(mut self, made: pipeline::Planned) -> Planned {
        let pipeline::Planned { plan, graph, config, moves } = made;
        self.addresses.extend(plan.changes.iter().map(|change| change.address.clone()));
        let mut kinds: Vec<(BTreeSet<Arc<str>>, Kind)> = Vec::new();
        let mut calm: BTreeSet<Arc<str>> = BTreeSet::new();
        for component in &self.scope.components {
            let own = moves.iter().filter(|one| component.contains(&one.from.name));
            let own: Vec<Move> = own.cloned().collect();
            if !own.is_empty() {
                kinds.push((component.clone(), Kind::Moves(own)));
            } else if gives_up(&plan, component) {
                kinds.push((component.clone(), Kind::Destroys(graph.only(component))));
            } else {
                calm.extend(component.iter().cloned());
            }
        }
        if !calm.is_empty() {
            let graph = if kinds.is_empty() { graph } else { graph.only(&calm) };
            kinds.push((calm, Kind::Calm(graph)));
        }
        let parts = kinds.into_iter().map(|(names, kind)| self.part(&plan, &config, names, kind)).collect();
        Planned { parts, memo: self.memo, scope: self.scope, began: self.began }
    }

    /// What concerns the given names, which are whole components.
    fn part(&self, plan: &Plan, config: &Arc<Config>, names: BTreeSet<Arc<str>>, kind: Kind) -> Part {
        let of = |address: &Address| names.contains(&address.name);
        let concerns = |address: &Option<Address>| address.as_ref().is_none_or(of);
        let recorded = self.recorded.iter().filter(|(address, _)| of(address));
        Part {
            addresses: self.addresses.iter().filter(|address| of(address)).cloned().collect(),
            config: Arc::new(Config {
                namespace: config.namespace.clone(),
                instances: only(&config.instances, of),
                families: config.families.iter().filter(|(name, _)| names.contains(*name)).map(cloned).collect(),
                incomplete: config.incomplete.clone(),
                providers: config.providers.clone(),
                provider_configs: config.provider_configs.clone(),
                settings_version: config.settings_version,
            }),
            versions: recorded.map(|(address, stored)| (address.clone(), stored.version)).collect(),
            running: self.options.running.iter().filter(|running| of(&running.step.address)).cloned().collect(),
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
            kind,
            names,
        }
    }
}

impl Part {
    /// The wish of a Resource that this was planned for.
    pub(super) fn wish(&self, name: &str) -> u64 {
        self.wishes.get(name).copied().unwrap_or_default()
    }
}

fn only<T: Clone>(all: &BTreeMap<Address, T>, of: impl Fn(&Address) -> bool) -> BTreeMap<Address, T> {
    all.iter().filter(|(address, _)| of(address)).map(|(address, item)| (address.clone(), item.clone())).collect()
}

fn cloned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

/// Whether the plan gives something up in these components.
fn gives_up(plan: &Plan, names: &BTreeSet<Arc<str>>) -> bool {
    let harsh = |action| matches!(action, Action::Replace | Action::Destroy | Action::Forget);
    plan.changes.iter().any(|change| harsh(change.action) && names.contains(&change.address.name))
}
