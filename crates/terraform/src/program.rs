//! The program: a configuration and the values that it was last evaluated with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use configuration::{
    Answer, Dependency, Evaluation, Input, InstanceAddress, Key, LocalProvider, ModulePath, Presence, ProviderAddress,
    ProviderSource, ResourceAddress, ResourceName, Settings, Tree,
};
use cty::{Marks, Type};
use engine::load::{
    Instance, InstanceScope, Output, Program, ProgramResources, ProviderSpec, Reference, Revision, Scope, Template,
};
use model::{Address, Diagnostic, Diagnostics, Name, Path, ProviderUse, Reason, Record, Source, Stem, Value};

use crate::desired::{self, Blocks};
use crate::schemas::{BUILT_IN, Schemas, World};
use crate::{address, problem, providers, value};

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The name in the addresses of its objects: that of its Module, and empty on files.
    pub name: Name,
    /// The source of its objects, as records have it.
    pub source: Arc<str>,
    /// A number that changes with the configuration.
    pub generation: i64,
    /// What stands before the names of its files in messages.
    pub directory: String,
    /// In a cluster: the `ProviderConfig`s of the namespace for configurations that the root module leaves out, by their names in
    /// it. `None` on files, where such a configuration is empty.
    pub provider_configs: Option<BTreeMap<String, Arc<str>>>,
    /// What is shown of the version.
    pub revision: Option<Revision>,
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
    pub links: Links,
    state: Mutex<State>,
}

/// The variables whose values come from expressions of the Module.
#[derive(Clone, Debug, Default)]
pub struct Links(BTreeMap<Arc<str>, Link>);

#[derive(Clone, Debug)]
struct Link {
    value: Template,
    /// The references of the expression, and those of the whole Module.
    references: Vec<Reference>,
}

impl Links {
    /// Splits the variables of a Module into those with a value and those with expressions.
    pub fn of(module: &Instance) -> (BTreeMap<String, Input>, Self) {
        let (mut values, mut links) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in module.config.entries() {
            if let Some(value) = value.as_literal() {
                values.insert(name.to_string(), Input::Value(value::from_model(value, &Type::Dynamic)));
                continue;
            }
            let at = Path::of(&["spec", "variables", &name]);
            let references = module.references.iter().filter(|reference| reference.at.starts_with(&at)).cloned();
            links.insert(name.clone(), Link { value, references: references.collect() });
            values.insert(name.to_string(), Input::Linked);
        }
        (values, Self(links))
    }

    /// What a variable refers to.
    pub fn references(&self, variable: &str) -> impl Iterator<Item = &Reference> {
        self.0.get(variable).into_iter().flat_map(|link| &link.references)
    }
}

pub struct State {
    pub evaluation: Evaluation,
    /// The Module with its inputs.
    module: Arc<Instance>,
    /// The problems of linked variables.
    unassigned: BTreeMap<Arc<str>, Diagnostics>,
    /// The values of objects that are set, as the engine had them.
    seen: HashMap<Address, Value>,
    /// The values of whole blocks that were seen last, if no object of them was set since.
    whole: HashMap<Stem, Value>,
}

/// A value that the engine has.
enum Seen<'a> {
    Instance(&'a InstanceAddress, &'a Address, Value),
    /// All instances of a block.
    Block(&'a ResourceAddress, &'a Stem, Value),
    Variable(&'a Arc<str>, Result<Value, Diagnostics>),
}

/// Objects whose values an expression needs, with the engine's address of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    Instance(InstanceAddress, Address),
    /// All instances of a block with keys: its family.
    Block(ResourceAddress, Address),
    /// What a variable of the Module refers to.
    Variable(Arc<str>),
}

