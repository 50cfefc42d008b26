//! Configuration, records, changes and running steps joined, by number.

use indexmap::IndexMap;

use super::super::ordering::{Leftover, Object, Part, Presence, StepOf};
use super::removal;
use crate::load::Config;
use crate::model::{Action, Address, Change, DeposedKey, InstanceKey, Operation, Recorded, ReplaceOrder, Step};
use crate::plan::{Plan, RunningStep};

/// All objects of a plan. Numbers are positions in address order; families that are referred to as a whole come
/// after all objects.
#[derive(Debug, Default)]
pub(super) struct Joined<'a> {
    /// The names, as far as they are somebody's else: families are named by their first part only.
    names: Vec<&'a Address>,
    families: Vec<Address>,
    numbers: IndexMap<&'a Address, u32>,
    /// What the rules see.
    pub(super) objects: Vec<Object>,
    /// What the steps do.
    pub(super) steps: Vec<Steps>,
    /// The version of each record; 0 without one.
    pub(super) versions: Vec<u64>,
    /// Whether there is a record.
    recorded: Vec<bool>,
}

/// What the steps of an object do.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    pub(super) make: Operation,
    pub(super) remove: Operation,
    pub(super) replaces: bool,
    /// In the order of the object's leftovers in [`Object`].
    pub(super) leftovers: Vec<(DeposedKey, Operation)>,
}

impl Default for Steps {
    fn default() -> Self {
        Self { make: Operation::Create, remove: Operation::Destroy, replaces: false, leftovers: Vec::new() }
    }
}

impl<'a> Joined<'a> {
    /// Resource nodes: everything configured, and everything that the plan changes.
    pub(super) fn resources(config: &'a Config, plan: &'a Plan) -> Self {
        let names = config.instances.keys().chain(plan.changes.iter().map(|change| &change.address));
        Self { names: names.collect(), ..Self::default() }
    }

    /// Orphans: everything recorded, wanted or not. After this every object has its number.
    pub(super) fn orphans(&mut self, recorded: &'a Recorded) {
        self.names.extend(recorded.keys());
        self.names.sort();
        self.names.dedup();
        self.numbers = self.names.iter().copied().zip(0..).collect();
        self.objects = vec![Object::default(); self.names.len()];
        self.steps = vec![Steps::default(); self.names.len()];
        self.versions = vec![0; self.names.len()];
        self.recorded = vec![false; self.names.len()];
    }

    /// The name of an object.
    pub(super) fn name(&self, at: u32) -> &Address {
        let at = at as usize;
        if at < self.names.len() { self.names[at] } else { &self.families[at - self.names.len()] }
    }

    fn number(&self, address: &Address) -> Option<u32> {
        self.numbers.get(address).copied()
    }

    /// What is to be done, and the effective flags.
    pub(super) fn join_changes(&mut self, plan: &Plan) {
        for (address, lifecycle) in &plan.lifecycle {
            if let Some(at) = self.number(address) {
                self.objects[at as usize].create_before_destroy = lifecycle.create_before_destroy;
            }
        }
        for address in plan.wants.keys() {
            if let Some(at) = self.number(address) {
                self.objects[at as usize].wanted = true;
            }
        }
        for change in &plan.changes {
            if let Some(at) = self.number(&change.address) {
                self.join_change(at as usize, change, !plan.lifecycle.contains_key(&change.address));
            }
        }
    }

    fn join_change(&mut self, at: usize, change: &Change, trust_order: bool) {
        let (object, steps) = (&mut self.objects[at], &mut self.steps[at]);
        if let Some(key) = change.deposed {
            if matches!(change.action, Action::Destroy | Action::Forget) {
                let operation = removal(change.forget || change.action == Action::Forget);
                steps.leftovers.push((key, operation));
                object.leftovers.push(Leftover { remove: Presence::Planned, used: Vec::new() });
            }
            return;
        }
        if trust_order && change.order == Some(ReplaceOrder::CreateFirst) {
            object.create_before_destroy = true;
        }
        match change.action {
            Action::NoOp | Action::Blocked => {}
            Action::Record => steps.make = Operation::Record,
            Action::Create => steps.make = Operation::Create,
            Action::Update => steps.make = Operation::Update,
            Action::Replace => {
                (steps.make, steps.remove, steps.replaces) = (Operation::Create, removal(change.forget), true);
            }
            Action::Destroy => steps.remove = removal(change.forget),
            Action::Forget => steps.remove = Operation::Forget,
        }
        if matches!(change.action, Action::Record | Action::Create | Action::Update | Action::Replace) {
            object.make = Presence::Planned;
        }
        if matches!(change.action, Action::Replace | Action::Destroy | Action::Forget) {
            object.remove = Presence::Planned;
        }
        if matches!(change.action, Action::Destroy | Action::Forget) {
            object.wanted = false;
        }
    }

    /// What was used: each object's own record, the current object's and each leftover's. What is being made uses
    /// what it will be recorded with.
    pub(super) fn join_records(&mut self, recorded: &Recorded, running: &[RunningStep]) {
        for (address, stored) in recorded {
            let Some(at) = self.number(address).map(|at| at as usize) else { continue };
            self.recorded[at] = stored.record.has_objects();
            self.versions[at] = stored.version.0;
            if let Some(current) = &stored.record.current {
                self.objects[at].used = current.dependencies.iter().filter_map(|to| self.number(to)).collect();
            }
            for k in 0..self.objects[at].leftovers.len() {
                let key = self.steps[at].leftovers[k].0;
                if let Some(left) = stored.record.deposed.get(&key) {
                    let used = left.dependencies.iter().filter_map(|to| self.number(to)).collect();
                    self.objects[at].leftovers[k].used = used;
                }
            }
        }
        for step in running {
            let (Some(at), Some(made)) = (self.number(&step.step.address), &step.recorded) else { continue };
            let used: Vec<u32> = made.dependencies.iter().filter_map(|to| self.number(to)).collect();
            self.objects[at as usize].used.extend(used);
            self.recorded[at as usize] = true;
        }
    }

