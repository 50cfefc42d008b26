//! Prometheus metrics.
//!
//! The label values are bounded: most of them are fixed, and resource types and providers beyond a limit are counted as
//! `other`. No metric has the namespace of a tenant as a label, because nothing bounds the number of namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use model::Operation;
use process::{lock, panics};
use runtime::execute::{PoolUsage, Recovery};
use runtime::reconcile::{Counts, Gauges};
use tfprovider::plugin::Observer;

/// How many providers have their own label value.
const PROVIDERS: usize = 100;

/// How many resource types have their own label value.
const TYPES: usize = 200;

/// A metric for each combination of values of `N` labels.
type ByLabels<const N: usize, M> = Family<[(&'static str, &'static str); N], M>;

type Histograms<const N: usize> = Family<[(&'static str, &'static str); N], Histogram, Buckets>;

/// A gauge of a time or of a number of seconds.
type SecondsGauge = Gauge<f64, AtomicU64>;

/// Updates metrics from a source that is only read for them.
type Sampler = Box<dyn Fn() + Send + Sync>;

/// The buckets of a histogram of durations.
#[derive(Clone, Copy, Debug)]
enum Buckets {
    /// From one millisecond to about four and a half hours, the range of provider calls.
    Call,
    /// From one millisecond to a minute, after which the API server ends a request.
    Request,
}

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(match self {
            Self::Call => exponential_buckets(0.001, 4.0, 13),
            Self::Request => exponential_buckets(0.001, 3.0, 11),
        })
    }
}

