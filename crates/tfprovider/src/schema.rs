//! Schemas of resource types, data sources and provider configurations, and the rules that relate the prior state, the
//! configuration, the plan and the result of an object.
//!
//! Everything here is pure. `tests/vectors` checks the rules against those of OpenTofu.

mod apply_check;
mod checker;
mod ignored;
mod json;
mod normalize;
mod plan_check;
mod propose;
mod replace;
mod wire;
mod write_only;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use cty::{Type, Value};

pub use apply_check::result_errors;
pub use ignored::with_prior_at;
pub use normalize::normalize;
pub use plan_check::plan_errors;
pub use propose::{proposed_state, unread_data_source};
pub use replace::replace_paths;
pub use wire::WireError;
pub use write_only::{without_write_only, write_only_errors, write_only_fingerprints, write_only_values};

/// The schema of a resource type, a data source or a provider configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The schema version of recorded states.
    pub version: i64,
    pub block: Block,
}

/// The attributes and nested blocks of one level. They cannot change after construction, because the implied type is
/// computed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    attributes: BTreeMap<Arc<str>, Attribute>,
    blocks: BTreeMap<Arc<str>, NestedBlock>,
    ty: Type,
    pub description: Arc<str>,
    pub description_kind: DescriptionKind,
    /// The deprecation message, if it is deprecated.
    pub deprecated: Option<Arc<str>>,
}

/// An attribute of a block or of a nested object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub shape: Shape,
    /// The configuration must set it.
    pub required: bool,
    /// The configuration may set it. An attribute that is neither required nor optional is computed only.
    pub optional: bool,
    /// The provider may set it if the configuration does not.
    pub computed: bool,
    /// Its value is never shown.
    pub sensitive: bool,
    /// Its value is sent to the provider and never recorded.
    pub write_only: bool,
    pub description: Arc<str>,
    pub description_kind: DescriptionKind,
    /// The deprecation message, if it is deprecated.
    pub deprecated: Option<Arc<str>>,
}

/// The content of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Plain(Type),
    /// Objects whose attributes have their own schemas.
    Nested(NestedType),
}

/// The objects of a nested attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedType {
    /// Never `Group`.
    pub nesting: Nesting,
    attributes: BTreeMap<Arc<str>, Attribute>,
    element: Type,
}

/// A block inside another block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedBlock {
    pub nesting: Nesting,
    pub block: Block,
    /// The minimum number of items of a list or set. With `Single`, 1 means that the block is required.
    pub min_items: u64,
    /// The maximum number of items of a list or set; 0 means no limit.
    pub max_items: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DescriptionKind {
    #[default]
    Plain,
    Markdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// One object, or null.
    Single,
    /// One object, which exists even if it is not configured.
    Group,
    List,
    Set,
    Map,
}

impl Schema {
    pub fn ty(&self) -> &Type {
        self.block.ty()
    }
}

impl Block {
    pub fn new(attributes: BTreeMap<Arc<str>, Attribute>, mut blocks: BTreeMap<Arc<str>, NestedBlock>) -> Self {
        // A schema must not use a name twice. If it does, the attribute takes precedence, as in Terraform.
        blocks.retain(|name, _| !attributes.contains_key(name));
        let types = attributes.iter().map(|(name, attribute)| (name.clone(), attribute.ty()));
        let types = types.chain(blocks.iter().map(|(name, nested)| (name.clone(), nested.ty())));
        let ty = Type::object(types);
        let description_kind = DescriptionKind::default();
        Self { attributes, blocks, ty, description: Arc::default(), description_kind, deprecated: None }
    }

    pub fn attributes(&self) -> &BTreeMap<Arc<str>, Attribute> {
        &self.attributes
    }

    pub fn blocks(&self) -> &BTreeMap<Arc<str>, NestedBlock> {
        &self.blocks
    }

