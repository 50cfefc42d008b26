//! From a tree of modules to the desired configuration of each object.
//!
//! A configuration is many small values ([`Item`]): a local, a variable, an output, the instances of a call or block, the
//! configuration of an object. Each is computed when it is asked for, and kept. Before an expression is evaluated, the
//! references in it are asked for. What is missing is computed first, and the item waits for it: nothing calls itself, so a
//! chain of references may be of any length. Items that wait for each other are a cycle.
//!
//! The value of an object comes from outside. What needs it waits in the same way, until the value is given.

mod bodies;
mod compiled;
mod conditions;
mod demand;
mod ephemeral;
mod expansion;
mod imports;
mod inputs;
mod item;
mod objects;
mod provisioners;
mod scope;
mod uses;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use cty::Value;
use hcl::Range;
use language::{Budget, Effects, Failure, Files};

use compiled::{Compiled, Place};
pub use demand::{Answer, BlockKeys, KeyKind, KnownBlock};
pub use ephemeral::EphemeralRequest;
use expansion::Instances;
pub use imports::{EvaluatedImport, ImportRequest};
pub use inputs::{Input, values_of_file};
use item::{Item, ItemId, Items, ModuleId};
use objects::Shape;
pub use objects::{EvaluatedLifecycle, Object, ProviderConfig, ReadsAfter, Trigger};
pub use provisioners::ProvisionerConfig;
pub use uses::{Dependency, Uses};

use crate::address::{InstanceAddress, Key, Mode, ModulePath, ResourceAddress, ResourceName};
use crate::diagnostics::Diagnostics;
use crate::module::Module;
use crate::providers::{ProviderAddress, ProviderSource};
use crate::schema::Block;
use crate::tree::{NodeId, Tree};

/// What providers are asked for while a configuration is evaluated. Answers never change.
pub trait World {
    /// What a provider understands of a block of this type, or why that is not known.
    fn resource_schema(&self, provider: &ProviderSource, mode: Mode, kind: &str) -> Result<Arc<Block>, String>;

    /// What a provider understands of its `provider` block.
    fn provider_schema(&self, provider: &ProviderSource) -> Result<Arc<Block>, String>;

    /// What a provider understands of `provider_meta` blocks. `None` if it has no use for them.
    fn provider_meta_schema(&self, _provider: &ProviderSource) -> Result<Option<Arc<Block>>, String> {
        Ok(None)
    }

    /// Opens an ephemeral resource, which stays open, and gives its value. The same request has the same value. `None`: nothing
    /// is opened now, as while a configuration is only validated.
    ///
    /// # Errors
    /// If the provider refuses it, or does not work.
    fn open(&self, _request: &EphemeralRequest<'_>) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    /// Calls a function of a provider. `None` if it has none of this name.
    fn call(&self, provider: &ProviderSource, function: &str, arguments: &[Value]) -> Option<Result<Value, Failure>>;
}

/// What an evaluation is given besides the tree.
pub struct Settings {
    /// The values of the root module's variables.
    pub variables: BTreeMap<String, Input>,
    /// `terraform.workspace`.
    pub workspace: String,
    /// `path.cwd`.
    pub cwd: String,
    /// The files that functions read. Relative paths begin at the root module.
    pub files: Arc<dyn Files + Send + Sync>,
    /// What `plantimestamp` gives.
    pub plan_time: Option<String>,
    /// What functions with effects give from [`Evaluation::act`] on. Until then, or without, their results are unknown.
    pub effects: Option<Arc<dyn Effects + Send + Sync>>,
    /// What the whole evaluation may cost.
    pub budget: Budget,
    /// The greatest number of objects and module instances.
    pub max_instances: usize,
    /// An object without a value is wholly unknown, instead of something to wait for. Values are set with
    /// [`Evaluation::set`] then, and results are asked for.
    pub on_demand: bool,
}

/// Whether a configuration has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has.
    Desired,
    /// It has not, whatever other objects turn out to be.
    Absent,
    /// That is not known: the keys of a block or call wait for other objects, or have an error.
    Undecided,
}

impl Settings {
    /// No variable is set, the workspace is the default one, and the limits are wide.
    pub fn new(files: Arc<dyn Files + Send + Sync>) -> Self {
        Self {
            variables: BTreeMap::new(),
            workspace: "default".to_owned(),
            cwd: "/".to_owned(),
            files,
            plan_time: None,
            effects: None,
            budget: Budget::new(200_000_000, 4 << 30),
            max_instances: 1_000_000,
            on_demand: false,
        }
    }
}

