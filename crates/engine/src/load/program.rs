//! Configurations in another language, from which Resources come.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::expression::Variable;
use super::{
    Config, Expansion, Family, Instance, InstanceKeys, InstanceSelector, ProviderConfig, ProviderSpec, Reference,
    Repetition, Scope,
};
use model::{
    Address, Diagnostic, Diagnostics, InstanceKey, Name, Reason, Record, Segment, Stem, Stored, TypeName, Value, errors,
};

/// What a Module says whose files are not there yet.
const LOADING: &str = "the source of the module is being loaded";

/// A configuration in another language. It describes Resources whose expressions are [`super::expression::Foreign`]. Which
/// there are may depend on the values of others: a program remembers the values that its expressions were last evaluated
/// with, and gives the Resources that follow from them. The planner evaluates each repetition before it relies on one.
pub trait Program: fmt::Debug + Send + Sync {
    /// The Resources, as far as they are known. They have the settings of the Module, which is given with its inputs. Until the
    /// next call, its expressions are evaluated as they are now.
    fn resources(&self, module: &Arc<Instance>) -> ProgramResources;

    /// Whether a recorded object that is not among the Resources may still be one of them: what decides this is not known.
    fn is_undecided(&self, address: &Address) -> bool;

    /// The Resource of a recorded object that the configuration says it has no more: whether the object is kept, and what runs
    /// before it is destroyed.
    fn removed(&self, record: &Record) -> Option<Arc<Instance>>;

    /// The problems that belong to no Resource, with the values of a plan.
    fn problems(&self, scope: &dyn Scope) -> Diagnostics;

    /// The variables whose values must not be kept.
    fn ephemeral_variables(&self) -> Vec<Arc<str>>;

    /// The values that the configuration gives, in order.
    fn outputs(&self, scope: &dyn Scope) -> Vec<Output>;

    /// A value that the configuration gives, with the values of a scope. `None`: there is none, or an error took it away.
    fn output(&self, name: &str, scope: &dyn Scope) -> Option<Value>;

    /// The objects that a value comes from, as far as they are known. Empty also if there is no such value.
    fn output_uses(&self, name: &str) -> Vec<Address>;

    /// What is shown of where the configuration comes from. `None` on files.
    fn revision(&self) -> Option<Revision> {
        None
    }
}

/// A version of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The version, the commit, or the start of the digest.
    pub name: Arc<str>,
    /// The digest of all files.
    pub digest: Arc<str>,
}

/// The Resources of a program.
#[derive(Debug, Default)]
pub struct ProgramResources {
    pub instances: Vec<Arc<Instance>>,
    /// What is repeated: Resources, of whose instances the known ones are in `instances`, and groups of Resources, which
    /// refer to the family of their group.
    pub families: Vec<Arc<Family>>,
    /// The providers of the Resources.
    pub providers: Vec<Arc<ProviderSpec>>,
    pub provider_configs: Vec<Arc<ProviderConfig>>,
}

/// A value that a configuration gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub name: Arc<str>,
    /// Marked if it is sensitive. `None`: an error took it away.
    pub value: Option<Value>,
    /// The type of the value in the language of the configuration, as JSON. Values of the engine have fewer types.
    pub ty: Arc<str>,
}

impl Config {
    /// Adds a Module and the Resources of its configuration.
    pub(super) fn add_module(&mut self, module: Arc<Instance>) {
        let name = module.address.name().clone();
        if !name.is_empty() {
            self.families.insert(module.address.stem.clone(), Arc::new(Family::of_module(module.clone())));
        }
        self.modules.insert(name.clone(), module);
        self.add_resources_of(&name);
    }

    /// The configuration of a Module, unless it cannot be used.
    fn program(&self, name: &Name) -> Option<&Arc<dyn Program>> {
        self.modules.get(name).filter(|module| !module.has_errors())?.program.as_ref()
    }

    /// The value of an output of a Module, which stands in the place of a key: `network/["id"]`. `None`: the address is no such
    /// one, or there is none.
    pub fn output(&self, address: &Address, scope: &dyn Scope) -> Option<Value> {
        self.output_within(address, scope, None)
    }