    /// The implied type, an object.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Whether the predicate holds for any attribute, at any depth.
    pub fn has(&self, such: &dyn Fn(&Attribute) -> bool) -> bool {
        self.attributes.values().any(|attribute| attribute.has(such))
            || self.blocks.values().any(|nested| nested.block.has(such))
    }

    /// The value of the block if nothing in it is configured.
    pub fn empty(&self) -> Value {
        let attributes = self.attributes.keys().map(|name| (name.clone(), Value::NULL));
        let blocks = self.blocks.iter().map(|(name, nested)| (name.clone(), nested.empty()));
        Value::of_entries(&self.ty, attributes.chain(blocks).collect())
    }
}

impl Attribute {
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            required: false,
            optional: false,
            computed: false,
            sensitive: false,
            write_only: false,
            description: Arc::default(),
            description_kind: DescriptionKind::default(),
            deprecated: None,
        }
    }

    pub fn ty(&self) -> Type {
        match &self.shape {
            Shape::Plain(ty) => ty.clone(),
            Shape::Nested(nested) => nested.ty(),
        }
    }

    /// Whether the predicate holds for this attribute or any attribute in it.
    fn has(&self, such: &dyn Fn(&Self) -> bool) -> bool {
        such(self)
            || match &self.shape {
                Shape::Nested(nested) => nested.attributes.values().any(|inner| inner.has(such)),
                Shape::Plain(_) => false,
            }
    }

    pub fn is_settable(&self) -> bool {
        self.required || self.optional
    }
}

impl NestedType {
    pub fn new(nesting: Nesting, attributes: BTreeMap<Arc<str>, Attribute>) -> Self {
        let element = Type::object(attributes.iter().map(|(name, attribute)| (name.clone(), attribute.ty())));
        Self { nesting, attributes, element }
    }

    pub fn attributes(&self) -> &BTreeMap<Arc<str>, Attribute> {
        &self.attributes
    }

    /// The type of one object.
    pub fn element(&self) -> &Type {
        &self.element
    }

    /// The type of the attribute: `element` wrapped by the nesting.
    pub fn ty(&self) -> Type {
        wrapped(self.nesting, &self.element)
    }
}

fn wrapped(nesting: Nesting, element: &Type) -> Type {
    match nesting {
        Nesting::Single | Nesting::Group => element.clone(),
        Nesting::List => Type::list(element.clone()),
        Nesting::Set => Type::set(element.clone()),
        Nesting::Map => Type::map(element.clone()),
    }
}

impl NestedBlock {
    /// The type of all blocks with this name. Lists and maps of blocks with dynamic parts have no fixed type: each
    /// value is a tuple or an object that carries its own type.
    pub fn ty(&self) -> Type {
        match self.nesting {
            Nesting::List | Nesting::Map if self.is_dynamic() => Type::Dynamic,
            nesting => wrapped(nesting, &self.block.ty),
        }
    }

    /// Whether any part of the block has a dynamic type.
    pub fn is_dynamic(&self) -> bool {
        self.block.ty.has_dynamic()
    }

    /// The value if no block with this name is configured.
    pub fn empty(&self) -> Value {
        match self.nesting {
            Nesting::Single => Value::null(self.block.ty.clone()),
            Nesting::Group => self.block.empty(),
            Nesting::List | Nesting::Set => Value::of_items(&self.ty(), Vec::new()),
            Nesting::Map => Value::of_entries(&self.ty(), Entries::default()),
        }
    }
}

type Entries = cty::Entries<Value>;

/// The elements of a list, a set, or the tuple that replaces a list of blocks with dynamic parts. Empty for any other
/// value.
fn items(value: &Value) -> &[Value] {
    value.as_items().unwrap_or_default()
}

/// The entries of a map, or of the object that replaces a map of blocks with dynamic parts. Empty for any other value.
fn entries(value: &Value) -> &Entries {
    static NONE: LazyLock<Entries> = LazyLock::new(Entries::default);
    value.as_entries().unwrap_or(&NONE)
}

#[cfg(test)]
pub(crate) mod builders;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
