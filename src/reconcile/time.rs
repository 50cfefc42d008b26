//! Time, as it comes in with events.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::Timestamp;

/// A point on a clock that never goes back: how long after the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// When something happened, on both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// For timers.
    pub time: Time,
    /// For what people read.
    pub wall: Timestamp,
}

impl Moment {
    /// When the wall clock will show `at`; now, if it has already.
    pub fn time_of(&self, at: Timestamp) -> Time {
        self.time + Duration::try_from(at.duration_since(self.wall)).unwrap_or(Duration::ZERO)
    }
}