    /// References in expressions and `dependsOn`, which order alike.
    pub(super) fn references(&mut self, plan: &Plan) {
        for (address, dependencies) in &plan.wants {
            if let Some(at) = self.number(address) {
                let wants = dependencies.iter().filter_map(|to| self.number(to)).collect();
                self.objects[at as usize].wants = wants;
            }
        }
    }

    /// Dependencies on a whole family: one object without steps that wants each wanted instance, and used each
    /// recorded one. A thousand dependents of a thousand instances are two thousand edges.
    pub(super) fn families(&mut self, plan: &'a Plan, recorded: &'a Recorded) {
        let mut numbers: IndexMap<&'a str, u32> = IndexMap::new();
        for (address, dependencies) in &plan.wants {
            let Some(at) = self.number(address) else { continue };
            for to in dependencies.iter().filter(|to| to.key == InstanceKey::None) {
                let is_single = self.number(to).is_some_and(|to| self.objects[to as usize].wanted);
                if let Some(family) = (!is_single).then(|| self.family(&mut numbers, &to.name)).flatten() {
                    self.objects[at as usize].wants.push(family);
                }
            }
        }
        for (address, stored) in recorded {
            let Some(at) = self.number(address).map(|at| at as usize) else { continue };
            for to in stored.record.current.iter().flat_map(|current| current.dependencies.iter()) {
                if let Some(family) = self.recorded_family(&mut numbers, to) {
                    self.objects[at].used.push(family);
                }
            }
            for k in 0..self.objects[at].leftovers.len() {
                let Some(left) = stored.record.deposed.get(&self.steps[at].leftovers[k].0) else { continue };
                for to in left.dependencies.iter() {
                    if let Some(family) = self.recorded_family(&mut numbers, to) {
                        self.objects[at].leftovers[k].used.push(family);
                    }
                }
            }
        }
    }

    /// The family that a recorded dependency means, when it means no single object.
    fn recorded_family(&mut self, numbers: &mut IndexMap<&'a str, u32>, to: &'a Address) -> Option<u32> {
        let is_single = self.number(to).is_some_and(|to| self.recorded[to as usize]);
        (to.key == InstanceKey::None && !is_single).then(|| self.family(numbers, &to.name)).flatten()
    }

    /// The number of a family; `None` when it has no instances.
    fn family(&mut self, numbers: &mut IndexMap<&'a str, u32>, name: &'a str) -> Option<u32> {
        if let Some(&at) = numbers.get(name) {
            return Some(at);
        }
        let start = self.names.partition_point(|address| *address.name < *name);
        let instances: Vec<u32> = (start..self.names.len())
            .take_while(|&at| *self.names[at].name == *name)
            .filter(|&at| self.names[at].key != InstanceKey::None)
            .map(|at| at as u32)
            .collect();
        if instances.is_empty() {
            return None;
        }
        let at = self.objects.len() as u32;
        let wants = instances.iter().copied().filter(|&at| self.objects[at as usize].wanted).collect();
        let used = instances.into_iter().filter(|&at| self.recorded[at as usize]).collect();
        self.objects.push(Object { wanted: true, wants, used, ..Object::default() });
        self.steps.push(Steps::default());
        self.versions.push(u64::MAX);
        self.families.push(Address::single(name));
        numbers.insert(name, at);
        Some(at)
    }

    /// Steps under way become fixed. Gives those that stand beside a planned step of the same kind. A destroy under
    /// way is the planned one: an object goes only once.
    pub(super) fn join_running(&mut self, running: &[RunningStep]) -> Vec<(u32, Step)> {
        let mut again = Vec::new();
        for RunningStep { step, .. } in running {
            let Some(at) = self.number(&step.address) else { continue };
            let (object, steps) = (&mut self.objects[at as usize], &mut self.steps[at as usize]);
            match (step.deposed, step.operation.removes()) {
                (Some(key), _) => {
                    let known = steps.leftovers.iter().position(|left| left.0 == key);
                    let k = known.unwrap_or_else(|| {
                        steps.leftovers.push((key, step.operation));
                        object.leftovers.push(Leftover::default());
                        object.leftovers.len() - 1
                    });
                    object.leftovers[k].remove = Presence::Running;
                }
                (None, true) => {
                    (object.remove, steps.remove) = (Presence::Running, step.operation);
                    steps.replaces |= step.replaces;
                }
                (None, false) if object.make == Presence::Absent => {
                    (object.make, steps.make) = (Presence::Running, step.operation);
                    steps.replaces |= step.replaces;
                }
                (None, false) => again.push((at, step.clone())),
            }
        }
        again
    }

    /// Whether a step is under way.
    pub(super) fn is_running(&self, of: StepOf) -> bool {
        let object = &self.objects[of.object as usize];
        let presence = match of.part {
            Part::Make => object.make,
            Part::Remove => object.remove,
            Part::Leftover(k) => object.leftovers[k as usize].remove,
        };
        presence == Presence::Running
    }
}
