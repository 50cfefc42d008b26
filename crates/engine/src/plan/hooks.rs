//! Evaluates the expressions of hooks.

use std::borrow::Cow;
use std::sync::Arc;

use crate::load::expression::{Scope, Variable};
use crate::load::hook::{self, HookPhase};
use crate::load::{Instance, InstanceScope, SelfScope, Template};
use model::{
    Address, Diagnostic, Diagnostics, HookKind, InstanceKey, Path, Reason, RecordedHook, RecordedObject, Value,
};

/// A hook to run, or why it cannot run.
#[derive(Clone, Debug)]
pub enum EvaluatedHook {
    /// The definition contains no expressions.
    Ready(RecordedHook),
    /// The expressions cannot be evaluated, which counts as a failed hook.
    Faulty(RecordedHook, Diagnostic),
}

pub fn after_create(instance: &Instance, object: &Value, scope: &dyn Scope) -> Vec<EvaluatedHook> {
    let scope = &InstanceScope { instance, others: scope };
    let scope = SelfScope { object, scope };
    instance
        .hooks
        .iter()
        .filter(|hook| hook.when == HookPhase::AfterCreate)
        .map(|hook| evaluate(&instance.address, &hook.recorded, &hook.template, &hook.at, &scope))
        .collect()
}

/// The hooks of the Resource, or the recorded ones if the Resource does not exist or has errors.
pub fn before_destroy(instance: Option<&Instance>, address: &Address, object: &RecordedObject) -> Vec<EvaluatedHook> {
    let scope = DestroyScope { object: &object.value, key: &address.key };
    match instance.filter(|instance| !instance.has_errors()) {
        Some(instance) => instance
            .hooks
            .iter()
            .filter(|hook| hook.when == HookPhase::BeforeDestroy)
            .map(|hook| evaluate(address, &hook.recorded, &hook.template, &hook.at, &scope))
            .collect(),
        None => object.hooks.iter().map(|written| recorded(address, written, &scope)).collect(),
    }
}

fn recorded(address: &Address, written: &RecordedHook, scope: &dyn Scope) -> EvaluatedHook {
    let at = Path::default().name("hooks").name(written.name.clone());
    if has_values(written) {
        return match written.definition.has_unknown() {
            false => EvaluatedHook::Ready(written.clone()),
            true => {
                let what = format!("the hook `{}` was recorded before its values were known", written.name);
                EvaluatedHook::Faulty(written.clone(), Diagnostic::error(address, Reason::InvalidExpression, what))
            }
        };
    }
    match hook::parse_recorded(written) {
        (_, mut problems) if !problems.is_empty() => EvaluatedHook::Faulty(written.clone(), problems.swap_remove(0)),
        (template, _) => evaluate(address, written, &template, &at, scope),
    }
}

/// The errors in the hooks of an object that is planned to be created. Unknown values are not errors.
pub fn check(instance: &Instance, object: &Value, scope: &dyn Scope) -> Diagnostics {
    let alone = DestroyScope { object, key: &instance.address.key };
    let scope = &InstanceScope { instance, others: scope };
    let after = SelfScope { object, scope };
    let mut problems = Vec::new();
    for hook in instance.hooks.iter() {
        let scope: &dyn Scope = if hook.when == HookPhase::AfterCreate { &after } else { &alone };
        if let EvaluatedHook::Faulty(_, problem) =
            evaluate(&instance.address, &hook.recorded, &hook.template, &hook.at, scope)
        {
            problems.push(problem);
        }
    }
    problems
}

pub fn follow_create(instance: &Instance) -> bool {
    instance.hooks.iter().any(|hook| hook.when == HookPhase::AfterCreate)
}

/// The hooks to record with an object, for a destroy after its Resource is deleted.
pub fn to_record<'a>(instance: &'a Instance, object: &'a Value) -> impl Iterator<Item = Cow<'a, RecordedHook>> {
    instance.hooks.iter().filter(|hook| hook.when == HookPhase::BeforeDestroy).map(move |hook| {
        if !hook.records_values {
            return Cow::Borrowed(&hook.recorded);
        }
        let scope = DestroyScope { object, key: &instance.address.key };
        // What cannot be evaluated is an error of the object, or known only after a change.
        let definition = hook.template.evaluate(&scope).unwrap_or(Value::Unknown);
        Cow::Owned(RecordedHook { definition, ..hook.recorded.clone() })
    })
}

/// The hooks to record with an object as a change has left it. `planned`: those of the plan.
pub fn after_change(instance: Option<&Instance>, planned: &Arc<[RecordedHook]>, object: &Value) -> Arc<[RecordedHook]> {
    match instance.filter(|instance| instance.hooks.iter().any(|hook| hook.records_values)) {
        Some(instance) => to_record(instance, object).map(Cow::into_owned).collect(),
        None => Arc::clone(planned),
    }
}

/// Whether a recorded definition has values instead of expressions: that of a program without being a list of words.
fn has_values(recorded: &RecordedHook) -> bool {
    recorded.kind == HookKind::Exec && !matches!(recorded.definition.unmarked(), Value::List(_))
}

fn evaluate(
    address: &Address,
    written: &RecordedHook,
    template: &Template,
    at: &Path,
    scope: &dyn Scope,
) -> EvaluatedHook {
    let definition = match template.evaluate(scope) {
        Ok(definition) => definition,
        Err(mut problems) => return faulty(address, written, at, problems.swap_remove(0)),
    };
    if written.kind == HookKind::Exec
        && matches!(definition.unmarked(), Value::List(_))
        && let Some(wrong) = first_invalid_argument(&definition)
    {
        let what = "must be a string, a number or a boolean";
        let problem = Diagnostic::error(address, Reason::InvalidExpression, what).at(Path::default().index(wrong));
        return faulty(address, written, at, problem);
    }
    EvaluatedHook::Ready(RecordedHook { definition, ..written.clone() })
}

/// A hook with a problem, whose path is below `at`.
fn faulty(address: &Address, written: &RecordedHook, at: &Path, mut problem: Diagnostic) -> EvaluatedHook {
    let mut place = at.clone();
    place.0.extend(problem.path.take().unwrap_or_default().0);
    problem.address = Some(address.clone());
    EvaluatedHook::Faulty(written.clone(), problem.at(place))
}

/// The position of the first argument that is not valid on a command line.
fn first_invalid_argument(command: &Value) -> Option<usize> {
    let Value::List(items) = command.unmarked() else { return Some(0) };
    items.iter().position(|item| {
        !matches!(item.unmarked(), Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Unknown)
    })
}

/// The scope of a hook before a destroy: only the object and its key in its family.
struct DestroyScope<'a> {
    object: &'a Value,
    key: &'a InstanceKey,
}

impl Scope for DestroyScope<'_> {
    fn object(&self, _: &Address) -> Option<Value> {
        None
    }

    fn namespace(&self) -> Value {
        Value::Null
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        match (variable, self.key) {
            (Variable::Itself, _) => Some(self.object.clone()),
            (Variable::Each, InstanceKey::Key(key)) => Some(Value::map([("key", Value::String(key.clone()))])),
            (Variable::Count, InstanceKey::Index(index)) => {
                Some(Value::map([("index", Value::from(i64::try_from(*index).unwrap_or(i64::MAX)))]))
            }
            _ => None,
        }
    }
}
