//! The input of a plan, and its result: parts that cover whole components and are adopted separately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::held_plan::{GuardedComponent, held_plan};
use super::time::Time;
use crate::pipeline;
use engine::graph::ActionGraph;
use engine::load::Config;
use engine::plan::approval::{Approvals, followers};
use engine::plan::moves::Move;
use engine::plan::{ObjectBlock, Plan, PlanOptions, ResponseCache, RunningStep};
use model::{Action, Address, ChangeApproval, Recorded, Value, Version, has_errors};

#[derive(Debug)]
pub struct PlanRequest {
    /// The desired state.
    pub config: Arc<Config>,
    pub recorded: Recorded,
    pub options: PlanOptions,
    /// Cached provider responses; planning adds new ones.
    pub memo: ResponseCache,
    /// What is approved; `None` if nothing needs an approval.
    pub(super) approvals: Option<Approvals>,
    pub(super) guarded: Vec<GuardedComponent>,
    /// The approvals of changes of the last plan.
    pub(super) approved: BTreeMap<Address, ChangeApproval>,
    pub(super) scope: PlanScope,
    /// The known objects; planning may add instances of families.
    pub(super) addresses: BTreeSet<Address>,
    pub(super) fingerprints: BTreeMap<Address, u64>,
    pub(super) desired_digests: Arc<BTreeMap<Arc<str>, u64>>,
    pub(super) began: Time,
}

/// A plan with its scope.
#[derive(Debug)]
pub struct PlanResult {
    pub(super) parts: Vec<PlanPart>,
    pub(super) memo: ResponseCache,
    pub(super) scope: PlanScope,
    pub(super) began: Time,
}

impl PlanResult {
    /// Whether an object cannot be planned because of an error.
    pub fn has_errors(&self) -> bool {
        self.parts.iter().any(|part| has_errors(&part.plan.diagnostics))
    }
}

/// What one plan covers. Only components that use the same providers are planned together: a slow provider delays only
/// its own components.
#[derive(Debug, Default)]
pub(super) struct PlanScope {
    pub(super) names: BTreeSet<Arc<str>>,
    /// The components of `names`. A running plan can join several, which must be planned together until it ends.
    pub(super) components: Vec<BTreeSet<Arc<str>>>,
    /// The same without what only a running plan joins. Users decide on each of these.
    pub(super) connected: Vec<BTreeSet<Arc<str>>>,
    /// Whether planning calls providers, which may be slow.
    pub(super) asks_providers: bool,
}

/// The part of a plan that covers some components.
#[derive(Debug)]
pub(super) struct PlanPart {
    pub(super) names: BTreeSet<Arc<str>>,
    pub(super) addresses: BTreeSet<Address>,
    pub(super) config: Arc<Config>,
    pub(super) versions: BTreeMap<Address, Version>,
    pub(super) running: Vec<RunningStep>,
    pub(super) fingerprints: BTreeMap<Address, u64>,
    pub(super) desired_digests: Arc<BTreeMap<Arc<str>, u64>>,
    /// The first name of each name's component.
    pub(super) components: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    pub(super) plan: Plan,
    pub(super) namespace: Value,
    /// The components with changes that need an approval.
    pub(super) guarded: Vec<GuardedComponent>,
    pub(super) kind: PartKind,
}

/// What a part of a plan contains.
#[derive(Debug)]
pub(super) enum PartKind {
    /// Moves of records. The rest of the plan is dropped: the component is planned again afterwards.
    Moves(Vec<Move>),
    /// Steps that destroy, replace or forget an object.
    Destructive(ActionGraph),
    /// Steps that destroy, replace and forget nothing.
    NonDestructive(ActionGraph),
}

impl PlanRequest {
    pub fn names(&self) -> &BTreeSet<Arc<str>> {
        &self.scope.names
    }

