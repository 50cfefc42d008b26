//! The input of planning as a graph: every desired or recorded object has a number, in address order, and edges are
//! lists of numbers. Planning works on these numbers, so that its cost is linear in objects and edges.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::data_dependencies::DataDependencies;
use super::{Mode, PlanOptions, Refresh, RunningStep, Types};
use crate::load::{Config, Expansion, Family, Instance, Program, Reference};
use model::{
    Address, DeposedKey, Diagnostics, ImportRequest, InstanceKey, Name, Provider, Reason, Record, Recorded,
    RecordedObject, Revision, Schema, Stem, TypeName,
};

/// The number of a node. Numbers of objects follow address order.
pub type Id = usize;

/// One object, with its configuration and its record, or a junction: all instances of one Resource.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    pub address: &'a Address,
    /// `None` without a Resource. For an instance that is no longer desired, the part that all instances share.
    pub instance: Option<&'a Arc<Instance>>,
    /// For an object that a renamed family left behind: the new Resource, whose protection covers it too.
    pub successor: Option<&'a Arc<Instance>>,
    /// Whether the Resource configures this instance, even if the Resource is being deleted.
    pub configured: bool,
    /// The Resource, if it has `count`, `forEach` or `enabled`.
    pub family: Option<&'a Arc<Family>>,
    pub record: Option<&'a Record>,
    /// Configured, not being deleted, and planned in `Mode::Normal`.
    pub desired: bool,
}

/// Adjacency lists, one for each node, in two allocations.
#[derive(Default)]
pub struct AdjacencyLists {
    ends: Vec<u32>,
    items: Vec<u32>,
}

/// The instances of one Resource. An object that references the whole family depends on the junction, and the junction
/// depends on each instance, so that a thousand dependents of a thousand instances need two thousand edges.
struct Junction<'a> {
    stem: &'a Stem,
    members: std::ops::Range<Id>,
}

/// All objects and their dependencies.
pub struct PlanInput<'a> {
    pub config: &'a Config,
    through: DataDependencies,
    pub options: &'a PlanOptions,
    pub types: &'a dyn Types,
    /// Why part of the source could not be read. Blocked orphans report it.
    pub incomplete: Option<String>,
    /// Why a file or document that other manifests may refer to cannot be read.
    pub unreadable: Option<&'a str>,
    /// All objects in address order, then the junctions.
    pub nodes: Vec<Node<'a>>,
    /// How many nodes are objects.
    pub objects: usize,
    junctions: Vec<Junction<'a>>,
    /// The direct dependencies of desired objects on objects whose Resource exists.
    pub dependencies: AdjacencyLists,
    /// The reverse of `dependencies`.
    pub dependents: AdjacencyLists,
    /// The dependencies in the record of the current object.
    pub recorded_dependencies: AdjacencyLists,
    /// The first reference of each object to a Resource that does not exist.
    pub missing: BTreeMap<Id, &'a Reference>,
    /// Running steps on current objects.
    pub running: BTreeMap<Id, &'a RunningStep>,
    /// Running destroys of deposed objects.
    pub running_deposed: BTreeMap<(Id, DeposedKey), &'a RunningStep>,
    /// The problems that belong to no object, with the values of this round.
    pub general: Diagnostics,
    /// Whether each node is selected. Empty when all are.
    pub selected: Vec<bool>,
    ids: IndexMap<&'a Address, ()>,
    refers_to_itself: bool,
}

