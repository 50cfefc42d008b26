//! Which Plans are computed or deleted next. Pure: the caller passes the time.
//!
//! Namespaces take turns, and each has at most [`MAX_PER_NAMESPACE`] computations, so that many Plans of one namespace
//! delay those of the others by one computation at most.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::fair_queue::{Choice, FairQueue};
use crate::watch::PlanKey;
use model::{Namespace, Uid};

/// How many Plans are computed at the same time: each may need 100 MiB of memory and starts calls of providers.
pub const MAX_TOTAL: usize = 4;
/// So that a namespace whose providers do not respond occupies a part of [`MAX_TOTAL`] only.
pub const MAX_PER_NAMESPACE: usize = 2;

/// How a computation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The status has a result. The Plan is deleted at this time.
    Finished(Timestamp),
    /// It failed. It begins again at this time.
    Failed(Timestamp),
    /// The Plan does not exist anymore.
    Gone,
}

#[derive(Clone, Debug)]
struct KnownPlan {
    uid: Uid,
    generation: i64,
    state: State,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// It is being computed. `changed`: its spec has changed since.
    Running {
        changed: bool,
    },
    /// It is computed again at this time.
    Failed(Timestamp),
    /// It is deleted at this time.
    Finished(Timestamp),
}

#[derive(Debug, Default)]
pub struct PreviewQueue {
    known: BTreeMap<PlanKey, KnownPlan>,
    waiting: FairQueue<(PlanKey, Uid)>,
    /// The number of computations of each namespace.
    running: BTreeMap<Namespace, usize>,
}

impl PreviewQueue {
    /// A Plan was created or changed. Status writes do not change the generation.
    pub fn observe(&mut self, key: &PlanKey, uid: &Uid, generation: i64) {
        match self.known.get_mut(key) {
            Some(known) if known.uid == *uid => {
                if known.generation == generation {
                    return;
                }
                known.generation = generation;
                return self.repeat(key);
            }
            // The computation of an earlier Plan of the same name ends with `Gone`.
            _ => {
                let plan = KnownPlan { uid: uid.clone(), generation, state: State::Waiting, failures: 0 };
                self.known.insert(key.clone(), plan);
            }
        }
        self.waiting.push(&key.namespace, (key.clone(), uid.clone()));
    }

    /// Computes a Plan again: it may have changed since it was last read.
    pub fn repeat(&mut self, key: &PlanKey) {
        let Some(known) = self.known.get_mut(key) else { return };
        match &mut known.state {
            State::Waiting => return,
            State::Running { changed } => return *changed = true,
            State::Failed(_) | State::Finished(_) => known.state = State::Waiting,
        }
        self.waiting.push(&key.namespace, (key.clone(), known.uid.clone()));
    }

    /// Whether this Plan exists, as far as the watch has delivered.
    pub fn knows(&self, key: &PlanKey, uid: &str) -> bool {
        self.known.get(key).is_some_and(|plan| *plan.uid == *uid)
    }

    /// A Plan was deleted.
    pub fn remove(&mut self, key: &PlanKey) {
        self.known.remove(key);
    }

    /// Drops the Plans of the namespaces for which `is_kept` is false.
    pub fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.known.retain(|key, _| is_kept(&key.namespace));
    }

    /// Returns the next Plan to compute, with its UID. Those of namespaces for which `may_run` is false wait. The caller
    /// reports the end with [`Self::ended`].
    pub fn start(&mut self, may_run: impl Fn(&str) -> bool) -> Option<(PlanKey, Uid)> {
        if self.running.values().sum::<usize>() >= MAX_TOTAL {
            return None;
        }
        let Self { known, waiting, running } = self;
        let (key, uid) = waiting.pop(|(key, uid)| {
            let running = running.get(&key.namespace).copied().unwrap_or_default();
            match known.get(key) {
                Some(plan) if plan.uid == *uid && plan.state == State::Waiting => {
                    let may_start = may_run(&key.namespace) && running < MAX_PER_NAMESPACE;
                    if may_start { Choice::Take } else { Choice::Keep }
                }
                _ => Choice::Drop,
            }
        })?;
        *running.entry(key.namespace.clone()).or_default() += 1;
        if let Some(plan) = known.get_mut(&key) {
            plan.state = State::Running { changed: false };
        }
        Some((key, uid))
    }

    /// A computation has ended.
    pub fn ended(&mut self, key: &PlanKey, uid: &Uid, outcome: Outcome) {
        if let Some(count) = self.running.get_mut(&key.namespace) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(&key.namespace);
            }
        }
        let Some(plan) = self.known.get_mut(key).filter(|plan| plan.uid == *uid) else { return };
        let changed = plan.state == State::Running { changed: true };
        match outcome {
            Outcome::Gone => drop(self.known.remove(key)),
            _ if changed => {
                plan.state = State::Waiting;
                self.waiting.push(&key.namespace, (key.clone(), uid.clone()));
            }
            Outcome::Finished(at) => (plan.state, plan.failures) = (State::Finished(at), 0),
            Outcome::Failed(at) => (plan.state, plan.failures) = (State::Failed(at), plan.failures + 1),
        }
    }

    /// How often the computation of a Plan has failed in a row.
    pub fn failures(&self, key: &PlanKey) -> u32 {
        self.known.get(key).map_or(0, |plan| plan.failures)
    }

    /// Queues the Plans that are computed again, or deleted, at this time or before.
    pub fn wake(&mut self, now: Timestamp) {
        for (key, plan) in &mut self.known {
            if plan.due_at().is_some_and(|at| at <= now) {
                plan.state = State::Waiting;
                self.waiting.push(&key.namespace, (key.clone(), plan.uid.clone()));
            }
        }
    }

    /// When [`Self::wake`] has something to do.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.known.values().filter_map(KnownPlan::due_at).min()
    }
}