    fn output_within(&self, address: &Address, scope: &dyn Scope, outer: Option<&OutputScope<'_>>) -> Option<Value> {
        let InstanceKey::Key(output) = &address.key else { return None };
        let program = self.program(address.name()).filter(|_| !address.is_qualified())?;
        program.output(output, &OutputScope { config: self, output: address, scope, outer })
    }

    /// Adds the references to the objects that outputs of Modules come from, to what reads the outputs.
    pub(super) fn link_outputs(&mut self) {
        if self.modules.keys().all(|name| name.is_empty()) {
            return;
        }
        let outputs = Outputs { config: self, known: RefCell::default() };
        let linked =
            self.instances.iter().filter_map(|(address, one)| Some((address, outputs.linked(&one.references)?)));
        let linked: Vec<(Address, Arc<[Reference]>)> =
            linked.map(|(address, references)| (address.clone(), references)).collect();
        let families = self.families.iter().filter_map(|(stem, family)| {
            let shared = outputs.linked(&family.shared.references);
            let repetition = family.shared.repetition.as_ref();
            let repeated = repetition.and_then(|repetition| outputs.linked(&repetition.references));
            (shared.is_some() || repeated.is_some()).then(|| (stem.clone(), shared, repeated))
        });
        let families: Vec<_> = families.collect();
        for (address, references) in linked {
            if let Some(instance) = self.instances.get_mut(&address) {
                Arc::make_mut(instance).references = references;
            }
        }
        for (stem, shared, repeated) in families {
            let Some(family) = self.families.get_mut(&stem) else { continue };
            let of_family = Arc::make_mut(&mut Arc::make_mut(family).shared);
            if let Some(references) = shared {
                of_family.references = references;
            }
            if let (Some(references), Some(repetition)) = (repeated, &of_family.repetition) {
                of_family.repetition = Some(Arc::new(Repetition { references, ..Repetition::clone(repetition) }));
            }
        }
    }

    /// Whether a recorded object that is not among the Resources may still be one of them.
    pub fn is_undecided(&self, address: &Address) -> bool {
        let Some(module) = self.modules.get(address.name()).filter(|module| !module.deleting) else { return false };
        module.has_errors() || module.program.as_ref().is_none_or(|program| program.is_undecided(address))
    }

    /// The configurations of the Modules, by name.
    pub fn programs(&self) -> impl Iterator<Item = (&Name, &Arc<dyn Program>)> {
        self.modules.keys().filter_map(|name| Some((name, self.program(name)?)))
    }

    /// The configuration of the directory, on files.
    pub fn root_program(&self) -> Option<&Arc<dyn Program>> {
        self.program(&Name::default())
    }

    /// Adds the Resources of the recorded objects that the configurations say they have no more.
    pub fn add_removed<'r, I: Iterator<Item = &'r Stored>>(&mut self, recorded: I) {
        if self.modules.is_empty() {
            return;
        }
        let gone = recorded.filter(|stored| self.resource(&stored.record.address).is_none());
        let removed = gone.filter_map(|stored| {
            let program = self.program(stored.record.address.name())?;
            program.removed(&stored.record)
        });
        let removed: Vec<Arc<Instance>> = removed.collect();
        self.instances.extend(removed.into_iter().map(|instance| (instance.address.clone(), instance)));
    }

    /// Replaces the Resources of all Modules by those that are known now.
    pub(super) fn add_resources_of_modules(&mut self) {
        let names: Vec<Name> = self.modules.keys().cloned().collect();
        names.iter().for_each(|name| self.add_resources_of(name));
    }

    fn add_resources_of(&mut self, name: &Name) {
        let Some((module, program)) = self.modules.get(name).zip(self.program(name)) else { return };
        // Its recorded objects are destroyed, whatever the configuration is by now.
        if module.deleting {
            return;
        }
        let ProgramResources { instances, families, providers, provider_configs } = program.resources(module);
        self.providers.extend(providers.into_iter().map(|spec| (spec.provider.name.clone(), spec)));
        self.provider_configs.extend(provider_configs.into_iter().map(|config| (config.name.clone(), config)));
        // Those of other sources are only recorded, and stay, and so do those that are removed.
        let is_of_another = |stem: &Stem| stem.part.is_none() || stem.name != *name;
        self.instances
            .retain(|address, instance| instance.only_recorded || instance.deleting || is_of_another(&address.stem));
        self.families.retain(|stem, family| family.shared.only_recorded || is_of_another(stem));
        self.instances.extend(instances.into_iter().map(|instance| (instance.address.clone(), instance)));
        self.families.extend(families.into_iter().map(|family| (family.shared.address.stem.clone(), family)));
    }
}