    /// The first name of each component.
    pub fn components(&self) -> impl Iterator<Item = &Arc<str>> {
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
        self.approved = approvals.second_halves(salt, plan, config, &self.recorded);
        for component in &self.scope.connected {
            // After the moves, the component is planned again.
            if moves.iter().any(|one| component.contains(&one.from.name)) {
                continue;
            }
            let Some(guarded) = approvals.guarded(salt, plan, config, &self.recorded, component) else { continue };
            let approved = guarded.changes.iter().map(|one| (one.digest.address.clone(), one.approval.clone()));
            self.approved.extend(approved.filter_map(|(address, approval)| Some((address, approval?))));
            // The Plan is that of the first plan with held changes, which is as if all of them were approved.
            let known = self.guarded.iter().find(|one| one.names == *component).filter(|one| one.held.is_some());
            let (offer, held) = match (known, guarded.held()) {
                (Some(known), _) => (known.offer.clone(), known.held.clone()),
                (None, Some(held)) => {
                    let offer = guarded.offer(|digest| approvals.offers.get(digest).cloned());
                    (offer, Some(Arc::new(held_plan(ordered, component, held))))
                }
                (None, None) => (None, None),
            };
            if let Some(offer) = &offer {
                blocks.extend(followers::blocks(&guarded, plan, &self.recorded, offer));
                blocks.extend(guarded.blocks(offer, &self.options));
            }
            if !self.guarded.iter().any(|one| one.names == *component && one.held.is_some() == held.is_some()) {
                self.guarded.retain(|one| one.names != *component);
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
        let pipeline::OrderedPlan { plan, graph, config, moves } = ordered;
        self.addresses.extend(plan.changes.iter().map(|change| change.address.clone()));
        let mut kinds: Vec<(BTreeSet<Arc<str>>, PartKind)> = Vec::new();
        let mut calm: BTreeSet<Arc<str>> = BTreeSet::new();
        for names in ordered_together(self.scope.components.clone(), &plan.remedies) {
            let own: Vec<Move> = moves.iter().filter(|one| names.contains(&one.from.name)).cloned().collect();
            if !own.is_empty() {
                kinds.push((names, PartKind::Moves(own)));
            } else if gives_up(&plan, &names) {
                let graph = graph.subgraph(&names);
                kinds.push((names, PartKind::Destructive(graph)));
            } else {
                calm.extend(names);
            }
        }
        if !calm.is_empty() {
            let graph = if kinds.is_empty() { graph } else { graph.subgraph(&calm) };
            kinds.push((calm, PartKind::NonDestructive(graph)));
        }
        let components = Arc::new(self.scope.first_names());
        let part = |(names, kind)| self.part(&plan, &config, names, kind, &components);
        let parts = kinds.into_iter().map(part).collect();
        PlanResult { parts, memo: self.memo, scope: self.scope, began: self.began }
    }

    /// The part of the given names, which are whole components.
    fn part(
        &self,
        plan: &Plan,
        config: &Arc<Config>,
        names: BTreeSet<Arc<str>>,
        kind: PartKind,
        components: &Arc<BTreeMap<Arc<str>, Arc<str>>>,
    ) -> PlanPart {
        let of = |address: &Address| names.contains(&address.name);
        let concerns = |address: &Option<Address>| address.as_ref().is_none_or(of);
        let recorded = self.recorded.iter().filter(|(address, _)| of(address));
        PlanPart {
            addresses: self.addresses.iter().filter(|address| of(address)).cloned().collect(),
            config: Arc::new(Config {
                program: config.program.clone(),
                namespace: config.namespace.clone(),
                instances: only(&config.instances, of),
                families: config.families.iter().filter(|(name, _)| names.contains(*name)).map(cloned).collect(),
                incomplete: config.incomplete.clone(),
                unreadable: config.unreadable.clone(),
                providers: config.providers.clone(),
                provider_configs: config.provider_configs.clone(),
                provider_config_version: config.provider_config_version,
            }),
            versions: recorded.map(|(address, stored)| (address.clone(), stored.version)).collect(),
            running: self.options.running.iter().filter(|running| of(&running.step.address)).cloned().collect(),
            fingerprints: only(&self.fingerprints, of),
            desired_digests: self.desired_digests.clone(),
            components: components.clone(),
            plan: Plan {
                changes: plan.changes.iter().filter(|change| of(&change.address)).cloned().collect(),
                prepared: only(&plan.prepared, of),
                lifecycle: only(&plan.lifecycle, of),
                dependencies: only(&plan.dependencies, of),
                remedies: only(&plan.remedies, of),
                readings: only(&plan.readings, of),
                read: plan.read.iter().filter(|address| of(address)).cloned().collect(),
                missing: plan.missing.iter().filter(|address| of(address)).cloned().collect(),
                diagnostics: plan.diagnostics.iter().filter(|d| concerns(&d.address)).cloned().collect(),
                faulty: plan.faulty.iter().filter(|address| of(address)).cloned().collect(),
                approvals: only(&self.approved, of),
            },
            namespace: self.options.namespace_value.clone(),
            guarded: self.guarded.iter().filter(|one| one.names.is_subset(&names)).cloned().collect(),
            kind,
            names,
        }
    }
}

impl PlanScope {
    /// The first name of each name's component.
    fn first_names(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let of_component = |component: &BTreeSet<Arc<str>>| {
            let first = component.first().cloned().unwrap_or_default();
            component.iter().map(|name| (name.clone(), first.clone())).collect::<Vec<_>>()
        };
        self.components.iter().flat_map(of_component).collect()
    }
}

impl PlanPart {
    /// The desired digest of a Resource at planning.
    pub(super) fn desired_digest(&self, name: &str) -> u64 {
        self.desired_digests.get(name).copied().unwrap_or_default()
    }
}

/// The components, joined where a step of one makes a change of another possible: one waits for the other.
fn ordered_together(
    mut components: Vec<BTreeSet<Arc<str>>>,
    remedies: &BTreeMap<Address, Vec<Address>>,
) -> Vec<BTreeSet<Arc<str>>> {
    for (address, remedies) in remedies {
        let is_joined = |names: &mut BTreeSet<Arc<str>>| {
            std::iter::once(address).chain(remedies).any(|address| names.contains(&address.name))
        };
        let joined = components.extract_if(.., is_joined).flatten().collect();
        components.push(joined);
    }
    components
}

fn only<T: Clone>(all: &BTreeMap<Address, T>, of: impl Fn(&Address) -> bool) -> BTreeMap<Address, T> {
    all.iter().filter(|(address, _)| of(address)).map(|(address, item)| (address.clone(), item.clone())).collect()
}

fn cloned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

/// Whether the plan destroys, replaces or forgets an object of these components.
fn gives_up(plan: &Plan, names: &BTreeSet<Arc<str>>) -> bool {
    let harsh = |action| matches!(action, Action::Replace | Action::Destroy | Action::Forget);
    plan.changes.iter().any(|change| harsh(change.action) && names.contains(&change.address.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_which_one_waits_for_the_other_are_one_part() {
        let names = |names: &str| names.split(' ').map(Arc::from).collect::<BTreeSet<Arc<str>>>();
        let components = ["a x", "b", "c", "d"].map(names).to_vec();
        let waits = |from, to| (Address::single(from), vec![Address::single(to)]);
        let parts = ordered_together(components.clone(), &[waits("a", "b"), waits("b", "d")].into());
        assert_eq!(parts, ["c", "a b d x"].map(names));
        assert_eq!(ordered_together(components.clone(), &[waits("a", "x")].into()).len(), components.len());
    }
}
