//! A plan, seen with the judge's eyes: whether it may be made at all, and what it permits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use purlin::graph::ActionGraph;
use purlin::model::{
    Action, Address, Change, Diagnostics, InstanceKey, ObjectStatus, Reason, Record, Recorded, ReplaceOrder, Stored,
    Value,
};
use purlin::plan::{Plan, RunningStep, select};

use super::rules::{self, Facts, Node, Order, Reach};
use super::wish::{Doubt, Meant, NOTHING, Want, Wish};
use super::witness::{Permit, known_ids};
use super::world::World;

/// Everything there is to see when a plan is made.
pub(super) struct View<'a> {
    pub wish: &'a Wish,
    pub records: &'a Recorded,
    pub plan: &'a Plan,
    pub graph: &'a ActionGraph,
    pub warnings: &'a Diagnostics,
    pub running: &'a [RunningStep],
    pub requested: &'a BTreeSet<Address>,
    /// What the plan is to be about; everything when empty.
    pub targets: &'a BTreeSet<Address>,
    /// Everything that the plan is about is to be destroyed.
    pub towards_nothing: bool,
    /// Records follow what is read, and nothing is changed.
    pub only_reads: bool,
    pub world: &'a World,
}

/// What the rules say of a plan.
pub(super) struct Ruled {
    pub facts: Facts,
    pub first: BTreeSet<Address>,
    pub order: Order,
}

