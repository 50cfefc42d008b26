//! The delay before a change by another client is handled. Pure: the caller passes the time.
//!
//! The first changes are handled without delay. If another client, such as a controller that manages the same field,
//! keeps changing the object, the delay grows, so that the two do not overload the API server.

use std::time::Duration;

use super::time::Time;

use super::retry;

/// How many changes are handled without delay: a user who edits the object makes a few.
const WITHOUT_DELAY: u32 = 3;
/// The count restarts after this long without a change. Longer than the longest delay.
const RESET_AFTER: Duration = Duration::from_mins(10);
/// After this many consecutive corrections the drift counts as contested.
const CONTESTED: u32 = 5;

/// The recent changes and corrections of one object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DriftBackoff {
    changes: u32,
    corrections: u32,
    /// When the last change was, or will be, handled.
    last: Option<Time>,
}

impl DriftBackoff {
    /// Records a change. Returns the delay before it is handled.
    pub(super) fn changed(&mut self, now: Time, random: u64) -> Duration {
        self.reset_if_idle(now);
        self.changes = self.changes.saturating_add(1);
        let wait = match self.changes.saturating_sub(WITHOUT_DELAY) {
            0 => Duration::ZERO,
            more => retry::delay(more, random),
        };
        self.last = Some(now + wait);
        wait
    }

    /// Records a correction. Returns whether to report that the drift is contested.
    pub(super) fn corrected(&mut self, now: Time) -> bool {
        self.reset_if_idle(now);
        self.last = self.last.max(Some(now));
        self.corrections = self.corrections.saturating_add(1);
        self.corrections == CONTESTED
    }

    fn reset_if_idle(&mut self, now: Time) {
        if self.last.is_some_and(|last| last + RESET_AFTER <= now) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_changes_are_handled_with_increasing_delays_until_they_cease() {
        let (mut backoff, mut now) = (DriftBackoff::default(), Time::default());
        let mut waits = Vec::new();
        for _ in 0..14 {
            let wait = backoff.changed(now, 1000);
            now = now + wait;
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.changed(now + RESET_AFTER, 1000), Duration::ZERO);
    }

    #[test]
    fn contested_drift_is_reported_once() {
        let (mut backoff, now) = (DriftBackoff::default(), Time::default());
        let reported: Vec<bool> = (0..8).map(|_| backoff.corrected(now)).collect();
        assert_eq!(reported, [false, false, false, false, true, false, false, false]);
        let reported = (0..5).filter(|_| backoff.corrected(now + RESET_AFTER)).count();
        assert_eq!(reported, 1, "it is reported again after a pause");
    }
}
