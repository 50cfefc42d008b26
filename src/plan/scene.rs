//! The situation, made dense: every wanted or recorded object has a number, in address order, and edges are lists of
//! numbers. Everything else in planning works on these numbers, so that its cost is linear in objects and edges.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::through::Through;
use super::{Mode, PlanOptions, Refresh, RunningStep, Types};
use crate::load::{Config, Expansion, Family, Instance, Reference};
use crate::model::{Address, DeposedKey, InstanceKey, Provider, Record, Recorded, RecordedObject, Schema, Severity};

/// The number of an object. Numbers follow address order.
pub(super) type Id = usize;

/// One object: what is wanted and what is remembered. Or a junction: all instances of one Resource together.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub address: &'a Address,
    /// The Resource, when there is one. Of an instance that is not wanted any more it is what all instances share.
    pub instance: Option<&'a Arc<Instance>>,
    /// Whether the Resource asks for this very instance, be it that it is being deleted.
    pub configured: bool,
    /// The Resource, when it says how many objects it stands for.
    pub family: Option<&'a Arc<Family>>,
    pub record: Option<&'a Record>,
    /// Configured, not being deleted, and the plan is not towards nothing.
    pub wanted: bool,
}

/// Lists of numbers, one for each object, in two allocations.
#[derive(Default)]
pub(super) struct Lists {
    ends: Vec<u32>,
    items: Vec<u32>,
}

/// The instances of one Resource: who refers to the whole family depends on the junction, and the junction on each
/// instance, so that a thousand dependents of a thousand instances are two thousand edges.
struct Junction<'a> {
    name: &'a str,
    members: std::ops::Range<Id>,
}

/// All objects and how they hang together.
pub(super) struct Scene<'a> {
    config: &'a Config,
    through: Through,
    pub options: &'a PlanOptions,
    pub types: &'a dyn Types,
    /// Why part of the source could not be read; held orphans tell it.
    pub incomplete: Option<String>,
    /// All objects in address order, then the junctions.
    pub subjects: Vec<Subject<'a>>,
    /// How many of them are objects.
    pub objects: usize,
    junctions: Vec<Junction<'a>>,
    /// Direct dependencies of wanted objects on objects whose Resource exists.
    pub wants: Lists,
    /// `wants`, turned around.
    pub dependents: Lists,
    /// What the record of the current object names.
    pub used: Lists,
    /// References to what has no Resource: the first of each object that has such a one.
    pub missing: BTreeMap<Id, &'a Reference>,
    /// Steps under way, on current objects.
    pub running: BTreeMap<Id, &'a RunningStep>,
    /// Destroys of leftovers under way.
    pub running_leftovers: BTreeMap<(Id, DeposedKey), &'a RunningStep>,
    /// Whether the plan is about an object; empty when it is about all.
    pub selected: Vec<bool>,
    ids: IndexMap<&'a Address, ()>,
    refers_to_itself: bool,
}

impl<'a> Subject<'a> {
    /// The recorded current object.
    pub fn current(&self) -> Option<&'a Arc<RecordedObject>> {
        self.record.and_then(|record| record.current.as_ref())
    }

    /// The Resource, when nothing is wrong with it: then its lifecycle settings decide, otherwise the recorded ones.
    pub fn live_spec(&self) -> Option<&'a Instance> {
        let sound = |i: &&Arc<Instance>| !i.problems.iter().any(|problem| problem.severity == Severity::Error);
        self.instance.filter(sound).map(Arc::as_ref)
    }

    /// The type: of the record when there is one, since that is what exists.
    pub fn type_name(&self) -> Arc<str> {
        match (self.wanted, self.instance, self.record) {
            (true, Some(instance), _) | (false, Some(instance), None) => instance.type_name.clone(),
            (_, _, Some(record)) => record.type_name.clone(),
            (_, None, None) => Arc::from(""),
        }
    }

    /// The provider that manages it; `None` for built-in types.
    pub fn provider(&self) -> Option<&'a Arc<Provider>> {
        let wanted = self.instance.and_then(|instance| instance.provider.as_ref()?.provider());
        let recorded = || {
            let record = self.record?;
            let object = record.current.as_ref().or_else(|| record.deposed.values().next())?;
            Some(&object.provider.as_ref()?.provider)
        };
        match (self.wanted, self.record) {
            (true, _) | (false, None) => wanted,
            (false, Some(_)) => wanted.or_else(recorded),
        }
    }

    /// Whether the Resource may take back what the record says about keeping the object. One with errors, or of another
    /// type, may say more than the record, and takes nothing back.
    pub fn may_take_back(&self) -> bool {
        let is_of_type = |spec: &Instance| self.record.is_none_or(|record| record.type_name == spec.type_name);
        self.live_spec().is_some_and(is_of_type)
    }

    /// Whether a destroy of `object` is prevented, by its Resource or, unless that takes it back, by its record.
    pub fn prevents_destroy(&self, object: &RecordedObject) -> bool {
        let prevents = self.instance.is_some_and(|instance| instance.prevent_destroy);
        prevents || (object.prevent_destroy && !self.may_take_back())
    }

    /// Whether the object stays when it is not wanted any more, by its Resource or, unless that takes it back, by its record.
    pub fn keeps_object(&self, object: &RecordedObject) -> bool {
        let keeps = self.instance.is_some_and(|instance| instance.keeps_object());
        keeps || (object.skip_destroy && !self.may_take_back())
    }
}

