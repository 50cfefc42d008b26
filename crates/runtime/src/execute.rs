//! Execution of an `ActionGraph`. The only caller of `Driver::apply` and the only writer of records.
//!
//! Every step that calls a driver finalizes its plan, writes an intent, calls the driver and records the result. The
//! intent is durable before the call, and the result is durable before anything else happens.

pub(crate) mod driver_calls;
pub mod engine;
pub mod failure;
pub mod hooks;
pub mod journal;
pub mod moves;
pub mod worker_command;
pub mod permits;
pub mod progress;
pub(crate) mod publish;
pub mod recover;
pub mod run;
pub mod schedule;
pub mod step_quota;
mod step;
mod step_log;
mod unsent_calls;
mod in_flight;
pub mod desired;
pub mod workers;

pub use desired::DesiredDigests;
pub use engine::{Engine, Limits};
pub use failure::Failure;
pub use hooks::HookNote;
pub use in_flight::{Delay, StepUpdate};
pub use journal::{Journal, JournalError, Loss};
pub use moves::{apply_moves, conclude_moves, prepare_moves};
pub use permits::{Permit, Permits, Pool, PoolUsage};
pub use progress::{Progress, ProgressKind, Summary};
pub use publish::transfer_copies;
pub use recover::{HolderState, Recovery, recover, resumed};
pub use run::Run;
pub use schedule::{Adoption, Schedule, StalePlan, StepEvent, Written};
pub use step::{StepEnd, StepInput};
pub use step_quota::{StepLimit, StepQuota};
pub use worker_command::WorkerCommand;
pub use workers::{WorkerEvent, Workers};
