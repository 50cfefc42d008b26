//! The final plan of a change: what was unknown when it was planned is known now. It may only narrow the plan.

use std::sync::Arc;
use std::time::Duration;

use super::StepTask;
use crate::execute::consult::validate_and_plan;
use crate::execute::failure::Failure;
use crate::load::Instance;
use crate::model::{PlanRequest, PlanResponse, RecordedObject, Severity, Value};
use crate::plan::Prepared;
use crate::plan::finalize::narrow;

/// A change with everything known that can be known before the call.
pub(super) struct Final {
    pub config: Value,
    pub planned: Value,
    pub private: Arc<[u8]>,
    pub identity: Option<Value>,
}

/// Plans the create (`prior` is `None`) or update once more with the values that are known now. The whole
/// configuration must be known.
pub(super) async fn finalize(task: &StepTask, prior: Option<&Arc<RecordedObject>>) -> Result<Final, Failure> {
    let prepared = task.prepared()?;
    // What was wholly known when it was planned cannot have changed since: dependencies keep to their plans.
    if !prepared.config.has_unknown() {
        return Ok(Final {
            config: prepared.config.clone(),
            planned: prepared.planned.clone(),
            private: Arc::clone(&prepared.private),
            identity: prepared.identity.clone(),
        });
    }
    let config = evaluate(task)?;
    if config.has_unknown() {
        return Err(Failure::internal("the configuration is not wholly known, though all it refers to is done"));
    }
    let response = plan_again(task, prepared, prior, config.clone()).await?;
    narrow(&task.step.address, prepared, &response)?;
    Ok(Final { config, planned: response.planned, private: response.private, identity: response.identity })
}

/// Delete-first: before the old object goes, the create leg must be plannable with all that can be known by then.
/// Only what the order itself makes later than the destroy may still be unknown.
pub(super) async fn rehearse(task: &StepTask) -> Result<(), Failure> {
    let prepared = task.prepared()?;
    if !prepared.config.has_unknown() {
        return Ok(());
    }
    let config = evaluate(task)?;
    let response = plan_again(task, prepared, None, config).await?;
    narrow(&task.step.address, prepared, &response)?;
    Ok(())
}

fn evaluate(task: &StepTask) -> Result<Value, Failure> {
    let instance = wanted(task)?;
    instance.config.evaluate(&task.scope).map_err(|mut problems| match problems.is_empty() {
        true => Failure::internal("the configuration cannot be evaluated"),
        false => problems.swap_remove(0).into(),
    })
}

fn wanted(task: &StepTask) -> Result<&Instance, Failure> {
    task.instance.as_deref().ok_or_else(|| Failure::internal("a change is planned for an object that nobody wants"))
}

async fn plan_again(
    task: &StepTask,
    prepared: &Prepared,
    prior: Option<&Arc<RecordedObject>>,
    config: Value,
) -> Result<PlanResponse, Failure> {
    let request = PlanRequest {
        prior: prior.cloned(),
        config,
        entropy: prepared.entropy,
        planned_before: Some(prepared.planned.clone()),
    };
    let timeout: Duration = task.timeouts().read;
    let context = task.context(&prepared.recorded.service_account, timeout, &Arc::from(""));
    let (mut found, answer) = validate_and_plan(task.driver()?.as_ref(), &context, request).await;
    if let Some(at) = found.iter().position(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(found.swap_remove(at).into());
    }
    answer?.ok_or_else(|| Failure::internal("the driver gave no plan"))
}
