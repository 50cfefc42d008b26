//! The desired state as planning sees it: all that one namespace wants, linked with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::expression::Variable;
use super::service::{BUILT_IN, Service, prefix};
use super::{
    Choice, Expansion, Family, Instance, Members, Provided, ProviderConfig, ProviderSpec, Reference, Repetition,
};
use crate::model::{Address, Diagnostic, Diagnostics, InstanceKey, Number, Path, ProviderUse, Segment, Value};

/// What one namespace wants, by address.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The namespace.
    pub namespace: Arc<str>,
    /// Every instance whose Resource exists, also those with errors and those being deleted.
    pub instances: BTreeMap<Address, Arc<Instance>>,
    /// Every Resource that says how many objects it stands for (`count`, `forEach`, `enabled`), by name. Their
    /// instances are in `instances`, as far as they are known.
    pub families: BTreeMap<Arc<str>, Arc<Family>>,
    /// Every `Provider`, by name.
    pub providers: BTreeMap<Arc<str>, Arc<ProviderSpec>>,
    /// Every `ProviderConfig`, by name.
    pub provider_configs: BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    /// Which state of `providers` and `provider_configs` this is: a later one of a namespace is greater, or equal when
    /// nothing has changed.
    pub settings_version: u64,
    /// Errors that hold back every orphan's destruction: part of the source could not be read.
    pub incomplete: Diagnostics,
}

impl Config {
    /// What could not be read and belongs to no Resource; the errors of Resources are told with them.
    pub fn unread(&self) -> impl Iterator<Item = &Diagnostic> {
        self.incomplete.iter().filter(|problem| problem.address.is_none())
    }

    /// Adds a Resource: its instance, or its family and the instances that are known at once. Call [`Config::link`]
    /// when all are there.
    pub fn add(&mut self, resource: Arc<Instance>) {
        let Some(repetition) = &resource.repetition else {
            self.instances.insert(resource.address.clone(), resource);
            return;
        };
        let family = Family::new(resource.clone(), repetition);
        self.instances.extend(family.instances().into_iter().map(|made| (made.address.clone(), Arc::new(made))));
        self.families.insert(resource.address.name.clone(), Arc::new(family));
    }

    /// The instances of a Resource, in order.
    pub fn family<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Address> {
        let from = self.instances.range(Address::single(name)..);
        from.map(|(address, _)| address).take_while(move |address| *address.name == *name)
    }

    /// Takes a Resource out, with all its instances.
    pub fn remove(&mut self, name: &Arc<str>) {
        self.families.remove(name);
        self.instances.retain(|address, _| address.name != *name);
    }

    /// The names of all Resources, in order.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let singles = self.instances.keys().filter(|address| !self.families.contains_key(&address.name));
        singles.map(|address| &address.name).chain(self.families.keys()).collect::<BTreeSet<_>>().into_iter()
    }

    /// Whether there is no Resource.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty() && self.families.is_empty()
    }

    /// The Resource of an address, with what all of its instances share.
    pub fn resource(&self, address: &Address) -> Option<&Arc<Instance>> {
        self.instances.get(address).or_else(|| self.families.get(&address.name).map(|family| &family.shared))
    }

    /// The same with families whose instances are known by now.
    #[must_use]
    pub fn expanded(&self, expansions: &BTreeMap<Arc<str>, Members>) -> Self {
        let mut config = self.clone();
        for (name, members) in expansions {
            let Some(family) = config.families.get_mut(name) else { continue };
            Arc::make_mut(family).expansion = Expansion::Known(members.clone());
            let made = family.instances();
            config.instances.extend(made.into_iter().map(|made| (made.address.clone(), Arc::new(made))));
        }
        config.link();
        config
    }

    /// Lets references name instances where the Resource that they name turns out to be a family. To be called again
    /// whenever instances were added.
    pub fn link(&mut self) {
        self.provide();
        let keyed: BTreeSet<Arc<str>> =
            self.families.iter().filter(|(_, family)| family.has_keys()).map(|(name, _)| name.clone()).collect();
        if keyed.is_empty() {
            return;
        }
        for instance in self.instances.values_mut() {
            if let Some(references) = linked(instance, &instance.references, &keyed) {
                Arc::make_mut(instance).references = references;
            }
        }
        for family in self.families.values_mut() {
            let Some(repetition) = &family.shared.repetition else { continue };
            let Some(references) = linked(&family.shared, &repetition.references, &keyed) else { continue };
            let repetition = Arc::new(Repetition { references, ..Repetition::clone(repetition) });
            let shared = Arc::new(Instance { repetition: Some(repetition), ..Instance::clone(&family.shared) });
            Arc::make_mut(family).shared = shared;
        }
    }

    /// Says of each Resource what serves it.
    fn provide(&mut self) {
        let asks = |instance: &Arc<Instance>| instance.provider_config.is_some();
        let none = self.providers.is_empty() && self.provider_configs.is_empty();
        if none && !self.instances.values().any(asks) && !self.families.values().any(|family| asks(&family.shared)) {
            return;
        }
        let mut service = Service::new(&self.providers, &self.provider_configs);
        for instance in self.instances.values_mut() {
            service.serve(instance);
        }
        for family in self.families.values_mut() {
            let mut shared = family.shared.clone();
            service.serve(&mut shared);
            if !Arc::ptr_eq(&shared, &family.shared) {
                Arc::make_mut(family).shared = shared;
            }
        }
    }

    /// The provider that serves a type when its Resource names none; `None` also when its settings are not known yet.
    pub fn provider_of(&self, type_name: &str) -> Option<Arc<ProviderUse>> {
        let name = prefix(type_name);
        self.constant_providers().find(|used| *used.name == *name && !BUILT_IN.contains(&type_name))
    }

    /// The settings that are known whatever is planned: by the name of their `ProviderConfig`.
    pub fn constant_providers(&self) -> impl Iterator<Item = Arc<ProviderUse>> + '_ {
        let configs = self.provider_configs.values().cloned();
        let named = |name: &&Arc<str>| !self.provider_configs.contains_key(*name);
        let bare = self.providers.keys().filter(named).map(|name| Arc::new(ProviderConfig::without_settings(name)));
        let constant = configs.chain(bare).filter(|config| config.references.is_empty());
        constant.filter_map(|config| Provided::new(config, &self.providers).constant())
    }
}

