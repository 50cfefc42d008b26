//! Previews, which change nothing.

use super::*;
use api::PreviewRefresh;
use engine::load::Proposal;
use engine::plan::ResponseCache;

/// Two objects, of which the second reads the first.
async fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.observe(thing("a", 1), 1);
    bench.observe(reading("b", "${a.value}"), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.recorded(), ["a", "b"]);
    bench
}

fn reading(name: &str, value: &str) -> serde_json::Value {
    let config = serde_json::json!({ "value": value });
    serde_json::json!({ "metadata": { "name": name }, "spec": { "type": "scripted", "config": config } })
}

fn manifest(mut resource: serde_json::Value) -> String {
    resource["apiVersion"] = api::API_VERSION.into();
    resource["kind"] = "Resource".into();
    format!("---\n{resource}\n")
}

/// The actions of the preview of manifests.
async fn preview(bench: &Bench, manifests: &str, removed: &[&str]) -> Vec<String> {
    let proposal = Proposal::read(manifests, "shop", &"default".into());
    let removed = removed.iter().map(|name| Name::from(*name)).collect();
    let proposed = ProposedState::new(bench.reconciler.index().copy(), proposal, &removed);
    let now = Moment { time: Time(bench.now), wall: bench.clock.now() };
    let Some(request) = bench.reconciler.preview(&proposed, PreviewRefresh::Due, 1, now) else { return Vec::new() };
    let cache = &mut ResponseCache::default();
    let planned = pipeline::plan(&bench.engine, &request.config, &request.recorded, &request.options, cache).await;
    planned.plan.changes().map(|change| format!("{} {:?}", change.address, change.action)).collect()
}

#[tokio::test]
async fn a_preview_plans_whole_components_and_changes_nothing() {
    let mut bench = bench().await;
    let (records, log) = (bench.reconciler.records().clone(), bench.log.len());
    assert_eq!(preview(&bench, &manifest(thing("a", 2)), &[]).await, ["a Update", "b Update"]);
    assert_eq!(preview(&bench, &manifest(thing("c", 2)), &[]).await, ["c Create"]);
    assert_eq!(preview(&bench, &manifest(reading("b", "${c.value}")), &[]).await, ["a NoOp", "b Blocked"]);
    assert_eq!(preview(&bench, "", &[]).await, Vec::<String>::new());

    let turn = bench.react(Signal::Wake);
    assert!(turn.is_quiet && bench.pending.is_empty() && bench.log.len() == log, "{:?}", bench.log);
    let versions = |all: &Recorded| all.values().map(|stored| stored.version).collect::<Vec<_>>();
    assert_eq!(versions(bench.reconciler.records()), versions(&records));
    assert_eq!(preview(&bench, &manifest(thing("a", 1)), &[]).await, ["a NoOp", "b NoOp"]);
}

#[tokio::test]
async fn what_is_pruned_counts_as_deleted_unless_it_is_proposed() {
    let bench = bench().await;
    assert_eq!(preview(&bench, "", &["b"]).await, ["a NoOp", "b Destroy"]);
    assert_eq!(preview(&bench, &manifest(thing("b", 5)), &["a", "b"]).await, ["a Destroy", "b Update"]);
    assert_eq!(preview(&bench, "", &["unknown"]).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_preview_waits_for_plans_of_changes() {
    let mut bench = Bench::new();
    assert_eq!(bench.reconciler.preview_time(), PreviewTime::Now, "nothing is known to exist");
    bench.observe(thing("a", 1), 1);
    assert_eq!(bench.reconciler.preview_time(), PreviewTime::Unknown);
    bench.react(Signal::Started);
    assert_eq!(bench.reconciler.preview_time(), PreviewTime::Later);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.reconciler.preview_time(), PreviewTime::Now);
    bench.react(Signal::LeadershipLost);
    assert_eq!(bench.reconciler.preview_time(), PreviewTime::Unknown);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.reconciler.preview_time(), PreviewTime::Now);
}
