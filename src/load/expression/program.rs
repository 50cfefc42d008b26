//! An expression beyond a plain path: parsed by the CEL parser, with every path that it reads known beforehand.

use cel::common::ast::{Expr, IdedExpr};
use cel::parser::{ParseErrors, PrattParser};

use super::slot::{How, Slot};
use super::{Access, Choice, Problem, names, rewrite, scan};
use crate::load::intern::Interner;

/// The most that an expression may hold, in bytes: far more than a person writes, and few enough to parse at once.
const LONGEST: usize = 16 * 1024;

/// How deeply the text may nest before it is parsed, as [`scan::nesting`] counts: what a thread's stack bears.
const DEEPEST: usize = 320;

/// A parsed expression. The paths it reads are replaced by variables, so that only their values are converted, and
/// marks can be judged before anything is evaluated.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) source: Box<str>,
    /// Where its `${` stands in its text.
    pub(super) column: usize,
    pub(super) expression: Box<IdedExpr>,
    pub(super) slots: Box<[Slot]>,
}

impl Program {
    /// Parses an expression whose `${` stands at `column` of its text.
    pub(super) fn parse(source: &str, column: usize, interner: &mut Interner) -> Result<Self, Problem> {
        if source.trim().is_empty() {
            return Err(Problem::new("the expression is empty").hint("for a literal `${` write `$${`"));
        }
        if source.len() > LONGEST {
            return Err(Problem::new(format!("the expression is longer than {LONGEST} bytes")));
        }
        if scan::nesting(source) > DEEPEST {
            return Err(rewrite::too_deep());
        }
        let parser = PrattParser::new().enable_optional_syntax(true).enable_ident_escape_syntax(true);
        let mut expression = parser.parse(source).map_err(|errors| syntax_error(&errors, column))?;
        let slots = rewrite::prepare(&mut expression, interner)?;
        Ok(Self { source: source.into(), column, expression: Box::new(expression), slots: slots.into() })
    }

    /// The path, when the expression is nothing else: one with a key that only CEL can read.
    pub(super) fn into_path(self) -> Result<Access, Self> {
        match (&self.expression.expr, &*self.slots) {
            (Expr::Ident(_), [Slot { access, how: How::Value }]) => Ok(access.clone()),
            _ => Err(self),
        }
    }

    /// Every path it reads, in the order of reading.
    pub(super) fn accesses(&self) -> impl Iterator<Item = &Access> {
        self.slots.iter().map(|slot| &slot.access)
    }

    /// Every path it reads, with the instance that it chooses should the object be a family. Whether there is such an
    /// instance is asked of the whole family.
    pub(super) fn choices(&self) -> impl Iterator<Item = (&Access, Option<Choice>)> {
        self.slots.iter().map(|slot| {
            let whole = match slot.how {
                How::Value | How::Shape | How::Keys => false,
                How::Presence => slot.access.segments.len() <= 1,
                How::Optional(from) => from == 0,
            };
            (&slot.access, slot.access.choice().filter(|_| !whole))
        })
    }
}

/// The first error, on one line.
fn syntax_error(errors: &ParseErrors, column: usize) -> Problem {
    let Some(first) = errors.errors.first() else { return Problem::new("the expression cannot be parsed") };
    if let Some(problem) = names::reserved_word(&first.msg) {
        return problem;
    }
    let message = first.msg.lines().next().unwrap_or_default();
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    // Columns count from the beginning of the text, as long as the expression is on its first line.
    match (first.pos.0, usize::try_from(first.pos.1)) {
        (1, Ok(at)) if at > 0 => Problem::new(format!("{message} (column {})", column + "${".len() + at - 1)),
        _ => Problem::new(message),
    }
}
