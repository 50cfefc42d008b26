//! Waits for readiness, and what the status shows meanwhile.

use super::*;
use crate::reconcile::index::StatusOutcome;
use testkit::scripted::Kind;

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

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_seen_while_it_is_awaited_has_not_failed() {
    let mut bench = Bench::new();
    let line = |operation, answers| ScriptLine { on: "a".to_owned(), operation, answers };
    let forbidden = ScriptedOutcome::FailPartly { kind: Kind::Forbidden, message: "cannot watch a".to_owned() };
    bench.world.script(line(Operation::Create, vec![ScriptedOutcome::Unready]));
    bench.world.script(line(Operation::Ready, vec![forbidden, ScriptedOutcome::Hold("never".to_owned())]));
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    let reported = |bench: &Bench| bench.log.iter().any(|line| line.contains("cannot watch a"));
    bench.run_until("the report", reported).await;
    assert!(bench.log.iter().any(|line| line.contains("Delayed") && line.contains("Forbidden")), "{:?}", bench.log);
    assert!(!bench.log.iter().any(|line| line.contains("has failed")), "{:?}", bench.log);
}

/// The pending action, the ID and whether the object has drifted, as the last status of `a` shows them.
fn shown(bench: &Bench) -> (Option<String>, bool, bool) {
    let status = &bench.status["a"];
    let action = status.pending.as_ref().map(|pending| pending.action.clone());
    (action, status.id.is_some(), status.conditions.iter().any(|condition| condition.type_ == "Drifted"))
}

/// A restart of the controller reads the records, and finds that only the wait is left.
#[tokio::test(start_paused = true)]
async fn a_status_during_the_wait_shows_what_is_recorded_as_after_a_restart() {
    let mut bench = Bench::new();
    let line = |operation, answers| ScriptLine { on: "a".to_owned(), operation, answers };
    let hold = |gate: &str| ScriptedOutcome::Hold(gate.to_owned());
    let ready = vec![hold("ready"), hold("ready"), ScriptedOutcome::Ok, hold("never"), hold("never")];
    bench.world.script(line(Operation::Create, vec![ScriptedOutcome::Unready]));
    bench.world.script(line(Operation::Update, vec![ScriptedOutcome::Unready]));
    bench.world.script(line(Operation::Ready, ready));
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    let waits = (Some("Wait".to_owned()), true, false);
    let is_shown = |bench: &Bench| bench.status.contains_key("a") && shown(bench) == waits;
    bench.run_until("the status of a new object", is_shown).await;
    bench.status.clear();
    bench.react(Signal::LeadershipLost);
    bench.react(Signal::Started);
    bench.run_until("a status", |bench| bench.status.contains_key("a")).await;
    assert_eq!(shown(&bench), waits, "a plan during the wait changes nothing");
    bench.world.release("ready");
    bench.run_until("the object", |bench| bench.ready("a").1 == "True Available").await;
    let created = bench.log.iter().filter(|line| line.ends_with("event a Created")).count();
    assert_eq!(created, 1, "{:?}", bench.log);

    let object = bench.reconciler.records()[&Address::single("a")].record.current.clone().unwrap();
    bench.world.put(object.id().unwrap(), &object.value.with("value", Value::from(2)));
    bench.react(Signal::ReadObjects([Address::single("a")].into()));
    bench.run_until("the status of a corrected object", is_shown).await;
}

