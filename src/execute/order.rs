//! What a schedule orders, and workers carry out.

use super::places::Place;
use super::step::StepInput;

/// Something to be done.
#[derive(Debug)]
pub enum Order {
    /// Start a step, which has its place. Its end is answered by a [`StepEnd`](super::StepEnd).
    Start(Box<StepInput>, Place),
    /// End the waits for readiness of all steps that were started before.
    EndWaits,
}
