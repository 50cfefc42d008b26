//! The evaluation of expressions.
//!
//! The rules are those that `hashicorp/hcl` follows for its native syntax: what is unknown makes what depends on it
//! unknown, marks go along with values, and all problems of an expression are found at once. Every value that an
//! expression refers to comes from an [`Environment`], which computes it when it is asked for.

mod access;
mod operators;
mod conditionals;
mod collections;
mod iteration;
mod splats;
mod templates;
mod calls;

use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::{Diagnostic, Expr, ExprKind, Literal, Range, Traversal};

pub use access::traverse;
pub(crate) use templates::render;

use crate::cty::{Number, Type, Value};
use crate::{Failure, Scope};

/// What the names in an expression stand for.
pub trait Environment {
    /// The value at the beginning of a traversal, and how many of its steps that value has in it already. The remaining
    /// steps are taken by the evaluation.
    fn resolve(&self, traversal: &Traversal) -> Result<(Value, usize), Diagnostic>;

    /// Calls a function that is not of the language, such as one of a provider. `None` if there is none of this name.
    fn call(&self, _name: &str, _arguments: &[Value]) -> Option<Result<Value, Failure>> {
        None
    }
}

/// Values by name.
impl Environment for BTreeMap<Arc<str>, Value> {
    fn resolve(&self, traversal: &Traversal) -> Result<(Value, usize), Diagnostic> {
        let name = &traversal.root;
        match self.get(name.text.as_str()) {
            Some(value) => Ok((value.clone(), 0)),
            None => {
                Err(Diagnostic::new("Unknown variable", format!("There is no variable \"{}\".", name.text), name.range))
            }
        }
    }
}

/// A value, and what is wrong. With a problem, the value is as unknown as the problem makes it.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub value: Value,
    pub diagnostics: Vec<Diagnostic>,
}

/// Evaluates an expression.
pub fn evaluate(expr: &Expr, environment: &dyn Environment, scope: &Scope<'_>) -> Evaluated {
    let mut evaluator =
        Evaluator { environment, scope, locals: Vec::new(), items: Vec::new(), diagnostics: Vec::new() };
    let value = evaluator.value(expr);
    Evaluated { value, diagnostics: evaluator.diagnostics }
}

struct Evaluator<'a> {
    environment: &'a dyn Environment,
    scope: &'a Scope<'a>,
    /// The names of the `for` expressions around, the innermost last.
    locals: Vec<(Arc<str>, Value)>,
    /// The elements of the splats around, the innermost last.
    items: Vec<Value>,
    diagnostics: Vec<Diagnostic>,
}

impl Evaluator<'_> {
    /// More values than this, of which many must be shared, are not in one value of any configuration.
    const MAX_NODES: u32 = 1 << 24;

    fn value(&mut self, expr: &Expr) -> Value {
        if let Err(failure) = self.scope.budget.step(1) {
            return self.problem("Evaluation stopped", failure.message, expr.range);
        }
        let value = self.value_of(expr);
        if value.nodes() > Self::MAX_NODES {
            return self.problem("Evaluation stopped", "The value is too large.", expr.range);
        }
        value
    }

    fn value_of(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal, expr.range),
            ExprKind::Traversal(traversal) => self.traversal(traversal),
            ExprKind::RelativeTraversal(traversal) => {
                let source = self.value(&traversal.source);
                self.steps(source, &traversal.steps)
            }
            ExprKind::Index(index) => {
                let (collection, key) = (self.value(&index.collection), self.value(&index.key));
                self.index(&collection, &key, index.brackets_range)
            }
            ExprKind::Splat(splat) => self.splat(splat),
            ExprKind::SplatItem => self.items.last().cloned().unwrap_or(Value::DYNAMIC),
            ExprKind::Template(parts) => self.template(parts),
            ExprKind::TemplateWrap(inner) | ExprKind::Parentheses(inner) => self.value(inner),
            ExprKind::TemplateJoin(inner) => self.joined(inner),
            ExprKind::Tuple(items) => {
                let items: Vec<Value> = items.iter().map(|item| self.value(item)).collect();
                Value::tuple(items)
            }
            ExprKind::Object(items) => self.object(items),
            ExprKind::For(each) => self.iteration(each),
            ExprKind::Call(call) => self.call(call, expr.range),
            ExprKind::Conditional(conditional) => self.conditional(conditional),
            ExprKind::Binary(_) => self.binary(expr),
            ExprKind::Unary(operator, operand) => self.unary(*operator, operand, expr.range),
            ExprKind::JsonString(string) => {
                self.diagnostics.extend(string.diagnostics.iter().cloned());
                self.value(&string.template)
            }
            // A diagnostic of the parser says why.
            ExprKind::Invalid => Value::DYNAMIC,
        }
    }

    fn literal(&mut self, literal: &Literal, range: Range) -> Value {
        match literal {
            Literal::Null => Value::null(Type::Dynamic),
            Literal::Bool(bool) => Value::bool(*bool),
            Literal::String(text) => Value::string(text),
            Literal::Number(digits) => match Number::parse(digits) {
                Some(number) => Value::number(number),
                None => self.problem("Invalid number", "The number is too large.", range),
            },
        }
    }

    /// Reports a problem; what has it is of unknown type.
    fn problem(&mut self, summary: &str, detail: impl Into<String>, range: Range) -> Value {
        self.diagnostics.push(Diagnostic::new(summary, detail, range));
        Value::DYNAMIC
    }

    /// Evaluates, and keeps the problems apart.
    fn attempt<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> T) -> (T, Vec<Diagnostic>) {
        let before = self.diagnostics.len();
        let result = evaluate(self);
        let problems = self.diagnostics.split_off(before);
        (result, problems)
    }
}
