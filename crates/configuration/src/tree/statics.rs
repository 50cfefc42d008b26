//! What has to be known before modules are loaded: the sources and versions of module calls.
//!
//! They may refer to variables and local values whose values need no object.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Mark, Type, Value, convert};
use hcl::{Diagnostic, Expr, Traversal};
use language::{Budget, Environment, NoFiles, Scope, evaluate};

use super::{NodeId, Tree};
use crate::evaluation::Input;
use crate::reference::{PathName, Reference, Subject};

/// The names in a module, as far as they need no object.
pub struct Statics<'a> {
    pub tree: &'a Tree,
    pub node: NodeId,
    pub inputs: &'a BTreeMap<String, Input>,
    pub depth: &'a Cell<usize>,
}

/// Longer chains of references are no way to name a source.
const MAX_DEPTH: usize = 50;

impl Statics<'_> {
    /// The text of an expression.
    pub fn text(&self, expr: &Expr) -> Result<Option<String>, Vec<Diagnostic>> {
        let value = self.value(expr)?;
        let wrong = if value.contains_marked() {
            "The value is sensitive or ephemeral, and the source of a module is shown and kept."
        } else {
            match convert(&value, &Type::String) {
                Ok(value) if value.is_null() => return Ok(None),
                Ok(value) => match value.as_str() {
                    Some(text) => return Ok(Some(text.to_owned())),
                    None => "The value is not known before objects are planned.",
                },
                Err(_) => "A text is required.",
            }
        };
        Err(vec![Diagnostic::new("Invalid module source or version", wrong, expr.range)])
    }

    fn value(&self, expr: &Expr) -> Result<Value, Vec<Diagnostic>> {
        let budget = Budget::default();
        let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
        let evaluated = evaluate(expr, self, &scope);
        if evaluated.diagnostics.is_empty() { Ok(evaluated.value) } else { Err(evaluated.diagnostics) }
    }

    fn inner(&self, node: NodeId, expr: &Expr) -> Result<Value, Diagnostic> {
        if self.depth.get() >= MAX_DEPTH {
            let detail = "The references of a module's source go around in a circle, or are too many.";
            return Err(Diagnostic::new("Invalid module source or version", detail, expr.range));
        }
        self.depth.set(self.depth.get() + 1);
        let value = Statics { node, ..*self }.value(expr);
        self.depth.set(self.depth.get() - 1);
        value.map_err(|mut problems| problems.swap_remove(0))
    }

    fn variable(&self, name: &Arc<str>) -> Option<Result<Value, Diagnostic>> {
        let node = &self.tree.nodes[self.node];
        let variable = node.module.variables.get(name)?;
        let given = match node.parent {
            None => self.inputs.get(&**name).and_then(|input| input.value(variable).ok()).map(Ok),
            Some(parent) => {
                let mut arguments = self.tree.call_of(self.node).into_iter().flat_map(|call| &call.arguments);
                let argument = arguments.find(|argument| argument.name.text == **name);
                argument.map(|argument| self.inner(parent, &argument.value))
            }
        };
        let given = given.or_else(|| variable.default.clone().map(Ok))?;
        Some(given.map(|value| {
            let value = variable.constraint.convert(&value).unwrap_or(value);
            let marks = [(variable.sensitive, Mark::Sensitive), (variable.ephemeral, Mark::Ephemeral)];
            marks.into_iter().filter(|(is_set, _)| *is_set).fold(value, |value, (_, mark)| value.with_mark(mark))
        }))
    }
}

impl Environment for Statics<'_> {
    fn resolve(&self, traversal: &Traversal) -> Result<(Value, usize), Diagnostic> {
        let reference = Reference::parse(traversal)?;
        let module = &self.tree.nodes[self.node].module;
        let value = match &reference.subject {
            Subject::Variable(name) => self.variable(name).transpose()?,
            Subject::Local(name) => {
                module.locals.get(name).map(|local| self.inner(self.node, &local.value)).transpose()?
            }
            Subject::Path(PathName::Module) => Some(Value::string(&module.directory)),
            Subject::Path(PathName::Root) => Some(Value::string(&self.tree.root().directory)),
            _ => None,
        };
        value.map(|value| (value, reference.steps)).ok_or_else(|| {
            let detail = "The source and version of a module have to be known before anything is planned.";
            let hint = "use variables and local values that refer to no resource, and have a value";
            Diagnostic::new("Variables not allowed", detail, traversal.range).hint(hint)
        })
    }
}
