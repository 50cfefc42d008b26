//! Making a plan, beside all that goes on.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::time::Instant;

use crate::controller::context::Context;
use crate::controller::guard::Guard;
use crate::execute::Engine;
use crate::pipeline;
use crate::reconcile::{Happened, PlanRequest, Planned};

/// Makes a plan on a thread of its own: it computes for as long as there are objects, and the threads that serve all
/// the streams and calls must not wait for that. How many at once is bounded, since those threads are.
pub(super) async fn make(context: Arc<Context>, request: PlanRequest) -> Happened {
    let names = request.names().clone();
    let places = if request.asks_providers() { &context.asking_plannings } else { &context.plannings };
    let Ok(_place) = places.acquire().await else { return Happened::Nothing };
    let (surroundings, began) = (context.clone(), Instant::now());
    let making = async move {
        tokio::select! {
            biased;
            planned = plan(&surroundings.engine, &surroundings.guard, request) => Happened::Planned(Box::new(planned)),
            () = surroundings.shutdown.triggered() => Happened::Nothing,
        }
    };
    let made = AssertUnwindSafe(context.threads.compute(Box::pin(making))).catch_unwind().await;
    context.metrics.planned(began.elapsed());
    match made {
        Ok(made) => made.unwrap_or(Happened::Nothing),
        Err(_) => Happened::PlanLost(names),
    }
}

/// Asks the drivers. When something would be given up, the API server is asked whether it may be.
async fn plan(engine: &Engine, guard: &Guard, mut request: PlanRequest) -> Planned {
    let made = ask(engine, &mut request).await;
    if request.gives_up(&made.plan)
        && let Some(held) = guard.holds().await
    {
        request.options.hold_destroys = Some(held);
        let held = ask(engine, &mut request).await;
        return request.planned(held);
    }
    request.planned(made)
}

async fn ask(engine: &Engine, request: &mut PlanRequest) -> pipeline::Planned {
    let PlanRequest { config, recorded, options, memo, .. } = request;
    pipeline::plan(engine, config, recorded, options, memo).await
}
