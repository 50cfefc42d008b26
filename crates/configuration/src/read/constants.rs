//! Arguments that have to be constant.

use cty::{Type, Value, convert};
use hcl::{Attribute, Diagnostic, Expr, Schema, Source, Traversal};
use language::{Budget, Environment, NoFiles, Scope, evaluate};

use super::Reader;
use crate::diagnostics::Diagnostics;
use crate::layers::Layers;

/// Nothing can be referred to.
struct Constants;

impl Environment for Constants {
    fn resolve(&self, traversal: &Traversal) -> Result<(Value, usize), Diagnostic> {
        let detail = "The value has to be known before anything is evaluated, so it cannot refer to anything.";
        Err(Diagnostic::new("Variables not allowed", detail, traversal.range).hint("write the value itself"))
    }
}

/// The value of an expression without references.
pub(crate) fn constant(expr: &Expr) -> Result<Value, Vec<Diagnostic>> {
    let budget = Budget::default();
    let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
    let evaluated = evaluate(expr, &Constants, &scope);
    if evaluated.diagnostics.is_empty() { Ok(evaluated.value) } else { Err(evaluated.diagnostics) }
}

/// The alias of a provider block, for comparison with that of another.
pub fn alias(body: &Layers) -> Option<String> {
    let schema = Schema::new(&["alias"], &[]);
    let (content, _) = body.clone().partial(&schema, &mut Diagnostics::default());
    constant(&content.attribute("alias")?.value).ok()?.as_str().map(str::to_owned)
}

/// A reference, which may be in quotes as before references had a syntax of their own.
fn reference(expr: &Expr) -> Result<Traversal, Vec<Diagnostic>> {
    let quoted = expr.as_text().and_then(|text| hcl::parse_traversal(Source::new(expr.range.file, "", text)).value);
    match quoted {
        // The offsets of the text are those of no file.
        Some(mut traversal) => {
            traversal.range = expr.range;
            traversal.root.range = expr.range;
            Ok(traversal)
        }
        None => expr.as_traversal(),
    }
}

impl Reader {
    fn constant(&mut self, attribute: &Attribute, ty: &Type) -> Option<Value> {
        let value = match constant(&attribute.value) {
            Ok(value) => value,
            Err(problems) => {
                self.invalid(problems);
                return None;
            }
        };
        match convert(&value, ty) {
            Ok(value) if value.is_null() => None,
            Ok(value) => Some(value),
            Err(error) => {
                let detail = format!("The value of `{}` does not fit: {error}.", attribute.name.text);
                self.diagnostics.error("Unsuitable value type", detail, attribute.value.range);
                None
            }
        }
    }

    pub fn text(&mut self, attribute: Option<Attribute>) -> Option<String> {
        self.constant(&attribute?, &Type::String)?.as_str().map(str::to_owned)
    }

    pub fn flag(&mut self, attribute: Option<Attribute>) -> Option<bool> {
        self.constant(&attribute?, &Type::Bool)?.as_bool()
    }

    /// A list of references that is written out, such as `depends_on`.
    pub fn references(&mut self, attribute: Option<Attribute>) -> Vec<Traversal> {
        let Some(attribute) = attribute else { return Vec::new() };
        let Some(items) = attribute.value.as_list() else {
            let detail = format!("`{}` is a list of references, written out in brackets.", attribute.name.text);
            self.diagnostics.error("Invalid expression", detail, attribute.value.range);
            return Vec::new();
        };
        let mut found = Vec::new();
        for item in items {
            match reference(item) {
                Ok(traversal) => found.push(traversal),
                Err(problems) => self.invalid(problems),
            }
        }
        found
    }
}
