//! The references of an expression: the traversals that its scope has to answer.

use crate::tree::{Expr, ExprKind, For, Traversal};

impl Expr {
    /// Returns the traversals in the expression whose first name comes from outside it, in the order of the source.
    /// A name that a `for` defines is none, and neither is a bare word as the key of an object.
    ///
    /// ```
    /// let text = "[for k, v in var.a : upper(v) if v != local.skip && k != each.key]";
    /// let parsed = hcl::parse_expression(hcl::Source::new(hcl::FileId(0), "", text));
    /// let names: Vec<&str> = parsed.value.references().iter().map(|found| parsed.source.slice(found.range)).collect();
    /// assert_eq!(names, ["var.a", "local.skip", "each.key"]);
    /// ```
    pub fn references(&self) -> Vec<&Traversal> {
        let mut references = Vec::new();
        collect(self, &mut Vec::new(), &mut references);
        references
    }
}

fn collect<'a>(expr: &'a Expr, scope: &mut Vec<&'a str>, references: &mut Vec<&'a Traversal>) {
    match &expr.kind {
        ExprKind::Traversal(traversal) => {
            if !scope.contains(&traversal.root.text.as_str()) {
                references.push(traversal);
            }
        }
        ExprKind::For(each) => collect_for(each, scope, references),
        ExprKind::Object(items) => {
            for item in items {
                if item.key.word().is_none() {
                    collect(&item.key.expr, scope, references);
                }
                collect(&item.value, scope, references);
            }
        }
        _ => expr.for_each_child(&mut |child| collect(child, scope, references)),
    }
}

fn collect_for<'a>(each: &'a For, scope: &mut Vec<&'a str>, references: &mut Vec<&'a Traversal>) {
    collect(&each.collection, scope, references);
    let outside = scope.len();
    scope.extend(each.key_name.iter().map(|name| name.text.as_str()));
    scope.push(&each.value_name.text);
    each.key.iter().for_each(|key| collect(key, scope, references));
    collect(&each.value, scope, references);
    each.condition.iter().for_each(|condition| collect(condition, scope, references));
    scope.truncate(outside);
}