/// Declares a group of metrics as a table: the field, its type, the name of the metric, its help text and, unless it is
/// the default, its initial value.
macro_rules! metrics {
    ($(
        $(#[$doc:meta])* $group:ident {
            $($field:ident: $kind:ty, $name:literal, $help:literal $(, $new:expr)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $group {
            $($field: $kind,)*
        }

        impl $group {
            fn registered(registry: &mut Registry) -> Self {
                $(
                    let $field = metrics!(@new $kind $(, $new)?);
                    registry.register($name, $help, $field.clone());
                )*
                Self { $($field,)* }
            }
        }

        impl Default for $group {
            fn default() -> Self {
                Self::registered(&mut Registry::default())
            }
        }
    )*};
    (@new $kind:ty) => { <$kind>::default() };
    (@new $kind:ty, $new:expr) => { $new };
}

metrics! {
    /// Plans, steps and recoveries.
    StepMetrics {
        ended: ByLabels<3, Counter>, "steps", "Finished and failed steps";
        seconds: Histograms<1>, "step_duration_seconds", "Duration of steps", Family::new_with_constructor(Buckets::Call);
        running: Gauge, "steps_running", "Running steps";
        plans: ByLabels<1, Counter>, "plans", "Computed plans";
        plan_seconds: Histogram, "plan_duration_seconds", "Duration of plans", Buckets::Call.new_metric();
        recoveries: ByLabels<1, Counter>, "recoveries", "Attempts to determine how an interrupted operation ended";
    }

    /// The state of the reconcilers of all namespaces.
    ObjectMetrics {
        objects: ByLabels<2, Gauge>, "objects", "Resources and DataSources by state";
        queued: Gauge, "names_queued", "Changed Resources that are not planned yet";
        waiting: Gauge, "steps_waiting", "Steps that wait only for a permit or a quota";
        abandoned: Gauge, "records_abandoned", "Records without a Resource";
        over_quota: ByLabels<1, Gauge>, "over_quota", "Resources, or steps, that a quota of their namespace delays";
        record_bytes: Gauge, "record_bytes", "Size of all records";
        retries: Counter, "retries", "Objects planned again after a failure";
        drift: Counter, "drift_found", "Reads that found drift";
    }

    /// Requests to the API server, and writes of records.
    RequestMetrics {
        ended: ByLabels<3, Counter>, "api_requests", "Requests to the API server";
        seconds: Histograms<2>, "api_request_duration_seconds", "Time until the API server responds",
            Family::new_with_constructor(Buckets::Request);
        records: ByLabels<2, Counter>, "record_writes", "Writes of records";
        record_seconds: Histograms<1>, "record_write_duration_seconds",
            "Duration of writes of records, with their retries", Family::new_with_constructor(Buckets::Request);
    }

    /// Watches of the API server.
    WatchMetrics {
        errors: ByLabels<1, Counter>, "watch_errors", "Watch interruptions";
        lists: ByLabels<1, Counter>, "watch_lists", "Complete lists, the first one included";
        last_event: ByLabels<1, SecondsGauge>, "watch_event_timestamp_seconds",
            "When the watch last delivered an object or a list";
        inputs: Gauge, "input_watches", "Watches of ConfigMaps and Secrets for inputs";
    }

    /// Provider processes and their calls.
    ProviderMetrics {
        processes: ByLabels<1, Gauge>, "provider_processes", "Running provider processes";
        memory: ByLabels<1, Gauge>, "provider_memory_bytes", "Memory of the provider processes";
        pods: ByLabels<1, Gauge>, "provider_pods", "Running provider processes that have a Pod of their own";
        starts: ByLabels<2, Counter>, "provider_starts", "Starts of provider processes";
        crashes: ByLabels<1, Counter>, "provider_crashes",
            "Provider processes that exited or hung while they were in use";
        calls: ByLabels<3, Counter>, "provider_calls", "Calls of providers";
        call_seconds: Histograms<2>, "provider_call_duration_seconds", "Duration of calls of providers",
            Family::new_with_constructor(Buckets::Call);
    }

    /// Permits for calls and plans.
    PermitMetrics {
        taken: ByLabels<1, Gauge>, "permits_taken", "Permits in use";
        limit: ByLabels<1, Gauge>, "permits_limit", "Permits in total";
        waiting: ByLabels<1, Gauge>, "permits_waiting", "Requests that wait for a permit now";
        waits: ByLabels<1, Counter>, "permit_waits", "Ended waits for a permit";
        wait_seconds: ByLabels<1, Counter<f64, AtomicU64>>, "permit_wait_seconds",
            "Time of the ended waits for a permit";
    }

    /// This replica.
    ReplicaMetrics {
        events_dropped: Counter, "events_dropped", "Events dropped because of the rate limit";
        panics: Counter, "panics", "Panics, which are bugs in Purlin";
        leader: Gauge, "leader", "Whether this replica holds the shard `cluster`, which has what exists once in a cluster";
        shards: Gauge, "shards", "Shards of namespaces in this installation";
        shards_held: Gauge, "shards_held", "Shards of namespaces whose objects this replica reconciles";
        shards_moved: ByLabels<1, Counter>, "shards_moved", "Shards that this replica took or gave up";
        renewals: ByLabels<1, Counter>, "lease_attempts", "Attempts to renew the Lease of this replica";
        renewed: SecondsGauge, "lease_renewal_timestamp_seconds", "When this replica last renewed its Lease";
    }
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
    replica: ReplicaMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("purlin");
        registry.register("build", "The version of Purlin", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Self {
            steps: StepMetrics::registered(&mut registry),
            objects: ObjectMetrics::registered(&mut registry),
            requests: RequestMetrics::registered(&mut registry),
            watches: WatchMetrics::registered(&mut registry),
            providers: ProviderMetrics::registered(&mut registry),
            permits: PermitMetrics::registered(&mut registry),
            replica: ReplicaMetrics::registered(&mut registry),
            registry: Arc::new(registry),
            samplers: Arc::default(),
        }
    }
}

impl Metrics {
    /// Renders the metrics in the OpenMetrics text format.
    pub fn render(&self) -> String {
        lock(&self.samplers).iter().for_each(|sample| sample());
        let counted = &self.replica.panics;
        counted.inc_by(panics::panics().saturating_sub(counted.get()));
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
        self.replica.events_dropped.inc();
    }

    /// Sets whether this replica holds the Lease of the cluster, and how many of the shards of namespaces it reconciles.
    pub fn leads(&self, cluster: bool, namespaces: usize, shards: u16) {
        self.replica.leader.set(i64::from(cluster));
        self.replica.shards_held.set(number(namespaces));
        self.replica.shards.set(i64::from(shards));
    }

    /// This replica has taken or given up this many shards.
    pub fn shards_moved(&self, taken: usize, given_up: usize) {
        for (direction, count) in [("taken", taken), ("given_up", given_up)] {
            self.replica.shards_moved.get_or_create(&[("direction", direction)]).inc_by(count as u64);
        }
    }

    /// An attempt to renew the Lease of this replica. `held`: whether it may hold shards; `None`: the attempt failed.
    pub fn lease_attempted(&self, held: Option<bool>, now: Timestamp) {
        let outcome = match held {
            Some(true) => "held",
            Some(false) => "other",
            None => "error",
        };
        self.replica.renewals.get_or_create(&[("outcome", outcome)]).inc();
        if held == Some(true) {
            self.replica.renewed.set(now.as_duration().as_secs_f64());
        }
    }
}

/// How a planning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOutcome {
    Planned,
    /// Some objects cannot be planned because of an error.
    Errors,
    Cancelled,
    Panicked,
}

impl StepMetrics {
    pub fn started(&self) {
        self.running.inc();
    }

    /// A started step was withdrawn and has done nothing.
    pub fn withdrawn(&self) {
        self.running.dec();
    }

    pub fn ended(&self, operation: Operation, type_name: &str, failed: bool, took: Duration) {
        self.running.dec();
        let outcome = if failed { "failed" } else { "finished" };
        let operation = ("operation", operation.as_str());
        let type_name = bounded(&TYPE_NAMES, TYPES, type_name);
        self.ended.get_or_create(&[operation, ("outcome", outcome), ("type", type_name)]).inc();
        self.seconds.get_or_create(&[operation]).observe(took.as_secs_f64());
    }

    pub fn planned(&self, outcome: PlanOutcome, took: Duration) {
        let outcome = match outcome {
            PlanOutcome::Planned => "planned",
            PlanOutcome::Errors => "errors",
            PlanOutcome::Cancelled => "cancelled",
            PlanOutcome::Panicked => "panicked",
        };
        self.plans.get_or_create(&[("outcome", outcome)]).inc();
        self.plan_seconds.observe(took.as_secs_f64());
    }

    pub fn recovered(&self, recovery: &Recovery) {
        self.recoveries.get_or_create(&[("outcome", recovery_outcome(recovery))]).inc();
    }
}

/// The outcome of a recovery, or the reason why there is none yet.
pub fn recovery_outcome(recovery: &Recovery) -> &'static str {
    match recovery {
        Recovery::Resolved(_) => "resolved",
        Recovery::Erased => "erased",
        Recovery::Missing => "missing",
        Recovery::Blocked(block, _) => block.reason.as_str(),
    }
}

