//! One graph under way, together with the plan and the configuration that it was made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use petgraph::graph::NodeIndex;

use super::{Adoption, Known};
use crate::execute::step::{StepInput, StepScope};
use crate::graph::{Finished, Outcome, Walk};
use crate::load::{Config, Instance};
use crate::model::{
    Address, Change, DeposedKey, Operation, ProviderUse, Recorded, RecordedObject, ReplaceOrder, Revision, Step, Value,
};
use crate::plan::{Plan, Prepared, trigger};

pub(super) struct Batch {
    pub scope: BTreeSet<Address>,
    config: Arc<Config>,
    changes: BTreeMap<Address, Change>,
    leftovers: BTreeMap<(Address, DeposedKey), Change>,
    prepared: BTreeMap<Address, Arc<Prepared>>,
    namespace: Value,
    wishes: Arc<BTreeMap<Arc<str>, u64>>,
    walk: Walk,
    /// Steps that were running when the plan was made, and those that were not.
    running: BTreeMap<Step, NodeIndex>,
    waiting: BTreeMap<Step, NodeIndex>,
    /// Objects whose new value is still to come.
    coming: BTreeSet<Address>,
    /// Values of whole families whose instances are all done, so that a thousand that read a thousand are no million.
    families: BTreeMap<Arc<str>, Value>,
}

