//! Attribute values, which can be unknown or sensitive.

mod encoding;
mod map;

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{Number, Path, Segment};

pub use encoding::MAX_DEPTH;
pub use map::Map;

/// A value of an attribute. Clones share strings, lists and maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// Terraform's null.
    #[default]
    Null,
    /// Known only after a step has finished.
    Unknown,
    Bool(bool),
    Number(Number),
    String(Arc<str>),
    List(Arc<[Value]>),
    /// A map or an object.
    Map(Map),
    /// A value that must not be shown. It never directly contains another `Sensitive`.
    Sensitive(Arc<Value>),
}

/// The replacement of a sensitive value in output.
pub const SENSITIVE_TEXT: &str = "(sensitive value)";

impl Value {
    /// Whether a list or map is the same one in memory, so that its items need no comparison. False for other values.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(own), Self::List(other)) => Arc::ptr_eq(own, other),
            (Self::Map(own), Self::Map(other)) => own.is_same(other),
            _ => false,
        }
    }

    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().collect())
    }

    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(items.into_iter().collect())
    }

    /// Marks the value as sensitive.
    #[must_use]
    pub fn into_sensitive(self) -> Self {
        match self {
            Self::Sensitive(_) => self,
            other => Self::Sensitive(Arc::new(other)),
        }
    }

    /// Returns the value without its own sensitive mark. Nested marks remain.
    pub fn unmarked(&self) -> &Self {
        match self {
            Self::Sensitive(inner) => inner,
            other => other,
        }
    }

    /// Whether the value is or contains an unknown value.
    pub fn has_unknown(&self) -> bool {
        self.any(&|value| matches!(value, Self::Unknown))
    }

    /// Whether the value is or contains a sensitive value.
    pub fn has_sensitive(&self) -> bool {
        self.any(&|value| matches!(value, Self::Sensitive(_)))
    }

    fn any(&self, test: &dyn Fn(&Self) -> bool) -> bool {
        test(self)
            || match self {
                Self::List(items) => items.iter().any(|item| item.any(test)),
                Self::Map(map) => map.values().any(|item| item.any(test)),
                Self::Sensitive(inner) => inner.any(test),
                _ => false,
            }
    }

    /// Returns the value without any sensitive mark. Only for drivers and records.
    #[must_use]
    pub fn without_marks(&self) -> Self {
        if !self.has_sensitive() {
            return self.clone();
        }
        match self {
            Self::Sensitive(inner) => inner.without_marks(),
            Self::List(items) => Self::List(items.iter().map(Self::without_marks).collect()),
            Self::Map(map) => Self::map(map.iter().map(|(key, item)| (key.clone(), item.without_marks()))),
            other => other.clone(),
        }
    }

    /// Replaces unknown values by null, as Terraform does when a provider returns unknown values after an apply.
    #[must_use]
    pub fn unknown_as_null(self) -> Self {
        if !self.has_unknown() {
            return self;
        }
        match self {
            Self::Unknown => Self::Null,
            Self::List(items) => Self::List(items.iter().cloned().map(Self::unknown_as_null).collect()),
            Self::Map(map) => Self::map(map.iter().map(|(key, item)| (key.clone(), item.clone().unknown_as_null()))),
            Self::Sensitive(inner) => inner.as_ref().clone().unknown_as_null().into_sensitive(),
            other => other,
        }
    }

    /// Returns the value of a key; `None` if the value is not a map or has no such key.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self.unmarked() {
            Self::Map(map) => map.get(name),
            _ => None,
        }
    }

    /// The value with null in place of what is at these paths.
    #[must_use]
    pub fn without(&self, paths: &[Path]) -> Self {
        paths.iter().fold(self.clone(), |value, path| without(&value, &path.0))
    }

    /// Returns the value at a path, or `None` if the path does not exist. A value inside of `Unknown` is `Unknown`, and
    /// a value inside of `Sensitive` is sensitive.
    pub fn at(&self, path: &Path) -> Option<Self> {
        let mut here = self.clone();
        let mut sensitive = false;
        for segment in &path.0 {
            while let Self::Sensitive(inner) = here {
                sensitive = true;
                here = inner.as_ref().clone();
            }
            here = match (&here, segment) {
                (Self::Unknown, _) => Self::Unknown,
                (Self::Map(map), Segment::Name(name)) => map.get(name.as_ref())?.clone(),
                (Self::List(list), Segment::Index(index)) => list.get(*index)?.clone(),
                _ => return None,
            };
        }
        Some(if sensitive { here.into_sensitive() } else { here })
    }

    /// Returns the string, also of a sensitive value.
    pub fn as_str(&self) -> Option<&str> {
        match self.unmarked() {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the map with one entry set. A value that is not a map becomes one.
    #[must_use]
    pub fn with(&self, name: impl Into<Arc<str>>, value: Self) -> Self {
        let mut map = match self {
            Self::Map(map) => map.to_tree(),
            _ => <_>::default(),
        };
        map.insert(name.into(), value);
        Self::Map(map.into())
    }

    /// Converts a JSON value. Numbers keep their digits as far as `serde_json` does.
    pub fn from_json(json: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(bool) => Self::Bool(bool),
            Json::Number(number) => Number::parse(&number.to_string()).map_or(Self::Null, Self::Number),
            Json::String(text) => Self::String(text.into()),
            Json::Array(items) => Self::List(items.into_iter().map(Self::from_json).collect()),
            Json::Object(map) => Self::map(map.into_iter().map(|(key, item)| (key, Self::from_json(item)))),
        }
    }

    /// Returns JSON for users and other programs: a sensitive value becomes `{"sensitive":true}`, and unknown values
    /// are omitted from maps and null in lists.
    pub fn to_public_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Sensitive(_) => serde_json::json!({"sensitive": true}),
            Self::List(items) => Json::Array(items.iter().map(Self::to_public_json).collect()),
            Self::Map(map) => Json::Object(
                map.iter()
                    .filter(|(_, item)| !matches!(item.unmarked(), Self::Unknown))
                    .map(|(key, item)| (key.to_string(), item.to_public_json()))
                    .collect(),
            ),
            other => other.to_json(),
        }
    }

    /// Returns JSON for drivers, without marks and with null for unknown values. Numbers that exceed 64 bits or double
    /// precision become strings; [`Self::to_json_text`] keeps them as numbers.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Null | Self::Unknown => Json::Null,
            Self::Bool(bool) => Json::Bool(*bool),
            Self::Number(number) => number.to_json(),
            Self::String(text) => Json::String(text.to_string()),
            Self::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Self::Map(map) => Json::Object(map.iter().map(|(key, item)| (key.to_string(), item.to_json())).collect()),
            Self::Sensitive(inner) => inner.to_json(),
        }
    }

    /// Returns JSON text for drivers, in which all numbers have all their digits.
    pub fn to_json_text(&self) -> String {
        serde_json::to_string(&Unmasked(self)).expect("keys are strings, and a string writer does not fail")
    }

    /// Returns the `afterUnknown` of the plan format: `true` for each unknown value, in the structure of the value.
    /// `None` if all values are known.
    pub fn unknown_json(&self) -> Option<serde_json::Value> {
        use serde_json::Value as Json;
        match self {
            Self::Unknown => Some(Json::Bool(true)),
            Self::Sensitive(inner) => inner.unknown_json(),
            Self::List(items) => {
                let marks: Vec<_> = items.iter().map(Self::unknown_json).collect();
                let any = marks.iter().any(Option::is_some);
                any.then(|| Json::Array(marks.into_iter().map(|mark| mark.unwrap_or(Json::Bool(false))).collect()))
            }
            Self::Map(map) => {
                let marks: serde_json::Map<_, _> = map
                    .iter()
                    .filter_map(|(key, item)| item.unknown_json().map(|mark| (key.to_string(), mark)))
                    .collect();
                (!marks.is_empty()).then_some(Json::Object(marks))
            }
            _ => None,
        }
    }

    /// Returns the deepest paths at which the values differ, ignoring marks. They can have keys of sensitive values: text
    /// for users is made of [`super::visible::differences`].
    pub fn differences(&self, other: &Self) -> Vec<Path> {
        let mut paths = Vec::new();
        collect_differences(self, other, &Path::default(), &mut paths);
        paths
    }

    /// Whether the values are equal, ignoring sensitive marks.
    pub fn equals_unmarked(&self, other: &Self) -> bool {
        match (self.unmarked(), other.unmarked()) {
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals_unmarked(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                a.ptr_eq(b)
                    || (a.len() == b.len()
                        && a.iter().zip(b.iter()).all(|((ka, a), (kb, b))| ka == kb && a.equals_unmarked(b)))
            }
            (a, b) => a == b,
        }
    }
}

