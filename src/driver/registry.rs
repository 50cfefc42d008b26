//! Which driver serves a type.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Driver;

/// The drivers by the types they serve.
#[derive(Clone, Default)]
pub struct Registry {
    drivers: BTreeMap<Arc<str>, Arc<dyn Driver>>,
}

impl Registry {
    /// A registry with one driver more; it replaces what served the type.
    #[must_use]
    pub fn with(mut self, type_name: impl Into<Arc<str>>, driver: Arc<dyn Driver>) -> Self {
        self.drivers.insert(type_name.into(), driver);
        self
    }

    /// The driver of a type.
    pub fn get(&self, type_name: &str) -> Option<&Arc<dyn Driver>> {
        self.drivers.get(type_name)
    }

    /// The types served, in order.
    pub fn types(&self) -> impl Iterator<Item = &Arc<str>> {
        self.drivers.keys()
    }
}