/// The object is not read while its wait is running.
#[tokio::test(start_paused = true)]
async fn drift_that_is_reported_is_shown_by_every_plan_during_the_wait() {
    let mut bench = Bench::new();
    let line = |operation, answers| ScriptLine { on: "a".to_owned(), operation, answers };
    bench.world.script(line(Operation::Create, vec![ScriptedOutcome::Unready]));
    bench.world.script(line(Operation::Ready, vec![ScriptedOutcome::Hold("never".to_owned()); 2]));
    let mut reported = thing("a", 1);
    reported["spec"]["drift"] = serde_json::json!({ "action": "Report" });
    bench.observe(reported, 1);
    bench.react(Signal::Started);
    let waits = |has_drifted| (Some("Wait".to_owned()), true, has_drifted);
    let is_shown = |bench: &Bench| bench.status.contains_key("a") && shown(bench) == waits(false);
    bench.run_until("the wait", is_shown).await;
    let (id, (_, value)) = bench.world.objects().into_iter().next().unwrap();
    bench.world.put(&id, &value.with("value", Value::from(2)));
    bench.react(Signal::LeadershipLost);
    bench.react(Signal::Started);
    bench.run_until("the drift", |bench| shown(bench) == waits(true)).await;
    let count = |bench: &Bench, what: &str| bench.log.iter().filter(|line| line.contains(what)).count();
    bench.run_until("the second wait", |bench| count(bench, "a wait Started") == 1).await;
    let plans = count(&bench, " plan ");
    // As when the watch sees the change after a round of the wait.
    bench.react(Signal::ReadObjects([Address::single("a")].into()));
    bench.run_until("a plan", |bench| count(bench, " plan ") > plans && bench.pending.is_empty()).await;
    let planned_at = bench.now;
    bench.run_until("a later status", |bench| bench.now > planned_at + Duration::from_secs(5)).await;
    assert_eq!(shown(&bench), waits(true), "{:?}", bench.log);
    assert_eq!(count(&bench, "event a Drifted"), 1, "{:?}", bench.log);
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

/// Once the new object of a create-before-destroy replacement exists, the old one is deposed: a plan that is computed
/// during its destroy gives the step another name.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_step_counts_in_the_plan_that_was_computed_while_it_ran() {
    let mut bench = Bench::new();
    let desired = |force: &str| {
        let mut manifest = thing("a", 1);
        manifest["spec"]["config"]["force"] = force.into();
        manifest["spec"]["lifecycle"] = serde_json::json!({ "createBeforeDestroy": true });
        manifest
    };
    bench.observe(desired("f1"), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    let answers = vec![ScriptedOutcome::Hold("old".to_owned())];
    bench.world.script(ScriptLine { on: "a".to_owned(), operation: Operation::Destroy, answers });
    bench.observe(desired("f2"), 2);
    bench.react(Signal::Wake);
    bench.run_until("the destroy", |bench| bench.log.iter().any(|line| line.contains("destroy Started"))).await;
    bench.observe(deleting(desired("f2")), 3);
    bench.react(Signal::Wake);
    let plans = |bench: &Bench| bench.log.iter().filter(|line| line.contains("plan")).count();
    let before = plans(&bench);
    bench.run_until("a plan", |bench| plans(bench) > before && bench.pending.is_empty()).await;
    bench.world.release("old");
    bench.run_until("the second destroy", |bench| bench.recorded().is_empty()).await;
    bench.reconciler.observe(Event::ResourceDeleted("a".into()));
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.reconciler.gauges().objects, BTreeMap::new(), "{:?}", bench.log);
    assert!(bench.reconciler.planning.adopted.is_empty(), "{:?}", bench.reconciler.planning.adopted);
}

/// An administrator restores the record of an instance that was deleted, while the create of a new object is planned.
#[tokio::test]
async fn a_create_does_not_start_once_a_record_of_the_object_appears() {
    let mut bench = Bench::new();
    let mut family = thing("a", 1);
    family["spec"]["count"] = 2.into();
    bench.observe(family, 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    let address: Address = "a[0]".parse().unwrap();
    let stored = bench.reconciler.records()[&address].clone();
    bench.reconciler.observe(Event::RecordDeleted(address, Version(stored.version.0 + 1)));
    bench.react(Signal::Wake);
    let planned = bench.compute_due_plan().await;
    bench.reconciler.observe(Event::RecordApplied(Stored { version: Version(stored.version.0 + 2), ..stored }));
    bench.react(Signal::Planned(Box::new(planned)));
    assert!(!bench.commanded("start a[0]"), "{:?}", bench.log);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.log.iter().filter(|line| line.contains(" start a[0]")).count(), 1, "{:?}", bench.log);
}