/// The references with the instances that they mean, when any of them means another target than it has now.
fn linked(instance: &Instance, references: &[Reference], keyed: &BTreeSet<Arc<str>>) -> Option<Arc<[Reference]>> {
    let target = |reference: &Reference| {
        let name = &reference.target.name;
        if !keyed.contains(name) {
            return Address::single(name.clone());
        }
        let key = reference.choice.as_ref().and_then(|choice| chosen(instance, choice)).unwrap_or(InstanceKey::All);
        Address { name: name.clone(), key }
    };
    if references.iter().all(|reference| target(reference) == reference.target) {
        return None;
    }
    let mut linked: Vec<Reference> =
        references.iter().map(|reference| Reference { target: target(reference), ..reference.clone() }).collect();
    linked.sort();
    Some(linked.into())
}

/// The instance that an expression of `instance` names; `None` when only the whole family can be meant, since the
/// choice hangs on a value that is not known yet.
fn chosen(instance: &Instance, choice: &Choice) -> Option<InstanceKey> {
    let key = match choice {
        Choice::Instance(Segment::Name(key)) => return Some(InstanceKey::Key(key.clone())),
        Choice::Instance(Segment::Index(index)) => return Some(InstanceKey::Index(*index as u64)),
        Choice::By(variable, segments) => {
            let value = match variable {
                Variable::Count => instance.count(),
                Variable::Each => instance.each(),
                _ => None,
            };
            value?.at(&Path(segments.to_vec()))?
        }
    };
    match key.unmarked() {
        Value::String(key) => Some(InstanceKey::Key(key.clone())),
        Value::Number(Number::Int(index)) => u64::try_from(*index).ok().map(InstanceKey::Index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::source::read_texts;

    fn config(specs: &[(&str, &str)]) -> Config {
        let document = |(name, spec): &(&str, &str)| {
            format!(
                "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{name: {name}}}\nspec: {{type: t, {spec}}}\n---\n"
            )
        };
        read_texts(&[("f.yaml", &specs.iter().map(document).collect::<String>())]).config
    }

    fn told(config: &Config) -> Vec<String> {
        let told = |(address, instance): (&Address, &Arc<Instance>)| {
            let targets: Vec<String> = instance.references.iter().map(|r| r.target.to_string()).collect();
            format!("{address}: {}", targets.join(" "))
        };
        config.instances.iter().map(told).collect()
    }

    #[test]
    fn references_name_instances_where_the_place_tells_which() {
        let config = config(&[
            ("a", "forEach: {x: 1, y: 2}"),
            ("n", "count: 2"),
            ("s", "config: {x: 1}"),
            ("b", "forEach: [x, y], config: {v: ['${a[each.key].id}', \"${a['x'].id + a.y.id}\", '${s[each.key]}']}"),
            ("c", "count: 1, config: {v: ['${n[count.index].id}', '${size(n)}', '${has(a.x)}', '${n[0].id + 1}']}"),
            ("d", "dependsOn: [{name: a}], config: {v: '${n[7].id}'}"),
        ]);
        let found = told(&config);
        let expected = [
            r#"a["x"]: "#,
            r#"a["y"]: "#,
            r#"b["x"]: a["x"] a["x"] a["y"] s"#,
            r#"b["y"]: a["x"] a["y"] a["y"] s"#,
            "c[0]: a n n[0] n[0]",
            "d: a n[7]",
            "n[0]: ",
            "n[1]: ",
            "s: ",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_instance_chosen_by_a_value_that_is_not_known_yet_means_the_whole_family() {
        let mut config = config(&[
            ("a", "forEach: [x]"),
            ("b", "forEach: '${s.all}', config: {v: '${a[each.value].id}', w: '${a[each.key].id}'}"),
        ]);
        let keys = BTreeMap::from([("x".into(), Value::Unknown), ("z".into(), Value::from("x"))]);
        config = config.expanded(&BTreeMap::from([("b".into(), Members::Keys(keys))]));
        assert_eq!(told(&config), [r#"a["x"]: "#, r#"b["x"]: a a["x"] s"#, r#"b["z"]: a["x"] a["z"] s"#]);
    }

    #[test]
    fn what_hangs_on_expressions_stays_open() {
        let config = config(&[("a", "count: '${b.n}'"), ("b", "enabled: false"), ("c", "enabledWhen: '${a == []}'")]);
        assert!(config.instances.is_empty() && !config.is_empty());
        assert!(config.families["a"].is_open() && config.families["b"].is_disabled() && config.families["c"].is_open());
        assert_eq!(config.names().map(AsRef::as_ref).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
