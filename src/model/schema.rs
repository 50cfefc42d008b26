//! What a resource type looks like.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The type of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeType {
    /// Anything.
    Any,
    /// A text.
    String,
    /// A boolean.
    Bool,
    /// A number.
    Number,
    /// A list of one type.
    List(Box<AttributeType>),
    /// A map of one type, or an object of any attributes with `Any`.
    Map(Box<AttributeType>),
}

/// One attribute of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// What it may hold.
    pub kind: AttributeType,
    /// The configuration must set it.
    pub required: bool,
    /// The configuration may set it. Neither required nor optional: it is computed only.
    pub optional: bool,
    /// The driver may set it.
    pub computed: bool,
    /// Its value is never shown.
    pub sensitive: bool,
    /// The computed attribute that shows, at the same paths, what became of this argument: `ignoreChanges` leaves what
    /// stands there. `None`: reading an object brings the argument itself up to date.
    pub shown_in: Option<Arc<str>>,
    /// One sentence for people.
    pub description: String,
}

/// A resource type: its attributes by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The version that recorded values carry.
    pub version: u64,
    /// The attributes.
    pub attributes: BTreeMap<Arc<str>, Attribute>,
}
