//! Watches of the API server.

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::SecondsGauge;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    watch: &'static str,
}

#[derive(Clone, Default)]
pub struct WatchMetrics {
    errors: Family<WatchLabels, Counter>,
    lists: Family<WatchLabels, Counter>,
    last_event: Family<WatchLabels, SecondsGauge>,
    inputs: Gauge,
}

impl WatchMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("watch_errors", "Watch interruptions", self.errors.clone());
        registry.register("watch_lists", "Complete lists, the first one included", self.lists.clone());
        let help = "When the watch last delivered an object or a list";
        registry.register("watch_event_timestamp_seconds", help, self.last_event.clone());
        registry.register("input_watches", "Watches of ConfigMaps and Secrets for inputs", self.inputs.clone());
    }

    pub fn failed(&self, watch: &'static str) {
        self.errors.get_or_create(&WatchLabels { watch }).inc();
    }

    pub fn listing(&self, watch: &'static str) {
        self.lists.get_or_create(&WatchLabels { watch }).inc();
    }

    pub fn delivered(&self, watch: &'static str, now: Timestamp) {
        self.last_event.get_or_create(&WatchLabels { watch }).set(now.as_duration().as_secs_f64());
    }

    /// The number of watches of inputs has changed by this.
    pub fn inputs_changed(&self, change: i64) {
        self.inputs.inc_by(change);
    }
}
