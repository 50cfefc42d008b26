//! The error of a conversion or an operation, with the place inside the value.

use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Attribute(Arc<str>),
    Index(usize),
    Key(Arc<str>),
}

/// It never contains the value, which may be sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// From the root of the value.
    pub path: Vec<Step>,
    pub message: String,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self { path: Vec::new(), message: message.into() }
    }

    #[must_use]
    pub(crate) fn inside(mut self, step: Step) -> Self {
        self.path.insert(0, step);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.path.iter().enumerate() {
            match step {
                Step::Attribute(name) if position == 0 => write!(f, "attribute \"{name}\"")?,
                Step::Attribute(name) => write!(f, ".{name}")?,
                Step::Index(index) if position == 0 => write!(f, "element {index}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if position == 0 => write!(f, "element \"{key}\"")?,
                Step::Key(key) => write!(f, "[\"{key}\"]")?,
            }
        }
        if !self.path.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
