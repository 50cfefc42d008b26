//! Hooks with their expressions evaluated: what exactly is to be run for an object.

use crate::load::expression::{Scope, Variable};
use crate::load::hook::{self, When};
use crate::load::{Instance, Own, Template, WithSelf};
use crate::model::{
    Address, Diagnostic, Diagnostics, HookKind, InstanceKey, Path, Reason, RecordedHook, RecordedObject, Severity,
    Value,
};

/// A hook that is to run, or why it cannot.
#[derive(Clone, Debug)]
pub enum Evaluated {
    /// Its definition holds no expressions any more.
    Ready(RecordedHook),
    /// Its expressions cannot be evaluated: the hook has failed before it began.
    Faulty(RecordedHook, Diagnostic),
}

/// The hooks to run after `object` of an instance was created.
pub fn after_create(instance: &Instance, object: &Value, scope: &dyn Scope) -> Vec<Evaluated> {
    let scope = &Own { instance, others: scope };
    let scope = WithSelf { object, scope };
    let own = instance.hooks.iter().filter(|hook| hook.when == When::AfterCreate);
    own.map(|hook| evaluate(&instance.address, &hook.written, &hook.template, &hook.at, &scope)).collect()
}

/// The hooks to run before an object goes. The Resource decides while there is one and nothing is wrong with it;
/// otherwise what was recorded with the object.
pub fn before_destroy(instance: Option<&Instance>, address: &Address, object: &RecordedObject) -> Vec<Evaluated> {
    let scope = Alone { object: &object.value, key: &address.key };
    let sound = |instance: &&Instance| !instance.problems.iter().any(|problem| problem.severity == Severity::Error);
    match instance.filter(sound) {
        Some(instance) => {
            let own = instance.hooks.iter().filter(|hook| hook.when == When::BeforeDestroy);
            own.map(|hook| evaluate(address, &hook.written, &hook.template, &hook.at, &scope)).collect()
        }
        None => object.hooks.iter().map(|written| recorded(address, written, &scope)).collect(),
    }
}

fn recorded(address: &Address, written: &RecordedHook, scope: &dyn Scope) -> Evaluated {
    let at = Path::default().name("hooks").name(written.name.clone());
    match hook::parse_recorded(written) {
        (_, mut problems) if !problems.is_empty() => Evaluated::Faulty(written.clone(), problems.swap_remove(0)),
        (template, _) => evaluate(address, written, &template, &at, scope),
    }
}

/// What is known to be wrong with the hooks of an object that is planned to be created: unknown places may turn out
/// well.
pub fn check(instance: &Instance, object: &Value, scope: &dyn Scope) -> Diagnostics {
    let alone = Alone { object, key: &instance.address.key };
    let scope = &Own { instance, others: scope };
    let after = WithSelf { object, scope };
    let mut found = Vec::new();
    for hook in instance.hooks.iter() {
        let scope: &dyn Scope = if hook.when == When::AfterCreate { &after } else { &alone };
        if let Evaluated::Faulty(_, problem) =
            evaluate(&instance.address, &hook.written, &hook.template, &hook.at, scope)
        {
            found.push(problem.from_source(instance.source.clone()));
        }
    }
    found
}

/// Whether hooks follow the creation of an object.
pub fn follow_create(instance: &Instance) -> bool {
    instance.hooks.iter().any(|hook| hook.when == When::AfterCreate)
}

/// What is recorded with an object, for the time when its Resource is gone.
pub fn to_record(instance: &Instance) -> impl Iterator<Item = &RecordedHook> {
    instance.hooks.iter().filter(|hook| hook.when == When::BeforeDestroy).map(|hook| &hook.written)
}

fn evaluate(address: &Address, written: &RecordedHook, template: &Template, at: &Path, scope: &dyn Scope) -> Evaluated {
    let faulty = |mut problem: Diagnostic| {
        let mut place = at.clone();
        place.0.extend(problem.path.take().unwrap_or_default().0);
        problem.address = Some(address.clone());
        Evaluated::Faulty(written.clone(), problem.at(place))
    };
    let definition = match template.evaluate(scope) {
        Ok(definition) => definition,
        Err(mut problems) => return faulty(problems.swap_remove(0)),
    };
    if written.kind == HookKind::Exec
        && let Some(wrong) = first_no_text(&definition)
    {
        let what = "it must be a text, a number or a boolean";
        return faulty(Diagnostic::error(address, Reason::InvalidExpression, what).at(Path::default().index(wrong)));
    }
    Evaluated::Ready(RecordedHook { definition, ..written.clone() })
}

/// The position of the first argument that cannot stand on a command line.
fn first_no_text(command: &Value) -> Option<usize> {
    let Value::List(items) = command.unmarked() else { return Some(0) };
    let text =
        |item: &Value| matches!(item.unmarked(), Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Unknown);
    items.iter().position(|item| !text(item))
}

/// What a hook before a destroy sees: the object, and its key in its family.
struct Alone<'a> {
    object: &'a Value,
    key: &'a InstanceKey,
}

impl Scope for Alone<'_> {
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
