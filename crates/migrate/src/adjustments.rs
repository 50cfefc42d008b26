//! What the check of a migration changes in its manifests, until the next plan has no changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How an argument is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adjustment {
    /// With the value of the state, not with the expressions of the configuration.
    Value,
    /// With the whole value of the state: the configuration may contain more than a plan shows.
    Whole,
    /// Not at all.
    Omitted,
}

/// An adjustment and why the plan needed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjusted {
    pub how: Adjustment,
    pub why: String,
}

/// By name of the Resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjustments {
    pub arguments: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Adjusted>>,
    /// Resources whose instances are those of the state, not those of the configuration.
    pub instances: BTreeSet<Arc<str>>,
    /// Resources without the expressions of `spec.lifecycle` and `spec.hooks`.
    pub settings: BTreeSet<Arc<str>>,
}

impl Adjustments {
    pub fn argument(&self, name: &str, argument: &str) -> Option<Adjustment> {
        Some(self.arguments.get(name)?.get(argument)?.how)
    }

    /// Adjusts an argument further. `false`: it is omitted already.
    pub fn adjust(&mut self, name: &Arc<str>, argument: &Arc<str>, why: &str) -> bool {
        let how = match self.argument(name, argument) {
            None => Adjustment::Value,
            Some(Adjustment::Value) => Adjustment::Whole,
            Some(Adjustment::Whole) => Adjustment::Omitted,
            Some(Adjustment::Omitted) => return false,
        };
        let known = self.arguments.entry(Arc::clone(name)).or_default();
        known.insert(Arc::clone(argument), Adjusted { how, why: why.to_owned() });
        true
    }
}
