//! What checks of a provider's answers have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Value, ValueError};
use crate::model::{Path, Segment};

/// Collects what is wrong, and knows where it is.
#[derive(Default)]
pub(super) struct Check {
    at: Vec<Segment>,
    pub found: Vec<ValueError>,
}

impl Check {
    pub fn report(&mut self, what: impl Into<String>) {
        self.found.push(ValueError { path: Path(self.at.clone()), what: what.into() });
    }

    pub fn at_name<T>(&mut self, name: &Arc<str>, check: impl FnOnce(&mut Self) -> T) -> T {
        self.at(Segment::Name(name.clone()), check)
    }

    pub fn at_index<T>(&mut self, place: usize, check: impl FnOnce(&mut Self) -> T) -> T {
        self.at(Segment::Index(place), check)
    }

    fn at<T>(&mut self, segment: Segment, check: impl FnOnce(&mut Self) -> T) -> T {
        self.at.push(segment);
        let result = check(self);
        self.at.pop();
        result
    }

    /// Whether a check finds nothing; what it finds is not kept.
    pub fn passes(&mut self, check: impl FnOnce(&mut Self)) -> bool {
        let before = self.found.len();
        check(self);
        let passed = self.found.len() == before;
        self.found.truncate(before);
        passed
    }

    /// Reports keys that one side has and the other has not.
    pub fn keys(&mut self, wanted: &BTreeMap<Arc<str>, Value>, got: &BTreeMap<Arc<str>, Value>) {
        for key in got.keys().filter(|key| !wanted.contains_key(*key)) {
            self.report(format!("the key `{key}` has appeared"));
        }
        for key in wanted.keys().filter(|key| !got.contains_key(*key)) {
            self.report(format!("the key `{key}` has vanished"));
        }
    }
}
