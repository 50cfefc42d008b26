//! The function `matches`. The compilation and the search cost units by the size of the regular expression, which is
//! computed from its syntax tree before it is compiled: a short expression such as `\w{200}` can be large.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use cel::ExecutionError;
use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

use super::budget;

/// The maximum length in bytes: to read a regular expression takes up to a fifth of a millisecond for each byte.
const MAX_LENGTH: usize = 1000;

/// The maximum units to compile a regular expression, about 30 ms: enough for `\w{1,63}`.
const MAX_COMPILATION: u64 = 120_000;

/// The maximum memory of a compiled regular expression in bytes: what [`MAX_COMPILATION`] units need.
const MAX_MEMORY: usize = 4 * 1024 * 1024;

/// The units of compiled regular expressions that an evaluation keeps: few megabytes.
const MAX_KEPT: u64 = 2 * MAX_COMPILATION;

/// The units to compile any regular expression.
const COMPILATION: u64 = 2_000;

/// The units to read a byte; without distinction between upper and lower case, each range of letters is searched for the
/// other case.
const READ: u64 = 10;
const READ_IGNORING_CASE: u64 = 800;

/// The units to compile a class of characters, and each of its ranges: `\w` has 770.
const CLASS: u64 = 12;
const RANGE: u64 = 2;

/// A unit is the time to compare this many characters with one position of the regular expression.
const COMPARISONS: u64 = 20;

thread_local! {
    /// The regular expressions that the evaluation of the current template has compiled.
    static COMPILED: RefCell<Compiled> = RefCell::default();
}

#[derive(Default)]
struct Compiled {
    patterns: HashMap<Box<str>, Rc<Pattern>>,
    /// What the patterns cost.
    units: u64,
}

struct Pattern {
    regex: Regex,
    /// What a search costs for each character.
    positions: u64,
}

/// Evaluates a template that begins without compiled regular expressions, so that its cost does not depend on others.
pub fn within_template<T>(evaluate: impl FnOnce() -> T) -> T {
    let outer = COMPILED.take();
    let result = evaluate();
    COMPILED.set(outer);
    result
}

/// Whether `text` contains a match of `pattern`.
pub fn matches(text: &str, pattern: &str) -> Result<bool, ExecutionError> {
    let known = COMPILED.with_borrow(|compiled| compiled.patterns.get(pattern).cloned());
    let pattern = known.map_or_else(|| compile(pattern), Ok)?;
    budget::spend((text.len() as u64).saturating_mul(pattern.positions) / COMPARISONS)?;
    Ok(pattern.regex.is_match(text))
}

fn compile(pattern: &str) -> Result<Rc<Pattern>, ExecutionError> {
    if pattern.len() > MAX_LENGTH {
        return Err(refused(format!("the regular expression is longer than {MAX_LENGTH} bytes")));
    }
    let of_byte = if ignores_case(pattern) { READ_IGNORING_CASE } else { READ };
    budget::spend(pattern.len() as u64 * of_byte)?;
    let syntax = regex_syntax::parse(pattern).map_err(|problem| {
        let what = match &problem {
            regex_syntax::Error::Parse(problem) => problem.kind().to_string(),
            regex_syntax::Error::Translate(problem) => problem.kind().to_string(),
            _ => "it cannot be read".to_owned(),
        };
        refused(format!("the regular expression `{}` is invalid: {what}", excerpt(pattern)))
    })?;
    let Size { compilation, positions } = size(&syntax);
    if compilation > MAX_COMPILATION {
        return Err(too_large(pattern));
    }
    let units = compilation + COMPILATION;
    budget::spend(units)?;
    let built = RegexBuilder::new(pattern).size_limit(MAX_MEMORY).dfa_size_limit(MAX_MEMORY).build();
    let compiled = Rc::new(Pattern { regex: built.map_err(|_| too_large(pattern))?, positions });
    COMPILED.with_borrow_mut(|known| {
        if known.units + units > MAX_KEPT {
            *known = Compiled::default();
        }
        known.units += units;
        known.patterns.insert(pattern.into(), Rc::clone(&compiled));
    });
    Ok(compiled)
}

fn too_large(pattern: &str) -> ExecutionError {
    let what = "is too large: `\\w` and `\\d` have the characters of all languages, so use `[0-9A-Za-z_]`, \
                `[0-9]` or fewer repetitions";
    refused(format!("the regular expression `{}` {what}", excerpt(pattern)))
}

fn refused(what: String) -> ExecutionError {
    ExecutionError::function_error("matches", what)
}

/// Enough of a regular expression to recognize it, on one line.
fn excerpt(pattern: &str) -> String {
    pattern.chars().take(60).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Whether a group of flags may contain `i`.
fn ignores_case(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|flags| flags.split([')', ':']).next().is_some_and(|flags| flags.contains('i')))
}

struct Size {
    /// The units to compile it.
    compilation: u64,
    /// With how many positions each character is compared.
    positions: u64,
}

impl Size {
    fn plus(self, other: Self) -> Self {
        Self {
            compilation: self.compilation.saturating_add(other.compilation),
            positions: self.positions.saturating_add(other.positions),
        }
    }

    fn times(self, count: u64) -> Self {
        Self { compilation: self.compilation.saturating_mul(count), positions: self.positions.saturating_mul(count) }
    }
}

/// The syntax tree is at most 250 levels deep.
fn size(syntax: &Hir) -> Size {
    let empty = Size { compilation: 1, positions: 1 };
    match syntax.kind() {
        HirKind::Empty | HirKind::Look(_) => empty,
        HirKind::Literal(literal) => empty.times(literal.0.len() as u64),
        HirKind::Class(class) => {
            let ranges = match class {
                Class::Unicode(class) => class.ranges().len(),
                Class::Bytes(class) => class.ranges().len(),
            };
            Size { compilation: CLASS + RANGE * ranges as u64, positions: 1 }
        }
        HirKind::Repetition(repeated) => {
            let count = repeated.max.unwrap_or(repeated.min.saturating_add(1)).max(1);
            size(&repeated.sub).plus(empty).times(count.into())
        }
        HirKind::Capture(capture) => size(&capture.sub).plus(empty),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(size).fold(empty, Size::plus),
    }
}