impl Lists {
    /// The list of one object.
    pub fn of(&self, id: Id) -> impl DoubleEndedIterator<Item = Id> + '_ {
        self.items[self.range(id)].iter().map(|item| *item as Id)
    }

    fn range(&self, id: Id) -> std::ops::Range<usize> {
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        start..self.ends[id] as usize
    }

    /// Ends the list of the next object: the items pushed since, sorted and without duplicates.
    fn close(&mut self) {
        let start = self.ends.last().map_or(0, |end| *end as usize);
        self.items[start..].sort_unstable();
        let mut kept = start;
        for at in start..self.items.len() {
            if at == start || self.items[at] != self.items[kept - 1] {
                self.items[kept] = self.items[at];
                kept += 1;
            }
        }
        self.items.truncate(kept);
        self.ends.push(dense(self.items.len()));
    }

    /// The same edges from their ends.
    pub fn turned(&self) -> Self {
        let mut counts = vec![0_u32; self.ends.len()];
        for item in &self.items {
            counts[*item as usize] += 1;
        }
        let mut total = 0;
        let ends: Vec<u32> = counts
            .iter()
            .map(|count| {
                total += count;
                total
            })
            .collect();
        let mut items = vec![0; self.items.len()];
        let mut next: Vec<u32> = ends.iter().zip(&counts).map(|(end, count)| end - count).collect();
        for id in 0..self.ends.len() {
            for target in self.of(id) {
                items[next[target] as usize] = dense(id);
                next[target] += 1;
            }
        }
        Self { ends, items }
    }
}

/// Numbers are kept in 32 bits: an object costs far more than the byte that 2^32 objects would leave for each.
fn dense(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 objects and references fit in memory")
}

impl<'a> Scene<'a> {
    /// The schema of an object's type.
    pub fn schema(&self, id: Id) -> Option<Arc<Schema>> {
        let subject = self.subjects[id];
        let (type_name, provider) = (subject.type_name(), subject.provider().map(Arc::as_ref));
        match subject.address.is_data() {
            true => self.types.data_schema(&type_name, provider),
            false => self.types.schema(&type_name, provider),
        }
    }

    /// What is recorded as used by an object that reads data sources; `None` for any other, whose references say it.
    pub fn used_through_data(&self, instance: &Instance) -> Option<BTreeSet<Address>> {
        self.through.targets(self.config, instance)
    }

    /// Numbers the objects and resolves who refers to whom. The plan is about all of them until `selected` is set.
    pub fn new(config: &'a Config, recorded: &'a Recorded, options: &'a PlanOptions, types: &'a dyn Types) -> Self {
        let mut subjects = join(config, recorded, options);
        let objects = subjects.len();
        let junctions = junctions(config, &mut subjects, options);
        let mut scene = Self {
            config,
            through: Through::new(config),
            objects,
            junctions,
            options,
            types,
            incomplete: config.incomplete.first().map(ToString::to_string),
            ids: subjects[..objects].iter().map(|subject| (subject.address, ())).collect(),
            refers_to_itself: false,
            subjects,
            wants: Lists::default(),
            dependents: Lists::default(),
            used: Lists::default(),
            missing: BTreeMap::new(),
            running: BTreeMap::new(),
            running_leftovers: BTreeMap::new(),
            selected: Vec::new(),
        };
        for running in options.running.iter().filter(|running| !running.only_follows) {
            if let Some(id) = scene.find(&running.step.address) {
                match running.step.deposed {
                    None => drop(scene.running.insert(id, running)),
                    Some(key) => drop(scene.running_leftovers.insert((id, key), running)),
                }
            }
        }
        scene.connect();
        scene
    }

