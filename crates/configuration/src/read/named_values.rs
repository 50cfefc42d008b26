//! Variables, locals and outputs.

use std::sync::Arc;

use cty::{Type, Value};
use hcl::{Attribute, Schema};
use language::TypeConstraint;

use super::Reader;
use super::constants::constant;
use crate::layers::{Block, Content};
use crate::module::{Local, Output, Rule, Variable};

/// Names of variables that mean something else in a `module` block.
const RESERVED: [&str; 8] =
    ["source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"];

impl Reader {
    pub fn variable(&mut self, block: Block) {
        const ARGUMENTS: &[&str] =
            &["description", "default", "type", "sensitive", "ephemeral", "const", "deprecated", "nullable"];
        let name = self.name(&block.labels[0], "variable");
        if RESERVED.contains(&&*name) {
            let detail = format!("The name \"{name}\" is reserved: it means something else in a `module` block.");
            self.diagnostics.error("Invalid variable name", detail, block.labels[0].range);
        }
        let mut content = block.body.content(&Schema::new(ARGUMENTS, &[("validation", &[])]), &mut self.diagnostics);
        let ty = content.take("type");
        let is_typed = ty.is_some();
        let constraint = self.constraint(ty);
        let nullable = self.flag(content.take("nullable")).unwrap_or(true);
        let default = content.take("default").and_then(|default| self.default(&default, &constraint, nullable));
        self.flag(content.take("const"));
        let validations = content.take_blocks("validation").into_iter().filter_map(|block| self.rule(block)).collect();
        let variable = Variable {
            constraint,
            is_typed,
            default,
            nullable,
            sensitive: self.flag(content.take("sensitive")).unwrap_or(false),
            ephemeral: self.flag(content.take("ephemeral")).unwrap_or(false),
            deprecated: self.deprecated(&mut content),
            description: self.text(content.take("description")),
            validations,
            range: block.range,
        };
        let what = format!("variable \"{name}\"");
        Self::declare(&mut self.diagnostics, &mut self.module.variables, name, variable, |own| own.range, &what);
    }

    fn constraint(&mut self, attribute: Option<Attribute>) -> TypeConstraint {
        let read = match &attribute {
            Some(attribute) if attribute.value.as_text().is_some() && attribute.value.keyword().is_none() => {
                let detail = "A type is written without quotes.";
                self.diagnostics.hinted(
                    "Invalid quoted type constraints",
                    detail,
                    "remove the quotes",
                    attribute.value.range,
                );
                return TypeConstraint::of(Type::Dynamic);
            }
            // The words that stood for these types before types had arguments.
            Some(attribute) if matches!(attribute.value.keyword(), Some("list" | "map")) => {
                let is_list = attribute.value.keyword() == Some("list");
                let ty = if is_list { Type::list(Type::Dynamic) } else { Type::map(Type::Dynamic) };
                return TypeConstraint::of(ty);
            }
            Some(attribute) => TypeConstraint::parse(&attribute.value),
            None => return TypeConstraint::of(Type::Dynamic),
        };
        read.unwrap_or_else(|problems| {
            self.invalid(problems);
            TypeConstraint::of(Type::Dynamic)
        })
    }

    fn default(&mut self, attribute: &Attribute, constraint: &TypeConstraint, nullable: bool) -> Option<Value> {
        const INVALID: &str = "Invalid default value for variable";
        let value = match constant(&attribute.value) {
            Ok(value) => value,
            Err(problems) => {
                self.invalid(problems);
                return None;
            }
        };
        if value.is_null() && !nullable {
            let detail = "A null default is not possible with `nullable = false`.";
            self.diagnostics.hinted(INVALID, detail, "remove one of the two", attribute.value.range);
            return None;
        }
        match constraint.convert(&value) {
            Ok(value) => Some(value),
            Err(error) => {
                let detail = format!("The default does not have the type of the variable: {error}.");
                self.diagnostics.error(INVALID, detail, attribute.value.range);
                // There is a default, of which nothing is known.
                Some(Value::unknown(constraint.ty.without_optional()))
            }
        }
    }

    fn deprecated(&mut self, content: &mut Content) -> Option<String> {
        let attribute = content.take("deprecated")?;
        let range = attribute.value.range;
        let text = self.text(Some(attribute));
        if text.as_deref() == Some("") {
            let detail = "The text of `deprecated` says what to use instead, so it cannot be empty.";
            self.diagnostics.error("Invalid `deprecated` value", detail, range);
        }
        text
    }

    /// A block with a condition and an error message.
    pub fn rule(&mut self, block: Block) -> Option<Rule> {
        let mut schema = Schema::new(&["condition", "error_message"], &[]);
        schema.attributes.iter_mut().for_each(|attribute| attribute.required = true);
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let condition = content.take("condition")?.value;
        let message = content.take("error_message")?.value;
        Some(Rule { condition, message, range: block.range })
    }

    pub fn locals(&mut self, block: Block) {
        for attribute in block.body.attributes(&mut self.diagnostics) {
            let name = self.name(&attribute.name, "local value");
            let what = format!("local value \"{name}\"");
            let local = Local { value: attribute.value, range: attribute.name.range };
            Self::declare(&mut self.diagnostics, &mut self.module.locals, name, local, |own| own.range, &what);
        }
    }

    pub fn output(&mut self, block: Block) {
        const ARGUMENTS: &[&str] = &["description", "value", "depends_on", "sensitive", "ephemeral", "deprecated"];
        let name: Arc<str> = self.name(&block.labels[0], "output");
        let mut schema = Schema::new(ARGUMENTS, &[("precondition", &[])]);
        schema.attributes[1].required = true;
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let preconditions =
            content.take_blocks("precondition").into_iter().filter_map(|block| self.rule(block)).collect();
        let Some(value) = content.take("value") else { return };
        let output = Output {
            value: value.value,
            description: self.text(content.take("description")),
            sensitive: self.flag(content.take("sensitive")).unwrap_or(false),
            ephemeral: self.flag(content.take("ephemeral")).unwrap_or(false),
            deprecated: self.deprecated(&mut content),
            depends_on: self.references(content.take("depends_on")),
            preconditions,
            range: block.range,
        };
        let what = format!("output \"{name}\"");
        Self::declare(&mut self.diagnostics, &mut self.module.outputs, name, output, |own| own.range, &what);
    }
}
