//! Templates: configuration with CEL expressions in `${ ... }`.
//!
//! Parsing a tree of plain values returns a [`Template`] and its references; evaluating it in a [`Scope`] returns the
//! value. `docs/expressions.md` documents the rules for users.

use std::fmt;
use std::sync::Arc;

use model::{Address, Diagnostic, Diagnostics, Path, Reason, Segment, Value};

mod access;
mod budget;
mod convert;
mod describe;
mod evaluate;
mod functions;
mod hyphen;
mod names;
mod origin;
mod parse;
mod pattern;
mod program;
mod reads;
mod rewrite;
mod scan;
mod terraform;
mod uses;

#[cfg(test)]
mod tests;

use access::Access;
use program::Program;

pub(crate) use access::kind;
pub use budget::PlanBudget;
pub use names::{is_identifier, path_expression};
pub(crate) use terraform::instead_of_missing;

/// A configuration tree whose leaves may be expressions. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Template(Node);

#[derive(Clone, Debug)]
enum Node {
    Literal(Value),
    /// A string that is one plain path.
    Path(Arc<Access>),
    /// A string that is one other expression.
    Program(Arc<Program>),
    /// A string of literals and expressions.
    Text(Arc<[Part]>),
    List(Arc<[Node]>),
    Map(Arc<[(Arc<str>, Node)]>),
    /// An expression of another language.
    Foreign(Arc<dyn Foreign>),
}

#[derive(Debug)]
enum Part {
    Literal(Box<str>),
    /// The path, and the column where its expression starts.
    Path(Access, usize),
    Program(Program),
}

impl Default for Node {
    fn default() -> Self {
        Self::Literal(Value::Null)
    }
}

/// A variable whose value depends on the place of the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// `self`: the object after the step.
    Itself,
    /// `each`: `key` and `value` of an instance of a `forEach` family.
    Each,
    /// `count`: `index` of an instance of a `count` family.
    Count,
    /// `inputs`: the values of `spec.inputs`.
    Inputs,
}

impl Variable {
    const ALL: [Self; 4] = [Self::Itself, Self::Each, Self::Count, Self::Inputs];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Itself => "self",
            Self::Each => "each",
            Self::Count => "count",
            Self::Inputs => "inputs",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variable| variable.as_str() == name)
    }
}

/// Supplies the values of other objects to expressions.
pub trait Scope {
    /// The value of an object. `Some(Value::Unknown)`: it is not known yet. `None`: the object does not exist.
    fn object(&self, address: &Address) -> Option<Value>;
    /// `ns`: name, labels and annotations of the namespace.
    fn namespace(&self) -> Value;
    /// The value of a variable. `None`: it is not available here.
    fn variable(&self, variable: Variable) -> Option<Value> {
        let _ = variable;
        None
    }
    /// Whether the values go into a call, or are shown as they are: what has another result each time, such as Terraform's
    /// `timestamp`, is known then, and not before.
    fn is_final(&self) -> bool {
        false
    }
}

/// An expression of another language, which that language evaluates. Its references are those of the Resource that has it.
pub trait Foreign: fmt::Debug + Send + Sync {
    /// A text that is the same only for the same expression.
    fn source(&self) -> String;

    /// Evaluates the expression in a scope.
    ///
    /// # Errors
    /// The problems of the expression, at their places in its file. A warning says that the reason is reported elsewhere.
    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics>;
}

/// A dependency and its source: an expression, or `dependsOn`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The referenced object or family. It may not exist.
    pub target: Address,
    /// The path of the expression, such as `spec.config.input`, or of the entry in `dependsOn`.
    pub at: Path,
    /// The reference comes from `dependsOn`, not from an expression.
    pub explicit: bool,
    /// The selected instance if the target is a family.
    pub selector: Option<InstanceSelector>,
    /// What the expression reads of the target, for messages. Empty for `dependsOn`.
    pub segments: Arc<[Segment]>,
}

