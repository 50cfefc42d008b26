//! Requests to the API server, and writes of records.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    resource: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LatencyLabels {
    method: &'static str,
    resource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    write: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteKind {
    write: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone)]
pub struct RequestMetrics {
    ended: Family<RequestLabels, Counter>,
    seconds: Histograms<LatencyLabels>,
    records: Family<WriteLabels, Counter>,
    record_seconds: Histograms<WriteKind>,
}

/// From one millisecond to a minute, after which the API server ends a request.
fn request_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 3.0, 11))
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            ended: Family::default(),
            seconds: Family::new_with_constructor(request_buckets),
            records: Family::default(),
            record_seconds: Family::new_with_constructor(request_buckets),
        }
    }
}

impl RequestMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("api_requests", "Requests to the API server", self.ended.clone());
        let help = "Time until the API server responds";
        registry.register("api_request_duration_seconds", help, self.seconds.clone());
        registry.register("record_writes", "Writes of records", self.records.clone());
        let help = "Duration of writes of records, with their retries";
        registry.register("record_write_duration_seconds", help, self.record_seconds.clone());
    }

    /// `code`: the status of the response; `None` if there is none.
    pub fn ended(&self, method: &'static str, resource: &'static str, code: Option<u16>, took: Duration) {
        self.ended.get_or_create(&RequestLabels { method, resource, code: code_label(code) }).inc();
        self.seconds.get_or_create(&LatencyLabels { method, resource }).observe(took.as_secs_f64());
    }

    pub fn record_written(&self, write: &'static str, outcome: &'static str, took: Duration) {
        self.records.get_or_create(&WriteLabels { write, outcome }).inc();
        self.record_seconds.get_or_create(&WriteKind { write }).observe(took.as_secs_f64());
    }
}

/// The codes that an API server returns.
fn code_label(code: Option<u16>) -> &'static str {
    match code {
        None => "error",
        Some(200) => "200",
        Some(201) => "201",
        Some(202) => "202",
        Some(400) => "400",
        Some(401) => "401",
        Some(403) => "403",
        Some(404) => "404",
        Some(409) => "409",
        Some(410) => "410",
        Some(413) => "413",
        Some(422) => "422",
        Some(429) => "429",
        Some(500) => "500",
        Some(502) => "502",
        Some(503) => "503",
        Some(504) => "504",
        Some(_) => "other",
    }
}
