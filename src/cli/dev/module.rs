//! The Terraform configuration of the watched directory, as the reconciler has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::load::{Config, Family, Instance, Output, Program, ProgramResources, Scope};
use model::{Address, Diagnostics, Name, Record, Stem, Value};

/// A configuration, if there is one, beside objects of the same name that other directories have. These are left as they are.
#[derive(Debug)]
struct BesideOthers {
    own: Option<Arc<dyn Program>>,
    instances: Vec<Arc<Instance>>,
    families: Vec<Arc<Family>>,
}

/// The Modules of the files by name, also one for objects that only other sources have. `version` is that of the files: each
/// makes another Module, because a configuration may read any file.
pub fn modules(config: &Config, version: u64) -> BTreeMap<Name, Arc<Instance>> {
    let (instances, families) = (config.instances.values(), config.families.values());
    let others = instances
        .filter(|instance| is_of_another(instance))
        .chain(families.map(|family| &family.shared).filter(|shared| is_of_another(shared)));
    let names: BTreeSet<&Name> = others.map(|other| other.address.name()).chain(config.modules.keys()).collect();
    names.into_iter().map(|name| (name.clone(), Arc::new(module(config, name, version)))).collect()
}

/// Whether it is an object of a configuration that is not given.
fn is_of_another(instance: &Instance) -> bool {
    instance.only_recorded && instance.address.is_qualified()
}

fn module(config: &Config, name: &Name, version: u64) -> Instance {
    let is_other = |stem: &Stem, instance: &Instance| stem.name == *name && is_of_another(instance);
    let instances = config.instances.iter().filter(|(address, instance)| is_other(&address.stem, instance));
    let families = config.families.iter().filter(|(stem, family)| is_other(stem, &family.shared));
    let given = config.modules.get(name);
    let program = BesideOthers {
        own: given.and_then(|given| given.program.clone()),
        instances: instances.map(|(_, instance)| instance.clone()).collect(),
        families: families.map(|(_, family)| family.clone()).collect(),
    };
    let plain = || Instance::plain(Address::single(name.clone()), "");
    let given = given.map_or_else(plain, |given| Instance::clone(given));
    let generation = given.generation.wrapping_add_unsigned(version);
    Instance { program: Some(Arc::new(program)), generation, ..given }
}

impl Program for BesideOthers {
    fn resources(&self, module: &Arc<Instance>) -> ProgramResources {
        let mut resources = self.own.as_ref().map(|own| own.resources(module)).unwrap_or_default();
        resources.instances.extend(self.instances.iter().cloned());
        resources.families.extend(self.families.iter().cloned());
        resources
    }

    fn is_undecided(&self, address: &Address) -> bool {
        self.own.as_ref().is_some_and(|own| own.is_undecided(address))
    }

    fn removed(&self, record: &Record) -> Option<Arc<Instance>> {
        self.own.as_ref()?.removed(record)
    }

    fn problems(&self, scope: &dyn Scope) -> Diagnostics {
        self.own.as_ref().map(|own| own.problems(scope)).unwrap_or_default()
    }

    fn ephemeral_variables(&self) -> Vec<Arc<str>> {
        self.own.as_ref().map(|own| own.ephemeral_variables()).unwrap_or_default()
    }

    fn output(&self, name: &str, scope: &dyn Scope) -> Option<Value> {
        self.own.as_ref()?.output(name, scope)
    }

    fn output_uses(&self, name: &str) -> Vec<Address> {
        self.own.as_ref().map(|own| own.output_uses(name)).unwrap_or_default()
    }

    fn outputs(&self, scope: &dyn Scope) -> Vec<Output> {
        self.own.as_ref().map(|own| own.outputs(scope)).unwrap_or_default()
    }
}
