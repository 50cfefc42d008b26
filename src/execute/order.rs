//! What passes between a schedule and the workers that carry it out.

use super::places::Place;
use super::step::{StepEnd, StepInput};
use crate::execute::JournalError;
use crate::model::{Address, Stored};

/// Something to be done.
#[derive(Debug)]
pub enum Order {
    /// Start a step, which has its place.
    Start(Box<StepInput>, Place),
    /// End the waits for readiness of all steps that were started before.
    EndWaits,
    /// Remove a record that holds nothing any more.
    Sweep(Stored),
}

/// Something that was ordered has ended.
#[derive(Debug)]
pub enum Ended {
    /// A step.
    Step(Box<StepEnd>),
    /// The removal of an empty record.
    Swept(Address, Result<(), JournalError>),
}

impl Ended {
    /// Whose step it was.
    pub fn address(&self) -> &Address {
        match self {
            Self::Step(end) => &end.step.address,
            Self::Swept(address, _) => address,
        }
    }
}
