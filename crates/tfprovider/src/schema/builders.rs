//! Schema builders for tests.

use super::{Attribute, Block, NestedBlock, Nesting, Shape, Type};

pub(crate) fn optional(ty: Type) -> Attribute {
    Attribute { optional: true, ..Attribute::new(Shape::Plain(ty)) }
}

/// An attribute that only the provider sets.
pub(crate) fn computed(ty: Type) -> Attribute {
    Attribute { computed: true, ..Attribute::new(Shape::Plain(ty)) }
}

pub(crate) fn block<const A: usize, const B: usize>(
    attributes: [(&str, Attribute); A],
    blocks: [(&str, NestedBlock); B],
) -> Block {
    let attributes = attributes.into_iter().map(|(name, attribute)| (name.into(), attribute));
    let blocks = blocks.into_iter().map(|(name, nested)| (name.into(), nested));
    Block::new(attributes.collect(), blocks.collect())
}

/// A nested block without limits on the number of items.
pub(crate) fn nested(nesting: Nesting, block: Block) -> NestedBlock {
    NestedBlock { nesting, block, min_items: 0, max_items: 0 }
}