impl ObjectMetrics {
    /// Adds the change of the gauges of a namespace.
    pub fn update(&self, before: &Gauges, now: &Gauges) {
        self.queued.inc_by(difference(before.queued, now.queued));
        self.waiting.inc_by(difference(before.waiting, now.waiting));
        self.abandoned.inc_by(difference(before.abandoned, now.abandoned));
        self.record_bytes.inc_by(difference(before.record_bytes, now.record_bytes));
        for (quota, before, now) in [
            ("objects", before.over_quota, now.over_quota),
            ("record_bytes", before.over_record_bytes, now.over_record_bytes),
            ("steps", before.over_rate, now.over_rate),
        ] {
            self.over_quota.get_or_create(&[("quota", quota)]).inc_by(difference(before, now));
        }
        if before.objects == now.objects {
            return;
        }
        for kind in before.objects.keys().chain(now.objects.keys().filter(|kind| !before.objects.contains_key(kind))) {
            let labels = [("state", kind.0.as_str()), ("reason", kind.1.as_str())];
            let [before, now] = [before, now].map(|gauges| gauges.objects.get(kind).copied().unwrap_or(0));
            self.objects.get_or_create(&labels).inc_by(difference(before, now));
        }
    }

    pub fn add(&self, counts: Counts) {
        self.retries.inc_by(counts.retries);
        self.drift.inc_by(counts.drift);
    }
}

