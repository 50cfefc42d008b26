//! The kinds whose objects have a state that is desired.

use std::sync::Arc;

use model::Address;

/// The kind of a written object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Resource,
    DataSource,
    Module,
}

impl Kind {
    /// The kind of this name. Any other name means a Resource.
    pub fn named(kind: &str) -> Self {
        match kind {
            api::DATA_SOURCE_KIND => Self::DataSource,
            api::MODULE_KIND => Self::Module,
            _ => Self::Resource,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resource => api::KIND,
            Self::DataSource => api::DATA_SOURCE_KIND,
            Self::Module => api::MODULE_KIND,
        }
    }

    pub fn address(self, name: Arc<str>) -> Address {
        match self {
            Self::Resource => Address::single(name),
            Self::DataSource => Address::data(&name),
            Self::Module => Address::module(&name),
        }
    }

    /// The field of the spec with the arguments.
    pub fn arguments(self) -> &'static str {
        if self == Self::Module { "variables" } else { "config" }
    }

    /// Whether users can set an annotation of Purlin on it.
    pub fn takes(self, annotation: &api::Annotation) -> bool {
        self == Self::Resource || annotation.on_all_kinds
    }
}