/// The scope in which an output is computed, which may come from outputs of other Modules.
struct OutputScope<'a> {
    config: &'a Config,
    output: &'a Address,
    /// The scope of everything else.
    scope: &'a dyn Scope,
    /// The scope of the output that needs this one.
    outer: Option<&'a OutputScope<'a>>,
}

impl OutputScope<'_> {
    /// Whether an output is being computed.
    fn computes(&self, output: &Address) -> bool {
        self.output == output || self.outer.is_some_and(|outer| outer.computes(output))
    }
}

impl Scope for OutputScope<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        // An output that comes from itself has no value.
        if self.computes(address) {
            return Some(Value::Unknown);
        }
        self.config.output_within(address, self.scope, Some(self)).or_else(|| self.scope.object(address))
    }

    fn namespace(&self) -> Value {
        self.scope.namespace()
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        self.scope.variable(variable)
    }

    fn is_final(&self) -> bool {
        self.scope.is_final()
    }
}

/// The objects that outputs of Modules come from.
struct Outputs<'a> {
    config: &'a Config,
    known: RefCell<BTreeMap<Address, Vec<Address>>>,
}

impl Outputs<'_> {
    /// The references with those to the objects of outputs. `None`: they name no Module.
    fn linked(&self, references: &[Reference]) -> Option<Arc<[Reference]>> {
        references.iter().find(|reference| reference.target.is_module())?;
        let is_own = |reference: &&Reference| !matches!(reference.selector, Some(InstanceSelector::Output(_)));
        let mut linked: Vec<Reference> = references.iter().filter(is_own).cloned().collect();
        for reference in references.iter().filter(is_own).filter(|reference| reference.target.is_module()) {
            let Some(Segment::Name(name)) = reference.segments.first() else { continue };
            let output = reference.target.stem.clone().instance(InstanceKey::Key(name.clone()));
            linked.extend(self.objects(&output, name).into_iter().map(|target| Reference {
                target,
                selector: Some(InstanceSelector::Output(output.clone())),
                ..reference.clone()
            }));
        }
        linked.sort();
        Some(linked.into())
    }

    fn objects(&self, output: &Address, name: &str) -> Vec<Address> {
        let mut known = self.known.borrow_mut();
        let found = || self.config.program(output.name()).map(|program| program.output_uses(name)).unwrap_or_default();
        known.entry(output.clone()).or_insert_with(found).clone()
    }
}

impl Family {
    /// The family of a Module, whose members are not its instances: it has the problems of the Module as a whole.
    fn of_module(module: Arc<Instance>) -> Self {
        let has_program = module.program.is_some() || module.deleting;
        let expansion = match () {
            () if module.has_errors() => Expansion::Failed(errors(&module.problems).cloned().collect()),
            () if !module.inputs.problems.is_empty() && module.is_desired() => {
                Expansion::Failed(module.inputs.problems.clone())
            }
            () if has_program => Expansion::Known(InstanceKeys::One),
            () => Expansion::Failed(vec![Diagnostic::warning(&module.address, Reason::Progressing, LOADING)]),
        };
        let always = Repetition { repeat: None, enabled: None, import: None, references: Arc::default() };
        let shared = Instance { repetition: Some(Arc::new(always)), ..Instance::clone(&module) };
        Self { shared: Arc::new(shared), expansion }
    }
}

impl Instance {
    /// An object of a Module, with the settings of the Module.
    pub fn of_module(module: &Self, address: Address, type_name: impl Into<TypeName>) -> Self {
        Self {
            uid: module.uid.clone(),
            generation: module.generation,
            policies: module.policies,
            deletion_policy: module.deletion_policy,
            drift: module.drift,
            require_approval: module.require_approval.clone(),
            service_account: module.service_account.clone(),
            suspended: module.suspended,
            timeouts: module.timeouts,
            reconcile_requested: module.reconcile_requested.clone(),
            record_annotation: module.record_annotation.clone(),
            has_finalizer: module.has_finalizer,
            source_file: module.source_file.clone(),
            ..Self::plain(address, type_name)
        }
    }
}
