//! When to try again what failed. Pure: the time comes in, and the jitter as random bits.

use std::time::Duration;

use crate::model::Reason;

/// The wait after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// No wait is longer: an outage of an hour should be noticed within minutes of its end.
const LONGEST: Duration = Duration::from_mins(5);

/// How long to wait after the `failures`-th failure in a row (from 1): doubled each time, and 10 % shorter or longer,
/// so that what failed together does not come back together.
pub fn delay(failures: u32, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let base = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    spread(base, random)
}

/// As [`delay`], for what failed for this reason. A missing permission is usually given by somebody who then waits, so
/// it is tried again within a minute: no watch tells of a new role binding.
pub fn delay_after(reason: Reason, failures: u32, random: u64) -> Duration {
    const SOON: Duration = Duration::from_mins(1);
    let delay = delay(failures, random);
    if reason == Reason::Forbidden { delay.min(SOON) } else { delay }
}

/// Whether what could not be planned for this reason may be possible later though nothing that is watched has changed:
/// somebody else has a part in it.
pub fn may_pass(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::OperationFailed
            | Reason::Forbidden
            | Reason::AlreadyExists
            | Reason::IdentityConflict
            | Reason::DriverFault
            | Reason::ProviderNotReady
            | Reason::InternalError
            | Reason::PreconditionFailed
            | Reason::PostconditionFailed
    )
}

/// A time span made up to 10 % shorter or longer.
pub fn spread(base: Duration, random: u64) -> Duration {
    // 2,001 steps between 0.9 and 1.1.
    let steps = u32::try_from(random % 2001).unwrap_or_default();
    base * 9 / 10 + base * steps / 10_000
}

/// A moment within the span, evenly: where a recurring duty begins, so that ten thousand of them do not fall together.
pub fn within(span: Duration, random: u64) -> Duration {
    span * u32::try_from(random % 10_000).unwrap_or_default() / 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        let middle = 1000;
        let seconds: Vec<u64> = [1, 2, 3, 4, 9, 10, 40].map(|n| delay(n, middle).as_secs()).into();
        assert_eq!(seconds, [1, 2, 4, 8, 256, 300, 300]);
    }

    #[test]
    fn a_missing_permission_is_tried_again_within_a_minute() {
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
