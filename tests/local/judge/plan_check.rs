//! Checks a plan, and determines the objects that it may destroy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use purlin::graph::ActionGraph;
use purlin::model::{
    Action, Address, Change, Diagnostics, InstanceKey, ObjectStatus, Reason, Record, Recorded, ReplaceOrder, Stem,
    Stored, Value,
};
use purlin::plan::{Plan, RunningStep, select};

use super::desired_state::{ConditionKind, DesiredResource, DesiredState, NOTHING, ReferenceTarget};
use super::fake_driver::FakeDriver;
use super::rules::{self, Facts, Node, Order, Reach};
use super::witness::{Permit, known_ids};

/// A plan with its input.
pub(super) struct PlanCheck<'a> {
    pub desired: &'a DesiredState,
    pub records: &'a Recorded,
    pub plan: &'a Plan,
    pub graph: &'a ActionGraph,
    pub warnings: &'a Diagnostics,
    pub running: &'a [RunningStep],
    pub requested: &'a BTreeSet<Address>,
    /// The targets of the plan. Empty: all objects.
    pub targets: &'a BTreeSet<Address>,
    /// Whether the plan destroys all selected objects.
    pub destroys_all: bool,
    /// Whether the plan only updates records to the values that were read.
    pub refresh_only: bool,
    pub driver: &'a FakeDriver,
}

/// The rules applied to a plan.
pub(super) struct RuleResult {
    pub facts: Facts,
    pub first: BTreeSet<Address>,
    pub order: Order,
}