    fn connect(&mut self) {
        for id in 0..self.subjects.len() {
            if id < self.objects {
                self.connect_object(id);
            } else {
                self.connect_junction(id);
            }
            self.wants.close();
            self.used.close();
        }
        self.dependents = self.wants.turned();
    }

    fn connect_object(&mut self, id: Id) {
        let subject = self.subjects[id];
        if let Some(instance) = subject.instance.filter(|_| subject.wanted) {
            self.refer(id, &instance.references);
        }
        let intended = subject.record.and_then(|record| record.intent.as_ref()?.planned.as_ref());
        // What an open intent was about to make or change may be there, and use what it was to use.
        let intended = intended.into_iter().flat_map(|planned| planned.recorded.dependencies.iter());
        let current = subject.current().into_iter().flat_map(|current| current.dependencies.iter());
        let running = self.running.get(&id).and_then(|running| running.recorded.as_deref());
        let coming = running.into_iter().flat_map(|recorded| recorded.dependencies.iter());
        for dependency in current.chain(intended).chain(coming) {
            let target = self.resolve_used(dependency).filter(|target| *target != id);
            self.used.items.extend(target.map(dense));
        }
        // Whether an instance goes is told by what tells which ones there are.
        if !subject.wanted
            && let Some(gate) = self.gate(id)
        {
            self.refer_to_known(id, &gate.repetition().references);
        }
    }

    fn connect_junction(&mut self, id: Id) {
        let subject = self.subjects[id];
        let members = self.members(id);
        let wanted = members.clone().filter(|member| self.subjects[*member].wanted);
        self.wants.items.extend(wanted.map(dense));
        // An object without a key that has the name of a family is none of its instances.
        let has_keys = subject.family.is_none_or(|family| family.has_keys());
        let belongs = |member: &Id| !has_keys || self.subjects[*member].address.is_instance();
        // Whoever used the family used what there was of it.
        let was_there = |member: &Id| {
            let record = self.subjects[*member].record;
            record.is_some_and(|r| r.has_objects() || r.intent.is_some() || r.replacement_pending)
                || self.running.contains_key(member)
        };
        let used = members.filter(|member| was_there(member) && belongs(member));
        self.used.items.extend(used.map(dense));
        if let Some(family) = subject.family.filter(|_| subject.wanted) {
            self.refer(id, &family.repetition().references);
        }
    }

    fn refer(&mut self, id: Id, references: &'a [Reference]) {
        for reference in references {
            if self.resolve(&reference.target).is_none() {
                self.missing.entry(id).or_insert(reference);
            }
        }
        self.refer_to_known(id, references);
    }

    fn refer_to_known(&mut self, id: Id, references: &[Reference]) {
        for reference in references {
            let Some(target) = self.resolve(&reference.target) else { continue };
            self.refers_to_itself |= target == id;
            self.wants.items.extend((target != id).then(|| dense(target)));
        }
    }

    /// The number of an object.
    pub fn find(&self, address: &Address) -> Option<Id> {
        self.ids.get_index_of(address)
    }

    /// What a reference means: an object that is configured, or a junction. `None`: there is no such object.
    pub fn resolve(&self, address: &Address) -> Option<Id> {
        let object = self.find(address).filter(|id| self.subjects[*id].configured);
        object.or_else(|| {
            let junction = self.junction(&address.name)?;
            let family = self.subjects[junction].family?;
            let whole = !address.is_instance() || !family.shared.is_wanted();
            (whole || !matches!(family.expansion, Expansion::Known(_))).then_some(junction)
        })
    }

    /// What a recorded dependency means: a recorded object, or a junction. Earlier versions recorded a whole family by
    /// its bare name.
    fn resolve_used(&self, address: &Address) -> Option<Id> {
        let object = self.find(address);
        let recorded = |id: &Id| self.subjects[*id].record.is_some() || self.running.contains_key(id);
        if address.is_instance() || object.as_ref().is_some_and(recorded) {
            return object;
        }
        self.junction(&address.name).or(object)
    }

