//! The final plan of a change: what was unknown when it was planned is known now. It may only narrow the plan.

use std::sync::Arc;

use super::{StepTask, conditions};
use crate::execute::asking::validate_and_plan;
use crate::execute::failure::Failure;
use crate::load::Instance;
use crate::model::{Diagnostics, PlanRequest, PlanResponse, Value};
use crate::plan::Prepared;
use crate::plan::finalize::{Final, narrow, rehearsal, request};

/// Plans the create or update once more with the values that are known now. The whole configuration must be known.
pub(super) async fn finalize(task: &StepTask) -> Result<Final, Failure> {
    let prepared = task.prepared()?;
    // What was wholly known when it was planned cannot have changed since: dependencies keep to their plans.
    if !prepared.config.has_unknown() {
        return Ok(as_planned(prepared));
    }
    let schema = task.schema()?;
    let request = request(prepared, wanted(task)?, &schema, &task.scope).map_err(first)?;
    let config = request.config.clone();
    let response = plan_again(task, prepared, request).await?;
    Ok(narrow(&task.step.address, prepared, &schema, config, response)?)
}

/// Delete-first: before the old object goes, the create leg must be plannable with all that can be known by then.
/// Only what the order itself makes later than the destroy may still be unknown.
pub(super) async fn rehearse(task: &StepTask) -> Result<(), Failure> {
    conditions::as_far_as_known(task)?;
    let prepared = task.prepared()?;
    if !prepared.config.has_unknown() {
        return Ok(());
    }
    let schema = task.schema()?;
    let request = rehearsal(prepared, wanted(task)?, &schema, &task.scope).map_err(first)?;
    let config = request.config.clone();
    let response = plan_again(task, prepared, request).await?;
    narrow(&task.step.address, prepared, &schema, config, response)?;
    Ok(())
}

fn as_planned(prepared: &Prepared) -> Final {
    let unchanged = |prior: &Value| !prepared.planned.has_unknown() && prepared.planned.same(prior);
    Final {
        config: prepared.config.clone(),
        planned: prepared.planned.clone(),
        private: Arc::clone(&prepared.private),
        identity: prepared.identity.clone(),
        unchanged: !prepared.tells && prepared.prior.as_ref().is_some_and(|prior| unchanged(&prior.value)),
    }
}

/// What a step fails with when its configuration cannot be evaluated.
pub(super) fn first(mut problems: Diagnostics) -> Failure {
    match problems.is_empty() {
        true => Failure::internal("the configuration cannot be evaluated"),
        false => problems.swap_remove(0).into(),
    }
}

fn wanted(task: &StepTask) -> Result<&Instance, Failure> {
    task.instance.as_deref().ok_or_else(|| Failure::internal("a change is planned for an object that nobody wants"))
}

async fn plan_again(task: &StepTask, prepared: &Prepared, request: PlanRequest) -> Result<PlanResponse, Failure> {
    let context = task.context(&prepared.recorded, task.timeouts().read, None);
    let (found, answer) = validate_and_plan(task.driver()?.as_ref(), &context, request, &|| task.read()).await;
    task.hear(found)?;
    answer?.ok_or_else(|| Failure::driver("the driver gave no plan"))
}
