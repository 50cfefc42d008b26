//! The body of a block, read by the schema of its provider: once for each block, whatever number of instances it has.

use std::collections::BTreeMap;

use std::sync::Arc;

use hcl::{AttributeSchema, BlockSchema, Expr, Range, Schema};

use super::Evaluation;
use crate::address::ResourceName;
use crate::diagnostics::Diagnostics;
use crate::layers::{self, Layers};
use crate::providers::LocalProvider;
use crate::schema::{Block, Nesting};
use crate::tree::NodeId;

/// Which body it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Place {
    Resource(NodeId, ResourceName),
    Provider(NodeId, LocalProvider),
    /// A `provider_meta` block.
    Meta(NodeId, Arc<str>),
    Provisioner(NodeId, ResourceName, usize),
    /// A provisioner of a `removed` block.
    Removed(NodeId, ResourceName, usize),
    /// The connection of a provisioner, or that of the whole block.
    Connection(NodeId, ResourceName, Option<usize>),
}

/// The arguments and blocks of a body.
#[derive(Debug, Default)]
pub struct Compiled {
    pub attributes: BTreeMap<Arc<str>, Expr>,
    /// The blocks of each type, also those that are written for an attribute.
    pub blocks: BTreeMap<Arc<str>, Vec<Nested>>,
    pub range: Range,
}

/// A block, or a `dynamic` block that stands for some.
#[derive(Debug)]
pub struct Nested {
    pub body: Compiled,
    /// What a label is written as, of a block that has one.
    pub label: Option<Arc<str>>,
    pub dynamic: Option<Dynamic>,
    pub range: Range,
}

#[derive(Debug)]
pub struct Dynamic {
    pub for_each: Expr,
    pub iterator: Arc<str>,
    pub label: Option<Expr>,
}

impl Evaluation {
    /// The body of a block by its schema. `None` if it does not fit, which is reported.
    pub(crate) fn compiled(&self, place: &Place, body: &Layers, schema: &Block) -> Option<Arc<Compiled>> {
        if let Some(compiled) = self.compiled.borrow().get(place) {
            return compiled.clone();
        }
        let mut diagnostics = Diagnostics::default();
        let compiled = compile(body.clone(), schema, &mut diagnostics);
        let compiled = diagnostics.errors.is_empty().then(|| Arc::new(compiled));
        diagnostics.errors.into_iter().for_each(|diagnostic| self.report_once(diagnostic));
        self.compiled.borrow_mut().insert(place.clone(), compiled.clone());
        compiled
    }
}

fn compile(body: Layers, schema: &Block, diagnostics: &mut Diagnostics) -> Compiled {
    let as_blocks = written_as_blocks(&body, schema);
    let expected = expected(schema, &as_blocks);
    let content = body.content(&expected, diagnostics);
    let mut compiled = Compiled { range: content.end_range, ..Compiled::default() };
    for attribute in content.attributes {
        compiled.attributes.insert(attribute.name.text.into(), attribute.value);
    }
    for block in content.blocks {
        let (kind, nested) = match block.kind.text.as_str() {
            "dynamic" => {
                let kind: Arc<str> = block.label(0).into();
                let Some(inner) = inner(&kind, schema, &as_blocks) else {
                    let detail = format!("There is no block of type `{kind}` here.");
                    diagnostics.error("Unsupported block type", detail, block.range);
                    continue;
                };
                let Some(nested) = dynamic(block, inner, diagnostics) else { continue };
                (kind, nested)
            }
            kind => {
                let kind: Arc<str> = kind.into();
                let Some(inner) = inner(&kind, schema, &as_blocks) else { continue };
                let label = block.labels.first().map(|label| label.text.as_str().into());
                let body = compile(block.body, inner, diagnostics);
                (kind, Nested { body, label, dynamic: None, range: block.range })
            }
        };
        compiled.blocks.entry(kind).or_default().push(nested);
    }
    compiled
}

/// The attributes that are written as blocks, with what is in one of them.
fn written_as_blocks(body: &Layers, schema: &Block) -> BTreeMap<Arc<str>, Block> {
    let bodies: Vec<&hcl::Body> = std::iter::once(&body.base).chain(&body.overrides).collect();
    let possible =
        schema.attributes.iter().filter_map(|(name, attribute)| Some((name.clone(), attribute.as_blocks()?)));
    possible.filter(|(name, _)| bodies.iter().any(|body| has_blocks(body, name))).collect()
}

fn has_blocks(body: &hcl::Body, name: &str) -> bool {
    let is_written = body.blocks.iter().any(|block| {
        let is_dynamic = block.kind.text == "dynamic" && block.labels.first().is_some_and(|label| label.text == name);
        block.kind.text == name || is_dynamic
    });
    if is_written || body.json.is_none() {
        return is_written;
    }
    // In JSON syntax blocks and values look the same. What can be read as blocks is.
    let (content, _, problems) = body.clone().partial_content(&Schema::new(&[], &[(name, &[])]));
    problems.is_empty() && !content.blocks.is_empty()
}

fn inner<'b>(kind: &str, schema: &'b Block, as_blocks: &'b BTreeMap<Arc<str>, Block>) -> Option<&'b Block> {
    schema.blocks.get(kind).map(|nested| &nested.block).or_else(|| as_blocks.get(kind))
}

fn expected(schema: &Block, as_blocks: &BTreeMap<Arc<str>, Block>) -> Schema {
    let attributes = schema.attributes.iter().filter(|(name, _)| !as_blocks.contains_key(*name));
    let attributes =
        attributes.map(|(name, attribute)| AttributeSchema { name: name.to_string(), required: attribute.required });
    let blocks = schema.blocks.iter().map(|(kind, nested)| BlockSchema {
        kind: kind.to_string(),
        labels: if nested.nesting == Nesting::Map { vec!["key".to_owned()] } else { Vec::new() },
    });
    let as_blocks = as_blocks.keys().map(|kind| BlockSchema { kind: kind.to_string(), labels: Vec::new() });
    let dynamic = BlockSchema { kind: "dynamic".to_owned(), labels: vec!["type".to_owned()] };
    Schema { attributes: attributes.collect(), blocks: blocks.chain(as_blocks).chain([dynamic]).collect() }
}

fn dynamic(block: layers::Block, inner: &Block, diagnostics: &mut Diagnostics) -> Option<Nested> {
    let (kind, range) = (block.label(0).to_owned(), block.range);
    let mut schema = Schema::new(&["for_each", "iterator", "labels"], &[("content", &[])]);
    schema.attributes[0].required = true;
    let mut content = block.body.content(&schema, diagnostics);
    let for_each = content.take("for_each")?.value;
    let iterator = match content.take("iterator") {
        Some(attribute) => match attribute.value.keyword() {
            Some(word) => word.into(),
            None => {
                let detail = "The iterator is a name, without quotes.";
                diagnostics.error("Invalid dynamic iterator name", detail, attribute.value.range);
                return None;
            }
        },
        None => kind.as_str().into(),
    };
    let label = content.take("labels").and_then(|labels| labels.value.as_list().and_then(|all| all.first().cloned()));
    let mut blocks = content.take_blocks("content").into_iter();
    let Some(body) = blocks.next() else {
        let detail = "A `dynamic` block has a `content` block.";
        diagnostics.error("Insufficient content blocks", detail, range);
        return None;
    };
    if let Some(second) = blocks.next() {
        diagnostics.error("Extraneous content block", "A `dynamic` block has only one `content` block.", second.range);
    }
    let body = compile(body.body, inner, diagnostics);
    Some(Nested { body, label: None, dynamic: Some(Dynamic { for_each, iterator, label }), range })
}
