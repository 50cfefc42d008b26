//! Resources whose finalizer another client removes, as `purlin state release` does.

use super::*;

/// The Resource `a`, with its finalizer or without, and these fields in its spec.
fn marked(has_finalizer: bool, fields: &serde_json::Value) -> serde_json::Value {
    let mut manifest = thing("a", 1);
    manifest["metadata"]["annotations"] = serde_json::json!({ api::RECORD: "u" });
    if has_finalizer {
        manifest["metadata"]["finalizers"] = serde_json::json!([api::FINALIZER]);
    }
    for (name, value) in fields.as_object().unwrap() {
        manifest["spec"][name] = value.clone();
    }
    manifest
}

impl Bench {
    /// The object `a` exists, its Resource has got these fields, and loses its finalizer.
    async fn with_released(fields: &serde_json::Value) -> Self {
        let mut bench = Self::new();
        bench.observe(thing("a", 1), 1);
        bench.react(Signal::Started);
        bench.run_until_idle(MINUTE).await;
        bench.observe(marked(true, fields), 2);
        bench.react(Signal::Wake);
        bench.run_until_idle(Duration::from_secs(2)).await;
        assert_eq!(bench.claims(), 0, "{:?}", bench.log);
        bench.observe(marked(false, fields), 2);
        bench.react(Signal::Wake);
        bench
    }

    fn claims(&self) -> usize {
        self.log.iter().filter(|line| line.ends_with(" claim a")).count()
    }
}

#[tokio::test]
async fn a_resource_that_is_not_deleted_gets_its_finalizer_back_whatever_its_state() {
    let approval = serde_json::json!({ "requireFor": ["Update"] });
    let states = [
        (serde_json::json!({}), "Available"),
        (serde_json::json!({ "suspend": true }), "Suspended"),
        (serde_json::json!({ "config": { "value": "${" } }), "InvalidExpression"),
        (serde_json::json!({ "config": { "value": "${missing.value}" } }), "DependencyNotFound"),
        (serde_json::json!({ "config": { "value": 2 }, "approval": approval }), "ApprovalRequired"),
    ];
    for (fields, reason) in states {
        let bench = Bench::with_released(&fields).await;
        assert!(bench.ready("a").1.ends_with(reason), "{fields} {:?}", bench.log);
        assert_eq!(bench.claims(), 1, "{fields} {:?}", bench.log);
    }
}

#[tokio::test]
async fn a_claim_is_retried_until_it_succeeds() {
    let mut bench = Bench::with_released(&serde_json::json!({ "suspend": true })).await;
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.claims(), 1, "{:?}", bench.log);
    bench.react(Signal::Claimed("a".into(), false));
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.claims(), 2, "{:?}", bench.log);
    bench.observe(marked(true, &serde_json::json!({ "suspend": true })), 2);
    bench.react(Signal::Claimed("a".into(), true));
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.claims(), 2, "{:?}", bench.log);
}
