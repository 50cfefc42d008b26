//! Executing: walks an `ActionGraph` in parallel. The only caller of `Driver::apply`, and the only writer of records.
//!
//! Every step that calls a driver goes: finalize, intend, call, record. The intent is durable before the call, the
//! result before anything else.

pub(crate) mod asking;
pub mod engine;
pub mod failure;
pub mod hooks;
pub mod journal;
pub(crate) mod mask;
pub mod moves;
pub mod order;
pub mod places;
pub mod progress;
pub(crate) mod publish;
pub mod recover;
pub mod run;
pub mod schedule;
mod step;
mod uncalled;
mod under_way;
pub mod wishes;
pub mod workers;

pub use engine::{Engine, Limits};
pub use failure::Failure;
pub use hooks::HookNote;
pub use journal::{Journal, JournalError};
pub use moves::{carry_out, conclude, prepare};
pub use order::Order;
pub use places::{Place, Places};
pub use progress::{Progress, ProgressKind, Summary};
pub use publish::hand_over_copies;
pub use recover::{HolderState, Recovery, recover};
pub use run::Run;
pub use schedule::{Adoption, Schedule, Stale};
pub use step::{StepEnd, StepInput};
pub use under_way::{Delay, News};
pub use wishes::Wishes;
pub use workers::{WorkerEvent, Workers};