impl Batch {
    /// Starts a walk; gives the nodes whose turn has come.
    pub fn start(adoption: Adoption) -> (Self, Vec<NodeIndex>) {
        let Adoption { scope, config, plan, graph, namespace, wishes, .. } = adoption;
        let Plan { changes, prepared, .. } = plan;
        let (leftovers, changes): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.deposed.is_some());
        let keyed = |change: Change| Some(((change.address.clone(), change.deposed?), change));
        let mut walk = Walk::new(Arc::new(graph));
        let ready = walk.start();
        let graph = Arc::clone(walk.graph());
        let follows = |step: &Step| prepared.get(&step.address).is_some_and(|prepared| prepared.only_follows);
        let steps = graph.nodes().map(|node| graph.step(node));
        let makes = steps.filter(|step| !step.operation.removes() && !follows(step));
        let coming = makes.map(|step| step.address.clone()).collect();
        let (running, waiting): (Vec<_>, Vec<_>) = graph.nodes().partition(|node| graph.is_running(*node));
        let by_step = |nodes: Vec<NodeIndex>| nodes.into_iter().map(|node| (graph.step(node).clone(), node)).collect();
        let batch = Self {
            scope,
            config,
            changes: changes.into_iter().map(|change| (change.address.clone(), change)).collect(),
            leftovers: leftovers.into_iter().filter_map(keyed).collect(),
            prepared: prepared.into_iter().map(|(address, prepared)| (address, Arc::new(prepared))).collect(),
            namespace,
            wishes,
            running: by_step(running),
            waiting: by_step(waiting),
            walk,
            coming,
            families: BTreeMap::new(),
        };
        (batch, ready)
    }

    /// A step as a plan that is made while it runs sees it: the old object of a create-first replacement is a leftover
    /// once the new one is there.
    pub fn seen(&self, step: &Step) -> Step {
        let is_late = step.operation.removes()
            && self.change(step).is_some_and(|change| change.order == Some(ReplaceOrder::CreateFirst));
        match self.prepared.get(&step.address).filter(|_| is_late && step.deposed.is_none()) {
            Some(prepared) => Step { deposed: Some(prepared.deposed_key), replaces: false, ..step.clone() },
            None => step.clone(),
        }
    }

    /// The fixed node of a step that was running when the plan was made.
    pub fn running(&self, step: &Step) -> Option<NodeIndex> {
        self.running.get(step).copied()
    }

    /// Whether a node stands for a step that was running when the plan was made.
    pub fn was_running(&self, node: NodeIndex) -> bool {
        self.walk.graph().is_running(node)
    }

    /// The wish that a step was planned for.
    pub fn wish(&self, step: &Step) -> Option<u64> {
        self.wishes.get(&step.address.name).copied()
    }

    pub fn step(&self, node: NodeIndex) -> &Step {
        self.walk.graph().step(node)
    }

    pub fn is_over(&self) -> bool {
        self.walk.is_over()
    }

    /// Takes an outcome; gives the nodes whose turn has come, and the steps that never will have one, each with the
    /// failed step that is the cause.
    pub fn finish(&mut self, node: NodeIndex, outcome: Outcome) -> (Vec<NodeIndex>, Vec<(Step, Step)>) {
        if outcome == Outcome::Done && !self.step(node).operation.removes() {
            let address = self.step(node).address.clone();
            self.coming.remove(&address);
        }
        let Finished { ready, skipped } = self.walk.finish(node, outcome);
        let told = skipped.into_iter().map(|(node, cause)| (self.step(node).clone(), self.step(cause).clone()));
        (ready, told.collect())
    }

    /// The steps that wait for others, none of which will start any more.
    pub fn skip_rest(&mut self) -> Vec<Step> {
        let skipped = self.walk.skip_rest();
        skipped.into_iter().map(|node| self.step(node).clone()).collect()
    }

    pub fn waiting_for(&self, address: &Address) -> Vec<Step> {
        // Steps are ordered by address first, so those of one object stand together.
        let first = Step { address: address.clone(), deposed: None, operation: Operation::Create, replaces: false };
        let own = self.waiting.range(first..).take_while(|(step, _)| step.address == *address);
        let first = own.map(|(_, node)| self.walk.waits_for(*node)).find(|waits| !waits.is_empty());
        first.unwrap_or_default().into_iter().map(|node| self.step(node).clone()).collect()
    }

    pub fn type_name(&self, step: &Step) -> &str {
        self.change(step).map_or("", |change| change.type_name.as_ref())
    }

    /// The provider that a step calls, with its settings as far as they are known now.
    pub fn provider<'a>(&'a self, step: &Step, records: &'a Recorded) -> Option<&'a ProviderUse> {
        let record = || records.get(&step.address).map(|stored| &stored.record);
        let used = match (step.operation.removes(), step.deposed) {
            (false, _) => self.prepared.get(&step.address)?.recorded.provider.as_ref(),
            (true, Some(key)) => record()?.deposed.get(&key)?.provider.as_ref(),
            (true, None) => record()?.current.as_ref()?.provider.as_ref(),
        };
        used.map(AsRef::as_ref)
    }

    /// Whether a step only writes the record, so that nothing need wait for what it comes to.
    pub fn only_follows(&self, step: &Step) -> bool {
        !step.operation.removes() && self.prepared.get(&step.address).is_some_and(|prepared| prepared.only_follows)
    }

    fn change(&self, step: &Step) -> Option<&Change> {
        match step.deposed {
            None => self.changes.get(&step.address),
            Some(key) => self.leftovers.get(&(step.address.clone(), key)),
        }
    }

    /// What the object will look like after the step, and what will be recorded of it, as far as is known.
    pub fn outlook(&self, step: &Step) -> (Option<Value>, Option<Arc<RecordedObject>>) {
        if step.operation.removes() {
            return (None, None);
        }
        let planned = self.change(step).and_then(|change| change.after.clone());
        // Nothing is recorded of what is only read.
        let prepared = self.prepared.get(&step.address).filter(|_| step.operation != Operation::Read);
        let recorded = prepared.map(|prepared| Arc::new(prepared.recorded.clone()));
        (planned, recorded)
    }

    /// Everything the step needs, as it is now.
    pub fn input(&mut self, step: &Step, known: &Known<'_>) -> StepInput {
        let instance = super::instance(&self.config, &step.address).cloned();
        let scope = instance.as_ref().map(|instance| self.scope_of(instance, known)).unwrap_or_default();
        let change = self.change(step);
        StepInput {
            namespace: Arc::clone(&self.config.namespace),
            step: step.clone(),
            type_name: change.map_or_else(|| Arc::from(""), |change| Arc::clone(&change.type_name)),
            order: change.and_then(|change| change.order),
            instance,
            stored: known.records.get(&step.address).cloned(),
            prepared: self.prepared.get(&step.address).cloned(),
            scope,
            wish: self.wish(step),
        }
    }

    /// The values that the object refers to: planned ones of steps still to come, recorded ones of all others.
    fn scope_of(&mut self, instance: &Instance, known: &Known<'_>) -> StepScope {
        let mut objects = BTreeMap::new();
        for target in instance.references.iter().map(|reference| &reference.target) {
            let is_family =
                !self.config.instances.contains_key(target) && self.config.families.contains_key(&target.name);
            let value = if is_family { self.family(&target.name, known) } else { self.value(target, known) };
            objects.extend(value.map(|value| (target.spoken(), value)));
        }
        let triggers = trigger::targets(instance);
        let revisions = triggers.map(|target| (target.clone(), self.revisions(target, known.records)));
        StepScope { objects, revisions: revisions.collect(), namespace: self.namespace.clone() }
    }

    /// The recorded objects that a reference means, with their revisions.
    fn revisions(&self, target: &Address, records: &Recorded) -> Vec<(Address, Revision)> {
        let recorded =
            |address: &Address| Some((address.clone(), records.get(address)?.record.current.as_ref()?.revision));
        match self.config.instances.contains_key(target) {
            true => recorded(target).into_iter().collect(),
            false => self.config.family(&target.name).filter_map(recorded).collect(),
        }
    }

    fn value(&self, address: &Address, known: &Known<'_>) -> Option<Value> {
        if self.coming.contains(address) {
            return Some(self.changes.get(address)?.after.clone().unwrap_or(Value::Unknown));
        }
        known.value(address)
    }

    fn family(&mut self, name: &Arc<str>, all: &Known<'_>) -> Option<Value> {
        if let Some(known) = self.families.get(name) {
            return Some(known.clone());
        }
        let members: Vec<&Address> = self.config.family(name).collect();
        let values = members.iter().map(|member| (member.key.clone(), self.value(member, all)));
        let value = self.config.families.get(name)?.value(values);
        if !members.iter().any(|member| self.coming.contains(*member)) {
            self.families.insert(name.clone(), value.clone());
        }
        Some(value)
    }
}
