//! Where the result of an expression comes from, as far as that is known before the evaluation.

use super::uses::Step;
use model::Segment;

/// The maximum number of paths of one result. Each `? :` can double them.
const MAX_PATHS: usize = 16;

/// A part of the value of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartPath {
    /// The position of the slot.
    pub slot: usize,
    pub path: Vec<Step>,
}

/// The parts of slots that a result may be, and which are not read yet. Without any, it is a new value: everything that
/// it was made of counts as read.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub paths: Vec<PartPath>,
    /// If the result is a new list: its items.
    pub items: Option<Box<Self>>,
}

impl Origin {
    pub fn slot(slot: usize) -> Self {
        Self { paths: vec![PartPath { slot, path: Vec::new() }], items: None }
    }

    /// A new list with these items.
    pub fn list(items: Self) -> Self {
        Self { paths: Vec::new(), items: Some(Box::new(items)) }
    }

    /// The result of one of two expressions.
    pub fn or(mut self, other: Self) -> Self {
        for path in other.paths {
            if !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
        self.items = match (self.items, other.items) {
            (Some(items), Some(others)) => Some(Box::new(items.or(*others))),
            (items, others) => items.or(others),
        };
        self
    }

    /// A part of this result.
    pub fn part(mut self, step: &Step) -> Self {
        self.paths.iter_mut().for_each(|part| part.path.push(step.clone()));
        let items = self.items.take().filter(|_| !matches!(step, Step::To(Segment::Name(_))));
        items.into_iter().fold(self, |origin, items| origin.or(*items))
    }

    /// Whether there are so many paths that they are better read as a whole.
    pub fn is_too_large(&self) -> bool {
        self.paths.len() > MAX_PATHS || self.items.as_ref().is_some_and(|items| items.is_too_large())
    }
}
