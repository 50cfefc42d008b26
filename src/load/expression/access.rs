//! Plain paths such as `web.tags["a"][0]`: read by hand, without the CEL parser, and passed through untouched.
//!
//! Most expressions are of this kind, so this is the path that must be fast.

use std::sync::Arc;

use super::{Problem, Scope, Variable, names};
use crate::load::intern::Interner;
use crate::model::{Address, Path, Segment, Value};

/// Where a path begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// An object.
    Object(Address),
    /// `ns`.
    Namespace,
    /// A variable of the place where the expression stands.
    Variable(Variable),
}

/// A path that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) root: Root,
    /// The root as it was written.
    pub(super) shown: Arc<str>,
    pub(super) segments: Box<[Segment]>,
}

impl Access {
    /// Reads a text that is one plain path. `None`: it is something else, for the CEL parser to judge.
    pub(super) fn parse(text: &str, interner: &mut Interner) -> Option<Result<Self, Problem>> {
        let text = text.trim_ascii();
        let (name, mut rest) = identifier(text)?;
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let (segment, after) = match rest.as_bytes()[0] {
                b'.' => identifier(&rest[1..]).map(|(name, after)| (Segment::Name(interner.get(name)), after))?,
                b'[' => subscript(&rest[1..], interner)?,
                _ => return None,
            };
            segments.push(segment);
            rest = after;
        }
        names::resolve(name, segments, interner).transpose()
    }

    /// The value in a scope, untouched.
    pub(super) fn read(&self, scope: &dyn Scope) -> Result<Value, Problem> {
        let root = match &self.root {
            Root::Namespace => scope.namespace(),
            Root::Object(address) => {
                scope.object(address).ok_or_else(|| Problem::new(format!("there is no Resource `{address}`")))?
            }
            Root::Variable(variable) => scope
                .variable(*variable)
                .ok_or_else(|| Problem::new(format!("`{}` has no value here", variable.as_str())))?,
        };
        let mut here = &root;
        let mut sensitive = false;
        for (position, segment) in self.segments.iter().enumerate() {
            if let Value::Sensitive(inner) = here {
                sensitive = true;
                here = inner;
            }
            here = match (here, segment) {
                (Value::Unknown, _) => break,
                (Value::Map(map), Segment::Name(name)) => map.get(name),
                (Value::List(list), Segment::Index(index)) => list.get(*index),
                _ => None,
            }
            .ok_or_else(|| self.missing(position, here, sensitive))?;
        }
        Ok(if sensitive { here.clone().into_sensitive() } else { here.clone() })
    }

    /// Why there is nothing at the segment of that position of `parent`.
    fn missing(&self, position: usize, parent: &Value, sensitive: bool) -> Problem {
        let before = self.show(position);
        let problem = match (parent, &self.segments[position]) {
            (Value::Map(map), Segment::Name(name)) => {
                let problem = Problem::new(format!("`{before}` has no attribute `{name}`"));
                let keys: Vec<&str> = map.keys().map(AsRef::as_ref).take(20).collect();
                return if sensitive || keys.is_empty() {
                    problem
                } else {
                    problem.hint(format!("it has {}", keys.join(", ")))
                };
            }
            (Value::List(list), Segment::Index(index)) => {
                format!("`{before}` has {} items, and no item {index}", list.len())
            }
            (Value::Null, _) => format!("`{before}` is null, so `{}` does not exist", self.show(position + 1)),
            (other, Segment::Name(name)) => format!("`{before}` is {}, which has no attribute `{name}`", kind(other)),
            (other, Segment::Index(index)) => format!("`{before}` is {}, which has no item {index}", kind(other)),
        };
        Problem::new(problem)
    }

    /// The path as it was written, up to a number of segments.
    pub(super) fn show(&self, segments: usize) -> String {
        let path = Path(self.segments[..segments].to_vec()).to_string();
        if path.is_empty() || path.starts_with('[') {
            format!("{}{path}", self.shown)
        } else {
            format!("{}.{path}", self.shown)
        }
    }

    /// The whole path as it was written.
    pub(super) fn show_all(&self) -> String {
        self.show(self.segments.len())
    }

    /// The object that is read, if it is one.
    pub(super) fn target(&self) -> Option<&Address> {
        match &self.root {
            Root::Object(address) => Some(address),
            Root::Namespace | Root::Variable(_) => None,
        }
    }

    /// The variable that is read, if it is one.
    pub(super) fn variable(&self) -> Option<Variable> {
        match self.root {
            Root::Variable(variable) => Some(variable),
            Root::Object(_) | Root::Namespace => None,
        }
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value.unmarked() {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        Value::Unknown | Value::Sensitive(_) => "not known yet",
    }
}

fn identifier(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') {
        return None;
    }
    let end = bytes.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(bytes.len());
    Some(text.split_at(end))
}

/// What follows `[`: a position or a key without escapes, and `]`.
fn subscript<'a>(text: &'a str, interner: &mut Interner) -> Option<(Segment, &'a str)> {
    let quote = *text.as_bytes().first()?;
    if matches!(quote, b'"' | b'\'') {
        let inner = &text[1..];
        let end = inner.bytes().position(|b| b == quote || b == b'\\')?;
        // An empty string could begin a triple-quoted one; escapes are CEL's to read.
        if inner.as_bytes()[end] == b'\\' || end == 0 {
            return None;
        }
        let rest = inner[end + 1..].strip_prefix(']')?;
        return Some((Segment::Name(interner.get(&inner[..end])), rest));
    }
    let end = text.bytes().position(|b| !b.is_ascii_digit())?;
    let rest = text[end..].strip_prefix(']')?;
    Some((Segment::Index(text[..end].parse().ok()?), rest))
}
