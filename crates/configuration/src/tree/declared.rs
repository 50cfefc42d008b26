//! Whether what expressions refer to is declared, also in modules and blocks of which there is no instance.
//!
//! This needs no schema, so it says nothing of attributes. Files in JSON syntax are left out: whether a text in them is an
//! expression depends on the schema.

use std::sync::Arc;

use hcl::{Body, Diagnostic, Expr, Traversal};

use super::Tree;
use crate::diagnostics::Diagnostics;
use crate::layers::Layers;
use crate::module::{Lifecycle, Module, Provisioner, Repetition, Rule};
use crate::reference::{Reference, Subject};

impl Tree {
    /// Finds references to variables, local values, module calls and resources that their modules do not declare.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use configuration::{Directories, File, Manifest, load};
    /// struct One;
    /// impl Directories for One {
    ///     fn files(&self, _: &str) -> Result<Vec<File>, String> {
    ///         let text = "output \"a\" {\n  value = [for b in local.c : b]\n}\n";
    ///         Ok(vec![File { name: "main.tf".to_owned(), content: text.into() }])
    ///     }
    /// }
    /// let (tree, _) = load(".", &One, &Manifest::default(), &BTreeMap::new());
    /// let problems = tree.undeclared();
    /// assert_eq!(
    ///     tree.sources.line(&problems.errors[0]),
    ///     "main.tf:2:21: Reference to undeclared local value: There is no local value \"c\" in this module."
    /// );
    /// ```
    pub fn undeclared(&self) -> Diagnostics {
        let mut checked: Vec<&Arc<Module>> = Vec::new();
        let mut diagnostics = Diagnostics::default();
        for node in &self.nodes {
            // Modules in one directory share what was read, and have each problem once.
            if checked.iter().any(|module| Arc::ptr_eq(module, &node.module)) {
                continue;
            }
            checked.push(&node.module);
            let mut check = Check { module: &node.module, problems: Vec::new() };
            check.module();
            diagnostics.errors.append(&mut check.problems);
        }
        diagnostics.sort();
        diagnostics
    }
}

impl Module {
    /// The problem of a reference to what is not declared in this module.
    pub(crate) fn undeclared(&self, reference: &Reference) -> Option<Diagnostic> {
        let (what, missing, hint) = match &reference.subject {
            Subject::Variable(name) if !self.variables.contains_key(name) => {
                let hint = format!("declare it with a block `variable \"{name}\"`");
                ("input variable", format!("variable \"{name}\""), Some(hint))
            }
            Subject::Local(name) if !self.locals.contains_key(name) => {
                ("local value", format!("local value \"{name}\""), None)
            }
            Subject::Module { call, .. } if !self.calls.contains_key(call) => {
                ("module", format!("module call \"{call}\""), None)
            }
            Subject::Resource(name, _) if !self.resources.contains_key(name) => {
                ("resource", format!("{} \"{name}\"", name.mode.block()), None)
            }
            _ => return None,
        };
        let detail = format!("There is no {missing} in this module.");
        let problem = Diagnostic::new(format!("Reference to undeclared {what}"), detail, reference.range);
        Some(match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        })
    }
}

struct Check<'a> {
    module: &'a Module,
    problems: Vec<Diagnostic>,
}

/// The names that `dynamic` blocks around an expression define.
type Iterators<'a> = Vec<&'a str>;

impl Check<'_> {
    fn module(&mut self) {
        let module = self.module;
        for variable in module.variables.values() {
            self.rules(&variable.validations);
        }
        for local in module.locals.values() {
            self.expr(&local.value);
        }
        for output in module.outputs.values() {
            self.expr(&output.value);
            self.rules(&output.preconditions);
            self.traversals(&output.depends_on);
        }
        for call in module.calls.values() {
            self.repetition(&call.repetition);
            self.traversals(&call.depends_on);
            call.arguments.iter().for_each(|argument| self.expr(&argument.value));
        }
        for provider in module.providers.values() {
            provider.for_each.iter().for_each(|expr| self.expr(expr));
            self.layers(&provider.body);
        }
        for resource in module.resources.values() {
            self.repetition(&resource.repetition);
            self.traversals(&resource.depends_on);
            self.lifecycle(&resource.lifecycle);
            self.provisioners(&resource.provisioners);
            resource.connection.iter().for_each(|connection| self.layers(connection));
            self.layers(&resource.body);
        }
        for check in module.checks.values() {
            self.rules(&check.assertions);
        }
        for import in &module.imports {
            [&import.id, &import.identity, &import.for_each].into_iter().flatten().for_each(|expr| self.expr(expr));
        }
    }

    fn lifecycle(&mut self, lifecycle: &Lifecycle) {
        self.rules(&lifecycle.preconditions);
        self.rules(&lifecycle.postconditions);
        lifecycle.replace_triggered_by.iter().for_each(|expr| self.expr(expr));
    }

    fn provisioners(&mut self, provisioners: &[Provisioner]) {
        for provisioner in provisioners {
            self.layers(&provisioner.body);
            provisioner.connection.iter().for_each(|connection| self.layers(connection));
        }
    }

    fn rules(&mut self, rules: &[Rule]) {
        for rule in rules {
            self.expr(&rule.condition);
            self.expr(&rule.message);
        }
    }

    fn repetition(&mut self, repetition: &Repetition) {
        repetition.expr().into_iter().for_each(|expr| self.expr(expr));
    }

    fn layers(&mut self, layers: &Layers) {
        for body in std::iter::once(&layers.base).chain(&layers.overrides) {
            self.body(body, &Vec::new());
        }
    }

    fn body(&mut self, body: &Body, iterators: &Iterators<'_>) {
        for attribute in &body.attributes {
            self.expr_among(&attribute.value, iterators);
        }
        for block in &body.blocks {
            if block.kind.text != "dynamic" {
                self.body(&block.body, iterators);
                continue;
            }
            // The name of the iterator is no reference.
            let own = block.body.attribute("iterator").and_then(|attribute| attribute.value.as_traversal().ok());
            let own = own.as_ref().map(|traversal| traversal.root.text.as_str());
            let label = block.labels.first().map(|label| label.text.as_str());
            let mut inner = iterators.clone();
            inner.extend(own.or(label));
            for attribute in block.body.attributes.iter().filter(|attribute| attribute.name.text != "iterator") {
                let is_outside = attribute.name.text == "for_each";
                self.expr_among(&attribute.value, if is_outside { iterators } else { &inner });
            }
            for content in &block.body.blocks {
                self.body(&content.body, &inner);
            }
        }
    }

    fn traversals(&mut self, traversals: &[Traversal]) {
        traversals.iter().for_each(|traversal| self.traversal(traversal));
    }

    fn expr(&mut self, expr: &Expr) {
        self.expr_among(expr, &Vec::new());
    }

    fn expr_among(&mut self, expr: &Expr, iterators: &Iterators<'_>) {
        for traversal in expr.references() {
            if !iterators.contains(&traversal.root.text.as_str()) {
                self.traversal(traversal);
            }
        }
    }

    fn traversal(&mut self, traversal: &Traversal) {
        // A reference that cannot be read can be a word of a provisioner or a provider, which has a meaning of its own.
        if let Ok(reference) = Reference::parse(traversal) {
            self.problems.extend(self.module.undeclared(&reference));
        }
    }
}