impl Use {
    /// The object, the family of the block, or what the variable refers to.
    pub fn addresses(&self, links: &Links) -> Vec<Address> {
        match self {
            Self::Instance(_, address) | Self::Block(_, address) => vec![address.clone()],
            Self::Variable(variable) => links.references(variable).map(|reference| reference.target.clone()).collect(),
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
        let name = origin.name.clone();
        let module = Arc::new(Instance {
            generation: origin.generation,
            source_file: Some(origin.source.clone()),
            ..Instance::plain(Address::single(name), "")
        });
        Self::of_module(&module, tree, providers, schemas, settings, origin)
    }

    /// The configuration of a Module in a cluster, whose variables can have expressions.
    pub fn of_module(
        module: &Arc<Instance>,
        tree: Arc<Tree>,
        providers: BTreeMap<ProviderSource, Arc<ProviderSpec>>,
        schemas: Arc<dyn Schemas>,
        mut settings: Settings,
        origin: Origin,
    ) -> Self {
        settings.on_demand = true;
        let (values, links) = Links::of(module);
        settings.variables.extend(values);
        let evaluation = Evaluation::new(tree.clone(), Arc::new(World(schemas)), settings);
        let state = Mutex::new(State {
            evaluation,
            module: module.clone(),
            unassigned: BTreeMap::new(),
            seen: HashMap::new(),
            whole: HashMap::new(),
        });
        Self(Arc::new(Shared { tree, origin, providers, links, state }))
    }

    /// The Module that has the objects of the configuration.
    pub fn module(self: &Arc<Self>) -> Arc<Instance> {
        let module = Instance::clone(&self.0.lock().module);
        Arc::new(Instance { program: Some(Arc::clone(self) as Arc<dyn Program>), ..module })
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
        let template = desired::provider_template(shared, &provider);
        let configured = shared.observe(&template.uses, scope).evaluation.provider(&provider).ok().flatten();
        let configured = configured.filter(|configured| !configured.failed)?;
        let (config, ephemeral) = (value::to_config(&configured.config), value::ephemeral_paths(&configured.config));
        let name = providers::config_name(&shared.origin.name, &provider);
        let spec = spec.provider.clone();
        (!config.has_unknown()).then(|| Arc::new(ProviderUse::with_ephemeral(name.into(), spec, config, &ephemeral)))
    }

    /// Evaluates an expression that is not of the configuration in its root module, with the values of a scope.
    ///
    /// # Errors
    /// What is wrong with it, at `place`.
    pub fn ask(&self, text: &str, place: &Source, scope: &dyn Scope) -> Result<cty::Value, Diagnostics> {
        let parsed = hcl::parse_expression(hcl::Source::new(hcl::FileId(u32::MAX), "", text));
        let mut answer = Answer::default();
        if parsed.diagnostics.is_empty() {
            let state = self.0.settle(scope, |evaluation| evaluation.ask(&parsed.value).uses);
            answer = state.evaluation.ask(&parsed.value);
        }
        answer.problems.errors.extend(parsed.diagnostics);
        let diagnostics = problem::diagnostics(&answer.problems, &self.0.tree.sources, &self.0.origin.directory);
        match answer.value.filter(|_| answer.problems.errors.is_empty()) {
            Some(value) => Ok(value),
            None if diagnostics.is_empty() => {
                let what = "a value that the expression uses has an error, which is reported at its place";
                Err(vec![Diagnostic::general(Reason::InvalidExpression, what).from_source(Some(place.clone()))])
            }
            None => Err(diagnostics.into_iter().map(|problem| problem.from_source(Some(place.clone()))).collect()),
        }
    }

    /// The configuration of an object as the language has it, with the values that the engine has seen last. `None`: it has
    /// none, or an error.
    pub fn configured(&self, object: &Address) -> Option<cty::Value> {
        let configured = self.0.lock().evaluation.configured(&address::instance(object)?)?;
        (!configured.failed).then(|| configured.config.clone())
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
    fn resources(&self, module: &Arc<Instance>) -> ProgramResources {
        // It has the program, which must not have itself.
        let mut state = self.0.lock();
        state.module = Arc::new(Instance { program: None, ..Instance::clone(module) });
        state.evaluation.refill();
        drop(state);
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
        let state = self.0.settle(scope, Evaluation::general_uses);
        let problems = state.evaluation.general_problems();
        let general = problem::diagnostics(&problems, &self.0.tree.sources, &self.0.origin.directory);
        state.unassigned.values().flatten().cloned().chain(general).collect()
    }

    fn ephemeral_variables(&self) -> Vec<Arc<str>> {
        let variables = self.0.tree.root().variables.iter().filter(|(_, variable)| variable.ephemeral);
        variables.map(|(name, _)| name.clone()).collect()
    }

    fn outputs(&self, scope: &dyn Scope) -> Vec<Output> {
        let state = self.0.settle(scope, Evaluation::general_uses);
        if scope.is_final() {
            state.evaluation.act();
            state.evaluation.complete();
        }
        let outputs = self.0.tree.root().outputs.keys().map(|name| {
            let value = state.evaluation.output(name);
            let ty = value.as_ref().map_or(Type::Dynamic, |value| value.ty().clone());
            Output { name: name.clone(), value: value.as_ref().map(value::to_model), ty: ty.to_json().into() }
        });
        outputs.collect()
    }

    fn output(&self, name: &str, scope: &dyn Scope) -> Option<Value> {
        let (name, _) = self.0.tree.root().outputs.get_key_value(name)?;
        let uses = |evaluation: &Evaluation| evaluation.output_now(name).map(|answer| answer.uses).unwrap_or_default();
        let state = self.0.settle(scope, uses);
        let value = state.evaluation.output_now(name).and_then(|answer| answer.value);
        value.map(|value| value::to_model(&value))
    }

    fn output_uses(&self, name: &str) -> Vec<Address> {
        let state = self.0.lock();
        let Some((name, _)) = self.0.tree.root().outputs.get_key_value(name) else { return Vec::new() };
        let uses = state.evaluation.output_now(name).map(|answer| answer.uses).unwrap_or_default();
        let used = Blocks::of(&self.0.origin.name, &state.evaluation).uses(&uses);
        used.iter().flat_map(|used| used.addresses(&self.0.links)).collect()
    }

    fn revision(&self) -> Option<Revision> {
        self.0.origin.revision.clone()
    }
}

impl Shared {
    /// The name of the provider configuration of an object. `None`: the type is built in.
    pub fn provider_config(&self, provider: &ProviderAddress) -> Option<Arc<str>> {
        if provider.source.is_built_in() {
            return None;
        }
        let outside = || self.given_provider_config(provider);
        Some(outside().unwrap_or_else(|| providers::config_name(&self.origin.name, provider).into()))
    }

    /// The `ProviderConfig` of the namespace that stands for a configuration which the root module leaves out: the one that the
    /// Module names, or that with the name of the Provider.
    fn given_provider_config(&self, provider: &ProviderAddress) -> Option<Arc<str>> {
        let given = self.origin.provider_configs.as_ref()?;
        let is_left_out = provider.module.0.is_empty() && !self.tree.root().providers.contains_key(&provider.local);
        let named = || given.get(&provider.local.to_string()).cloned();
        let default = || self.providers.get(&provider.source).map(|spec| spec.provider.name.clone());
        if is_left_out { named().or_else(default) } else { None }
    }

    /// Whether the configuration of a provider is a `ProviderConfig` of the namespace.
    pub fn is_given(&self, provider: &ProviderAddress) -> bool {
        self.given_provider_config(provider).is_some()
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with the values of a scope.
    pub fn observe(&self, uses: &[Use], scope: &dyn Scope) -> MutexGuard<'_, State> {
        let seen = self.fetch(uses, scope);
        let mut state = self.lock();
        seen.into_iter().for_each(|seen| state.take(seen));
        state
    }

    /// The values of a scope. Nothing is locked meanwhile: they may be outputs of another Module, whose variables read this one.
    fn fetch<'a>(&self, uses: &'a [Use], scope: &dyn Scope) -> Vec<Seen<'a>> {
        let seen = uses.iter().filter_map(|used| match used {
            Use::Instance(instance, own) => Some(Seen::Instance(instance, own, scope.object(own)?)),
            Use::Block(resource, Address { stem, .. }) => {
                let whole = scope.object(&stem.clone().single()).unwrap_or(Value::Unknown);
                Some(Seen::Block(resource, stem, whole))
            }
            Use::Variable(variable) => {
                let link = self.links.0.get(variable)?;
                let module = self.lock().module();
                let value = link.value.evaluate(&InstanceScope { instance: &module, others: scope });
                Some(Seen::Variable(variable, value))
            }
        });
        seen.collect()
    }

