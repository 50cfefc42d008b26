//! Plain paths such as `web.tags["a"][0]`, which most expressions are. For speed they are parsed without the CEL
//! parser, and their values are returned unchanged.

use std::sync::Arc;

use super::names::{self, ResolvedPath, Root};
use super::{InstanceSelector, Problem, Scope, Variable};
use crate::load::intern::Interner;
use model::{Address, InstanceKey, Number, Path, Segment, Value};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub root: Root,
    /// The root as written in the expression.
    pub source: Arc<str>,
    /// The instance selector right after the root, such as `[each.key]`. It comes before `segments`.
    pub selector: Option<Box<Access>>,
    pub segments: Arc<[Segment]>,
}

impl Access {
    /// Parses one plain path. `None`: the CEL parser must parse the string.
    pub fn parse(text: &str, interner: &mut Interner) -> Option<Result<Self, Problem>> {
        let text = text.trim_ascii();
        let (name, mut rest) = identifier(text)?;
        let mut segments = Vec::new();
        let mut selector = None;
        while !rest.is_empty() {
            let (segment, after) = match rest.as_bytes()[0] {
                b'.' => identifier(&rest[1..]).map(|(name, after)| (Segment::Name(interner.get(name)), after))?,
                b'[' => match subscript(&rest[1..], interner) {
                    Some(found) => found,
                    None if selector.is_none()
                        && names::is_resource_root(name)
                        && segments.len() == names::root_segments(name) =>
                    {
                        let (inner, after) = rest[1..].split_once(']')?;
                        selector = Some(Self::parse_selector(inner, interner)?);
                        rest = after;
                        continue;
                    }
                    None => return None,
                },
                _ => return None,
            };
            segments.push(segment);
            rest = after;
        }
        Some(Self::named(name, segments, interner).transpose()?.map(|access| access.with_selector(selector)))
    }

    /// Resolves the path `name` + `segments`. `Ok(None)`: it is a literal or a type.
    pub fn named(name: &str, segments: Vec<Segment>, interner: &mut Interner) -> Result<Option<Self>, Problem> {
        let named = names::resolve(name, segments, interner)?;
        Ok(named.map(|ResolvedPath { root, source: shown, segments }| Self {
            root,
            source: shown,
            selector: None,
            segments: segments.into(),
        }))
    }

    /// Parses a selector: `each.key`, or another path of a variable of the instance.
    fn parse_selector(text: &str, interner: &mut Interner) -> Option<Self> {
        let path = Self::parse(text, interner)?.ok()?;
        path.is_instance_variable().then_some(path)
    }

    /// Whether the value depends only on the instance, so that it can select an instance of a family.
    pub fn is_instance_variable(&self) -> bool {
        matches!(self.root, Root::Variable(Variable::Each | Variable::Count)) && self.selector.is_none()
    }

    /// Adds an instance selector. Only for paths of a Resource.
    pub fn with_selector(self, selector: Option<Self>) -> Self {
        Self { selector: selector.map(Box::new), ..self }
    }

    /// Reads the value in a scope, without changes.
    pub fn read(&self, scope: &dyn Scope) -> Result<Value, Problem> {
        let (root, from) = match &self.root {
            Root::Namespace => (scope.namespace(), 0),
            Root::Object(address) => self.object(address, scope)?,
            Root::Variable(variable) => {
                let value = scope.variable(*variable);
                let value =
                    value.ok_or_else(|| Problem::new(format!("`{}` is not available here", variable.as_str())))?;
                (value, 0)
            }
        };
        let mut here = &root;
        let mut sensitive = false;
        for (position, segment) in self.segments.iter().enumerate().skip(from) {
            if let Value::Sensitive(inner) = here {
                sensitive = true;
                here = inner;
            }
            here = match step(here, segment) {
                Step::To(value) => value,
                Step::Unknown => break,
                Step::Nothing => return Err(self.missing(position, here, sensitive)),
            };
        }
        Ok(if sensitive { here.clone().into_sensitive() } else { here.clone() })
    }

    /// Returns the value of a Resource, or of the selected instance, and the number of segments that selected it. The
    /// other instances of the family are not read.
    fn object(&self, address: &Address, scope: &dyn Scope) -> Result<(Value, usize), Problem> {
        let selector = match &self.selector {
            Some(path) => match segment_of(&path.read(scope)?) {
                Ok(segment) => Some(segment),
                Err(None) => return Ok((Value::Unknown, self.segments.len())),
                Err(Some(kind)) => {
                    let what = format!("`{}` is {kind}, which cannot select an instance", path.show_all());
                    return Err(Problem::new(what));
                }
            },
            None => None,
        };
        let first = selector.as_ref().or(self.segments.first());
        if let Some(instance) = first.and_then(|segment| scope.object(&instance_of(address, segment))) {
            return Ok((instance, usize::from(selector.is_none())));
        }
        let whole = scope.object(address);
        let whole =
            whole.ok_or_else(|| Problem::new(format!("there is no {} `{}`", address.kind(), address.object_name())))?;
        let Some(segment) = &selector else { return Ok((whole, 0)) };
        match step(whole.unmarked(), segment) {
            Step::To(value) if matches!(whole, Value::Sensitive(_)) => Ok((value.clone().into_sensitive(), 0)),
            Step::To(value) => Ok((value.clone(), 0)),
            Step::Unknown => Ok((Value::Unknown, 0)),
            Step::Nothing => Err(Problem::new(format!("there is no instance `{}`", instance_of(address, segment)))),
        }
    }

