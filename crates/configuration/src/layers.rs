//! Bodies with what override files change of them.
//!
//! Upstream merges what it has read of a block. Here the bodies are merged, before anything is read of them: an argument
//! of an override takes the place of that of the block, and the blocks of a type in it that of all blocks of the type.
//! The arguments of `lifecycle` and `required_providers` are merged one by one.

use hcl::{Attribute, Body, Name, Range, Schema};

use crate::diagnostics::Diagnostics;

/// A body, and those that override parts of it, the last of them with the last word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    pub base: Body,
    pub overrides: Vec<Body>,
}

/// What layers contain of a schema.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub attributes: Vec<Attribute>,
    pub blocks: Vec<Block>,
    /// Where an argument that is missing could be added.
    pub end_range: Range,
}

/// A block whose body may be overridden.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub kind: Name,
    pub labels: Vec<Name>,
    pub body: Layers,
    /// The type and the labels.
    pub range: Range,
}

impl From<Body> for Layers {
    fn from(base: Body) -> Self {
        Self { base, overrides: Vec::new() }
    }
}

impl From<hcl::Block> for Block {
    fn from(block: hcl::Block) -> Self {
        let range = block.header_range();
        Self { kind: block.kind, labels: block.labels, body: block.body.into(), range }
    }
}

impl From<hcl::Content> for Content {
    fn from(content: hcl::Content) -> Self {
        let blocks = content.blocks.into_iter().map(Block::from).collect();
        Self { attributes: content.attributes, blocks, end_range: content.end_range }
    }
}

impl Block {
    pub fn label(&self, position: usize) -> &str {
        self.labels.get(position).map_or("", |label| &label.text)
    }
}

/// The types of blocks whose arguments are overridden one by one.
const BY_ARGUMENT: [&str; 2] = ["lifecycle", "required_providers"];

impl Layers {
    /// What the layers contain of the schema, and nothing else.
    pub fn content(self, schema: &Schema, diagnostics: &mut Diagnostics) -> Content {
        let optional = optional(schema);
        let (base, problems) = self.base.content(schema);
        diagnostics.errors.extend(problems);
        let mut content = Content::from(base);
        for layer in self.overrides {
            let (layer, problems) = layer.content(&optional);
            diagnostics.errors.extend(problems);
            content.merge(layer.into());
        }
        content
    }

    /// What the layers contain of the schema, and the rest.
    pub fn partial(self, schema: &Schema, diagnostics: &mut Diagnostics) -> (Content, Layers) {
        let optional = optional(schema);
        let (base, mut rest, problems) = self.base.partial_content(schema);
        diagnostics.errors.extend(problems);
        let mut content = Content::from(base);
        let mut overrides = Vec::new();
        for layer in self.overrides {
            let (layer, rest, problems) = layer.partial_content(&optional);
            diagnostics.errors.extend(problems);
            content.merge(layer.into());
            overrides.push(rest);
        }
        for (position, escape) in content.blocks.extract_if(.., |block| block.kind.text == "_").enumerate() {
            if position > 0 {
                diagnostics.error("Duplicate escaping block", "A block has one `_` block.", escape.range);
            }
            rest.attributes.extend(escape.body.base.attributes);
            rest.blocks.extend(escape.body.base.blocks);
        }
        (content, Layers { base: rest, overrides })
    }

    /// The arguments of a body without blocks.
    pub fn attributes(self, diagnostics: &mut Diagnostics) -> Vec<Attribute> {
        let mut content = Content::default();
        for layer in std::iter::once(self.base).chain(self.overrides) {
            let (attributes, problems) = layer.just_attributes();
            diagnostics.errors.extend(problems);
            content.merge(Content { attributes, ..Content::default() });
        }
        content.attributes
    }
}

fn optional(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    schema.attributes.iter_mut().for_each(|attribute| attribute.required = false);
    schema
}

impl Content {
    fn merge(&mut self, other: Content) {
        for attribute in other.attributes {
            match self.attributes.iter_mut().find(|own| own.name.text == attribute.name.text) {
                Some(own) => *own = attribute,
                None => self.attributes.push(attribute),
            }
        }
        self.blocks.retain(|base| {
            BY_ARGUMENT.contains(&&*base.kind.text)
                || other.blocks.iter().all(|block| block.kind.text != base.kind.text)
        });
        for block in other.blocks {
            let mut bases = self.blocks.iter_mut();
            match bases.find(|base| BY_ARGUMENT.contains(&&*base.kind.text) && base.kind.text == block.kind.text) {
                Some(base) => base.body.overrides.push(block.body.base),
                None => self.blocks.push(block),
            }
        }
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.text == name)
    }

    /// Takes the value of an argument.
    pub fn take(&mut self, name: &str) -> Option<Attribute> {
        let at = self.attributes.iter().position(|attribute| attribute.name.text == name)?;
        Some(self.attributes.remove(at))
    }

    /// Takes the blocks of a type.
    pub fn take_blocks(&mut self, kind: &str) -> Vec<Block> {
        self.blocks.extract_if(.., |block| block.kind.text == kind).collect()
    }
}
