//! The limit of objects in a namespace.

use super::*;

#[tokio::test]
async fn objects_beyond_the_limit_of_the_namespace_wait_until_others_are_removed() {
    let mut bench = Bench::new();
    let names = ["a", "b", "c", "d", "e"];
    names.iter().for_each(|name| bench.observe(thing(name, 1), 1));
    bench.react(Signal::Started);
    bench.run_until_idle(Duration::from_secs(1)).await;
    assert_eq!(bench.recorded(), ["a", "b", "c"]);
    assert_eq!(bench.ready("d"), (1, "False QuotaExceeded".to_owned()));
    assert_eq!(bench.reconciler.gauges().over_quota, 2);
    bench.observe(deleting(thing("a", 1)), 2);
    bench.react(Signal::Wake);
    bench.run_until_idle(Duration::from_secs(1)).await;
    assert_eq!(bench.recorded(), ["b", "c", "d"]);
    // The annotation of the Namespace takes precedence.
    let annotations = Value::map([(crate::api::MAX_OBJECTS, Value::from("10"))]);
    let value = Value::map([("annotations", annotations)]);
    bench.reconciler.observe(Event::Namespace { value, terminating: None });
    bench.react(Signal::Wake);
    bench.run_until_idle(Duration::from_secs(1)).await;
    assert_eq!(bench.recorded(), ["b", "c", "d", "e"]);
    assert_eq!(bench.reconciler.gauges().over_quota, 0);
}
