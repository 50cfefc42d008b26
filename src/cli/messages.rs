//! Texts for the steps of a run: the object, the verbs and the duration.

use std::time::Duration;

use jiff::Timestamp;

use model::{Operation, Step};

/// The address of a step's object, with the key if the object is deposed.
pub fn subject(step: &Step) -> String {
    match step.deposed {
        Some(key) => format!("{} (deposed {key})", step.address),
        None => step.address.to_string(),
    }
}

pub struct Verbs {
    pub in_progress: &'static str,
    pub done: &'static str,
}

pub fn verbs(operation: Operation) -> Verbs {
    let (in_progress, done) = match operation {
        Operation::Create => ("creating", "created"),
        Operation::Update => ("updating", "updated"),
        Operation::Record => ("recording", "recorded"),
        Operation::Wait => ("waiting until ready", "ready"),
        Operation::Destroy => ("destroying", "destroyed"),
        Operation::Forget => ("forgetting", "forgotten"),
        Operation::Read => ("reading", "read"),
    };
    Verbs { in_progress, done }
}

/// Zero if the clock was set back.
pub fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// `12ms`, `3.4s` or `2m05s`.
pub fn format_duration(duration: Duration) -> String {
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
        let texts = [12, 3456, 125_000].map(|millis| format_duration(Duration::from_millis(millis)));
        assert_eq!(texts, ["12ms", "3.4s", "2m05s"]);
    }
}
