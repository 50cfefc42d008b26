//! The cost limits of expressions. They are checked during the evaluation, so that no expression can hang or exhaust the
//! memory, and no Resource can occupy the thread of a plan for long.
//!
//! Each value that an expression reads, each argument and result of a call, each element of a list or map that the
//! expression writes, each element that a comprehension visits, and each part of a string costs units by its size. The
//! expressions of one template share [`LIMIT`], and those of one plan share a [`PlanBudget`]. An expression that exceeds
//! one of them fails. Calls whose cost is not proportional to their operands use functions of this module, which check
//! the cost before they start.
//!
//! A path that is a whole string is returned without a copy and costs nothing. So the value of a template has a limit of
//! its own, [`MAX_VALUE`].
#![expect(clippy::needless_pass_by_value, reason = "the evaluator passes arguments by value")]

use std::cell::Cell;

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};
use cel::common::types::{
    CelBytes, CelInt, CelList, CelMap, CelOptional, CelString, DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::Problem;
use model::{Number, Value};

/// Units for the evaluation of one template: at most about a second and a few hundred megabytes.
const LIMIT: u64 = 4_000_000;

/// The maximum size of the value of a template in bytes: as much as the response of a provider. Besides its text, each
/// element counts [`ELEMENT`].
const MAX_VALUE: usize = 16 * 1024 * 1024;

/// The bytes of an element besides its text, and of one unit.
const ELEMENT: usize = 16;

/// An element of a loop costs more than an element of a value.
const LOOP_FACTOR: u64 = 4;

thread_local! {
    /// The remaining units of the template and of the plan that this thread evaluates: functions of an `Env` have no
    /// other state.
    static TEMPLATE: Cell<u64> = const { Cell::new(0) };
    static PLAN: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Evaluates a template with a new budget.
pub fn within_template<T>(evaluate: impl FnOnce() -> T) -> T {
    let outer = TEMPLATE.replace(LIMIT);
    let result = evaluate();
    TEMPLATE.set(outer);
    result
}

/// What the expressions of a plan may still cost together.
pub struct PlanBudget(u64);

impl PlanBudget {
    /// `units`: about four million take a second.
    pub fn new(units: u64) -> Self {
        Self(units)
    }

    /// Evaluates expressions at the cost of this budget.
    pub fn within<T>(&mut self, evaluate: impl FnOnce() -> T) -> T {
        let outer = PLAN.replace(self.0);
        let result = evaluate();
        self.0 = PLAN.replace(outer);
        result
    }
}

/// The budget that an expression exceeds.
#[derive(Clone, Copy)]
pub enum Exhausted {
    Template,
    Plan,
}

impl Exhausted {
    /// The name of the function in the error that ends the evaluation.
    const fn function(self) -> &'static str {
        match self {
            Self::Template => "@budget",
            Self::Plan => "@budget_of_plan",
        }
    }

    /// Why the evaluation ended with this error, unless it had another cause.
    pub fn cause_of(error: &ExecutionError) -> Option<Self> {
        let ExecutionError::FunctionError { function, .. } = error else { return None };
        [Self::Template, Self::Plan].into_iter().find(|exhausted| exhausted.function() == function)
    }

    pub(super) fn problem(self) -> Problem {
        match self {
            Self::Template => Problem::new("the expression exceeds the cost limit")
                .hint("the expressions of an object can process about four million elements; loop over smaller lists"),
            Self::Plan => Problem::new("the expressions of this plan together exceed the cost limit")
                .hint("loop over smaller lists, in this object or in those that are planned with it"),
        }
    }
}

impl From<Exhausted> for ExecutionError {
    fn from(exhausted: Exhausted) -> Self {
        Self::function_error(exhausted.function(), "")
    }
}

/// Charges a number of units.
pub fn spend(units: u64) -> Result<(), Exhausted> {
    for (budget, exhausted) in [(&TEMPLATE, Exhausted::Template), (&PLAN, Exhausted::Plan)] {
        budget.set(budget.get().checked_sub(units).ok_or(exhausted)?);
    }
    Ok(())
}

/// Charges a value before it is copied for the evaluator.
pub fn spend_value(value: &Value) -> Result<(), Exhausted> {
    let available = usize::try_from(TEMPLATE.get()).unwrap_or(usize::MAX).saturating_mul(ELEMENT);
    let remaining = subtract(available, value);
    spend(remaining.map_or(u64::MAX, |remaining| ((available - remaining) / ELEMENT) as u64))
}

/// Rejects a value that is too large. It may share its parts, which are copied when it is sent or recorded.
pub fn check_size(value: &Value) -> Result<(), Problem> {
    if subtract(MAX_VALUE, value).is_some() {
        return Ok(());
    }
    let problem = Problem::new("the value with all that its expressions insert is larger than 16 MiB");
    Err(problem.hint("insert large values in fewer places"))
}

/// Subtracts the size of a value from a number of bytes. `None`: it is larger. It is not visited further then, because
/// shared parts can make it much larger than its memory.
fn subtract(bytes: usize, value: &Value) -> Option<usize> {
    let bytes = bytes.checked_sub(ELEMENT)?;
    match value {
        Value::String(text) | Value::Number(Number::Decimal(text)) => bytes.checked_sub(text.len()),
        Value::List(items) => items.iter().try_fold(bytes, subtract),
        Value::Map(entries) => {
            entries.iter().try_fold(bytes, |bytes, (key, item)| subtract(bytes.checked_sub(key.len())?, item))
        }
        Value::Sensitive(inner) => subtract(bytes, inner),
        Value::Null | Value::Unknown | Value::Bool(_) | Value::Number(_) => Some(bytes),
    }
}

/// Charges a part of a string.
pub fn spend_text(length: usize) -> Result<(), Exhausted> {
    spend(units(length))
}

/// The units of a string or of bytes with this length.
fn units(length: usize) -> u64 {
    1 + (length / ELEMENT) as u64
}

/// Returns the size of a value in units: one for each element, and one for each 16 bytes of a string.
fn weight(value: &dyn Val) -> u64 {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        units(text.inner().len())
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        1 + list.inner().iter().map(|item| weight(item.as_ref())).sum::<u64>()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        1 + map.inner().iter().map(|(key, item)| weight(key.inner()) + weight(item.as_ref())).sum::<u64>()
    } else if let Some(data) = value.downcast_ref::<CelBytes<'_>>() {
        units(data.inner().len())
    } else if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        1 + optional.option().map_or(0, weight)
    } else {
        1
    }
}

