//! The functions of OpenTofu 1.12, in one table.
//!
//! Each topic has its rows at the top of its file and their implementations below. A row says what a function takes,
//! what it does with null, unknown and marked arguments, and what it gives; [`Function::call`] applies that, so an
//! implementation sees only what its row allows.

mod call;
mod parameter;
mod signature;
mod numbers;
mod floats;
mod strings;
mod searching;
mod graphemes;
mod formatting;
mod verbs;
mod regular_expressions;
mod re2;
mod lists;
mod sequences;
mod mappings;
mod sets;
mod choices;
mod conversions;
mod marking;
mod json;
mod yaml;
mod yaml_writer;
mod csv;
mod encodings;
mod gzip;
mod digests;
mod networks;
mod network;
mod dates;
mod timestamp;
mod files;
mod paths;
mod expressions;

pub use parameter::{Accepts, Parameter};
pub use paths::clean as clean_path;
pub use signature::{Prepared, Signature, TypedParameter};

use std::collections::BTreeMap;
use std::sync::LazyLock;

use call::Call;

use crate::cty::{Type, Value};
use crate::{Failure, Scope};

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Function {
    pub name: &'static str,
    pub description: &'static str,
    /// A call, and the value that it gives.
    pub example: (&'static str, &'static str),
    pub parameters: &'static [Parameter],
    /// Any number of further arguments.
    pub rest: Option<Parameter>,
    /// Whether a result, also an unknown one, is known not to be null.
    pub never_null: bool,
    result: ResultType,
    call: Implementation,
}

type Implementation = fn(&Call<'_>) -> Result<Value, Failure>;

#[derive(Clone, Copy)]
enum ResultType {
    Always(Accepts),
    /// Depends on the arguments, of which any may be unknown.
    Of(fn(&Call<'_>) -> Result<Type, Failure>),
    /// Nothing is known before the call.
    OfResult,
}

/// The functions by topic.
const TOPICS: &[(&str, &[Function])] = &[
    ("Numbers", numbers::FUNCTIONS),
    ("Strings", strings::FUNCTIONS),
    ("Searching in strings", searching::FUNCTIONS),
    ("Formatting", formatting::FUNCTIONS),
    ("Regular expressions", regular_expressions::FUNCTIONS),
    ("Lists", lists::FUNCTIONS),
    ("New lists", sequences::FUNCTIONS),
    ("Maps and objects", mappings::FUNCTIONS),
    ("Sets", sets::FUNCTIONS),
    ("Choices", choices::FUNCTIONS),
    ("Types", conversions::FUNCTIONS),
    ("Sensitive and ephemeral values", marking::FUNCTIONS),
    ("JSON", json::FUNCTIONS),
    ("YAML", yaml::FUNCTIONS),
    ("CSV", csv::FUNCTIONS),
    ("Encodings", encodings::FUNCTIONS),
    ("Digests and identifiers", digests::FUNCTIONS),
    ("IP networks", networks::FUNCTIONS),
    ("Times", dates::FUNCTIONS),
    ("Files", files::FUNCTIONS),
    ("Paths", paths::FUNCTIONS),
    ("Templates and errors", expressions::FUNCTIONS),
];

/// The functions of each topic, with its title.
pub fn topics() -> &'static [(&'static str, &'static [Function])] {
    TOPICS
}

/// Every function.
pub fn all() -> impl Iterator<Item = &'static Function> {
    TOPICS.iter().flat_map(|(_, functions)| functions.iter())
}

static BY_NAME: LazyLock<BTreeMap<&str, &Function>> =
    LazyLock::new(|| all().map(|function| (function.name, function)).collect());

/// The function of a name, which may begin with `core::`.
pub fn find(name: &str) -> Option<&'static Function> {
    let name = name.strip_prefix("core::").unwrap_or(name);
    BY_NAME.get(name).copied()
}

const fn function(name: &'static str, call: Implementation) -> Function {
    Function {
        name,
        description: "",
        example: ("", ""),
        parameters: &[],
        rest: None,
        never_null: true,
        result: ResultType::Always(Accepts::Any),
        call,
    }
}

impl Function {
    const fn takes(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    const fn and_any(mut self, rest: Parameter) -> Self {
        self.rest = Some(rest);
        self
    }

    const fn gives(mut self, result: Accepts) -> Self {
        self.result = ResultType::Always(result);
        self
    }

    const fn gives_type_of(mut self, result: fn(&Call<'_>) -> Result<Type, Failure>) -> Self {
        self.result = ResultType::Of(result);
        self
    }

    const fn gives_anything(mut self) -> Self {
        self.result = ResultType::OfResult;
        self
    }

    const fn or_null(mut self) -> Self {
        self.never_null = false;
        self
    }

    const fn says(mut self, description: &'static str, call: &'static str, result: &'static str) -> Self {
        self.description = description;
        self.example = (call, result);
        self
    }

    /// What the function gives, if that does not depend on its arguments.
    pub fn result(&self) -> Option<Type> {
        match self.result {
            ResultType::Always(accepts) if accepts != Accepts::Any => Some(accepts.ty()),
            _ => None,
        }
    }

    /// Calls the function.
    pub fn call(&self, arguments: &[Value], scope: &Scope<'_>) -> Result<Value, Failure> {
        call::call(self, arguments, scope)
    }
}
