//! The error of a conversion, an encoding or an operation, with the place inside the value.

use std::fmt;

use super::{Path, Step};

/// It never contains the value, which may be sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// From the root of the value.
    pub path: Path,
    pub message: String,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self::at(Path::default(), message)
    }

    /// An error at a path from the root.
    pub fn at(path: Path, message: impl Into<String>) -> Self {
        Self { path, message: message.into() }
    }

    /// The error from outside of the part at `step`.
    #[must_use]
    pub(crate) fn inside(mut self, step: Step) -> Self {
        self.path.0.insert(0, step);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.0.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
