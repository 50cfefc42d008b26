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
