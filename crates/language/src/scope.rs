//! What functions may see of the world, and what an evaluation may cost.

use std::cell::Cell;

use crate::Failure;
use crate::cty::Value;

/// What a function may read and may not know.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub files: &'a dyn Files,
    pub budget: &'a Budget,
    /// The time of the plan, in RFC 3339. Unknown without.
    pub plan_time: Option<&'a str>,
    /// Without effects, the results of `timestamp`, `uuid` and `bcrypt` are unknown, as while planning.
    pub effects: Option<&'a dyn Effects>,
    /// How many templates are around the expression.
    pub template_depth: usize,
}

/// Steps and bytes that are left. A step is about a microsecond, and bytes are those that results take.
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
    /// What both were at first.
    full: (u64, u64),
}

impl Budget {
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self { steps: Cell::new(steps), bytes: Cell::new(bytes), full: (steps, bytes) }
    }

    /// Begins again with what it was at first.
    pub fn refill(&self) {
        self.steps.set(self.full.0);
        self.bytes.set(self.full.1);
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

/// The files of a module.
pub trait Files {
    /// The content of a file. Relative paths begin at the module.
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError>;

    /// The regular files at and below a directory, relative to it, with `/` between names.
    fn list(&self, directory: &str) -> Result<Vec<String>, FileError>;

    /// An absolute path for `path`, which need not exist.
    fn absolute(&self, path: &str) -> String;

    /// The home directory that `~` stands for.
    fn home(&self) -> Option<String>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    Missing,
    Directory,
    /// The path leads out of the module.
    Outside,
    TooLarge,
    Unreadable,
}

/// What has another result each time.
pub trait Effects {
    /// The time, in RFC 3339 and UTC.
    fn now(&self) -> String;

    fn uuid(&self) -> String;

    /// Sixteen random bytes.
    fn salt(&self) -> [u8; 16];
}

/// No file at all.
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<Vec<u8>, FileError> {
        Err(FileError::Missing)
    }

    fn list(&self, _: &str) -> Result<Vec<String>, FileError> {
        Err(FileError::Missing)
    }

    fn absolute(&self, path: &str) -> String {
        format!("/{path}")
    }

    fn home(&self) -> Option<String> {
        None
    }
}
