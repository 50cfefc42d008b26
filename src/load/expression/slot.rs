//! The paths that an expression reads, in whose place variables stand.

use super::Access;

/// A path that is read, standing for the variable `@` + its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) access: Access,
    pub(super) how: How,
}

/// What an expression asks of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Its value.
    Value,
    /// How many there are in it, as `size(…)` does: its items may be unknown or sensitive.
    Shape,
    /// What a loop over it or `in` sees: the keys of a map, or a list with its items.
    Keys,
    /// `has(…)`: whether there is one.
    Presence,
    /// `….?name`: its value as an optional, which is none when nothing stands at that segment or behind it.
    Optional(usize),
}

impl How {
    /// Whether something of the value is read, and not only whether there is one.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Value | Self::Shape | Self::Keys)
    }
}
