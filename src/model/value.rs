//! Attribute values, with places that are not known yet and places that must not be shown.

mod map;

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{Number, Path, Segment};

pub use map::Map;

/// A value of an attribute. Cloning is cheap: the large forms are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// Absent, as Terraform's null.
    #[default]
    Null,
    /// Known only after a step has run.
    Unknown,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(Arc<str>),
    /// A list.
    List(Arc<[Value]>),
    /// A map or an object.
    Map(Map),
    /// A value that must never be shown. Never directly inside another `Sensitive`.
    Sensitive(Arc<Value>),
}

/// What a sensitive value is replaced by wherever a person could read it.
pub const SENSITIVE_TEXT: &str = "(sensitive value)";

impl Value {
    /// A map of the given entries.
    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().collect())
    }

    /// A list of the given items.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(items.into_iter().collect())
    }

    /// The value marked sensitive; marking twice changes nothing.
    #[must_use]
    pub fn into_sensitive(self) -> Self {
        match self {
            Self::Sensitive(_) => self,
            other => Self::Sensitive(Arc::new(other)),
        }
    }

    /// The value without the sensitive mark it carries itself; marks inside of it stay.
    pub fn unmarked(&self) -> &Self {
        match self {
            Self::Sensitive(inner) => inner,
            other => other,
        }
    }

    /// Whether the value is, or contains, something not known yet.
    pub fn has_unknown(&self) -> bool {
        self.any(&|value| matches!(value, Self::Unknown))
    }

    /// Whether the value is, or contains, something sensitive.
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

    /// The value without any sensitive mark, for drivers and records only.
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

    /// The value with every unknown place made null, as Terraform saves an object whose driver left places unknown.
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

    /// The attribute `name` of a map; `None` when the value is no map or has no such key.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self.unmarked() {
            Self::Map(map) => map.get(name),
            _ => None,
        }
    }

    /// What stands at a path. Looking into `Unknown` gives `Unknown`, into `Sensitive` a sensitive value; a place that
    /// does not exist gives `None`.
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

    /// The text, when the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self.unmarked() {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The map with one entry set (replacing what stood there). A value that is no map becomes one.
    #[must_use]
    pub fn with(&self, name: impl Into<Arc<str>>, value: Self) -> Self {
        let mut map = match self {
            Self::Map(map) => map.to_tree(),
            _ => <_>::default(),
        };
        map.insert(name.into(), value);
        Self::Map(map.into())
    }

    /// Reads a JSON value. Numbers keep their digits as far as `serde_json` delivers them.
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

    /// The JSON that people and programs outside may see: a sensitive value becomes `{"sensitive":true}`,
    /// and unknown places are left out (a list keeps its length with `null`).
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

    /// The JSON that drivers get: marks are dropped; unknown places become `null`. Numbers beyond 64 bits and double
    /// precision come as text: [`Self::to_json_text`] has their digits.
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

    /// The same as text, in which every number is a number with all its digits.
    pub fn to_json_text(&self) -> String {
        serde_json::to_string(&Unmasked(self)).expect("keys are texts, and nothing is written out")
    }

    /// `true` at each place that is not known yet, in the shape of the value; `None` when all is known.
    /// This is the `afterUnknown` of the plan format.
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

    /// Every path at which the two values differ, as deep as both have the same shape. Marks are ignored.
    pub fn differences(&self, other: &Self) -> Vec<Path> {
        let mut found = Vec::new();
        collect_differences(self, other, &Path::default(), &mut found);
        found
    }

    /// Whether the values are equal when sensitive marks are ignored.
    pub fn same(&self, other: &Self) -> bool {
        match (self.unmarked(), other.unmarked()) {
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same(b)),
            (Self::Map(a), Self::Map(b)) => {
                a.is_same_as(b)
                    || (a.len() == b.len() && a.iter().zip(b.iter()).all(|((ka, a), (kb, b))| ka == kb && a.same(b)))
            }
            (a, b) => a == b,
        }
    }
}

/// Writes a value with what must not be shown.
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

fn collect_differences(a: &Value, b: &Value, at: &Path, found: &mut Vec<Path>) {
    match (a.unmarked(), b.unmarked()) {
        (Value::Map(a), Value::Map(b)) => {
            for (key, item) in a.iter() {
                collect_differences(item, b.get(key).unwrap_or(&Value::Null), &at.name(key.clone()), found);
            }
            for (key, item) in b.iter().filter(|(key, _)| !a.contains_key(key)) {
                collect_differences(&Value::Null, item, &at.name(key.clone()), found);
            }
        }
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                collect_differences(a, b, &at.index(index), found);
            }
        }
        (a, b) if a.same(b) && !matches!(a, Value::Unknown) => {}
        _ => found.push(at.clone()),
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
