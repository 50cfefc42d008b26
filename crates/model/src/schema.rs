//! Schemas of resource types.

use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeType {
    Any,
    String,
    Bool,
    Number,
    List(Box<AttributeType>),
    /// A map with values of one type. An object with arbitrary attributes is `Map(Any)`.
    Map(Box<AttributeType>),
    /// An unordered collection: its items have no path.
    Set,
    /// An object with these attributes.
    Object(BTreeMap<Arc<str>, AttributeType>),
}

/// An attribute of a resource type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub kind: AttributeType,
    /// The configuration must set it.
    pub required: bool,
    /// The configuration may set it. An attribute that is neither required nor optional is computed.
    pub optional: bool,
    /// The driver may set it.
    pub computed: bool,
    /// Its value is never shown.
    pub sensitive: bool,
    /// The computed attribute that holds the observed values of this argument at the same paths, which `ignoreChanges`
    /// keeps. `None` if a refresh updates the argument itself.
    pub observed_in: Option<Arc<str>>,
    /// A sentence for documentation.
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The schema version of recorded values.
    pub version: u64,
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    /// The driver converts values to the types of its attributes, and checks them. The types only describe the paths.
    pub converted_by_driver: bool,
}