/// The evaluation of one configuration for one plan.
///
/// [`Evaluation::advance`] gives the objects whose configuration is complete. The caller plans them, and reports their
/// values with [`Evaluation::give`]; then it advances again, until nothing is left.
pub struct Evaluation {
    tree: Arc<Tree>,
    world: Arc<dyn World + Send + Sync>,
    settings: Settings,
    modules: RefCell<Vec<Arc<ModuleInstance>>>,
    paths: RefCell<HashMap<ModulePath, ModuleId>>,
    children: RefCell<HashMap<CallInstance, ModuleId>>,
    items: RefCell<Items>,
    values: RefCell<HashMap<ItemId, Computed>>,
    instances: RefCell<HashMap<ItemId, Arc<Instances>>>,
    objects: RefCell<HashMap<ItemId, Arc<Object>>>,
    providers: RefCell<BTreeMap<ProviderAddress, Arc<ProviderConfig>>>,
    compiled: RefCell<HashMap<Place, Option<Arc<Compiled>>>>,
    shapes: RefCell<HashMap<(NodeId, ResourceName), Option<Shape>>>,
    /// The schemas of types, or why they are not known.
    types: RefCell<HashMap<ResourceType, Result<Shape, String>>>,
    /// For each module of the tree, the first one that was read from the same directory: what is kept for the blocks of one holds
    /// for those of the other.
    read: Vec<NodeId>,
    /// The values of objects.
    given: RefCell<HashMap<ItemId, Value>>,
    /// The values of linked variables. `None`: an error took it away.
    linked: RefCell<HashMap<Arc<str>, Option<Value>>>,
    /// The problems that belong to no item.
    diagnostics: RefCell<Diagnostics>,
    /// The problems that were found when an item was computed.
    problems: RefCell<HashMap<ItemId, Diagnostics>>,
    /// What the item that is being computed has read and reported so far.
    computing: RefCell<Option<demand::Computing>>,
    /// Which items have read an item or an object.
    readers: RefCell<HashMap<Stop, BTreeSet<ItemId>>>,
    reported: RefCell<HashSet<(Range, String)>>,
    /// What is to be computed next.
    ready: RefCell<Vec<ItemId>>,
    /// What waited for something that is computed now. It comes after what is ready, so that an item that needs many others
    /// is begun again when all of them are there, and not after each of them.
    resumed: RefCell<Vec<ItemId>>,
    /// What each item that was begun waits for, and what waits for that.
    needs: RefCell<HashMap<ItemId, Stop>>,
    parked: RefCell<HashMap<Stop, Vec<ItemId>>>,
    /// What was parked since cycles were looked for.
    unchecked: RefCell<Vec<ItemId>>,
    /// What was found since the last [`Evaluation::advance`].
    found: RefCell<Advance>,
    instance_count: RefCell<usize>,
    /// Whether functions have effects.
    acts: Cell<bool>,
}

/// A type of a provider.
type ResourceType = (ProviderSource, Mode, Arc<str>);

/// A module call in a module instance, with a key.
type CallInstance = (ModuleId, Arc<str>, Option<Key>);

/// A module instance: one of a call's, or the root module.
pub(crate) struct ModuleInstance {
    node: NodeId,
    module: Arc<Module>,
    path: ModulePath,
    /// The module with the call, and the name of the call.
    caller: Option<(ModuleId, Arc<str>)>,
    each: Each,
    /// What the keys of the calls around come from.
    uses: Uses,
    /// What `depends_on` of the calls around names.
    depends_on: Uses,
}

/// What `each` and `count` are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Each {
    key: Option<Key>,
    value: Option<Value>,
}

/// A value that was computed.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    value: Value,
    uses: Uses,
    /// Whether an error, here or in what it comes from, took the value away. The error is reported where it is.
    failed: bool,
}

impl Computed {
    fn failed(uses: Uses) -> Self {
        Self { value: Value::DYNAMIC, uses, failed: true }
    }
}

/// Why something is not computed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stop {
    /// This comes first.
    Item(ItemId),
    /// The object has no value yet.
    Object(ItemId),
}

