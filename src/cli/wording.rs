//! How a step is put into words: its object, its verbs, and how long it took.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::{Operation, Step};

/// The object of a step, leftovers told apart.
pub fn subject(step: &Step) -> String {
    match step.deposed {
        Some(key) => format!("{} (deposed {key})", step.address),
        None => step.address.to_string(),
    }
}

/// The verbs of an operation.
pub struct Words {
    /// While it runs.
    pub doing: &'static str,
    /// Once it is over.
    pub done: &'static str,
}

/// The verbs of an operation.
pub fn words(operation: Operation) -> Words {
    let (doing, done) = match operation {
        Operation::Create => ("creating", "created"),
        Operation::Update => ("updating", "updated"),
        Operation::Record => ("recording", "recorded"),
        Operation::Wait => ("waiting until it is ready", "ready"),
        Operation::Destroy => ("destroying", "destroyed"),
        Operation::Forget => ("forgetting", "forgotten"),
        Operation::Read => ("reading", "read"),
    };
    Words { doing, done }
}

/// The time between two moments; zero should the clock have been set back.
pub fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// A duration for people: `12ms`, `3.4s`, `2m05s`.
pub fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis}ms"),
        millis @ 1000..60_000 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        _ => format!("{}m{:02}s", duration.as_secs() / 60, duration.as_secs() % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let texts = [12, 3456, 125_000].map(|millis| seconds(Duration::from_millis(millis)));
        assert_eq!(texts, ["12ms", "3.4s", "2m05s"]);
    }
}
