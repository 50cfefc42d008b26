//! Differences that stay.

use std::collections::BTreeSet;

/// Parts that the recorded line has, and why the result here is another one.
pub type Excuse = (&'static [&'static str], &'static str);

/// Excuses, and which of them were needed.
pub struct Excuses {
    all: &'static [Excuse],
    needed: BTreeSet<usize>,
}

impl Excuses {
    pub fn new(all: &'static [Excuse]) -> Self {
        Self { all, needed: BTreeSet::new() }
    }

    /// Whether there is an excuse for the result of a line that differs.
    pub fn has(&mut self, line: &str) -> bool {
        let found = self.all.iter().position(|(parts, _)| parts.iter().all(|part| line.contains(part)));
        self.needed.extend(found);
        found.is_some()
    }

    /// Fails if an excuse has nothing to excuse any more.
    pub fn check(&self) {
        let stale = self.all.iter().enumerate().filter(|(index, _)| !self.needed.contains(index));
        let stale: Vec<&str> = stale.map(|(_, (_, reason))| *reason).collect();
        assert!(stale.is_empty(), "nothing differs for this reason: {stale:?}");
    }
}
