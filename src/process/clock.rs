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
    #[expect(clippy::disallowed_methods, reason = "this is where the real time comes from")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