impl<'a> Node<'a> {
    pub fn current(&self) -> Option<&'a Arc<RecordedObject>> {
        self.record.and_then(|record| record.current.as_ref())
    }

    /// The Resources whose protection covers the object.
    pub fn resources(&self) -> impl Iterator<Item = &'a Arc<Instance>> {
        self.instance.into_iter().chain(self.successor)
    }

    /// The Resource as this instance has it, also if the instance is no longer desired.
    pub fn own_instance(&self) -> Option<Cow<'a, Instance>> {
        match (self.family, self.address.is_instance()) {
            (Some(family), true) if self.instance.is_none_or(|instance| instance.address != *self.address) => {
                Some(Cow::Owned(family.former_instance(&self.address.key)))
            }
            _ => self.instance.map(|instance| Cow::Borrowed(instance.as_ref())),
        }
    }

    /// The type of an object that is not desired comes from its record, because that describes the existing object.
    pub fn type_name(&self) -> TypeName {
        match (self.desired, self.instance, self.record) {
            (true, Some(instance), _) | (false, Some(instance), None) => instance.type_name.clone(),
            (_, _, Some(record)) => record.type_name.clone(),
            (_, None, None) => TypeName::default(),
        }
    }

    /// `None` for built-in types.
    pub fn provider(&self) -> Option<&'a Arc<Provider>> {
        let desired = self.instance.and_then(|instance| instance.provider.as_ref()?.provider());
        let Some(record) = self.record.filter(|_| !self.desired) else { return desired };
        desired.or_else(|| {
            let object = record.current.as_ref().or_else(|| record.deposed.values().next())?;
            Some(&object.provider.as_ref()?.provider)
        })
    }

    /// Whether the Resource may remove a protection that the record holds. A Resource with errors or of another type
    /// can add protection, but cannot remove it.
    pub fn may_remove_protection(&self) -> bool {
        self.instance.is_some_and(|instance| {
            !instance.has_errors() && self.record.is_none_or(|record| record.type_name == instance.type_name)
        })
    }

    /// Whether the Resource prevents a destroy of `object`, or the record does and the Resource does not override it.
    pub fn prevents_destroy(&self, object: &RecordedObject) -> bool {
        let prevents = self.resources().any(|instance| instance.prevent_destroy);
        prevents || (object.prevent_destroy && !self.may_remove_protection())
    }

    /// Whether `object` is kept when it is no longer desired, by its Resource, or by its record without an override. A
    /// Resource that was to manage an object it only observed, and is deleted before it did, keeps the object.
    pub fn keeps_object(&self, object: &RecordedObject) -> bool {
        let keeps = self.resources().any(|instance| instance.keeps_object());
        let was_observed = !self.desired && is_only_observed(object);
        keeps || was_observed || (object.skip_destroy && !self.may_remove_protection())
    }
}

/// Whether the object was recorded to be kept, and was not created or changed since: it was only observed so far.
pub fn is_only_observed(object: &RecordedObject) -> bool {
    object.skip_destroy && object.revision == Revision::default()
}

