//! Checks preconditions and postconditions, during planning and again during a step.

use crate::load::expression::Scope;
use crate::load::{Condition, Instance, InstanceScope, SelfScope};
use model::{Diagnostic, Diagnostics, Reason, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionOutcome {
    /// All conditions hold.
    Holds,
    /// No condition is violated, but some depend on unknown values. The step checks them again.
    Unknown,
    /// An error for each condition that is violated or cannot be evaluated.
    Violated(Diagnostics),
}

pub fn before(instance: &Instance, scope: &dyn Scope) -> ConditionOutcome {
    check(instance, &instance.preconditions, Reason::PreconditionFailed, &InstanceScope { instance, others: scope })
}

pub fn after(instance: &Instance, object: &Value, scope: &dyn Scope) -> ConditionOutcome {
    let scope = &InstanceScope { instance, others: scope };
    check(instance, &instance.postconditions, Reason::PostconditionFailed, &SelfScope { object, scope })
}

fn check(instance: &Instance, conditions: &[Condition], reason: Reason, scope: &dyn Scope) -> ConditionOutcome {
    let mut violations = Vec::new();
    let mut unknown = false;
    for condition in conditions {
        match condition.condition.evaluate(scope) {
            Ok(value) => match value.unmarked() {
                Value::Bool(true) => {}
                Value::Bool(false) => violations.extend(violation(instance, condition, reason, scope)),
                Value::Unknown => unknown = true,
                other => violations.push(not_boolean(instance, condition, other)),
            },
            Err(problems) => violations.extend(located(instance, condition, "condition", problems)),
        }
    }
    match (violations.is_empty(), unknown) {
        (false, _) => ConditionOutcome::Violated(violations),
        (true, true) => ConditionOutcome::Unknown,
        (true, false) => ConditionOutcome::Holds,
    }
}

/// The `errorMessage` of the condition. A faulty message is reported in addition to the violation.
fn violation(instance: &Instance, condition: &Condition, reason: Reason, scope: &dyn Scope) -> Diagnostics {
    let (text, faults) = match condition.message.evaluate(scope) {
        Ok(Value::Sensitive(_)) => ("the condition is not met; its message contains a sensitive value".into(), vec![]),
        Ok(Value::String(text)) => (text.split_whitespace().collect::<Vec<_>>().join(" "), vec![]),
        Ok(Value::Unknown) => ("the condition is not met; its message is not known yet".to_owned(), vec![]),
        Ok(_) => ("the condition is not met; its message is not a string".to_owned(), vec![]),
        Err(faults) => ("the condition is not met".to_owned(), faults),
    };
    let violated = Diagnostic::error(&instance.address, reason, text).at(condition.at.clone());
    let mut diagnostics = vec![violated];
    diagnostics.extend(located(instance, condition, "errorMessage", faults));
    diagnostics
}

fn not_boolean(instance: &Instance, condition: &Condition, value: &Value) -> Diagnostic {
    let kind = match value {
        Value::Null => "null",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::List(_) => "a list",
        _ => "a map",
    };
    let what = format!("the condition returns {kind}, not true or false");
    let error = Diagnostic::error(&instance.address, Reason::InvalidExpression, what);
    error.at(condition.at.name("condition")).hint("compare the value, for example `... != null` or `... == 'ready'`")
}

/// Attaches the instance and the field of the condition to the problems of an expression.
fn located(instance: &Instance, condition: &Condition, field: &str, mut problems: Diagnostics) -> Diagnostics {
    for problem in &mut problems {
        problem.address = Some(instance.address.clone());
        // A problem at a place of its own, in another language, needs no path.
        problem.path = problem.source.is_none().then(|| condition.at.name(field));
    }
    problems
}
