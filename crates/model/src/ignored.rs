//! `lifecycle.ignoreChanges` in requests to drivers.

use std::sync::Arc;

use super::{Path, Value};

/// One entry of `lifecycle.ignoreChanges`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IgnoredChange {
    /// `all`: every configurable attribute.
    All,
    /// The attribute at this path and everything below it.
    At(Path),
}

impl IgnoredChange {
    /// Whether the entry names a path or what contains it.
    pub fn covers(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::At(ignored) => path.starts_with(ignored),
        }
    }
}

/// The changes that the plan of an existing object ignores.
#[derive(Clone, Debug, PartialEq)]
pub struct Ignored {
    /// The configuration as written. That of the request has the values of the object at the ignored paths.
    pub written: Value,
    pub changes: Arc<[IgnoredChange]>,
}
