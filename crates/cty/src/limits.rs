//! The limits of what a reader of an encoding takes: the sender is not trusted.

use super::{Error, MAX_DEPTH, MAX_ELEMENTS};

/// How deep a reader is, and how many elements it has read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    depth: usize,
    elements: usize,
}

impl Limits {
    /// Counts an element, one level deeper. Call [`Limits::leave`] after it.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn enter(&mut self) -> Result<(), Error> {
        self.elements += 1;
        if self.depth >= MAX_DEPTH || self.elements > MAX_ELEMENTS {
            return Err(Error::new("the value is nested too deeply or has too many elements"));
        }
        self.depth += 1;
        Ok(())
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Adds the elements that a copy has counted.
    pub fn add_elements(&mut self, copy: Self) {
        self.elements = self.elements.max(copy.elements);
    }
}