    /// The junction of a Resource name, if it has one.
    pub fn junction(&self, name: &str) -> Option<Id> {
        self.junctions.binary_search_by(|junction| junction.name.cmp(name)).ok().map(|at| self.objects + at)
    }

    /// The instances that a junction stands for, wanted or recorded; nothing for an object.
    pub fn members(&self, id: Id) -> std::ops::Range<Id> {
        match id.checked_sub(self.objects) {
            Some(at) => self.junctions[at].members.clone(),
            None => 0..0,
        }
    }

    /// The wanted objects that a reference to an object or a family means.
    pub fn wanted_of(&self, target: &Address) -> Vec<Id> {
        let objects = self.resolve(target).map_or(0..0, |id| match self.is_junction(id) {
            true => self.members(id),
            false => id..id + 1,
        });
        objects.filter(|id| self.subjects[*id].wanted).collect()
    }

    /// Whether it is no object.
    pub fn is_junction(&self, id: Id) -> bool {
        id >= self.objects
    }

    /// The family whose expressions decide whether an object, or a junction, is wanted.
    pub fn gate(&self, id: Id) -> Option<&'a Arc<Family>> {
        let family = self.subjects[id].family?;
        let asked = self.options.mode == Mode::Normal && family.shared.is_wanted();
        (asked && (family.is_evaluated() || !matches!(family.expansion, Expansion::Known(_)))).then_some(family)
    }

    /// Whether any instance of a Resource has a record, or had one, or is just being made.
    pub fn has_traces(&self, name: &Arc<str>) -> bool {
        let start = self.subjects[..self.objects].partition_point(|subject| *subject.address.name < **name);
        let mut own = (start..self.objects).take_while(|id| self.subjects[*id].address.name == *name);
        own.any(|id| self.subjects[id].record.is_some() || self.running.contains_key(&id))
            || self.options.indexed.range(Address::single(name.clone())..).next().is_some_and(|a| a.name == *name)
    }

    /// The objects that what the leftover of an object once used.
    pub fn leftover_used(&self, id: Id, object: &RecordedObject) -> Vec<Id> {
        let targets = object.dependencies.iter().filter_map(|dependency| self.resolve_used(dependency));
        targets.filter(|target| *target != id).collect()
    }

    /// What the record of an object names, and its Resource still refers to.
    pub fn still_used(&self, id: Id) -> Vec<Id> {
        let subject = self.subjects[id];
        let Some(instance) = subject.instance.filter(|_| subject.wanted) else { return self.used.of(id).collect() };
        let kept: BTreeSet<Id> = match self.used_through_data(instance) {
            Some(targets) => targets.iter().filter_map(|target| self.resolve_used(target)).collect(),
            None => instance.references.iter().filter_map(|one| self.resolve_used(&one.target)).collect(),
        };
        self.used.of(id).filter(|used| kept.contains(used)).collect()
    }

    /// Whether a number is that of an object, or of a junction that stands for it.
    pub fn stands_for(&self, number: Id, id: Id) -> bool {
        number == id || self.members(number).contains(&id)
    }

    /// Whether any object depends on itself, directly or through others. Far cheaper than finding who and how.
    pub fn has_ring(&self) -> bool {
        let count = self.subjects.len();
        let mut open: Vec<usize> = (0..count).map(|id| self.wants.range(id).len()).collect();
        let mut free: Vec<Id> = (0..count).filter(|id| open[*id] == 0).collect();
        let mut ordered = 0;
        while let Some(id) = free.pop() {
            ordered += 1;
            for dependent in self.dependents.of(id) {
                open[dependent] -= 1;
                if open[dependent] == 0 {
                    free.push(dependent);
                }
            }
        }
        self.refers_to_itself || ordered < count
    }

    /// Whether the plan is about an object.
    pub fn is_selected(&self, id: Id) -> bool {
        self.selected.get(id).is_none_or(|selected| *selected)
    }

    /// Whether the objects of a record are to be read before they are compared.
    pub fn refreshes(&self, address: &Address) -> bool {
        match &self.options.refresh {
            Refresh::All => true,
            Refresh::None => false,
            Refresh::Due(due) => due.contains(address),
        }
    }

    /// The address of a number.
    pub fn address(&self, id: Id) -> &'a Address {
        self.subjects[id].address
    }

    /// Addresses of numbers.
    pub fn addresses(&self, ids: impl IntoIterator<Item = Id>) -> Vec<Address> {
        ids.into_iter().map(|id| self.address(id).clone()).collect()
    }
}

