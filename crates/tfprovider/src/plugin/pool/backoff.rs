//! Computes when a failed provider may be restarted. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::plugin::PluginError;

/// The delay after the second consecutive failure, doubled by each further one. There is none after the first: most
/// crashes are caused by one object, and other objects should not wait.
const INITIAL_DELAY: Duration = Duration::from_secs(1);

const MAX_DELAY: Duration = Duration::from_mins(1);

/// A process that ran this long is considered healthy: its exit starts a new series of failures.
const STABLE_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// The consecutive failures of one provider.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
    until: Timestamp,
    last: Option<PluginError>,
}

impl Backoff {
    /// Records a failed start.
    pub fn failed(&mut self, now: Timestamp, error: PluginError) {
        self.failures += 1;
        let pause = match self.failures {
            0 | 1 => Duration::ZERO,
            failures => INITIAL_DELAY.saturating_mul(1 << (failures - 2).min(16)).min(MAX_DELAY),
        };
        self.until = SignedDuration::try_from(pause).ok().and_then(|pause| now.checked_add(pause).ok()).unwrap_or(now);
        self.last = Some(error);
    }

    /// Records an unexpected exit.
    pub fn exited(&mut self, started: Timestamp, now: Timestamp, error: PluginError) {
        if now.duration_since(started) >= STABLE_AFTER {
            self.failures = 0;
        }
        self.failed(now, error);
    }

    /// The remaining delay before the next start.
    pub fn delay(&self, now: Timestamp) -> Duration {
        Duration::try_from(self.until.duration_since(now)).unwrap_or_default()
    }

    /// Whether the failures are old enough to be dropped.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now.duration_since(self.until) >= STABLE_AFTER
    }

    /// The error for callers that do not wait.
    pub fn error(&self) -> PluginError {
        let last = self.last.clone().expect("a delay exists only after a failure");
        PluginError::BackingOff { failures: self.failures, until: self.until, last: Box::new(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> PluginError {
        PluginError::ShuttingDown { provider: "x".into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_first_failure_has_no_delay_and_each_further_one_doubles_it() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..9)
            .map(|_| {
                backoff.failed(at(100), error());
                backoff.delay(at(100)).as_secs()
            })
            .collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.delay(at(130)).as_secs(), 30);
        assert_eq!(backoff.delay(at(161)).as_secs(), 0);
        assert!(backoff.error().to_string().contains("failed 9 times in a row"));
    }

    #[test]
    fn a_minute_without_failure_resets_the_backoff() {
        let mut backoff = Backoff::default();
        (0..5).for_each(|_| backoff.exited(at(100), at(101), error()));
        assert!(!backoff.delay(at(101)).is_zero() && !backoff.is_expired(at(101)));
        backoff.exited(at(200), at(260), error());
        assert!(backoff.delay(at(260)).is_zero());
        assert!(backoff.is_expired(at(320)));
    }
}
