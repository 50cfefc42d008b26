//! Conditions: whether what an object asks for holds. Used when a plan is made, and again when a step is carried out.

use crate::load::expression::Scope;
use crate::load::{Condition, Instance, Own, WithSelf};
use crate::model::{Diagnostic, Diagnostics, Reason, Value};

/// What became of a list of conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// All of them hold.
    Holds,
    /// None is violated, and some read what is not known yet: they are checked again by the step.
    Unknown,
    /// Some are violated, or cannot be judged: an error for each.
    Violated(Diagnostics),
}

/// Checks the preconditions of an instance.
pub fn before(instance: &Instance, scope: &dyn Scope) -> Checked {
    check(instance, &instance.preconditions, Reason::PreconditionFailed, &Own { instance, others: scope })
}

/// Checks the postconditions of an instance whose object is `object`.
pub fn after(instance: &Instance, object: &Value, scope: &dyn Scope) -> Checked {
    let scope = &Own { instance, others: scope };
    check(instance, &instance.postconditions, Reason::PostconditionFailed, &WithSelf { object, scope })
}

fn check(instance: &Instance, conditions: &[Condition], reason: Reason, scope: &dyn Scope) -> Checked {
    let mut found = Vec::new();
    let mut unknown = false;
    for condition in conditions {
        match condition.condition.evaluate(scope) {
            Ok(value) => match value.unmarked() {
                Value::Bool(true) => {}
                Value::Bool(false) => found.extend(violation(instance, condition, reason, scope)),
                Value::Unknown => unknown = true,
                other => found.push(no_answer(instance, condition, other)),
            },
            Err(problems) => found.extend(located(instance, condition, "condition", problems)),
        }
    }
    match (found.is_empty(), unknown) {
        (false, _) => Checked::Violated(found),
        (true, true) => Checked::Unknown,
        (true, false) => Checked::Holds,
    }
}

/// The author's message. That the condition is violated is told even if the message itself has a fault.
fn violation(instance: &Instance, condition: &Condition, reason: Reason, scope: &dyn Scope) -> Diagnostics {
    let (text, faults) = match condition.message.evaluate(scope) {
        Ok(Value::Sensitive(_)) => ("the condition does not hold; its message holds a sensitive value".into(), vec![]),
        Ok(Value::String(text)) => (text.split_whitespace().collect::<Vec<_>>().join(" "), vec![]),
        Ok(Value::Unknown) => ("the condition does not hold; its message is not known yet".to_owned(), vec![]),
        Ok(_) => ("the condition does not hold; its message is no text".to_owned(), vec![]),
        Err(faults) => ("the condition does not hold".to_owned(), faults),
    };
    let violated = Diagnostic::error(&instance.address, reason, text).at(condition.at.clone());
    let mut found = vec![violated.from_source(instance.source.clone())];
    found.extend(located(instance, condition, "errorMessage", faults));
    found
}

fn no_answer(instance: &Instance, condition: &Condition, value: &Value) -> Diagnostic {
    let kind = match value {
        Value::Null => "null",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        _ => "a map",
    };
    let what = format!("the condition gives {kind}, not true or false");
    let error = Diagnostic::error(&instance.address, Reason::InvalidExpression, what);
    let error = error.at(condition.at.name("condition")).from_source(instance.source.clone());
    error.hint("compare it with something: `... != null`, `... == 'ready'`")
}

/// Problems of an expression as problems of the instance. A condition is one expression, so they have no place in it.
fn located(instance: &Instance, condition: &Condition, field: &str, mut problems: Diagnostics) -> Diagnostics {
    for problem in &mut problems {
        problem.address = Some(instance.address.clone());
        problem.source = problem.source.take().or_else(|| instance.source.clone());
        problem.path = Some(condition.at.name(field));
    }
    problems
}
