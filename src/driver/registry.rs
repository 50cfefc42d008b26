//! Which driver serves a type.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::offline::Offline;
use super::publish::Publisher;
use super::{Driver, KubernetesObject, Providers, TerraformData, kubernetes_object, terraform_data};

/// The drivers by the types they serve.
#[derive(Clone, Default)]
pub struct Registry {
    drivers: BTreeMap<Arc<str>, Arc<dyn Driver>>,
    families: BTreeMap<Arc<str>, Arc<dyn Driver>>,
    providers: Option<Hosted>,
    publisher: Option<Arc<dyn Publisher>>,
}

/// The providers: as the driver of their types, which may be wrapped, and as what hosts them.
#[derive(Clone)]
struct Hosted {
    driver: Arc<dyn Driver>,
    host: Arc<Providers>,
}

impl Registry {
    /// The types that Purlin itself brings: `terraform_data` and `kubernetes_object`.
    pub fn built_in(kubernetes: KubernetesObject) -> Self {
        Self::default().with_built_in(kubernetes)
    }

    /// A registry with the types that Purlin itself brings as well.
    #[must_use]
    pub fn with_built_in(self, kubernetes: KubernetesObject) -> Self {
        let kubernetes = Arc::new(kubernetes);
        self.with(terraform_data::TYPE_NAME, Arc::new(TerraformData::new()))
            .with(kubernetes_object::TYPE_NAME, kubernetes.clone())
            .publishing_to(kubernetes)
    }

    /// A registry whose objects publish there.
    #[must_use]
    pub fn publishing_to(mut self, publisher: Arc<dyn Publisher>) -> Self {
        self.publisher = Some(publisher);
        self
    }

    /// Where copies of outputs are written.
    pub fn publisher(&self) -> Option<&Arc<dyn Publisher>> {
        self.publisher.as_ref()
    }

    /// A registry with one driver more; it replaces what served the type.
    #[must_use]
    pub fn with(mut self, type_name: impl Into<Arc<str>>, driver: Arc<dyn Driver>) -> Self {
        self.drivers.insert(type_name.into(), driver);
        self
    }

    /// A registry with a driver for `prefix` itself and every type `prefix_...` that no other driver serves.
    #[must_use]
    pub fn with_family(mut self, prefix: impl Into<Arc<str>>, driver: Arc<dyn Driver>) -> Self {
        self.families.insert(prefix.into(), driver);
        self
    }

    /// A registry whose other types are those of providers.
    #[must_use]
    pub fn with_providers(mut self, host: Arc<Providers>) -> Self {
        self.providers = Some(Hosted { driver: host.clone(), host });
        self
    }

    /// What hosts providers, if they are served.
    pub fn providers(&self) -> Option<&Arc<Providers>> {
        self.providers.as_ref().map(|hosted| &hosted.host)
    }

    /// The same, if it is a provider that serves the type.
    pub fn provider_of(&self, type_name: &str) -> Option<&Arc<Providers>> {
        self.own(type_name).is_none().then(|| self.providers())?
    }

    /// The same types, checked without a call to anybody.
    #[must_use]
    pub fn offline(self) -> Self {
        self.wrapped(|driver| Arc::new(Offline::new(driver)))
    }

    /// The same types, each served by what `wrap` makes of its driver. What hosts providers stays as it is.
    #[must_use]
    pub fn wrapped(self, wrap: impl Fn(Arc<dyn Driver>) -> Arc<dyn Driver>) -> Self {
        let named = |(name, driver)| (name, wrap(driver));
        Self {
            drivers: self.drivers.into_iter().map(&named).collect(),
            families: self.families.into_iter().map(&named).collect(),
            providers: self.providers.map(|Hosted { driver, host }| Hosted { driver: wrap(driver), host }),
            publisher: None,
        }
    }

    /// The driver of a type.
    pub fn get(&self, type_name: &str) -> Option<&Arc<dyn Driver>> {
        self.own(type_name).or_else(|| self.providers.as_ref().map(|hosted| &hosted.driver))
    }

    /// The driver of a type that no provider serves.
    fn own(&self, type_name: &str) -> Option<&Arc<dyn Driver>> {
        let prefix = type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix);
        self.drivers.get(type_name).or_else(|| self.families.get(prefix))
    }

    /// The types served, in order; of a family only its prefix.
    pub fn types(&self) -> impl Iterator<Item = &Arc<str>> {
        let mut types: Vec<_> = self.drivers.keys().chain(self.families.keys()).collect();
        types.sort();
        types.into_iter()
    }
}
