//! Execution of an `ActionGraph`. The only caller of `Driver::apply` and the only writer of records.
//!
//! Every step that calls a driver finalizes its plan, writes an intent, calls the driver and records the result. The
//! intent is durable before the call, and the result is durable before anything else happens.

pub mod engine;
pub mod failure;
pub mod hooks;
pub mod journal;
pub mod moves;
pub mod permits;
pub(crate) mod publish;
pub mod recover;
pub mod run;
pub mod schedule;
mod step;
mod in_flight;
pub mod workers;

pub use engine::{Engine, Limits};
pub use failure::Failure;
pub use hooks::HookNote;
pub use in_flight::{Delay, StepUpdate};
pub use journal::{Journal, JournalError, Loss};
pub use moves::{apply_moves, conclude_moves, prepare_moves};
pub use permits::{Permit, Permits, Pool, PoolUsage};
pub use publish::transfer_copies;
pub use recover::{HolderState, Recovery, recover, resumed};
pub use run::{Progress, ProgressKind, Run, Summary};
pub use schedule::{Adoption, Schedule, StalePlan, StepEvent, StepLimit, StepQuota, Written};
pub use step::{DesiredDigests, StepEnd, StepInput};
pub use workers::{WorkerCommand, WorkerEvent, Workers};
