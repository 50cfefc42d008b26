//! What everything that is attempted again and again shares: the pauses between failed attempts, and which of the errors
//! are logged.

use std::sync::Arc;
use std::time::Duration;

use kube::runtime::utils::Backoff;
use tokio::time::Instant;

use super::Random;

/// What worked for this long after a failure works again.
const STABLE: Duration = Duration::from_mins(1);

/// How often the same error is logged again.
const LOG_INTERVAL: Duration = Duration::from_mins(5);

/// The pauses between failed attempts: short after a brief outage, then longer, with jitter that keeps replicas from
/// trying at the same time.
///
/// Only time shows that something works again. A watch begins every attempt with good news, although its list fails.
pub struct Pauses {
    failures: u32,
    longest: Duration,
    random: Arc<dyn Random>,
    /// When the last pause ended.
    attempted_at: Option<Instant>,
}

impl Pauses {
    /// Pauses of at most ten seconds.
    pub fn new(random: Arc<dyn Random>) -> Self {
        Self::up_to(Duration::from_secs(10), random)
    }

    /// As `new`, with another maximum, of at most a minute.
    pub fn up_to(longest: Duration, random: Arc<dyn Random>) -> Self {
        Self { failures: 0, longest, random, attempted_at: None }
    }

    /// The pause after a failure.
    pub fn after_failure(&mut self) -> Duration {
        let now = Instant::now();
        if self.attempted_at.is_some_and(|at| now.saturating_duration_since(at) >= STABLE) {
            self.failures = 0;
        }
        self.failures += 1;
        let pause = model::backoff(self.failures, Duration::from_millis(200), self.longest);
        // Up to 10 % more.
        let pause = pause + pause * u32::try_from(self.random.number() % 1000).unwrap_or_default() / 10_000;
        self.attempted_at = Some(now + pause);
        pause
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.after_failure())
    }
}

impl Backoff for Pauses {
    /// Called for every event, and also at the beginning of an attempt.
    fn reset(&mut self) {}
}

/// Decides which errors of something that is attempted again and again are logged: each one once, and again after a while.
#[derive(Debug, Default)]
pub struct LoggedErrors {
    last: Option<(String, Instant)>,
}

impl LoggedErrors {
    /// Whether to log an error.
    pub fn is_news(&mut self, error: &str) -> bool {
        let now = Instant::now();
        let is_known =
            self.last.as_ref().is_some_and(|(known, at)| known == error && now.duration_since(*at) < LOG_INTERVAL);
        if !is_known {
            self.last = Some((error.to_owned(), now));
        }
        !is_known
    }

    /// An attempt has succeeded. Returns whether an error was logged since the last success.
    pub fn succeeded(&mut self) -> bool {
        self.last.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
    use kube::runtime::WatchStreamExt as _;

    use super::*;
    use crate::SystemRandom;

    /// A watch without permission: each attempt begins, and its list fails.
    #[tokio::test(start_paused = true)]
    async fn the_beginning_of_an_attempt_does_not_end_the_back_off() {
        let attempts = stream::repeat([Ok("begins"), Err("forbidden")]).flat_map(stream::iter);
        let began = Instant::now();
        let failures =
            attempts.backoff(Pauses::new(Arc::new(SystemRandom))).filter(|event| std::future::ready(event.is_err()));
        assert_eq!(failures.take(40).count().await, 40);
        let took = began.elapsed();
        assert!(took > Duration::from_mins(5), "40 attempts within {took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_worked_for_a_while_is_attempted_again_soon() {
        let mut pauses = Pauses::new(Arc::new(SystemRandom));
        let longest = (0..10).map(|_| pauses.after_failure()).max().unwrap_or_default();
        assert!((Duration::from_secs(10)..=Duration::from_secs(11)).contains(&longest), "{longest:?}");
        tokio::time::advance(longest + STABLE).await;
        assert!(pauses.after_failure() < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_logged_once_and_again_after_a_while() {
        let mut errors = LoggedErrors::default();
        assert!(errors.is_news("forbidden"));
        assert!(!errors.is_news("forbidden"));
        assert!(errors.is_news("expired"));
        tokio::time::advance(LOG_INTERVAL).await;
        assert!(errors.is_news("expired"));
        assert!(errors.succeeded() && !errors.succeeded());
        assert!(errors.is_news("expired"));
    }
}
