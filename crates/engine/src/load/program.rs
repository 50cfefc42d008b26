//! Configurations in another language, from which Resources come.

use std::fmt;
use std::sync::Arc;

use super::{Config, Family, Instance, ProviderConfig, ProviderSpec, Scope};
use model::{Address, Diagnostics, Record, Recorded, Value};

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
    /// Adds a program and its Resources. Only one program can be added.
    pub fn add_program(&mut self, program: Arc<dyn Program>) {
        self.program = Some(program);
        self.add_resources_of_program();
        self.link();
    }

    /// Adds the Resources of the recorded objects that the program says it has no more.
    pub fn add_removed(&mut self, recorded: &Recorded) {
        let Some(program) = self.program.clone() else { return };
        let gone = recorded.values().filter(|stored| self.resource(&stored.record.address).is_none());
        let removed: Vec<Arc<Instance>> = gone.filter_map(|stored| program.removed(&stored.record)).collect();
        self.instances.extend(removed.into_iter().map(|instance| (instance.address.clone(), instance)));
    }

    /// Replaces the Resources of the program by those that are known now.
    pub(crate) fn add_resources_of_program(&mut self) {
        let Some(program) = &self.program else { return };
        let ProgramResources { instances, families, providers, provider_configs } = program.resources();
        self.providers.extend(providers.into_iter().map(|spec| (spec.provider.name.clone(), spec)));
        self.provider_configs.extend(provider_configs.into_iter().map(|config| (config.name.clone(), config)));
        // Those of other sources are only recorded, and stay, and so do those that are removed.
        self.instances
            .retain(|address, instance| instance.only_recorded || instance.deleting || !address.is_qualified());
        self.families
            .retain(|name, family| family.shared.only_recorded || !Address::single(name.clone()).is_qualified());
        self.instances.extend(instances.into_iter().map(|instance| (instance.address.clone(), instance)));
        self.families.extend(families.into_iter().map(|family| (family.shared.address.stem.clone(), family)));
    }
}