/// What [`Evaluation::advance`] found.
#[derive(Debug, Default)]
pub struct Advance {
    /// The objects whose configuration is complete now.
    pub objects: Vec<Arc<Object>>,
    /// The blocks whose instances are not known.
    pub waiting: Vec<Waiting>,
}

/// A block or call whose instances are not known: before other objects are changed, or because of an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Whether an error is the reason, which is among the diagnostics.
    pub failed: bool,
    /// The address of the block or call.
    pub address: String,
    /// The module of it.
    pub module: ModulePath,
    /// The resource, if it is a resource block.
    pub resource: Option<ResourceAddress>,
    /// The objects that the number or the keys come from.
    pub uses: Vec<Dependency>,
    /// The place of the expression.
    pub range: Range,
}

impl Evaluation {
    /// Begins an evaluation. Problems with the inputs are among the diagnostics.
    pub fn new(tree: Arc<Tree>, world: Arc<dyn World + Send + Sync>, settings: Settings) -> Self {
        let module = tree.nodes[0].module.clone();
        let mut first: HashMap<*const Module, NodeId> = HashMap::new();
        let modules = tree.nodes.iter().map(|node| Arc::as_ptr(&node.module)).enumerate();
        let read = modules.map(|(node, module)| *first.entry(module).or_insert(node)).collect();
        let evaluation = Self {
            tree,
            world,
            settings,
            modules: RefCell::default(),
            paths: RefCell::default(),
            children: RefCell::default(),
            items: RefCell::default(),
            values: RefCell::default(),
            instances: RefCell::default(),
            objects: RefCell::default(),
            providers: RefCell::default(),
            compiled: RefCell::default(),
            shapes: RefCell::default(),
            types: RefCell::default(),
            read,
            given: RefCell::default(),
            linked: RefCell::default(),
            diagnostics: RefCell::default(),
            problems: RefCell::default(),
            computing: RefCell::default(),
            readers: RefCell::default(),
            reported: RefCell::default(),
            ready: RefCell::default(),
            resumed: RefCell::default(),
            needs: RefCell::default(),
            parked: RefCell::default(),
            unchecked: RefCell::default(),
            found: RefCell::default(),
            instance_count: RefCell::default(),
            acts: Cell::default(),
        };
        evaluation.check_inputs();
        evaluation.add_module(ModuleInstance {
            node: 0,
            module,
            path: ModulePath::default(),
            caller: None,
            each: Each::default(),
            uses: Uses::default(),
            depends_on: Uses::default(),
        });
        evaluation
    }

    /// Computes everything that can be computed with the values that were given.
    pub fn advance(&self) -> Advance {
        self.run();
        let mut advance = self.found.take();
        advance.objects.sort_by(|a, b| a.address.cmp(&b.address));
        advance.waiting.sort_by(|a, b| a.address.cmp(&b.address));
        advance
    }

    /// Says what the value of an object is: the planned one, the read one, or an unknown one if nothing can be said yet.
    /// What is sensitive by the schema is marked here; marks of the configuration have to be in the value.
    pub fn give(&self, address: &InstanceAddress, value: &Value) {
        let Some((module, object)) = self.object_at(address) else { return };
        let schema = self.objects.borrow().get(&object).and_then(|object| object.schema.clone());
        let value = schema.map_or_else(|| value.clone(), |schema| schema.mark(value));
        self.given.borrow_mut().insert(object, value);
        self.want([Item::After(module, address.resource.resource.clone(), address.key.clone())]);
        self.wake(Stop::Object(object));
    }

    /// The objects that have to be given a value before anything else can be computed.
    pub fn awaited(&self) -> Vec<InstanceAddress> {
        let parked = self.parked.borrow();
        let objects = parked.keys().filter_map(|stop| match stop {
            Stop::Object(object) => self.address_of(*object),
            Stop::Item(_) => None,
        });
        let mut objects: Vec<InstanceAddress> = objects.collect();
        objects.sort();
        objects
    }

