//! In which order statuses are written.

use super::*;
use crate::reconcile::index::StatusOutcome;

/// The statuses that were written since the log was cleared, as `name reason`.
fn written(bench: &Bench) -> Vec<String> {
    let statuses = bench.log.iter().filter_map(|line| line.split_once(" status "));
    let short = statuses.map(|(_, status)| {
        let name = status.split(' ').next().unwrap_or_default();
        let reason = status.split("reason: \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        format!("{name} {reason}")
    });
    short.collect()
}

/// Otherwise a client that waits for all Resources would see them ready after the update of `a`, before that of `b`.
#[tokio::test]
async fn a_dependent_is_known_to_be_in_progress_before_the_object_that_it_follows_is_ready() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.observe(dependent("b", "a"), 1);
    bench.observe(thing("other", 1), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    bench.log.clear();
    bench.observe(thing("a", 2), 2);
    bench.react(Signal::Wake);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(written(&bench), ["b Progressing", "a Available", "b Available"]);
}

/// The previous generation is not ready in any client's view.
#[tokio::test]
async fn a_resource_with_a_new_generation_gets_no_status_before_its_change_is_made() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    bench.log.clear();
    bench.observe(thing("a", 2), 2);
    bench.react(Signal::Wake);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(written(&bench), ["a Available"]);
}

/// The API server rejects a status of an earlier generation.
#[tokio::test(start_paused = true)]
async fn a_suspended_status_that_was_rejected_is_written_for_the_next_generation() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 2);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    let writes_for = |bench: &Bench, of| {
        bench.pending.iter().any(|c| matches!(c, Command::WriteStatus(_, update) if update.generation == of))
    };
    bench.observe(with(thing("a", 1), "spec.suspend", true), 3);
    bench.react(Signal::Wake);
    let planned = bench.compute_due_plan().await;
    bench.observe(with(thing("a", 2), "spec.suspend", true), 4);
    bench.react(Signal::Planned(Box::new(planned)));
    assert!(writes_for(&bench, 3), "{:?}", bench.log);
    let digest = bench.reconciler.index().published("a").unwrap().digest;
    let outcome = StatusOutcome::Rejected;
    bench.reconciler.observe(Event::StatusWritten { name: "a".into(), uid: "u".into(), digest, outcome });
    bench.run_until("the status of the newest generation", |bench| writes_for(bench, 4)).await;
}

#[tokio::test]
async fn a_family_that_is_ready_says_what_it_has_lost() {
    let mut bench = Bench::new();
    let mut family = thing("a", 1);
    family["spec"]["count"] = 1.into();
    bench.observe(family, 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    let index = |instances: &[&str], version| Event::FamilyApplied(index_of_a(instances, version));
    let steps = [
        (index(&["a[0]"], 1), ""),
        (Event::FamilyDeleted("a".into(), Version(2)), "run `purlin state rm 'a[1]' -n shop`"),
        (index(&["a[0]"], 3), ""),
        (index(&["a[0]", "a[7]"], 4), "run `purlin state rm 'a[7]' -n shop`"),
    ];
    for (event, says) in steps {
        bench.reconciler.observe(event);
        bench.react(Signal::ReadObjects(["a[0]".parse().unwrap()].into()));
        bench.run_until_idle(MINUTE).await;
        let ready = &bench.status["a"].conditions[0];
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Available"));
        assert!(ready.message.contains(says), "{}", ready.message);
        assert_eq!(ready.message == "1 of 1 ready", says.is_empty(), "{}", ready.message);
    }
}
