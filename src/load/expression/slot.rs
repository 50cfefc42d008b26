//! The paths that an expression reads, each replaced by a variable.

use super::Access;

/// A path, replaced by the variable `@` + its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) access: Access,
    pub(super) mode: ReadMode,
}

/// How an expression reads a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReadMode {
    Value,
    /// The number of its items, for `size(…)`. The items may be unknown or sensitive.
    Shape,
    /// The items that a loop or `in` visits: the keys of a map, or a list with its items.
    Keys,
    /// `has(…)`: whether the path exists.
    Presence,
    /// `….?name`: its value as an optional, which is none if that segment or a later one does not exist.
    Optional(usize),
}

impl ReadMode {
    /// Whether the value is read, not only its presence.
    pub(super) fn reads_value(self) -> bool {
        matches!(self, Self::Value | Self::Shape | Self::Keys)
    }
}
