//! What a body has to contain, and the content that follows from it: the same for native and JSON syntax.

mod json;
mod similar;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Diagnostic;
use crate::source::Range;
use crate::tree::{Attribute, Block, Body};

use similar::closest;

/// The arguments and blocks that a body may have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schema {
    /// The arguments.
    pub attributes: Vec<AttributeSchema>,
    /// The blocks.
    pub blocks: Vec<BlockSchema>,
}

/// An argument that a body may have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AttributeSchema {
    /// The name.
    pub name: String,
    /// Whether it has to be set.
    pub required: bool,
}

/// A type of block that a body may have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockSchema {
    /// The type.
    pub kind: String,
    /// What each label is called in errors. A block has this many labels.
    pub labels: Vec<String>,
}

impl Schema {
    /// A schema of optional arguments and of blocks with the names of their labels.
    pub fn new(attributes: &[&str], blocks: &[(&str, &[&str])]) -> Self {
        let attributes = attributes.iter().map(|name| AttributeSchema { name: (*name).to_owned(), required: false });
        let blocks = blocks.iter().map(|(kind, labels)| BlockSchema {
            kind: (*kind).to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        });
        Self { attributes: attributes.collect(), blocks: blocks.collect() }
    }

    fn attribute_names(&self) -> Vec<&str> {
        self.attributes.iter().map(|attribute| attribute.name.as_str()).collect()
    }

    fn block_kinds(&self) -> Vec<&str> {
        self.blocks.iter().map(|block| block.kind.as_str()).collect()
    }
}

/// What a body contains of a schema.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Content {
    /// The arguments.
    pub attributes: Vec<Attribute>,
    /// The blocks, in the order of the source.
    pub blocks: Vec<Block>,
    /// Where an argument that is missing could be added.
    pub end_range: Range,
}

impl Content {
    /// Returns the argument with a name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.text == name)
    }

    /// Returns the blocks of a type.
    pub fn blocks_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> + 'a {
        self.blocks.iter().filter(move |block| block.kind.text == kind)
    }
}

impl Body {
    /// Returns the content of a body that contains nothing but what the schema says.
    ///
    /// ```
    /// use hcl::{FileId, Schema, Source, parse_body, parse_json};
    ///
    /// let schema = Schema::new(&[], &[("variable", &["name"])]);
    /// let native = parse_body(Source::new(FileId(0), "a.tf", "variable \"a\" {\n  default = 1\n}\n"));
    /// let json = parse_json(Source::new(FileId(1), "a.tf.json", r#"{"variable": {"a": {"default": 1}}}"#));
    /// for body in [native.value, json.value] {
    ///     let (content, diagnostics) = body.content(&schema);
    ///     assert!(diagnostics.is_empty());
    ///     assert_eq!(content.blocks[0].labels[0].text, "a");
    /// }
    /// ```
    pub fn content(self, schema: &Schema) -> (Content, Vec<Diagnostic>) {
        let (content, rest, mut diagnostics) = self.partial_content(schema);
        diagnostics.extend(unsupported(&rest, schema));
        (content, diagnostics)
    }

    /// Returns what a body contains of the schema, and a body of the rest.
    pub fn partial_content(mut self, schema: &Schema) -> (Content, Body, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let attributes: BTreeSet<&str> = schema.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
        let kinds: BTreeMap<&str, &[String]> =
            schema.blocks.iter().map(|block| (block.kind.as_str(), block.labels.as_slice())).collect();
        let end_range = self.end_range;
        let mut content = match &mut self.json {
            Some(json) => json.take_content(&attributes, &kinds, &mut diagnostics),
            None => {
                let arguments =
                    self.attributes.extract_if(.., |attribute| attributes.contains(attribute.name.text.as_str()));
                let blocks = self.blocks.extract_if(.., |block| kinds.contains_key(block.kind.text.as_str()));
                Content { attributes: arguments.collect(), blocks: blocks.collect(), end_range }
            }
        };
        content.end_range = end_range;
        content.blocks.retain(|block| {
            let labels = kinds.get(block.kind.text.as_str()).copied().unwrap_or_default();
            let error = wrong_labels(block, labels);
            let right = error.is_none();
            diagnostics.extend(error);
            right
        });
        diagnostics.extend(missing(&content, schema));
        (content, self, diagnostics)
    }

    /// Returns the arguments of a body that has no blocks, such as `locals`.
    pub fn just_attributes(self) -> (Vec<Attribute>, Vec<Diagnostic>) {
        if let Some(json) = self.json {
            return json.into_attributes();
        }
        let mut diagnostics = Vec::new();
        if let Some(block) = self.blocks.first() {
            let detail = "Only arguments are expected here, and no blocks.";
            diagnostics.push(Diagnostic::new(
                format!("Unexpected `{}` block", block.kind.text),
                detail,
                block.kind.range,
            ));
        }
        (self.attributes, diagnostics)
    }
}

fn missing(content: &Content, schema: &Schema) -> Vec<Diagnostic> {
    let set: BTreeSet<&str> = content.attributes.iter().map(|attribute| attribute.name.text.as_str()).collect();
    let required =
        schema.attributes.iter().filter(|attribute| attribute.required && !set.contains(attribute.name.as_str()));
    let errors = required.map(|attribute| {
        let detail = format!("The argument `{}` has to be set.", attribute.name);
        Diagnostic::new("Missing required argument", detail, content.end_range)
    });
    errors.collect()
}

fn wrong_labels(block: &Block, labels: &[String]) -> Option<Diagnostic> {
    let kind = &block.kind.text;
    let detail = match labels {
        [] => format!("A `{kind}` block has no labels."),
        [label] => format!("A `{kind}` block has one label: {label}."),
        _ => format!("A `{kind}` block has {} labels: {}.", labels.len(), labels.join(", ")),
    };
    if let Some(extra) = block.labels.get(labels.len()) {
        return Some(Diagnostic::new(format!("Extraneous label for {kind}"), detail, extra.range));
    }
    let label = labels.get(block.labels.len())?;
    Some(Diagnostic::new(format!("Missing {label} for {kind}"), detail, block.header_range()))
}

fn unsupported(rest: &Body, schema: &Schema) -> Vec<Diagnostic> {
    if let Some(json) = &rest.json {
        return json.unsupported(schema);
    }
    let attributes = rest.attributes.iter().map(|attribute| {
        let name = &attribute.name.text;
        let detail = format!("No argument named `{name}` is expected here.");
        let diagnostic = Diagnostic::new("Unsupported argument", detail, attribute.name.range);
        match schema.blocks.iter().any(|block| block.kind == *name) {
            true => diagnostic.hint(format!("`{name}` is a block: remove the equals sign")),
            false => suggest(diagnostic, name, &schema.attribute_names()),
        }
    });
    let blocks = rest.blocks.iter().map(|block| {
        let kind = &block.kind.text;
        let detail = format!("No block of type `{kind}` is expected here.");
        let diagnostic = Diagnostic::new("Unsupported block type", detail, block.kind.range);
        match schema.attributes.iter().any(|attribute| attribute.name == *kind) {
            true => diagnostic.hint(format!("`{kind}` is an argument: write an equals sign after it")),
            false => suggest(diagnostic, kind, &schema.block_kinds()),
        }
    });
    attributes.chain(blocks).collect()
}

/// Adds the name that was meant, if one is close.
fn suggest(diagnostic: Diagnostic, name: &str, names: &[&str]) -> Diagnostic {
    match closest(name, names) {
        Some(close) => diagnostic.hint(format!("did you mean `{close}`?")),
        None => diagnostic,
    }
}
