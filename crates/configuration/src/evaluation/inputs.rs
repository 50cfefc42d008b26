//! The values of the root module's variables.

use std::collections::BTreeMap;

use cty::Value;
use hcl::{Diagnostic, FileId, Source};

use super::Evaluation;
use crate::diagnostics::{Diagnostics, Sources};
use crate::module::Variable;
use crate::read::constant;

/// What is assigned to a variable of the root module.
#[derive(Clone, Debug)]
pub enum Input {
    /// A value, of a file of variables or of another program.
    Value(Value),
    /// A value that [`Evaluation::assign`] gives, and that is unknown before.
    Linked,
    /// A text, of the command line or the environment: a string, or an expression if the variable's type is no primitive.
    Text(String),
}

/// Reads a file of variables, such as `terraform.tfvars`.
pub fn values_of_file(name: &str, content: Vec<u8>, sources: &mut Sources) -> (BTreeMap<String, Input>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let body = sources.parse(name.to_owned(), content, &mut diagnostics);
    let (attributes, problems) = body.just_attributes();
    diagnostics.errors.extend(problems);
    let mut values = BTreeMap::new();
    for attribute in attributes {
        match constant(&attribute.value) {
            Ok(value) => {
                values.insert(attribute.name.text, Input::Value(value));
            }
            Err(problems) => diagnostics.errors.extend(problems),
        }
    }
    (values, diagnostics)
}

impl Input {
    /// The value, if it does not depend on the type of the variable.
    pub fn into_value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Linked | Self::Text(_) => None,
        }
    }

    pub(crate) fn value(&self, variable: &Variable) -> Result<Value, String> {
        let text = match self {
            Input::Value(value) => return Ok(value.clone()),
            Input::Linked => return Ok(Value::DYNAMIC),
            Input::Text(text) => text,
        };
        if variable.constraint.ty.is_primitive() || !variable.is_typed {
            return Ok(Value::string(text));
        }
        let parsed = hcl::parse_expression(Source::new(FileId(u32::MAX), "", text.as_str()));
        let value = if parsed.diagnostics.is_empty() { constant(&parsed.value) } else { Err(parsed.diagnostics) };
        value.map_err(|problems| {
            let first = problems.first().map_or("", |problem| &problem.detail);
            format!("its text is no expression: {first}")
        })
    }
}

impl Evaluation {
    /// Values for variables that are not there.
    pub(crate) fn check_inputs(&self) {
        let root = self.tree.root();
        for name in self.settings.variables.keys().filter(|name| !root.variables.contains_key(name.as_str())) {
            let detail = format!("A value is assigned to \"{name}\", and the root module has no such variable.");
            let hint = format!("remove the value, or declare it with a block `variable \"{name}\"`");
            self.warn(Diagnostic::new("Value for undeclared variable", detail, hcl::Range::default()).hint(hint));
        }
    }
}
