//! The content of a body in JSON syntax.
//!
//! A block is an object of objects, one level for each label; at each level there may be an array of objects instead.

use std::collections::{BTreeMap, BTreeSet};

use super::{Content, Schema, suggest};
use crate::diagnostic::Diagnostic;
use crate::json::{body_of, expression, properties};
use crate::source::Range;
use crate::tree::{Attribute, Block, JsonBody, JsonValue, JsonValueKind, Name, Property};

/// A property with this name is a comment.
const COMMENT: &str = "//";

impl JsonBody {
    /// Takes what a schema has out of the properties.
    pub(crate) fn take_content(
        &mut self,
        arguments: &BTreeSet<&str>,
        kinds: &BTreeMap<&str, &[String]>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Content {
        diagnostics.append(&mut self.problems);
        let mut content = Content::default();
        let mut set = BTreeSet::new();
        let taken = self.properties.extract_if(.., |property| {
            arguments.contains(property.name.text.as_str()) || kinds.contains_key(property.name.text.as_str())
        });
        for Property { name, value } in taken {
            if arguments.contains(name.text.as_str()) {
                match set.insert(name.text.clone()) {
                    true => content.attributes.push(attribute(name, value)),
                    false => diagnostics.push(duplicate(&name)),
                }
            } else {
                let labels = kinds.get(name.text.as_str()).copied().unwrap_or_default();
                add_blocks(&name, &mut Vec::new(), labels, value, &mut content.blocks, diagnostics);
            }
        }
        content
    }

    /// Takes all properties as arguments.
    pub(crate) fn into_attributes(self) -> (Vec<Attribute>, Vec<Diagnostic>) {
        let mut diagnostics = self.problems;
        if let Some(range) = self.no_object {
            let detail = "An object is expected here: its properties are the arguments.";
            return (Vec::new(), vec![Diagnostic::new("Incorrect JSON value type", detail, range)]);
        }
        let mut set = BTreeSet::new();
        let mut attributes = Vec::new();
        for Property { name, value } in self.properties {
            if name.text == COMMENT {
                continue;
            }
            match set.insert(name.text.clone()) {
                true => attributes.push(attribute(name, value)),
                false => diagnostics.push(duplicate(&name)),
            }
        }
        (attributes, diagnostics)
    }

    /// Reports the properties that are left.
    pub(crate) fn unsupported(&self, schema: &Schema) -> Vec<Diagnostic> {
        let left = self.properties.iter().filter(|property| property.name.text != COMMENT);
        let names = [schema.attribute_names(), schema.block_kinds()].concat();
        let errors = left.map(|property| {
            let detail = format!("No argument or block named `{}` is expected here.", property.name.text);
            let diagnostic = Diagnostic::new("Extraneous JSON object property", detail, property.name.range);
            suggest(diagnostic, &property.name.text, &names)
        });
        errors.collect()
    }
}

fn attribute(name: Name, value: JsonValue) -> Attribute {
    let range = name.range.to(value.range);
    Attribute { equals_range: name.range, value: expression(value), name, range }
}

fn duplicate(name: &Name) -> Diagnostic {
    let detail = format!("`{}` was set already. An argument is set once.", name.text);
    Diagnostic::new("Duplicate argument", detail, name.range)
}

/// Adds the blocks of a value that has a level for each label that is left.
fn add_blocks(
    kind: &Name,
    labels: &mut Vec<Name>,
    left: &[String],
    value: JsonValue,
    blocks: &mut Vec<Block>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if let Some((label, left)) = left.split_first() {
        let range = value.range;
        let properties = properties(value, &format!("the names of its properties are the {label}"), diagnostics);
        if properties.is_empty() {
            let detail = format!("A `{}` block has a {label}: it is the name of a property here.", kind.text);
            diagnostics.push(Diagnostic::new("Missing block label", detail, range));
        }
        for Property { name, value } in properties {
            labels.push(name);
            add_blocks(kind, labels, left, value, blocks, diagnostics);
            labels.pop();
        }
        return;
    }
    let open = value.range;
    match value.kind {
        JsonValueKind::Null => {}
        JsonValueKind::Object(_) => blocks.push(block(kind, labels, open, value)),
        JsonValueKind::Array(values) => {
            blocks.extend(values.into_iter().map(|value| block(kind, labels, open, value)));
        }
        _ => {
            let detail = format!("An object or an array is expected here, with the content of `{}` blocks.", kind.text);
            diagnostics.push(Diagnostic::new("Incorrect JSON value type", detail, value.range));
        }
    }
}

fn block(kind: &Name, labels: &[Name], open: Range, value: JsonValue) -> Block {
    let open_range = Range { end: open.start + 1, ..open };
    let close_range = Range { start: value.range.end.saturating_sub(1), ..value.range };
    Block { kind: kind.clone(), labels: labels.to_vec(), body: body_of(value), open_range, close_range }
}
