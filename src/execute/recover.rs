//! Recovery of open intents: what a crash left, settled before the object is planned again.

use jiff::Timestamp;

use crate::execute::Engine;
use crate::load::Instance;
use crate::model::Stored;
use crate::plan::Held;

/// What is known about the holder of an open intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderState {
    /// Certainly not running any more, or it has handed over.
    Gone,
    /// It may be running.
    Unknown,
}

/// What recovery came to.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// The intent is closed; this is the record now.
    Settled(Stored),
    /// The record held nothing but the intent of a create that made nothing, and is gone.
    Erased,
    /// The object must wait, with the time at which to try again (`None`: until something changes).
    Held(Held, Option<Timestamp>),
}

/// Settles the open intent of a record. Calls the driver when needed, and writes the outcome.
pub async fn recover(
    _engine: &Engine,
    stored: &Stored,
    _instance: Option<&Instance>,
    _holder: HolderState,
) -> Recovery {
    Recovery::Settled(stored.clone())
}
