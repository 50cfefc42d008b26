//! What is known of the providers that serve the Resources of a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::load::{Config, Instance, ProviderConfig, ProviderSpec, provider};

/// All Providers of the cluster, by name.
pub type Providers = Arc<BTreeMap<Arc<str>, Arc<ProviderSpec>>>;

#[derive(Debug, Default)]
pub(super) struct KnownProviders {
    all: Providers,
    configs: BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    /// Counts all changes.
    version: u64,
}

impl KnownProviders {
    /// The Providers are these from now on. Gives whether that is news.
    pub(super) fn providers(&mut self, all: Providers) -> bool {
        let news = !Arc::ptr_eq(&self.all, &all);
        self.all = all;
        self.version += u64::from(news);
        news
    }

    /// A `ProviderConfig` exists in this form.
    pub(super) fn applied(&mut self, config: Arc<ProviderConfig>) -> Option<Arc<ProviderConfig>> {
        self.version += 1;
        self.configs.insert(config.name.clone(), config)
    }

    /// A `ProviderConfig` is gone.
    pub(super) fn deleted(&mut self, name: &str) -> Option<Arc<ProviderConfig>> {
        self.version += 1;
        self.configs.remove(name)
    }

    /// A number that changes with everything that is known, for an object that providers have to do with.
    pub(super) fn version_for(&self, instance: &Instance) -> Option<u64> {
        is_served(instance).then_some(self.version)
    }

    /// The `ProviderConfig` of a Resource.
    pub(super) fn config_of(&self, instance: &Instance) -> Option<&Arc<ProviderConfig>> {
        is_served(instance).then(|| self.configs.get(&*provider::config_name(instance)))?
    }

    /// Puts what is known into a configuration.
    pub(super) fn fill(&self, config: &mut Config, resolved: impl Fn(&Arc<ProviderConfig>) -> Arc<ProviderConfig>) {
        config.providers = self.all.as_ref().clone();
        config.provider_configs = self.configs.iter().map(|(name, one)| (name.clone(), resolved(one))).collect();
    }

    /// The `ProviderConfig` of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<ProviderConfig>> {
        self.configs.get(name)
    }
}

/// Whether a provider serves the Resource, or would if it were there.
fn is_served(instance: &Instance) -> bool {
    instance.provider_config.is_some() || !provider::BUILT_IN.contains(&&*instance.type_name)
}
