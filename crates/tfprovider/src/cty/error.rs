//! The error of an encoding or a value, with its path.

use std::fmt;

use model::{Path, Segment};

/// An error in a value or its encoding. It never contains the value itself, which may be sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// From the root of the value.
    pub path: Path,
    pub what: String,
}

impl ValueError {
    /// An error at the current position.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { path: Path::default(), what: what.into() }
    }

    /// Adds the segment of the enclosing level. The path is built in reverse while the error propagates, so reading
    /// valid input does not pay for it; [`Self::rooted`] reverses it at the end.
    pub(super) fn inside(mut self, segment: Segment) -> Self {
        self.path.0.push(segment);
        self
    }

    pub(super) fn inside_name(self, name: &str) -> Self {
        self.inside(Segment::Name(name.into()))
    }

    /// Puts the path in order, from the root.
    pub(super) fn rooted(mut self) -> Self {
        self.path.0.reverse();
        self
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.0.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ValueError {}