    /// The state with the values that something uses, which may depend on these values.
    fn settle(&self, scope: &dyn Scope, uses: impl Fn(&Evaluation) -> BTreeSet<Dependency>) -> MutexGuard<'_, State> {
        let mut before = BTreeSet::new();
        let mut state = self.lock();
        loop {
            let now = uses(&state.evaluation);
            if now == before {
                return state;
            }
            let used = Blocks::of(&self.origin.name, &state.evaluation).uses(&now);
            drop(state);
            state = self.observe(&used, scope);
            before = now;
        }
    }
}

impl State {
    /// Whether it is not known yet, or cannot be, what is imported into the objects of a block.
    pub fn imports_are_open(&self, block: &ResourceAddress) -> bool {
        self.evaluation.imports_into(block).unwrap_or_default().iter().any(|import| import.is_open)
    }

    /// The Module with its inputs.
    pub fn module(&self) -> Arc<Instance> {
        self.module.clone()
    }

    fn take(&mut self, seen: Seen<'_>) {
        match seen {
            Seen::Instance(instance, own, value) => self.see(instance, own, value),
            Seen::Block(resource, stem, whole) => {
                if !self.whole.get(stem).is_some_and(|seen| seen.is_same(&whole)) {
                    self.see_all(resource, stem, &whole);
                    self.whole.insert(stem.clone(), whole);
                }
            }
            Seen::Variable(variable, value) => self.assign(variable, value),
        }
    }