    /// The problems so far, each once, in the order of the files.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut all = self.diagnostics.borrow().clone();
        self.problems.borrow().values().for_each(|own| all.extend(own.clone()));
        all.sort();
        all
    }

    /// The value of an output of the root module, once it is computed. `None` also if an error took it away.
    pub fn output(&self, name: &str) -> Option<Value> {
        let item = self.id(Item::Output(0, name.into()));
        self.values.borrow().get(&item).filter(|computed| !computed.failed).map(|computed| computed.value.clone())
    }

    /// Whether the configuration has the object of an address. Only an [`Presence::Absent`] one may be destroyed for not being
    /// in the configuration any more.
    pub fn presence(&self, address: &InstanceAddress) -> Presence {
        let instances = self.instances.borrow();
        let mut module = 0;
        for step in address.resource.module.0.iter() {
            if !self.module(module).module.calls.contains_key(&step.name) {
                return Presence::Absent;
            }
            let call = self.id(Item::Call(module, step.name.clone()));
            match instances.get(&call).map(|found| found.presence(step.key.as_ref())) {
                Some(Presence::Desired) => {}
                Some(other) => return other,
                None => return Presence::Undecided,
            }
            match self.children.borrow().get(&(module, step.name.clone(), step.key.clone())) {
                Some(child) => module = *child,
                None => return Presence::Undecided,
            }
        }
        let name = &address.resource.resource;
        if !self.module(module).module.resources.contains_key(name) {
            return Presence::Absent;
        }
        let found = instances.get(&self.id(Item::Resource(module, name.clone())));
        found.map_or(Presence::Undecided, |found| found.presence(address.key.as_ref()))
    }

    /// The module of an object, and the item that is its configuration.
    fn object_at(&self, address: &InstanceAddress) -> Option<(ModuleId, ItemId)> {
        let module = *self.paths.borrow().get(&address.resource.module)?;
        let item = Item::Object(module, address.resource.resource.clone(), address.key.clone());
        Some((module, self.id(item)))
    }

    /// A provider configuration that an object names. `Err` has the object whose value it needs first.
    pub fn provider(&self, address: &ProviderAddress) -> Result<Option<Arc<ProviderConfig>>, InstanceAddress> {
        self.completed(|| self.provider_of(address))
    }

    /// The same, for an item that waits for it.
    fn provider_of(&self, address: &ProviderAddress) -> Result<Option<Arc<ProviderConfig>>, Stop> {
        let module = self.paths.borrow().get(&address.module).copied();
        let Some(module) = module else { return Ok(None) };
        self.value_of(Item::Provider(module, address.source.clone(), address.local.clone()))?;
        Ok(self.providers.borrow().get(address).cloned())
    }

    fn module(&self, id: ModuleId) -> Arc<ModuleInstance> {
        self.modules.borrow()[id].clone()
    }

    /// Adds a module instance, of which everything has to be computed, or what has become of one.
    fn add_module(&self, instance: ModuleInstance) -> ModuleId {
        let module = instance.module.clone();
        let mut modules = self.modules.borrow_mut();
        let id = *self.paths.borrow_mut().entry(instance.path.clone()).or_insert(modules.len());
        if id < modules.len() {
            modules[id] = Arc::new(instance);
        } else {
            modules.push(Arc::new(instance));
        }
        drop(modules);
        self.want(module.outputs.keys().map(|name| Item::Output(id, name.clone())));
        self.want(module.variables.keys().map(|name| Item::Variable(id, name.clone())));
        self.want(module.locals.keys().map(|name| Item::Local(id, name.clone())));
        self.want(module.resources.keys().map(|name| Item::Resource(id, name.clone())));
        self.want(module.checks.keys().map(|name| Item::Check(id, name.clone())));
        self.want(module.calls.keys().map(|name| Item::Call(id, name.clone())));
        id
    }

    /// Counts an instance, of which there may be only so many.
    fn count_instances(&self, more: usize, range: Range) -> bool {
        let mut count = self.instance_count.borrow_mut();
        *count = count.saturating_add(more);
        if *count <= self.settings.max_instances {
            return true;
        }
        let detail = format!("There are more than {} objects and module instances.", self.settings.max_instances);
        self.report(hcl::Diagnostic::new("Too many instances", detail, range));
        false
    }

    /// Keeps a problem of what is being computed.
    fn report(&self, diagnostic: hcl::Diagnostic) {
        match &mut *self.computing.borrow_mut() {
            Some(computing) => computing.problems.errors.push(diagnostic),
            None => self.report_once(diagnostic),
        }
    }

    /// Keeps a problem of a block, whatever is computed from it.
    fn report_once(&self, diagnostic: hcl::Diagnostic) {
        if self.is_new(&diagnostic) {
            self.diagnostics.borrow_mut().errors.push(diagnostic);
        }
    }

    fn warn(&self, diagnostic: hcl::Diagnostic) {
        match &mut *self.computing.borrow_mut() {
            Some(computing) => computing.problems.warnings.push(diagnostic),
            None if self.is_new(&diagnostic) => self.diagnostics.borrow_mut().warnings.push(diagnostic),
            None => {}
        }
    }

    fn is_new(&self, diagnostic: &hcl::Diagnostic) -> bool {
        let key = (diagnostic.range, format!("{}\0{}", diagnostic.summary, diagnostic.detail));
        self.reported.borrow_mut().insert(key)
    }

    /// Has items computed next, the last of them first.
    fn want(&self, wanted: impl IntoIterator<Item = Item>) {
        let (mut items, mut ready) = (self.items.borrow_mut(), self.ready.borrow_mut());
        ready.extend(wanted.into_iter().map(|item| items.id(item)));
    }

    /// Computes what is ready, and what that needs, until everything is computed or waits for objects.
    fn run(&self) {
        loop {
            while let Some(item) = self.next() {
                match self.compute(item) {
                    Ok(()) => self.finished(item),
                    Err(stop) => self.park(item, stop),
                }
            }
            let Some(cycle) = self.find_cycle() else { return };
            self.cycle(&cycle);
        }
    }

    fn next(&self) -> Option<ItemId> {
        let (mut ready, mut resumed) = (self.ready.borrow_mut(), self.resumed.borrow_mut());
        std::iter::from_fn(|| ready.pop().or_else(|| resumed.pop())).find(|item| !self.is_computed(*item))
    }

    fn finished(&self, item: ItemId) {
        self.needs.borrow_mut().remove(&item);
        self.continue_with(item);
        self.wake(Stop::Item(item));
    }

    fn wake(&self, reason: Stop) {
        let items = self.parked.borrow_mut().remove(&reason);
        self.resumed.borrow_mut().extend(items.unwrap_or_default());
    }

    /// Keeps an item until what it needs is there, and has that computed.
    fn park(&self, item: ItemId, stop: Stop) {
        let mut needs = self.needs.borrow_mut();
        if let Stop::Item(needed) = stop {
            self.unchecked.borrow_mut().push(item);
            if !needs.contains_key(&needed) {
                self.ready.borrow_mut().push(needed);
            }
        }
        needs.insert(item, stop);
        self.parked.borrow_mut().entry(stop).or_default().push(item);
    }

    /// Items that wait for each other. Each waits for one thing at a time, so following that from what was parked since the
    /// last search finds every cycle.
    fn find_cycle(&self) -> Option<Vec<ItemId>> {
        let needs = self.needs.borrow();
        let mut seen: HashSet<ItemId> = HashSet::new();
        while let Some(start) = self.unchecked.borrow_mut().pop() {
            let mut way: Vec<ItemId> = Vec::new();
            let mut at = start;
            while let Some(Stop::Item(next)) = needs.get(&at) {
                if !seen.insert(at) {
                    if let Some(first) = way.iter().position(|item| *item == at) {
                        return Some(way.split_off(first));
                    }
                    break;
                }
                way.push(at);
                at = *next;
            }
        }
        None
    }

    /// The object that an item waits for, directly or not.
    fn awaited_by(&self, item: ItemId) -> Option<InstanceAddress> {
        let needs = self.needs.borrow();
        let mut stop = needs.get(&item)?;
        loop {
            match stop {
                Stop::Object(object) => return self.address_of(*object),
                Stop::Item(next) => stop = needs.get(next)?,
            }
        }
    }

    /// Reports a cycle, and takes the values of all that is in it away.
    fn cycle(&self, cycle: &[ItemId]) {
        let items: Vec<Item> = cycle.iter().map(|id| self.item(*id)).collect();
        let first = (0..items.len()).min_by_key(|at| self.place(&items[*at])).unwrap_or_default();
        let mut names: Vec<String> =
            (0..=items.len()).map(|at| self.name(&items[(first + at) % items.len()])).collect();
        names.dedup();
        let range = self.place(&items[first]);
        let detail = match names.as_slice() {
            [own] => format!("{own} refers to itself."),
            _ => format!("These refer to each other: {}.", names.join(" → ")),
        };
        self.report(hcl::Diagnostic::new("Cycle", detail, range).hint("remove one of the references"));
        cycle.iter().for_each(|item| self.fail(*item));
        cycle.iter().for_each(|item| self.finished(*item));
    }

    /// The result of a computation, after what it needs.
    fn completed<T>(&self, compute: impl Fn() -> Result<T, Stop>) -> Result<T, InstanceAddress> {
        loop {
            match compute() {
                Ok(result) => return Ok(result),
                Err(Stop::Object(object)) => {
                    if let Some(object) = self.address_of(object) {
                        return Err(object);
                    }
                }
                Err(Stop::Item(item)) => {
                    self.ready.borrow_mut().push(item);
                    self.run();
                    if let Some(object) = self.awaited_by(item) {
                        return Err(object);
                    }
                }
            }
        }
    }

    fn is_computed(&self, id: ItemId) -> bool {
        match self.items.borrow().get(id) {
            Item::Call(..) | Item::Resource(..) => self.instances.borrow().contains_key(&id),
            Item::Object(..) => self.objects.borrow().contains_key(&id),
            _ => self.values.borrow().contains_key(&id),
        }
    }

    /// Computes an item, if everything is there that it needs, and keeps what it has read and reported.
    fn compute(&self, id: ItemId) -> Result<(), Stop> {
        let item = self.item(id);
        self.computing.replace(Some(self.computing(&item)));
        let result = self.result_of(id, &item);
        let computing = self.computing.take();
        if let (Ok(()), Some(computing)) = (&result, computing) {
            self.keep(id, computing);
        }
        result
    }

    fn result_of(&self, id: ItemId, item: &Item) -> Result<(), Stop> {
        let computed = match item {
            Item::Assigned(module, name) => self.assigned(*module, name)?,
            Item::Variable(module, name) => self.variable(*module, name)?,
            Item::Local(module, name) => self.local(*module, name)?,
            Item::Output(module, name) => self.output_value(*module, name)?,
            Item::CallValue(module, name) => self.call_value(*module, name)?,
            Item::ResourceValue(module, name) => self.resource_value(*module, name)?,
            Item::Provider(module, source, local) => self.provider_configs(*module, source, local)?,
            Item::After(module, name, key) => self.postconditions(*module, name, key.as_ref())?,
            Item::Check(module, name) => self.assertions(*module, name)?,
            Item::Opened(module, name, key) => self.opened(*module, name, key.as_ref())?,
            Item::Call(module, name) => {
                let instances = self.call_instances(*module, name)?;
                self.instances.borrow_mut().insert(id, Arc::new(instances));
                return Ok(());
            }
            Item::Resource(module, name) => {
                let instances = self.resource_instances(*module, name)?;
                self.instances.borrow_mut().insert(id, Arc::new(instances));
                return Ok(());
            }
            Item::Object(module, name, key) => {
                let object = self.object(*module, name, key.as_ref())?;
                self.objects.borrow_mut().insert(id, Arc::new(object));
                return Ok(());
            }
        };
        self.values.borrow_mut().insert(id, computed);
        Ok(())
    }

    /// Makes an item one that an error took away.
    fn fail(&self, id: ItemId) {
        match self.item(id) {
            Item::Call(..) | Item::Resource(..) => {
                self.instances.borrow_mut().insert(id, Arc::new(Instances::failed()));
            }
            Item::Object(module, name, key) => {
                let object = self.failed_object(module, &name, key.as_ref());
                self.objects.borrow_mut().insert(id, Arc::new(object));
            }
            _ => {
                self.values.borrow_mut().insert(id, Computed::failed(Uses::default()));
            }
        }
    }

    fn value_of(&self, item: Item) -> Result<Computed, Stop> {
        let id = self.has_read(item);
        self.values.borrow().get(&id).cloned().ok_or(Stop::Item(id))
    }

    fn object_of(&self, item: Item) -> Result<Arc<Object>, Stop> {
        let id = self.has_read(item);
        self.objects.borrow().get(&id).cloned().ok_or(Stop::Item(id))
    }

    fn instances_of(&self, item: Item) -> Result<Arc<Instances>, Stop> {
        let id = self.has_read(item);
        self.instances.borrow().get(&id).cloned().ok_or(Stop::Item(id))
    }
}

#[cfg(test)]
mod tests;
