//! Waiting for conditions.

use std::thread;
use std::time::{Duration, Instant};

/// Asks until the answer is `true`.
///
/// # Panics
/// If that takes longer than `timeout`.
pub(crate) fn wait_until(description: &str, timeout: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(description, timeout, || condition().then_some(()));
}

/// Asks until there is an answer, and returns it.
///
/// # Panics
/// If that takes longer than `timeout`.
pub(crate) fn wait_for<T>(description: &str, timeout: Duration, answer: impl FnMut() -> Option<T>) -> T {
    poll(timeout, answer).unwrap_or_else(|| panic!("waited {timeout:?} in vain: {description}"))
}

/// Asks at least once, and at growing intervals, for what happens at once should be seen at once.
pub(crate) fn poll<T>(timeout: Duration, mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        // Taken before asking: the last question is asked after the time is over, however long asking takes.
        let over = start.elapsed() >= timeout;
        if let Some(value) = answer() {
            return Some(value);
        }
        if over {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}
