//! Values of cty types.
mod set;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Decimal, Type, strings};

pub use set::Set;

/// A value. Cloning is cheap: everything large is shared.
///
/// A value has the shape of its type and does not repeat it. Null and unknown can have any type; at a dynamic position
/// [`Value::Dynamic`] holds the type, and a null or unknown value without it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    #[default]
    Null,
    /// Known only after the apply.
    Unknown(Refinement),
    Bool(bool),
    Number(Decimal),
    /// A string in Unicode normalization form C; created with [`Value::string`].
    String(Arc<str>),
    List(Arc<[Value]>),
    Set(Set),
    Tuple(Arc<[Value]>),
    /// A map whose keys are in Unicode normalization form C.
    Map(Arc<BTreeMap<Arc<str>, Value>>),
    /// An object with every attribute of its type.
    Object(Arc<BTreeMap<Arc<str>, Value>>),
    /// A value at a dynamic position with its type, which is never `dynamic` itself.
    Dynamic(Arc<TypedValue>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedValue {
    pub ty: Type,
    pub value: Value,
}

/// What a provider promises about an unknown value. It is not part of the value: two unknown values are equal whatever
/// their refinements.
#[derive(Clone, Debug, Default)]
pub struct Refinement(Option<Arc<Bounds>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub not_null: bool,
    /// A string begins with this.
    pub prefix: Option<Arc<str>>,
    /// The lower bound of a number, and whether it is inclusive.
    pub lower: Option<(Decimal, bool)>,
    /// The upper bound of a number, and whether it is inclusive.
    pub upper: Option<(Decimal, bool)>,
    /// The minimum number of elements of a collection.
    pub min_length: Option<u64>,
    /// The maximum number of elements of a collection.
    pub max_length: Option<u64>,
}

impl PartialEq for Refinement {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Refinement {}

impl Refinement {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self((bounds != Bounds::default()).then(|| Arc::new(bounds)))
    }

    /// Whether the unknown value may turn out to be `value`. Unknown values are always admitted.
    pub fn admits(&self, value: &Value) -> bool {
        let Some(bounds) = &self.0 else { return true };
        let length = |length: usize| {
            let length = length as u64;
            bounds.min_length.is_none_or(|least| least <= length) && bounds.max_length.is_none_or(|most| length <= most)
        };
        match value {
            Value::Null => !bounds.not_null,
            Value::String(text) => bounds.prefix.as_ref().is_none_or(|prefix| text.starts_with(&**prefix)),
            Value::Number(number) => {
                let above = |(least, or_equal): &(Decimal, bool)| least < number || (*or_equal && least == number);
                let below = |(most, or_equal): &(Decimal, bool)| number < most || (*or_equal && most == number);
                bounds.lower.as_ref().is_none_or(above) && bounds.upper.as_ref().is_none_or(below)
            }
            Value::List(items) => length(items.len()),
            Value::Set(items) => length(items.len()),
            Value::Map(entries) => length(entries.len()),
            _ => true,
        }
    }
}

impl Value {
    /// An unknown value without a refinement.
    pub const UNKNOWN: Self = Self::Unknown(Refinement(None));

    pub fn string(text: &str) -> Self {
        Self::String(strings::to_nfc(text))
    }

    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(items.into_iter().collect())
    }

    pub fn set(items: impl IntoIterator<Item = Self>) -> Self {
        Self::Set(Set::new(items.into_iter().collect()))
    }

    pub fn map<K: AsRef<str>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries = entries.into_iter().map(|(key, item)| (strings::to_nfc(key.as_ref()), item));
        Self::Map(Arc::new(entries.collect()))
    }

    pub fn object<K: Into<Arc<str>>>(attributes: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Object(Arc::new(attributes.into_iter().map(|(name, item)| (name.into(), item)).collect()))
    }

    /// A value for a dynamic position. If `ty` is `dynamic`, the value already carries its type or has none.
    pub fn dynamic(ty: Type, value: Self) -> Self {
        if ty == Type::Dynamic { value } else { Self::Dynamic(Arc::new(TypedValue { ty, value })) }
    }

    /// The value without the type that it carries at a dynamic position.
    pub fn bare(&self) -> &Self {
        match self {
            Self::Dynamic(typed) => &typed.value,
            other => other,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.bare(), Self::Null)
    }

    /// Whether the value itself is unknown. See [`Self::has_unknown`] for its parts.
    pub fn is_unknown(&self) -> bool {
        matches!(self.bare(), Self::Unknown(_))
    }

    /// Whether the value is or contains an unknown value.
    pub fn has_unknown(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => false,
            Self::List(items) | Self::Tuple(items) => items.iter().any(Self::has_unknown),
            Self::Set(items) => items.iter().any(Self::has_unknown),
            Self::Map(entries) | Self::Object(entries) => entries.values().any(Self::has_unknown),
            Self::Dynamic(typed) => typed.value.has_unknown(),
        }
    }

    /// Replaces every unknown part with null. This is how a result is recorded when its provider left parts unknown.
    #[must_use]
    pub fn unknown_as_null(&self) -> Self {
        if !self.has_unknown() {
            return self.clone();
        }
        match self {
            Self::Unknown(_) => Self::Null,
            Self::List(items) => Self::list(items.iter().map(Self::unknown_as_null)),
            Self::Tuple(items) => Self::Tuple(items.iter().map(Self::unknown_as_null).collect()),
            Self::Set(items) => Self::set(items.iter().map(Self::unknown_as_null)),
            Self::Map(entries) => Self::Map(map_values(entries, Self::unknown_as_null)),
            Self::Object(entries) => Self::Object(map_values(entries, Self::unknown_as_null)),
            Self::Dynamic(typed) => Self::dynamic(typed.ty.clone(), typed.value.unknown_as_null()),
            other => other.clone(),
        }
    }

    /// The attribute of an object, or the element of a map.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self.bare() {
            Self::Object(entries) | Self::Map(entries) => entries.get(name),
            _ => None,
        }
    }

    /// The attribute of an object, or the element of a map. Unknown if the whole value is unknown, null if there is
    /// none.
    pub(super) fn child(&self, name: &str) -> &Self {
        match self.bare() {
            Self::Unknown(_) => &Self::UNKNOWN,
            _ => self.get(name).unwrap_or(&Self::Null),
        }
    }

    /// The kind of the value for messages, which must not reveal the value itself.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Unknown(_) => "unknown",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Set(_) => "a set",
            Self::Tuple(_) => "a tuple",
            Self::Map(_) => "a map",
            Self::Object(_) => "an object",
            Self::Dynamic(_) => "a value with its own type",
        }
    }
}