impl RequestMetrics {
    /// `code`: the status of the response; `None` if there is none.
    pub fn ended(&self, method: &'static str, resource: &'static str, code: Option<u16>, took: Duration) {
        let [method, resource] = [("method", method), ("resource", resource)];
        self.ended.get_or_create(&[method, resource, ("code", code_label(code))]).inc();
        self.seconds.get_or_create(&[method, resource]).observe(took.as_secs_f64());
    }

    pub fn record_written(&self, write: &'static str, outcome: &'static str, took: Duration) {
        self.records.get_or_create(&[("write", write), ("outcome", outcome)]).inc();
        self.record_seconds.get_or_create(&[("write", write)]).observe(took.as_secs_f64());
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

impl WatchMetrics {
    pub fn failed(&self, watch: &'static str) {
        self.errors.get_or_create(&[("watch", watch)]).inc();
    }

    pub fn listing(&self, watch: &'static str) {
        self.lists.get_or_create(&[("watch", watch)]).inc();
    }

    pub fn delivered(&self, watch: &'static str, now: Timestamp) {
        self.last_event.get_or_create(&[("watch", watch)]).set(now.as_duration().as_secs_f64());
    }

    /// The number of watches of inputs has changed by this.
    pub fn inputs_changed(&self, change: i64) {
        self.inputs.inc_by(change);
    }
}

/// A process that runs.
pub struct ProcessSample {
    pub provider: String,
    /// In bytes.
    pub memory: u64,
    /// Whether it has a Pod of its own.
    pub in_pod: bool,
}

impl ProviderMetrics {
    /// Sets the processes that run now.
    pub fn set_processes(&self, processes: impl IntoIterator<Item = ProcessSample>) {
        let mut by_provider: BTreeMap<_, (i64, i64, u64)> = BTreeMap::new();
        for ProcessSample { provider, memory, in_pod } in processes {
            let (count, pods, total) = by_provider.entry(provider_label(&provider)).or_default();
            *count += 1;
            *pods += i64::from(in_pod);
            *total = total.saturating_add(memory);
        }
        [&self.processes, &self.memory, &self.pods].into_iter().for_each(Family::clear);
        for (provider, (count, pods, memory)) in by_provider {
            self.processes.get_or_create(&[provider]).set(count);
            if pods > 0 {
                self.pods.get_or_create(&[provider]).set(pods);
            }
            self.memory.get_or_create(&[provider]).set(i64::try_from(memory).unwrap_or(i64::MAX));
        }
    }
}

impl Observer for ProviderMetrics {
    fn started(&self, provider: &str, succeeded: bool, took: Duration) {
        let outcome = if succeeded { "ok" } else { "failed" };
        self.starts.get_or_create(&[provider_label(provider), ("outcome", outcome)]).inc();
        self.call_seconds.get_or_create(&[("method", "start"), ("code", outcome)]).observe(took.as_secs_f64());
    }

    fn crashed(&self, provider: &str) {
        self.crashes.get_or_create(&[provider_label(provider)]).inc();
    }

    fn called(&self, provider: &str, method: &'static str, code: &'static str, took: Duration) {
        let [method, code] = [("method", method), ("code", code)];
        self.calls.get_or_create(&[provider_label(provider), method, code]).inc();
        self.call_seconds.get_or_create(&[method, code]).observe(took.as_secs_f64());
    }
}

impl PermitMetrics {
    /// Sets the values of a pool, whose numbers of waits only grow.
    pub fn set(&self, pool: &'static str, usage: &PoolUsage) {
        let labels = [("pool", pool)];
        self.taken.get_or_create(&labels).set(number(usage.taken));
        self.limit.get_or_create(&labels).set(number(usage.limit));
        self.waiting.get_or_create(&labels).set(number(usage.waiting));
        let waits = self.waits.get_or_create(&labels);
        waits.inc_by(usage.waits.saturating_sub(waits.get()));
        let seconds = self.wait_seconds.get_or_create(&labels);
        seconds.inc_by((usage.waited.as_secs_f64() - seconds.get()).max(0.0));
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn difference(before: usize, now: usize) -> i64 {
    number(now) - number(before)
}

/// The label values of one kind, which are kept for the life of the process.
type LabelValues = Mutex<BTreeSet<&'static str>>;

static PROVIDER_NAMES: LabelValues = Mutex::new(BTreeSet::new());
static TYPE_NAMES: LabelValues = Mutex::new(BTreeSet::new());

fn provider_label(provider: &str) -> (&'static str, &'static str) {
    ("provider", bounded(&PROVIDER_NAMES, PROVIDERS, provider))
}

/// The label value for a text: itself if it is one of the first `limit` ones.
fn bounded(known: &LabelValues, limit: usize, text: &str) -> &'static str {
    let mut known = lock(known);
    match known.get(text) {
        Some(value) => value,
        None if known.len() >= limit => "other",
        None => {
            let value: &'static str = Box::leak(text.into());
            known.insert(value);
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Reason;
    use runtime::reconcile::ObjectState;

    /// Checks that the metrics have these lines.
    fn check(metrics: &Metrics, lines: &[&str]) {
        let text = metrics.render();
        for line in lines {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn label_values_beyond_the_limit_share_one() {
        let known = LabelValues::default();
        assert_eq!(["a", "b", "c", "a"].map(|text| bounded(&known, 2, text)), ["a", "b", "other", "a"]);
    }

    #[test]
    fn samples_are_taken_when_the_metrics_are_rendered() {
        let metrics = Metrics::default();
        let sampled = metrics.clone();
        metrics.sample(move || sampled.event_dropped());
        metrics.lease_attempted(Some(true), Timestamp::from_second(7).unwrap());
        metrics.lease_attempted(None, Timestamp::from_second(9).unwrap());
        let lines = [
            "purlin_events_dropped_total 1",
            "purlin_lease_attempts_total{outcome=\"held\"} 1",
            "purlin_lease_attempts_total{outcome=\"error\"} 1",
            "purlin_lease_renewal_timestamp_seconds 7.0",
            &format!("purlin_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
        ];
        check(&metrics, &lines);
    }

    #[test]
    fn objects_are_counted_by_state_and_reason() {
        let metrics = Metrics::default();
        let gauges = |kind| Gauges { objects: BTreeMap::from([(kind, 1)]), ..Gauges::default() };
        let (none, ready) = (Gauges::default(), gauges((ObjectState::Ready, Reason::Available)));
        let stalled = gauges((ObjectState::Stalled, Reason::InvalidConfig));
        metrics.objects.update(&none, &ready);
        metrics.objects.update(&ready, &stalled);
        let lines = [
            "purlin_objects{state=\"ready\",reason=\"Available\"} 0",
            "purlin_objects{state=\"stalled\",reason=\"InvalidConfig\"} 1",
        ];
        check(&metrics, &lines);
    }

    #[test]
    fn processes_that_ended_are_no_longer_counted() {
        let metrics = Metrics::default();
        let of =
            |provider: &str, memory| ProcessSample { provider: provider.to_owned(), memory, in_pod: provider == "dns" };
        metrics.providers.set_processes([of("aws", 5), of("aws", 7), of("dns", 1)]);
        check(&metrics, &["purlin_provider_pods{provider=\"dns\"} 1"]);
        metrics.providers.set_processes([of("aws", 5)]);
        let lines =
            ["purlin_provider_processes{provider=\"aws\"} 1", "purlin_provider_memory_bytes{provider=\"aws\"} 5"];
        check(&metrics, &lines);
        assert!(!metrics.render().contains("dns"));
    }
}
