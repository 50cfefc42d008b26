//! When a provider that failed may be started again. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::plugin::PluginError;

/// The pause after the second failure in a row; each further one doubles it. After the first there is none: most
/// crashes are about one object, and the others shall not wait for it.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST: Duration = Duration::from_mins(1);

/// A process that lived so long was well: its end begins a new row.
const STABLE: SignedDuration = SignedDuration::from_mins(1);

/// The failures in a row of one provider.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    until: Timestamp,
    last: Option<PluginError>,
}

impl Backoff {
    /// It did not start.
    pub(super) fn failed(&mut self, now: Timestamp, error: PluginError) {
        self.failures += 1;
        let pause = match self.failures {
            0 | 1 => Duration::ZERO,
            failures => FIRST.saturating_mul(1 << (failures - 2).min(16)).min(LONGEST),
        };
        self.until = SignedDuration::try_from(pause).ok().and_then(|pause| now.checked_add(pause).ok()).unwrap_or(now);
        self.last = Some(error);
    }

    /// It ended though nobody had asked it to.
    pub(super) fn ended(&mut self, started: Timestamp, now: Timestamp, error: PluginError) {
        if now.duration_since(started) >= STABLE {
            self.failures = 0;
        }
        self.failed(now, error);
    }

    /// How long to wait for the next start.
    pub(super) fn pause(&self, now: Timestamp) -> Duration {
        Duration::try_from(self.until.duration_since(now)).unwrap_or_default()
    }

    /// Whether it is long enough ago to be forgotten.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.until) >= STABLE
    }

    /// How it failed the last time.
    pub(super) fn last(&self) -> Option<&PluginError> {
        self.last.as_ref()
    }

    /// What who does not want to wait is told.
    pub(super) fn refusal(&self) -> PluginError {
        let last = self.last.clone().expect("there is a pause only after a failure");
        PluginError::BackingOff { failures: self.failures, until: self.until, last: Box::new(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> PluginError {
        PluginError::Closing { provider: "x".into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_first_failure_costs_nothing_and_each_further_one_twice_the_pause() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..9)
            .map(|_| {
                backoff.failed(at(100), error());
                backoff.pause(at(100)).as_secs()
            })
            .collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.pause(at(130)).as_secs(), 30);
        assert_eq!(backoff.pause(at(161)).as_secs(), 0);
        assert!(backoff.refusal().to_string().contains("it failed 9 times in a row"));
    }

    #[test]
    fn one_that_was_well_for_a_minute_begins_anew() {
        let mut backoff = Backoff::default();
        (0..5).for_each(|_| backoff.ended(at(100), at(101), error()));
        assert!(!backoff.pause(at(101)).is_zero() && !backoff.is_over(at(101)));
        backoff.ended(at(200), at(260), error());
        assert!(backoff.pause(at(260)).is_zero());
        assert!(backoff.is_over(at(320)));
    }
}
