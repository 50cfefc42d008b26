//! Access to nested blocks and objects, which are held in a list, set or map, or in the tuple or object that replaces a
//! list or map of blocks with dynamic parts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Type, Value, dynamic};

/// The elements of a list, set or tuple, each in the form of the type `element`. Empty for any other value.
pub(super) fn items<'a>(value: &'a Value, element: &Type) -> Cow<'a, [Value]> {
    match value {
        Value::List(items) | Value::Tuple(items) => Cow::Borrowed(items),
        Value::Set(items) => Cow::Borrowed(items),
        Value::Dynamic(typed) => match (&typed.value, &typed.ty) {
            (Value::Tuple(items), Type::Tuple(types)) => {
                Cow::Owned(items.iter().zip(types.iter()).map(|(item, ty)| dynamic::lift(item, ty, element)).collect())
            }
            (Value::List(items), Type::List(ty)) => {
                Cow::Owned(items.iter().map(|item| dynamic::lift(item, ty, element)).collect())
            }
            _ => Cow::Borrowed(&[]),
        },
        _ => Cow::Borrowed(&[]),
    }
}

/// The entries of a map, or of the object that replaces it, each in the form of the type `element`. Empty for any other
/// value.
pub(super) fn entries<'a>(value: &'a Value, element: &Type) -> Cow<'a, BTreeMap<Arc<str>, Value>> {
    match value {
        Value::Map(entries) | Value::Object(entries) => Cow::Borrowed(entries),
        Value::Dynamic(typed) => Cow::Owned(match (&typed.value, &typed.ty) {
            (Value::Object(entries), Type::Object(types)) => {
                let lifted = entries.iter().zip(types.values());
                lifted.map(|((key, item), ty)| (key.clone(), dynamic::lift(item, ty, element))).collect()
            }
            (Value::Map(entries), Type::Map(ty)) => {
                entries.iter().map(|(key, item)| (key.clone(), dynamic::lift(item, ty, element))).collect()
            }
            _ => BTreeMap::new(),
        }),
        _ => Cow::Owned(BTreeMap::new()),
    }
}

/// Builds the value of a list of blocks of the type `element`.
pub(super) fn list(items: Vec<Value>, element: &Type) -> Value {
    if !element.has_dynamic() {
        return Value::List(items.into());
    }
    let lowered = items.iter().map(|item| dynamic::lower(item, element));
    let (types, items): (Vec<_>, Vec<_>) = lowered.map(|typed| (typed.ty, typed.value)).unzip();
    Value::dynamic(Type::Tuple(types.into()), Value::Tuple(items.into()))
}

/// Builds the value of a map of blocks of the type `element`.
pub(super) fn map(entries: BTreeMap<Arc<str>, Value>, element: &Type) -> Value {
    if !element.has_dynamic() {
        return Value::Map(Arc::new(entries));
    }
    let lowered = entries.into_iter().map(|(key, item)| {
        let typed = dynamic::lower(&item, element);
        ((key.clone(), typed.ty), (key, typed.value))
    });
    let (types, entries): (Vec<_>, Vec<_>) = lowered.unzip();
    Value::dynamic(Type::object(types), Value::object(entries))
}
