//! Results on demand: a planner sets the values of objects, and asks for what follows from them.
//!
//! Each item keeps what it has read. When the value of an object changes, what was computed from it is forgotten, and computed
//! again when it is asked for. So one evaluation serves all plans and steps, and only what a change concerns is computed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cty::{Type, Value};
use hcl::Range;
use language::Effects;

use super::expansion::{Instances, Keys};
use super::item::{Item, ItemId, ModuleId};
use super::scope::Scope;
use super::uses::Dependency;
use super::{Computed, Evaluation, Object, Presence, Stop};
use crate::address::{InstanceAddress, Key, Mode, ModulePath, ResourceAddress, ResourceName};
use crate::diagnostics::Diagnostics;
use crate::module::Repetition;
use crate::providers::ProviderAddress;
use crate::tree::Tree;

/// What an expression comes to that is not of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// `None` if an error took it away, here or in what the expression uses.
    pub value: Option<Value>,
    /// The objects that it comes from.
    pub uses: BTreeSet<Dependency>,
    /// The problems of the expression itself.
    pub problems: Diagnostics,
}

/// What the computation of an item has read and reported.
#[derive(Default)]
pub struct Computing {
    pub reads: Vec<Stop>,
    pub problems: Diagnostics,
}

/// A resource block or module call in an instance of its module.
#[derive(Clone, Debug)]
pub struct KnownBlock {
    /// The module with the block.
    pub module: ModulePath,
    /// The resource, or none for a module call.
    pub resource: Option<ResourceName>,
    /// The name of the module call.
    pub call: Option<Arc<str>>,
    /// What the keys are.
    pub kind: KeyKind,
    /// The instances.
    pub keys: BlockKeys,
    /// The objects that the keys come from.
    pub uses: BTreeSet<Dependency>,
    /// The place of the expression of the keys, or that of the block.
    pub range: Range,
}

/// What the keys of the instances of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// There is one instance, without a key.
    Once,
    /// One instance without a key, or none.
    Enabled,
    /// Numbers from 0.
    Count,
    /// Texts.
    ForEach,
}

impl KeyKind {
    fn of(repetition: &Repetition) -> Self {
        match repetition {
            Repetition::Once => Self::Once,
            Repetition::Enabled(_) => Self::Enabled,
            Repetition::Count(_) => Self::Count,
            Repetition::ForEach(_) => Self::ForEach,
        }
    }

    /// Whether the instances have keys.
    pub fn has_keys(self) -> bool {
        matches!(self, Self::Count | Self::ForEach)
    }
}

/// The instances of a block or call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKeys {
    /// All of them.
    Known(Vec<Option<Key>>),
    /// They are not known before other objects are changed.
    Unknown,
    /// An error took them away.
    Failed,
}

impl KnownBlock {
    /// The address of the block or call.
    pub fn address(&self) -> String {
        match (&self.resource, &self.call) {
            (Some(resource), _) => self.module.join(resource),
            (None, Some(call)) => self.module.join(format!("module.{call}")),
            (None, None) => self.module.to_string(),
        }
    }
}

impl Instances {
    fn block_keys(&self) -> BlockKeys {
        match &self.keys {
            Keys::Known(all) => BlockKeys::Known(all.iter().map(|each| each.key.clone()).collect()),
            Keys::Unknown => BlockKeys::Unknown,
            Keys::Failed => BlockKeys::Failed,
        }
    }
}

impl Evaluation {
    /// The modules.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Sets the value of an object, or takes it back. What was computed from another value is forgotten.
    pub fn set(&self, address: &InstanceAddress, value: Option<&Value>) {
        let Some((module, object)) = self.object_at(address) else { return };
        let name = &address.resource.resource;
        let instance = self.module(module);
        if !instance.module.resources.contains_key(name) {
            return;
        }
        let shape = self.shape(instance.node, name);
        let value = value.map(|value| shape.map_or_else(|| value.clone(), |shape| shape.block.mark(value)));
        if self.given.borrow().get(&object) == value.as_ref() {
            return;
        }
        match value {
            Some(value) => drop(self.given.borrow_mut().insert(object, value)),
            None => drop(self.given.borrow_mut().remove(&object)),
        }
        self.forget(Stop::Object(object));
    }

    /// Begins another plan, which may cost as much as the first one.
    pub fn refill(&self) {
        self.settings.budget.refill();
    }

    /// An output of the root module, with the values that are set. `None`: it has no such output.
    pub fn output_now(&self, name: &Arc<str>) -> Option<Answer> {
        self.tree.root().outputs.get(name)?;
        let item = self.demand(Item::Output(0, name.clone()));
        let computed = self.values.borrow().get(&item).cloned()?;
        let problems = self.problems.borrow().get(&item).cloned().unwrap_or_default();
        Some(Answer { value: (!computed.failed).then_some(computed.value), uses: computed.uses.to_set(), problems })
    }

