//! Executing: walks an `ActionGraph` in parallel. The only caller of `Driver::apply`, and the only writer of records.
//!
//! Every step that calls a driver goes: finalize, intend, call, record. The intent is durable before the call, the
//! result before anything else.

pub mod consult;
pub mod engine;
pub mod journal;
pub mod progress;
pub mod recover;
pub mod run;

pub use consult::plan;
pub use engine::{Engine, Limits};
pub use journal::{Journal, JournalError};
pub use progress::{Progress, ProgressKind, Summary};
pub use recover::{HolderState, Recovery, recover};
pub use run::Run;
