//! Elements and attributes.

use super::operations::with_marks_of;
use super::{Data, Type, Value};

impl Value {
    /// The attribute of an object. `None` if its type has none of this name.
    pub fn attribute(&self, name: &str) -> Option<Self> {
        let Type::Object(object) = self.ty() else { return None };
        let ty = object.attributes.get(name)?;
        let value = match self.data() {
            Data::Entries(entries) => entries.get(name).cloned().unwrap_or_else(|| Self::null(ty.clone())),
            _ => Self::unknown(ty.clone()),
        };
        Some(value.with_marks(self.marks()))
    }

    /// The element of a list or tuple at a number, or of a map at a string. `None` if there is no such element.
    pub fn index(&self, key: &Self) -> Option<Self> {
        with_marks_of(self, key, element)
    }

    /// Whether [`Self::index`] gives an element, as a bool value that may be unknown.
    #[must_use]
    pub fn has_index(&self, key: &Self) -> Self {
        let has = with_marks_of(self, key, |value, key| {
            let undecided = !key.is_known() || *key.ty() == Type::Dynamic || *value.ty() == Type::Dynamic;
            let decided_by_type = matches!(value.ty(), Type::Tuple(_));
            let wrong = match value.ty() {
                Type::List(_) | Type::Tuple(_) => *key.ty() != Type::Number,
                Type::Map(_) => *key.ty() != Type::String,
                _ => false,
            };
            Some(if *key.ty() != Type::Dynamic && wrong {
                Self::FALSE
            } else if undecided || (!value.is_known() && !decided_by_type) {
                Self::unknown_not_null(Type::Bool)
            } else {
                Self::bool(element(value, key).is_some())
            })
        });
        has.unwrap_or(Self::FALSE)
    }
}

fn element(value: &Value, key: &Value) -> Option<Value> {
    if *value.ty() == Type::Dynamic {
        return Some(Value::DYNAMIC);
    }
    let open_key = !key.is_known() || *key.ty() == Type::Dynamic;
    match value.ty() {
        Type::Tuple(elements) => {
            if open_key {
                return Some(Value::DYNAMIC);
            }
            let index = key.as_number()?.to_usize()?;
            let ty = elements.get(index)?;
            match value.data() {
                Data::Items(items) => items.get(index).cloned(),
                _ => Some(Value::unknown(ty.clone())),
            }
        }
        Type::List(element) | Type::Map(element) if open_key || !value.is_known() => {
            Some(Value::unknown((**element).clone()))
        }
        Type::List(_) => value.as_items()?.get(key.as_number()?.to_usize()?).cloned(),
        Type::Map(_) => value.as_entries()?.get(key.as_str()?).cloned(),
        _ => None,
    }
}