    /// Sets the value of a linked variable. `None`: an error took it away. What was computed from another value is forgotten.
    pub fn assign(&self, name: &Arc<str>, value: Option<Value>) {
        if self.linked.borrow().get(name) == Some(&value) {
            return;
        }
        self.linked.borrow_mut().insert(name.clone(), value);
        let item = self.id(Item::Assigned(0, name.clone()));
        self.remove(item);
        self.forget(Stop::Item(item));
    }

    /// From now on, functions with effects have results: what they give goes into objects, as in upstream's apply. What is
    /// known already stays.
    pub fn act(&self) {
        if self.settings.effects.is_none() || self.acts.replace(true) {
            return;
        }
        let values = unknown_items(&self.values.borrow(), |computed| &computed.value);
        let objects = unknown_items(&self.objects.borrow(), |object| &object.config);
        for item in values.into_iter().chain(objects) {
            self.remove(item);
            self.forget(Stop::Item(item));
        }
    }

    /// What functions with effects give now.
    pub(crate) fn effects(&self) -> Option<&dyn Effects> {
        let effects = self.settings.effects.as_deref().filter(|_| self.acts.get())?;
        Some(effects)
    }

    /// What an object should be, with the values that are set. `None` if the configuration has no such object.
    pub fn configured(&self, address: &InstanceAddress) -> Option<Arc<Object>> {
        let module = self.reach(&address.resource.module)?;
        let name = &address.resource.resource;
        self.module(module).module.resources.get(name)?;
        let resource = self.demand(Item::Resource(module, name.clone()));
        if !self.instances.borrow().get(&resource)?.has(address.key.as_ref()) {
            return None;
        }
        let item = self.demand(Item::Object(module, name.clone(), address.key.clone()));
        self.objects.borrow().get(&item).cloned()
    }

    /// The module instance of a path, with the keys of the calls on the way.
    fn reach(&self, path: &ModulePath) -> Option<ModuleId> {
        path.0.iter().try_fold(0, |module, step| {
            self.module(module).module.calls.get(&step.name)?;
            self.demand(Item::Call(module, step.name.clone()));
            self.children.borrow().get(&(module, step.name.clone(), step.key.clone())).copied()
        })
    }

    /// The problems of an object itself, and not of what it uses.
    pub fn problems_of(&self, address: &InstanceAddress) -> Diagnostics {
        let item = self.object_at(address);
        item.and_then(|(_, item)| self.problems.borrow().get(&item).cloned()).unwrap_or_default()
    }

    /// The problems of the postconditions of an object, with the values that are set.
    pub fn postconditions_of(&self, address: &InstanceAddress) -> Diagnostics {
        let Some((module, _)) = self.object_at(address) else { return Diagnostics::default() };
        let item = self.demand(Item::After(module, address.resource.resource.clone(), address.key.clone()));
        self.problems.borrow().get(&item).cloned().unwrap_or_default()
    }

    /// The keys of a resource block with the values that are set. `None` if the module has no such block.
    pub fn keys_of(&self, block: &ResourceAddress) -> Option<BlockKeys> {
        let module = self.reach(&block.module)?;
        self.module(module).module.resources.get(&block.resource)?;
        let item = self.demand(Item::Resource(module, block.resource.clone()));
        self.instances.borrow().get(&item).map(|instances| instances.block_keys())
    }

    /// The keys of a module call with the values that are set. `None` if the module has no such call.
    pub fn keys_of_call(&self, module: &ModulePath, call: &Arc<str>) -> Option<BlockKeys> {
        let module = self.reach(module)?;
        self.module(module).module.calls.get(call)?;
        let item = self.demand(Item::Call(module, call.clone()));
        self.instances.borrow().get(&item).map(|instances| instances.block_keys())
    }

    /// As [`Evaluation::presence`], with the values that are set.
    pub fn presence_now(&self, address: &InstanceAddress) -> Presence {
        if let Some(module) = self.reach(&address.resource.module) {
            let name = &address.resource.resource;
            if self.module(module).module.resources.contains_key(name) {
                self.demand(Item::Resource(module, name.clone()));
            }
        }
        self.presence(address)
    }

