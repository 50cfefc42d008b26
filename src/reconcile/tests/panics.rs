//! After a turn that panicked, everything continues.

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
