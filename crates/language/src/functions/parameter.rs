//! What a function takes.

use crate::cty::Type;

/// A parameter, and which arguments an implementation is ready for.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub accepts: Accepts,
    /// Null is an error otherwise.
    pub null: bool,
    /// The result is unknown otherwise.
    pub unknown: bool,
    /// The result is unknown, and of unknown type, otherwise.
    pub untyped: bool,
    /// The result has the marks of the argument otherwise.
    pub marked: bool,
}

/// The types of parameters and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    Any,
    Bool,
    Number,
    String,
    ListOfAny,
    ListOfStrings,
    ListOfNumbers,
    ListOfBools,
    SetOfAny,
    SetOfStrings,
    MapOfAny,
    MapOfListsOfStrings,
}

impl Accepts {
    pub fn ty(self) -> Type {
        match self {
            Self::Any => Type::Dynamic,
            Self::Bool => Type::Bool,
            Self::Number => Type::Number,
            Self::String => Type::String,
            Self::ListOfAny => Type::list(Type::Dynamic),
            Self::ListOfStrings => Type::list(Type::String),
            Self::ListOfNumbers => Type::list(Type::Number),
            Self::ListOfBools => Type::list(Type::Bool),
            Self::SetOfAny => Type::set(Type::Dynamic),
            Self::SetOfStrings => Type::set(Type::String),
            Self::MapOfAny => Type::map(Type::Dynamic),
            Self::MapOfListsOfStrings => Type::map(Type::list(Type::String)),
        }
    }
}

pub const fn parameter(name: &'static str, accepts: Accepts) -> Parameter {
    Parameter { name, accepts, null: false, unknown: false, untyped: false, marked: false }
}

pub const fn any(name: &'static str) -> Parameter {
    parameter(name, Accepts::Any)
}

pub const fn string(name: &'static str) -> Parameter {
    parameter(name, Accepts::String)
}

pub const fn number(name: &'static str) -> Parameter {
    parameter(name, Accepts::Number)
}

impl Parameter {
    pub(crate) const fn null(mut self) -> Self {
        self.null = true;
        self
    }

    pub(crate) const fn unknown(mut self) -> Self {
        self.unknown = true;
        self
    }

    pub(crate) const fn untyped(mut self) -> Self {
        self.untyped = true;
        self
    }

    pub(crate) const fn marked(mut self) -> Self {
        self.marked = true;
        self
    }

    /// Ready for every argument except a marked one.
    pub(crate) const fn anything(self) -> Self {
        self.null().unknown().untyped()
    }
}
