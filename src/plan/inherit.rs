//! Who is create-before-destroy, and because of whom.

/// One object, as the rule sees it. Positions are positions in the slice given to [`effective`].
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Wanted: configured and not being deleted.
    pub wanted: bool,
    /// Wanted with `createBeforeDestroy: true`, or wanted with `deletionPolicy: Orphan` and replaced by this plan.
    pub asks: bool,
    /// The flag in the record of its current object. Counts only when it is no longer wanted.
    pub recorded_flag: bool,
    /// What its configuration refers to directly.
    pub wants: Vec<usize>,
    /// What the record of its current object names.
    pub used: Vec<usize>,
    /// What the records of its leftovers name.
    pub leftovers_used: Vec<usize>,
}

/// The effective flag of each object. `Some(chain)` means create-before-destroy; the chain leads from the direct
/// dependent that forces it to the one that asks for it, and is empty when the object asks for it itself (or a
/// leftover's record, or its own record when it is not wanted, makes it a source).
///
/// The rule is the least set of `docs/ordering.md`: sources, closed over what each member wants or used.
pub fn effective(_subjects: &[Subject]) -> Vec<Option<Vec<usize>>> {
    Vec::new()
}
