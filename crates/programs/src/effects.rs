//! What functions with effects give while changes are made.

use std::sync::OnceLock;

use jiff::Timestamp;
use language::Effects;
use process::{Clock as _, Random as _, SystemClock, SystemRandom};

/// A time as functions give it: in UTC, and without fractions of a second.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What functions with effects give while changes are made. `timestamp` gives one time for all of them, so that what is
/// evaluated again, for an object that waits, stays the same.
#[derive(Default)]
pub struct AtApply(OnceLock<Timestamp>);

impl Effects for AtApply {
    fn now(&self) -> String {
        rfc3339(*self.0.get_or_init(|| SystemClock.now()))
    }

    fn uuid(&self) -> String {
        SystemRandom.uuid()
    }

    fn salt(&self) -> [u8; 16] {
        SystemRandom.bytes()
    }
}
