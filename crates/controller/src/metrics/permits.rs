//! Permits for calls and plans.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use runtime::execute::PoolUsage;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    pool: &'static str,
}

#[derive(Clone, Default)]
pub struct PermitMetrics {
    taken: Family<PoolLabels, Gauge>,
    limit: Family<PoolLabels, Gauge>,
    waiting: Family<PoolLabels, Gauge>,
    waits: Family<PoolLabels, Counter>,
    wait_seconds: Family<PoolLabels, Counter<f64, AtomicU64>>,
}

impl PermitMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("permits_taken", "Permits in use", self.taken.clone());
        registry.register("permits_limit", "Permits in total", self.limit.clone());
        registry.register("permits_waiting", "Requests that wait for a permit now", self.waiting.clone());
        registry.register("permit_waits", "Ended waits for a permit", self.waits.clone());
        registry.register("permit_wait_seconds", "Time of the ended waits for a permit", self.wait_seconds.clone());
    }

    /// Sets the values of a pool, whose numbers of waits only grow.
    pub fn set(&self, pool: &'static str, usage: &PoolUsage) {
        let labels = PoolLabels { pool };
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.taken.get_or_create(&labels).set(count(usage.taken));
        self.limit.get_or_create(&labels).set(count(usage.limit));
        self.waiting.get_or_create(&labels).set(count(usage.waiting));
        let waits = self.waits.get_or_create(&labels);
        waits.inc_by(usage.waits.saturating_sub(waits.get()));
        let seconds = self.wait_seconds.get_or_create(&labels);
        seconds.inc_by((usage.waited.as_secs_f64() - seconds.get()).max(0.0));
    }
}
