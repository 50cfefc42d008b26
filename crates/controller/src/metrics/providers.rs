//! Provider processes and their calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{BoundedLabels, call_buckets};
use tfprovider::plugin::Observer;

/// How many providers have their own label value.
const PROVIDERS: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StartLabels {
    provider: Arc<str>,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    provider: Arc<str>,
    method: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    method: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug)]
pub struct ProviderMetrics {
    names: BoundedLabels,
    processes: Family<ProviderLabels, Gauge>,
    memory: Family<ProviderLabels, Gauge>,
    pods: Family<ProviderLabels, Gauge>,
    starts: Family<StartLabels, Counter>,
    crashes: Family<ProviderLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<DurationLabels, Histogram, fn() -> Histogram>,
}

/// A process that runs.
pub struct ProcessSample {
    pub provider: String,
    /// In bytes.
    pub memory: u64,
    /// Whether it has a Pod of its own.
    pub in_pod: bool,
}

impl Default for ProviderMetrics {
    fn default() -> Self {
        Self {
            names: BoundedLabels::new(PROVIDERS),
            processes: Family::default(),
            memory: Family::default(),
            pods: Family::default(),
            starts: Family::default(),
            crashes: Family::default(),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(call_buckets),
        }
    }
}

impl ProviderMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("provider_processes", "Running provider processes", self.processes.clone());
        registry.register("provider_memory_bytes", "Memory of the provider processes", self.memory.clone());
        let help = "Running provider processes that have a Pod of their own";
        registry.register("provider_pods", help, self.pods.clone());
        registry.register("provider_starts", "Starts of provider processes", self.starts.clone());
        let help = "Provider processes that exited or hung while they were in use";
        registry.register("provider_crashes", help, self.crashes.clone());
        registry.register("provider_calls", "Calls of providers", self.calls.clone());
        let help = "Duration of calls of providers";
        registry.register("provider_call_duration_seconds", help, self.call_seconds.clone());
    }

    /// Sets the processes that run now.
    pub fn set_processes(&self, processes: impl IntoIterator<Item = ProcessSample>) {
        let mut by_provider: BTreeMap<Arc<str>, (i64, i64, u64)> = BTreeMap::new();
        for ProcessSample { provider, memory, in_pod } in processes {
            let (count, pods, total) = by_provider.entry(self.names.get(&provider)).or_default();
            *count += 1;
            *pods += i64::from(in_pod);
            *total = total.saturating_add(memory);
        }
        self.processes.clear();
        self.memory.clear();
        self.pods.clear();
        for (provider, (count, pods, memory)) in by_provider {
            let labels = ProviderLabels { provider };
            self.processes.get_or_create(&labels).set(count);
            if pods > 0 {
                self.pods.get_or_create(&labels).set(pods);
            }
            self.memory.get_or_create(&labels).set(i64::try_from(memory).unwrap_or(i64::MAX));
        }
    }
}

impl Observer for ProviderMetrics {
    fn started(&self, provider: &str, succeeded: bool, took: Duration) {
        let outcome = if succeeded { "ok" } else { "failed" };
        self.starts.get_or_create(&StartLabels { provider: self.names.get(provider), outcome }).inc();
        let labels = DurationLabels { method: "start", code: outcome };
        self.call_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    fn crashed(&self, provider: &str) {
        self.crashes.get_or_create(&ProviderLabels { provider: self.names.get(provider) }).inc();
    }

    fn called(&self, provider: &str, method: &'static str, code: &'static str, took: Duration) {
        self.calls.get_or_create(&CallLabels { provider: self.names.get(provider), method, code }).inc();
        self.call_seconds.get_or_create(&DurationLabels { method, code }).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessSample;
    use crate::metrics::Metrics;

    #[test]
    fn processes_that_ended_are_no_longer_counted() {
        let metrics = Metrics::default();
        let of =
            |provider: &str, memory| ProcessSample { provider: provider.to_owned(), memory, in_pod: provider == "dns" };
        metrics.providers.set_processes([of("aws", 5), of("aws", 7), of("dns", 1)]);
        assert!(metrics.render().contains("purlin_provider_pods{provider=\"dns\"} 1"));
        metrics.providers.set_processes([of("aws", 5)]);
        let text = metrics.render();
        assert!(text.contains("purlin_provider_processes{provider=\"aws\"} 1"), "{text}");
        assert!(text.contains("purlin_provider_memory_bytes{provider=\"aws\"} 5"), "{text}");
        assert!(!text.contains("dns"), "{text}");
    }
}
