//! What objects use through data sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::load::{Config, Instance};
use crate::model::Address;

/// What objects use through data sources. Records name nothing that has none: an object that reads a data source is
/// recorded as a user of what the data source depends on. So the order of a destroy is known when the data source is
/// gone.
#[derive(Default)]
pub struct Through {
    by: BTreeMap<Address, BTreeSet<Address>>,
}

impl Through {
    /// Of all data sources of a configuration.
    pub fn new(config: &Config) -> Self {
        let mut through = Self::default();
        // Their names stand together.
        let from = config.instances.range(Address::data("")..).map(|(address, _)| address);
        for address in from.take_while(|address| address.is_data()) {
            through.reach(config, address, &mut BTreeSet::new());
        }
        through
    }

    /// The Resources that an instance depends on, directly or through data sources; `None` when it reads none.
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
            let members = config.family(&target.name).filter_map(|member| self.by.get(member));
            targets.extend(members.flatten().cloned());
        }
    }

    /// Works out what is behind a data source. One in a cycle, which is refused, is looked at once.
    fn reach(&mut self, config: &Config, address: &Address, under_way: &mut BTreeSet<Address>) {
        if self.by.contains_key(address) || !under_way.insert(address.clone()) {
            return;
        }
        let Some(instance) = config.instances.get(address) else { return };
        let mut targets = BTreeSet::new();
        for reference in instance.references.iter() {
            let target = &reference.target;
            if target.is_data() {
                let members: Vec<&Address> = match config.instances.contains_key(target) {
                    true => vec![target],
                    false => config.family(&target.name).collect(),
                };
                for member in members {
                    self.reach(config, member, under_way);
                }
            }
            self.add(config, target, &mut targets);
        }
        self.by.insert(address.clone(), targets);
    }
}