    /// Sets the value of a variable with an expression.
    fn assign(&mut self, variable: &Arc<str>, value: Result<Value, Diagnostics>) {
        let value = match value {
            Ok(value) => {
                self.unassigned.remove(variable);
                Some(value::from_model(&value, &Type::Dynamic))
            }
            Err(problems) => {
                let address = Some(self.module.address.clone());
                let own = problems.into_iter().map(|problem| Diagnostic { address: address.clone(), ..problem });
                self.unassigned.insert(variable.clone(), own.collect());
                None
            }
        };
        self.evaluation.assign(variable, value);
    }

    /// Sets the values of all instances of a block.
    fn see_all(&mut self, resource: &ResourceAddress, stem: &Stem, whole: &Value) {
        match whole {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.see_instance(resource, stem, Key::Int(index as u64), item);
                }
            }
            Value::Map(entries) => {
                for (key, item) in entries.iter() {
                    self.see_instance(resource, stem, Key::Text(key.clone()), item);
                }
            }
            _ => {
                let known: Vec<Address> = self.seen.keys().filter(|known| known.stem == *stem).cloned().collect();
                for own in known {
                    let key = address::instance_key(&own.key);
                    self.see(&InstanceAddress { resource: resource.clone(), key }, &own, Value::Unknown);
                }
            }
        }
    }

    pub fn see(&mut self, instance: &InstanceAddress, own: &Address, value: Value) {
        if self.seen.get(own) == Some(&value) {
            return;
        }
        let Some(ty) = self.evaluation.type_of(instance) else { return };
        let mut known = value::from_model(&value, &ty);
        if let Some(typed) = self.as_built_in(instance, &value, &known) {
            known = typed;
        }
        self.evaluation.set(instance, Some(&known));
        self.whole.remove(&own.stem);
        self.seen.insert(own.clone(), value);
    }

    fn see_instance(&mut self, resource: &ResourceAddress, stem: &Stem, key: Key, value: &Value) {
        let own = stem.clone().instance(address::key(&key));
        let instance = InstanceAddress { resource: resource.clone(), key: Some(key) };
        self.see(&instance, &own, value.clone());
    }

    /// An object of `terraform_data` as upstream has it: with the types of its configuration, as far as it has these values,
    /// because the engine has neither sets nor maps; and without marks in `output`, whose `input` is sensitive. `None` for other
    /// objects.
    fn as_built_in(&self, instance: &InstanceAddress, value: &Value, known: &cty::Value) -> Option<cty::Value> {
        let ResourceName { mode, kind, .. } = &instance.resource.resource;
        if (*mode, &**kind) != BUILT_IN {
            return None;
        }
        let configured = self.evaluation.configured(instance).filter(|object| !object.failed);
        let entries = known.as_entries()?.iter().map(|(name, known)| {
            let is_output = &**name == "output";
            let argument = if is_output { "input" } else { name };
            let configured = configured.as_ref().and_then(|object| object.config.as_entries()?.get(argument));
            let same = configured
                .filter(|configured| value.get(name).is_some_and(|value| value::to_model(configured) == *value));
            let typed = same.unwrap_or(known);
            (name.clone(), if is_output { typed.unmarked_deep(&mut Marks::default()) } else { typed.clone() })
        });
        Some(cty::Value::object(entries))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("origin", &self.origin).finish_non_exhaustive()
    }
}