    /// Explains why `parent` has nothing at the segment of that position.
    fn missing(&self, position: usize, parent: &Value, sensitive: bool) -> Problem {
        let before = self.show(position);
        let problem = match (parent, &self.segments[position]) {
            (Value::Map(map), Segment::Name(name)) => {
                let problem = Problem::new(format!("`{before}` has no attribute `{name}`"));
                let keys: Vec<&str> = map.keys().map(AsRef::as_ref).take(20).collect();
                return if sensitive || keys.is_empty() {
                    problem
                } else {
                    problem.hint(format!("available attributes are {}", keys.join(", ")))
                };
            }
            (Value::List(list), Segment::Index(index)) => {
                format!("`{before}` has {} items, so index {index} is out of range", list.len())
            }
            (Value::Null, _) => format!("`{before}` is null, so `{}` does not exist", self.show(position + 1)),
            (other, Segment::Name(name)) => format!("`{before}` is {}, which has no attribute `{name}`", kind(other)),
            (Value::Map(_), Segment::Index(index)) if position == 0 && self.target().is_some() => {
                let hint = "it is a single object, or a family with string keys";
                return Problem::new(format!("`{before}` has no instance {index}")).hint(hint);
            }
            (other, Segment::Index(index)) => format!("`{before}` is {}, which has no item {index}", kind(other)),
        };
        Problem::new(problem)
    }

    /// Formats the path up to a number of segments.
    pub fn show(&self, segments: usize) -> String {
        let path = Path(self.segments[..segments].to_vec()).to_string();
        let selector = self.selector.as_ref().map(|path| format!("[{}]", path.show_all())).unwrap_or_default();
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        format!("{}{selector}{dot}{path}", self.source)
    }

    /// Formats the whole path.
    pub fn show_all(&self) -> String {
        self.show(self.segments.len())
    }

    /// The number of segments after the root, including the selector.
    pub fn depth(&self) -> usize {
        self.segments.len() + usize::from(self.selector.is_some())
    }

    /// Returns the object that the path reads.
    pub fn target(&self) -> Option<&Address> {
        match &self.root {
            Root::Object(address) => Some(address),
            Root::Namespace | Root::Variable(_) => None,
        }
    }

    /// Returns the instance that the path selects if the object is a family.
    pub fn instance_selector(&self) -> Option<InstanceSelector> {
        match (&self.selector, self.segments.first()) {
            (Some(path), _) => Some(InstanceSelector::Variable(path.variable()?, path.segments.clone())),
            (None, first) => first.cloned().map(InstanceSelector::Instance),
        }
    }

    /// Returns the variable that the path reads.
    pub fn variable(&self) -> Option<Variable> {
        match self.root {
            Root::Variable(variable) => Some(variable),
            Root::Object(_) | Root::Namespace => None,
        }
    }
}

/// The result of following a segment from a value.
enum Step<'a> {
    To(&'a Value),
    Unknown,
    Nothing,
}

fn step<'a>(from: &'a Value, segment: &Segment) -> Step<'a> {
    let next = match (from, segment) {
        (Value::Unknown, _) => return Step::Unknown,
        (Value::Map(map), Segment::Name(name)) => map.get(name),
        (Value::List(list), Segment::Index(index)) => list.get(*index),
        _ => None,
    };
    next.map_or(Step::Nothing, Step::To)
}

/// Converts a value to a segment. The error describes the value; it is `None` if the value is not known yet.
fn segment_of(value: &Value) -> Result<Segment, Option<&'static str>> {
    match value.unmarked() {
        Value::String(text) => Ok(Segment::Name(text.clone())),
        Value::Number(Number::Int(index)) => {
            usize::try_from(*index).map(Segment::Index).map_err(|_| Some("a negative number"))
        }
        Value::Unknown => Err(None),
        other => Err(Some(kind(other))),
    }
}

fn instance_of(family: &Address, segment: &Segment) -> Address {
    let key = match segment {
        Segment::Name(key) => InstanceKey::Key(key.clone()),
        Segment::Index(index) => InstanceKey::Index(*index as u64),
    };
    family.stem.clone().instance(key)
}

/// Describes the type of a value.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value.unmarked() {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
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

/// Parses an index or a key without escapes, and `]`.
fn subscript<'a>(text: &'a str, interner: &mut Interner) -> Option<(Segment, &'a str)> {
    let quote = *text.as_bytes().first()?;
    if matches!(quote, b'"' | b'\'') {
        let inner = &text[1..];
        let end = inner.bytes().position(|b| b == quote || b == b'\\')?;
        // An empty string could start a triple-quoted string, and only CEL reads escapes.
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
