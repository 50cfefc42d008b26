//! The input of a plan, and its result: parts that cover whole components and are adopted separately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::held_plan::{GuardedComponent, held_plan};
use super::time::Time;
use crate::execute::Adoption;
use crate::pipeline;
use engine::graph::ActionGraph;
use engine::load::Config;
use engine::plan::approval::{Approvals, Digester, followers};
use engine::plan::moves::Move;
use engine::plan::{ObjectBlock, Plan, PlanOptions, ResponseCache};
use model::{Action, Address, ChangeApproval, Recorded, Version, has_errors};

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
    pub(crate) desired_digests: Arc<BTreeMap<Arc<str>, u64>>,
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
    pub names: BTreeSet<Arc<str>>,
    /// The components of `names`. A running plan can join several, which must be planned together until it ends.
    pub components: Vec<BTreeSet<Arc<str>>>,
    /// The same without what only a running plan joins. Users decide on each of these.
    pub connected: Vec<BTreeSet<Arc<str>>>,
    /// Whether planning calls providers, which may be slow.
    pub asks_providers: bool,
}

/// The part of a plan that covers some components.
#[derive(Debug)]
pub struct PlanPart {
    pub names: BTreeSet<Arc<str>>,
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
        let digester = Digester::new(salt, plan, config, &self.options.namespace_value);
        self.approved = approvals.second_halves(&digester, &self.recorded);
        for component in &self.scope.connected {
            // After the moves, the component is planned again.
            if moves.iter().any(|moved| component.contains(&moved.from.name)) {
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
        let mut calm: BTreeSet<Arc<str>> = BTreeSet::new();
        for names in ordered_together(self.scope.components.clone(), &plan) {
            let moves: Vec<Move> = moves.iter().filter(|moved| names.contains(&moved.from.name)).cloned().collect();
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
        names: BTreeSet<Arc<str>>,
        kind: PartKind,
        components: &Arc<BTreeMap<Arc<str>, Arc<str>>>,
    ) -> PlanPart {
        let recorded = self.recorded.iter().filter(|(address, _)| names.contains(&address.name));
        let running = self.options.running.iter().filter(|running| names.contains(&running.step.address.name));
        let adoption = Adoption {
            scope: self.addresses.iter().filter(|address| names.contains(&address.name)).cloned().collect(),
            config: Arc::new(Config {
                program: config.program.clone(),
                namespace: config.namespace.clone(),
                instances: only(&config.instances, &names),
                families: config.families.iter().filter(|(name, _)| names.contains(*name)).map(cloned).collect(),
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
    fn first_names(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let mut first_names = BTreeMap::new();
        for component in &self.components {
            let first = component.first().cloned().unwrap_or_default();
            first_names.extend(component.iter().map(|name| (name.clone(), first.clone())));
        }
        first_names
    }
}

/// The components, joined where a step of one makes a change of another possible: one waits for the other.
fn ordered_together(mut components: Vec<BTreeSet<Arc<str>>>, plan: &Plan) -> Vec<BTreeSet<Arc<str>>> {
    for (address, object) in plan.objects.iter().filter(|(_, object)| !object.remedies.is_empty()) {
        let joined = std::iter::once(address).chain(&object.remedies).map(|address| &address.name);
        let parts = components.extract_if(.., |names| joined.clone().any(|name| names.contains(name)));
        let component = parts.flatten().collect();
        components.push(component);
    }
    components
}

fn only<T: Clone>(items: &BTreeMap<Address, T>, names: &BTreeSet<Arc<str>>) -> BTreeMap<Address, T> {
    items.iter().filter(|(address, _)| names.contains(&address.name)).map(cloned).collect()
}

fn cloned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

/// Whether the plan destroys, replaces or forgets an object of these components.
fn gives_up(plan: &Plan, names: &BTreeSet<Arc<str>>) -> bool {
    plan.changes().any(|change| {
        matches!(change.action, Action::Replace | Action::Destroy | Action::Forget)
            && names.contains(&change.address.name)
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

    fn names(names: &str) -> BTreeSet<Arc<str>> {
        names.split(' ').map(Arc::from).collect()
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
