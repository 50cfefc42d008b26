//! How soon a change by somebody else is looked at. Pure: the time comes in.
//!
//! The first changes at once. Whoever goes on changing the object, such as another controller that wants the same field
//! to be something else, is answered ever more slowly, so that the two do not keep the API server busy.

use std::time::Duration;

use super::time::Time;

use super::retry;

/// So many changes are looked at without delay: a person at work makes a few.
const AT_ONCE: u32 = 3;
/// After so long without a change it all begins anew; longer than the longest delay.
const CALM: Duration = Duration::from_mins(10);
/// After so many corrections in a row somebody else is at it.
const CONTESTED: u32 = 5;

/// What has happened to one object lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    changes: u32,
    corrections: u32,
    /// When the last change was, or will be, looked at.
    last: Option<Time>,
}

impl Pace {
    /// A change was noticed: how long to wait before it is looked at.
    pub(super) fn noticed(&mut self, now: Time, random: u64) -> Duration {
        self.forget_calm(now);
        self.changes = self.changes.saturating_add(1);
        let wait = match self.changes.saturating_sub(AT_ONCE) {
            0 => Duration::ZERO,
            more => retry::delay(more, random),
        };
        self.last = Some(now + wait);
        wait
    }

    /// A change is set right: whether it is worth telling that this does not end.
    pub(super) fn corrected(&mut self, now: Time) -> bool {
        self.forget_calm(now);
        self.last = self.last.max(Some(now));
        self.corrections = self.corrections.saturating_add(1);
        self.corrections == CONTESTED
    }

    fn forget_calm(&mut self, now: Time) {
        if self.last.is_some_and(|last| last + CALM <= now) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_goes_on_is_answered_ever_more_slowly_until_it_is_calm() {
        let (mut pace, mut now) = (Pace::default(), Time::default());
        let mut waits = Vec::new();
        for _ in 0..14 {
            let wait = pace.noticed(now, 1000);
            now = now + wait;
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(pace.noticed(now + CALM, 1000), Duration::ZERO);
    }

    #[test]
    fn a_contest_is_told_once() {
        let (mut pace, now) = (Pace::default(), Time::default());
        let told: Vec<bool> = (0..8).map(|_| pace.corrected(now)).collect();
        assert_eq!(told, [false, false, false, false, true, false, false, false]);
        let told = (0..5).filter(|_| pace.corrected(now + CALM)).count();
        assert_eq!(told, 1, "after a calm it is news again");
    }
}
