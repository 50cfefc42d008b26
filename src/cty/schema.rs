//! Schemas: what a provider says about the arguments and attributes of a type.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Type, Value};

/// The schema of a resource type, a data source or a provider's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The version that states carry.
    pub version: i64,
    /// The outermost block.
    pub block: Block,
}

/// What can be configured in one place, and what is found there. Its attributes and blocks do not change once it is made:
/// its type is worked out from them then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    attributes: BTreeMap<Arc<str>, Attribute>,
    blocks: BTreeMap<Arc<str>, NestedBlock>,
    ty: Type,
    /// A text for people.
    pub description: Arc<str>,
    /// Why it should not be used any more; `None`: it may be.
    pub deprecated: Option<Arc<str>>,
}

/// An attribute of a block or of a nested object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// What it holds.
    pub shape: Shape,
    /// The configuration must set it.
    pub required: bool,
    /// The configuration may set it. Neither required nor optional: it is computed only.
    pub optional: bool,
    /// The provider may set it where the configuration does not.
    pub computed: bool,
    /// Its value is never shown.
    pub sensitive: bool,
    /// It is told to the provider and never kept.
    pub write_only: bool,
    /// A text for people.
    pub description: Arc<str>,
    /// Why it should not be used any more; `None`: it may be.
    pub deprecated: Option<Arc<str>>,
}

/// What an attribute holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value of a type.
    Plain(Type),
    /// Objects whose attributes have schemas themselves.
    Nested(NestedType),
}

/// Objects in an attribute, by how they are nested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedType {
    /// How; never `Group`.
    pub nesting: Nesting,
    attributes: BTreeMap<Arc<str>, Attribute>,
    element: Type,
}

/// A block inside of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedBlock {
    /// How it is nested.
    pub nesting: Nesting,
    /// The block.
    pub block: Block,
    /// How many there must be at least, of a list or a set; 1 with `Single`: it must be there.
    pub min_items: u64,
    /// How many there may be at most, of a list or a set; 0: any number.
    pub max_items: u64,
}

/// How objects are nested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// One object, or null.
    Single,
    /// One object, which is there even when it is not configured.
    Group,
    /// A list of objects.
    List,
    /// A set of objects.
    Set,
    /// Objects by key.
    Map,
}

impl Schema {
    /// The type of values of the schema.
    pub fn ty(&self) -> &Type {
        self.block.ty()
    }
}

impl Block {
    /// A block of the given attributes and blocks.
    pub fn new(attributes: BTreeMap<Arc<str>, Attribute>, mut blocks: BTreeMap<Arc<str>, NestedBlock>) -> Self {
        // No schema may use a name twice; of one that does the attribute counts, as in Terraform.
        blocks.retain(|name, _| !attributes.contains_key(name));
        let types = attributes.iter().map(|(name, attribute)| (name.clone(), attribute.ty()));
        let types = types.chain(blocks.iter().map(|(name, nested)| (name.clone(), nested.ty())));
        let ty = Type::Object(Arc::new(types.collect()));
        Self { attributes, blocks, ty, description: Arc::default(), deprecated: None }
    }

    /// Its attributes.
    pub fn attributes(&self) -> &BTreeMap<Arc<str>, Attribute> {
        &self.attributes
    }

    /// The blocks in it.
    pub fn blocks(&self) -> &BTreeMap<Arc<str>, NestedBlock> {
        &self.blocks
    }

    /// The type of its values, an object.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Whether some attribute is such a one, wherever it is nested.
    pub fn has(&self, such: &dyn Fn(&Attribute) -> bool) -> bool {
        self.attributes.values().any(|attribute| attribute.has(such))
            || self.blocks.values().any(|nested| nested.block.has(such))
    }

    /// The value of the block with nothing set in it.
    pub fn empty(&self) -> Value {
        let attributes = self.attributes.keys().map(|name| (name.clone(), Value::Null));
        let blocks = self.blocks.iter().map(|(name, nested)| (name.clone(), nested.empty()));
        Value::object(attributes.chain(blocks))
    }
}

impl Attribute {
    /// An attribute of the given shape that is neither required, optional nor computed.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            required: false,
            optional: false,
            computed: false,
            sensitive: false,
            write_only: false,
            description: Arc::default(),
            deprecated: None,
        }
    }

    /// The type of its value.
    pub fn ty(&self) -> Type {
        match &self.shape {
            Shape::Plain(ty) => ty.clone(),
            Shape::Nested(nested) => nested.ty(),
        }
    }

    /// Whether it, or some attribute in it, is such a one.
    fn has(&self, such: &dyn Fn(&Self) -> bool) -> bool {
        such(self)
            || match &self.shape {
                Shape::Nested(nested) => nested.attributes.values().any(|inner| inner.has(such)),
                Shape::Plain(_) => false,
            }
    }

    /// Whether a configuration may have it.
    pub fn is_settable(&self) -> bool {
        self.required || self.optional
    }
}

impl NestedType {
    /// Objects of the given attributes.
    pub fn new(nesting: Nesting, attributes: BTreeMap<Arc<str>, Attribute>) -> Self {
        let element = Type::object(attributes.iter().map(|(name, attribute)| (name.clone(), attribute.ty())));
        Self { nesting, attributes, element }
    }

    /// The attributes of each object.
    pub fn attributes(&self) -> &BTreeMap<Arc<str>, Attribute> {
        &self.attributes
    }

    /// The type of one object.
    pub fn element(&self) -> &Type {
        &self.element
    }

    /// The type of all of them.
    pub fn ty(&self) -> Type {
        let element = || Arc::new(self.element.clone());
        match self.nesting {
            Nesting::Single | Nesting::Group => self.element.clone(),
            Nesting::List => Type::List(element()),
            Nesting::Set => Type::Set(element()),
            Nesting::Map => Type::Map(element()),
        }
    }
}

impl NestedBlock {
    /// The type of all blocks of this name. Lists and maps of blocks whose types may differ have none beforehand: each
    /// value is a tuple or an object that carries its own.
    pub fn ty(&self) -> Type {
        let element = || Arc::new(self.block.ty.clone());
        match self.nesting {
            Nesting::Single | Nesting::Group => self.block.ty.clone(),
            Nesting::List | Nesting::Map if self.is_dynamic() => Type::Dynamic,
            Nesting::List => Type::List(element()),
            Nesting::Map => Type::Map(element()),
            Nesting::Set => Type::Set(element()),
        }
    }

    /// Whether some place of the block is dynamic.
    pub fn is_dynamic(&self) -> bool {
        self.block.ty.has_dynamic()
    }

    /// The value when no block of this name is configured.
    pub fn empty(&self) -> Value {
        match self.nesting {
            Nesting::Single => Value::Null,
            Nesting::Group => self.block.empty(),
            Nesting::List => super::nested::list(Vec::new(), &self.block.ty),
            Nesting::Set => Value::set([]),
            Nesting::Map => super::nested::map(BTreeMap::new(), &self.block.ty),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
