//! A graph that is being executed, with its plan and configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use petgraph::graph::NodeIndex;

use super::{Adoption, KnownValues};
use crate::execute::step::{StepInput, StepScope};
use engine::graph::{Outcome, Walk, WalkUpdate};
use engine::load::{Instance, InstanceSelector};
use engine::plan::{PreparedStep, trigger};
use model::{
    Address, Cause, Change, Drift, Operation, Path, ProviderUse, Recorded, RecordedObject, ReplaceOrder, Revision,
    Stem, Step, Value, visible,
};

pub struct Batch {
    adoption: Arc<Adoption>,
    walk: Walk,
    /// Steps that were running at the time of planning.
    running: Vec<NodeIndex>,
    /// The other steps, in order.
    waiting: Vec<NodeIndex>,
    /// Objects whose create, update or record step has not ended.
    pending: BTreeSet<Address>,
    /// What will identify the new objects, as hashes, if the driver knows it.
    identities: BTreeMap<Address, u64>,
    /// Values of families whose instances have all ended, cached so that a thousand instances that reference a family
    /// of a thousand do not build it a thousand times.
    families: BTreeMap<Stem, Value>,
    /// Objects whose record another client has changed since planning: their steps do not start.
    pub outdated: BTreeSet<Address>,
}

impl Batch {
    /// Starts a walk. Returns the nodes that are ready.
    pub fn start(adoption: Arc<Adoption>) -> (Self, Vec<NodeIndex>) {
        let graph = &adoption.graph;
        let mut walk = Walk::new(Arc::clone(graph));
        let ready = walk.start();
        let (running, mut waiting): (Vec<_>, Vec<_>) = graph.nodes().partition(|node| graph.is_running(*node));
        waiting.sort_by_key(|node| graph.step(*node));
        let (pending, families, outdated) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let identities = adoption.plan.objects.iter().filter_map(|(address, planned)| {
            let identity = planned.prepared.as_ref()?.identity.as_ref()?;
            let mut hasher = DefaultHasher::new();
            (&planned.change.as_ref()?.type_name, identity.to_json().to_string()).hash(&mut hasher);
            Some((address.clone(), hasher.finish()))
        });
        let identities = identities.collect();
        let mut batch = Self { adoption, walk, running, waiting, pending, identities, families, outdated };
        let graph = batch.walk.graph();
        let steps = graph.nodes().map(|node| graph.step(node));
        let makes = steps.filter(|step| !step.operation.removes() && !batch.is_record_only(step));
        batch.pending = makes.map(|step| step.address.clone()).collect();
        (batch, ready)
    }

    /// The objects of the plan.
    pub fn scope(&self) -> &BTreeSet<Address> {
        &self.adoption.scope
    }

    fn prepared(&self, step: &Step) -> Option<&Arc<PreparedStep>> {
        self.adoption.plan.prepared(&step.address)
    }

    /// The step as a plan that is computed while it runs identifies it: once the new object of a create-before-destroy
    /// replacement exists, the old one is deposed.
    pub fn planning_step(&self, step: &Step) -> Step {
        let is_late = step.operation.removes()
            && self.change(step).is_some_and(|change| change.order == Some(ReplaceOrder::CreateFirst));
        match self.prepared(step).filter(|_| is_late && step.deposed.is_none()) {
            Some(prepared) => Step { deposed: Some(prepared.deposed_key), replaces: false, ..step.clone() },
            None => step.clone(),
        }
    }

    /// The fixed node of a step that was running at the time of planning.
    pub fn running(&self, step: &Step) -> Option<NodeIndex> {
        self.running.iter().copied().find(|node| self.step(*node) == step)
    }

    /// Whether a node represents a step that was running at the time of planning.
    pub fn was_running(&self, node: NodeIndex) -> bool {
        self.walk.graph().is_running(node)
    }

    /// The digest of the desired state that the step was planned for.
    pub fn desired_digest(&self, step: &Step) -> Option<u64> {
        self.adoption.desired_digests.get(step.address.name()).copied()
    }

    pub fn step(&self, node: NodeIndex) -> &Step {
        self.walk.graph().step(node)
    }

    pub fn is_over(&self) -> bool {
        self.walk.is_finished()
    }