    /// Evaluates an expression in the root module, with the values that are set.
    pub fn ask(&self, expr: &hcl::Expr) -> Answer {
        loop {
            self.computing.replace(Some(Computing::default()));
            let result = Scope::new(self, 0, None).computed(expr);
            let problems = self.computing.take().unwrap_or_default().problems;
            match result {
                Ok(Computed { value, uses, failed }) => {
                    return Answer { value: (!failed).then_some(value), uses: uses.to_set(), problems };
                }
                Err(Stop::Item(item)) => self.complete_item(item),
                Err(Stop::Object(object)) => {
                    let object = self.address_of(object);
                    let uses = object.map(|object| Dependency::Resource(object.resource, object.key));
                    let uses = uses.into_iter().collect();
                    return Answer { value: None, uses, problems };
                }
            }
        }
    }

    /// The type of the values of an object. `None` if its schema is not known.
    pub fn type_of(&self, address: &InstanceAddress) -> Option<Type> {
        let module = *self.paths.borrow().get(&address.resource.module)?;
        let instance = self.module(module);
        let name = &address.resource.resource;
        instance.module.resources.get(name)?;
        Some(self.shape(instance.node, name)?.ty)
    }

    /// The place of the block of a provider configuration, if it has one.
    pub fn provider_range(&self, address: &ProviderAddress) -> Option<Range> {
        let module = self.paths.borrow().get(&address.module).copied()?;
        self.module(module).module.providers.get(&address.local).map(|block| block.range)
    }

    /// The provider configurations that modules write, also those that no object uses any more.
    pub fn written_providers(&self) -> BTreeSet<ProviderAddress> {
        let mut written = BTreeSet::new();
        for id in self.reachable() {
            let instance = self.module(id);
            for local in instance.module.providers.keys() {
                let source = instance.module.provider_source(&local.name);
                self.demand(Item::Provider(id, source.clone(), local.clone()));
                let known = self.providers.borrow();
                let own = known.keys().filter(|address| {
                    (&address.module, &address.source, &address.local) == (&instance.path, &source, local)
                });
                written.extend(own.cloned());
            }
        }
        written
    }

    /// The blocks and calls of all module instances that are known.
    pub fn blocks(&self) -> Vec<KnownBlock> {
        self.run();
        let mut all = Vec::new();
        self.reachable().into_iter().for_each(|id| self.blocks_of(id, &mut all));
        all
    }

    /// The module instances that there are with the values that are set, each after the one that calls it.
    fn reachable(&self) -> Vec<ModuleId> {
        let mut found: Vec<ModuleId> = vec![0];
        let mut at = 0;
        while let Some(id) = found.get(at).copied() {
            let module = self.module(id).module.clone();
            module.calls.keys().for_each(|name| found.extend(self.called(id, name)));
            at += 1;
        }
        found
    }

    /// The module instances of a call.
    fn called(&self, caller: ModuleId, name: &Arc<str>) -> Vec<ModuleId> {
        let item = self.demand(Item::Call(caller, name.clone()));
        let (instances, children) = (self.instances.borrow(), self.children.borrow());
        let known = instances.get(&item).map(|instances| instances.known()).unwrap_or_default();
        known.iter().filter_map(|each| children.get(&(caller, name.clone(), each.key.clone())).copied()).collect()
    }

    fn blocks_of(&self, id: ModuleId, all: &mut Vec<KnownBlock>) {
        let instance = self.module(id);
        let objects = instance.module.resources.iter().filter(|(name, _)| name.mode != Mode::Ephemeral);
        for (name, resource) in objects {
            let known = self.block(id, Item::Resource(id, name.clone()), &resource.repetition, resource.range);
            all.extend(known.map(|known| KnownBlock { resource: Some(name.clone()), ..known }));
        }
        for (name, call) in &instance.module.calls {
            let known = self.block(id, Item::Call(id, name.clone()), &call.repetition, call.range);
            all.extend(known.map(|known| KnownBlock { call: Some(name.clone()), ..known }));
        }
    }

    /// A block of a module, whose name the caller adds.
    fn block(&self, id: ModuleId, item: Item, repetition: &Repetition, range: Range) -> Option<KnownBlock> {
        let item = self.demand(item);
        let instances = self.instances.borrow().get(&item).cloned()?;
        Some(KnownBlock {
            module: self.module(id).path.clone(),
            resource: None,
            call: None,
            kind: KeyKind::of(repetition),
            keys: instances.block_keys(),
            uses: instances.uses.to_set(),
            range: repetition.expr().map_or(range, |expr| expr.range),
        })
    }

