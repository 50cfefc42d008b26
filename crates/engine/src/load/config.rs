//! The desired state of one namespace, with linked references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::expression::Variable;
use super::provider_resolver::{BUILT_IN, ProviderResolver, prefix};
use super::{
    Expansion, Family, Instance, InstanceKeys, InstanceSelector, ProviderBinding, ProviderConfig, ProviderSpec,
    Reference, Repetition,
};
use model::{
    Address, Diagnostic, Diagnostics, InstanceKey, Name, Namespace, Number, Path, ProviderUse, Segment, Stem, Value,
    in_stem,
};

/// The desired state of one namespace.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub namespace: Namespace,
    /// The instances of all Resources, including those with errors and those being deleted.
    pub instances: BTreeMap<Address, Arc<Instance>>,
    /// Every Resource with `count`, `forEach` or `enabled`, by name. Their known instances are in `instances`.
    pub families: BTreeMap<Stem, Arc<Family>>,
    /// The Modules, whose configurations give the Resources of their names. On files, the one of the directory has no name.
    pub modules: BTreeMap<Name, Arc<Instance>>,
    /// By name.
    pub providers: BTreeMap<Arc<str>, Arc<ProviderSpec>>,
    /// By name.
    pub provider_configs: BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    /// The version of `providers` and `provider_configs`. It grows with each change in a namespace.
    pub provider_config_version: u64,
    /// Errors that block the destruction of all orphans, because part of the source could not be read.
    pub incomplete: Diagnostics,
    /// The first file or document that cannot be read: it may contain what other manifests refer to.
    pub unreadable: Option<Arc<str>>,
}

impl Config {
    /// Returns the problems of the source that belong to no Resource. A Resource reports its own problems.
    pub fn source_problems(&self) -> impl Iterator<Item = &Diagnostic> {
        self.incomplete.iter().filter(|problem| problem.address.is_none())
    }

    /// Adds a Resource: its instance, or its family with the known instances; or a Module with those of its configuration. Call
    /// [`Config::link`] after adding all Resources.
    pub fn add(&mut self, resource: Arc<Instance>) {
        if resource.program.is_some() || resource.address.is_module() {
            return self.add_module(resource);
        }
        let Some(repetition) = &resource.repetition else {
            self.instances.insert(resource.address.clone(), resource);
            return;
        };
        let family = Family::new(resource.clone(), repetition);
        self.instances.extend(family.instances().into_iter().map(|made| (made.address.clone(), Arc::new(made))));
        self.families.insert(resource.address.stem.clone(), Arc::new(family));
    }