/// Applies `change` to each value.
pub(super) fn map_values(
    entries: &BTreeMap<Arc<str>, Value>,
    change: impl Fn(&Value) -> Value,
) -> Arc<BTreeMap<Arc<str>, Value>> {
    Arc::new(entries.iter().map(|(name, item)| (name.clone(), change(item))).collect())
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Number(Decimal::Int(int))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refinements_bound_what_an_unknown_value_may_become() {
        let refined = Refinement::new(Bounds {
            not_null: true,
            prefix: Some("ab-".into()),
            lower: Some((Decimal::Int(1), false)),
            upper: Some((Decimal::Int(9), true)),
            min_length: Some(1),
            max_length: Some(2),
        });
        assert!(!refined.admits(&Value::Null));
        assert!(refined.admits(&"ab-1".into()) && !refined.admits(&"ac".into()));
        assert!(refined.admits(&9.into()) && !refined.admits(&1.into()) && !refined.admits(&10.into()));
        let list = |length: i64| Value::list((0..length).map(Value::from));
        assert!(refined.admits(&list(2)) && !refined.admits(&list(0)) && !refined.admits(&list(3)));
        assert!(refined.admits(&Value::UNKNOWN) && refined.admits(&true.into()));
        assert!(Refinement::default().admits(&Value::Null));
    }

    #[test]
    fn unknown_parts_become_null_and_equal_set_elements_merge() {
        let value = Value::object([("a", Value::set([Value::UNKNOWN, Value::UNKNOWN])), ("b", 1.into())]);
        assert!(value.has_unknown());
        let known = value.unknown_as_null();
        assert_eq!(known, Value::object([("a", Value::set([Value::Null])), ("b", 1.into())]));
    }
}
