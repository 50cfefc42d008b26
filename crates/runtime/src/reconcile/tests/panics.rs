//! After a turn that panicked, everything continues.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// Plans the create of `a`, and returns the command that executes it.
async fn withheld_create(bench: &mut Bench) -> WorkerCommand {
    bench.observe(thing("a", 1), 1);
    bench.react(Signal::Started);
    bench.run_until("the create", |bench| bench.commanded("start a create")).await;
    let Some(at) = bench.pending.iter().position(|command| matches!(command, Command::Execute(_))) else { panic!() };
    let Command::Execute(order) = bench.pending.remove(at) else { panic!() };
    order
}

#[tokio::test]
async fn steps_that_were_paused_continue_after_a_panic() {
    let mut bench = Bench::new();
    let order = withheld_create(&mut bench).await;
    // The plan of the next generation pauses the steps, because the last one was stale.
    bench.observe(thing("a", 2), 2);
    bench.reconciler.planning.stale_names.insert("a".into());
    bench.react(Signal::Wake);
    drop(bench.compute_due_plan().await);
    assert!(!bench.reconciler.planning.pauses.is_empty(), "{:?}", bench.log);
    bench.workers.execute(order);
    while !bench.workers.is_idle() {
        let report = bench.workers.next().await;
        bench.react(Signal::Worker(report));
    }
    assert!(bench.reconciler.schedule.is_running(&Address::single("a")), "the pause defers the end");
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.ready("a"), (2, "True Available".to_owned()), "{:?}", bench.log);
    let started: Vec<&str> = bench.log.iter().filter_map(|line| Some(line.split_once(" start ")?.1)).collect();
    assert_eq!(started, ["a create", "a update"]);
}

/// Otherwise a step whose end was not handled would count as running for ever.
#[tokio::test]
async fn signals_that_a_panicking_turn_has_not_handled_remain() {
    let mut bench = Bench::new();
    let kind = serde_json::from_value("transient".into()).unwrap();
    let answers = vec![ScriptedOutcome::Fail { kind, message: "not now".to_owned() }];
    bench.script("b", Operation::Create, answers);
    bench.observe(thing("a", 1), 1);
    bench.observe(thing("b", 1), 1);
    bench.react(Signal::Started);
    let are_running =
        |bench: &Bench| bench.pending.is_empty() && bench.reconciler.schedule.running_steps().count() == 2;
    bench.run_until("both creates", are_running).await;
    let mut ends = Vec::new();
    while ends.len() < 2 {
        if let WorkerEvent::StepEnded(end) = bench.workers.next().await {
            ends.push(end);
        }
    }
    ends.sort_by_key(|end| **end.step.address.name() != *"b");
    // Stands for any bug: the count of failures overflows.
    bench.reconciler.objects.entry(&Address::single("b")).failures = u32::MAX;
    let mut signals: VecDeque<Signal> =
        ends.into_iter().map(|end| Signal::Worker(WorkerEvent::StepEnded(end))).collect();
    assert!(catch_unwind(AssertUnwindSafe(|| bench.react_to_all(&mut signals))).is_err());
    assert_eq!(signals.len(), 1, "the end of the create of `a`");
    signals.push_front(Signal::Started);
    bench.react_to_all(&mut signals);
    assert!(bench.reconciler.schedule.nothing_runs());
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.ready("a"), (1, "True Available".to_owned()), "{:?}", bench.log);
    assert_eq!(bench.count("start a create"), 1, "{:?}", bench.log);
}
