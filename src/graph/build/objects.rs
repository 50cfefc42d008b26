//! Configuration, records, changes and running steps joined, by number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::super::ordering::{Leftover, Object, Part, Presence, StepOf};
use super::removal;
use crate::load::Config;
use crate::model::{Action, Address, Change, DeposedKey, InstanceKey, Operation, Recorded, ReplaceOrder, Step};
use crate::plan::{self, Plan, RunningStep};

/// All objects of a plan. Numbers are positions in address order; families that are referred to as a whole come
/// after all objects.
#[derive(Debug, Default)]
pub(super) struct Joined<'a> {
    names: Vec<&'a Address>,
    numbers: IndexMap<&'a Address, u32>,
    families: Vec<Address>,
    family_numbers: BTreeMap<&'a str, u32>,
    /// What the rules see.
    pub(super) objects: Vec<Object>,
    /// What the steps do.
    pub(super) steps: Vec<Steps<'a>>,
    /// The version of each record; 0 without one.
    pub(super) versions: Vec<u64>,
    /// Whether there is a record with an object, or one under way.
    recorded: Vec<bool>,
}

/// What the steps of an object do.
#[derive(Clone, Debug)]
pub(super) struct Steps<'a> {
    pub(super) make: Operation,
    pub(super) remove: Operation,
    pub(super) replaces: bool,
    /// Who requires the object to be create-before-destroy.
    pub(super) required_by: Option<&'a Address>,
    /// In the order of the object's leftovers in [`Object`].
    pub(super) leftovers: Vec<(DeposedKey, Operation)>,
}

