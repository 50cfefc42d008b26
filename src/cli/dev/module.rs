//! The Terraform configuration of the watched directory, as the reconciler has it.

use std::sync::Arc;

use engine::load::{Config, Instance, Output, Program, ProgramResources, Scope};
use model::{Address, Diagnostics, Record, in_family};

/// A configuration beside objects of the same name that another directory has. They are left as they are.
#[derive(Debug)]
struct BesideOthers {
    own: Arc<dyn Program>,
    others: Vec<Arc<Instance>>,
}

/// A Module as the reconciler has it: another one whenever a file has changed (`files` is a digest of them), and with the objects
/// of other sources that have its name.
pub fn as_module(module: &Arc<Instance>, config: &Config, files: u64) -> Arc<Instance> {
    let all = in_family(&config.instances, module.address.name()).map(|(_, instance)| instance);
    let others: Vec<Arc<Instance>> = all.filter(|instance| instance.only_recorded).cloned().collect();
    let program = module.program.clone().map(|own| match others.is_empty() {
        true => own,
        false => Arc::new(BesideOthers { own, others }) as Arc<dyn Program>,
    });
    let generation = module.generation ^ i64::from_le_bytes(files.to_le_bytes());
    Arc::new(Instance { program, generation, ..Instance::clone(module) })
}

impl Program for BesideOthers {
    fn resources(&self) -> ProgramResources {
        let mut resources = self.own.resources();
        resources.instances.extend(self.others.iter().cloned());
        resources
    }

    fn is_undecided(&self, address: &Address) -> bool {
        self.own.is_undecided(address)
    }

    fn removed(&self, record: &Record) -> Option<Arc<Instance>> {
        self.own.removed(record)
    }

    fn problems(&self, scope: &dyn Scope) -> Diagnostics {
        self.own.problems(scope)
    }

    fn ephemeral_variables(&self) -> Vec<Arc<str>> {
        self.own.ephemeral_variables()
    }

    fn outputs(&self, scope: &dyn Scope) -> Vec<Output> {
        self.own.outputs(scope)
    }
}
