//! Limits that delay creates, updates and replacements. Destroys, recoveries and the recording of results never wait for
//! them.

use super::in_flight::Delay;
use model::Reason;

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
    /// The limit because of which a limited step must not start now. `before`: how many limited steps start before it.
    /// It is asked for every waiting step in every turn, so it must be cheap.
    fn limit(&self, before: usize) -> Option<StepLimit>;

    /// Why the step waits for that limit, and until when.
    fn delay(&self, limit: StepLimit, before: usize) -> Delay;

    /// A limited step starts.
    fn started(&mut self);
}

/// There is no limit.
impl StepQuota for () {
    fn limit(&self, _before: usize) -> Option<StepLimit> {
        None
    }

    fn delay(&self, _limit: StepLimit, _before: usize) -> Delay {
        Delay::new(Reason::QuotaExceeded, String::new())
    }

    fn started(&mut self) {}
}
