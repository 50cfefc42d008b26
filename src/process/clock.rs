//! The clock, as an argument.

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The present time, UTC.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