impl Default for Steps<'_> {
    fn default() -> Self {
        let (make, remove) = (Operation::Create, Operation::Destroy);
        Self { make, remove, replaces: false, required_by: None, leftovers: Vec::new() }
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
        // Each of the sources is sorted, which a stable sort makes use of.
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

    /// The families that an object, its record or one of its leftovers names as a whole.
    pub(super) fn named_families(&self, at: u32) -> Box<[Arc<str>]> {
        let object = &self.objects[at as usize];
        let leftovers = object.leftovers.iter().flat_map(|leftover| &leftover.used);
        let named = object.wants.iter().chain(&object.used).chain(leftovers);
        let families = named.filter(|&&to| to as usize >= self.names.len()).map(|&to| self.name(to).name.clone());
        families.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn number(&self, address: &Address) -> Option<u32> {
        self.numbers.get(address).copied()
    }

    /// What is to be done, what is wanted, and the effective flags.
    pub(super) fn join_changes(&mut self, plan: &'a Plan) {
        let mut row = Row::default();
        for (address, lifecycle) in &plan.lifecycle {
            if let Some(at) = row.number(&self.names, address) {
                self.objects[at].create_before_destroy = lifecycle.create_before_destroy;
                self.steps[at].required_by = lifecycle.forced_by.last();
            }
        }
        let mut row = Row::default();
        for address in plan.wants.keys() {
            if let Some(at) = row.number(&self.names, address) {
                self.objects[at].wanted = true;
            }
        }
        let mut row = Row::default();
        for change in &plan.changes {
            if let Some(at) = row.number(&self.names, &change.address) {
                self.join_change(at, change, plan);
            }
        }
    }

    fn join_change(&mut self, at: usize, change: &Change, plan: &Plan) {
        let (object, steps) = (&mut self.objects[at], &mut self.steps[at]);
        if let Some(key) = change.deposed {
            if matches!(change.action, Action::Destroy | Action::Forget) {
                let operation = removal(change.forget || change.action == Action::Forget);
                steps.leftovers.push((key, operation));
                object.leftovers.push(Leftover { remove: Presence::Planned, used: Vec::new() });
            }
            return;
        }
        if change.order == Some(ReplaceOrder::CreateFirst) && !object.create_before_destroy {
            // The effective flag decides, since it takes part in inheritance; the order stands in for it.
            object.create_before_destroy = !plan.lifecycle.contains_key(&change.address);
        }
        // The running step itself: `join_running` knows it.
        if change.because.as_deref() == Some(plan::RUNNING) {
            return;
        }
        match change.action {
            // Only its record follows, which takes no part in any order.
            Action::Blocked if plan.prepared.contains_key(&change.address) => {
                (object.make, steps.make) = (Presence::Apart, Operation::Record);
            }
            Action::NoOp | Action::Blocked => {}
            Action::Record => steps.make = Operation::Record,
            Action::Wait => steps.make = Operation::Wait,
            Action::Create => steps.make = Operation::Create,
            Action::Read => steps.make = Operation::Read,
            Action::Update => steps.make = Operation::Update,
            Action::Replace => {
                (steps.make, steps.remove, steps.replaces) = (Operation::Create, removal(change.forget), true);
            }
            Action::Destroy => steps.remove = removal(change.forget),
            Action::Forget => steps.remove = Operation::Forget,
        }
        if !matches!(change.action, Action::NoOp | Action::Blocked | Action::Destroy | Action::Forget) {
            (object.make, object.only_records) = (Presence::Planned, change.action == Action::Record);
        }
        let gives_up = match change.action {
            // The old object stays deposed while something still uses it.
            Action::Replace => change.hold_destroy.is_none(),
            action => matches!(action, Action::Destroy | Action::Forget),
        };
        if gives_up {
            object.remove = Presence::Planned;
        }
        if matches!(change.action, Action::Destroy | Action::Forget) {
            object.wanted = false;
        }
    }

    /// References in expressions and `dependsOn`, which order alike.
    pub(super) fn references(&mut self, plan: &'a Plan) {
        let mut row = Row::default();
        for (address, dependencies) in &plan.wants {
            if let Some(at) = row.number(&self.names, address) {
                let wants = dependencies.iter().filter_map(|to| self.wanted_number(to)).collect();
                self.objects[at].wants = wants;
                // It has no record, and reads what is there: so it waits for what goes, too.
                if address.is_data() {
                    self.objects[at].used = self.used_numbers(dependencies);
                }
            }
        }
    }

    /// What was used: each object's own record, the current object's and each leftover's. What is being made uses
    /// what it will be recorded with.
    pub(super) fn join_records(&mut self, recorded: &'a Recorded, running: &'a [RunningStep]) {
        let mut row = Row::default();
        for (address, stored) in recorded {
            if let Some(at) = row.number(&self.names, address) {
                self.recorded[at] = stored.record.has_objects();
                self.versions[at] = stored.version.0;
            }
        }
        let made = |step: &'a RunningStep| Some((&step.step.address, step.recorded.as_ref()?));
        for (address, _) in running.iter().filter_map(made) {
            self.numbers.get(address).into_iter().for_each(|&at| self.recorded[at as usize] = true);
        }
        let mut row = Row::default();
        for (address, stored) in recorded {
            let Some(at) = row.number(&self.names, address) else { continue };
            if let Some(current) = &stored.record.current {
                self.objects[at].used = self.used_numbers(&current.dependencies);
            }
            for k in 0..self.objects[at].leftovers.len() {
                if let Some(left) = stored.record.deposed.get(&self.steps[at].leftovers[k].0) {
                    self.objects[at].leftovers[k].used = self.used_numbers(&left.dependencies);
                }
            }
        }
        for (address, made) in running.iter().filter_map(made) {
            let Some(at) = self.number(address) else { continue };
            let used = self.used_numbers(&made.dependencies);
            self.objects[at as usize].used.extend(used);
        }
    }

    fn used_numbers(&mut self, dependencies: &'a [Address]) -> Vec<u32> {
        dependencies.iter().filter_map(|to| self.used_number(to)).collect()
    }

    /// The object, or the family, that a reference means.
    fn wanted_number(&mut self, to: &'a Address) -> Option<u32> {
        let single = self.number(to);
        let is_family = !to.is_instance() && !single.is_some_and(|at| self.objects[at as usize].wanted);
        if is_family { self.family(&to.name).or(single) } else { single }
    }

    /// The object, or the family, that a recorded dependency means.
    fn used_number(&mut self, to: &'a Address) -> Option<u32> {
        let single = self.number(to);
        if to.is_instance() || single.is_some_and(|at| self.recorded[at as usize]) {
            return single;
        }
        // A family of which nothing is recorded is not what a record means by the name of a single object.
        let family = self.family(&to.name).filter(|&at| single.is_none() || !self.objects[at as usize].used.is_empty());
        family.or(single)
    }

    /// The number of a family: one object without steps that wants each wanted instance, and used each recorded one.
    /// A thousand dependents of a thousand instances are two thousand edges. `None` when there is no instance.
    fn family(&mut self, name: &'a str) -> Option<u32> {
        if let Some(&at) = self.family_numbers.get(name) {
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
        // No record of a family is ever the oldest: its edges are nobody's to edit.
        self.versions.push(u64::MAX);
        self.families.push(Address::single(name));
        self.family_numbers.insert(name, at);
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
                    object.only_records = step.operation == Operation::Record;
                    steps.replaces |= step.replaces;
                }
                (None, false) => again.push((at, step.clone())),
            }
        }
        again
    }

    /// The step of a number.
    pub(super) fn step(&self, of: StepOf) -> Step {
        let steps = &self.steps[of.object as usize];
        let (operation, deposed, replaces) = match of.part {
            Part::Make => (steps.make, None, steps.replaces),
            Part::Remove => (steps.remove, None, steps.replaces),
            Part::Leftover(k) => {
                let (key, operation) = steps.leftovers[k as usize];
                (operation, Some(key), false)
            }
        };
        Step { address: self.name(of.object).clone(), deposed, operation, replaces }
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

/// Finds the numbers of addresses, at once when they come in address order.
#[derive(Default)]
struct Row {
    at: usize,
}

impl Row {
    fn number(&mut self, names: &[&Address], address: &Address) -> Option<usize> {
        while names.get(self.at).is_some_and(|name| *name < address) {
            self.at += 1;
        }
        if names.get(self.at) != Some(&address) {
            self.at = names.binary_search(&address).ok()?;
        }
        Some(self.at)
    }
}
