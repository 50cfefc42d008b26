//! When to say that a step is still running, for output that cannot be redrawn.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::cli::messages::elapsed;
use model::Step;

/// When a step is reported for the first time.
const FIRST: Duration = Duration::from_secs(10);

/// The longest time between two reports of a step.
const LONGEST: Duration = Duration::from_mins(5);

/// The running steps, each with its start and the time after which it is reported next.
#[derive(Debug, Default)]
pub struct StillRunning(BTreeMap<Step, (Timestamp, Duration)>);

impl StillRunning {
    pub fn started(&mut self, step: &Step, at: Timestamp) {
        self.0.insert(step.clone(), (at, FIRST));
    }

    /// Returns how long the step ran; zero if it is not known to have started.
    pub fn ended(&mut self, step: &Step, at: Timestamp) -> Duration {
        self.0.remove(step).map_or(Duration::ZERO, |(since, _)| elapsed(since, at))
    }

    /// Returns the steps to report now and how long they have been running: after 10 seconds, then each time that the
    /// duration has doubled, and at least every five minutes.
    pub fn due(&mut self, now: Timestamp) -> Vec<(Step, Duration)> {
        let mut due = Vec::new();
        for (step, (since, next)) in &mut self.0 {
            let took = elapsed(*since, now);
            if took >= *next {
                due.push((step.clone(), took));
            }
            while *next <= took {
                *next += (*next).min(LONGEST);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Address, Operation};

    #[test]
    fn a_long_step_is_reported_less_and_less_often() {
        let step =
            Step { address: Address::single("db"), deposed: None, operation: Operation::Create, replaces: false };
        let at = |second: i64| Timestamp::from_second(1_000 + second).unwrap();
        let mut running = StillRunning::default();
        running.started(&step, at(0));
        let reported: Vec<i64> = (0..1_500).filter(|second| !running.due(at(*second)).is_empty()).collect();
        assert_eq!(reported, [10, 20, 40, 80, 160, 320, 620, 920, 1220]);
        assert_eq!(running.ended(&step, at(1_500)), Duration::from_mins(25));
        assert!(running.due(at(9_000)).is_empty());
    }

    #[test]
    fn a_step_is_reported_once_after_a_pause() {
        let step =
            Step { address: Address::single("db"), deposed: None, operation: Operation::Create, replaces: false };
        let mut running = StillRunning::default();
        running.started(&step, Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(100).unwrap();
        assert_eq!((running.due(later).len(), running.due(later).len()), (1, 0));
    }
}