impl PlanCheck<'_> {
    pub(super) fn apply_rules(&self) -> RuleResult {
        let facts = self.facts();
        let first = rules::create_first(&facts);
        let order = rules::order(&facts, &first);
        RuleResult { facts, first, order }
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for x in self.desired.instances().into_iter().filter(|x| self.desired_resource(x).is_some()) {
            let want = &self.desired.resources[&**x.name()];
            let refers = self.desired.references(&x);
            facts.configured.insert(x.clone(), refers.iter().filter_map(|target| self.wants(target)).collect());
            facts.references.insert(x.clone(), refers);
            let replaces = |change: &&Change| change.address == x && change.action == Action::Replace;
            if want.create_first == Some(true) || (want.orphan && self.current_changes().any(|c| replaces(&c))) {
                facts.configured_create_first.insert(x.clone());
            }
            facts.desired.insert(x);
        }
        for (x, stored) in self.records {
            if let Some(current) = &stored.record.current {
                facts.used.insert(x.clone(), self.used(&current.dependencies));
                if current.create_before_destroy {
                    facts.flagged.insert(x.clone());
                }
            }
            // An object with an open create or update intent may already depend on it.
            let intended = stored.record.intent.as_ref().and_then(|intent| intent.planned.as_ref());
            if let Some(planned) = intended {
                facts.used.entry(x.clone()).or_default().extend(self.used(&planned.recorded.dependencies));
            }
            for (key, object) in &stored.record.deposed {
                facts.deposed.insert((x.clone(), *key), self.used(&object.dependencies));
            }
        }
        self.join_families(&mut facts);
        for change in self.plan.changes() {
            let x = change.address.clone();
            match change.deposed {
                Some(key) if matches!(change.action, Action::Destroy | Action::Forget) => {
                    facts.removed_deposed.insert((x, key));
                }
                Some(_) => {}
                None => {
                    if change.hold_destroy.is_some() {
                        facts.held.insert(x.clone());
                    }
                    facts.actions.insert(x, change.action);
                }
            }
        }
        facts
    }

    /// Adds the relation from each Resource to its instances.
    fn join_families(&self, facts: &mut Facts) {
        let names: BTreeSet<String> =
            self.records.keys().map(|x| x.name().to_string()).chain(self.desired.resources.keys().cloned()).collect();
        for name in names {
            let recorded = self.recorded_instances(&name);
            let wanted = self.desired.members(&name).into_iter().collect();
            facts.used.insert(rules::all_recorded(&name), recorded);
            facts.configured.insert(rules::all_desired(&name), wanted);
        }
    }

    fn is_recorded(&self, x: &Address) -> bool {
        let is_there = |record: &purlin::model::Record| record.has_objects() || record.intent.is_some();
        self.records.get(x).is_some_and(|stored| is_there(&stored.record))
    }

    fn recorded_instances(&self, name: &str) -> BTreeSet<Address> {
        let with_key = |x: &&Address| **x.name() == *name && x.key != InstanceKey::None && self.is_recorded(x);
        self.records.keys().filter(with_key).cloned().collect()
    }

    /// Returns the object of a reference. A Resource that is being deleted counts, because a reference keeps it; a
    /// family that is being deleted has no desired instances.
    fn wants(&self, target: &Address) -> Option<Address> {
        let want = self.desired.resources.get(&**target.name())?;
        if target.key == InstanceKey::All {
            return Some(rules::all_desired(target.name()));
        }
        let counts = if want.deleting { !want.has_keys() } else { self.desired.configured(target).is_some() };
        counts.then(|| target.clone())
    }

    /// Returns the objects of recorded dependencies.
    fn used(&self, dependencies: &[Address]) -> BTreeSet<Address> {
        let meant = |x: &Address| match x.key {
            InstanceKey::All => rules::all_recorded(x.name()),
            // Earlier versions recorded a whole family in this form.
            InstanceKey::None if !self.is_recorded(x) && !self.recorded_instances(x.name()).is_empty() => {
                rules::all_recorded(x.name())
            }
            _ => x.clone(),
        };
        dependencies.iter().map(meant).collect()
    }

    fn desired_resource(&self, x: &Address) -> Option<&DesiredResource> {
        self.desired.desired(x).filter(|_| !self.destroys_all && !self.refresh_only)
    }

    /// Checks that only selected objects change. A target includes its dependencies, or its dependents if the plan
    /// destroys.
    fn check_selection(&self, facts: &Facts) -> Result<(), String> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let is_target = |x: &Address| self.targets.iter().any(|target| select::matches(target, x));
        // Some objects have only deposed objects.
        let left_over = facts.deposed.keys().map(|(x, _)| x);
        let known = facts.actions.keys().chain(facts.used.keys()).chain(&facts.desired).chain(left_over);
        let mut reached: BTreeSet<Address> = known.filter(|x| is_target(x)).cloned().collect();
        loop {
            let uses = |b: &Address, a: &Address| {
                [&facts.configured, &facts.used]
                    .iter()
                    .any(|relation| relation.get(b).is_some_and(|all| all.contains(a)))
            };
            let relations = || facts.used.iter().chain(&facts.configured);
            let all = facts.actions.keys().chain(relations().flat_map(|(x, targets)| targets.iter().chain([x])));
            let is_new = |x: &&Address| {
                let by = |y: &Address| if self.destroys_all { uses(x, y) } else { uses(y, x) };
                !reached.contains(*x) && reached.iter().any(by)
            };
            let more: BTreeSet<Address> = all.filter(is_new).cloned().collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.plan.changes().filter(|change| !is_running(&change.address)) {
            let x = &change.address;
            let may_go = self.destroys_all || self.refresh_only || is_target(x) || self.desired_resource(x).is_some();
            if !(reached.contains(x) && may_go) && change.action != Action::NoOp {
                return Err(format!("{x}: {:?} is planned, but it is not selected", change.action));
            }
        }
        Ok(())
    }

    fn current_changes(&self) -> impl Iterator<Item = &Change> {
        self.plan.current_changes()
    }

    /// Checks the plan. Returns the objects that it may destroy, and the addresses whose objects it forgets.
    pub(super) fn judge(&self, ruled: &RuleResult) -> Result<(BTreeMap<String, Permit>, BTreeSet<String>), String> {
        self.check_completeness()?;
        self.check_ignored()?;
        self.check_policies()?;
        self.check_conditions()?;
        self.check_moves()?;
        self.check_adoptions()?;
        let facts = &ruled.facts;
        self.check_selection(facts)?;
        if rules::has_cycle(&facts.used) {
            return Err(format!("records depend on each other in a cycle: {:?}", facts.used));
        }
        if self.running.is_empty() {
            self.check_create_first(ruled)?;
            self.check_fallbacks(ruled)?;
            self.check_order(ruled)?;
        }
        let mut permits = BTreeMap::new();
        let mut forgets = BTreeSet::new();
        for change in self.plan.changes() {
            if change.action == Action::Forget || change.forget {
                forgets.insert(change.address.to_string());
            }
            if let Some(id) = self.destroyed(change)? {
                permits.insert(id, self.permit(ruled, change));
            }
        }
        Ok((permits, forgets))
    }

    /// Checks that the plan contains every desired, recorded and deposed object once.
    fn check_completeness(&self) -> Result<(), String> {
        let mut expected: Vec<_> = self
            .records
            .iter()
            .flat_map(|(x, stored)| stored.record.deposed.keys().map(|key| (x.clone(), Some(*key))))
            .collect();
        // For a family that is being deleted, only recorded instances.
        let is_expected = |x: &Address| x.key == InstanceKey::None || self.desired.desired(x).is_some();
        let wanted = self.desired.instances().into_iter().filter(is_expected);
        let recorded = self.records.iter().filter(|(_, stored)| stored.record.current.is_some());
        let objects: BTreeSet<Address> = wanted.chain(recorded.map(|(x, _)| x.clone())).collect();
        expected.extend(objects.into_iter().map(|x| (x, None)));
        expected.sort();
        let mut planned: Vec<_> = self.plan.changes().map(|c| (c.address.clone(), c.deposed)).collect();
        planned.sort();
        let missing: Vec<_> = expected.iter().filter(|one| !planned.contains(one)).collect();
        let twice = planned.windows(2).any(|pair| pair[0] == pair[1]);
        // Empty records, and deleted Resources without an object, are optional.
        if (!missing.is_empty() && self.running.is_empty() && !missing.iter().all(|(x, _)| self.is_going(x))) || twice {
            return Err(format!("the plan contains {planned:?}, but should contain {expected:?}"));
        }
        Ok(())
    }

    fn is_going(&self, x: &Address) -> bool {
        let has_object = self.records.get(x).is_some_and(|stored| stored.record.current.is_some());
        let is_going = self.destroys_all || self.refresh_only || self.desired.desired(x).is_none();
        is_going && !has_object
    }

    /// Checks that an update keeps ignored attributes, and that a new object has all configured ones.
    fn check_ignored(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.current_changes().filter(|change| !is_running(&change.address)) {
            let x = &change.address;
            let (Some(want), Some(after)) = (self.desired_resource(x), &change.after) else { continue };
            for ignored in &want.ignores {
                let desired = match *ignored {
                    "label" => want.label_of(&x.key),
                    _ => format!("s{}", want.shape),
                };
                let expected = match (change.action, &change.before) {
                    (Action::Update, Some(before)) => before.get(ignored).cloned(),
                    (Action::Create | Action::Replace, _) => Some(Value::from(desired.as_str())),
                    _ => continue,
                };
                if after.get(ignored) != expected.as_ref() {
                    return Err(format!("{x}: {ignored} is ignored, but planned as {:?}", after.get(ignored)));
                }
            }
        }
        Ok(())
    }

    /// Checks that `managementPolicies` allows the planned actions.
    fn check_policies(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.current_changes().filter(|change| !is_running(&change.address)) {
            let forbidden = match change.action {
                Action::Update => "Update",
                Action::Replace => "Replace",
                _ => continue,
            };
            if self.desired.desired(&change.address).is_some_and(|want| want.forbids.contains(forbidden)) {
                return Err(format!("{}: {forbidden} is planned, but not allowed", change.address));
            }
        }
        Ok(())
    }

    /// Checks that nothing changes against a precondition or in a refresh-only plan.
    fn check_conditions(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.plan.changes().filter(|change| !is_running(&change.address)) {
            let changes = matches!(change.action, Action::Create | Action::Update | Action::Replace);
            let refused = self
                .desired_resource(&change.address)
                .is_some_and(|want| want.precondition == Some(ConditionKind::Never));
            if changes && (refused || self.refresh_only) {
                return Err(format!("{}: {:?} is planned, but forbidden", change.address, change.action));
            }
            if self.refresh_only && change.action == Action::Destroy {
                return Err(format!("{}: destroyed by a refresh-only plan", change.address));
            }
        }
        Ok(())
    }

    /// Checks that no possible move is missing.
    fn check_moves(&self) -> Result<(), String> {
        if self.destroys_all || self.refresh_only || !self.running.is_empty() {
            return Ok(());
        }
        let is_open = self.records.values().any(|stored| stored.record.intent.is_some());
        for x in self.desired.instances().iter().filter(|x| self.desired.desired(x).is_some() && !self.is_recorded(x)) {
            let keyed = self.recorded_instances(x.name());
            let single = Address::single(x.name().clone());
            let first = x.stem.clone().instance(InstanceKey::Index(0));
            let from = match &x.key {
                InstanceKey::Index(0) => Some(single),
                InstanceKey::Key(_) if self.desired.members(x.name()).len() == 1 => Some(single),
                InstanceKey::All | InstanceKey::Index(_) | InstanceKey::Key(_) => None,
                InstanceKey::None if keyed.len() == 1 => keyed.first().cloned(),
                InstanceKey::None => Some(first),
            };
            // Also from an earlier name, unless another Resource can claim it.
            let old = self.desired.resources[&**x.name()].moved_from.first();
            let claims =
                |name: &String| self.desired.resources.values().filter(|want| want.moved_from.contains(name)).count();
            let old = old.filter(|name| claims(name) == 1 && !self.desired.resources.contains_key(*name));
            let old = old.map(|name| Stem::from(name.as_str()).instance(x.key.clone()));
            // `spec.moved` takes precedence over what follows from the keys.
            let named_by = |want: &DesiredResource| want.moved.iter().any(|(old, _)| from.as_ref() == Some(old));
            if self.desired.resources.values().any(named_by) || !self.desired.resources[&**x.name()].moved.is_empty() {
                continue;
            }
            let leaves = |from: &Address| self.is_recorded(from) && self.desired.desired(from).is_none();
            // If an annotation names a recorded object, there are no implicit moves.
            let named = &self.desired.resources[&**x.name()].moved_from;
            let is_said = self.records.keys().any(|known| named.iter().any(|name| **name == **known.name()));
            let Some(from) = old.filter(leaves).or_else(|| from.filter(|from| !is_said && leaves(from))) else {
                continue;
            };
            // Records that name it cannot be rewritten while an operation is open.
            let waits = self.current_changes().find(|change| change.address == *x);
            if is_open && waits.is_some_and(|change| change.action == Action::Blocked) {
                continue;
            }
            return Err(format!("{x}: is desired, but {from} is not moved there"));
        }
        Ok(())
    }

    /// Checks that the graph has the order of the rules.
    fn check_order(&self, ruled: &RuleResult) -> Result<(), String> {
        let node = |at| Node::of(self.graph.step(at));
        let drawn: BTreeSet<(Node, Node)> = self
            .graph
            .nodes()
            .flat_map(|at| self.graph.waits_for(at).into_iter().map(move |(to, _)| (node(at), node(to))))
            .collect();
        let (drawn, ruled) = (Reach::new(&drawn), Reach::new(&ruled.order.waits));
        let (drawn, ruled) = (drawn.pairs(), ruled.pairs());
        if drawn == ruled {
            return Ok(());
        }
        let (more, less): (Vec<_>, Vec<_>) = (drawn.difference(&ruled).collect(), ruled.difference(&drawn).collect());
        Err(format!("the graph has {more:?} without a rule, and lacks {less:?}"))
    }

    fn check_create_first(&self, ruled: &RuleResult) -> Result<(), String> {
        let RuleResult { facts, first, .. } = ruled;
        for change in self.current_changes().filter(|change| change.action == Action::Replace) {
            let expected =
                if first.contains(&change.address) { ReplaceOrder::CreateFirst } else { ReplaceOrder::DestroyFirst };
            if change.order != Some(expected) {
                return Err(format!("{}: planned as {:?}, but should be {expected:?}", change.address, change.order));
            }
        }
        for (x, planned) in self.plan.objects.iter().filter(|(x, _)| facts.desired.contains(x)) {
            let Some(lifecycle) = &planned.lifecycle else { continue };
            if lifecycle.create_before_destroy != first.contains(x) {
                return Err(format!("{x}: its effective flag is reported as {}", lifecycle.create_before_destroy));
            }
        }
        Ok(())
    }

    fn check_fallbacks(&self, ruled: &RuleResult) -> Result<(), String> {
        let reported: BTreeSet<Address> = self
            .warnings
            .iter()
            .filter(|warning| warning.reason == Reason::ReleaseOrderFallback)
            .filter_map(|warning| warning.address.clone())
            .collect();
        if reported == ruled.order.fallbacks {
            return Ok(());
        }
        Err(format!("a fallback is reported for {reported:?}, but should be for {:?}", ruled.order.fallbacks))
    }

    /// Returns the existing object that an object without a record adopts.
    fn adopted(&self, x: &Address) -> Option<String> {
        let is_free = |stored: &Stored| !stored.record.has_objects() && !stored.record.replacement_pending;
        let id = self.desired_resource(x)?.adopts().filter(|_| self.records.get(x).is_none_or(is_free))?;
        self.driver.object(id).map(|thing| thing.id)
    }

    /// Checks that an imported object is not created again and is adopted by one Resource.
    fn check_adoptions(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        let recorded = self.records.values().flat_map(|stored| known_ids(&stored.record));
        let mut taken: BTreeSet<String> = recorded.collect();
        for change in self.current_changes().filter(|change| !is_running(&change.address)) {
            let x = &change.address;
            let Some(id) = self.adopted(x) else { continue };
            match change.action {
                Action::Create => return Err(format!("{x}: created, although it imports {id}")),
                Action::Record | Action::Update | Action::Replace if !taken.insert(id.clone()) => {
                    return Err(format!("{x}: adopts {id}, which another Resource manages"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the object that the change destroys. Objects if it is healthy and must be kept.
    fn destroyed(&self, change: &Change) -> Result<Option<String>, String> {
        let x = &change.address;
        let record = self.records.get(x).map(|stored| &stored.record);
        let object = match change.deposed {
            Some(key) => record.and_then(|record| record.deposed.get(&key)),
            None => record.and_then(|record| record.current.as_ref()),
        };
        let adopted = || self.adopted(x).filter(|_| change.deposed.is_none());
        let Some(id) = object.map_or_else(adopted, |object| object.id().map(str::to_owned)) else { return Ok(None) };
        let is_running = self.running.iter().any(|running| running.step.address == *x);
        let want = self.desired_resource(x);
        match (change.action, change.deposed) {
            (Action::Destroy, None) if want.is_some() && !is_running => {
                Err(format!("{x}: destroyed, although desired"))
            }
            (Action::Destroy, None) if self.is_named_by_another(x) => {
                Err(format!("{x}: destroyed, although another Resource claims it"))
            }
            (Action::Destroy | Action::Replace, None) if self.is_to_be_moved(x) => {
                Err(format!("{x}: destroyed or replaced, although it is to be moved"))
            }
            (Action::Destroy, _) => Ok(Some(id)),
            (Action::Replace, _) => {
                if change.hold_destroy.is_some() || change.forget {
                    return Ok(None);
                }
                let is_ready = object.is_none_or(|object| object.status == ObjectStatus::Ready);
                let is_whole = is_ready && !self.requested.contains(x);
                if is_whole && !is_running && !self.must_be_replaced(x, &id) {
                    return Err(format!("{x}: replaced, although {id} is up to date"));
                }
                Ok(Some(id))
            }
            _ => Ok(None),
        }
    }

    /// Whether another Resource with its own object, which was not moved from an address in its annotation, claims it.
    fn is_named_by_another(&self, x: &Address) -> bool {
        let names = |(name, want): (&String, &DesiredResource)| {
            let own = Stem::from(name.as_str()).instance(x.key.clone());
            let record =
                self.records.get(&own).filter(|_| self.desired_resource(&own).is_some()).map(|stored| &stored.record);
            let is_followed = |old: &Address| want.moved_from.iter().any(|named| **named == **old.name());
            let is_own = |record: &Arc<Record>| record.has_objects() && !record.moved_from.iter().any(is_followed);
            record.is_some_and(is_own) && want.moved_from.iter().any(|old| **old == **x.name())
        };
        self.running.is_empty() && self.desired.resources.iter().any(names)
    }

    /// Whether `spec.moved` of a Resource names an object that has not come to it.
    fn is_to_be_moved(&self, x: &Address) -> bool {
        let has_come = |name: &str| {
            let mut own = self.records.iter().filter(|(address, _)| **address.name() == *name);
            own.any(|(_, stored)| stored.record.moved_from.contains(x))
        };
        let came_back = |name: &String, key: &InstanceKey| {
            let there = Stem::from(name.as_str()).instance(key.clone());
            self.records.get(x).is_some_and(|stored| stored.record.moved_from.contains(&there))
        };
        let names = |(name, want): (&String, &DesiredResource)| {
            let is_open = |(from, to): &(Address, InstanceKey)| from == x && !came_back(name, to);
            !want.deleting && want.moved.iter().any(is_open) && !has_come(name)
        };
        let is_normal = !self.destroys_all && !self.refresh_only && self.running.is_empty();
        is_normal && self.desired.resources.iter().any(names)
    }

    fn must_be_replaced(&self, x: &Address, id: &str) -> bool {
        let (Some(want), Some(thing)) = (self.desired.desired(x), self.driver.object(id)) else { return true };
        if !want.ignores.contains("shape")
            && thing.arguments["shape"] != Value::from(format!("s{}", want.shape).as_str())
        {
            return true;
        }
        let makes = |target: &Address| {
            let change = self.current_changes().find(|change| change.address == *target);
            change.is_some_and(|change| matches!(change.action, Action::Create | Action::Replace))
        };
        let updates = |target: &Address| {
            let change = self.current_changes().find(|change| change.address == *target);
            change.is_some_and(|change| change.action == Action::Update)
        };
        let changes = |target: &String| match self.desired.resolve(x, target) {
            ReferenceTarget::One(target) | ReferenceTarget::IfThere(target) => makes(&target),
            // If one instance is unknown, the whole family is.
            ReferenceTarget::All(targets) => targets.iter().any(|target| makes(target) || updates(target)),
        };
        let current = |target: &Address| Some(self.records.get(target)?.record.current.as_ref()?.id()?.to_owned());
        let anchors = expected_list(self.desired, x, &want.anchors, &current);
        // The end of the history checks whether a missed trigger fires.
        want.anchors.iter().any(changes)
            || !want.triggers.is_empty()
            || Some(&thing.arguments["anchors"]) != anchors.as_ref()
    }

    /// Returns the dependents that may still exist when the object is destroyed: those that change after a
    /// destroy-before-create replacement, and those for which the rules use the usual order.
    fn permit(&self, ruled: &RuleResult, change: &Change) -> Permit {
        let x = &change.address;
        let order = &ruled.order;
        let this = match change.deposed {
            Some(key) => Node::L(x.clone(), key),
            None => Node::D(x.clone()),
        };
        let destroys_first = change.order == Some(ReplaceOrder::DestroyFirst);
        let follows = |other: &&Change| {
            let makes = matches!(other.action, Action::Create | Action::Update | Action::Replace | Action::Record);
            let excepted = [Node::C(other.address.clone()), Node::D(other.address.clone())];
            let is_excepted = excepted.into_iter().any(|node| order.dropped.contains(&(this.clone(), node)));
            is_excepted || (makes && (destroys_first || order.fallbacks.contains(x)))
        };
        let contradicts = |other: &&Change| {
            let other = other.deposed.map(|key| Node::L(other.address.clone(), key));
            other.is_some_and(|other| order.dropped.contains(&(this.clone(), other)))
        };
        let forgotten = |other: &&Change| other.action == Action::Forget;
        let followers = self.plan.changes().filter(|other| follows(other) || contradicts(other) || forgotten(other));
        Permit { later_dependents: followers.map(|other| other.address.to_string()).collect() }
    }
}

/// Returns the list that an instance has of its references, with the `text` of each. `None` if one is missing.
pub(super) fn expected_list(
    desired: &DesiredState,
    x: &Address,
    targets: &BTreeSet<String>,
    text: &dyn Fn(&Address) -> Option<String>,
) -> Option<Value> {
    let value = |target: &Address| text(target).map(|text| Value::from(text.as_str()));
    let one = |target: &String| match desired.resolve(x, target) {
        ReferenceTarget::IfThere(target) if desired.configured(&target).is_none() => Some(Value::from(NOTHING)),
        ReferenceTarget::One(target) | ReferenceTarget::IfThere(target) => value(&target),
        ReferenceTarget::All(all) => all.iter().map(value).collect::<Option<Vec<_>>>().map(Value::list),
    };
    targets.iter().map(one).collect::<Option<Vec<_>>>().map(Value::list)
}
