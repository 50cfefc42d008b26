//! The records of a migration: objects as they were gathered, with the edges and flags that their manifests give them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gather::{Found, Gathered};
use super::providers::Chosen;
use super::references::Index;
use super::{File, Problem};
use crate::load::{self, Config};
use crate::model::{Address, ProviderUse, Reason, Record, RecordedObject, Severity};
use crate::plan::Through;

/// The records: objects as they were gathered, with the edges and flags that their manifests give them.
pub fn records(gathered: &[Gathered], chosen: &Chosen, files: &[File], given: &Config) -> Result<Vec<Record>, Problem> {
    let texts: Vec<(&str, &str)> = files.iter().map(|file| (file.name, file.text.as_str())).collect();
    let config = load::source::read_texts(&texts).config;
    // Documents of providers may be elsewhere, and a state may hold nothing.
    let expected = [Reason::ProviderNotFound, Reason::SourceIncomplete];
    let problems = config.instances.values().flat_map(|instance| instance.problems.iter()).chain(&config.incomplete);
    let mut faults = problems.filter(|one| one.severity == Severity::Error && !expected.contains(&one.reason));
    if let Some(problem) = faults.next() {
        return Err(Problem::plain(format!(
            "a manifest of the migration is not valid: {problem} (this is a fault of Purlin; report it)"
        )));
    }
    let settled: BTreeMap<Arc<str>, Arc<ProviderUse>> = settled(&config, given);
    let index = Index::new(gathered);
    let first = create_first(&config);
    let through = Through::new(&config);
    let mut records = Vec::new();
    for one in gathered.iter().filter(|one| !one.address.is_data) {
        let used = chosen.uses.get(&one.provider);
        let known = used.and_then(|used| settled.get(&used.name));
        let record = |found: &Found, dependencies: BTreeSet<Address>, create_before_destroy, skip_destroy| {
            Arc::new(RecordedObject {
                dependencies: dependencies.into_iter().collect(),
                create_before_destroy,
                skip_destroy,
                provider: known.or(used).cloned(),
                // Under which settings it was read is unknown while they are still to be written.
                provider_config: known.map_or_else(|| Arc::from(""), |used| used.digest.clone()),
                ..found.object.clone()
            })
        };
        let in_state = |found: &Found| -> BTreeSet<Address> {
            index.dependencies(one, &found.dependencies).iter().map(|other| other.dependency()).collect()
        };
        let as_in_state =
            |found: &Found| record(found, in_state(found), found.create_before_destroy, found.object.skip_destroy);
        for instance in &one.instances {
            let address = Address { name: one.name.clone(), key: instance.key.clone() };
            let mut made =
                Record::empty(config.namespace.clone(), address.clone(), Arc::from(""), one.type_name.clone());
            made.current = instance.current.as_ref().map(|found| match config.instances.get(&address) {
                Some(wanted) => {
                    let direct = || wanted.references.iter().map(|reference| reference.target.clone()).collect();
                    let targets = through.targets(&config, wanted).unwrap_or_else(direct);
                    record(found, targets, first.contains(&address), wanted.keeps_object())
                }
                None => as_in_state(found),
            });
            let deposed = instance.deposed.iter();
            made.deposed = deposed.map(|(key, found)| (*key, as_in_state(found))).collect();
            records.push(made);
        }
    }
    Ok(records)
}

/// The settings that are known, those that were given among them.
fn settled(config: &Config, given: &Config) -> BTreeMap<Arc<str>, Arc<ProviderUse>> {
    let mut all = Config {
        providers: config.providers.clone(),
        provider_configs: config.provider_configs.clone(),
        ..Config::default()
    };
    all.providers.extend(given.providers.clone());
    all.provider_configs.extend(given.provider_configs.clone());
    all.constant_providers().map(|used| (used.name.clone(), used)).collect()
}

/// Everything that is replaced by creating its successor first: what says so, and what that needs.
fn create_first(config: &Config) -> BTreeSet<Address> {
    let says = |(address, instance): (&Address, &Arc<load::Instance>)| {
        (instance.create_before_destroy == Some(true)).then(|| address.clone())
    };
    let mut open: Vec<Address> = config.instances.iter().filter_map(says).collect();
    let mut found = BTreeSet::new();
    while let Some(address) = open.pop() {
        let Some(instance) = config.instances.get(&address).filter(|_| found.insert(address)) else { continue };
        for reference in instance.references.iter() {
            let target = &reference.target;
            match config.instances.contains_key(target) {
                true => open.push(target.clone()),
                false => open.extend(config.instances.keys().filter(|other| other.name == target.name).cloned()),
            }
        }
    }
    found
}
