//! Values at dynamic positions, whose type the schema does not declare.
//!
//! Such a value carries its type: `{"a": "x"}` as an object with `a: string`. Under its own concrete type its parts are
//! plain; under a declared type that makes a part dynamic, that part carries its own type. [`lift`] and [`lower`]
//! convert between the two forms.

use std::sync::Arc;

use super::value::map_values;
use super::{Type, TypedValue, Value};

/// Converts a value of the type `concrete` to the form of `declared`: where that is dynamic, parts carry their types.
pub(super) fn lift(value: &Value, concrete: &Type, declared: &Type) -> Value {
    if *declared == Type::Dynamic {
        return match value {
            // A null or unknown value without a type.
            _ if *concrete == Type::Dynamic => value.clone(),
            _ => Value::dynamic(concrete.clone(), value.clone()),
        };
    }
    if !declared.has_dynamic() {
        return value.clone();
    }
    match (value, concrete, declared) {
        (Value::List(items), Type::List(concrete), Type::List(declared)) => {
            Value::list(items.iter().map(|item| lift(item, concrete, declared)))
        }
        (Value::Set(items), Type::Set(concrete), Type::Set(declared)) => {
            Value::set(items.iter().map(|item| lift(item, concrete, declared)))
        }
        (Value::Tuple(items), Type::Tuple(concrete), Type::Tuple(declared)) => {
            let types = concrete.iter().zip(declared.iter());
            Value::Tuple(
                items.iter().zip(types).map(|(item, (concrete, declared))| lift(item, concrete, declared)).collect(),
            )
        }
        (Value::Map(entries), Type::Map(concrete), Type::Map(declared)) => {
            Value::Map(map_values(entries, |item| lift(item, concrete, declared)))
        }
        (Value::Object(entries), Type::Object(concrete), Type::Object(declared)) => {
            Value::object(entries.iter().map(|(name, item)| {
                let types = concrete.get(name).zip(declared.get(name));
                (
                    name.clone(),
                    types.map_or_else(|| item.clone(), |(concrete, declared)| lift(item, concrete, declared)),
                )
            }))
        }
        _ => value.clone(),
    }
}

/// Converts a value in the form of `declared` to its concrete type, in which its parts are plain.
pub(super) fn lower(value: &Value, declared: &Type) -> TypedValue {
    let unchanged = || TypedValue { ty: declared.clone(), value: value.clone() };
    if !declared.has_dynamic() {
        return unchanged();
    }
    match (value, declared) {
        (Value::Dynamic(typed), Type::Dynamic) => typed.as_ref().clone(),
        (Value::List(items), Type::List(element)) => {
            let (element, items) = lower_alike(&items.iter().collect::<Vec<_>>(), element);
            TypedValue { ty: Type::List(element), value: Value::list(items) }
        }
        (Value::Set(items), Type::Set(element)) => {
            let (element, items) = lower_alike(&items.iter().collect::<Vec<_>>(), element);
            TypedValue { ty: Type::Set(element), value: Value::set(items) }
        }
        (Value::Map(entries), Type::Map(element)) => {
            let (element, items) = lower_alike(&entries.values().collect::<Vec<_>>(), element);
            let entries = entries.keys().cloned().zip(items).collect();
            TypedValue { ty: Type::Map(element), value: Value::Map(Arc::new(entries)) }
        }
        (Value::Tuple(items), Type::Tuple(elements)) => {
            let lowered = items.iter().zip(elements.iter()).map(|(item, ty)| lower(item, ty));
            let (types, items): (Vec<_>, Vec<_>) = lowered.map(|typed| (typed.ty, typed.value)).unzip();
            TypedValue { ty: Type::Tuple(types.into()), value: Value::Tuple(items.into()) }
        }
        (Value::Object(entries), Type::Object(attributes)) => {
            let lowered = entries.iter().map(|(name, item)| {
                let typed = attributes.get(name).map_or_else(unchanged, |ty| lower(item, ty));
                ((name.clone(), typed.ty), (name.clone(), typed.value))
            });
            let (types, entries): (Vec<_>, Vec<_>) = lowered.unzip();
            TypedValue { ty: Type::object(types), value: Value::object(entries) }
        }
        _ => unchanged(),
    }
}

/// The elements of a collection, which must have one type: elements whose types differ keep carrying them.
fn lower_alike(items: &[&Value], declared: &Arc<Type>) -> (Arc<Type>, Vec<Value>) {
    let lowered: Vec<TypedValue> = items.iter().map(|item| lower(item, declared)).collect();
    match lowered.first() {
        Some(first) if lowered.iter().all(|typed| typed.ty == first.ty) => {
            (Arc::new(first.ty.clone()), lowered.into_iter().map(|typed| typed.value).collect())
        }
        _ => (declared.clone(), items.iter().map(|item| (*item).clone()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cty::tests::typed_value;

    proptest! {
        #[test]
        fn lowered_values_are_lifted_back((ty, value) in typed_value()) {
            let typed = lower(&value, &ty);
            prop_assert_eq!(lift(&typed.value, &typed.ty, &ty), value);
        }
    }
}
