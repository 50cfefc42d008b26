//! Evaluates an expression in a scope: first the marks, then CEL.

use cel::common::types::CelOptional;
use cel::common::value::Val;
use cel::{Context, ExecutionError};

use super::budget::Exhausted;
use super::program::{Program, ReadMode, Slot};
use super::uses::Marks;
use super::{Access, Part, Problem, Scope, budget, convert, describe, functions};
use model::Value;
use model::unicode::to_nfc;

impl Program {
    /// Returns the value in a scope. It is unknown if any part of a value that the expression reads is unknown, and
    /// sensitive if any of them is sensitive, even if they are in a branch that is not taken.
    pub(crate) fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Problem> {
        let reads: Vec<SlotResult> = self.slots.iter().map(|slot| slot.read(scope)).collect();
        let found = reads.iter().filter_map(|read| read.as_ref().ok());
        let marks = found.fold(Marks::default(), |marks, found| marks.or(found.marks));
        let value = if marks.unknown {
            Value::Unknown
        } else {
            self.run(&reads).map_err(|error| self.explain(error, &reads, marks.sensitive))?
        };
        Ok(if marks.sensitive { value.into_sensitive() } else { value })
    }

    fn run(&self, reads: &[SlotResult]) -> Result<Value, Failure> {
        let mut context = Context::with_env(functions::environment().clone());
        for (position, (slot, read)) in self.slots.iter().zip(reads).enumerate() {
            // A path that does not exist stays unbound: it is an error only if it is evaluated.
            if let Some(value) = slot.bind(read)? {
                context.add_variable_as_val(format!("@{position}"), value);
            }
        }
        let value = context.resolve(&self.expression)?;
        convert::from_cel(value).map_err(Failure::Result)
    }

    fn explain(&self, failure: Failure, reads: &[SlotResult], sensitive: bool) -> Problem {
        let problem = match failure {
            Failure::Result(what) => Problem::new(format!("the result is {what}")),
            Failure::Exhausted(exhausted) => exhausted.problem(),
            // Which path was evaluated may depend on a sensitive value.
            Failure::Execution(ExecutionError::UndeclaredReference(name)) if sensitive => {
                let first = reads.iter().find_map(|read| read.as_ref().err());
                first.cloned().unwrap_or_else(|| missing(&name, reads))
            }
            Failure::Execution(ExecutionError::UndeclaredReference(name)) => missing(&name, reads),
            // The error message may quote values.
            Failure::Execution(_) if sensitive => Problem::new("the evaluation failed")
                .because("the cause is hidden because the expression reads a sensitive value"),
            Failure::Execution(error) => describe::problem(&error),
        };
        problem.within(&self.source, self.column)
    }
}

/// The result of reading the path of a slot.
type SlotResult = Result<SlotValue, Problem>;

struct SlotValue {
    /// `None`: the value is absent, which is allowed here.
    value: Option<Value>,
    marks: Marks,
}

impl SlotValue {
    fn whole(value: Value) -> Self {
        Self { marks: Marks::of(&value), value: Some(value) }
    }

    fn nothing_in(parent: &Value) -> Self {
        Self { value: None, marks: Marks { unknown: false, sensitive: matches!(parent, Value::Sensitive(_)) } }
    }
}

enum Failure {
    Execution(ExecutionError),
    Exhausted(Exhausted),
    /// Describes a result that is not a value.
    Result(&'static str),
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        Exhausted::cause_of(&error).map_or(Self::Execution(error), Self::Exhausted)
    }
}

impl Slot {
    fn read(&self, scope: &dyn Scope) -> SlotResult {
        let whole = self.access.read(scope);
        let from = match self.mode {
            ReadMode::Value if self.uses.is_whole() => return whole.map(SlotValue::whole),
            ReadMode::Value => {
                let (value, marks) = self.uses.read(&whole?);
                return Ok(SlotValue { value: Some(value), marks });
            }
            // The presence of an attribute can be checked on everything except a missing object.
            ReadMode::Presence => self.access.segments.len().saturating_sub(1),
            ReadMode::Optional(from) => from,
        };
        whole.map(SlotValue::whole).or_else(|_| Ok(SlotValue::nothing_in(&self.prefix(from).read(scope)?)))
    }

    fn prefix(&self, segments: usize) -> Access {
        Access { segments: self.access.segments[..segments].into(), ..self.access.clone() }
    }

    fn bind(&self, read: &SlotResult) -> Result<Option<Box<dyn Val>>, ExecutionError> {
        let Ok(SlotValue { value, .. }) = read else { return Ok(None) };
        if self.mode == ReadMode::Presence {
            return Box::<dyn Val>::try_from(cel::Value::Bool(value.is_some())).map(Some);
        }
        let mut converted = None;
        if let Some(value) = value {
            budget::spend_value(value)?;
            converted = Some(Box::<dyn Val>::try_from(convert::to_cel(value))?);
        }
        if let ReadMode::Optional(_) = self.mode {
            return Ok(Some(match converted {
                Some(value) => Box::new(CelOptional::of(value)),
                None => Box::new(CelOptional::none()),
            }));
        }
        Ok(converted)
    }
}

/// Explains why the variable of a slot is unbound.
fn missing(name: &str, reads: &[SlotResult]) -> Problem {
    let position = name.strip_prefix('@').and_then(|digits| digits.parse::<usize>().ok());
    match position.and_then(|position| reads.get(position)) {
        Some(Err(problem)) => problem.clone(),
        _ => Problem::new(format!("there is no `{name}`")),
    }
}

/// Joins the parts of a string. The string is unknown if any part is unknown, and sensitive if any part is sensitive.
pub fn text(parts: &[Part], scope: &dyn Scope) -> Result<Value, Problem> {
    let mut joined = String::new();
    let (mut unknown, mut sensitive) = (false, false);
    for part in parts {
        let (value, source, column) = match part {
            Part::Literal(text) => {
                joined.push_str(text);
                continue;
            }
            Part::Path(access, column) => {
                let source = access.show_all();
                let value = access.read(scope).map_err(|problem| problem.within(&source, *column))?;
                (value, source, *column)
            }
            Part::Program(program) => (program.evaluate(scope)?, program.source.to_string(), program.column),
        };
        sensitive |= value.has_sensitive();
        // A list or a map is one, whatever it contains.
        let collection = match part {
            Part::Program(program) if value.has_unknown() => program.collection(),
            _ => None,
        };
        if matches!(value.unmarked(), Value::Unknown) && collection.is_none() {
            unknown = true;
            continue;
        }
        let text = collection.map_or_else(|| convert::to_text(&value), Err).map_err(|kind| {
            let problem = Problem::new(format!("the value is {kind}, which cannot be part of a string"));
            let hint = if kind == "null" {
                "use `orValue` or `? :` to replace null"
            } else {
                "use `json.marshal` to convert it to a string"
            };
            problem.hint(hint).within(&source, column)
        })?;
        budget::spend_text(text.len()).map_err(|exhausted| exhausted.problem().within(&source, column))?;
        joined.push_str(&text);
    }
    let value = if unknown { Value::Unknown } else { Value::String(to_nfc(&joined)) };
    Ok(if sensitive { value.into_sensitive() } else { value })
}
