//! What is known of the steps of one object.

use crate::model::Step;

/// Something that is known of each of some steps, in the order of the steps. An object has one step or two, and there are
/// many objects: a list of two takes a tenth of the room that a tree does, and one of none takes no room.
#[derive(Clone, Debug)]
pub struct Steps<T>(Vec<(Step, T)>);

impl<T> Steps<T> {
    /// What is known of a step.
    pub fn get(&self, step: &Step) -> Option<&T> {
        self.place(step).ok().map(|at| &self.0[at].1)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, step: &Step) -> Option<&mut T> {
        self.place(step).ok().map(|at| &mut self.0[at].1)
    }

    /// Remembers something of a step, in place of what was known of it.
    pub fn insert(&mut self, step: Step, known: T) {
        match self.place(&step) {
            Ok(at) => self.0[at].1 = known,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (step, known));
            }
        }
    }

    /// Forgets a step, and gives what was known of it.
    pub fn remove(&mut self, step: &Step) -> Option<T> {
        let (_, known) = self.0.remove(self.place(step).ok()?);
        self.0.shrink_to_fit();
        Some(known)
    }

    /// Forgets all steps.
    pub fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Whether nothing is known of any step.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The steps, with what is known of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Step, &T)> {
        self.0.iter().map(|(step, known)| (step, known))
    }

    /// What is known of the steps, in their order.
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
