//! The blocks and objects inside of a value, whether they stand in a list, a set, a map, or in the tuple or object that a
//! list or a map of blocks becomes when their types may differ.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Type, Value, dynamic};

/// The elements of a list, a set or a tuple, each seen as of the type `element`; none of any other value.
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

/// The entries of a map or of the object in its place, each seen as of the type `element`; none of any other value.
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

/// A list of blocks of the type `element`.
pub(super) fn list(items: Vec<Value>, element: &Type) -> Value {
    if !element.has_dynamic() {
        return Value::List(items.into());
    }
    let lowered = items.iter().map(|item| dynamic::lower(item, element));
    let (types, items): (Vec<_>, Vec<_>) = lowered.map(|typed| (typed.ty, typed.value)).unzip();
    Value::dynamic(Type::Tuple(types.into()), Value::Tuple(items.into()))
}

/// A map of blocks of the type `element`.
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