/// Serializes a value including its sensitive values.
struct Unmasked<'a>(&'a Value);

impl Serialize for Unmasked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null | Value::Unknown => serializer.serialize_unit(),
            Value::Bool(bool) => serializer.serialize_bool(*bool),
            Value::Number(number) => number.serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) => serializer.collect_seq(items.iter().map(Unmasked)),
            Value::Map(map) => serializer.collect_map(map.iter().map(|(key, item)| (key, Unmasked(item)))),
            Value::Sensitive(inner) => Unmasked(inner).serialize(serializer),
        }
    }
}

fn collect_differences(a: &Value, b: &Value, at: &Path, paths: &mut Vec<Path>) {
    match (a.unmarked(), b.unmarked()) {
        (Value::Map(a), Value::Map(b)) => {
            for (key, item) in a.iter() {
                collect_differences(item, b.get(key).unwrap_or(&Value::Null), &at.name(key.clone()), paths);
            }
            for (key, item) in b.iter().filter(|(key, _)| !a.contains_key(key)) {
                collect_differences(&Value::Null, item, &at.name(key.clone()), paths);
            }
        }
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                collect_differences(a, b, &at.index(index), paths);
            }
        }
        (a, b) if a.equals_unmarked(b) && !matches!(a, Value::Unknown) => {}
        _ => paths.push(at.clone()),
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Number(Number::Int(int))
    }
}

/// A value with null in place of what is at a path.
fn without(value: &Value, path: &[Segment]) -> Value {
    match (value, path) {
        (_, []) => Value::Null,
        (Value::Sensitive(inner), _) => without(inner, path).into_sensitive(),
        (Value::Map(entries), [Segment::Name(name), rest @ ..]) => {
            let entries = entries
                .iter()
                .map(|(key, item)| (Arc::clone(key), if key == name { without(item, rest) } else { item.clone() }));
            Value::map(entries)
        }
        (Value::List(items), [Segment::Index(index), rest @ ..]) => {
            let items = items.iter().enumerate();
            Value::list(items.map(|(at, item)| if at == *index { without(item, rest) } else { item.clone() }))
        }
        _ => value.clone(),
    }
}