impl AdjacencyLists {
    pub fn of(&self, id: Id) -> impl DoubleEndedIterator<Item = Id> + '_ {
        self.items[self.range(id)].iter().map(|item| *item as Id)
    }

    fn range(&self, id: Id) -> std::ops::Range<usize> {
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        start..self.ends[id] as usize
    }

    /// Ends the list of the next node: sorts the items pushed since the last call and removes duplicates.
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

    /// The same edges in the opposite direction.
    pub fn reversed(&self) -> Self {
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

/// Numbers have 32 bits to save memory.
fn dense(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 objects and references fit in memory")
}

impl<'a> PlanInput<'a> {
    /// The configurations of Modules.
    pub fn programs(&self) -> impl Iterator<Item = &'a Arc<dyn Program>> {
        let is_asked = self.options.mode == Mode::Normal;
        self.config.programs().filter(move |_| is_asked).map(|(_, program)| program)
    }

    /// `None` when no driver serves the type.
    pub fn schema(&self, id: Id) -> Option<Arc<Schema>> {
        let node = self.nodes[id];
        let (type_name, provider) = (node.type_name(), node.provider().map(Arc::as_ref));
        match node.address.is_data() {
            true => self.types.data_schema(&type_name, provider),
            false => self.types.schema(&type_name, provider),
        }
    }

    /// The dependencies to record for an object that reads data sources. `None` for others: use their references.
    pub fn dependencies_through_data(&self, instance: &Instance) -> Option<BTreeSet<Address>> {
        self.through.targets(self.config, instance)
    }

    /// Numbers the objects and resolves their references. All objects are selected until `selected` is set.
    pub fn new(config: &'a Config, recorded: &'a Recorded, options: &'a PlanOptions, types: &'a dyn Types) -> Self {
        let mut nodes = join(config, recorded, options);
        let objects = nodes.len();
        let junctions = junctions(config, &mut nodes, options);
        let mut input = Self {
            config,
            through: DataDependencies::new(config),
            objects,
            junctions,
            options,
            types,
            incomplete: config.incomplete.first().map(ToString::to_string),
            unreadable: config.unreadable.as_deref(),
            ids: nodes[..objects].iter().map(|node| (node.address, ())).collect(),
            refers_to_itself: false,
            nodes,
            dependencies: AdjacencyLists::default(),
            dependents: AdjacencyLists::default(),
            recorded_dependencies: AdjacencyLists::default(),
            missing: BTreeMap::new(),
            running: BTreeMap::new(),
            running_deposed: BTreeMap::new(),
            general: Diagnostics::new(),
            selected: Vec::new(),
        };
        for running in options.running.iter().filter(|running| !running.record_only) {
            if let Some(id) = input.find(&running.step.address) {
                match running.step.deposed {
                    None => drop(input.running.insert(id, running)),
                    Some(key) => drop(input.running_deposed.insert((id, key), running)),
                }
            }
        }
        input.connect();
        input
    }

    fn connect(&mut self) {
        for id in 0..self.nodes.len() {
            if id < self.objects {
                self.connect_object(id);
            } else {
                self.connect_junction(id);
            }
            self.dependencies.close();
            self.recorded_dependencies.close();
        }
        self.dependents = self.dependencies.reversed();
    }

    fn connect_object(&mut self, id: Id) {
        let node = self.nodes[id];
        if let Some(instance) = node.instance.filter(|_| node.desired) {
            self.refer(id, &instance.references);
        }
        let intended = node.record.and_then(|record| record.intent.as_ref()?.planned.as_ref());
        // The object of an open intent may exist already, with the planned dependencies.
        let intended = intended.into_iter().flat_map(|planned| planned.recorded.dependencies.iter());
        let current = node.current().into_iter().flat_map(|current| current.dependencies.iter());
        let running = self.running.get(&id).and_then(|running| running.recorded.as_deref());
        let coming = running.into_iter().flat_map(|recorded| recorded.dependencies.iter());
        for dependency in current.chain(intended).chain(coming) {
            let target = self.resolve_used(dependency).filter(|target| *target != id);
            self.recorded_dependencies.items.extend(target.map(dense));
        }
        // The expressions of the family decide whether an instance is destroyed.
        if !node.desired {
            for gate in self.gates(id) {
                self.refer_to_known(id, &gate.repetition().references);
            }
        }
    }

    fn connect_junction(&mut self, id: Id) {
        let node = self.nodes[id];
        let has_keys = node.family.is_none_or(|family| family.has_keys());
        for member in self.members(id) {
            let instance = self.nodes[member];
            // While a family is being deleted, its dependents read the instances that remain.
            if instance.desired || (!node.desired && instance.configured) {
                self.dependencies.items.push(dense(member));
            }
            // An object that depended on the family depended on its existing instances.
            let existed = self.running.contains_key(&member)
                || instance.record.is_some_and(|record| {
                    record.has_objects() || record.intent.is_some() || record.replacement_pending
                });
            // An object without a key is not an instance of the family of the same name.
            if existed && (!has_keys || instance.address.is_instance()) {
                self.recorded_dependencies.items.push(dense(member));
            }
        }
        if let Some(family) = node.family.filter(|_| node.desired) {
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
            self.dependencies.items.extend((target != id).then(|| dense(target)));
        }
    }

    pub fn find(&self, address: &Address) -> Option<Id> {
        self.ids.get_index_of(address)
    }

    /// The target of a reference: a configured object or a junction. `None` if neither exists.
    pub fn resolve(&self, address: &Address) -> Option<Id> {
        let object = self.find(address).filter(|id| self.nodes[*id].configured);
        object.or_else(|| {
            let junction = self.junction(&address.stem)?;
            let family = self.nodes[junction].family?;
            let whole = !address.is_instance() || !family.shared.is_desired();
            (whole || !matches!(family.expansion, Expansion::Known(_))).then_some(junction)
        })
    }

    /// The target of a recorded dependency: a recorded object or a junction. Earlier versions recorded a whole family
    /// by its bare name.
    fn resolve_used(&self, address: &Address) -> Option<Id> {
        let object = self.find(address);
        if address.is_instance() || object.is_some_and(|id| self.is_recorded(id)) {
            return object;
        }
        self.junction(&address.stem).or(object)
    }

    /// Whether an object has a record, or is being created.
    fn is_recorded(&self, id: Id) -> bool {
        self.nodes[id].record.is_some() || self.running.contains_key(&id)
    }

    pub fn junction(&self, stem: &Stem) -> Option<Id> {
        self.junctions.binary_search_by(|junction| junction.stem.cmp(stem)).ok().map(|at| self.objects + at)
    }

    /// The desired or recorded instances of a junction. Empty for an object.
    pub fn members(&self, id: Id) -> std::ops::Range<Id> {
        match id.checked_sub(self.objects) {
            Some(at) => self.junctions[at].members.clone(),
            None => 0..0,
        }
    }

    /// The desired objects of a reference to an object or a family.
    pub fn desired_targets(&self, target: &Address) -> Vec<Id> {
        let objects = self.resolve(target).map_or(0..0, |id| match self.is_junction(id) {
            true => self.members(id),
            false => id..id + 1,
        });
        objects.filter(|id| self.nodes[*id].desired).collect()
    }

    pub fn is_junction(&self, id: Id) -> bool {
        id >= self.objects
    }

    /// The families whose expressions decide whether an object or a junction is desired. A group of Resources decides about
    /// those that are not desired: those that are refer to it.
    pub fn gates(&self, id: Id) -> Vec<&'a Arc<Family>> {
        let node = &self.nodes[id];
        match self.options.mode {
            Mode::Normal if !self.is_junction(id) && !node.desired => self.config.gates(node.address).collect(),
            _ => self.gate(id).into_iter().collect(),
        }
    }

    /// The family of an object or a junction, if its expressions decide whether that is desired.
    pub fn gate(&self, id: Id) -> Option<&'a Arc<Family>> {
        self.nodes[id].family.filter(|family| self.options.mode == Mode::Normal && family.is_gate())
    }

    /// Whether any instance of a Resource has a record, had one, or is being created.
    pub fn has_traces(&self, name: &Name) -> bool {
        self.has_records(name) || self.listed_instance(name).is_some()
    }

    /// The first instance of a Resource in the index of its family.
    pub fn listed_instance(&self, name: &Name) -> Option<&Address> {
        self.options.indexed.range(Address::single(name.clone())..).next().filter(|address| address.name() == name)
    }

    /// Whether any instance of a Resource has a record, or is being created.
    pub fn has_records(&self, name: &Name) -> bool {
        let start = self.nodes[..self.objects].partition_point(|node| node.address.name() < name);
        (start..self.objects).take_while(|id| self.nodes[*id].address.name() == name).any(|id| self.is_recorded(id))
    }

    pub fn deposed_dependencies(&self, id: Id, object: &RecordedObject) -> Vec<Id> {
        let targets = object.dependencies.iter().filter_map(|dependency| self.resolve_used(dependency));
        targets.filter(|target| *target != id).collect()
    }

    /// The recorded dependencies of an object that its Resource still references.
    pub fn referenced_dependencies(&self, id: Id) -> Vec<Id> {
        let node = self.nodes[id];
        let Some(instance) = node.instance.filter(|_| node.desired) else {
            return self.recorded_dependencies.of(id).collect();
        };
        let kept: BTreeSet<Id> = match self.dependencies_through_data(instance) {
            Some(targets) => targets.iter().filter_map(|target| self.resolve_used(target)).collect(),
            None => instance.references.iter().filter_map(|reference| self.resolve_used(&reference.target)).collect(),
        };
        self.recorded_dependencies.of(id).filter(|used| kept.contains(used)).collect()
    }

    /// Whether `number` is the object `id` or a junction that contains it.
    pub fn includes(&self, number: Id, id: Id) -> bool {
        number == id || self.members(number).contains(&id)
    }

    /// Whether any object depends on itself, directly or indirectly. Cheaper than `cycle::find`.
    pub fn has_cycle(&self) -> bool {
        let count = self.nodes.len();
        let mut open: Vec<usize> = (0..count).map(|id| self.dependencies.range(id).len()).collect();
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

    /// Whether the manifest of an object, or of a family, is in a source that is not given.
    pub fn is_of_other_source(&self, id: Id) -> bool {
        let node = &self.nodes[id];
        let resource = node.instance.or_else(|| node.family.map(|family| &family.shared));
        resource.is_some_and(|resource| resource.only_recorded)
    }

    /// The import request of a Resource without an object. It is ignored while a replacement is pending, because the id
    /// then refers to the destroyed object.
    pub fn import_of(&self, id: Id) -> Option<ImportRequest> {
        let node = self.nodes[id];
        let import = node.instance?.import.clone()?;
        let unknown_outcome =
            self.options.blocked.get(node.address).is_some_and(|held| held.reason == Reason::CreateOutcomeUnknown);
        let is_free = node.record.is_none_or(|record| {
            let occupied = if unknown_outcome { record.current.is_some() } else { record.has_objects() };
            !occupied && !record.replacement_pending
        });
        is_free.then_some(import)
    }

    /// The import request of a Resource with an object, if it differs from the one that was last compared with the object.
    pub fn changed_import(&self, id: Id) -> Option<ImportRequest> {
        let node = self.nodes[id];
        let record = node.record.filter(|record| record.current.is_some() && !record.replacement_pending)?;
        let import = node.instance?.import.clone()?;
        (*import.to_string() != *record.handled_import).then_some(import)
    }

    /// Whether a replacement was requested by option or annotation and is not done yet. An annotation requests nothing of
    /// an object that is only imported or adopted now: whether it was fulfilled before is in the record that was lost.
    pub fn is_replacement_requested(&self, id: Id) -> bool {
        let node = self.nodes[id];
        if self.options.replace.contains(node.address) {
            return true;
        }
        let Some(requested) = node.instance.map(|instance| &instance.replace_requested) else { return false };
        let known = node.record.filter(|record| record.has_objects() || record.replacement_pending);
        !requested.is_empty() && known.is_some_and(|record| record.handled_replace_request != *requested)
    }

    pub fn is_selected(&self, id: Id) -> bool {
        self.selected.get(id).is_none_or(|selected| *selected)
    }

    /// Whether the objects of a record are read before they are compared.
    pub fn refreshes(&self, address: &Address) -> bool {
        match &self.options.refresh {
            Refresh::All => true,
            Refresh::None => false,
            Refresh::Due(due) => due.contains(address),
        }
    }

    pub fn address(&self, id: Id) -> &'a Address {
        self.nodes[id].address
    }

    pub fn addresses(&self, ids: impl IntoIterator<Item = Id>) -> Vec<Address> {
        ids.into_iter().map(|id| self.address(id).clone()).collect()
    }
}

