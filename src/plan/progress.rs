//! One object that is being asked about: what was asked, what is known of it, and what comes next.

use std::sync::Arc;

use super::Question;
use super::draft::Draft;
use crate::model::{DeposedKey, Diagnostics, Drift, DriverError, Path, ProviderUse, RecordedObject, Value};

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    /// Reading the current object.
    Current,
    /// Reading a leftover.
    Leftover(DeposedKey),
    /// Reading what it has published.
    Copies,
    /// Reading the object to import.
    Import,
    /// Planning.
    Plan,
    /// Reading a data source.
    Data,
}

/// What comes next for an object.
pub(super) enum Next {
    /// A reply is awaited.
    Wait,
    /// These must be asked.
    Ask(Vec<(Topic, Question)>),
    /// All that had to be read is read; the configuration can be evaluated.
    Evaluate,
    Decided(Box<Draft>),
}

/// What reading found.
#[derive(Clone, Debug)]
pub(super) enum Refreshed {
    Found(Arc<RecordedObject>),
    Gone,
    /// It is not there, but was looked for under another configuration than the one that last saw it.
    Elsewhere,
    Failed(DriverError),
}

/// Why an object is planned anew instead of changed.
#[derive(Debug)]
pub(super) enum Replacement {
    Tainted,
    Requested,
    Interrupted,
    /// `replaceTriggeredBy`, and what it saw.
    Triggered(String),
    /// These attributes cannot be changed in place.
    Attributes(Vec<Path>),
}

/// What is known about an object that is being asked about.
#[derive(Default)]
pub(super) struct Progress {
    /// How many reads are not answered yet.
    pub reads_open: usize,
    /// The provider, with its settings; `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    /// `None`: not read, so that the record counts.
    pub current: Option<Refreshed>,
    pub leftovers: Vec<(DeposedKey, Refreshed)>,
    pub imported: Option<Arc<RecordedObject>>,
    pub import_asked: bool,
    /// The evaluated configuration that is asked for, once it fits the schema.
    pub config: Value,
    /// The evaluated configuration as it is written, when `ignoreChanges` makes another one of it.
    pub configured: Option<Value>,
    pub replacement: Option<Replacement>,
    /// Somebody else has changed what it has published.
    pub copies_drifted: bool,
    /// What somebody else has done, when the configuration asks for nothing new.
    pub drift: Option<Drift>,
    /// Why a data source cannot be read for the plan.
    pub delayed: Option<String>,
    /// The data source was read.
    pub data_read: bool,
    /// Warnings on the way.
    pub diagnostics: Diagnostics,
    /// What was warned of while it was looked for.
    pub heard: Diagnostics,
}

impl Progress {
    /// Whether the object was looked at, be it there or gone.
    pub fn was_read(&self) -> bool {
        self.data_read || self.imported.is_some() || matches!(self.current, Some(Refreshed::Found(_) | Refreshed::Gone))
    }

    /// Whether the recorded object was looked for and is gone.
    pub fn found_gone(&self) -> bool {
        matches!(self.current, Some(Refreshed::Gone))
    }
}

impl Replacement {
    /// The reason, as a plan shows it.
    pub fn because(&self) -> &str {
        match self {
            Self::Tainted => "tainted",
            Self::Requested => "requested",
            Self::Interrupted => "interrupted",
            Self::Triggered(because) => because,
            Self::Attributes(_) => "attributes force it",
        }
    }
}

/// Shorthand for an object that is decided.
pub(super) fn decided(draft: Draft) -> Next {
    Next::Decided(Box::new(draft))
}
