//! Expressions that are not plain paths: parsed by the CEL parser, with all paths that they read.

use cel::common::ast::{Expr, IdedExpr};
use cel::parser::{ParseErrors, PrattParser};

use super::uses::Uses;
use super::{Access, InstanceSelector, Problem, hyphen, names, rewrite, scan, terraform};
use crate::load::intern::Interner;

/// The maximum length of an expression in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The maximum nesting of the source, as counted by [`scan::nesting`]. The parser's recursion must fit a thread's
/// stack.
const MAX_NESTING: usize = 320;

/// A parsed expression. Variables replace the paths that it reads, so that only their values are converted and their
/// marks are checked before the evaluation.
#[derive(Debug)]
pub struct Program {
    pub(crate) source: Box<str>,
    /// The column of its `${`.
    pub(crate) column: usize,
    pub(crate) expression: Box<IdedExpr>,
    pub(crate) slots: Box<[Slot]>,
}

impl Program {
    /// Parses an expression whose `${` is at `column`.
    pub(crate) fn parse(source: &str, column: usize, interner: &mut Interner) -> Result<Self, Problem> {
        if source.trim().is_empty() {
            return Err(Problem::new("the expression is empty").hint("write `$${` for a literal `${`"));
        }
        if source.len() > MAX_BYTES {
            return Err(Problem::new(format!("the expression is longer than {MAX_BYTES} bytes")));
        }
        if scan::nesting(source) > MAX_NESTING {
            return Err(rewrite::too_deep());
        }
        let parser = PrattParser::new().enable_optional_syntax(true).enable_ident_escape_syntax(true);
        let mut expression = parser.parse(source).map_err(|errors| syntax_error(source, &errors, column))?;
        let slots = rewrite::prepare(&mut expression, source, interner)?;
        Ok(Self { source: source.into(), column, expression: Box::new(expression), slots: slots.into() })
    }

    /// Returns the path if the expression is only a path, with a key that only CEL can parse.
    pub(crate) fn into_path(self) -> Result<Access, Self> {
        match (&self.expression.expr, &*self.slots) {
            (Expr::Ident(_), [Slot { access, mode: ReadMode::Value, .. }]) => Ok(access.clone()),
            _ => Err(self),
        }
    }

    /// Whether the expression is a literal list or map, in words.
    pub(crate) fn collection(&self) -> Option<&'static str> {
        match &self.expression.expr {
            Expr::List(_) => Some("a list"),
            Expr::Map(_) => Some("a map"),
            _ => None,
        }
    }

    /// Returns all paths in reading order.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = &Access> {
        self.slots.iter().map(|slot| &slot.access)
    }

    /// Returns all paths with the instances that they select if the object is a family. A presence check of an instance
    /// reads the whole family.
    pub(crate) fn accesses_with_selectors(&self) -> impl Iterator<Item = (&Access, Option<InstanceSelector>)> {
        self.slots.iter().map(|slot| {
            let whole = match slot.mode {
                ReadMode::Value => false,
                ReadMode::Presence => slot.access.segments.len() <= 1,
                ReadMode::Optional(from) => from == 0,
            };
            (&slot.access, slot.access.instance_selector().filter(|_| !whole))
        })
    }
}

/// Converts the first error to one line.
fn syntax_error(source: &str, errors: &ParseErrors, column: usize) -> Problem {
    if let Some(problem) = hyphen::of_source(source) {
        return problem;
    }
    let Some(first) = errors.errors.first() else { return Problem::new("the expression cannot be parsed") };
    // The column can be computed only on the first line of the expression.
    let at = usize::try_from(first.pos.1).ok().filter(|at| first.pos.0 == 1 && *at > 0).map(|at| at - 1);
    let from_there = at.and_then(|at| source.char_indices().nth(at)).map_or("", |(at, _)| &source[at..]);
    if let Some(problem) = names::reserved_word(&first.msg, from_there) {
        return problem;
    }
    let message = first.msg.lines().next().unwrap_or_default();
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let problem = match at {
        Some(at) => Problem::new(message).within(source, column + "${".len() + at),
        None => Problem::new(message),
    };
    let is_in = from_there == "in" || from_there.starts_with("in.") || from_there.starts_with("in[");
    match terraform::syntax(source, message) {
        _ if is_in => problem.hint("`in` is an operator; write `resources[\"in\"]` for a Resource with this name"),
        Some(instead) => problem.hint(instead),
        None => problem,
    }
}

/// A path, replaced by the variable `@` + its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub access: Access,
    pub mode: ReadMode,
    /// The parts of the value that are read, if the mode is `Value`.
    pub uses: Uses,
}

/// How an expression reads a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadMode {
    Value,
    /// `has(…)`: whether the path exists.
    Presence,
    /// `….?name`: its value as an optional, which is none if that segment or a later one does not exist.
    Optional(usize),
}
