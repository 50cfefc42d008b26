//! The conditions of an object, at the moment its step is carried out: by now everything that they read is known.

use super::{Fate, StepTask, Unfinished};
use crate::execute::failure::Failure;
use crate::load::Instance;
use crate::model::{Diagnostics, Reason};
use crate::plan::conditions::{self, Checked};

/// Checks the preconditions, before anything is given up or changed.
pub(super) fn before(task: &StepTask) -> Result<(), Failure> {
    let Some(instance) = judging(task) else { return Ok(()) };
    judged(conditions::before(instance, &task.scope))
}

/// Checks them before the old object of a delete-first replacement goes: what only the order itself makes known later
/// is checked later.
pub(super) fn as_far_as_known(task: &StepTask) -> Result<(), Failure> {
    let Some(instance) = judging(task) else { return Ok(()) };
    match conditions::before(instance, &task.scope) {
        Checked::Holds | Checked::Unknown => Ok(()),
        violated @ Checked::Violated(_) => judged(violated),
    }
}

/// Checks the postconditions of the object that a step has left. It is recorded by now, and stays as it is.
pub(super) fn after(task: &StepTask, fate: Fate) -> Result<Fate, Unfinished> {
    let Some(instance) = judging(task).filter(|_| !task.step.operation.removes()) else { return Ok(fate) };
    if instance.postconditions.is_empty() {
        return Ok(fate);
    }
    let stored = task.left_by(&fate);
    let value = match &fate {
        Fate::Read(reading) => Some(reading.value.clone()),
        _ => stored.and_then(|stored| Some(stored.record.current.as_ref()?.value.clone())),
    };
    let Some(value) = value else { return Ok(fate) };
    match judged(conditions::after(instance, &value, &task.scope)) {
        Ok(()) => Ok(fate),
        // What was read and is not as it must be counts for nobody.
        Err(failure) if matches!(fate, Fate::Read(_)) => Err(failure.into()),
        Err(failure) => Err(Unfinished { fate, failure }),
    }
}

/// The Resource, when its conditions count in this step.
fn judging(task: &StepTask) -> Option<&Instance> {
    task.instance.as_deref().filter(|_| !task.only_follows())
}

fn judged(checked: Checked) -> Result<(), Failure> {
    match checked {
        Checked::Holds => Ok(()),
        Checked::Unknown => {
            let what = "a condition is still not known, although everything that it reads is done";
            Err(Failure::internal(what))
        }
        Checked::Violated(found) => Err(failure(found)),
    }
}

/// A violated condition may hold later, when what it reads has changed; a faulty one will not.
fn failure(mut found: Diagnostics) -> Failure {
    if found.is_empty() {
        return Failure::internal("a condition is violated for no reason");
    }
    let first = found.swap_remove(0);
    let retryable = matches!(first.reason, Reason::PreconditionFailed | Reason::PostconditionFailed);
    Failure { retryable, ..first.into() }
}
