//! Templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::{Expr, FileId, Source};

use super::Evaluator;
use crate::cty::{Marks, Range, Type, Value, convert, known_prefix};
use crate::{Failure, Scope};

/// The longest beginning of an unknown text that is kept.
const MAX_PREFIX: usize = 128;

/// More templates inside each other than this are taken for one that includes itself.
const MAX_DEPTH: usize = 100;

impl Evaluator<'_> {
    pub fn template(&mut self, parts: &[Expr]) -> Value {
        let mut text = String::new();
        let mut marks = Marks::NONE;
        let (mut known, mut failed) = (true, false);
        for part in parts {
            let (value, problems) = self.attempt(|evaluator| evaluator.value(part));
            failed |= !problems.is_empty();
            self.diagnostics.extend(problems);
            if value.is_null() {
                self.problem("Invalid template interpolation value", "A null value has no text.", part.range);
                failed = true;
                continue;
            }
            let value = value.unmarked(&mut marks);
            if !value.is_known() {
                known = false;
                continue;
            }
            match convert(&value, &Type::String) {
                Ok(value) if known && !failed => text.push_str(value.as_str().unwrap_or_default()),
                Ok(_) => {}
                Err(error) => {
                    let detail = format!("The value has no text: {error}.");
                    self.problem("Invalid template interpolation value", detail, part.range);
                    failed = true;
                }
            }
        }
        if let (Err(failure), Some(first)) = (self.scope.budget.hold(text.len()), parts.first()) {
            return self.problem("Evaluation stopped", failure.message, first.range);
        }
        let result = if known {
            Value::string(&text)
        } else {
            let mut length = text.len().min(MAX_PREFIX);
            while !text.is_char_boundary(length) {
                length -= 1;
            }
            let prefix = if failed { "".into() } else { known_prefix(&text[..length]) };
            Value::unknown_in(Type::String, Range::not_null().with_prefix(&prefix))
        };
        result.with_marks(&marks)
    }

    /// The texts of the elements of a `for` in a template.
    pub fn joined(&mut self, tuple: &Expr) -> Value {
        let value = self.value(tuple);
        if *value.ty() == Type::Dynamic || !value.is_known() {
            return Value::unknown(Type::String);
        }
        let mut marks = Marks::NONE;
        let value = value.unmarked(&mut marks);
        let outer = marks.clone();
        let mut text = String::new();
        for item in value.as_items().unwrap_or_default() {
            if item.is_null() {
                let detail = "The result of an iteration is null, which has no text.";
                self.problem("Invalid template interpolation value", detail, tuple.range);
                continue;
            }
            if *item.ty() == Type::Dynamic || !item.is_known() {
                return Value::unknown(Type::String).with_marks(&outer);
            }
            match convert(item, &Type::String) {
                Ok(item) => text.push_str(item.unmarked(&mut marks).as_str().unwrap_or_default()),
                Err(error) => {
                    let detail = format!("The result of an iteration has no text: {error}.");
                    self.problem("Invalid template interpolation value", detail, tuple.range);
                }
            }
        }
        Value::string(&text).with_marks(&marks)
    }
}

/// Renders a template with variables, as `templatefile` and `templatestring` do. Errors name the place in the template.
pub(crate) fn render(name: &str, text: &str, variables: &Value, scope: &Scope<'_>) -> Result<Value, Failure> {
    if scope.template_depth >= MAX_DEPTH {
        return Err(Failure::of(0, format!("templates include each other more than {MAX_DEPTH} levels deep")));
    }
    let Some(entries) = variables.as_entries() else {
        return Err(Failure::of(1, format!("an object or map is required, but the value is {}", variables.ty())));
    };
    if let Some(bad) = entries.keys().find(|name| !hcl::is_identifier(name)) {
        return Err(Failure::of(1, format!("\"{bad}\" is not a name that a template can use")));
    }
    let parsed = hcl::parse_template(Source::new(FileId(0), name, text));
    if let Some(problem) = parsed.diagnostics.first() {
        return Err(failure(name, &parsed.source, problem));
    }
    for reference in parsed.value.references() {
        if !entries.contains_key(reference.root.text.as_str()) {
            let position = parsed.source.position(reference.range.start);
            let (line, column) = (position.line, position.column);
            return Err(Failure::of(
                1,
                format!("the template uses \"{}\" at {name}:{line}:{column}, which is not given", reference.root.text),
            ));
        }
    }
    let environment: BTreeMap<Arc<str>, Value> = entries.to_tree();
    let inner = Scope { template_depth: scope.template_depth + 1, ..*scope };
    let evaluated = super::evaluate(&parsed.value, &environment, &inner);
    match evaluated.diagnostics.first() {
        Some(problem) => Err(failure(name, &parsed.source, problem)),
        None => Ok(evaluated.value),
    }
}

fn failure(name: &str, source: &Source, problem: &hcl::Diagnostic) -> Failure {
    let position = source.position(problem.range.start);
    let (line, column) = (position.line, position.column);
    Failure::of(0, format!("{name}:{line}:{column}: {}: {}", problem.summary, problem.detail))
}
