//! What is known of the providers that serve the Resources of a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::inputs::config_keys;
use super::{Entry, Index};
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

impl Index {
    pub(super) fn provider_config_applied(&mut self, config: &Arc<ProviderConfig>) {
        let old = self.providers.applied(config.clone());
        let reader = reader(&config.name);
        self.inputs.follow(&reader, old.as_deref().map(config_keys), Some(config_keys(config)));
        self.served_by(&config.name);
    }

    pub(super) fn provider_config_deleted(&mut self, name: &Arc<str>) {
        let Some(old) = self.providers.deleted(name) else { return };
        self.inputs.follow(&reader(name), Some(config_keys(&old)), None);
        self.served_by(name);
    }

    /// What a `ProviderConfig` says has changed: all that it serves is looked at, and hangs on other objects than before.
    fn served_by(&mut self, name: &Arc<str>) {
        for served in self.wake_served(|instance| *provider::config_name(instance) == **name) {
            self.relink(&served);
        }
    }

    /// Wakes those Resources that providers have to do with.
    pub(super) fn wake_served(&mut self, which: impl Fn(&Instance) -> bool) -> Vec<Arc<str>> {
        let served = |entry: &&Entry| self.providers.version_for(&entry.instance).is_some() && which(&entry.instance);
        let names: Vec<_> = self.entries.values().filter(served).map(|one| one.instance.address.name.clone()).collect();
        self.woken.extend(names.iter().cloned());
        names
    }
}

/// As which reader of inputs a `ProviderConfig` is known. No Resource has such a name.
fn reader(config: &str) -> Arc<str> {
    format!("{SETTINGS}{config}").into()
}

pub(super) const SETTINGS: &str = "ProviderConfig ";
