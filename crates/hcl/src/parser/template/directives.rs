//! The tree of a template's parts: `%{ if }` and `%{ for }` enclose what is between them and their ends.
//!
//! Directives nest without brackets, so they are held in a list of open ones here, and the tree's height is bounded.

use super::{Part, PartKind};
use crate::diagnostic::Diagnostic;
use crate::source::Range;
use crate::tree::{Conditional, Expr, ExprKind, For, Literal, MAX_HEIGHT};

/// A directive that is open, and what it encloses so far.
struct Open {
    part: Part,
    /// What came before it, on its own level.
    before: Vec<Expr>,
    /// What is between `%{ if }` and `%{ else }`, once the latter was read.
    if_true: Option<Vec<Expr>>,
}

/// Returns the expressions of a template. `end` is the range of its end.
pub fn assemble(parts: Vec<Part>, end: Range, diagnostics: &mut Vec<Diagnostic>) -> Vec<Expr> {
    let mut open: Vec<Open> = Vec::new();
    let mut exprs: Vec<Expr> = Vec::new();
    for part in parts {
        let range = part.range;
        match part.kind {
            PartKind::Text(text) => exprs.push(literal(text, range)),
            PartKind::Value(expr) => exprs.push(expr),
            PartKind::If(_) | PartKind::For { .. } => {
                let before = std::mem::take(&mut exprs);
                open.push(Open { part, before, if_true: None });
            }
            PartKind::Else => match open.last_mut() {
                Some(Open { part: Part { kind: PartKind::If(_), .. }, if_true: if_true @ None, .. }) => {
                    *if_true = Some(std::mem::take(&mut exprs));
                }
                _ => return unbalanced("else", range, diagnostics),
            },
            PartKind::EndIf | PartKind::EndFor => {
                let name = if matches!(part.kind, PartKind::EndIf) { "endif" } else { "endfor" };
                let opened = open.pop_if(|open| matches!(open.part.kind, PartKind::If(_)) == (name == "endif"));
                let Some(opened) = opened else {
                    return unbalanced(name, range, diagnostics);
                };
                let (before, expr) = close(opened, std::mem::take(&mut exprs), range);
                exprs = before;
                exprs.push(expr);
            }
        }
        if exprs.last().is_some_and(|expr| expr.height() > MAX_HEIGHT) {
            let detail = format!("There are more than {MAX_HEIGHT} directives inside each other.");
            diagnostics.push(Diagnostic::new("Nested too deeply", detail, range));
            return vec![Expr::new(ExprKind::Invalid, range)];
        }
    }
    match open.pop() {
        None => exprs,
        Some(open) => {
            let name = if matches!(open.part.kind, PartKind::If(_)) { "if" } else { "for" };
            let detail = format!("The template ends and a directive `%{{ {name} }}` has no `%{{ end{name} }}`.");
            diagnostics.push(Diagnostic::new("Unexpected end of template", detail, end));
            vec![Expr::new(ExprKind::Invalid, end)]
        }
    }
}

fn unbalanced(name: &str, range: Range, diagnostics: &mut Vec<Diagnostic>) -> Vec<Expr> {
    let detail = format!("No directive is open that `{name}` could belong to.");
    diagnostics.push(Diagnostic::new(format!("Unexpected {name} directive"), detail, range));
    vec![Expr::new(ExprKind::Invalid, range)]
}

/// Makes an expression of a directive and what it encloses; returns it with what came before it.
fn close(open: Open, exprs: Vec<Expr>, end: Range) -> (Vec<Expr>, Expr) {
    let Open { part, before, if_true } = open;
    let range = part.range.to(end);
    let kind = match part.kind {
        PartKind::If(condition) => {
            let (if_true, if_false) = match if_true {
                Some(if_true) => (if_true, exprs),
                None => (exprs, Vec::new()),
            };
            let if_true = template(if_true, part.range.at_end());
            let if_false = template(if_false, end.at_start());
            ExprKind::Conditional(Box::new(Conditional { condition, if_true, if_false }))
        }
        PartKind::For { key_name, value_name, collection } => {
            let value = template(exprs, part.range.at_end());
            let (open_range, close_range) = (part.range, end);
            let each = For {
                key_name,
                value_name,
                collection,
                key: None,
                value,
                condition: None,
                group: false,
                open_range,
                close_range,
            };
            ExprKind::TemplateJoin(Box::new(Expr::new(ExprKind::For(Box::new(each)), range)))
        }
        _ => ExprKind::Invalid,
    };
    (before, Expr::new(kind, range))
}

/// The template between two directives; `place` is where an empty one is.
fn template(mut exprs: Vec<Expr>, place: Range) -> Expr {
    if exprs.is_empty() {
        exprs.push(literal(String::new(), place));
    }
    let range = match (exprs.first(), exprs.last()) {
        (Some(first), Some(last)) => first.range.to(last.range),
        _ => place,
    };
    Expr::new(ExprKind::Template(exprs), range)
}

fn literal(text: String, range: Range) -> Expr {
    Expr::literal(Literal::String(crate::escape::normalize(text)), range)
}