    /// Records an outcome. Returns the nodes that are ready, and the skipped steps, each with the failed step that
    /// caused it.
    pub fn finish(&mut self, node: NodeIndex, outcome: Outcome) -> (Vec<NodeIndex>, Vec<(Step, Step)>) {
        if outcome == Outcome::Done && !self.step(node).operation.removes() {
            let address = self.step(node).address.clone();
            self.pending.remove(&address);
        }
        let WalkUpdate { ready, skipped } = self.walk.finish(node, outcome);
        let steps = skipped.into_iter().map(|(node, cause)| (self.step(node).clone(), self.step(cause).clone()));
        (ready, steps.collect())
    }

    /// Skips the waiting steps and returns them.
    pub fn skip_rest(&mut self) -> Vec<Step> {
        let skipped = self.walk.skip_rest();
        skipped.into_iter().map(|node| self.step(node).clone()).collect()
    }

    pub fn waiting_for(&self, address: &Address) -> Vec<Step> {
        // Steps are ordered by address first.
        let start = self.waiting.partition_point(|node| self.step(*node).address < *address);
        let nodes = self.waiting[start..].iter().take_while(|node| self.step(**node).address == *address);
        let first = nodes.map(|node| self.walk.waits_for(*node)).find(|waits| !waits.is_empty());
        first.unwrap_or_default().into_iter().map(|node| self.step(node).clone()).collect()
    }

    pub fn type_name(&self, step: &Step) -> &str {
        self.change(step).map_or("", |change| change.type_name.as_ref())
    }

    /// The hash of what will identify the object that a step makes, or for which it destroys another one, if the driver knows
    /// it.
    pub fn identity(&self, step: &Step) -> Option<u64> {
        let takes = step.operation == Operation::Create || (step.operation == Operation::Destroy && step.replaces);
        self.identities.get(&step.address).copied().filter(|_| takes)
    }

    /// Whether a new object with this identity comes later.
    pub fn takes(&self, address: &Address, identity: u64) -> bool {
        self.pending.contains(address) && self.identities.get(address) == Some(&identity)
    }

    /// The provider and configuration that a step calls, as far as known.
    pub fn provider<'a>(&'a self, step: &Step, records: &'a Recorded) -> Option<&'a ProviderUse> {
        if !step.operation.removes() {
            return self.prepared(step)?.recorded.provider.as_deref();
        }
        let record = &records.get(&step.address)?.record;
        let object = match step.deposed {
            Some(key) => record.deposed.get(&key)?,
            None => record.current.as_ref()?,
        };
        object.provider.as_deref()
    }

    /// Whether a quota can delay the step: a create, an update, or the first step of a replacement. The other step of a
    /// replacement is not delayed, because the object would be missing, or exist twice, for longer.
    pub fn is_limited(&self, step: &Step, records: &Recorded) -> bool {
        let destroys_first = self.change(step).is_some_and(|change| change.order == Some(ReplaceOrder::DestroyFirst));
        let destroyed = records.get(&step.address).is_some_and(|stored| stored.record.replacement_pending);
        let is_second = destroyed || (step.replaces && destroys_first);
        match step.operation {
            Operation::Create => !is_second,
            Operation::Update => true,
            Operation::Destroy => step.replaces && destroys_first,
            Operation::Record | Operation::Wait | Operation::Forget | Operation::Read => false,
        }
    }

    /// Whether a step only writes the record, so that no other step needs its result.
    pub fn is_record_only(&self, step: &Step) -> bool {
        !step.operation.removes() && self.prepared(step).is_some_and(|prepared| prepared.record_only)
    }

    /// The drift that the plan of the step only reports.
    pub fn reported_drift(&self, step: &Step) -> Option<&Drift> {
        self.change(step).and_then(Change::reported_drift)
    }

    fn change(&self, step: &Step) -> Option<&Change> {
        self.adoption.plan.objects.get(&step.address)?.changes().find(|change| change.deposed == step.deposed)
    }

    /// The planned value of the object and its planned record, as far as known.
    pub fn expected_result(&self, step: &Step) -> (Option<Value>, Option<Arc<RecordedObject>>) {
        if step.operation.removes() {
            return (None, None);
        }
        let planned = self.change(step).and_then(|change| change.after.clone());
        // Read steps record nothing.
        let prepared = self.prepared(step).filter(|_| step.operation != Operation::Read);
        let recorded = prepared.map(|prepared| Arc::new(prepared.recorded.clone()));
        (planned, recorded)
    }