    /// What the outputs, checks and ephemeral resources of all modules come from, and the imports, at present.
    pub fn general_uses(&self) -> BTreeSet<Dependency> {
        self.complete();
        let imports = self.imports().unwrap_or_default();
        let mut all: BTreeSet<Dependency> = imports.into_iter().flat_map(|import| import.uses).collect();
        let reachable = self.reachable();
        let values = self.values.borrow();
        for id in reachable {
            let module = self.module(id).module.clone();
            let outputs = module.outputs.keys().map(|name| Item::Output(id, name.clone()));
            let checks = module.checks.keys().map(|name| Item::Check(id, name.clone()));
            let computed = outputs.chain(checks).filter_map(|item| values.get(&self.id(item)));
            computed.for_each(|computed| all.extend(computed.uses.iter().cloned()));
        }
        let items = self.items.borrow();
        let opened = values.iter().filter(|(item, _)| matches!(items.get(**item), Item::Opened(..)));
        opened.for_each(|(_, computed)| all.extend(computed.uses.iter().cloned()));
        all
    }

    /// Computes the outputs, variables, locals and checks of every module again that were forgotten.
    pub fn complete(&self) {
        for id in self.reachable() {
            let module = self.module(id).module.clone();
            self.want(module.outputs.keys().map(|name| Item::Output(id, name.clone())));
            self.want(module.variables.keys().map(|name| Item::Variable(id, name.clone())));
            self.want(module.locals.keys().map(|name| Item::Local(id, name.clone())));
            self.want(module.checks.keys().map(|name| Item::Check(id, name.clone())));
            self.open_all(id);
        }
        self.run();
    }

    /// The problems of everything but objects, each once, in the order of the files.
    pub fn general_problems(&self) -> Diagnostics {
        let mut all = self.diagnostics.borrow().clone();
        let problems = self.problems.borrow();
        let items = self.items.borrow();
        let general = problems.iter().filter(|(item, _)| match items.get(**item) {
            Item::Object(_, name, _) => name.mode == Mode::Ephemeral,
            Item::After(..) => false,
            _ => true,
        });
        general.for_each(|(_, own)| all.extend(own.clone()));
        drop((problems, items));
        self.imports().unwrap_or_default().into_iter().for_each(|import| all.extend(import.problems));
        all.sort();
        all
    }

    /// Computes an item, unless it is computed already.
    pub(crate) fn demand(&self, item: Item) -> ItemId {
        let id = self.id(item);
        self.complete_item(id);
        id
    }

    fn complete_item(&self, id: ItemId) {
        if !self.is_computed(id) {
            self.ready.borrow_mut().push(id);
            self.run();
        }
    }

    pub(crate) fn computing(&self, item: &Item) -> Computing {
        // What is in a module is what its call gives.
        let caller = self.module(item.module()).caller.clone();
        let reads = caller.map(|(caller, call)| Stop::Item(self.id(Item::Call(caller, call)))).into_iter().collect();
        Computing { reads, problems: Diagnostics::default() }
    }

    /// Remembers that the item that is being computed has read another one.
    pub(crate) fn has_read(&self, item: Item) -> ItemId {
        let id = self.id(item);
        self.reads(Stop::Item(id));
        id
    }

    pub(crate) fn reads(&self, what: Stop) {
        if let Some(computing) = &mut *self.computing.borrow_mut() {
            computing.reads.push(what);
        }
    }

    pub(crate) fn keep(&self, item: ItemId, computing: Computing) {
        let Computing { reads, problems } = computing;
        if problems != Diagnostics::default() {
            self.problems.borrow_mut().insert(item, problems);
        }
        let mut readers = self.readers.borrow_mut();
        for read in reads {
            readers.entry(read).or_default().insert(item);
        }
    }

    /// Forgets what was computed from something.
    fn forget(&self, changed: Stop) {
        let mut open = vec![changed];
        while let Some(stop) = open.pop() {
            let readers = self.readers.borrow_mut().remove(&stop).unwrap_or_default();
            open.extend(readers.into_iter().filter(|item| self.remove(*item)).map(Stop::Item));
        }
    }

    /// Whether it was computed.
    fn remove(&self, id: ItemId) -> bool {
        self.problems.borrow_mut().remove(&id);
        match self.items.borrow().get(id) {
            Item::Call(..) | Item::Resource(..) => {
                let removed = self.instances.borrow_mut().remove(&id);
                let count = removed.as_ref().map_or(0, |instances| instances.known().len());
                *self.instance_count.borrow_mut() -= count;
                removed.is_some()
            }
            Item::Object(..) => self.objects.borrow_mut().remove(&id).is_some(),
            _ => self.values.borrow_mut().remove(&id).is_some(),
        }
    }
}

/// The items whose value is not wholly known.
fn unknown_items<T>(known: &HashMap<ItemId, T>, value: impl Fn(&T) -> &Value) -> Vec<ItemId> {
    known.iter().filter(|(_, found)| !value(found).is_wholly_known()).map(|(item, _)| *item).collect()
}