/// Charges the value of an expression.
pub fn charge(expression: &mut IdedExpr) {
    if !matches!(expression.expr, Expr::Literal(_)) {
        wrap(expression, "@charge");
    }
}

/// Charges the list of a comprehension. A map becomes the sorted list of its keys, because its own order is not stable.
pub fn limit_range(range: &mut IdedExpr) {
    wrap(range, "@range");
}

/// Charges the arguments and the result of a call.
pub fn limit_call(expression: &mut IdedExpr) {
    let Expr::Call(call) = &mut expression.expr else { return };
    match call.func_name.as_str() {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::CONDITIONAL
        | operators::NOT_STRICTLY_FALSE => return,
        operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => return charge(expression),
        _ => {}
    }
    if call.func_name == "matches" {
        own_function(call);
    }
    limit_disproportionate(call);
    let target = call.target.as_deref_mut().filter(|target| !is_namespace(target));
    for operand in call.args.iter_mut().chain(target) {
        if matches!(operand.expr, Expr::Ident(_) | Expr::Select(_)) {
            charge(operand);
        }
    }
    charge(expression);
}

/// Whether the target of a call is the namespace of the function, not a value.
fn is_namespace(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if super::names::is_namespace(name))
}

fn limit_disproportionate(call: &mut CallExpr) {
    let Some(target) = call.target.as_deref_mut() else { return };
    match (call.func_name.as_str(), call.args.as_mut_slice()) {
        ("distinct", []) => wrap(target, "@quadratic"),
        ("indexOf" | "lastIndexOf", [searched, ..]) => {
            wrap_with(target, "@quadratic", searched.clone());
        }
        ("split", [separator] | [separator, _]) => wrap_with(target, "@pieces", separator.clone()),
        ("unmarshal", [text]) => wrap(text, "@json"),
        ("format", [_]) => wrap(target, "@template"),
        ("replace", [_, _] | [_, _, _]) | ("join", [] | [_]) => {
            own_function(call);
        }
        _ => {}
    }
}

/// Calls Purlin's own function, which computes its cost first.
fn own_function(call: &mut CallExpr) {
    call.func_name = format!("@{}", call.func_name);
    let target = call.target.take();
    call.args.splice(0..0, target.map(|target| *target));
}

fn wrap(expression: &mut IdedExpr, function: &str) {
    wrap_with(expression, function, None);
}

/// Replaces an expression by the call of a function with it and another argument.
fn wrap_with(expression: &mut IdedExpr, function: &str, other: impl Into<Option<IdedExpr>>) {
    let inner = std::mem::take(expression);
    let id = inner.id;
    let args = std::iter::once(inner).chain(other.into()).collect();
    *expression = IdedExpr { id, expr: Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }) };
}