    /// Returns each Resource once: a single object, or the shared part of a family.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Instance>> {
        let singles = self.instances.values().filter(|instance| !self.families.contains_key(&instance.address.stem));
        singles.chain(self.families.values().map(|family| &family.shared))
    }

    /// Returns the addresses of the instances of a Resource, in order.
    pub fn instance_addresses<'a>(&'a self, name: &'a Stem) -> impl Iterator<Item = &'a Address> {
        in_stem(&self.instances, name).map(|(address, _)| address)
    }

    /// Removes a Resource with all its instances.
    pub fn remove(&mut self, stem: &Stem) {
        self.families.remove(stem);
        self.instances.retain(|address, _| address.stem != *stem);
    }

    pub fn stems(&self) -> impl Iterator<Item = &Stem> {
        let singles = self.instances.keys().filter(|address| !self.families.contains_key(&address.stem));
        singles.map(|address| &address.stem).chain(self.families.keys()).collect::<BTreeSet<_>>().into_iter()
    }

    pub fn is_empty(&self) -> bool {
        self.instances.is_empty() && self.families.is_empty()
    }

    /// Returns the instance of an address, the shared part of its family, or the Module.
    pub fn resource(&self, address: &Address) -> Option<&Arc<Instance>> {
        let family = || self.families.get(&address.stem).map(|family| &family.shared);
        let module = || self.modules.get(address.name()).filter(|_| address.is_single());
        self.instances.get(address).or_else(family).or_else(module)
    }

    /// Returns the families whose expressions decide whether a recorded object is still desired: its own, and those of the
    /// groups around it.
    pub fn gates(&self, recorded: &Address) -> impl Iterator<Item = &Arc<Family>> {
        let stems = std::iter::once(recorded.stem.clone()).chain(recorded.groups());
        stems.filter_map(|stem| self.families.get(&stem)).filter(|family| family.is_gate())
    }

    /// Returns the config with the instances of these families added.
    #[must_use]
    pub fn expanded(&self, expansions: &BTreeMap<Stem, InstanceKeys>) -> Self {
        let mut config = self.clone();
        config.add_resources_of_modules();
        for (name, members) in expansions.iter().filter(|(name, _)| !Address::single((*name).clone()).is_qualified()) {
            let Some(family) = config.families.get_mut(name) else { continue };
            Arc::make_mut(family).expansion = Expansion::Known(members.clone());
            let made = family.instances();
            config.instances.extend(made.into_iter().map(|made| (made.address.clone(), Arc::new(made))));
        }
        config.link();
        config
    }

    /// Resolves references to families into references to instances. Call it again after instances were added.
    pub fn link(&mut self) {
        self.bind_providers();
        self.link_outputs();
        let keyed: BTreeSet<Stem> =
            self.families.iter().filter(|(_, family)| family.has_keys()).map(|(name, _)| name.clone()).collect();
        if keyed.is_empty() {
            return;
        }
        for instance in self.instances.values_mut() {
            if let Some(references) = link_references(instance, &instance.references, &keyed) {
                Arc::make_mut(instance).references = references;
            }
        }
        for family in self.families.values_mut() {
            let Some(repetition) = &family.shared.repetition else { continue };
            let Some(references) = link_references(&family.shared, &repetition.references, &keyed) else { continue };
            let repetition = Arc::new(Repetition { references, ..Repetition::clone(repetition) });
            let shared = Arc::new(Instance { repetition: Some(repetition), ..Instance::clone(&family.shared) });
            Arc::make_mut(family).shared = shared;
        }
    }

    /// Binds each Resource to its provider.
    fn bind_providers(&mut self) {
        let is_asked = self.instances.values().any(|instance| instance.provider_config.is_some())
            || self.families.values().any(|family| family.shared.provider_config.is_some());
        if self.providers.is_empty() && self.provider_configs.is_empty() && !is_asked {
            return;
        }
        let mut service = ProviderResolver::new(&self.providers, &self.provider_configs);
        for instance in self.instances.values_mut() {
            service.resolve(instance);
        }
        for family in self.families.values_mut() {
            let mut shared = family.shared.clone();
            service.resolve(&mut shared);
            if !Arc::ptr_eq(&shared, &family.shared) {
                Arc::make_mut(family).shared = shared;
            }
        }
    }

    /// Returns the provider of a type for a Resource without `providerConfigRef`. `None` also if its configuration is
    /// not known yet.
    pub fn provider_of(&self, type_name: &str) -> Option<Arc<ProviderUse>> {
        let name = prefix(type_name);
        self.constant_providers().find(|used| *used.name == *name && !BUILT_IN.contains(&type_name))
    }

    /// Returns all providers whose configuration does not depend on the plan. A program gives all configurations that it has: an
    /// object of another one, which was removed, keeps the recorded one.
    pub fn constant_providers(&self) -> impl Iterator<Item = Arc<ProviderUse>> + '_ {
        let configs = self.provider_configs.values().cloned();
        let bare = self
            .providers
            .keys()
            .filter(|name| self.root_program().is_none() && !self.provider_configs.contains_key(*name))
            .map(|name| Arc::new(ProviderConfig::without_configuration(name)));
        let constant = configs.chain(bare).filter(|config| config.references.is_empty());
        constant.filter_map(|config| ProviderBinding::new(config, &self.providers).constant())
    }
}

