//! Maps types to drivers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::masked::Masked;
use super::offline::Offline;
use super::publish::Publisher;
use super::{Driver, KubernetesObject, Providers, TerraformData, kubernetes_object, terraform_data};
use model::TypeName;

/// The drivers by type, each in the layer that masks secrets.
#[derive(Clone, Default)]
pub struct Registry {
    drivers: BTreeMap<TypeName, Arc<dyn Driver>>,
    families: BTreeMap<Arc<str>, Arc<dyn Driver>>,
    providers: Option<ProviderEntry>,
    publisher: Option<Arc<dyn Publisher>>,
}

/// The driver for all types of providers, which may be wrapped, and the host of their processes.
#[derive(Clone)]
struct ProviderEntry {
    driver: Arc<dyn Driver>,
    host: Arc<Providers>,
}

impl Registry {
    /// The built-in types: `terraform_data` and `kubernetes_object`.
    pub fn built_in(kubernetes: KubernetesObject) -> Self {
        Self::default().with_built_in(kubernetes)
    }

    #[must_use]
    pub fn with_built_in(self, kubernetes: KubernetesObject) -> Self {
        let kubernetes = Arc::new(kubernetes);
        self.with(terraform_data::TYPE_NAME, Arc::new(TerraformData::new()))
            .with(kubernetes_object::TYPE_NAME, kubernetes.clone())
            .with_publisher(kubernetes)
    }

    #[must_use]
    pub fn with_publisher(mut self, publisher: Arc<dyn Publisher>) -> Self {
        self.publisher = Some(publisher);
        self
    }

    pub fn publisher(&self) -> Option<&Arc<dyn Publisher>> {
        self.publisher.as_ref()
    }

    /// Adds a driver, or replaces the driver of the type.
    #[must_use]
    pub fn with(mut self, type_name: impl Into<TypeName>, driver: Arc<dyn Driver>) -> Self {
        self.drivers.insert(type_name.into(), Arc::new(Masked(driver)));
        self
    }

    /// Adds a driver for `prefix` and for every type `prefix_...` without a separate driver.
    #[must_use]
    pub fn with_family(mut self, prefix: impl Into<Arc<str>>, driver: Arc<dyn Driver>) -> Self {
        self.families.insert(prefix.into(), Arc::new(Masked(driver)));
        self
    }

    /// Serves all other types with providers.
    #[must_use]
    pub fn with_providers(mut self, host: Arc<Providers>) -> Self {
        self.providers = Some(ProviderEntry { driver: Arc::new(Masked(host.clone())), host });
        self
    }

    pub fn providers(&self) -> Option<&Arc<Providers>> {
        self.providers.as_ref().map(|hosted| &hosted.host)
    }

    /// The providers, if they serve the type.
    pub fn providers_serving(&self, type_name: &str) -> Option<&Arc<Providers>> {
        self.in_process_driver(type_name).is_none().then(|| self.providers())?
    }

    /// Replaces each driver with one that makes no calls.
    #[must_use]
    pub fn offline(self) -> Self {
        self.map_drivers(|driver| Arc::new(Offline::new(driver)))
    }

    /// Replaces each driver with `wrap(driver)`. The host of the providers is unchanged.
    #[must_use]
    fn map_drivers(self, wrap: impl Fn(Arc<dyn Driver>) -> Arc<dyn Driver>) -> Self {
        Self {
            drivers: self.drivers.into_iter().map(|(name, driver)| (name, wrap(driver))).collect(),
            families: self.families.into_iter().map(|(name, driver)| (name, wrap(driver))).collect(),
            providers: self
                .providers
                .map(|ProviderEntry { driver, host }| ProviderEntry { driver: wrap(driver), host }),
            publisher: None,
        }
    }

    pub fn get(&self, type_name: &str) -> Option<&Arc<dyn Driver>> {
        self.in_process_driver(type_name).or_else(|| self.providers.as_ref().map(|hosted| &hosted.driver))
    }

    fn in_process_driver(&self, type_name: &str) -> Option<&Arc<dyn Driver>> {
        let prefix = type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix);
        self.drivers.get(type_name).or_else(|| self.families.get(prefix))
    }

    /// The served types, sorted. A family is listed by its prefix only.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let prefixes = self.families.keys().map(AsRef::as_ref);
        let mut types: Vec<&str> = self.drivers.keys().map(AsRef::as_ref).chain(prefixes).collect();
        types.sort_unstable();
        types.into_iter()
    }
}
