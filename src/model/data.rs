//! ConfigMaps and Secrets: from where values come in (`inputs`).

use std::fmt;
use std::sync::Arc;

/// Which of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKind {
    /// Everything in it may be shown.
    ConfigMap,
    /// Everything in it is sensitive.
    Secret,
}

impl DataKind {
    /// The kind, as manifests have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// The resource, as paths and RBAC have it.
    pub fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}

/// One `ConfigMap` or Secret of the namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataRef {
    /// Its kind.
    pub kind: DataKind,
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for DataRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind.as_str(), self.name)
    }
}
