//! The back-off of everything that is attempted again.

use std::time::Duration;

/// The pause after the `failures`-th failure in a row (from 1): `first`, doubled by each further one, up to `longest`.
pub fn backoff(failures: u32, first: Duration, longest: Duration) -> Duration {
    first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(longest)
}
