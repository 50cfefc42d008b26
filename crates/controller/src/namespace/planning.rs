//! Computes plans in the background.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::approvals;
use crate::context::Context;
use crate::metrics::PlanOutcome;
use process::ProcessorShare;
use runtime::execute::Engine;
use runtime::pipeline;
use runtime::reconcile::{PlanRequest, PlanResult, Signal};

/// Computes a plan on its own thread: it may take long, and must not block the threads of streams and calls. The number
/// of concurrent plannings is limited, and namespaces share it. `share`: the processors that the namespace may use.
pub async fn compute(context: Arc<Context>, share: ProcessorShare, request: PlanRequest) -> Signal {
    let names = request.names().clone();
    let pool = if request.calls_providers() { &context.provider_plannings } else { &context.plannings };
    let _permit = pool.acquire(&request.config.namespace).await;
    let (span, surroundings, began) = (span(&request), context.clone(), Instant::now());
    let making = async move {
        tokio::select! {
            biased;
            planned = plan(&surroundings, request) => Signal::Planned(Box::new(planned)),
            () = surroundings.shutdown.triggered() => Signal::Wake,
        }
    };
    let making = making.instrument(span.clone());
    let computed = context.threads.compute(Box::pin(async move { share.run(making).await }));
    let result = AssertUnwindSafe(computed).catch_unwind().await;
    let (outcome, took) = (outcome(&result), began.elapsed());
    context.metrics.steps.planned(outcome, took);
    span.in_scope(|| tracing::debug!(?outcome, seconds = took.as_secs_f64(), "planning ended"));
    match result {
        Ok(signal) => signal.unwrap_or(Signal::Wake),
        Err(_) => Signal::PlanningPanicked(names),
    }
}

/// Calls about one object have their own span. `component`: the first name of the only component.
fn span(request: &PlanRequest) -> Span {
    let mut components = request.components();
    let component = components.next().filter(|_| components.next().is_none());
    // A span of the highest level, because its fields belong to lines of all levels.
    tracing::error_span!("plan", namespace = &*request.config.namespace, component = component.map(|name| &**name))
}

fn outcome(result: &std::thread::Result<Option<Signal>>) -> PlanOutcome {
    match result {
        Err(_) => PlanOutcome::Panicked,
        Ok(Some(Signal::Planned(planned))) if planned.has_errors() => PlanOutcome::Errors,
        Ok(Some(Signal::Planned(_))) => PlanOutcome::Planned,
        Ok(_) => PlanOutcome::Cancelled,
    }
}

/// Plans, and plans again without the changes that wait for an approval, and without destroys if a CRD may be missing.
/// Every plan is checked: one that is made again can have changes that an error has prevented before.
async fn plan(context: &Context, mut request: PlanRequest) -> PlanResult {
    loop {
        let planned = run_planner(&context.engine, &mut request).await;
        let again = request.may_need_approval() && request.hold_unapproved(&approvals::salt(context).await, &planned);
        if !again && !hold_destroys(context, &mut request, &planned).await {
            return request.into_result(planned);
        }
    }
}

/// Holds the destroys of a destructive plan if the CRD guard says so. Returns whether it must be planned again.
async fn hold_destroys(context: &Context, request: &mut PlanRequest, planned: &pipeline::OrderedPlan) -> bool {
    if request.options.hold_destroys.is_some() || !request.is_destructive(&planned.plan) {
        return false;
    }
    request.options.hold_destroys = context.guard.hold().await;
    request.options.hold_destroys.is_some()
}

async fn run_planner(engine: &Engine, request: &mut PlanRequest) -> pipeline::OrderedPlan {
    let PlanRequest { config, recorded, options, memo, .. } = request;
    pipeline::plan(engine, config, recorded, options, memo).await
}
