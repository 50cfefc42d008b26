//! The time that the caller passes with events.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A monotonic time: the duration since the start of the process.
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

/// A point in time on both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Monotonic, for timers.
    pub time: Time,
    /// Wall clock, for status and events.
    pub wall: Timestamp,
}

impl Moment {
    /// What the wall clock shows at a later time.
    pub fn wall_time_of(&self, at: Time) -> Timestamp {
        let later = SignedDuration::try_from(at - self.time).ok();
        later.and_then(|later| self.wall.checked_add(later).ok()).unwrap_or(Timestamp::MAX)
    }

    /// The monotonic time at which the wall clock shows `at`; now if that is past.
    pub fn time_of(&self, at: Timestamp) -> Time {
        self.time + Duration::try_from(at.duration_since(self.wall)).unwrap_or(Duration::ZERO)
    }
}