/// Merges configuration and records, both in address order.
fn join<'a>(config: &'a Config, recorded: &'a Recorded, options: &'a PlanOptions) -> Vec<Subject<'a>> {
    let mut subjects = join_known(config, recorded, options);
    // What is just being made has no record yet, and may not be wanted any more.
    let mut unknown: Vec<&Address> = options.running.iter().map(|running| &running.step.address).collect();
    unknown.retain(|address| subjects.binary_search_by(|subject| subject.address.cmp(address)).is_err());
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        subjects.extend(unknown.into_iter().map(|address| Subject {
            address,
            instance: resource(config, address),
            configured: false,
            family: config.families.get(&address.name),
            record: None,
            wanted: false,
        }));
        subjects.sort_by(|a, b| a.address.cmp(b.address));
    }
    subjects
}

fn join_known<'a>(config: &'a Config, recorded: &'a Recorded, options: &PlanOptions) -> Vec<Subject<'a>> {
    let mut subjects = Vec::with_capacity(config.instances.len().max(recorded.len()));
    let mut instances = config.instances.iter().peekable();
    let mut records = recorded.iter().peekable();
    loop {
        let order = match (instances.peek(), records.peek()) {
            (None, None) => return subjects,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        let instance = if order.is_le() { instances.next() } else { None };
        let record = if order.is_ge() { records.next() } else { None };
        let Some(address) = instance.map(|(address, _)| address).or(record.map(|(address, _)| address)) else {
            return subjects;
        };
        let family = config.families.get(&address.name);
        subjects.push(Subject {
            address,
            instance: instance.map(|(_, instance)| instance).or_else(|| resource(config, address)),
            configured: instance.is_some(),
            family,
            record: record.map(|(_, stored)| stored.record.as_ref()),
            wanted: options.mode == Mode::Normal && instance.is_some_and(|(_, instance)| instance.is_wanted()),
        });
    }
}

/// The Resource of an instance that it does not ask for (any more): it is a family, or it was one.
fn resource<'a>(config: &'a Config, address: &Address) -> Option<&'a Arc<Instance>> {
    if let Some(family) = config.families.get(&address.name) {
        return Some(&family.shared);
    }
    config.instances.get(&Address::single(address.name.clone())).filter(|_| address.key != InstanceKey::None)
}

/// Adds the junctions: of each Resource that says how many objects it stands for, and of each name with instances.
fn junctions<'a>(config: &'a Config, subjects: &mut Vec<Subject<'a>>, options: &PlanOptions) -> Vec<Junction<'a>> {
    let mut junctions: Vec<Junction<'a>> = Vec::new();
    for (name, family) in &config.families {
        let address = &family.shared.address;
        let start = subjects.partition_point(|subject| subject.address < address);
        let length = subjects[start..].iter().take_while(|subject| subject.address.name == *name).count();
        junctions.push(Junction { name, members: start..start + length });
    }
    let mut at = 0;
    while at < subjects.len() {
        let name: &'a str = &subjects[at].address.name;
        let length = subjects[at..].iter().take_while(|subject| *subject.address.name == *name).count();
        let has_keys = subjects[at..at + length].iter().any(|subject| subject.address.key != InstanceKey::None);
        if has_keys && !config.families.contains_key(name) {
            junctions.push(Junction { name, members: at..at + length });
        }
        at += length;
    }
    junctions.sort_by_key(|junction| junction.name);
    for junction in &junctions {
        let family = config.families.get(junction.name);
        let first = || subjects.get(junction.members.start).map(|subject| subject.address);
        let Some(address) = family.map(|family| &family.shared.address).or_else(first) else { continue };
        let wanted = options.mode == Mode::Normal && family.is_some_and(|family| family.shared.is_wanted());
        subjects.push(Subject { address, instance: None, configured: false, family, record: None, wanted });
    }
    junctions
}
