//! Waiting for conditions.

use std::thread;
use std::time::{Duration, Instant};

/// Polls `condition` until it is true.
///
/// # Panics
/// If this takes longer than `timeout`.
pub(crate) fn wait_until(description: &str, timeout: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(description, timeout, || condition().then_some(()));
}

/// Polls until there is a value, and returns it.
///
/// # Panics
/// If this takes longer than `timeout`.
pub(crate) fn wait_for<T>(description: &str, timeout: Duration, read: impl FnMut() -> Option<T>) -> T {
    poll(timeout, read).unwrap_or_else(|| panic!("timed out after {timeout:?}: {description}"))
}

/// Polls at least once, at growing intervals: first often, to detect fast changes quickly.
pub(crate) fn poll<T>(timeout: Duration, mut read: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        // Computed before the read, so that the last read starts after the timeout however long a read takes.
        let is_over = start.elapsed() >= timeout;
        if let Some(value) = read() {
            return Some(value);
        }
        if is_over {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}
