//! Which objects a value comes from.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::address::{Key, ModulePath, ResourceAddress};

/// Objects that have to be complete before something that uses them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// The instance with a key, or every instance of the block. A block without repetition has one instance.
    Resource(ResourceAddress, Option<Key>),
    /// Every object of an instance of a module call, or of all its instances, at any depth.
    Module {
        /// The module with the call.
        module: ModulePath,
        /// The name of the call.
        call: Arc<str>,
        /// The instance.
        key: Option<Key>,
    },
    /// What a linked variable of the root module comes from.
    Variable(Arc<str>),
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |key: &Option<Key>| key.as_ref().map(Key::to_string).unwrap_or_default();
        match self {
            Dependency::Resource(address, key) => write!(f, "{address}{}", text(key)),
            Dependency::Module { module, call, key } => {
                f.write_str(&module.join(format!("module.{call}{}", text(key))))
            }
            Dependency::Variable(name) => write!(f, "var.{name}"),
        }
    }
}

/// A set of dependencies, which is shared by what has the same. It is a sorted vector to save memory: the smallest node of a
/// `BTreeSet` has room for eleven of them, and most sets have only a few.
#[derive(Clone, Debug, Default)]
pub struct Uses(Option<Arc<Vec<Dependency>>>);

impl Uses {
    pub(crate) fn add(&mut self, other: &Uses) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            (None, Some(_)) => self.0.clone_from(&other.0),
            (Some(own), Some(other)) => {
                if !Arc::ptr_eq(own, other) && other.iter().any(|dependency| own.binary_search(dependency).is_err()) {
                    let own = Arc::make_mut(own);
                    own.extend(other.iter().cloned());
                    own.sort();
                    own.dedup();
                }
            }
        }
    }

    pub(crate) fn insert(&mut self, dependency: Dependency) {
        let own = self.0.get_or_insert_default();
        if let Err(at) = own.binary_search(&dependency) {
            Arc::make_mut(own).insert(at, dependency);
        }
    }

    /// The dependencies in order.
    pub fn iter(&self) -> impl Iterator<Item = &Dependency> {
        self.0.iter().flat_map(|all| all.iter())
    }

    pub(crate) fn to_set(&self) -> BTreeSet<Dependency> {
        self.iter().cloned().collect()
    }
}

impl FromIterator<Dependency> for Uses {
    fn from_iter<T: IntoIterator<Item = Dependency>>(all: T) -> Self {
        let mut all: Vec<Dependency> = all.into_iter().collect();
        all.sort();
        all.dedup();
        Self((!all.is_empty()).then(|| Arc::new(all)))
    }
}
