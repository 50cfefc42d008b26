//! A small map from the steps of one object to a value.

use model::Step;

/// A map from steps to values, sorted by step. An object has one or two steps, and there are many objects: a short list
/// takes a tenth of the memory of a tree, and an empty one allocates nothing.
#[derive(Clone, Debug)]
pub struct Steps<T>(Vec<(Step, T)>);

impl<T> Steps<T> {
    pub fn get(&self, step: &Step) -> Option<&T> {
        self.place(step).ok().map(|at| &self.0[at].1)
    }

    pub fn insert(&mut self, step: Step, known: T) {
        match self.place(&step) {
            Ok(at) => self.0[at].1 = known,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (step, known));
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Step, &T)> {
        self.0.iter().map(|(step, known)| (step, known))
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, known)| known)
    }

    fn place(&self, step: &Step) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(step))
    }
}

impl<T> Default for Steps<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<(Step, T)> for Steps<T> {
    fn from_iter<I: IntoIterator<Item = (Step, T)>>(known: I) -> Self {
        let mut steps = Self::default();
        known.into_iter().for_each(|(step, known)| steps.insert(step, known));
        steps
    }
}
