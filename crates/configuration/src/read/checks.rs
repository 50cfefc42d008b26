//! References that mean nothing where they stand, whatever their values are.

use hcl::{Diagnostic, Expr, ExprKind};

use super::Reader;
use crate::address::ResourceName;
use crate::module::{Module, Rule};
use crate::reference::{Reference, Subject};

impl Reader {
    /// Checks what can only be checked when everything is read.
    pub fn check_references(&mut self) {
        let mut problems = Vec::new();
        check_conditions(&self.module, &mut problems);
        let of_removed = self.module.removed.iter().flat_map(|removed| &removed.provisioners);
        let attributes = of_removed.flat_map(|provisioner| &provisioner.body.base.attributes);
        attributes.for_each(|attribute| check_destroy(&attribute.value, &mut problems));
        for (name, resource) in &self.module.resources {
            let connection = resource.connection.as_ref();
            for provisioner in resource.provisioners.iter().filter(|provisioner| provisioner.on_destroy) {
                let connection = provisioner.connection.as_ref().or(connection);
                let bodies = std::iter::once(&provisioner.body).chain(connection);
                let attributes = bodies.flat_map(|layers| &layers.base.attributes);
                attributes.for_each(|attribute| check_destroy(&attribute.value, &mut problems));
            }
            resource.lifecycle.replace_triggered_by.iter().for_each(|expr| check_trigger(expr, &mut problems));
            check_own(name, &resource.lifecycle.preconditions, "precondition", &mut problems);
            check_own(name, &resource.lifecycle.postconditions, "postcondition", &mut problems);
        }
        self.invalid(problems);
    }
}

fn check_conditions(module: &Module, problems: &mut Vec<Diagnostic>) {
    let validations = module.variables.values().flat_map(|variable| &variable.validations);
    let outputs = module.outputs.values().flat_map(|output| &output.preconditions);
    let before = module.resources.values().flat_map(|resource| &resource.lifecycle.preconditions);
    let after = module.resources.values().flat_map(|resource| &resource.lifecycle.postconditions);
    let all = [
        ("variable validation", validations.collect::<Vec<_>>()),
        ("precondition", before.chain(outputs).collect()),
        ("postcondition", after.collect()),
    ];
    for (what, rules) in all {
        for rule in rules.into_iter().filter(|rule| rule.condition.references().is_empty()) {
            let detail = "The condition refers to nothing, so it always has the same result.";
            let summary = match what {
                "variable validation" => "Invalid variable validation condition".to_owned(),
                what => format!("Invalid {what} expression"),
            };
            problems.push(Diagnostic::new(summary, detail, rule.condition.range));
        }
    }
}

/// A condition of a block cannot wait for the block.
fn check_own(name: &ResourceName, rules: &[Rule], what: &str, problems: &mut Vec<Diagnostic>) {
    for rule in rules {
        for traversal in [&rule.condition, &rule.message].into_iter().flat_map(Expr::references) {
            if let Ok(Reference { subject: Subject::Resource(named, _), .. }) = Reference::parse(traversal)
                && named == *name
            {
                let detail = format!("A {what} cannot refer to its own block by its address.");
                let problem = Diagnostic::new(format!("Invalid reference in {what}"), detail, traversal.range);
                problems.push(match what {
                    "postcondition" => problem.hint("write `self`"),
                    _ => problem.hint("write the condition as a postcondition, with `self`"),
                });
            }
        }
    }
}

/// When an object is destroyed, only the object itself is sure to be there.
fn check_destroy(expr: &Expr, problems: &mut Vec<Diagnostic>) {
    for traversal in expr.references() {
        let is_possible = match Reference::parse(traversal) {
            Ok(reference) => matches!(
                reference.subject,
                Subject::Own | Subject::CountIndex | Subject::EachKey | Subject::Path(_) | Subject::Workspace
            ),
            // It is reported when it is evaluated.
            Err(_) => true,
        };
        if !is_possible {
            let detail = "A provisioner that runs before its object is destroyed can refer to `self`, `count.index` and `each.key` only.";
            let hint =
                "keep the value in the object, such as in `triggers` of a null_resource, and read it from `self`";
            problems.push(
                Diagnostic::new("Invalid reference from destroy provisioner", detail, traversal.range).hint(hint),
            );
        }
    }
}

fn check_trigger(expr: &Expr, problems: &mut Vec<Diagnostic>) {
    const INVALID: &str = "Invalid replace_triggered_by expression";
    match &expr.kind {
        ExprKind::RelativeTraversal(relative) => check_trigger(&relative.source, problems),
        ExprKind::Index(index) => {
            for traversal in index.key.references() {
                match Reference::parse(traversal) {
                    Ok(Reference { subject: Subject::CountIndex | Subject::EachKey, .. }) => {}
                    Ok(_) => {
                        let detail = "The index can refer to `count.index` and `each.key` only.";
                        problems.push(Diagnostic::new(INVALID, detail, traversal.range));
                    }
                    Err(problem) => problems.push(problem),
                }
            }
            check_trigger(&index.collection, problems);
        }
        _ => match expr.as_traversal().map(|traversal| Reference::parse(&traversal)) {
            Ok(Ok(Reference { subject: Subject::Resource(..), .. })) => {}
            _ => {
                let detail = "A reference to a resource, or to an attribute of one, is required.";
                problems.push(Diagnostic::new(INVALID, detail, expr.range));
            }
        },
    }
}
