//! The paths that an expression reads, each replaced by a variable.

use super::Access;
use super::uses::Uses;

/// A path, replaced by the variable `@` + its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) access: Access,
    pub(super) mode: ReadMode,
    /// The parts of the value that are read, if the mode is `Value`.
    pub(super) uses: Uses,
}

/// How an expression reads a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReadMode {
    Value,
    /// `has(…)`: whether the path exists.
    Presence,
    /// `….?name`: its value as an optional, which is none if that segment or a later one does not exist.
    Optional(usize),
}
