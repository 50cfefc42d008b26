//! Shared code of the checks of provider responses.

use std::sync::Arc;

use cty::{Error, Path, Step};

use super::Entries;

/// Collects errors with the path of the current position.
#[derive(Default)]
pub struct Checker {
    at: Vec<Step>,
    pub errors: Vec<Error>,
}

impl Checker {
    pub fn report(&mut self, what: impl Into<String>) {
        self.errors.push(Error::at(Path(self.at.clone()), what));
    }

    pub fn at_name<T>(&mut self, name: &Arc<str>, check: impl FnOnce(&mut Self) -> T) -> T {
        self.at(Step::Name(name.clone()), check)
    }

    pub fn at_index<T>(&mut self, place: usize, check: impl FnOnce(&mut Self) -> T) -> T {
        self.at(Step::Index(place), check)
    }

    fn at<T>(&mut self, step: Step, check: impl FnOnce(&mut Self) -> T) -> T {
        self.at.push(step);
        let result = check(self);
        self.at.pop();
        result
    }

    /// Whether a check reports no error. Its errors are discarded.
    pub fn passes(&mut self, check: impl FnOnce(&mut Self)) -> bool {
        let before = self.errors.len();
        check(self);
        let passed = self.errors.len() == before;
        self.errors.truncate(before);
        passed
    }

    /// Reports the keys that only one side has.
    pub fn keys(&mut self, expected: &Entries, actual: &Entries) {
        for key in actual.keys().filter(|key| !expected.contains_key(key)) {
            self.report(format!("the key `{key}` has appeared"));
        }
        for key in expected.keys().filter(|key| !actual.contains_key(key)) {
            self.report(format!("the key `{key}` has vanished"));
        }
    }
}
