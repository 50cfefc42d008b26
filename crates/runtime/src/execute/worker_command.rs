//! The commands from a schedule to its workers.

use super::permits::Permit;
use super::step::StepInput;
use model::Step;

#[derive(Debug)]
pub enum WorkerCommand {
    /// Start a step, which holds its permit. The worker answers with a [`StepEnd`](super::StepEnd).
    Start(Box<StepInput>, Permit),
    /// End the wait of a running step for readiness, or for the end of an object that it has destroyed, also if it begins
    /// later.
    EndWait(Step),
}