/// Merges configuration and records, both in address order.
fn join<'a>(config: &'a Config, recorded: &'a Recorded, options: &'a PlanOptions) -> Vec<Node<'a>> {
    let mut nodes = join_known(config, recorded, options);
    // An object that is being created has no record yet, and may no longer be desired.
    let mut unknown: Vec<&Address> = options.running.iter().map(|running| &running.step.address).collect();
    unknown.retain(|address| nodes.binary_search_by(|node| node.address.cmp(address)).is_err());
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        nodes.extend(unknown.into_iter().map(|address| Node {
            address,
            instance: resource(config, address),
            successor: None,
            configured: false,
            family: config.families.get(&address.stem),
            record: None,
            desired: false,
        }));
        nodes.sort_by(|a, b| a.address.cmp(b.address));
    }
    nodes
}

fn join_known<'a>(config: &'a Config, recorded: &'a Recorded, options: &PlanOptions) -> Vec<Node<'a>> {
    let mut nodes = Vec::with_capacity(config.instances.len().max(recorded.len()));
    let mut instances = config.instances.iter().peekable();
    let mut records = recorded.iter().peekable();
    let successors = successors(config);
    loop {
        let order = match (instances.peek(), records.peek()) {
            (None, None) => return nodes,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        let instance = if order.is_le() { instances.next() } else { None };
        let record = if order.is_ge() { records.next() } else { None };
        let Some(address) = instance.map(|(address, _)| address).or(record.map(|(address, _)| address)) else {
            return nodes;
        };
        let family = config.families.get(&address.stem);
        // A family that is being deleted has no desired instances. The recorded ones exist until they are destroyed.
        let remains = record.is_some()
            && family.is_some_and(|family| family.has_keys() && address.is_instance() && !family.shared.is_desired());
        nodes.push(Node {
            address,
            instance: instance.map(|(_, instance)| instance).or_else(|| resource(config, address)),
            successor: successors.get(&address.stem).copied().filter(|_| address.is_instance()),
            configured: instance.is_some() || remains,
            family,
            record: record.map(|(_, stored)| stored.record.as_ref()),
            desired: options.mode == Mode::Normal && instance.is_some_and(|(_, instance)| instance.is_desired()),
        });
    }
}

/// The Resources to which families of other names were renamed, by the old names.
fn successors(config: &Config) -> BTreeMap<&Stem, &Arc<Instance>> {
    let desired = config.resources().filter(|resource| resource.is_desired());
    let whole = desired.flat_map(|resource| {
        let entries = resource.moved_from.iter().filter(|entry| entry.is_whole());
        entries.map(move |entry| (&entry.from.stem, resource))
    });
    whole
        .filter(|(name, _)| {
            config.resource(&Address::single(Stem::clone(name))).is_none_or(|resource| !resource.is_desired())
        })
        .collect()
}

/// The Resource of an instance that it does not configure: the Resource is or was a family, or it is the Module of the object.
fn resource<'a>(config: &'a Config, address: &Address) -> Option<&'a Arc<Instance>> {
    if let Some(family) = config.families.get(&address.stem) {
        return Some(&family.shared);
    }
    let single =
        config.instances.get(&Address::single(address.stem.clone())).filter(|_| address.key != InstanceKey::None);
    let is_of_module = || address.is_qualified() && !address.name().is_empty();
    single.or_else(|| config.modules.get(address.name()).filter(|_| is_of_module()))
}

