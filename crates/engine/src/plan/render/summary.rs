//! The headline of a plan: how many objects change, and how many cannot.

use std::collections::BTreeSet;
use std::fmt;

use super::problems::causes;
use model::text::counted;
use model::{Action, Address, Change, Diagnostic, errors};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that make the plan non-empty.
    pub changes: usize,
    /// Objects that are recorded for the first time. An imported object can also be updated or replaced.
    pub import: usize,
    pub create: usize,
    pub update: usize,
    pub replace: usize,
    /// Includes deposed objects.
    pub destroy: usize,
    /// Includes deposed objects.
    pub forget: usize,
    pub read: usize,
    /// Record-only steps that are shown. They are not changes.
    pub record: usize,
    /// Unchanged objects that are not ready yet.
    pub wait: usize,
    /// Objects that cannot be planned, for a reason of their own.
    pub erroneous: usize,
    /// Objects that wait for others that are blocked.
    pub waiting: usize,
    /// Objects that are held without an error, such as suspended objects, and held destroys.
    pub held: usize,
    /// Errors that are not about an object, such as unreadable files.
    pub general: usize,
}

impl Counts {
    pub fn of<'a>(changes: impl IntoIterator<Item = &'a Change> + Clone + 'a, diagnostics: &[Diagnostic]) -> Self {
        let mut counts =
            Self { general: errors(diagnostics).filter(|error| error.address.is_none()).count(), ..Self::default() };
        let erroneous: BTreeSet<&Address> = errors(diagnostics).filter_map(|error| error.address.as_ref()).collect();
        let waiting = causes(changes.clone());
        for change in changes {
            counts.changes += usize::from(change.is_change());
            counts.import += usize::from(change.imported);
            match change.action {
                Action::Create => counts.create += 1,
                Action::Update => counts.update += 1,
                Action::Replace => counts.replace += 1,
                Action::Destroy => counts.destroy += 1,
                Action::Forget => counts.forget += 1,
                Action::Read => counts.read += 1,
                Action::Record => counts.record += usize::from(!change.silent && !change.imported),
                Action::Wait => counts.wait += 1,
                Action::Blocked if waiting.contains_key(&change.address) => counts.waiting += 1,
                Action::Blocked if erroneous.contains(&change.address) => counts.erroneous += 1,
                Action::Blocked => counts.held += 1,
                Action::NoOp => {}
            }
            counts.held += usize::from(change.hold_destroy.is_some());
        }
        counts
    }

    /// The headline of a plan that only updates records.
    pub fn of_refresh(&self) -> String {
        let Self { record, forget, .. } = self;
        let summary = match record + forget {
            0 => "No differences: all objects that could be read match their records.".to_owned(),
            _ => format!("Refresh: {record} to record, {forget} to forget. No objects are changed."),
        };
        let obstacles = self.obstacles();
        if obstacles.is_empty() { summary } else { format!("{summary} {}.", obstacles.join(", ")) }
    }

    /// What the plan leaves out, as a part of a sentence.
    pub fn left_out(&self) -> Option<String> {
        let obstacles = self.obstacles();
        (!obstacles.is_empty()).then(|| obstacles.join(", "))
    }

    /// What cannot be done, as parts of a sentence.
    fn obstacles(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if self.general > 0 {
            parts.push(counted(self.general, "general error"));
        }
        for (count, singular, plural) in [
            (self.erroneous, "has errors", "have errors"),
            (self.waiting, "waits for others", "wait for others"),
            (self.held, "is held", "are held"),
        ] {
            if count > 0 {
                parts.push(format!("{} {}", counted(count, "object"), if count == 1 { singular } else { plural }));
            }
        }
        parts
    }

    /// The steps that change no object.
    fn other_steps(&self) -> Vec<String> {
        [(self.record, "record"), (self.wait, "wait for"), (self.read, "read")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} to {what}", counted(count, "object")))
            .collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let obstacles = self.obstacles();
        let steps = self.other_steps();
        if self.changes > 0 {
            let Self { create, update, replace, destroy, .. } = self;
            f.write_str("Plan: ")?;
            if self.import > 0 {
                write!(f, "{} to import, ", self.import)?;
            }
            write!(f, "{create} to create, {update} to update, {replace} to replace, {destroy} to destroy")?;
            if self.forget > 0 {
                write!(f, ", {} to forget", self.forget)?;
            }
            if self.read > 0 {
                write!(f, ", {} to read", self.read)?;
            }
            f.write_str(".")?;
            return if obstacles.is_empty() { Ok(()) } else { write!(f, " {}.", obstacles.join(", ")) };
        }
        match (obstacles.as_slice(), steps.as_slice()) {
            ([], []) => f.write_str("No changes: every object is up to date."),
            ([], steps) => write!(f, "No changes of objects: {}.", steps.join(", ")),
            (obstacles, []) => write!(f, "{}, nothing else to do.", obstacles.join(", ")),
            (obstacles, steps) => write!(f, "{}. No changes of objects: {}.", obstacles.join(", "), steps.join(", ")),
        }
    }
}