    /// The input of the step, from the current records and readings.
    pub fn input(&mut self, step: &Step, known: &KnownValues<'_>) -> StepInput {
        let instance = self.adoption.config.instances.get(&step.address).cloned();
        let scope = instance.as_ref().map(|instance| self.scope_of(instance, known)).unwrap_or_default();
        let change = self.change(step);
        let generation = instance.as_ref().map_or(0, |instance| instance.generation);
        let attributes = change.map(|change| changed_attributes(step, change)).unwrap_or_default();
        // The destroy of an object that was deposed earlier needs no approval.
        let planned = self.adoption.plan.objects.get(&step.address).filter(|_| step.deposed.is_none());
        let approval = planned.and_then(|planned| planned.approval.as_ref());
        let because = change.and_then(|change| change.because.as_ref()).map(ToString::to_string);
        StepInput {
            cause: Cause::new(because.as_deref(), &attributes, generation, step.replaces).approved(approval),
            approved_object: approval.and_then(|approval| approval.new_object.clone()),
            namespace: self.adoption.config.namespace.clone(),
            step: step.clone(),
            type_name: change.map(|change| change.type_name.clone()).unwrap_or_default(),
            order: change.and_then(|change| change.order),
            instance,
            stored: known.records.get(&step.address).cloned(),
            prepared: self.prepared(step).cloned(),
            scope,
            desired_digest: self.desired_digest(step),
            component: self.adoption.components.get(step.address.name()).unwrap_or(step.address.name()).clone(),
        }
    }

    /// The values that the object references: planned values for objects that are still pending, recorded ones for all
    /// others.
    fn scope_of(&mut self, instance: &Instance, known: &KnownValues<'_>) -> StepScope {
        let mut objects = BTreeMap::new();
        for target in instance.references.iter().map(|reference| &reference.target) {
            let config = &self.adoption.config;
            let is_family = !config.instances.contains_key(target) && config.families.contains_key(&target.stem);
            let value = if is_family { self.family(&target.stem, known) } else { self.value(target, known) };
            objects.extend(value.map(|value| (target.as_reference(), value)));
        }
        let mut scope = StepScope { objects, namespace: self.adoption.namespace.clone(), ..StepScope::default() };
        let outputs = instance.references.iter().filter_map(|reference| match &reference.selector {
            Some(InstanceSelector::Output(output)) => Some(output),
            _ => None,
        });
        for output in outputs.collect::<BTreeSet<_>>() {
            let value = self.adoption.config.output(output, &scope);
            scope.objects.extend(value.map(|value| (output.clone(), value)));
        }
        let triggers = trigger::targets(instance);
        let revisions = triggers.map(|target| (target.clone(), self.revisions(target, known.records)));
        scope.revisions = revisions.collect();
        scope
    }

    /// The recorded objects that a reference resolves to, with their revisions.
    fn revisions(&self, target: &Address, records: &Recorded) -> Vec<(Address, Revision)> {
        let recorded =
            |address: &Address| Some((address.clone(), records.get(address)?.record.current.as_ref()?.revision));
        let config = &self.adoption.config;
        match config.instances.contains_key(target) {
            true => recorded(target).into_iter().collect(),
            false => config.instance_addresses(&target.stem).filter_map(recorded).collect(),
        }
    }

    fn value(&self, address: &Address, known: &KnownValues<'_>) -> Option<Value> {
        if self.pending.contains(address) {
            return Some(self.adoption.plan.change(address)?.after.clone().unwrap_or(Value::Unknown));
        }
        known.value(address)
    }

    fn family(&mut self, stem: &Stem, known: &KnownValues<'_>) -> Option<Value> {
        if let Some(value) = self.families.get(stem) {
            return Some(value.clone());
        }
        let config = &self.adoption.config;
        let members: Vec<&Address> = config.instance_addresses(stem).collect();
        let values = members.iter().map(|member| (member.key.clone(), self.value(member, known)));
        let value = config.families.get(stem)?.value(values);
        if !members.iter().any(|member| self.pending.contains(*member)) {
            self.families.insert(stem.clone(), value.clone());
        }
        Some(value)
    }
}

/// The attributes that an update changes, or that force a replacement.
fn changed_attributes(step: &Step, change: &Change) -> Vec<Path> {
    match (step.operation, &change.before, &change.after) {
        (Operation::Update, Some(before), Some(after)) => visible::differences(before, after),
        _ if step.replaces => change.replace_paths.clone(),
        _ => Vec::new(),
    }
}
