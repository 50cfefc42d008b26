//! Retry delays. Pure: the caller passes random bits for the jitter.

use std::time::Duration;

use model::Reason;

/// The delay after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// The longest delay: the end of a long outage is detected within minutes.
const LONGEST: Duration = Duration::from_mins(5);

/// The delay after the `failures`-th consecutive failure (from 1). It doubles each time, with 10 % jitter, so that
/// objects that failed together are not retried together.
pub fn delay(failures: u32, random: u64) -> Duration {
    spread(model::backoff(failures, FIRST, LONGEST), random)
}

/// As [`delay`], but at most a minute for a missing permission: no watch reports a new role binding, and the user who
/// grants it waits for the effect.
pub fn delay_after(reason: Reason, failures: u32, random: u64) -> Duration {
    const SOON: Duration = Duration::from_mins(1);
    let delay = delay(failures, random);
    if reason == Reason::Forbidden { delay.min(SOON) } else { delay }
}

/// The duration with up to 10 % jitter.
pub fn spread(base: Duration, random: u64) -> Duration {
    // 2,001 steps between 0.9 and 1.1.
    let steps = u32::try_from(random % 2001).unwrap_or_default();
    base * 9 / 10 + base * steps / 10_000
}

/// A random offset within the span. It spreads the start of recurring work.
pub fn within(span: Duration, random: u64) -> Duration {
    span * u32::try_from(random % 10_000).unwrap_or_default() / 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_minutes() {
        let middle = 1000;
        let seconds: Vec<u64> = [1, 2, 3, 4, 9, 10, 40].map(|n| delay(n, middle).as_secs()).into();
        assert_eq!(seconds, [1, 2, 4, 8, 256, 300, 300]);
    }

    #[test]
    fn a_missing_permission_is_retried_within_a_minute() {
        for random in [0, 1000, 2000] {
            assert_eq!(delay_after(Reason::Forbidden, 40, random), Duration::from_mins(1));
            assert_eq!(delay_after(Reason::OperationFailed, 40, random), delay(40, random));
        }
    }

    #[test]
    fn jitter_stays_within_ten_percent() {
        for random in [0, 1, 999, 2000, u64::MAX] {
            let delay = delay(5, random).as_secs_f64();
            assert!((14.4..=17.6).contains(&delay), "{delay}");
        }
        assert!(within(Duration::from_secs(10), u64::MAX) < Duration::from_secs(10));
    }
}