/// How an expression selects an instance of a family. In `${web.id}` the first segment can also be an attribute; this
/// is known only when all Resources are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceSelector {
    /// `web[0]`, `web["blue"]` or `web.blue`.
    Instance(Segment),
    /// `web[each.key]`: a variable and the segments after it.
    Variable(Variable, Arc<[Segment]>),
    /// The expression reads this output of a Module, to which the object contributes. Such references are linked to those of the
    /// Module.
    Output(Address),
}

impl Template {
    pub fn literal(value: Value) -> Self {
        Self(Node::Literal(value))
    }

    /// An expression of another language.
    pub fn foreign(expression: Arc<dyn Foreign>) -> Self {
        Self(Node::Foreign(expression))
    }

    /// Returns the value if the template has no expressions.
    pub fn as_literal(&self) -> Option<&Value> {
        match &self.0 {
            Node::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// If the template is one plain path, returns the number of segments after the root.
    pub fn depth(&self) -> Option<usize> {
        match &self.0 {
            Node::Path(access) => Some(access.depth()),
            _ => None,
        }
    }

    /// What gives the value of an attribute: a part of the template, or an expression that gives a map with it. `None` if
    /// the template has no such attribute, or null.
    pub fn attribute(&self, name: &str) -> Option<Self> {
        let found = match &self.0 {
            Node::Literal(value) => Node::Literal(value.get(name)?.clone()),
            Node::Map(entries) => entries.iter().find(|(key, _)| **key == *name)?.1.clone(),
            expression => expression.clone(),
        };
        Some(Self(found)).filter(|found| found.as_literal() != Some(&Value::Null))
    }

    /// The attributes of a map, each with what gives its value. Empty for anything else.
    pub fn entries(&self) -> Vec<(Arc<str>, Self)> {
        match &self.0 {
            Node::Literal(Value::Map(entries)) => {
                entries.iter().map(|(name, value)| (name.clone(), Self::literal(value.clone()))).collect()
            }
            Node::Map(entries) => entries.iter().map(|(name, node)| (name.clone(), Self(node.clone()))).collect(),
            _ => Vec::new(),
        }
    }

    /// The literals and the text of the expressions, without loss: templates with the same source are the same.
    pub fn source(&self) -> String {
        let mut text = String::new();
        self.0.write_source(&mut text);
        text
    }

    /// Whether the evaluation may take long: it does more than to read paths.
    pub fn is_computed(&self) -> bool {
        self.0.is_computed()
    }

    /// Evaluates the template. Unknown and sensitive marks apply only to the paths that are read. `Err` holds one
    /// diagnostic for each expression that failed, with its path below `spec.config` and without address.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        let mut problems = Vec::new();
        let value =
            budget::within_template(|| pattern::within_template(|| self.0.evaluate(scope, None, &mut problems)));
        if self.as_literal().is_none()
            && let Err(problem) = budget::check_size(&value)
        {
            problems.push(problem.diagnostic());
        }
        if problems.is_empty() { Ok(value) } else { Err(problems) }
    }
}

/// A place in a template, as a linked list from the leaf to the root, so that a `Path` is built only for a problem.
#[derive(Clone, Copy)]
struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a Arc<str>),
    Index(usize),
}

impl Trail<'_> {
    fn path(trail: Option<&Self>) -> Path {
        let mut segments = Vec::new();
        let mut here = trail;
        while let Some(trail) = here {
            segments.push(match trail.step {
                Step::Key(key) => Segment::Name(key.clone()),
                Step::Index(index) => Segment::Index(index),
            });
            here = trail.parent;
        }
        segments.reverse();
        Path(segments)
    }
}

impl Node {
    fn is_computed(&self) -> bool {
        match self {
            Self::Literal(_) | Self::Path(_) => false,
            Self::Program(_) | Self::Foreign(_) => true,
            Self::Text(parts) => parts.iter().any(|part| matches!(part, Part::Program(_))),
            Self::List(items) => items.iter().any(Self::is_computed),
            Self::Map(entries) => entries.iter().any(|(_, item)| item.is_computed()),
        }
    }

