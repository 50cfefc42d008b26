//! Checks pre- and postconditions during a step, when all values that they read are known.

use super::{RecordEffect, StepError, StepTask};
use crate::execute::failure::Failure;
use engine::load::Instance;
use engine::plan::conditions::{self, ConditionOutcome};
use model::{Diagnostics, Reason};

/// Checks the preconditions, before anything is changed or destroyed.
pub fn before(task: &StepTask) -> Result<(), Failure> {
    let Some(instance) = checked_instance(task) else { return Ok(()) };
    into_result(task.evaluate(|| conditions::before(instance, &task.scope)))
}

/// Checks the preconditions before a destroy-before-create replacement destroys the old object. Conditions that read
/// values which are known only after the destroy are checked later.
pub fn before_destroy(task: &StepTask) -> Result<(), Failure> {
    let Some(instance) = checked_instance(task) else { return Ok(()) };
    match task.evaluate(|| conditions::before(instance, &task.scope)) {
        ConditionOutcome::Holds | ConditionOutcome::Unknown => Ok(()),
        violated @ ConditionOutcome::Violated(_) => into_result(violated),
    }
}

/// Checks the postconditions after a step. The object is already recorded and stays as it is.
pub fn after(task: &StepTask, effect: RecordEffect) -> Result<RecordEffect, StepError> {
    let Some(instance) = checked_instance(task).filter(|_| !task.step.operation.removes()) else { return Ok(effect) };
    if instance.postconditions.is_empty() {
        return Ok(effect);
    }
    let stored = task.record_after(&effect);
    let value = match &effect {
        RecordEffect::Read(reading) => Some(reading.value.clone()),
        _ => stored.and_then(|stored| Some(stored.record.current.as_ref()?.value.clone())),
    };
    let Some(value) = value else { return Ok(effect) };
    match into_result(task.evaluate(|| conditions::after(instance, &value, &task.scope))) {
        Ok(()) => Ok(effect),
        // A reading that violates its postconditions is not used.
        Err(failure) if matches!(effect, RecordEffect::Read(_)) => Err(failure.into()),
        Err(failure) => Err(StepError { effect, failure }),
    }
}

/// The instance, if its conditions apply to this step.
fn checked_instance(task: &StepTask) -> Option<&Instance> {
    task.instance.as_deref().filter(|_| !task.is_record_only())
}

fn into_result(checked: ConditionOutcome) -> Result<(), Failure> {
    match checked {
        ConditionOutcome::Holds => Ok(()),
        ConditionOutcome::Unknown => {
            let what = "a condition is unknown although all values that it reads are known";
            Err(Failure::internal(what))
        }
        ConditionOutcome::Violated(found) => Err(failure(found)),
    }
}

/// A violated condition may hold on retry, when a value that it reads has changed; an invalid condition cannot.
fn failure(mut found: Diagnostics) -> Failure {
    if found.is_empty() {
        return Failure::internal("a condition is violated without diagnostics");
    }
    let first = found.swap_remove(0);
    let retryable = matches!(first.reason, Reason::PreconditionFailed | Reason::PostconditionFailed);
    Failure { retryable, ..first.into() }
}
