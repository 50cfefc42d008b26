//! Waits for readiness, and what the status shows meanwhile.

use super::*;
use crate::reconcile::index::StatusOutcome;
use testkit::scripted::Kind;

/// Otherwise the deletion would wait as long as the object may take to become ready.
#[tokio::test(start_paused = true)]
async fn a_changed_resource_ends_the_wait_of_its_object() {
    let mut bench = Bench::new();
    bench.script("a", Operation::Create, vec![ScriptedOutcome::Unready]);
    bench.script("a", Operation::Ready, vec![hold("never"); 3]);
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until("the wait", |bench| bench.count("Delayed") > 0).await;
    bench.observe(thing("a", 2), 2);
    bench.react(Signal::Wake);
    bench.run_until("the update", |bench| bench.value("a") == Some(Value::from(2))).await;
    bench.observe(deleting(thing("a", 2)), 3);
    bench.react(Signal::Wake);
    bench.run_until("the destroy", |bench| bench.recorded().is_empty()).await;
}

/// The wait begins after the change: the call was running.
#[tokio::test(start_paused = true)]
async fn a_resource_that_changes_during_the_call_ends_the_wait_that_follows() {
    let mut bench = Bench::new();
    bench.script("a", Operation::Create, vec![hold("created"), ScriptedOutcome::Unready]);
    bench.script("a", Operation::Ready, vec![hold("never"), hold("never")]);
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until("the create", |bench| !bench.workers.is_idle()).await;
    bench.observe(deleting(thing("a", 1)), 2);
    bench.react(Signal::Wake);
    bench.run_until("a turn", |bench| bench.pending.is_empty()).await;
    bench.world.release("created");
    bench.run_until("the destroy", |bench| bench.count("a destroy Finished") > 0).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_seen_while_it_is_awaited_has_not_failed() {
    let mut bench = Bench::new();
    let forbidden = ScriptedOutcome::FailPartly { kind: Kind::Forbidden, message: "cannot watch a".to_owned() };
    bench.script("a", Operation::Create, vec![ScriptedOutcome::Unready]);
    bench.script("a", Operation::Ready, vec![forbidden, hold("never")]);
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until("the report", |bench| bench.count("cannot watch a") > 0).await;
    assert!(bench.log.iter().any(|line| line.contains("Delayed") && line.contains("Forbidden")), "{:?}", bench.log);
    assert_eq!(bench.count("has failed"), 0, "{:?}", bench.log);
}

fn hold(gate: &str) -> ScriptedOutcome {
    ScriptedOutcome::Hold(gate.to_owned())
}

/// The pending action, the ID and whether the object has drifted, as the last status of `a` shows them.
fn shown(bench: &Bench) -> Option<(Option<String>, bool, bool)> {
    let status = bench.status.get("a")?;
    let action = status.pending.as_ref().map(|pending| pending.action.clone());
    Some((action, status.id.is_some(), status.conditions.iter().any(|condition| condition.type_ == "Drifted")))
}

/// What is shown during a wait.
fn wait(has_drifted: bool) -> (Option<String>, bool, bool) {
    (Some("Wait".to_owned()), true, has_drifted)
}

/// A restart of the controller reads the records, and finds that only the wait is left.
#[tokio::test(start_paused = true)]
async fn a_status_during_the_wait_shows_what_is_recorded_as_after_a_restart() {
    let mut bench = Bench::new();
    let ready = vec![hold("ready"), hold("ready"), ScriptedOutcome::Ok, hold("never"), hold("never")];
    bench.script("a", Operation::Create, vec![ScriptedOutcome::Unready]);
    bench.script("a", Operation::Update, vec![ScriptedOutcome::Unready]);
    bench.script("a", Operation::Ready, ready);
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until("the status of a new object", |bench| shown(bench) == Some(wait(false))).await;
    bench.status.clear();
    bench.react(Signal::LeadershipLost);
    bench.react(Signal::Started);
    bench.run_until("a status", |bench| bench.status.contains_key("a")).await;
    assert_eq!(shown(&bench), Some(wait(false)), "a plan during the wait changes nothing");
    bench.world.release("ready");
    bench.run_until("the object", |bench| bench.ready("a").1 == "True Available").await;
    let created = bench.log.iter().filter(|line| line.ends_with("event a Created")).count();
    assert_eq!(created, 1, "{:?}", bench.log);

    let object = bench.reconciler.records()[&Address::single("a")].record.current.clone().unwrap();
    bench.world.put(object.id().unwrap(), &object.value.with("value", Value::from(2)));
    bench.react(Signal::ReadObjects([Address::single("a")].into()));
    bench.run_until("the status of a corrected object", |bench| shown(bench) == Some(wait(false))).await;
}

/// The object is not read while its wait is running.
#[tokio::test(start_paused = true)]
async fn drift_that_is_reported_is_shown_by_every_plan_during_the_wait() {
    let mut bench = Bench::new();
    bench.script("a", Operation::Create, vec![ScriptedOutcome::Unready]);
    bench.script("a", Operation::Ready, vec![hold("never"); 2]);
    bench.observe(with(thing("a", 1), "spec.drift.action", "Report"), 1);
    bench.react(Signal::Started);
    bench.run_until("the wait", |bench| shown(bench) == Some(wait(false))).await;
    let (id, (_, value)) = bench.world.objects().into_iter().next().unwrap();
    bench.world.put(&id, &value.with("value", Value::from(2)));
    bench.react(Signal::LeadershipLost);
    bench.react(Signal::Started);
    bench.run_until("the drift", |bench| shown(bench) == Some(wait(true))).await;
    bench.run_until("the second wait", |bench| bench.count("a wait Started") == 1).await;
    let plans = bench.count(" plan ");
    // As when the watch sees the change after a round of the wait.
    bench.react(Signal::ReadObjects([Address::single("a")].into()));
    bench.run_until("a plan", |bench| bench.count(" plan ") > plans && bench.pending.is_empty()).await;
    let planned_at = bench.now;
    bench.run_until("a later status", |bench| bench.now > planned_at + Duration::from_secs(5)).await;
    assert_eq!(shown(&bench), Some(wait(true)), "{:?}", bench.log);
    assert_eq!(bench.count("event a Drifted"), 1, "{:?}", bench.log);
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
    let desired = with(thing("a", 1), "spec.lifecycle.createBeforeDestroy", true);
    bench.observe(with(desired.clone(), "spec.config.force", "f1"), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    bench.script("a", Operation::Destroy, vec![hold("old")]);
    let replaced = with(desired, "spec.config.force", "f2");
    bench.observe(replaced.clone(), 2);
    bench.react(Signal::Wake);
    bench.run_until("the destroy", |bench| bench.count("destroy Started") > 0).await;
    bench.observe(deleting(replaced), 3);
    bench.react(Signal::Wake);
    let plans = bench.count("plan");
    bench.run_until("a plan", |bench| bench.count("plan") > plans && bench.pending.is_empty()).await;
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
    assert_eq!(bench.count(" start a[0]"), 1, "{:?}", bench.log);
}
