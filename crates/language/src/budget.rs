//! What an evaluation may cost.

use std::cell::Cell;

use crate::Failure;
use crate::cty::Value;

/// Steps and bytes that are left. A step is about a microsecond, and bytes are those that results take.
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
}

impl Budget {
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self { steps: Cell::new(steps), bytes: Cell::new(bytes) }
    }

    pub fn step(&self, count: u64) -> Result<(), Failure> {
        take(&self.steps, count, "takes too long")
    }

    /// To be asked before values are walked. Only what no configuration has in earnest is counted: a few characters of
    /// source can make a value whose parts are shared so often that walking it never ends.
    pub(crate) fn walk(&self, values: &[Value]) -> Result<(), Failure> {
        const LARGE: u64 = 1 << 20;
        let nodes: u64 = values.iter().map(|value| u64::from(value.nodes())).sum();
        if nodes < LARGE { Ok(()) } else { self.step(nodes) }
    }

    /// To be asked before the memory is allocated.
    pub fn hold(&self, bytes: usize) -> Result<(), Failure> {
        take(&self.bytes, bytes as u64, "needs too much memory")
    }
}

fn take(left: &Cell<u64>, count: u64, what: &str) -> Result<(), Failure> {
    match left.get().checked_sub(count) {
        Some(rest) => {
            left.set(rest);
            Ok(())
        }
        None => {
            left.set(0);
            Err(Failure::new(format!("the evaluation {what}")))
        }
    }
}

impl Default for Budget {
    /// Enough for the largest modules there are, a few seconds, and a gigabyte.
    fn default() -> Self {
        Self::new(10_000_000, 1 << 30)
    }
}
