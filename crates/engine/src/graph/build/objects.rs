//! The objects of a plan by number: configuration, records, changes and running steps.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use super::super::ordering::{Deposed, Object, Part, Presence, StepRef};
use super::removal_operation;
use crate::load::Config;
use crate::plan::{Plan, PlannedObject, RunningStep};
use model::{
    Action, Address, Change, ChangeCause, DeposedKey, InstanceKey, Operation, Recorded, ReplaceOrder, Stem, Step,
};

/// All objects of a plan. The number of an object is its position in address order. Families on which an object depends
/// as a whole follow after the objects.
#[derive(Debug, Default)]
pub struct ObjectTable<'a> {
    names: Vec<&'a Address>,
    numbers: IndexMap<&'a Address, u32>,
    families: Vec<Address>,
    family_numbers: BTreeMap<&'a Stem, u32>,
    /// The input of `ordering`.
    pub objects: Vec<Object>,
    pub steps: Vec<ObjectSteps<'a>>,
    /// The version of each record; 0 without a record.
    pub versions: Vec<u64>,
    /// Whether an object is recorded or being created.
    recorded: Vec<bool>,
}

/// The operations of the steps of an object.
#[derive(Clone, Debug)]
pub struct ObjectSteps<'a> {
    pub apply: Operation,
    pub remove: Operation,
    pub replaces: bool,
    /// The object that requires this one to be create-before-destroy.
    pub required_by: Option<&'a Address>,
    /// In the same order as in [`Object`].
    pub deposed: Vec<(DeposedKey, Operation)>,
}

impl Default for ObjectSteps<'_> {
    fn default() -> Self {
        let (make, remove) = (Operation::Create, Operation::Destroy);
        Self { apply: make, remove, replaces: false, required_by: None, deposed: Vec::new() }
    }
}

impl<'a> ObjectTable<'a> {
    /// Adds the objects of the configuration and of the changes.
    pub fn resources(config: &'a Config, plan: &'a Plan) -> Self {
        let changed = plan.objects.iter().filter(|(_, object)| object.changes().next().is_some());
        let names = config.instances.keys().chain(changed.map(|(address, _)| address));
        Self { names: names.collect(), ..Self::default() }
    }

    /// Adds the recorded objects, which include orphans. Then all objects have their numbers.
    pub fn orphans(&mut self, recorded: &'a Recorded) {
        self.names.extend(recorded.keys());
        // Each source is sorted already, which makes a stable sort fast.
        self.names.sort();
        self.names.dedup();
        self.numbers = self.names.iter().copied().zip(0..).collect();
        self.objects = vec![Object::default(); self.names.len()];
        self.steps = vec![ObjectSteps::default(); self.names.len()];
        self.versions = vec![0; self.names.len()];
        self.recorded = vec![false; self.names.len()];
    }

    /// Returns the address of an object or of a family.
    pub fn name(&self, at: u32) -> &Address {
        let at = at as usize;
        if at < self.names.len() { self.names[at] } else { &self.families[at - self.names.len()] }
    }

