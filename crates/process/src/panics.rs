//! Counts panics, and logs where they happen. A message that was formatted is not logged, because it can contain a value
//! of a user.

use std::panic::{Location, PanicHookInfo};
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Replaces the hook of the process, which prints every message.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        COUNT.fetch_add(1, Ordering::Relaxed);
        let location = info.location().map(Location::to_string);
        tracing::error!(location, "{}", fixed_message(info));
    }));
}

/// How many panics there were since [`log_panics`].
pub fn panics() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

fn fixed_message<'a>(info: &PanicHookInfo<'a>) -> &'a str {
    match info.payload().downcast_ref::<&'static str>() {
        Some(message) => message,
        None => "a panic because of a bug in Purlin",
    }
}
