//! Plain paths such as `web.tags["a"][0]`: read by hand, without the CEL parser, and passed through untouched.
//!
//! Most expressions are of this kind, so this is the path that must be fast.

use std::sync::Arc;

use super::names::{self, Named, Root};
use super::{Choice, Problem, Scope, Variable};
use crate::load::intern::Interner;
use crate::model::{Address, InstanceKey, Number, Path, Segment, Value};

/// A path that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) root: Root,
    /// The root as it was written.
    pub(super) shown: Arc<str>,
    /// The instance of a family, where the place of the expression tells it: `[each.key]` right after the root. It
    /// comes before `segments`.
    pub(super) chosen: Option<Box<Access>>,
    pub(super) segments: Box<[Segment]>,
}

impl Access {
    /// Reads a text that is one plain path. `None`: it is something else, for the CEL parser to judge.
    pub(super) fn parse(text: &str, interner: &mut Interner) -> Option<Result<Self, Problem>> {
        let text = text.trim_ascii();
        let (name, mut rest) = identifier(text)?;
        let mut segments = Vec::new();
        let mut chosen = None;
        while !rest.is_empty() {
            let (segment, after) = match rest.as_bytes()[0] {
                b'.' => identifier(&rest[1..]).map(|(name, after)| (Segment::Name(interner.get(name)), after))?,
                b'[' => match subscript(&rest[1..], interner) {
                    Some(found) => found,
                    None if chosen.is_none()
                        && names::begins_a_resource(name)
                        && segments.len() == names::length_of_root(name) =>
                    {
                        let (inner, after) = rest[1..].split_once(']')?;
                        chosen = Some(Self::choosing(inner, interner)?);
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
        Some(Self::named(name, segments, interner).transpose()?.map(|access| access.choosing_by(chosen)))
    }

    /// The path `name` + `segments`. `Ok(None)`: it is no object but a literal or a type.
    pub(super) fn named(name: &str, segments: Vec<Segment>, interner: &mut Interner) -> Result<Option<Self>, Problem> {
        let named = names::resolve(name, segments, interner)?;
        Ok(named.map(|Named { root, shown, segments }| Self { root, shown, chosen: None, segments: segments.into() }))
    }

    /// The path `each.key`, or another one of a variable of the instance, that chooses an instance.
    fn choosing(text: &str, interner: &mut Interner) -> Option<Self> {
        let path = Self::parse(text, interner)?.ok()?;
        path.is_of_instance().then_some(path)
    }

    /// Whether the instance alone tells the value, so that an instance of a family can be chosen by it.
    pub(super) fn is_of_instance(&self) -> bool {
        matches!(self.root, Root::Variable(Variable::Each | Variable::Count)) && self.chosen.is_none()
    }

    /// The same of the instance that a path chooses. Only of a Resource.
    pub(super) fn choosing_by(self, chosen: Option<Self>) -> Self {
        Self { chosen: chosen.map(Box::new), ..self }
    }

    /// The value in a scope, untouched.
    pub(super) fn read(&self, scope: &dyn Scope) -> Result<Value, Problem> {
        let (root, from) = match &self.root {
            Root::Namespace => (scope.namespace(), 0),
            Root::Object(address) => self.object(address, scope)?,
            Root::Variable(variable) => {
                let value = scope.variable(*variable);
                let missing = || Problem::new(format!("`{}` has no value here", variable.as_str()));
                (value.ok_or_else(missing)?, 0)
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

    /// The value of a Resource, or of the one instance that the path begins with, and the number of segments that were
    /// used up for that: so the other instances of the family are not asked for.
    fn object(&self, address: &Address, scope: &dyn Scope) -> Result<(Value, usize), Problem> {
        let chosen = match &self.chosen {
            Some(path) => match segment_of(&path.read(scope)?) {
                Ok(segment) => Some(segment),
                Err(None) => return Ok((Value::Unknown, self.segments.len())),
                Err(Some(kind)) => {
                    let what = format!("`{}` is {kind}, which chooses no instance", path.show_all());
                    return Err(Problem::new(what));
                }
            },
            None => None,
        };
        let first = chosen.as_ref().or(self.segments.first());
        if let Some(instance) = first.and_then(|segment| scope.object(&instance_of(address, segment))) {
            return Ok((instance, usize::from(chosen.is_none())));
        }
        let whole = scope.object(address);
        let whole =
            whole.ok_or_else(|| Problem::new(format!("there is no {} `{}`", address.kind(), address.object_name())))?;
        let Some(segment) = &chosen else { return Ok((whole, 0)) };
        match step(whole.unmarked(), segment) {
            Step::To(value) if matches!(whole, Value::Sensitive(_)) => Ok((value.clone().into_sensitive(), 0)),
            Step::To(value) => Ok((value.clone(), 0)),
            Step::Unknown => Ok((Value::Unknown, 0)),
            Step::Nothing => Err(Problem::new(format!("there is no `{}`", instance_of(address, segment)))),
        }
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
            (Value::Map(_), Segment::Index(index)) if position == 0 && self.target().is_some() => {
                let hint = "it is one object, or a family whose keys are texts";
                return Problem::new(format!("`{before}` has no instance {index}")).hint(hint);
            }
            (other, Segment::Index(index)) => format!("`{before}` is {}, which has no item {index}", kind(other)),
        };
        Problem::new(problem)
    }

    /// The path as it was written, up to a number of segments.
    pub(super) fn show(&self, segments: usize) -> String {
        let path = Path(self.segments[..segments].to_vec()).to_string();
        let chosen = self.chosen.as_ref().map(|path| format!("[{}]", path.show_all())).unwrap_or_default();
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        format!("{}{chosen}{dot}{path}", self.shown)
    }

    /// The whole path as it was written.
    pub(super) fn show_all(&self) -> String {
        self.show(self.segments.len())
    }

    /// How many segments follow the root.
    pub(super) fn depth(&self) -> usize {
        self.segments.len() + usize::from(self.chosen.is_some())
    }

    /// The object that is read, if it is one.
    pub(super) fn target(&self) -> Option<&Address> {
        match &self.root {
            Root::Object(address) => Some(address),
            Root::Namespace | Root::Variable(_) => None,
        }
    }

    /// Which instance is read, should the object be a family: the beginning of the path tells it.
    pub(super) fn choice(&self) -> Option<Choice> {
        match (&self.chosen, self.segments.first()) {
            (Some(path), _) => Some(Choice::By(path.variable()?, path.segments.clone())),
            (None, first) => first.cloned().map(Choice::Instance),
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

/// Where a segment leads from a value.
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

/// The segment that a value stands for; otherwise what the value is, or nothing when it is not known yet.
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

/// The address of an instance.
fn instance_of(family: &Address, segment: &Segment) -> Address {
    let key = match segment {
        Segment::Name(key) => InstanceKey::Key(key.clone()),
        Segment::Index(index) => InstanceKey::Index(*index as u64),
    };
    Address { name: family.name.clone(), key }
}

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
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
