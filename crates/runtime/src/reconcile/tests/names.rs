//! Objects of separate components that take the same name.

use super::*;

fn named(resource: &str, name: &str) -> serde_json::Value {
    with(thing(resource, 1), "spec.config.name", name)
}

/// The plan of each component finds the name free. While one object is replaced, nothing is destroyed for the same name:
/// afterwards, the driver finds it taken.
#[tokio::test(start_paused = true)]
async fn nothing_is_destroyed_for_a_name_that_another_object_is_taking() {
    let mut bench = Bench::new();
    bench.observe(named("a", "x"), 1);
    bench.observe(named("b", "y"), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    for resource in ["a", "b"] {
        bench.script(resource, Operation::Destroy, vec![ScriptedOutcome::Hold(resource.to_owned())]);
        bench.observe(named(resource, "z"), 2);
    }
    bench.react(Signal::Wake);
    bench.run_until("a destroy", |bench| !bench.reconciler.schedule.nothing_runs()).await;
    for _ in 0..50 {
        if bench.pending.is_empty() {
            bench.now += Duration::from_millis(100);
            bench.react(Signal::Wake);
        } else {
            bench.execute_next().await;
        }
    }
    let running: Vec<String> = bench.reconciler.schedule.running_steps().map(|step| step.address.to_string()).collect();
    let [first] = &running[..] else { panic!("{running:?}") };
    let other = if first == "a" { "y" } else { "x" };
    bench.world.release(first);
    bench.run_until("the new object", |bench| bench.world.object("z").is_some()).await;
    assert!(bench.world.object(other).is_some(), "{:?}", bench.log);
}
