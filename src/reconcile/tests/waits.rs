//! A wait for readiness ends when the Resource has changed.

use super::*;
use crate::reconcile::index::StatusOutcome;

/// Otherwise the deletion would wait as long as the object may take to become ready.
#[tokio::test(start_paused = true)]
async fn a_changed_resource_ends_the_wait_of_its_object() {
    let mut bench = Bench::new();
    let line = |operation, answers| ScriptLine { on: "a".to_owned(), operation, answers };
    let never = || ScriptedOutcome::Hold("never".to_owned());
    bench.world.script(line(Operation::Create, vec![ScriptedOutcome::Unready]));
    bench.world.script(line(Operation::Ready, vec![never(), never(), never()]));
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until("the wait", |bench| bench.log.iter().any(|line| line.contains("Delayed"))).await;
    bench.observe(thing("a", 2), 2);
    bench.react(Signal::Wake);
    let value = |bench: &Bench| {
        let stored = bench.reconciler.records().get(&Address::single("a")).cloned();
        stored.and_then(|stored| stored.record.current.as_ref()?.value.get("value").cloned())
    };
    bench.run_until("the update", |bench| value(bench) == Some(Value::from(2))).await;
    bench.observe(deleting(thing("a", 2)), 3);
    bench.react(Signal::Wake);
    bench.run_until("the destroy", |bench| bench.recorded().is_empty()).await;
}

/// The wait begins after the change: the call was running.
#[tokio::test(start_paused = true)]
async fn a_resource_that_changes_during_the_call_ends_the_wait_that_follows() {
    let mut bench = Bench::new();
    let line = |operation, answers| ScriptLine { on: "a".to_owned(), operation, answers };
    let hold = |gate: &str| ScriptedOutcome::Hold(gate.to_owned());
    bench.world.script(line(Operation::Create, vec![hold("created"), ScriptedOutcome::Unready]));
    bench.world.script(line(Operation::Ready, vec![hold("never"), hold("never")]));
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until("the create", |bench| !bench.workers.is_idle()).await;
    bench.observe(deleting(thing("a", 1)), 2);
    bench.react(Signal::Wake);
    bench.run_until("a turn", |bench| bench.pending.is_empty()).await;
    bench.world.release("created");
    let is_destroyed = |bench: &Bench| bench.log.iter().any(|line| line.contains("a destroy Finished"));
    bench.run_until("the destroy", is_destroyed).await;
}

#[tokio::test]
async fn a_status_that_was_not_written_without_the_lease_is_written_when_it_is_held_again() {
    for lease_is_back in [false, true] {
        let mut bench = Bench::new();
        bench.observe(thing("a", 1), 1);
        bench.react(Signal::Started);
        bench.run_until_idle(MINUTE).await;
        let digest = bench.reconciler.index().published("a").unwrap().digest;
        bench.status.clear();
        let dropped =
            Event::StatusWritten { name: "a".into(), uid: "u".into(), digest, outcome: StatusOutcome::NotLeading };
        bench.react(Signal::LeadershipLost);
        if !lease_is_back {
            bench.reconciler.observe(dropped.clone());
        }
        bench.react(Signal::Started);
        bench.run_until_idle(MINUTE).await;
        if lease_is_back {
            bench.reconciler.observe(dropped);
            bench.react(Signal::Wake);
            bench.run_until_idle(MINUTE).await;
        }
        assert_eq!(bench.ready("a"), (1, "True Available".to_owned()));
    }
}
