//! Detects names that are written with `-`: `app-key.id` is `app - key.id` in an expression, a subtraction of objects.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::Problem;
use super::names::{self, Root};
use crate::load::intern::Interner;
use model::{Address, Segment};

/// Rejects a subtraction from or of a whole object. `source`: the whole expression. `is_bound`: whether a name is a
/// variable of a comprehension.
pub fn check(
    call: &CallExpr,
    source: &str,
    is_bound: &dyn Fn(&str) -> bool,
    interner: &mut Interner,
) -> Result<(), Problem> {
    if call.func_name != operators::SUBSTRACT {
        return Ok(());
    }
    let [left, right] = call.args.as_slice() else { return Ok(()) };
    let object = whole_object(left, is_bound, interner).or_else(|| whole_object(right, is_bound, interner));
    match object {
        Some(object) => Err(problem(&object, source, &subtraction(call).unwrap_or_default())),
        None => Ok(()),
    }
}

/// The problem of a source that the CEL parser rejects, but which is a path if each `-` is a part of a name, such as
/// `my-for.id`.
pub fn of_source(source: &str) -> Option<Problem> {
    let steps: Vec<Segment> = source.trim().split('.').map(|name| Segment::Name(name.into())).collect();
    let is_path = source.trim().split('.').all(|name| names::is_identifier(&name.replace('-', "_")));
    let (before, _) = source.trim().split_once('-')?;
    is_path.then(|| problem(before, source, &steps))
}

/// Returns the name if the expression is only the name of an object.
fn whole_object(operand: &IdedExpr, is_bound: &dyn Fn(&str) -> bool, interner: &mut Interner) -> Option<String> {
    match &operand.expr {
        Expr::Ident(name) if !is_bound(name) => {
            let found = names::resolve(name, Vec::new(), interner).ok()??;
            matches!(found.root, Root::Object(_)).then(|| name.clone())
        }
        Expr::Select(select) => match &select.operand.expr {
            Expr::Ident(root) if names::root_segments(root) == 1 && !is_bound(root) => {
                Some(format!("{root}.{}", select.field))
            }
            _ => None,
        },
        Expr::Call(call) if is_additive(call) => {
            call.args.iter().find_map(|operand| whole_object(operand, is_bound, interner))
        }
        _ => None,
    }
}

fn is_additive(call: &CallExpr) -> bool {
    [operators::SUBSTRACT, operators::ADD].contains(&call.func_name.as_str())
}

/// The steps of a path as they would be if each `-` were a part of a name.
fn steps(expression: &IdedExpr) -> Option<Vec<Segment>> {
    match &expression.expr {
        Expr::Ident(name) => Some(vec![Segment::Name(name.as_str().into())]),
        Expr::Literal(LiteralValue::Int(number)) => Some(vec![Segment::Name(number.inner().to_string().into())]),
        Expr::Select(select) if !select.test => {
            let mut steps = steps(&select.operand)?;
            steps.push(Segment::Name(select.field.as_str().into()));
            Some(steps)
        }
        Expr::Call(call) if call.func_name == operators::SUBSTRACT => subtraction(call),
        // `"x" + app-key.id` is `("x" + app) - key.id`.
        Expr::Call(call) if is_additive(call) => steps(call.args.last()?),
        Expr::Call(CallExpr { func_name, target: None, args }) if func_name == operators::INDEX => {
            let [operand, key] = args.as_slice() else { return None };
            let mut steps = steps(operand)?;
            steps.push(match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => Segment::Name(key.inner().into()),
                Expr::Literal(LiteralValue::Int(index)) => Segment::Index(usize::try_from(*index.inner()).ok()?),
                _ => return None,
            });
            Some(steps)
        }
        _ => None,
    }
}

fn subtraction(call: &CallExpr) -> Option<Vec<Segment>> {
    let [left, right] = call.args.as_slice() else { return None };
    let (mut joined, right) = (steps(left)?, steps(right)?);
    let [Segment::Name(first), rest @ ..] = right.as_slice() else { return None };
    match joined.last_mut() {
        Some(Segment::Name(last)) => *last = format!("{last}-{first}").into(),
        _ => return None,
    }
    joined.extend_from_slice(rest);
    Some(joined)
}

/// The hint has the path if one of its names is in the source as it is, without spaces.
fn problem(object: &str, source: &str, steps: &[Segment]) -> Problem {
    let problem = Problem::new(format!("`-` subtracts, and `{object}` is not a number"));
    let names = steps.iter().enumerate().filter_map(|(position, step)| match step {
        Segment::Name(name) if name.contains('-') && source.contains(&**name) => Some((position, name)),
        _ => None,
    });
    let Some((position, name)) = names.into_iter().next() else { return problem };
    let written = format!("`{}`", written(steps));
    let is_object = position == 0 || (position == 1 && steps[0] == Segment::Name("data".into()));
    problem.hint(match is_object {
        true => format!("write `{name}` as `{}`: {written}", name.replace('-', "_")),
        false => format!("write the key `{name}` in brackets: {written}"),
    })
}

/// The path as an expression.
fn written(steps: &[Segment]) -> String {
    match steps {
        [Segment::Name(root), Segment::Name(name), rest @ ..] if &**root == "data" => {
            names::path_expression(Address::data(&name.replace('_', "-")).name(), rest)
        }
        [Segment::Name(root), rest @ ..] if !names::is_resource_root(root) || &**root == "resources" => {
            names::append_path(root.to_string(), rest)
        }
        [Segment::Name(root), rest @ ..] => names::path_expression(&root.replace('_', "-"), rest),
        _ => String::new(),
    }
}
