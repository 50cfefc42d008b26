//! The limits of a namespace.

use super::*;
use api::QUOTA;

impl Bench {
    /// Sets the annotations of the Namespace.
    pub fn annotate(&mut self, annotations: &[(&str, &str)]) {
        let annotations = annotations.iter().map(|(name, value)| (*name, Value::from(*value)));
        let value = Value::map([("annotations", Value::map(annotations))]);
        self.reconciler.observe(Event::Namespace { value, terminating: None });
    }

    pub async fn run_for(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        self.react(Signal::Wake);
        self.run_until_idle(Duration::from_secs(seconds)).await;
        self.now = end;
    }

    fn ready_message(&self, name: &str) -> String {
        let ready = self.status[name].conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
        format!("{}: {}", ready.reason, ready.message)
    }
}

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
    bench.annotate(&[(QUOTA, "objects=10")]);
    bench.react(Signal::Wake);
    bench.run_until_idle(Duration::from_secs(1)).await;
    assert_eq!(bench.recorded(), ["b", "c", "d", "e"]);
    assert_eq!(bench.reconciler.gauges().over_quota, 0);
}

#[tokio::test]
async fn resources_that_are_not_valid_count_for_the_limit_of_objects() {
    let mut bench = Bench::new();
    bench.observe(with(thing("x", 1), "spec.type", "unknown"), 1);
    bench.observe(with(thing("y", 1), "spec.type", "unknown"), 1);
    bench.react(Signal::Started);
    bench.run_for(2).await;
    bench.observe(thing("a", 1), 1);
    bench.observe(thing("b", 1), 1);
    bench.run_for(2).await;
    assert_eq!(bench.recorded(), ["a"]);
    assert_eq!(bench.ready("b"), (1, "False QuotaExceeded".to_owned()));
    bench.observe(thing("x", 1), 2);
    bench.run_for(2).await;
    assert_eq!(bench.recorded(), ["a", "x"], "it counted already");
}

#[tokio::test]
async fn steps_beyond_the_limit_of_a_minute_wait_and_report_when_they_start() {
    let mut bench = Bench::new();
    bench.annotate(&[(QUOTA, "objects=10,steps-per-minute=2")]);
    ["a", "b", "c", "d"].iter().for_each(|name| bench.observe(thing(name, 1), 1));
    bench.react(Signal::Started);
    bench.run_for(5).await;
    assert_eq!(bench.recorded(), ["a", "b"]);
    assert_eq!(bench.reconciler.gauges().over_rate, 2);
    let message = bench.ready_message("c");
    let expected = "QuotaExceeded: the namespace has started its 2 steps per minute; this step starts at \
                    1970-01-01T00:00:30Z (hint: an administrator can set `steps-per-minute` \
                    in the annotation `purlin.dev/quota` of the Namespace)";
    assert_eq!(message, expected);
    bench.observe(deleting(thing("a", 1)), 2);
    bench.run_for(5).await;
    assert_eq!(bench.recorded(), ["b"], "a destroy does not wait");
    bench.run_for(25).await;
    assert_eq!(bench.recorded(), ["b", "c"]);
    bench.annotate(&[(QUOTA, "objects=10,steps-per-minute=600")]);
    bench.run_for(1).await;
    assert_eq!(bench.recorded(), ["b", "c", "d"], "a higher limit has an effect at once");
    assert_eq!((bench.ready("d"), bench.reconciler.gauges().over_rate), ((1, "True Available".to_owned()), 0));
}

#[tokio::test]
async fn the_limit_of_steps_delays_a_replacement_only_before_its_first_step() {
    let mut bench = Bench::new();
    bench.annotate(&[(QUOTA, "steps-per-minute=1")]);
    bench.observe(with(thing("a", 1), "spec.config", serde_json::json!({ "force": 1 })), 1);
    bench.react(Signal::Started);
    bench.run_for(5).await;
    let id = |bench: &Bench| {
        let record = &bench.reconciler.records().values().next().unwrap().record;
        record.current.as_ref().and_then(|object| object.id()).map(str::to_owned)
    };
    let first = id(&bench);
    bench.observe(with(thing("a", 1), "spec.config", serde_json::json!({ "force": 2 })), 2);
    bench.run_for(30).await;
    assert_eq!((id(&bench), bench.world.objects().len()), (first.clone(), 1), "the old object is not destroyed yet");
    assert_eq!(bench.ready("a"), (2, "False QuotaExceeded".to_owned()));
    bench.run_for(30).await;
    assert_eq!(bench.world.objects().len(), 1, "the new object is created as soon as the old one is destroyed");
    assert_ne!(id(&bench), first);
    assert_eq!(bench.ready("a"), (2, "True Available".to_owned()));
}

#[tokio::test]
async fn records_beyond_their_limit_delay_creates_and_updates_but_no_destroys() {
    let mut bench = Bench::new();
    bench.annotate(&[(QUOTA, "record-bytes=1Ki")]);
    bench.observe(thing("a", 1), 1);
    bench.observe(thing("b", 1), 1);
    bench.react(Signal::Started);
    bench.run_for(2).await;
    for name in ["a", "b"] {
        bench.reconciler.observe(Event::RecordSized(Address::single(name), 600));
    }
    bench.observe(thing("b", 2), 2);
    bench.observe(thing("c", 1), 1);
    bench.run_for(2).await;
    assert_eq!(bench.recorded(), ["a", "b"]);
    let gauges = bench.reconciler.gauges();
    assert_eq!((gauges.over_record_bytes, gauges.record_bytes), (2, 1200));
    let message = bench.ready_message("c");
    assert!(
        message.starts_with("QuotaExceeded: the records of the namespace have 2 KiB of at most 1 KiB"),
        "{message}"
    );
    assert_eq!(bench.ready("b"), (2, "False QuotaExceeded".to_owned()));
    bench.observe(deleting(thing("a", 1)), 2);
    bench.run_for(2).await;
    assert_eq!(bench.recorded(), ["b", "c"]);
    assert_eq!(
        (bench.ready("b"), bench.ready("c")),
        ((2, "True Available".to_owned()), (1, "True Available".to_owned()))
    );
}
