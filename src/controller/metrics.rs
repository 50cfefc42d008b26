//! Prometheus metrics.
//!
//! The label values are bounded: operations, outcomes and kinds of writes are fixed, and resource types beyond a limit
//! are counted as `other`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::model::Operation;
use crate::reconcile::{Gauges, ObjectState};

/// How many resource types have their own label value.
const TYPES: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    operation: &'static str,
    outcome: &'static str,
    r#type: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    watch: &'static str,
}

/// All metrics. Clones are cheap and share their values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    types: Arc<Mutex<BTreeSet<Arc<str>>>>,
    steps: Family<StepLabels, Counter>,
    step_seconds: Family<OperationLabels, Histogram, fn() -> Histogram>,
    plan_seconds: Histogram,
    objects: Family<StateLabels, Gauge>,
    running: Gauge,
    queued: Gauge,
    abandoned: Gauge,
    over_quota: Gauge,
    writes: Family<WriteLabels, Counter>,
    watch_errors: Family<WatchLabels, Counter>,
    events_dropped: Counter,
    leader: Gauge<u64, AtomicU64>,
}

/// From one millisecond to about four and a half hours, the range of provider calls.
fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 13))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Arc::default(),
            types: Arc::default(),
            steps: Family::default(),
            step_seconds: Family::new_with_constructor(call_buckets),
            plan_seconds: call_buckets(),
            objects: Family::default(),
            running: Gauge::default(),
            queued: Gauge::default(),
            abandoned: Gauge::default(),
            over_quota: Gauge::default(),
            writes: Family::default(),
            watch_errors: Family::default(),
            events_dropped: Counter::default(),
            leader: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("purlin");
        registry.register("steps", "Finished and failed steps", metrics.steps.clone());
        registry.register("step_duration_seconds", "Duration of steps", metrics.step_seconds.clone());
        registry.register("plan_duration_seconds", "Duration of plans", metrics.plan_seconds.clone());
        registry.register("objects", "Resources by state", metrics.objects.clone());
        registry.register("steps_running", "Running steps", metrics.running.clone());
        registry.register("names_queued", "Changed Resources that are not planned yet", metrics.queued.clone());
        registry.register("records_abandoned", "Records without a Resource", metrics.abandoned.clone());
        registry.register("names_over_quota", "Resources held back by the limit", metrics.over_quota.clone());
        registry.register("api_writes", "Status and event writes to the API server", metrics.writes.clone());
        registry.register("watch_errors", "Watch interruptions", metrics.watch_errors.clone());
        registry.register("events_dropped", "Events dropped because of the rate limit", metrics.events_dropped.clone());
        registry.register("leader", "Whether this replica is the leader", metrics.leader.clone());
        metrics.registry = Arc::new(registry);
        metrics
    }
}

impl Metrics {
    /// Renders the metrics in the OpenMetrics text format.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing to a string cannot fail. If an encoder fails anyway, no partial output is returned.
            text.clear();
            let _ = writeln!(text, "# EOF");
        }
        text
    }

    pub fn step_started(&self) {
        self.running.inc();
    }

    /// A started step was withdrawn and has done nothing.
    pub fn step_withdrawn(&self) {
        self.running.dec();
    }

    pub fn step_ended(&self, operation: Operation, type_name: &Arc<str>, failed: bool, took: Duration) {
        self.running.dec();
        let outcome = if failed { "failed" } else { "finished" };
        let labels = StepLabels { operation: operation.as_str(), outcome, r#type: self.bounded(type_name) };
        self.steps.get_or_create(&labels).inc();
        let labels = OperationLabels { operation: operation.as_str() };
        self.step_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub fn planned(&self, took: Duration) {
        self.plan_seconds.observe(took.as_secs_f64());
    }

    /// Adds the change of the gauges of a namespace.
    pub fn count(&self, before: &Gauges, now: &Gauges) {
        let difference = |before: usize, now: usize| {
            i64::try_from(now).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX)
        };
        self.queued.inc_by(difference(before.queued, now.queued));
        self.abandoned.inc_by(difference(before.abandoned, now.abandoned));
        self.over_quota.inc_by(difference(before.over_quota, now.over_quota));
        let count = |gauges: &Gauges, state: ObjectState| gauges.objects.get(&state).copied().unwrap_or(0);
        for state in ObjectState::ALL {
            let change = difference(count(before, state), count(now, state));
            if change != 0 {
                self.objects.get_or_create(&StateLabels { state: state.as_str() }).inc_by(change);
            }
        }
    }

    pub fn wrote(&self, kind: &'static str, ok: bool) {
        let outcome = if ok { "ok" } else { "error" };
        self.writes.get_or_create(&WriteLabels { kind, outcome }).inc();
    }

    pub fn watch_failed(&self, watch: &'static str) {
        self.watch_errors.get_or_create(&WatchLabels { watch }).inc();
    }

    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    pub fn leads(&self, leading: bool) {
        self.leader.set(u64::from(leading));
    }

    fn bounded(&self, type_name: &Arc<str>) -> Arc<str> {
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        if types.contains(type_name) || types.len() < TYPES {
            types.insert(type_name.clone());
            return type_name.clone();
        }
        Arc::from("other")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn steps_are_counted_by_operation_outcome_and_type() {
        let metrics = Metrics::default();
        metrics.step_started();
        metrics.step_ended(Operation::Create, &Arc::from("terraform_data"), false, Duration::from_millis(3));
        let gauges = |state| Gauges { objects: BTreeMap::from([(state, 1)]), ..Gauges::default() };
        let (none, ready, stalled) = (Gauges::default(), gauges(ObjectState::Ready), gauges(ObjectState::Stalled));
        metrics.count(&none, &ready);
        metrics.count(&ready, &stalled);
        let text = metrics.render();
        for line in [
            "purlin_steps_total{operation=\"create\",outcome=\"finished\",type=\"terraform_data\"} 1",
            "purlin_steps_running 0",
            "purlin_objects{state=\"ready\"} 0",
            "purlin_objects{state=\"stalled\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn types_beyond_the_limit_share_a_label() {
        let metrics = Metrics::default();
        for n in 0..TYPES {
            assert_eq!(*metrics.bounded(&Arc::from(format!("t{n}"))), format!("t{n}"));
        }
        assert_eq!(&*metrics.bounded(&Arc::from("one_too_many")), "other");
        assert_eq!(&*metrics.bounded(&Arc::from("t7")), "t7");
    }
}
