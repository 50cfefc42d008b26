//! Recovery of interrupted updates whose objects are not found.

use super::*;

impl Bench {
    /// A new process with these Resources, which are named in the manifests. An update of each object was interrupted,
    /// and the service finds none of them.
    async fn with_interrupted_updates(manifests: Vec<serde_json::Value>) -> Self {
        let mut bench = Self::with_policy(|policy| policy.quota = Quota::default());
        for mut manifest in manifests {
            manifest["metadata"]["annotations"] = serde_json::json!({ api::RECORD: "u" });
            manifest["metadata"]["finalizers"] = serde_json::json!([api::FINALIZER]);
            let address = Address::single(manifest["metadata"]["name"].as_str().unwrap());
            let record = Arc::new(cut_update(&address));
            let version = bench.engine.journal.intend(record.clone(), None).await.unwrap();
            bench.observe(manifest, 1);
            bench.reconciler.observe(Event::RecordApplied(Stored { record, version }));
        }
        bench.react(Signal::Started);
        bench.run_until_idle(Duration::from_secs(10)).await;
        bench
    }

    /// Whether the intent is closed and the object is still recorded.
    fn keeps_object(&self, name: &str) -> bool {
        let record = &self.reconciler.records()[&Address::single(name)].record;
        record.intent.is_none() && record.current.as_ref().is_some_and(|object| object.id() == Some("it"))
    }

    fn reason(&self, name: &str, condition: &str) -> Option<String> {
        let condition = self.status[name].conditions.iter().find(|one| one.type_ == condition)?;
        Some(condition.reason.clone())
    }
}

#[tokio::test]
async fn many_objects_that_are_missing_after_interrupted_updates_are_not_created_again() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let bench = Bench::with_interrupted_updates(names.map(|name| thing(name, 2)).into()).await;
    for name in names {
        assert!(bench.keeps_object(name), "{:?}", bench.log);
        assert_eq!(bench.ready(name).1, "False ManyObjectsMissing", "{:?}", bench.log);
    }
    assert!(bench.world.objects().is_empty(), "{:?}", bench.log);
}

#[tokio::test]
async fn an_object_that_is_missing_after_an_interrupted_update_is_reported_if_drift_is() {
    let mut reported = thing("a", 1);
    reported["spec"]["drift"] = serde_json::json!({ "action": "Report" });
    let bench = Bench::with_interrupted_updates(vec![reported]).await;
    assert!(bench.keeps_object("a"), "{:?}", bench.log);
    assert_eq!(bench.reason("a", "Drifted").as_deref(), Some("ObjectMissing"), "{:?}", bench.log);
    assert!(bench.world.objects().is_empty(), "{:?}", bench.log);
}

#[tokio::test]
async fn an_object_of_a_suspended_resource_that_was_not_found_for_a_while_is_not_lost() {
    let mut suspended = thing("a", 2);
    suspended["spec"]["suspend"] = true.into();
    let mut bench = Bench::with_interrupted_updates(vec![suspended]).await;
    assert!(bench.keeps_object("a"), "{:?}", bench.log);
    bench.world.put("it", &Value::map([("value", Value::from(1))]));
    bench.observe(thing("a", 2), 2);
    bench.react(Signal::Wake);
    bench.run_until_idle(Duration::from_secs(10)).await;
    assert_eq!(bench.ready("a").1, "True Available", "{:?}", bench.log);
    let objects = bench.world.objects();
    assert_eq!(objects.keys().collect::<Vec<_>>(), ["it"], "{:?}", bench.log);
    assert_eq!(objects["it"].1.get("value"), Some(&Value::from(2)));
}

#[tokio::test]
async fn a_single_object_that_is_missing_after_an_interrupted_update_is_created_again() {
    let bench = Bench::with_interrupted_updates(vec![thing("a", 2)]).await;
    assert_eq!(bench.ready("a").1, "True Available", "{:?}", bench.log);
    assert_eq!(bench.world.objects().len(), 1, "{:?}", bench.log);
}

/// The objects of the family may exist, whether its index lists them or is lost too.
#[tokio::test]
async fn a_deleted_family_without_its_records_says_so() {
    for (listed, command) in [(None, "`purlin state rm a -n shop`"), (Some("a[1]"), "`purlin state rm 'a[1]' -n shop`")]
    {
        let mut bench = Bench::new();
        let mut marked = thing("a", 1);
        marked["spec"]["count"] = 2.into();
        marked["metadata"]["uid"] = "u".into();
        marked["metadata"]["annotations"] = serde_json::json!({ api::RECORD: "u" });
        marked["metadata"]["finalizers"] = serde_json::json!([api::FINALIZER]);
        marked["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        bench.observe(marked, 1);
        if let Some(listed) = listed {
            bench.reconciler.observe(Event::FamilyApplied(Family { rebuilt: true, ..index_of_a(&[listed], 1) }));
        }
        bench.react(Signal::Started);
        bench.run_until_idle(MINUTE).await;
        assert_eq!(bench.ready("a").1, "False RecordMissing", "{:?}", bench.log);
        let message = &bench.status["a"].conditions[0].message;
        assert!(message.contains(command), "{message}");
    }
}

/// Nothing else causes a plan after the last object is destroyed: no index is written that lists nothing.
#[tokio::test]
async fn a_deleted_family_without_its_index_says_what_is_lost_after_its_last_object() {
    let mut bench = Bench::new();
    let mut family = thing("a", 1);
    family["spec"]["count"] = 1.into();
    bench.observe(family.clone(), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.recorded(), ["a[0]"]);
    family["metadata"]["annotations"] = serde_json::json!({ api::RECORD: "u" });
    bench.observe(deleting(family), 1);
    bench.react(Signal::Wake);
    bench.run_until_idle(MINUTE).await;
    assert!(bench.recorded().is_empty(), "{:?}", bench.log);
    assert_eq!(bench.ready("a").1, "False RecordMissing", "{:?}", bench.log);
}

/// The index still lists the instance whose record was deleted.
#[tokio::test]
async fn a_deleted_family_that_has_lost_one_record_says_so_after_its_other_objects() {
    let mut bench = Bench::new();
    let mut family = thing("a", 1);
    family["spec"]["count"] = 2.into();
    bench.observe(family.clone(), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    assert_eq!(bench.recorded(), ["a[0]", "a[1]"]);
    bench.reconciler.observe(Event::FamilyApplied(index_of_a(&["a[0]", "a[1]"], 1)));
    bench.reconciler.observe(Event::RecordDeleted("a[1]".parse().unwrap(), Version(1000)));
    bench.react(Signal::Wake);
    bench.run_until_idle(MINUTE).await;
    family["metadata"]["annotations"] = serde_json::json!({ api::RECORD: "u" });
    bench.observe(deleting(family), 1);
    bench.react(Signal::Wake);
    bench.run_until_idle(MINUTE).await;
    assert!(bench.recorded().is_empty(), "{:?}", bench.log);
    assert_eq!(bench.ready("a").1, "False RecordMissing", "{:?}", bench.log);
}
