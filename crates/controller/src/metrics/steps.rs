//! Plans, steps and recoveries.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{BoundedLabels, OutcomeLabels, call_buckets};
use model::Operation;
use runtime::execute::Recovery;

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

/// How a planning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOutcome {
    Planned,
    /// Some objects cannot be planned because of an error.
    Errors,
    Cancelled,
    Panicked,
}

#[derive(Clone)]
pub struct StepMetrics {
    types: BoundedLabels,
    ended: Family<StepLabels, Counter>,
    seconds: Family<OperationLabels, Histogram, fn() -> Histogram>,
    running: Gauge,
    plans: Family<OutcomeLabels, Counter>,
    plan_seconds: Histogram,
    recoveries: Family<OutcomeLabels, Counter>,
}

impl Default for StepMetrics {
    fn default() -> Self {
        Self {
            types: BoundedLabels::new(TYPES),
            ended: Family::default(),
            seconds: Family::new_with_constructor(call_buckets),
            running: Gauge::default(),
            plans: Family::default(),
            plan_seconds: call_buckets(),
            recoveries: Family::default(),
        }
    }
}

impl StepMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("steps", "Finished and failed steps", self.ended.clone());
        registry.register("step_duration_seconds", "Duration of steps", self.seconds.clone());
        registry.register("steps_running", "Running steps", self.running.clone());
        registry.register("plans", "Computed plans", self.plans.clone());
        registry.register("plan_duration_seconds", "Duration of plans", self.plan_seconds.clone());
        let help = "Attempts to determine how an interrupted operation ended";
        registry.register("recoveries", help, self.recoveries.clone());
    }

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
        let labels = StepLabels { operation: operation.as_str(), outcome, r#type: self.types.get(type_name) };
        self.ended.get_or_create(&labels).inc();
        let labels = OperationLabels { operation: operation.as_str() };
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub fn planned(&self, outcome: PlanOutcome, took: Duration) {
        let outcome = match outcome {
            PlanOutcome::Planned => "planned",
            PlanOutcome::Errors => "errors",
            PlanOutcome::Cancelled => "cancelled",
            PlanOutcome::Panicked => "panicked",
        };
        self.plans.get_or_create(&OutcomeLabels { outcome }).inc();
        self.plan_seconds.observe(took.as_secs_f64());
    }

    pub fn recovered(&self, recovery: &Recovery) {
        self.recoveries.get_or_create(&OutcomeLabels { outcome: recovery_outcome(recovery) }).inc();
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
