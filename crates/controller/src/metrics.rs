//! Prometheus metrics.
//!
//! The label values are bounded: most of them are fixed, and resource types and providers beyond a limit are counted as
//! `other`. No metric has the namespace of a tenant as a label, because nothing bounds the number of namespaces.

mod objects;
mod permits;
mod providers;
mod requests;
mod steps;
mod watches;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use process::{lock, panics};

pub use objects::ObjectMetrics;
pub use permits::PermitMetrics;
pub use providers::{ProcessSample, ProviderMetrics};
pub use requests::RequestMetrics;
pub use steps::{PlanOutcome, StepMetrics, recovery_outcome};
pub use watches::WatchMetrics;

/// A gauge of a time or of a number of seconds.
type SecondsGauge = Gauge<f64, AtomicU64>;

/// Updates metrics from a source that is only read for them.
type Sampler = Box<dyn Fn() + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MoveLabels {
    direction: &'static str,
}

/// All metrics. Clones are cheap and share their values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    samplers: Arc<Mutex<Vec<Sampler>>>,
    pub steps: StepMetrics,
    pub objects: ObjectMetrics,
    pub requests: RequestMetrics,
    pub watches: WatchMetrics,
    pub providers: ProviderMetrics,
    pub permits: PermitMetrics,
    events_dropped: Counter,
    panics: Counter,
    leader: Gauge<u64, AtomicU64>,
    shards: Gauge<u64, AtomicU64>,
    shards_held: Gauge<u64, AtomicU64>,
    shards_moved: Family<MoveLabels, Counter>,
    renewals: Family<OutcomeLabels, Counter>,
    renewed: SecondsGauge,
}

/// From one millisecond to about four and a half hours, the range of provider calls.
fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 13))
}

/// Label values of which only the first ones are distinguished.
#[derive(Clone, Debug)]
struct BoundedLabels {
    limit: usize,
    known: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

impl BoundedLabels {
    fn new(limit: usize) -> Self {
        Self { limit, known: Arc::default() }
    }

    fn get(&self, value: &str) -> Arc<str> {
        let mut known = lock(&self.known);
        if let Some(value) = known.get(value) {
            return value.clone();
        }
        if known.len() >= self.limit {
            return Arc::from("other");
        }
        let value: Arc<str> = value.into();
        known.insert(value.clone());
        value
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Arc::default(),
            samplers: Arc::default(),
            steps: StepMetrics::default(),
            objects: ObjectMetrics::default(),
            requests: RequestMetrics::default(),
            watches: WatchMetrics::default(),
            providers: ProviderMetrics::default(),
            permits: PermitMetrics::default(),
            events_dropped: Counter::default(),
            panics: Counter::default(),
            leader: Gauge::default(),
            shards: Gauge::default(),
            shards_held: Gauge::default(),
            shards_moved: Family::default(),
            renewals: Family::default(),
            renewed: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("purlin");
        metrics.steps.register(&mut registry);
        metrics.objects.register(&mut registry);
        metrics.requests.register(&mut registry);
        metrics.watches.register(&mut registry);
        metrics.providers.register(&mut registry);
        metrics.permits.register(&mut registry);
        registry.register("events_dropped", "Events dropped because of the rate limit", metrics.events_dropped.clone());
        registry.register("panics", "Panics, which are bugs in Purlin", metrics.panics.clone());
        let help = "Whether this replica holds the shard `cluster`, which has what exists once in a cluster";
        registry.register("leader", help, metrics.leader.clone());
        registry.register("shards", "Shards of namespaces in this installation", metrics.shards.clone());
        let help = "Shards of namespaces whose objects this replica reconciles";
        registry.register("shards_held", help, metrics.shards_held.clone());
        registry.register("shards_moved", "Shards that this replica took or gave up", metrics.shards_moved.clone());
        registry.register("lease_attempts", "Attempts to renew the Lease of this replica", metrics.renewals.clone());
        let help = "When this replica last renewed its Lease";
        registry.register("lease_renewal_timestamp_seconds", help, metrics.renewed.clone());
        registry.register("build", "The version of Purlin", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        metrics.registry = Arc::new(registry);
        metrics
    }
}

impl Metrics {
    /// Renders the metrics in the OpenMetrics text format.
    pub fn render(&self) -> String {
        lock(&self.samplers).iter().for_each(|sample| sample());
        self.panics.inc_by(panics::panics().saturating_sub(self.panics.get()));
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing to a string cannot fail. If an encoder fails anyway, no partial output is returned.
            text.clear();
            let _ = writeln!(text, "# EOF");
        }
        text
    }

    /// Adds a function that updates metrics before they are rendered.
    pub fn sample(&self, sampler: impl Fn() + Send + Sync + 'static) {
        lock(&self.samplers).push(Box::new(sampler));
    }

    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// Sets whether this replica holds the Lease of the cluster, and how many of the shards of namespaces it reconciles.
    pub fn leads(&self, cluster: bool, namespaces: usize, shards: u16) {
        self.leader.set(u64::from(cluster));
        self.shards_held.set(namespaces as u64);
        self.shards.set(u64::from(shards));
    }

    /// This replica has taken or given up this many shards.
    pub fn shards_moved(&self, taken: usize, given_up: usize) {
        for (direction, count) in [("taken", taken), ("given_up", given_up)] {
            self.shards_moved.get_or_create(&MoveLabels { direction }).inc_by(count as u64);
        }
    }

    /// An attempt to renew the Lease of this replica. `held`: whether it may hold shards; `None`: the attempt failed.
    pub fn lease_attempted(&self, held: Option<bool>, now: Timestamp) {
        let outcome = match held {
            Some(true) => "held",
            Some(false) => "other",
            None => "error",
        };
        self.renewals.get_or_create(&OutcomeLabels { outcome }).inc();
        if held == Some(true) {
            self.renewed.set(now.as_duration().as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_beyond_the_limit_share_one() {
        let labels = BoundedLabels::new(2);
        assert_eq!((&*labels.get("a"), &*labels.get("b"), &*labels.get("c")), ("a", "b", "other"));
        assert_eq!(&*labels.get("a"), "a");
    }

    #[test]
    fn samples_are_taken_when_the_metrics_are_rendered() {
        let metrics = Metrics::default();
        let sampled = metrics.clone();
        metrics.sample(move || sampled.event_dropped());
        metrics.lease_attempted(Some(true), Timestamp::from_second(7).unwrap());
        metrics.lease_attempted(None, Timestamp::from_second(9).unwrap());
        let text = metrics.render();
        for line in [
            "purlin_events_dropped_total 1",
            "purlin_lease_attempts_total{outcome=\"held\"} 1",
            "purlin_lease_attempts_total{outcome=\"error\"} 1",
            "purlin_lease_renewal_timestamp_seconds 7.0",
            &format!("purlin_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
