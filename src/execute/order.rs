//! What a schedule orders, and workers carry out.

use super::places::Place;
use super::step::StepInput;

/// A step to start. Its end is answered by a [`StepEnd`](super::StepEnd).
#[derive(Debug)]
pub struct Order {
    /// The step, with all that it needs.
    pub input: Box<StepInput>,
    /// The place that it has among the calls.
    pub place: Place,
}