    fn write_source(&self, out: &mut String) {
        match self {
            Self::Literal(value) => out.push_str(&value.to_json_text()),
            Self::Path(access) => write_expression(out, &access.show_all()),
            Self::Program(program) => write_expression(out, &program.source),
            Self::Foreign(foreign) => write_expression(out, &foreign.source()),
            Self::Text(parts) => {
                out.push('(');
                for part in parts.iter() {
                    match part {
                        Part::Literal(text) => out.push_str(&format!("{text:?}")),
                        Part::Path(access, _) => write_expression(out, &access.show_all()),
                        Part::Program(program) => write_expression(out, &program.source),
                    }
                }
                out.push(')');
            }
            Self::List(items) => {
                out.push('[');
                for item in items.iter() {
                    item.write_source(out);
                    out.push(',');
                }
                out.push(']');
            }
            Self::Map(entries) => {
                out.push('{');
                for (key, item) in entries.iter() {
                    out.push_str(&format!("{key:?}:"));
                    item.write_source(out);
                    out.push(',');
                }
                out.push('}');
            }
        }
    }

    /// Returns the value, with `Null` at each place that failed.
    fn evaluate(&self, scope: &dyn Scope, trail: Option<&Trail<'_>>, problems: &mut Diagnostics) -> Value {
        let result = match self {
            Self::Literal(value) => return value.clone(),
            Self::List(items) => {
                let items = items.iter().enumerate().map(|(index, item)| {
                    item.evaluate(scope, Some(&Trail { parent: trail, step: Step::Index(index) }), problems)
                });
                return Value::List(items.collect());
            }
            Self::Map(entries) => {
                return Value::map(entries.iter().map(|(key, item)| {
                    let trail = Trail { parent: trail, step: Step::Key(key) };
                    (key.clone(), item.evaluate(scope, Some(&trail), problems))
                }));
            }
            Self::Foreign(foreign) => {
                return foreign.evaluate(scope).unwrap_or_else(|found| {
                    problems.extend(found);
                    Value::Null
                });
            }
            Self::Path(access) => access.read(scope).map_err(|problem| problem.within(&access.show_all(), 1)),
            Self::Program(program) => program.evaluate(scope),
            Self::Text(parts) => evaluate::text(parts, scope),
        };
        result.unwrap_or_else(|problem| {
            let problem = problem.diagnostic();
            problems.push(if trail.is_some() { problem.at(Trail::path(trail)) } else { problem });
            Value::Null
        })
    }
}

fn write_expression(out: &mut String, source: &str) {
    out.push_str(&format!("${{{:?}}}", source.trim()));
}

/// The error of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    /// The expression and the column where it starts in its string, once known.
    expression: Option<(Box<str>, usize)>,
    what: String,
    why: String,
    hint: Option<String>,
}

impl Problem {
    fn new(what: impl Into<String>) -> Self {
        Self { expression: None, what: what.into(), why: String::new(), hint: None }
    }

    fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the expression, unless it is set already.
    fn within(mut self, source: &str, column: usize) -> Self {
        self.expression.get_or_insert_with(|| (source.trim().into(), column));
        self
    }

    /// One line: the expression, its column and the error.
    fn diagnostic(self) -> Diagnostic {
        let summary = match &self.expression {
            Some((source, column)) => format!("{} at column {column}: {}", Excerpt(source), self.what),
            None => self.what.clone(),
        };
        let mut diagnostic = Diagnostic::general(Reason::InvalidExpression, summary).because(self.why);
        diagnostic.hint = self.hint;
        diagnostic
    }
}

/// An expression as errors quote it: on one line and truncated.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to recognize an expression.
        const LIMIT: usize = 80;
        let words: Vec<&str> = self.0.split_whitespace().collect();
        let line = words.join(" ");
        match line.char_indices().nth(LIMIT) {
            Some((end, _)) => write!(f, "`${{{}…}}`", &line[..end]),
            None => write!(f, "`${{{line}}}`"),
        }
    }
}
