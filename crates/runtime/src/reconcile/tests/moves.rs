//! An object that another Resource claims is moved, and not destroyed.

use super::*;
use engine::plan::moves::rounds;

impl Bench {
    pub async fn carry_out_moves(&self, mut request: MoveRequest) -> Signal {
        let journal = self.engine.journal.as_ref();
        for round in rounds(&request.moves) {
            execute::prepare_moves(journal, &mut request.records, round).await.unwrap();
            execute::conclude_moves(journal, &mut request.records, round).await.unwrap();
        }
        Signal::Moved(Box::new(MoveResult { request, outcome: Ok(()) }))
    }

    fn is_moved(&self) -> bool {
        assert!(self.log.iter().all(|line| !line.contains("start a destroy")), "{:?}", self.log);
        self.recorded() == ["b"]
    }
}

/// A Resource `b` that was named `a`.
fn renamed() -> serde_json::Value {
    let mut manifest = thing("b", 1);
    manifest["metadata"]["annotations"] = serde_json::json!({ "purlin.dev/moved-from": "a" });
    manifest
}

#[tokio::test]
async fn an_object_that_is_claimed_while_its_destroy_is_planned_is_moved() {
    let (mut bench, planned) = Bench::with_planned_destroy().await;
    // Planning takes so long that its result is adopted although there is a newer desired state.
    bench.now += Duration::from_millis(500);
    bench.observe(renamed(), 1);
    bench.react(Signal::Wake);
    bench.now += Duration::from_millis(2500);
    bench.react(Signal::Planned(Box::new(planned)));
    bench.run_until_idle(MINUTE).await;
    assert!(bench.is_moved(), "{:?}", bench.log);
    assert_eq!(bench.ready("b"), (1, "True Available".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_claimed_while_its_destroy_waits_is_moved() {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.observe(dependent("c", "a"), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    let answers = vec![ScriptedOutcome::Hold("c".to_owned())];
    bench.script("c", Operation::Destroy, answers);
    bench.observe(deleting(thing("a", 1)), 2);
    bench.observe(deleting(dependent("c", "a")), 2);
    bench.react(Signal::Wake);
    bench
        .run_until("the destroy of the dependent", |bench| {
            bench.log.iter().any(|line| line.contains("c destroy Started")) && bench.pending.is_empty()
        })
        .await;
    bench.observe(renamed(), 1);
    bench.react(Signal::Wake);
    // The dependent is destroyed before the next plan, after which the object could be destroyed.
    bench.world.release("c");
    while !bench.workers.is_idle() {
        let report = bench.workers.next().await;
        bench.react(Signal::Worker(report));
    }
    bench.run_until("the move", Bench::is_moved).await;
}

/// A family by index that is now one by key. `keys`: those of the object that was at the index.
fn keyed() -> serde_json::Value {
    let mut manifest = with(thing("f", 1), "spec.forEach", serde_json::json!(["k"]));
    manifest["spec"]["moved"] = serde_json::json!([{ "from": "f[0]", "to": "[\"k\"]" }]);
    manifest
}

/// A plan knows nothing of an instance of which there was no record when it began. The step that creates it may have begun
/// since.
#[tokio::test(start_paused = true)]
async fn an_instance_whose_create_begins_while_its_move_is_planned_is_moved_afterwards() {
    let mut bench = Bench::new();
    bench.observe(with(thing("f", 1), "spec.count", 1), 1);
    bench.react(Signal::Started);
    let first = bench.compute_due_plan().await;
    bench.observe(keyed(), 2);
    bench.react(Signal::Wake);
    // The same turn starts the create and requests the next plan.
    bench.react(Signal::Planned(Box::new(first)));
    let at = bench.pending.iter().position(|command| matches!(command, Command::Plan(_)));
    let Some(Command::Plan(request)) = at.map(|at| bench.pending.remove(at)) else { panic!("{:?}", bench.log) };
    let second = bench.plan(*request).await;
    bench.run_until("the create", |bench| bench.value("f[0]").is_some()).await;
    bench.react(Signal::Planned(Box::new(second)));
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.recorded(), ["f[\"k\"]"]);
    assert_eq!(bench.count(" create Started"), 1, "{:?}", bench.log);
}
