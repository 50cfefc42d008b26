//! Dependencies of objects through data sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::load::{Config, Instance};
use model::Address;

/// Data sources have no records, so an object that reads a data source is recorded with the dependencies of the data
/// source. A destroy thus has the right order even after the data source was removed.
#[derive(Default)]
pub struct DataDependencies {
    by: BTreeMap<Address, BTreeSet<Address>>,
}

impl DataDependencies {
    pub fn new(config: &Config) -> Self {
        let mut through = Self::default();
        for address in config.instances.keys().filter(|address| address.is_data()) {
            through.add_data_source(config, address, &mut BTreeSet::new());
        }
        through
    }

    /// The Resources that an instance depends on, directly or through data sources. `None` if it reads no data source.
    pub fn targets(&self, config: &Config, instance: &Instance) -> Option<BTreeSet<Address>> {
        instance.references.iter().any(|reference| reference.target.is_data()).then(|| {
            let mut targets = BTreeSet::new();
            for reference in instance.references.iter() {
                self.add(config, &reference.target, &mut targets);
            }
            targets
        })
    }

    fn add(&self, config: &Config, target: &Address, targets: &mut BTreeSet<Address>) {
        if !target.is_data() {
            targets.insert(target.clone());
        } else if let Some(known) = self.by.get(target) {
            targets.extend(known.iter().cloned());
        } else if !target.is_instance() {
            let members = config.instance_addresses(&target.stem).filter_map(|member| self.by.get(member));
            targets.extend(members.flatten().cloned());
        }
    }

    /// Computes the dependencies of a data source. Data sources in a cycle, which is an error, are visited once.
    fn add_data_source(&mut self, config: &Config, address: &Address, visiting: &mut BTreeSet<Address>) {
        if self.by.contains_key(address) || !visiting.insert(address.clone()) {
            return;
        }
        let Some(instance) = config.instances.get(address) else { return };
        let mut targets = BTreeSet::new();
        for reference in instance.references.iter() {
            let target = &reference.target;
            if target.is_data() {
                let members: Vec<&Address> = match config.instances.contains_key(target) {
                    true => vec![target],
                    false => config.instance_addresses(&target.stem).collect(),
                };
                for member in members {
                    self.add_data_source(config, member, visiting);
                }
            }
            self.add(config, target, &mut targets);
        }
        self.by.insert(address.clone(), targets);
    }
}
