//! Marks: what a value carries along wherever it goes.

use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Must not be shown.
    Sensitive,
    /// Must not be stored.
    Ephemeral,
    /// Came from something deprecated, with the message.
    Deprecated(Arc<str>),
}

/// A set of marks. Empty ones take no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Option<Arc<BTreeSet<Mark>>>);

impl Marks {
    pub const NONE: Self = Self(None);

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn contains(&self, mark: &Mark) -> bool {
        self.iter().any(|known| known == mark)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter().flat_map(|marks| marks.iter())
    }

    pub fn add(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            (None, Some(_)) => self.0.clone_from(&other.0),
            (Some(own), Some(other)) => {
                if !other.is_subset(own) {
                    Arc::make_mut(own).extend(other.iter().cloned());
                }
            }
        }
    }

    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut marks = self.clone();
        marks.add(other);
        marks
    }

    #[must_use]
    pub fn without(&self, mark: &Mark) -> Self {
        self.iter().filter(|known| *known != mark).cloned().collect()
    }
}

impl FromIterator<Mark> for Marks {
    fn from_iter<T: IntoIterator<Item = Mark>>(marks: T) -> Self {
        let marks: BTreeSet<Mark> = marks.into_iter().collect();
        Self((!marks.is_empty()).then(|| Arc::new(marks)))
    }
}

impl From<Mark> for Marks {
    fn from(mark: Mark) -> Self {
        std::iter::once(mark).collect()
    }
}
