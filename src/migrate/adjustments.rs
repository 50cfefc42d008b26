//! What the check of a migration changes in its manifests, until the next plan has no changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How an argument is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adjustment {
    /// With the value of the state, not as in the configuration.
    Value,
    /// Not at all.
    Omitted,
}

/// By name of the Resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjustments {
    pub arguments: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Adjustment>>,
    /// Resources whose instances are those of the state, not those of the configuration.
    pub instances: BTreeSet<Arc<str>>,
    /// Resources without the expressions of `spec.lifecycle` and `spec.hooks`.
    pub settings: BTreeSet<Arc<str>>,
}

impl Adjustments {
    pub fn argument(&self, name: &str, argument: &str) -> Option<Adjustment> {
        self.arguments.get(name)?.get(argument).copied()
    }

    /// Adjusts an argument further. `false`: it is omitted already.
    pub fn adjust(&mut self, name: &Arc<str>, argument: &Arc<str>) -> bool {
        let known = self.arguments.entry(Arc::clone(name)).or_default();
        let next = match known.get(argument) {
            None => Adjustment::Value,
            Some(Adjustment::Value) => Adjustment::Omitted,
            Some(Adjustment::Omitted) => return false,
        };
        known.insert(Arc::clone(argument), next);
        true
    }
}
