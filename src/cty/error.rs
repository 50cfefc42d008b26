//! What is wrong with an encoding or a value, and where.

use std::fmt;

use crate::model::{Path, Segment};

/// A value that cannot be read or written, or is not what it must be. Never tells the value itself, which may be sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// The place, from the root of the value.
    pub path: Path,
    /// What is wrong there.
    pub what: String,
}

impl ValueError {
    /// An error at the present place.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { path: Path::default(), what: what.into() }
    }

    /// The error seen from one level above. The path is built on the way out, so that reading what is right pays
    /// nothing for it; [`Self::rooted`] puts it in order at the end.
    pub(super) fn inside(mut self, segment: Segment) -> Self {
        self.path.0.push(segment);
        self
    }

    /// The error inside of the attribute or key `name`.
    pub(super) fn inside_name(self, name: &str) -> Self {
        self.inside(Segment::Name(name.into()))
    }

    /// The error with its path from the root on.
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