impl View<'_> {
    pub(super) fn ruled(&self) -> Ruled {
        let facts = self.facts();
        let first = rules::create_first(&facts);
        let order = rules::order(&facts, &first);
        Ruled { facts, first, order }
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for x in self.wish.instances().into_iter().filter(|x| self.wanted(x).is_some()) {
            let want = &self.wish.wants[&*x.name];
            let refers = self.wish.references(&x);
            facts.wants.insert(x.clone(), refers.iter().filter_map(|target| self.wants(target)).collect());
            facts.refers.insert(x.clone(), refers);
            let replaces = |change: &&Change| change.address == x && change.action == Action::Replace;
            if want.create_first == Some(true) || (want.orphan && self.current_changes().any(|c| replaces(&c))) {
                facts.asks.insert(x.clone());
            }
            facts.wanted.insert(x);
        }
        for (x, stored) in self.records {
            if let Some(current) = &stored.record.current {
                facts.used.insert(x.clone(), self.used(&current.dependencies));
                if current.create_before_destroy {
                    facts.flagged.insert(x.clone());
                }
            }
            // What an open intent is about to make or change may use it by now.
            let intended = stored.record.intent.as_ref().and_then(|intent| intent.planned.as_ref());
            if let Some(planned) = intended {
                facts.used.entry(x.clone()).or_default().extend(self.used(&planned.recorded.dependencies));
            }
            for (key, object) in &stored.record.deposed {
                facts.leftovers.insert((x.clone(), *key), self.used(&object.dependencies));
            }
        }
        self.join_families(&mut facts);
        for change in &self.plan.changes {
            let x = change.address.clone();
            match change.deposed {
                Some(key) if matches!(change.action, Action::Destroy | Action::Forget) => {
                    facts.removed.insert((x, key));
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

    /// All instances of a Resource stand behind its name.
    fn join_families(&self, facts: &mut Facts) {
        let names: BTreeSet<String> =
            self.records.keys().map(|x| x.name.to_string()).chain(self.wish.wants.keys().cloned()).collect();
        for name in names {
            let recorded = self.recorded_instances(&name);
            let wanted = self.wish.members(&name).into_iter().collect();
            facts.used.insert(rules::all_recorded(&name), recorded);
            facts.wants.insert(rules::all_wanted(&name), wanted);
        }
    }

    fn is_recorded(&self, x: &Address) -> bool {
        let is_there = |record: &purlin::model::Record| record.has_objects() || record.intent.is_some();
        self.records.get(x).is_some_and(|stored| is_there(&stored.record))
    }

    fn recorded_instances(&self, name: &str) -> BTreeSet<Address> {
        let with_key = |x: &&Address| *x.name == *name && x.key != InstanceKey::None && self.is_recorded(x);
        self.records.keys().filter(with_key).cloned().collect()
    }

    /// The object that a reference means. What is being deleted and still referred to stays, so it counts; but of a family
    /// that is being deleted no instance is wanted any more.
    fn wants(&self, target: &Address) -> Option<Address> {
        let want = self.wish.wants.get(&*target.name)?;
        if target.key == InstanceKey::All {
            return Some(rules::all_wanted(&target.name));
        }
        let counts = if want.deleting { !want.has_keys() } else { self.wish.configured(target).is_some() };
        counts.then(|| target.clone())
    }

    /// The objects that recorded dependencies mean.
    fn used(&self, dependencies: &[Address]) -> BTreeSet<Address> {
        let meant = |x: &Address| match x.key {
            InstanceKey::All => rules::all_recorded(&x.name),
            // As earlier versions recorded a whole family.
            InstanceKey::None if !self.is_recorded(x) && !self.recorded_instances(&x.name).is_empty() => {
                rules::all_recorded(&x.name)
            }
            _ => x.clone(),
        };
        dependencies.iter().map(meant).collect()
    }

    fn wanted(&self, x: &Address) -> Option<&Want> {
        self.wish.wanted(x).filter(|_| !self.towards_nothing && !self.only_reads)
    }

    /// Nothing is done about what is not selected. Towards what is wanted, what a target needs is selected with it;
    /// towards nothing, what needs a target.
    fn leaves_out_what_it_must(&self, facts: &Facts) -> Result<(), String> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let is_target = |x: &Address| self.targets.iter().any(|target| select::means(target, x));
        // Of some nothing is left but what was deposed.
        let left_over = facts.leftovers.keys().map(|(x, _)| x);
        let known = facts.actions.keys().chain(facts.used.keys()).chain(&facts.wanted).chain(left_over);
        let mut reached: BTreeSet<Address> = known.filter(|x| is_target(x)).cloned().collect();
        loop {
            let uses = |b: &Address, a: &Address| {
                [&facts.wants, &facts.used].iter().any(|relation| relation.get(b).is_some_and(|all| all.contains(a)))
            };
            let relations = || facts.used.iter().chain(&facts.wants);
            let all = facts.actions.keys().chain(relations().flat_map(|(x, targets)| targets.iter().chain([x])));
            let is_new = |x: &&Address| {
                let by = |y: &Address| if self.towards_nothing { uses(x, y) } else { uses(y, x) };
                !reached.contains(*x) && reached.iter().any(by)
            };
            let more: BTreeSet<Address> = all.filter(is_new).cloned().collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.plan.changes.iter().filter(|change| !is_running(&change.address)) {
            let x = &change.address;
            let may_go = self.towards_nothing || self.only_reads || is_target(x) || self.wanted(x).is_some();
            if !(reached.contains(x) && may_go) && change.action != Action::NoOp {
                return Err(format!("{x}: {:?} is planned, though it is not selected", change.action));
            }
        }
        Ok(())
    }

    fn current_changes(&self) -> impl Iterator<Item = &Change> {
        self.plan.changes.iter().filter(|change| change.deposed.is_none())
    }

    /// Objects to what the plan must not be. Gives what may be destroyed because of it, and whose objects it forgets.
    pub(super) fn judge(&self, ruled: &Ruled) -> Result<(BTreeMap<String, Permit>, BTreeSet<String>), String> {
        self.is_whole()?;
        self.ignores_what_it_must()?;
        self.keeps_to_policies()?;
        self.keeps_to_conditions()?;
        self.moves_what_it_must()?;
        self.adopts_what_it_must()?;
        let facts = &ruled.facts;
        self.leaves_out_what_it_must(facts)?;
        if rules::has_ring(&facts.used) {
            return Err(format!("records depend on each other in a ring: {:?}", facts.used));
        }
        if self.running.is_empty() {
            self.creates_first_as_it_must(ruled)?;
            self.tells_who_fell_back(ruled)?;
            self.waits_for_nothing_else(ruled)?;
        }
        let mut permits = BTreeMap::new();
        let mut forgets = BTreeSet::new();
        for change in &self.plan.changes {
            if change.action == Action::Forget || change.forget {
                forgets.insert(change.address.to_string());
            }
            if let Some(id) = self.destroyed(change)? {
                permits.insert(id, self.permit(ruled, change));
            }
        }
        Ok((permits, forgets))
    }

    /// Every wanted or recorded object once, every leftover once.
    fn is_whole(&self) -> Result<(), String> {
        let mut expected: Vec<_> = self
            .records
            .iter()
            .flat_map(|(x, stored)| stored.record.deposed.keys().map(|key| (x.clone(), Some(*key))))
            .collect();
        // Of a family that is being deleted only what there is.
        let is_told = |x: &Address| x.key == InstanceKey::None || self.wish.wanted(x).is_some();
        let wanted = self.wish.instances().into_iter().filter(is_told);
        let recorded = self.records.iter().filter(|(_, stored)| stored.record.current.is_some());
        let objects: BTreeSet<Address> = wanted.chain(recorded.map(|(x, _)| x.clone())).collect();
        expected.extend(objects.into_iter().map(|x| (x, None)));
        expected.sort();
        let mut told: Vec<_> = self.plan.changes.iter().map(|c| (c.address.clone(), c.deposed)).collect();
        told.sort();
        let missing: Vec<_> = expected.iter().filter(|one| !told.contains(one)).collect();
        let twice = told.windows(2).any(|pair| pair[0] == pair[1]);
        // An emptied record, or a Resource that is going and never had an object, may be told of or not.
        if (!missing.is_empty() && self.running.is_empty() && !missing.iter().all(|(x, _)| self.is_going(x))) || twice {
            return Err(format!("the plan tells of {told:?}, and should of {expected:?}"));
        }
        Ok(())
    }

    fn is_going(&self, x: &Address) -> bool {
        let has_object = self.records.get(x).is_some_and(|stored| stored.record.current.is_some());
        let is_going = self.towards_nothing || self.only_reads || self.wish.wanted(x).is_none();
        is_going && !has_object
    }

    /// An update leaves what is ignored as it is; a new object has everything as it is wanted.
    fn ignores_what_it_must(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.current_changes().filter(|change| !is_running(&change.address)) {
            let x = &change.address;
            let (Some(want), Some(after)) = (self.wanted(x), &change.after) else { continue };
            for ignored in &want.ignores {
                let wished = match *ignored {
                    "label" => want.label_of(&x.key),
                    _ => format!("s{}", want.shape),
                };
                let expected = match (change.action, &change.before) {
                    (Action::Update, Some(before)) => before.get(ignored).cloned(),
                    (Action::Create | Action::Replace, _) => Some(Value::from(wished.as_str())),
                    _ => continue,
                };
                if after.get(ignored) != expected.as_ref() {
                    return Err(format!("{x}: {ignored} is ignored, and planned as {:?}", after.get(ignored)));
                }
            }
        }
        Ok(())
    }

    /// What `managementPolicies` does not hold is not done.
    fn keeps_to_policies(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.current_changes().filter(|change| !is_running(&change.address)) {
            let forbidden = match change.action {
                Action::Update => "Update",
                Action::Replace => "Replace",
                _ => continue,
            };
            if self.wish.wanted(&change.address).is_some_and(|want| want.forbids.contains(forbidden)) {
                return Err(format!("{}: {forbidden} is planned, and not allowed", change.address));
            }
        }
        Ok(())
    }

    /// Nothing is made or changed against a precondition, and nothing at all by a plan that only reads.
    fn keeps_to_conditions(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        for change in self.plan.changes.iter().filter(|change| !is_running(&change.address)) {
            let changes = matches!(change.action, Action::Create | Action::Update | Action::Replace);
            let refused = self.wanted(&change.address).is_some_and(|want| want.before == Some(Doubt::Never));
            if changes && (refused || self.only_reads) {
                return Err(format!("{}: {:?} is planned, and must not be", change.address, change.action));
            }
            if self.only_reads && change.action == Action::Destroy {
                return Err(format!("{}: destroyed by a plan that only reads", change.address));
            }
        }
        Ok(())
    }

    /// An object that has got a key, or lost it, is still the same object: nothing is left that could be moved.
    fn moves_what_it_must(&self) -> Result<(), String> {
        if self.towards_nothing || self.only_reads || !self.running.is_empty() {
            return Ok(());
        }
        let is_open = self.records.values().any(|stored| stored.record.intent.is_some());
        for x in self.wish.instances().iter().filter(|x| self.wish.wanted(x).is_some() && !self.is_recorded(x)) {
            let keyed = self.recorded_instances(&x.name);
            let single = Address::single(x.name.clone());
            let first = Address { name: x.name.clone(), key: InstanceKey::Index(0) };
            let from = match &x.key {
                InstanceKey::Index(0) => Some(single),
                InstanceKey::Key(_) if self.wish.members(&x.name).len() == 1 => Some(single),
                InstanceKey::All | InstanceKey::Index(_) | InstanceKey::Key(_) => None,
                InstanceKey::None if keyed.len() == 1 => keyed.first().cloned(),
                InstanceKey::None => Some(first),
            };
            // Of a name that it had before as well, unless somebody else may claim that.
            let old = self.wish.wants[&*x.name].moved_from.first();
            let claims = |name: &String| self.wish.wants.values().filter(|want| want.moved_from.contains(name)).count();
            let old = old.filter(|name| claims(name) == 1 && !self.wish.wants.contains_key(*name));
            let old = old.map(|name| Address { name: name.as_str().into(), key: x.key.clone() });
            let leaves = |from: &Address| self.is_recorded(from) && self.wish.wanted(from).is_none();
            // While an annotation names what is recorded, no key comes or goes without saying.
            let named = &self.wish.wants[&*x.name].moved_from;
            let is_said = self.records.keys().any(|known| named.iter().any(|name| **name == *known.name));
            let Some(from) = old.filter(leaves).or_else(|| from.filter(|from| !is_said && leaves(from))) else {
                continue;
            };
            // What names it may not be touched while an operation is open.
            let waits = self.current_changes().find(|change| change.address == *x);
            if is_open && waits.is_some_and(|change| change.action == Action::Blocked) {
                continue;
            }
            return Err(format!("{x}: is wanted, and {from} is not moved there"));
        }
        Ok(())
    }

    /// Nothing waits for what it need not wait for.
    fn waits_for_nothing_else(&self, ruled: &Ruled) -> Result<(), String> {
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

    fn creates_first_as_it_must(&self, ruled: &Ruled) -> Result<(), String> {
        let Ruled { facts, first, .. } = ruled;
        for change in self.current_changes().filter(|change| change.action == Action::Replace) {
            let expected =
                if first.contains(&change.address) { ReplaceOrder::CreateFirst } else { ReplaceOrder::DestroyFirst };
            if change.order != Some(expected) {
                return Err(format!("{}: planned as {:?}, and should be {expected:?}", change.address, change.order));
            }
        }
        for (x, lifecycle) in self.plan.lifecycle.iter().filter(|(x, _)| facts.wanted.contains(x)) {
            if lifecycle.create_before_destroy != first.contains(x) {
                return Err(format!("{x}: its effective flag is told as {}", lifecycle.create_before_destroy));
            }
        }
        Ok(())
    }

    fn tells_who_fell_back(&self, ruled: &Ruled) -> Result<(), String> {
        let told: BTreeSet<Address> = self
            .warnings
            .iter()
            .filter(|warning| warning.reason == Reason::ReleaseFellBack)
            .filter_map(|warning| warning.address.clone())
            .collect();
        if told == ruled.order.fell_back {
            return Ok(());
        }
        Err(format!("{told:?} are said to have fallen back, and {:?} should have", ruled.order.fell_back))
    }

    /// The thing that is there already for what has no record yet.
    fn adopted(&self, x: &Address) -> Option<String> {
        let is_free = |stored: &Stored| !stored.record.has_objects() && !stored.record.replacement_pending;
        let id = self.wanted(x)?.adopts().filter(|_| self.records.get(x).is_none_or(is_free))?;
        self.world.thing(id).map(|thing| thing.id)
    }

    /// What exists already and is to be adopted is not made a second time, and no two get it.
    fn adopts_what_it_must(&self) -> Result<(), String> {
        let is_running = |x: &Address| self.running.iter().any(|running| running.step.address == *x);
        let recorded = self.records.values().flat_map(|stored| known_ids(&stored.record));
        let mut taken: BTreeSet<String> = recorded.collect();
        for change in self.current_changes().filter(|change| !is_running(&change.address)) {
            let x = &change.address;
            let Some(id) = self.adopted(x) else { continue };
            match change.action {
                Action::Create => return Err(format!("{x}: created, though it is to adopt {id}")),
                Action::Record | Action::Update | Action::Replace if !taken.insert(id.clone()) => {
                    return Err(format!("{x}: adopts {id}, which is somebody else's"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The thing that the change destroys. An objection when it is a healthy one that nobody wants destroyed.
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
        let want = self.wanted(x);
        match (change.action, change.deposed) {
            (Action::Destroy, None) if want.is_some() && !is_running => Err(format!("{x}: destroyed, though wanted")),
            (Action::Destroy, None) if self.is_named_by_another(x) => {
                Err(format!("{x}: destroyed, though somebody else says that he was it"))
            }
            (Action::Destroy, _) => Ok(Some(id)),
            (Action::Replace, _) => {
                if change.hold_destroy.is_some() || change.forget {
                    return Ok(None);
                }
                let is_ready = object.is_none_or(|object| object.status == ObjectStatus::Ready);
                let is_whole = is_ready && !self.requested.contains(x);
                if is_whole && !is_running && !self.must_be_replaced(x, &id) {
                    return Err(format!("{x}: replaced, though {id} is as it should be"));
                }
                Ok(Some(id))
            }
            _ => Ok(None),
        }
    }

    /// Whether somebody who has an object of his own says that he was this one, and was no object that he names.
    fn is_named_by_another(&self, x: &Address) -> bool {
        let names = |(name, want): (&String, &Want)| {
            let own = Address { name: name.as_str().into(), key: x.key.clone() };
            let record = self.records.get(&own).filter(|_| self.wanted(&own).is_some()).map(|stored| &stored.record);
            let is_followed = |old: &Address| want.moved_from.iter().any(|named| **named == *old.name);
            let is_own = |record: &Arc<Record>| record.has_objects() && !record.came_from.iter().any(is_followed);
            record.is_some_and(is_own) && want.moved_from.iter().any(|old| **old == *x.name)
        };
        self.running.is_empty() && self.wish.wants.iter().any(names)
    }

    fn must_be_replaced(&self, x: &Address, id: &str) -> bool {
        let (Some(want), Some(thing)) = (self.wish.wanted(x), self.world.thing(id)) else { return true };
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
        let changes = |target: &String| match self.wish.meant(x, target) {
            Meant::One(target) | Meant::IfThere(target) => makes(&target),
            // Who reads a whole family knows nothing of it while anything of it is unknown.
            Meant::All(targets) => targets.iter().any(|target| makes(target) || updates(target)),
        };
        let current = |target: &Address| Some(self.records.get(target)?.record.current.as_ref()?.id()?.to_owned());
        let anchors = seen(self.wish, x, &want.anchors, &current);
        // Whether a trigger fires that was missed earlier, the end of the history tells.
        want.anchors.iter().any(changes)
            || !want.triggers.is_empty()
            || Some(&thing.arguments["anchors"]) != anchors.as_ref()
    }

    /// Who may still use a thing when it is destroyed: those that follow a delete-first replacement, and those for
    /// whom the rules give up the safer order.
    fn permit(&self, ruled: &Ruled, change: &Change) -> Permit {
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
            is_excepted || (makes && (destroys_first || order.fell_back.contains(x)))
        };
        let contradicts = |other: &&Change| {
            let other = other.deposed.map(|key| Node::L(other.address.clone(), key));
            other.is_some_and(|other| order.dropped.contains(&(this.clone(), other)))
        };
        let forgotten = |other: &&Change| other.action == Action::Forget;
        let followers =
            self.plan.changes.iter().filter(|other| follows(other) || contradicts(other) || forgotten(other));
        Permit { follow_later: followers.map(|other| other.address.to_string()).collect() }
    }
}

/// The list that an instance holds of what it refers to: what `text` tells of each. `None` when something is missing.
pub(super) fn seen(
    wish: &Wish,
    x: &Address,
    targets: &BTreeSet<String>,
    text: &dyn Fn(&Address) -> Option<String>,
) -> Option<Value> {
    let value = |target: &Address| text(target).map(|text| Value::from(text.as_str()));
    let one = |target: &String| match wish.meant(x, target) {
        Meant::IfThere(target) if wish.configured(&target).is_none() => Some(Value::from(NOTHING)),
        Meant::One(target) | Meant::IfThere(target) => value(&target),
        Meant::All(all) => all.iter().map(value).collect::<Option<Vec<_>>>().map(Value::list),
    };
    targets.iter().map(one).collect::<Option<Vec<_>>>().map(Value::list)
}