/// Declares the functions that charge values. Expressions cannot name them.
pub fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("@charge", "@charge", vec![DYN_TYPE], charge_value)?;
    env.add_overload("@range", "@range", vec![DYN_TYPE], range)?;
    env.add_overload("@quadratic", "@quadratic(list)", vec![DYN_TYPE], quadratic)?;
    env.add_overload("@quadratic", "@quadratic(string)", vec![DYN_TYPE, DYN_TYPE], quadratic)?;
    env.add_overload("@pieces", "@pieces", vec![DYN_TYPE, DYN_TYPE], pieces)?;
    env.add_overload("@json", "@json", vec![DYN_TYPE], json)?;
    env.add_overload("@template", "@template", vec![DYN_TYPE], template)?;
    env.add_overload("@replace", "@replace", vec![STRING_TYPE, STRING_TYPE, STRING_TYPE], replace)?;
    env.add_overload("@replace", "@replace_n", vec![STRING_TYPE, STRING_TYPE, STRING_TYPE, INT_TYPE], replace)?;
    env.add_overload("@join", "@join", vec![LIST_TYPE], join)?;
    env.add_overload("@join", "@join_with", vec![LIST_TYPE, STRING_TYPE], join)
}

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type CallResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Returns the first argument.
fn first<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    args.into_iter().next().ok_or_else(ExecutionError::missing_argument_or_target)
}

fn text<'a>(args: &'a Args<'_, '_>, position: usize) -> Result<&'a str, ExecutionError> {
    let text = args.get(position).and_then(|arg| arg.downcast_ref::<CelString<'_>>());
    text.map(CelString::inner).ok_or_else(ExecutionError::missing_argument_or_target)
}

fn charge_value<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let value = first(args)?;
    spend(weight(value.as_ref()))?;
    Ok(value)
}

fn range<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let value = first(args)?;
    spend(weight(value.as_ref()).saturating_mul(LOOP_FACTOR))?;
    let Some(map) = value.downcast_ref::<CelMap<'_>>() else { return Ok(value) };
    let mut keys: Vec<cel::objects::Key> = map.inner().keys().map(|key| key.clone().into()).collect();
    keys.sort();
    let keys = keys.into_iter().map(cel::Value::from).map(Box::<dyn Val>::try_from).collect::<Result<Vec<_>, _>>()?;
    Ok(CowVal::owned(CelList::from(keys)))
}

fn quadratic<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let [a, b] = [args.first(), args.last()].map(|arg| arg.map_or(1, |arg| weight(arg.as_ref())));
    spend(a.saturating_mul(b) / 16)?;
    first(args)
}

/// A piece of a string is larger than its text.
fn pieces<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    if let (Ok(text), Ok(separator)) = (text(&args, 0), text(&args, 1)) {
        spend(text.matches(separator).count() as u64)?;
    }
    first(args)
}

/// The elements of parsed JSON are larger than their text.
fn json<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    spend(text(&args, 0).map_or(1, |text| text.len() as u64 / 2))?;
    first(args)
}

/// Rejects a precision of more than two digits, which would use too much memory.
fn template<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let value = first(args)?;
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        let is_long = text.inner().split('%').skip(1).any(|clause| {
            let precision = clause.strip_prefix('.').unwrap_or_default();
            precision.bytes().take_while(u8::is_ascii_digit).count() > 2
        });
        if is_long {
            return Err(ExecutionError::function_error("format", "the precision can have at most two digits"));
        }
    }
    Ok(value)
}

fn replace<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let (this, from, to) = (text(&args, 0)?, text(&args, 1)?, text(&args, 2)?);
    let count = match args.get(3).and_then(|arg| arg.downcast_ref::<CelInt>()) {
        Some(count) => usize::try_from(*count.inner()).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let found = this.matches(from).take(count).count() as u64;
    spend(units(this.len()) + found.saturating_mul(to.len() as u64) / ELEMENT as u64)?;
    Ok(CowVal::owned(CelString::from(this.replacen(from, to, count))))
}

fn join<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let separator = if args.len() > 1 { text(&args, 1)? } else { "" };
    let list = args.first().and_then(|arg| arg.downcast_ref::<CelList<'_>>());
    let items = list.map(CelList::inner).ok_or_else(ExecutionError::missing_argument_or_target)?;
    spend((items.len() as u64).saturating_mul(separator.len() as u64) / ELEMENT as u64)?;
    let texts = items.iter().map(|item| item.downcast_ref::<CelString<'_>>().map(CelString::inner));
    let texts: Option<Vec<&str>> = texts.collect();
    let texts = texts.ok_or_else(|| ExecutionError::function_error("join", "every list item must be a string"))?;
    Ok(CowVal::owned(CelString::from(texts.join(separator))))
}
