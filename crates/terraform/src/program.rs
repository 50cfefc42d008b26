//! The program: a configuration and the values that it was last evaluated with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use configuration::{
    Answer, Evaluation, InstanceAddress, Key, LocalProvider, ModulePath, Presence, ProviderAddress, ProviderSource,
    ResourceAddress, ResourceName, Settings, Tree,
};
use cty::{Marks, Type};
use engine::load::{Instance, Output, Program, ProgramResources, ProviderSpec, Scope};
use model::{Address, Diagnostic, Diagnostics, Name, ProviderUse, Reason, Record, Source, Stem, Value};

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
    name: Name,
    pub evaluation: Evaluation,
    /// The values of objects that are set, as the engine had them.
    seen: HashMap<Address, Value>,
    /// The values of whole blocks that were seen last, if no object of them was set since.
    whole: HashMap<Stem, Value>,
}

/// Objects whose values an expression needs, with the engine's address of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    Instance(InstanceAddress, Address),
    /// All instances of a block with keys: its family.
    Block(ResourceAddress, Address),
}

impl Use {
    /// The object, or the family of the block.
    pub fn address(&self) -> &Address {
        match self {
            Self::Instance(_, address) | Self::Block(_, address) => address,
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
        let state =
            Mutex::new(State { name: origin.name.clone(), evaluation, seen: HashMap::new(), whole: HashMap::new() });
        Self(Arc::new(Shared { tree, origin, providers, state }))
    }

    /// The Module that has the objects of the configuration.
    pub fn module(self: &Arc<Self>) -> Arc<Instance> {
        let Origin { name, source, generation, .. } = &self.0.origin;
        Arc::new(Instance {
            program: Some(Arc::clone(self) as Arc<dyn Program>),
            generation: *generation,
            source_file: Some(source.clone()),
            ..Instance::plain(Address::single(name.clone()), "")
        })
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
        let name = providers::config_name(&provider);
        let spec = spec.provider.clone();
        (!config.has_unknown()).then(|| Arc::new(ProviderUse::with_ephemeral(name.into(), spec, config, &ephemeral)))
    }

    /// Evaluates an expression that is not of the configuration in its root module, with the values of a scope.
    ///
    /// # Errors
    /// What is wrong with it, at `place`.
    pub fn ask(&self, text: &str, place: &Source, scope: &dyn Scope) -> Result<cty::Value, Diagnostics> {
        let parsed = hcl::parse_expression(hcl::Source::new(hcl::FileId(u32::MAX), "", text));
        let mut state = self.0.lock();
        let (mut before, mut answer) = (BTreeSet::new(), Answer::default());
        if parsed.diagnostics.is_empty() {
            answer = state.evaluation.ask(&parsed.value);
            // What it uses may depend on the values that are set.
            while answer.uses != before {
                let blocks = Blocks::of(&self.0.origin.name, &state.evaluation);
                blocks.uses(&answer.uses).iter().for_each(|used| state.observe(used, scope));
                before = answer.uses;
                answer = state.evaluation.ask(&parsed.value);
            }
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

    fn ephemeral_variables(&self) -> Vec<Arc<str>> {
        let variables = self.0.tree.root().variables.iter().filter(|(_, variable)| variable.ephemeral);
        variables.map(|(name, _)| name.clone()).collect()
    }

    fn outputs(&self, scope: &dyn Scope) -> Vec<Output> {
        let mut state = self.0.lock();
        state.observe_all(scope);
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
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with the values of a scope.
    pub fn observe(&self, uses: &[Use], scope: &dyn Scope) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        uses.iter().for_each(|used| state.observe(used, scope));
        state
    }
}

impl State {
    /// Whether it is not known yet, or cannot be, what is imported into the objects of a block.
    pub fn imports_are_open(&self, block: &ResourceAddress) -> bool {
        self.evaluation.imports_into(block).unwrap_or_default().iter().any(|import| import.is_open)
    }

    fn observe(&mut self, used: &Use, scope: &dyn Scope) {
        match used {
            Use::Instance(instance, own) => {
                if let Some(value) = scope.object(own) {
                    self.see(instance, own, value);
                }
            }
            Use::Block(resource, Address { stem, .. }) => {
                let whole = scope.object(&stem.clone().single()).unwrap_or(Value::Unknown);
                if !self.whole.get(stem).is_some_and(|seen| seen.is_same(&whole)) {
                    self.see_all(resource, stem, &whole);
                    self.whole.insert(stem.clone(), whole);
                }
            }
        }
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

    /// Sets the values that outputs and checks use, and computes these. What they use may depend on these values.
    fn observe_all(&mut self, scope: &dyn Scope) {
        let mut before = BTreeSet::new();
        loop {
            let now = self.evaluation.general_uses();
            if now == before {
                return;
            }
            let blocks = Blocks::of(&self.name, &self.evaluation);
            blocks.uses(&now).iter().for_each(|used| self.observe(used, scope));
            before = now;
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("origin", &self.origin).finish_non_exhaustive()
    }
}
