//! What is read in JSON syntax.

use crate::diagnostic::Diagnostic;
use crate::source::Range;

use super::Name;

/// The properties of a body in JSON syntax that no schema has asked for yet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JsonBody {
    pub(crate) properties: Vec<Property>,
    /// What is no object where one has to be. It is reported when the content is asked for.
    pub(crate) problems: Vec<Diagnostic>,
    /// The place of the body, if it is no object: an array of objects may be one.
    pub(crate) no_object: Option<Range>,
}

/// `"name": value`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Property {
    pub(crate) name: Name,
    pub(crate) value: JsonValue,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JsonValue {
    pub(crate) range: Range,
    pub(crate) kind: JsonValueKind,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum JsonValueKind {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<JsonValue>),
    Object(Vec<Property>),
}
