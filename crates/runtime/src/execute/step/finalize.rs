//! The final plan of a change, with the values that were unknown at planning time. It may only narrow the plan.

use std::sync::Arc;

use super::{StepTask, conditions};
use crate::execute::engine::validate_and_plan;
use crate::execute::failure::Failure;
use engine::load::Instance;
use engine::plan::PreparedStep;
use engine::plan::finalize::{FinalPlan, narrow, partial_request, request};
use model::{Diagnostics, PlanRequest, PlanResponse};

/// Plans the create or update again with the values that are known now. The whole configuration must be known.
pub async fn finalize(task: &StepTask) -> Result<FinalPlan, Failure> {
    let prepared = task.prepared()?;
    // A configuration without unknown values cannot have changed, because dependencies must match their plans.
    if !prepared.config.has_unknown() {
        return Ok(as_planned(prepared));
    }
    let schema = task.schema()?;
    let instance = desired_instance(task)?;
    let request = task.evaluate(|| request(prepared, instance, &schema, &task.scope)).map_err(first_error)?;
    let config = request.config.clone();
    let response = plan_again(task, prepared, request).await?;
    Ok(narrow(&task.step.address, prepared, &schema, config, response)?)
}

/// Checks, before a destroy-before-create replacement destroys the old object, that the new one can be planned. Values
/// that become known only after the destroy may still be unknown.
pub async fn check_replacement(task: &StepTask) -> Result<(), Failure> {
    conditions::before_destroy(task)?;
    let prepared = task.prepared()?;
    let is_known = !prepared.config.has_unknown();
    if is_known && !task.driver()?.plan_depends_on_others() {
        return Ok(());
    }
    let schema = task.schema()?;
    let instance = desired_instance(task)?;
    let request = match is_known {
        true => as_planned_request(prepared),
        false => task.evaluate(|| partial_request(prepared, instance, &schema, &task.scope)).map_err(first_error)?,
    };
    let config = request.config.clone();
    let request = PlanRequest { replaces: prepared.replaced.clone(), ..request };
    let response = plan_again(task, prepared, request).await?;
    if let Some(refusal) = response.refusal {
        return Err(refusal.error.into());
    }
    narrow(&task.step.address, prepared, &schema, config, response)?;
    Ok(())
}

/// The request of the plan, again.
fn as_planned_request(prepared: &PreparedStep) -> PlanRequest {
    PlanRequest {
        prior: None,
        config: prepared.config.clone(),
        ignored: None,
        entropy: prepared.entropy,
        previous_plan: Some(prepared.planned.clone()),
        replaces: None,
    }
}

fn as_planned(prepared: &PreparedStep) -> FinalPlan {
    FinalPlan {
        config: prepared.config.clone(),
        planned: prepared.planned.clone(),
        private: Arc::clone(&prepared.private),
        identity: prepared.identity.clone(),
        unchanged: !prepared.requires_update
            && prepared
                .prior
                .as_ref()
                .is_some_and(|prior| !prepared.planned.has_unknown() && prepared.planned.equals_unmarked(&prior.value)),
    }
}

/// The failure of a step whose configuration cannot be evaluated.
pub fn first_error(mut problems: Diagnostics) -> Failure {
    match problems.is_empty() {
        true => Failure::internal("the configuration cannot be evaluated"),
        false => problems.swap_remove(0).into(),
    }
}

fn desired_instance(task: &StepTask) -> Result<&Instance, Failure> {
    task.instance.as_deref().ok_or_else(|| Failure::internal("a change is planned for an object without a Resource"))
}

async fn plan_again(task: &StepTask, prepared: &PreparedStep, request: PlanRequest) -> Result<PlanResponse, Failure> {
    let context = task.context(&prepared.recorded, task.timeouts().read, None);
    let (found, answer) = validate_and_plan(task.driver()?.as_ref(), &context, request).await;
    task.add_diagnostics(found)?;
    answer?.ok_or_else(|| Failure::driver("the driver returned no plan"))
}
