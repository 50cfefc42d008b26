//! Configurations in another language, from which Resources come.

use std::fmt;
use std::sync::Arc;

use super::{Config, Family, Instance, ProviderConfig, ProviderSpec, Scope};
use model::{Address, Diagnostics, Name, Record, Stem, Stored, Value};

/// A configuration in another language. It describes Resources whose expressions are [`super::expression::Foreign`]. Which
/// there are may depend on the values of others: a program remembers the values that its expressions were last evaluated
/// with, and gives the Resources that follow from them. The planner evaluates each repetition before it relies on one.
pub trait Program: fmt::Debug + Send + Sync {
    /// The Resources, as far as they are known.
    fn resources(&self) -> ProgramResources;

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
        self.modules.insert(name.clone(), module);
        self.add_resources_of(&name);
    }

    /// The configurations of the Modules, by name.
    pub fn programs(&self) -> impl Iterator<Item = (&Name, &Arc<dyn Program>)> {
        self.modules.iter().filter_map(|(name, module)| Some((name, module.program.as_ref()?)))
    }

    /// The configuration of the directory, on files.
    pub fn root_program(&self) -> Option<&Arc<dyn Program>> {
        self.programs().next().map(|(_, program)| program)
    }

    /// Adds the Resources of the recorded objects that the configurations say they have no more.
    pub fn add_removed<'r, I: Iterator<Item = &'r Stored>>(&mut self, recorded: I) {
        if self.modules.is_empty() {
            return;
        }
        let gone = recorded.filter(|stored| self.resource(&stored.record.address).is_none());
        let removed = gone.filter_map(|stored| {
            let module = self.modules.get(stored.record.address.name())?;
            module.program.as_ref()?.removed(&stored.record)
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
        let Some(program) = self.modules.get(name).and_then(|module| module.program.as_ref()) else { return };
        let ProgramResources { instances, families, providers, provider_configs } = program.resources();
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
