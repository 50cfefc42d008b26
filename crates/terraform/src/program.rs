//! The program: a configuration and the values that it was last evaluated with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use configuration::{
    Evaluation, InstanceAddress, Key, LocalProvider, ModulePath, Presence, ProviderAddress, ProviderSource,
    ResourceAddress, ResourceName, Settings, Tree,
};
use cty::Type;
use engine::load::expression::Foreign as _;
use engine::load::{Instance, Output, Program, ProgramResources, ProviderSpec, Scope};
use model::{Address, Diagnostics, ProviderUse, Record, Value};

use crate::desired::{self, Blocks};
use crate::schemas::{BUILT_IN, Schemas, World};
use crate::{address, problem, providers, value};

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The source of its objects, as records have it.
    pub source: Arc<str>,
    /// A number that changes with the configuration.
    pub generation: i64,
    /// What stands before the names of its files in messages.
    pub directory: String,
}

/// A Terraform configuration as a program of the engine.
#[derive(Debug)]
pub struct Terraform(Arc<Shared>);

/// What the expressions of a configuration have in common.
pub struct Shared {
    pub tree: Arc<Tree>,
    pub origin: Origin,
    /// The providers that are not built in.
    pub providers: BTreeMap<ProviderSource, Arc<ProviderSpec>>,
    state: Mutex<State>,
}

pub struct State {
    pub evaluation: Evaluation,
    /// The values of objects that are set, as the engine had them.
    seen: HashMap<Address, Value>,
}

/// Objects whose values an expression needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    Instance(InstanceAddress),
    /// All instances of a block with keys.
    Block(ResourceAddress),
}

impl Use {
    /// The object, or the family of the block.
    pub fn address(&self) -> Address {
        match self {
            Self::Instance(instance) => address::address(instance),
            Self::Block(block) => Address::family(address::name(block)),
        }
    }
}

impl Terraform {
    /// A configuration without errors. `providers` are those that it requires, and `settings` those of its evaluation.
    pub fn new(
        tree: Arc<Tree>,
        providers: BTreeMap<ProviderSource, Arc<ProviderSpec>>,
        schemas: Arc<dyn Schemas>,
        settings: Settings,
        origin: Origin,
    ) -> Self {
        let settings = Settings { on_demand: true, ..settings };
        let evaluation = Evaluation::new(tree.clone(), Arc::new(World(schemas)), settings);
        let state = Mutex::new(State { evaluation, seen: HashMap::new() });
        Self(Arc::new(Shared { tree, origin, providers, state }))
    }

    /// The configuration of a provider as a state names it, for objects that were not changed by the engine yet. `None`: no
    /// module requires the provider, or its configuration is not known with the values of the scope.
    pub fn provider_use(&self, named: &NamedProvider, scope: &dyn Scope) -> Option<Arc<ProviderUse>> {
        let shared = &self.0;
        let spec = shared.providers.get(&named.source)?;
        let local = shared.tree.module(&named.module).into_iter().flat_map(|node| &node.module.required_providers);
        let local = local.filter(|(_, required)| required.source == named.source).map(|(name, _)| name.clone());
        let name = local.min().unwrap_or_else(|| named.source.name.clone());
        let provider = ProviderAddress {
            module: named.module.clone(),
            source: named.source.clone(),
            local: LocalProvider { name, alias: named.alias.clone() },
            key: named.key.clone(),
        };
        let config = desired::provider_template(shared, &provider).evaluate(scope).ok()?;
        let name = providers::config_name(&provider);
        (!config.has_unknown()).then(|| Arc::new(ProviderUse::new(name.into(), spec.provider.clone(), config)))
    }

    /// The configuration of an object as the language has it, with the values that the engine has seen last. `None`: it has
    /// none, or an error.
    pub fn configured(&self, object: &Address) -> Option<cty::Value> {
        let found = self.0.lock().evaluation.configured(&address::instance(object)?)?;
        (!found.failed).then(|| found.config.clone())
    }
}

/// A provider configuration by the address of its provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedProvider {
    pub source: ProviderSource,
    /// The module with the configuration.
    pub module: ModulePath,
    pub alias: Option<Arc<str>>,
    /// The instance of a configuration with `for_each`.
    pub key: Option<Key>,
}

impl Program for Terraform {
    fn resources(&self) -> ProgramResources {
        desired::resources(&self.0)
    }

    fn is_undecided(&self, recorded: &Address) -> bool {
        let Some(instance) = address::instance(recorded) else { return false };
        self.0.lock().evaluation.presence_now(&instance) == Presence::Undecided
    }

    fn removed(&self, record: &Record) -> Option<Arc<Instance>> {
        desired::removed(&self.0, record).map(Arc::new)
    }