impl KnownPlan {
    fn due_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Failed(at) | State::Finished(at) => Some(at),
            State::Waiting | State::Running { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> PlanKey {
        PlanKey { namespace: namespace.into(), name: name.into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn queue(plans: &[(&str, &str)]) -> PreviewQueue {
        let mut queue = PreviewQueue::default();
        plans.iter().for_each(|(namespace, name)| queue.observe(&key(namespace, name), &"u".into(), 1));
        queue
    }

    fn start(queue: &mut PreviewQueue) -> Vec<String> {
        let started = std::iter::from_fn(|| queue.start(|_| true));
        started.map(|(key, _)| format!("{}/{}", key.namespace, key.name)).collect()
    }

    #[test]
    fn namespaces_take_turns_and_have_a_part_of_the_computations() {
        let names: Vec<String> = (0..300).map(|number| number.to_string()).collect();
        let mut plans: Vec<(&str, &str)> = names.iter().map(|name| ("a", name.as_str())).collect();
        plans.extend([("b", "x"), ("c", "y"), ("d", "z")]);
        let mut queue = queue(&plans);
        assert_eq!(start(&mut queue), ["a/0", "b/x", "c/y", "d/z"], "four at the same time");
        for namespace in ["b", "c", "d"] {
            let name = queue.known.keys().find(|key| *key.namespace == *namespace).unwrap().clone();
            queue.ended(&name, &"u".into(), Outcome::Finished(at(9)));
        }
        assert_eq!(start(&mut queue), ["a/1"], "two of a namespace");
        queue.ended(&key("a", "0"), &"u".into(), Outcome::Finished(at(9)));
        queue.observe(&key("e", "x"), &"u".into(), 1);
        assert_eq!(start(&mut queue), ["a/2", "e/x"]);
    }

    #[test]
    fn a_status_write_does_not_start_a_computation() {
        let mut queue = queue(&[("a", "x")]);
        start(&mut queue);
        queue.observe(&key("a", "x"), &"u".into(), 1);
        queue.ended(&key("a", "x"), &"u".into(), Outcome::Finished(at(9)));
        queue.observe(&key("a", "x"), &"u".into(), 1);
        assert!(start(&mut queue).is_empty());
        // A change of the spec, such as of the time to live, does.
        queue.observe(&key("a", "x"), &"u".into(), 2);
        assert_eq!(start(&mut queue), ["a/x"]);
        queue.observe(&key("a", "x"), &"u".into(), 3);
        queue.ended(&key("a", "x"), &"u".into(), Outcome::Finished(at(9)));
        assert_eq!(start(&mut queue), ["a/x"], "it has changed during the computation");
    }

    #[test]
    fn a_plan_is_read_again_after_a_conflict() {
        let mut queue = queue(&[("a", "x")]);
        start(&mut queue);
        queue.repeat(&key("a", "x"));
        queue.ended(&key("a", "x"), &"u".into(), Outcome::Finished(at(9)));
        assert_eq!(start(&mut queue), ["a/x"], "the conflict may be newer than the read");
        queue.ended(&key("a", "x"), &"u".into(), Outcome::Finished(at(9)));
        queue.repeat(&key("a", "x"));
        assert_eq!(start(&mut queue), ["a/x"]);
        queue.remove(&key("a", "x"));
        queue.repeat(&key("a", "x"));
        assert!(start(&mut queue).is_empty() && !queue.knows(&key("a", "x"), "u"));
    }

    #[test]
    fn a_plan_is_taken_again_when_it_expires_and_after_a_failure() {
        for outcome in [Outcome::Finished(at(9)), Outcome::Failed(at(9))] {
            let mut queue = queue(&[("a", "x")]);
            start(&mut queue);
            queue.ended(&key("a", "x"), &"u".into(), outcome);
            queue.wake(at(8));
            assert_eq!((queue.next_due(), start(&mut queue).len()), (Some(at(9)), 0));
            assert_eq!(queue.failures(&key("a", "x")), u32::from(outcome == Outcome::Failed(at(9))));
            queue.wake(at(9));
            assert_eq!((queue.next_due(), start(&mut queue).as_slice()), (None, &["a/x".to_owned()][..]));
        }
    }

    #[test]
    fn a_plan_that_is_deleted_and_created_again_is_another_one() {
        let mut queue = queue(&[("a", "x"), ("a", "y")]);
        queue.remove(&key("a", "y"));
        assert_eq!(start(&mut queue), ["a/x"]);
        queue.remove(&key("a", "x"));
        queue.observe(&key("a", "x"), &"v".into(), 1);
        queue.ended(&key("a", "x"), &"u".into(), Outcome::Gone);
        assert_eq!(queue.start(|_| true), Some((key("a", "x"), "v".into())));
        queue.ended(&key("a", "x"), &"v".into(), Outcome::Gone);
        assert!(queue.known.is_empty() && queue.running.is_empty());
    }
}