/// Adds a junction for each family and for each name with instances.
fn junctions<'a>(config: &'a Config, nodes: &mut Vec<Node<'a>>, options: &PlanOptions) -> Vec<Junction<'a>> {
    let mut junctions: Vec<Junction<'a>> = Vec::new();
    for (stem, family) in &config.families {
        let address = &family.shared.address;
        let start = nodes.partition_point(|node| node.address < address);
        let length = nodes[start..].iter().take_while(|node| node.address.stem == *stem).count();
        junctions.push(Junction { stem, members: start..start + length });
    }
    let mut at = 0;
    while at < nodes.len() {
        let stem = &nodes[at].address.stem;
        let length = nodes[at..].iter().take_while(|node| node.address.stem == *stem).count();
        let has_keys = nodes[at..at + length].iter().any(|node| node.address.key != InstanceKey::None);
        if has_keys && !config.families.contains_key(stem) {
            junctions.push(Junction { stem, members: at..at + length });
        }
        at += length;
    }
    junctions.sort_by_key(|junction| junction.stem);
    for junction in &junctions {
        let family = config.families.get(junction.stem);
        let address = family.map_or_else(|| nodes[junction.members.start].address, |family| &family.shared.address);
        let desired = options.mode == Mode::Normal && family.is_some_and(|family| family.shared.is_desired());
        nodes.push(Node { address, instance: None, successor: None, configured: false, family, record: None, desired });
    }
    junctions
}
