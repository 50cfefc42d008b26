//! Binds Resources to providers.
//!
//! A Resource uses the `ProviderConfig` that `spec.providerConfigRef` names, otherwise the `ProviderConfig` with the
//! prefix of its type as name, otherwise the `Provider` of that name without configuration. A Resource also depends on
//! the references of its provider configuration. So the objects that a provider configuration needs are created before,
//! and destroyed after, all objects of the provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Instance, ProviderBinding, ProviderConfig, ProviderSpec};
use model::{Diagnostic, Path, Reason};

/// Types of Purlin's built-in drivers. Their prefix names no provider.
pub const BUILT_IN: [&str; 2] = ["terraform_data", "kubernetes_object"];

/// The name of the `ProviderConfig` that a Resource uses. It may not exist.
pub fn provider_config_name(instance: &Instance) -> Arc<str> {
    instance.provider_config.clone().unwrap_or_else(|| prefix(&instance.type_name).into())
}

/// The prefix of a type: the default name of its provider.
pub fn prefix(type_name: &str) -> &str {
    type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix)
}

/// Resolves provider bindings and caches them by name.
pub struct ProviderResolver<'a> {
    providers: &'a BTreeMap<Arc<str>, Arc<ProviderSpec>>,
    configs: &'a BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    known: BTreeMap<Arc<str>, Option<Arc<ProviderBinding>>>,
}

impl<'a> ProviderResolver<'a> {
    pub fn new(
        providers: &'a BTreeMap<Arc<str>, Arc<ProviderSpec>>,
        configs: &'a BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    ) -> Self {
        Self { providers, configs, known: BTreeMap::new() }
    }

    /// Binds a Resource, unless it is bound already.
    pub fn resolve(&mut self, instance: &mut Arc<Instance>) {
        // What is removed from a program is destroyed with the provider of its record.
        let is_removed = instance.deleting && instance.address.is_qualified();
        if instance.provider.is_some() || instance.only_recorded || is_removed {
            return;
        }
        if instance.provider_config.is_none() && BUILT_IN.contains(&&*instance.type_name) {
            return;
        }
        let name = provider_config_name(instance);
        match self.binding(&name) {
            Some(provided) => {
                let instance = Arc::make_mut(instance);
                if !provided.references().is_empty() {
                    let mut references = instance.references.to_vec();
                    references.extend(provided.references().iter().cloned());
                    references.sort();
                    instance.references = references.into();
                }
                instance.provider = Some(provided);
            }
            None if instance.provider_config.is_some() => {
                let what = format!("there is no ProviderConfig `{name}`");
                let at = Path::default().name("spec").name("providerConfigRef").name("name");
                let hint = "create it, or correct the name; Purlin retries automatically";
                let problem = Diagnostic::error(&instance.address, Reason::ProviderNotFound, what).hint(hint);
                let problem = problem.from_source(instance.source_of(Some(&at))).at(at);
                let instance = Arc::make_mut(instance);
                // This function may run again for the same Resource.
                if !instance.problems.iter().any(|known| known.reason == Reason::ProviderNotFound) {
                    instance.problems.push(problem);
                }
            }
            None => {}
        }
    }

    fn binding(&mut self, name: &Arc<str>) -> Option<Arc<ProviderBinding>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let mut config = self.configs.get(name).cloned();
        if config.is_none() && self.providers.contains_key(name) {
            config = Some(Arc::new(ProviderConfig::without_configuration(name)));
        }
        let provided = config.map(|config| Arc::new(ProviderBinding::new(config, self.providers)));
        self.known.insert(name.clone(), provided.clone());
        provided
    }
}
