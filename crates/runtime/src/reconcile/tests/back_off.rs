//! The intervals at which failing objects are read and planned.

use super::*;
use testkit::scripted::Kind;

fn each_second(mut manifest: serde_json::Value) -> serde_json::Value {
    manifest["spec"]["drift"] = serde_json::json!({ "interval": "1s" });
    manifest
}

fn failures(on: &str, operation: Operation, kind: Kind, count: usize) -> ScriptLine {
    let answers = vec![ScriptedOutcome::Fail { kind, message: "not now".to_owned() }; count];
    ScriptLine { on: on.to_owned(), operation, answers }
}

impl Bench {
    /// A `DataSource` as a watch delivers it, which is read each second.
    fn observe_data(&mut self, name: &str) {
        let data = serde_json::json!({
            "apiVersion": api::API_VERSION,
            "kind": "DataSource",
            "metadata": { "name": name, "uid": "u", "generation": 1 },
            "spec": { "type": "scripted", "config": {}, "drift": { "interval": "1s" } },
        });
        let data = serde_json::from_value(data).unwrap();
        let instance = engine::load::data_from_raw(&data, &"default".into(), &mut engine::load::Interner::default());
        self.observe_instance(instance);
    }
}

#[tokio::test]
async fn a_data_source_that_cannot_be_read_is_read_less_and_less_often_until_it_can() {
    let mut bench = Bench::new();
    bench.world.script(failures("data.d", Operation::Read, Kind::Transient, 8));
    bench.observe_data("d");
    bench.react(Signal::Started);
    bench.run_until_idle(2 * MINUTE).await;
    let plans = bench.count(" plan");
    assert!((5..=8).contains(&plans), "{plans}: {:?}", bench.log);
    bench.run_until_idle(5 * MINUTE).await;
    bench.log.clear();
    bench.run_until_idle(MINUTE).await;
    assert!(bench.count(" plan") > 40, "it is read at its interval again: {:?}", bench.log);
}

#[tokio::test]
async fn a_blocked_object_is_planned_less_and_less_often_until_it_changes() {
    for kind in [Kind::Transient, Kind::Terminal, Kind::InvalidConfig] {
        let mut bench = Bench::new();
        bench.world.script(failures("a", Operation::Plan, kind, 100));
        bench.observe(each_second(thing("a", 1)), 1);
        bench.react(Signal::Started);
        for generation in [2, 3] {
            bench.log.clear();
            bench.run_until_idle(2 * MINUTE).await;
            let plans = bench.count(" plan");
            assert!((5..=9).contains(&plans), "{kind:?} {plans}: {:?}", bench.log);
            bench.observe(each_second(thing("a", generation)), generation);
            bench.react(Signal::Wake);
        }
    }
}