    fn problems(&self, scope: &dyn Scope) -> Diagnostics {
        let mut state = self.0.lock();
        state.observe_all(scope);
        problem::diagnostics(&state.evaluation.general_problems(), &self.0.tree.sources, &self.0.origin.directory)
    }

    fn outputs(&self, scope: &dyn Scope) -> Vec<Output> {
        let mut state = self.0.lock();
        state.observe_all(scope);
        let output = |name: &Arc<str>| {
            let found = state.evaluation.output(name);
            let ty = found.as_ref().map_or(Type::Dynamic, |value| value.ty().clone());
            Output { name: name.clone(), value: found.as_ref().map(value::to_model), ty: ty.to_json().into() }
        };
        self.0.tree.root().outputs.keys().map(output).collect()
    }
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with the values of a scope.
    pub fn observe(&self, uses: &[Use], scope: &dyn Scope) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        uses.iter().for_each(|one| state.observe(one, scope));
        state
    }
}

impl State {
    /// Whether it is not known yet, or cannot be, what is imported into the objects of a block.
    pub fn imports_are_open(&self, block: &ResourceAddress) -> bool {
        self.evaluation.imports_into(block).unwrap_or_default().iter().any(|import| import.is_open)
    }

    fn observe(&mut self, one: &Use, scope: &dyn Scope) {
        match one {
            Use::Instance(instance) => {
                let own = address::address(instance);
                if let Some(value) = scope.object(&own) {
                    self.see(instance, own, value);
                }
            }
            Use::Block(resource) => {
                let name = address::name(resource);
                let whole = scope.object(&Address::single(name.as_str())).unwrap_or(Value::Unknown);
                self.see_all(resource, &name.into(), whole);
            }
        }
    }

    /// Sets the values of all instances of a block.
    fn see_all(&mut self, resource: &ResourceAddress, name: &Arc<str>, whole: Value) {
        let mut see = |key: Key, value: Value| {
            let instance = InstanceAddress { resource: resource.clone(), key: Some(key) };
            let own = address::address(&instance);
            self.see(&instance, own, value);
        };
        match whole {
            Value::List(items) => {
                items.iter().enumerate().for_each(|(index, item)| see(Key::Int(index as u64), item.clone()));
            }
            Value::Map(entries) => {
                entries.iter().for_each(|(key, item)| see(Key::Text(key.clone()), item.clone()));
            }
            _ => {
                let known: Vec<Address> = self.seen.keys().filter(|known| known.name == *name).cloned().collect();
                for own in known {
                    let key = address::instance_key(&own.key);
                    self.see(&InstanceAddress { resource: resource.clone(), key }, own, Value::Unknown);
                }
            }
        }
    }

    pub fn see(&mut self, instance: &InstanceAddress, own: Address, value: Value) {
        if self.seen.get(&own) == Some(&value) {
            return;
        }
        let Some(ty) = self.evaluation.type_of(instance) else { return };
        let mut known = value::from_model(&value, &ty);
        if let Some(typed) = self.as_configured(instance, &value, &known) {
            known = typed;
        }
        self.evaluation.set(instance, Some(&known));
        self.seen.insert(own, value);
    }

    /// An object of `terraform_data` with the types of its configuration, as far as it has these values: the engine has fewer
    /// types, and neither sets nor maps. `None` for other objects.
    fn as_configured(&self, instance: &InstanceAddress, value: &Value, known: &cty::Value) -> Option<cty::Value> {
        let ResourceName { mode, kind, .. } = &instance.resource.resource;
        if (*mode, &**kind) != BUILT_IN {
            return None;
        }
        let configured = self.evaluation.configured(instance).filter(|object| !object.failed)?;
        let typed = |(name, known): (&Arc<str>, &cty::Value)| {
            let argument = if &**name == "output" { "input" } else { name };
            let own = configured.config.as_entries().and_then(|config| config.get(argument));
            let same = own.filter(|own| value.get(name).is_some_and(|value| value::to_model(own) == *value));
            (name.clone(), same.unwrap_or(known).clone())
        };
        Some(cty::Value::object(known.as_entries()?.iter().map(typed)))
    }

    /// Sets the values that outputs and checks use, and computes these. What they use may depend on these values.
    fn observe_all(&mut self, scope: &dyn Scope) {
        let mut before = BTreeSet::new();
        loop {
            let now = self.evaluation.general_uses();
            if now == before {
                return;
            }
            let blocks = Blocks::of(&self.evaluation);
            blocks.uses(&now).iter().for_each(|one| self.observe(one, scope));
            before = now;
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("origin", &self.origin).finish_non_exhaustive()
    }
}
