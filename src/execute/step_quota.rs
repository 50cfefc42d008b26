//! Limits that delay creates, updates and replacements. Destroys, recoveries and the recording of results never wait for
//! them.

use super::in_flight::Delay;

/// The limit that a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepLimit {
    /// The number of steps in a minute.
    Rate,
    /// The size of all records.
    RecordBytes,
}

/// The limits of a namespace at one moment.
pub trait StepQuota {
    /// Why a limited step must not start now. `before`: how many limited steps start before it.
    fn delay(&self, before: usize) -> Option<(StepLimit, Delay)>;

    /// A limited step starts.
    fn started(&mut self);
}

/// There is no limit.
impl StepQuota for () {
    fn delay(&self, _before: usize) -> Option<(StepLimit, Delay)> {
        None
    }

    fn started(&mut self) {}
}
