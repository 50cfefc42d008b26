//! Runs an expression in a scope: marks first, then CEL.

use cel::common::types::CelOptional;
use cel::common::value::Val;
use cel::{Context, ExecutionError};

use super::program::Program;
use super::slot::{How, Slot};
use super::{Access, Part, Problem, Scope, budget, convert, functions};
use crate::model::Value;
use crate::model::unicode::normalized;

impl Program {
    /// The value in a scope. Unknown if anything it reads is unknown, sensitive if anything it reads is sensitive,
    /// whether or not the branch that reads it is taken.
    pub(super) fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Problem> {
        let reads: Vec<Read> = self.slots.iter().map(|slot| slot.read(scope)).collect();
        let found = || reads.iter().filter_map(|read| read.as_ref().ok());
        let values = || found().filter_map(|found| found.value.as_ref());
        let sensitive = found().any(|found| found.sensitive) || values().any(Value::has_sensitive);
        let value = if values().any(Value::has_unknown) {
            Value::Unknown
        } else {
            self.run(&reads).map_err(|error| self.explain(error, &reads, sensitive))?
        };
        Ok(if sensitive { value.into_sensitive() } else { value })
    }

    fn run(&self, reads: &[Read]) -> Result<Value, Failure> {
        let mut context = Context::with_env(functions::environment().clone());
        for (position, (slot, read)) in self.slots.iter().zip(reads).enumerate() {
            // A path that does not exist stays unbound: it is an error only where it is evaluated.
            if let Some(value) = slot.bind(read).map_err(Failure::Execution)? {
                context.add_variable_as_val(format!("@{position}"), value);
            }
        }
        budget::refill();
        let value = context.resolve(&self.expression).map_err(Failure::Execution)?;
        convert::from_cel(value).map_err(Failure::Result)
    }

    fn explain(&self, failure: Failure, reads: &[Read], sensitive: bool) -> Problem {
        let problem = match failure {
            Failure::Result(what) => Problem::new(format!("the result is {what}")),
            Failure::Execution(ExecutionError::UndeclaredReference(name)) => missing(&name, reads),
            Failure::Execution(ExecutionError::FunctionError { function, .. }) if function == budget::EXHAUSTED => {
                Problem::new("it does more work than an expression may")
                    .hint("docs/expressions.md tells the limit; loops over smaller lists keep within it")
            }
            // Such a text may quote values.
            Failure::Execution(_) if sensitive => {
                Problem::new("it failed").because("why is not shown, since it reads a sensitive value")
            }
            Failure::Execution(error) => Problem::new(describe(&error)),
        };
        problem.within(&self.source, self.column)
    }
}

/// What a slot's path gave.
type Read = Result<Found, Problem>;

struct Found {
    /// `None` when nothing stands there and nothing need stand there.
    value: Option<Value>,
    /// Nothing stands there, in something sensitive.
    sensitive: bool,
}

impl Found {
    fn value(value: Value) -> Self {
        Self { value: Some(value), sensitive: false }
    }

    fn nothing_in(parent: &Value) -> Self {
        Self { value: None, sensitive: matches!(parent, Value::Sensitive(_)) }
    }
}

enum Failure {
    Execution(ExecutionError),
    /// The result is no value: what it is.
    Result(&'static str),
}

impl Slot {
    fn read(&self, scope: &dyn Scope) -> Read {
        let whole = self.access.read(scope);
        let from = match self.how {
            How::Value => return whole.map(Found::value),
            How::Shape => return whole.map(|value| Found::value(shape(value))),
            How::Keys => return whole.map(|value| Found::value(keys(value))),
            // Whether there is such an attribute can be asked of everything but an absent object.
            How::Presence => self.access.segments.len().saturating_sub(1),
            How::Optional(from) => from,
        };
        whole.map(Found::value).or_else(|_| Ok(Found::nothing_in(&self.prefix(from).read(scope)?)))
    }

    fn prefix(&self, segments: usize) -> Access {
        Access { segments: self.access.segments[..segments].into(), ..self.access.clone() }
    }