    /// Returns the families on which an object, its record or one of its deposed objects depends as a whole.
    pub fn named_families(&self, at: u32) -> Box<[Stem]> {
        let object = &self.objects[at as usize];
        let deposed = object.deposed.iter().flat_map(|deposed| &deposed.used);
        let named = object.wants.iter().chain(&object.used).chain(deposed);
        let families = named.filter(|&&to| to as usize >= self.names.len()).map(|&to| self.name(to).stem.clone());
        families.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn number(&self, address: &Address) -> Option<u32> {
        self.numbers.get(address).copied()
    }

    /// Adds the changes, the desired objects and the effective lifecycle.
    pub fn join_changes(&mut self, plan: &'a Plan) {
        let mut row = SortedLookup::default();
        for (address, planned) in &plan.objects {
            let Some(at) = row.number(&self.names, address) else { continue };
            if let Some(lifecycle) = &planned.lifecycle {
                self.objects[at].create_before_destroy = lifecycle.create_before_destroy;
                self.steps[at].required_by = lifecycle.forced_by.last();
            }
            self.objects[at].wanted |= planned.dependencies.is_some();
            if let Some(change) = &planned.change {
                self.join_change(at, change, planned);
            }
            for change in &planned.deposed {
                self.join_deposed(at, change);
            }
        }
    }

    fn join_deposed(&mut self, at: usize, change: &Change) {
        if let (Some(key), Action::Destroy | Action::Forget) = (change.deposed, change.action) {
            let operation = removal_operation(change.forget || change.action == Action::Forget);
            self.steps[at].deposed.push((key, operation));
            self.objects[at].deposed.push(Deposed { remove: Presence::Planned, used: Vec::new() });
        }
    }

    fn join_change(&mut self, at: usize, change: &Change, planned: &PlannedObject) {
        let (object, steps) = (&mut self.objects[at], &mut self.steps[at]);
        if change.order == Some(ReplaceOrder::CreateFirst) && !object.create_before_destroy {
            // Without an effective lifecycle, the order of the change is used.
            object.create_before_destroy = planned.lifecycle.is_none();
        }
        // `join_running` adds the running step itself.
        if change.because == Some(ChangeCause::Running) {
            return;
        }
        match change.action {
            // Only the record changes, which has no order.
            Action::Blocked if planned.prepared.is_some() => {
                (object.apply, steps.apply) = (Presence::Detached, Operation::Record);
            }
            Action::NoOp | Action::Blocked => {}
            Action::Record => steps.apply = Operation::Record,
            Action::Wait => steps.apply = Operation::Wait,
            Action::Create => steps.apply = Operation::Create,
            Action::Read => steps.apply = Operation::Read,
            Action::Update => steps.apply = Operation::Update,
            Action::Replace => {
                (steps.apply, steps.remove, steps.replaces) =
                    (Operation::Create, removal_operation(change.forget), true);
            }
            Action::Destroy => steps.remove = removal_operation(change.forget),
            Action::Forget => steps.remove = Operation::Forget,
        }
        if !matches!(change.action, Action::NoOp | Action::Blocked | Action::Destroy | Action::Forget) {
            (object.apply, object.is_record_only) = (Presence::Planned, change.action == Action::Record);
        }
        let removes_object = match change.action {
            // The old object stays deposed while another object depends on it.
            Action::Replace => change.hold_destroy.is_none(),
            action => matches!(action, Action::Destroy | Action::Forget),
        };
        if removes_object {
            object.remove = Presence::Planned;
        }
        if matches!(change.action, Action::Destroy | Action::Forget) {
            object.wanted = false;
        }
    }

    /// Adds desired dependencies: references in expressions and `dependsOn`.
    pub fn references(&mut self, plan: &'a Plan) {
        let mut row = SortedLookup::default();
        for (address, dependencies) in plan.dependencies() {
            if let Some(at) = row.number(&self.names, address) {
                let wants = dependencies.iter().filter_map(|to| self.wanted_number(to)).collect();
                self.objects[at].wants = wants;
                // A data source has no record. It reads the current state, so it also waits for destroys.
                if address.is_data() {
                    self.objects[at].used = self.used_numbers(dependencies);
                }
            }
        }
    }

    /// Adds the objects whose steps may let the change of another object succeed.
    pub fn remedies(&mut self, plan: &Plan) {
        for (address, planned) in plan.objects.iter().filter(|(_, planned)| !planned.remedies.is_empty()) {
            let Some(at) = self.number(address) else { continue };
            self.objects[at as usize].remedies = planned.remedies.iter().filter_map(|to| self.number(to)).collect();
        }
    }

    /// Adds recorded dependencies of current and deposed objects. An object that is being created has the dependencies
    /// with which it will be recorded.
    pub fn join_records(&mut self, recorded: &'a Recorded, running: &'a [RunningStep]) {
        let mut row = SortedLookup::default();
        for (address, stored) in recorded {
            if let Some(at) = row.number(&self.names, address) {
                self.recorded[at] = stored.record.has_objects();
                self.versions[at] = stored.version.0;
            }
        }
        for step in running.iter().filter(|step| step.recorded.is_some()) {
            if let Some(&at) = self.numbers.get(&step.step.address) {
                self.recorded[at as usize] = true;
            }
        }
        let mut row = SortedLookup::default();
        for (address, stored) in recorded {
            let Some(at) = row.number(&self.names, address) else { continue };
            if let Some(current) = &stored.record.current {
                self.objects[at].used = self.used_numbers(&current.dependencies);
            }
            for k in 0..self.objects[at].deposed.len() {
                if let Some(left) = stored.record.deposed.get(&self.steps[at].deposed[k].0) {
                    self.objects[at].deposed[k].used = self.used_numbers(&left.dependencies);
                }
            }
        }
        for step in running {
            let (Some(at), Some(object)) = (self.number(&step.step.address), &step.recorded) else { continue };
            let used = self.used_numbers(&object.dependencies);
            self.objects[at as usize].used.extend(used);
        }
    }

    fn used_numbers(&mut self, dependencies: &'a [Address]) -> Vec<u32> {
        dependencies.iter().filter_map(|to| self.used_number(to)).collect()
    }

    /// Returns the object or the family of a desired dependency.
    fn wanted_number(&mut self, to: &'a Address) -> Option<u32> {
        let single = self.number(to);
        let is_family = !to.is_instance() && !single.is_some_and(|at| self.objects[at as usize].wanted);
        if is_family { self.family(&to.stem).or(single) } else { single }
    }

    /// Returns the object or the family of a recorded dependency.
    fn used_number(&mut self, to: &'a Address) -> Option<u32> {
        let single = self.number(to);
        if to.is_instance() || single.is_some_and(|at| self.recorded[at as usize]) {
            return single;
        }
        // The recorded name of a single object does not mean a family of which nothing is recorded.
        let family = self.family(&to.stem).filter(|&at| single.is_none() || !self.objects[at as usize].used.is_empty());
        family.or(single)
    }

    /// Returns the number of a family: an object without steps that depends on all its instances. A thousand dependents
    /// of a thousand instances need only two thousand edges. Returns `None` if the family has no instance.
    fn family(&mut self, stem: &'a Stem) -> Option<u32> {
        if let Some(&at) = self.family_numbers.get(stem) {
            return Some(at);
        }
        let start = self.names.partition_point(|address| address.stem < *stem);
        let instances: Vec<u32> = (start..self.names.len())
            .take_while(|&at| self.names[at].stem == *stem)
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
        self.steps.push(ObjectSteps::default());
        // A cycle must not be broken at the edges of a family.
        self.versions.push(u64::MAX);
        self.families.push(Address::single(stem.clone()));
        self.family_numbers.insert(stem, at);
        Some(at)
    }

    /// Adds running steps. Returns those whose object has the same kind of step in the plan too. A running destroy is
    /// the planned one, because an object is destroyed only once.
    pub fn join_running(&mut self, running: &[RunningStep]) -> Vec<(u32, Step)> {
        let mut again = Vec::new();
        for RunningStep { step, .. } in running {
            let Some(at) = self.number(&step.address) else { continue };
            let (object, steps) = (&mut self.objects[at as usize], &mut self.steps[at as usize]);
            match (step.deposed, step.operation.removes()) {
                (Some(key), _) => {
                    let known = steps.deposed.iter().position(|left| left.0 == key);
                    let k = known.unwrap_or_else(|| {
                        steps.deposed.push((key, step.operation));
                        object.deposed.push(Deposed::default());
                        object.deposed.len() - 1
                    });
                    object.deposed[k].remove = Presence::Running;
                }
                (None, true) => {
                    (object.remove, steps.remove) = (Presence::Running, step.operation);
                    steps.replaces |= step.replaces;
                }
                (None, false) if object.apply == Presence::Absent => {
                    (object.apply, steps.apply) = (Presence::Running, step.operation);
                    object.is_record_only = step.operation == Operation::Record;
                    steps.replaces |= step.replaces;
                }
                (None, false) => again.push((at, step.clone())),
            }
        }
        again
    }

    pub fn step(&self, of: StepRef) -> Step {
        let steps = &self.steps[of.object as usize];
        let (operation, deposed, replaces) = match of.part {
            Part::Apply => (steps.apply, None, steps.replaces),
            Part::Remove => (steps.remove, None, steps.replaces),
            Part::Deposed(k) => {
                let (key, operation) = steps.deposed[k as usize];
                (operation, Some(key), false)
            }
        };
        Step { address: self.name(of.object).clone(), deposed, operation, replaces }
    }

    pub fn is_running(&self, of: StepRef) -> bool {
        let object = &self.objects[of.object as usize];
        let presence = match of.part {
            Part::Apply => object.apply,
            Part::Remove => object.remove,
            Part::Deposed(k) => object.deposed[k as usize].remove,
        };
        presence == Presence::Running
    }
}

/// Looks up the numbers of addresses, in constant time if they are in address order.
#[derive(Default)]
struct SortedLookup {
    at: usize,
}

impl SortedLookup {
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
