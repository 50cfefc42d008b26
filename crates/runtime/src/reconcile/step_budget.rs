//! The steps that a namespace may start in a minute. Pure: the caller passes the time.

use std::time::Duration;

use super::time::Time;

const MINUTE: Duration = Duration::from_mins(1);

/// A token bucket that holds the steps of one minute. Its state is one time: when it will be full again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepBudget {
    full_at: Time,
}

impl StepBudget {
    /// When the next step may start, if `before` others start first. It may start now if that is not later than `now`.
    pub(super) fn next(self, per_minute: u32, before: usize, now: Time) -> Time {
        let needed = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
        let spent = self.full_at.max(now) + interval(per_minute).saturating_mul(needed);
        Time(spent.0.saturating_sub(MINUTE))
    }

    pub(super) fn spend(&mut self, per_minute: u32, now: Time) {
        self.full_at = self.full_at.max(now) + interval(per_minute);
    }
}

fn interval(per_minute: u32) -> Duration {
    MINUTE / per_minute.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time(Duration::from_secs(seconds))
    }

    /// Starts steps as long as it may.
    fn start_all(budget: &mut StepBudget, per_minute: u32, now: Time) -> usize {
        let mut started = 0;
        while budget.next(per_minute, 0, now) <= now {
            budget.spend(per_minute, now);
            started += 1;
        }
        started
    }

    #[test]
    fn the_steps_of_a_minute_may_start_at_once_and_then_one_after_another() {
        let mut budget = StepBudget::default();
        assert_eq!(start_all(&mut budget, 6, at(100)), 6);
        assert_eq!(budget.next(6, 0, at(100)), at(110));
        assert_eq!(budget.next(6, 2, at(100)), at(130), "two others start before it");
        assert_eq!(start_all(&mut budget, 6, at(109)), 0);
        assert_eq!(start_all(&mut budget, 6, at(125)), 2);
        assert_eq!(budget.next(6, 0, at(125)), at(130));
        assert_eq!(start_all(&mut budget, 6, at(1000)), 6, "what was not used for longer is lost");
    }

    #[test]
    fn another_limit_applies_to_the_steps_that_were_started_before() {
        let mut budget = StepBudget::default();
        assert_eq!(start_all(&mut budget, 6, at(100)), 6);
        assert_eq!(budget.next(60, 0, at(100)), at(101));
        assert_eq!(start_all(&mut budget, 60, at(130)), 30);
    }
}