    fn bind(&self, read: &Read) -> Result<Option<Box<dyn Val>>, ExecutionError> {
        let Ok(Found { value, .. }) = read else { return Ok(None) };
        let converted = || match value {
            Some(value) => Box::<dyn Val>::try_from(convert::to_cel(value)).map(Some),
            None => Ok(None),
        };
        Ok(Some(match self.how {
            How::Value | How::Shape | How::Keys => return converted(),
            How::Presence => Box::<dyn Val>::try_from(cel::Value::Bool(value.is_some()))?,
            How::Optional(_) => match converted()? {
                Some(value) => Box::new(CelOptional::of(value)),
                None => Box::new(CelOptional::none()),
            },
        }))
    }
}

/// The value with nothing in its items, so that their marks do not count: how many there are is known though what they
/// are is not. The mark of the whole stays.
fn shape(value: Value) -> Value {
    match value {
        Value::List(items) => Value::list(items.iter().map(|_| Value::Null)),
        Value::Map(items) => Value::map(items.keys().map(|name| (name.clone(), Value::Null))),
        Value::Sensitive(inner) => shape(inner.as_ref().clone()).into_sensitive(),
        other => other,
    }
}

/// What a loop sees of a value: of a map its keys.
fn keys(value: Value) -> Value {
    if matches!(value.unmarked(), Value::Map(_)) { shape(value) } else { value }
}

/// Why the variable of a slot is unbound.
fn missing(name: &str, reads: &[Read]) -> Problem {
    let position = name.strip_prefix('@').and_then(|digits| digits.parse::<usize>().ok());
    match position.and_then(|position| reads.get(position)) {
        Some(Err(problem)) => problem.clone(),
        _ => Problem::new(format!("there is no `{name}`")),
    }
}

/// What went wrong, by names and types but without values.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchOverload(call) => {
            let types = call.argument_types().join(", ");
            match operator(call.function()) {
                Some(operator) => format!("`{operator}` does not take ({types})"),
                None => format!("the function `{}` does not take ({types})", call.function().trim_start_matches('@')),
            }
        }
        ExecutionError::NoSuchKey(key) => format!("there is no key `{key}`"),
        ExecutionError::FunctionError { function, message } => {
            format!("`{}`: {message}", function.trim_start_matches('@'))
        }
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("{actual} arguments are given where {expected} are taken")
        }
        ExecutionError::UnexpectedType { got, want } if !got.contains('(') => {
            format!("{got} stands where {want} is needed")
        }
        ExecutionError::UnsupportedBinaryOperator(operation, a, b) => {
            let sign = match *operation {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                "div" => "/",
                "rem" => "%",
                other => other,
            };
            format!("`{sign}` does not take ({}, {})", type_name(a), type_name(b))
        }
        ExecutionError::ValuesNotComparable(a, b) => {
            format!("{} and {} cannot be compared", type_name(a), type_name(b))
        }
        ExecutionError::UnsupportedKeyType(key) => format!("{} cannot be a key of a map", type_name(key)),
        ExecutionError::UnsupportedIndex(index, of) => format!("{} is no index of {}", type_name(index), type_name(of)),
        ExecutionError::IndexOutOfBounds(_) => "the list has no item of that position".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(..) => "the result does not fit 64 bits".to_owned(),
        ExecutionError::DuplicateKey(_) => "a map has a key twice".to_owned(),
        _ => "it cannot be evaluated".to_owned(),
    }
}

/// A type by the name that expressions have for it.
fn type_name(value: &cel::Value) -> String {
    match value {
        cel::Value::Float(_) => "double".to_owned(),
        cel::Value::Null => "null_type".to_owned(),
        other => other.type_of().to_string(),
    }
}

/// The sign of an operator: `+` for `_+_`.
fn operator(function: &str) -> Option<&str> {
    let sign = function.trim_matches('_');
    (sign.len() < function.len()).then_some(if sign == "[" || sign == "[_]" { "[]" } else { sign })
}

/// The parts of a text, joined. A text with an unknown part is unknown, with a sensitive part sensitive.
pub(super) fn text(parts: &[Part], scope: &dyn Scope) -> Result<Value, Problem> {
    let mut joined = String::new();
    let (mut unknown, mut sensitive) = (false, false);
    for part in parts {
        let (value, source, column) = match part {
            Part::Literal(text) => {
                joined.push_str(text);
                continue;
            }
            Part::Path(access, column) => {
                let shown = access.show_all();
                let value = access.read(scope).map_err(|problem| problem.within(&shown, *column))?;
                (value, shown, *column)
            }
            Part::Program(program) => (program.evaluate(scope)?, program.source.to_string(), program.column),
        };
        sensitive |= value.has_sensitive();
        if value.has_unknown() {
            unknown = true;
            continue;
        }
        let text = convert::to_text(&value).map_err(|kind| {
            let problem = Problem::new(format!("it is {kind}, which cannot stand in a text"));
            let hint = if kind == "null" {
                "`orValue` or `? :` give another text for null"
            } else {
                "json.marshal makes it a text"
            };
            problem.hint(hint).within(&source, column)
        })?;
        joined.push_str(&text);
    }
    let value = if unknown { Value::Unknown } else { Value::String(normalized(&joined)) };
    Ok(if sensitive { value.into_sensitive() } else { value })
}
