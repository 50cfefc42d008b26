//! The state of the reconcilers of all namespaces.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use runtime::reconcile::{Counts, Gauges};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabels {
    state: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuotaLabels {
    quota: &'static str,
}

#[derive(Clone, Default)]
pub struct ObjectMetrics {
    objects: Family<ObjectLabels, Gauge>,
    queued: Gauge,
    waiting: Gauge,
    abandoned: Gauge,
    over_quota: Family<QuotaLabels, Gauge>,
    record_bytes: Gauge,
    retries: Counter,
    drift: Counter,
}

impl ObjectMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("objects", "Resources and DataSources by state", self.objects.clone());
        registry.register("names_queued", "Changed Resources that are not planned yet", self.queued.clone());
        registry.register("steps_waiting", "Steps that wait only for a permit or a quota", self.waiting.clone());
        registry.register("records_abandoned", "Records without a Resource", self.abandoned.clone());
        let help = "Resources, or steps, that a quota of their namespace delays";
        registry.register("over_quota", help, self.over_quota.clone());
        registry.register("record_bytes", "Size of all records", self.record_bytes.clone());
        registry.register("retries", "Objects planned again after a failure", self.retries.clone());
        registry.register("drift_found", "Reads that found drift", self.drift.clone());
    }

    /// Adds the change of the gauges of a namespace.
    pub fn update(&self, before: &Gauges, now: &Gauges) {
        let difference = |before: usize, now: usize| {
            i64::try_from(now).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX)
        };
        self.queued.inc_by(difference(before.queued, now.queued));
        self.waiting.inc_by(difference(before.waiting, now.waiting));
        self.abandoned.inc_by(difference(before.abandoned, now.abandoned));
        self.record_bytes.inc_by(difference(before.record_bytes, now.record_bytes));
        let quotas = |gauges: &Gauges| {
            [("objects", gauges.over_quota), ("record_bytes", gauges.over_record_bytes), ("steps", gauges.over_rate)]
        };
        for ((quota, before), (_, now)) in quotas(before).into_iter().zip(quotas(now)) {
            self.over_quota.get_or_create(&QuotaLabels { quota }).inc_by(difference(before, now));
        }
        if before.objects == now.objects {
            return;
        }
        let count = |gauges: &Gauges, kind| gauges.objects.get(&kind).copied().unwrap_or(0);
        for kind in before.objects.keys().chain(now.objects.keys().filter(|kind| !before.objects.contains_key(kind))) {
            let change = difference(count(before, *kind), count(now, *kind));
            let (state, reason) = (kind.0.as_str(), kind.1.as_str());
            self.objects.get_or_create(&ObjectLabels { state, reason }).inc_by(change);
        }
    }

    pub fn add(&self, counts: Counts) {
        self.retries.inc_by(counts.retries);
        self.drift.inc_by(counts.drift);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::metrics::Metrics;
    use model::Reason;
    use runtime::reconcile::ObjectState;

    #[test]
    fn objects_are_counted_by_state_and_reason() {
        let metrics = Metrics::default();
        let gauges = |kind| Gauges { objects: BTreeMap::from([(kind, 1)]), ..Gauges::default() };
        let (none, ready) = (Gauges::default(), gauges((ObjectState::Ready, Reason::Available)));
        let stalled = gauges((ObjectState::Stalled, Reason::InvalidConfig));
        metrics.objects.update(&none, &ready);
        metrics.objects.update(&ready, &stalled);
        let text = metrics.render();
        for line in [
            "purlin_objects{state=\"ready\",reason=\"Available\"} 0",
            "purlin_objects{state=\"stalled\",reason=\"InvalidConfig\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