/// Returns the references with resolved instances. `None`: no reference changes.
fn link_references(instance: &Instance, references: &[Reference], keyed: &BTreeSet<Stem>) -> Option<Arc<[Reference]>> {
    if references.iter().all(|reference| linked_target(instance, reference, keyed) == reference.target) {
        return None;
    }
    let mut linked: Vec<Reference> = references
        .iter()
        .map(|reference| Reference { target: linked_target(instance, reference, keyed), ..reference.clone() })
        .collect();
    linked.sort();
    Some(linked.into())
}

fn linked_target(instance: &Instance, reference: &Reference, keyed: &BTreeSet<Stem>) -> Address {
    let name = &reference.target.stem;
    if matches!(reference.selector, Some(InstanceSelector::Output(_))) {
        return reference.target.clone();
    }
    if !keyed.contains(name) {
        return Address::single(name.clone());
    }
    let selector = reference.selector.as_ref();
    let key = selector.and_then(|selector| selected_key(instance, selector)).unwrap_or(InstanceKey::All);
    name.clone().instance(key)
}

/// Returns the instance that an expression of `instance` selects. `None`: the selector is not known yet, so the
/// expression references the whole family.
fn selected_key(instance: &Instance, choice: &InstanceSelector) -> Option<InstanceKey> {
    let key = match choice {
        InstanceSelector::Instance(Segment::Name(key)) => return Some(InstanceKey::Key(key.clone())),
        InstanceSelector::Instance(Segment::Index(index)) => return Some(InstanceKey::Index(*index as u64)),
        InstanceSelector::Output(_) => return None,
        InstanceSelector::Variable(variable, segments) => {
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
    use crate::load::source::read_strings;

    fn config(specs: &[(&str, &str)]) -> Config {
        let documents = specs.iter().map(|(name, spec)| {
            format!(
                "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{name: {name}}}\nspec: {{type: t, {spec}}}\n---\n"
            )
        });
        read_strings(&[("f.yaml", &documents.collect::<String>())]).config
    }

    fn references_by_instance(config: &Config) -> Vec<String> {
        config
            .instances
            .iter()
            .map(|(address, instance)| {
                let targets: Vec<String> = instance.references.iter().map(|r| r.target.to_string()).collect();
                format!("{address}: {}", targets.join(" "))
            })
            .collect()
    }

    #[test]
    fn references_select_instances_when_the_key_is_known() {
        let config = config(&[
            ("a", "forEach: {x: 1, y: 2}"),
            ("n", "count: 2"),
            ("s", "config: {x: 1}"),
            ("b", "forEach: [x, y], config: {v: ['${a[each.key].id}', \"${a['x'].id + a.y.id}\", '${s[each.key]}']}"),
            ("c", "count: 1, config: {v: ['${n[count.index].id}', '${size(n)}', '${has(a.x)}', '${n[0].id + 1}']}"),
            ("d", "dependsOn: [{name: a}], config: {v: '${n[7].id}'}"),
        ]);
        let found = references_by_instance(&config);
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
    fn an_unknown_selector_references_the_whole_family() {
        let mut config = config(&[
            ("a", "forEach: [x]"),
            ("b", "forEach: '${s.all}', config: {v: '${a[each.value].id}', w: '${a[each.key].id}'}"),
        ]);
        let keys = BTreeMap::from([("x".into(), Value::Unknown), ("z".into(), Value::from("x"))]);
        config = config.expanded(&BTreeMap::from([("b".into(), InstanceKeys::Keys(keys))]));
        assert_eq!(
            references_by_instance(&config),
            [r#"a["x"]: "#, r#"b["x"]: a a["x"] s"#, r#"b["z"]: a["x"] a["z"] s"#]
        );
    }

    #[test]
    fn families_with_expressions_stay_pending() {
        let config = config(&[("a", "count: '${b.n}'"), ("b", "enabled: false"), ("c", "enabled: '${a == []}'")]);
        assert!(config.instances.is_empty() && !config.is_empty());
        assert!(
            config.families[&"a".into()].is_pending()
                && config.families[&"b".into()].is_disabled()
                && config.families[&"c".into()].is_pending()
        );
        assert_eq!(config.stems().map(ToString::to_string).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
