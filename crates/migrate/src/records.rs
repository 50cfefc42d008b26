//! Creates the records of a migration: the converted objects with the dependencies and flags of their manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gather::{MigratedObject, MigratedResource};
use super::providers::ProviderMapping;
use super::references::Index;
use super::{File, Problem};
use engine::load::{self, Config};
use engine::plan::DataDependencies;
use model::{Address, ProviderUse, Reason, Record, RecordedObject, Severity};

/// Creates the records of all managed resources.
pub fn records(
    resources: &[MigratedResource],
    mapping: &ProviderMapping,
    files: &[File],
    given: &Config,
) -> Result<Vec<Record>, Problem> {
    let texts: Vec<(&str, &str)> = files.iter().map(|file| (file.name, file.text.as_str())).collect();
    let config = load::source::read_strings(&texts).config;
    // Provider documents may be in other files, and a state may be empty.
    let expected = [Reason::ProviderNotFound, Reason::SourceIncomplete];
    let problems = config.instances.values().flat_map(|instance| instance.problems.iter()).chain(&config.incomplete);
    let mut faults = problems.filter(|one| one.severity == Severity::Error && !expected.contains(&one.reason));
    if let Some(problem) = faults.next() {
        return Err(Problem::plain(format!(
            "a generated manifest is not valid: {problem} (this is a bug in Purlin; please report it)"
        )));
    }
    let known_providers: BTreeMap<Arc<str>, Arc<ProviderUse>> = known_providers(&config, given);
    let index = Index::new(resources);
    let first = create_first(&config);
    let through = DataDependencies::new(&config);
    let mut records = Vec::new();
    for one in resources.iter().filter(|one| !one.address.is_data) {
        let used = mapping.uses.get(&one.provider);
        let known = used.and_then(|used| known_providers.get(&used.name));
        let record = |found: &MigratedObject, dependencies: BTreeSet<Address>, create_before_destroy, skip_destroy| {
            Arc::new(RecordedObject {
                dependencies: dependencies.into_iter().collect(),
                create_before_destroy,
                skip_destroy,
                provider: known.or(used).cloned(),
                // The provider configuration is unknown until the user has completed it.
                provider_config: known.map_or_else(|| Arc::from(""), |used| used.digest.clone()),
                ..found.object.clone()
            })
        };
        let in_state = |found: &MigratedObject| -> BTreeSet<Address> {
            let all = index.dependencies(one, &found.dependencies).into_iter();
            all.filter(|other| !other.address.is_data).map(MigratedResource::dependency).collect()
        };
        let as_in_state = |found: &MigratedObject| {
            record(found, in_state(found), found.create_before_destroy, found.object.skip_destroy)
        };
        for instance in &one.instances {
            let address = Address { name: one.name.clone(), key: instance.key.clone() };
            let mut instance_record =
                Record::empty(config.namespace.clone(), address.clone(), Arc::from(""), one.type_name.clone());
            instance_record.current = instance.current.as_ref().map(|found| match config.instances.get(&address) {
                Some(desired) => {
                    let direct = || desired.references.iter().map(|reference| reference.target.clone()).collect();
                    let targets = through.targets(&config, desired).unwrap_or_else(direct);
                    record(found, targets, first.contains(&address), desired.keeps_object())
                }
                None => as_in_state(found),
            });
            let deposed = instance.deposed.iter();
            instance_record.deposed = deposed.map(|(key, found)| (*key, as_in_state(found))).collect();
            records.push(instance_record);
        }
    }
    Ok(records)
}

/// Returns the known provider configurations, including those in `given`.
fn known_providers(config: &Config, given: &Config) -> BTreeMap<Arc<str>, Arc<ProviderUse>> {
    let mut all = Config {
        providers: config.providers.clone(),
        provider_configs: config.provider_configs.clone(),
        ..Config::default()
    };
    all.providers.extend(given.providers.clone());
    all.provider_configs.extend(given.provider_configs.clone());
    all.constant_providers().map(|used| (used.name.clone(), used)).collect()
}

/// Returns all instances with `createBeforeDestroy`, and all their dependencies, which inherit it.
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
