//! Strategies that generate types and values.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{Number, Type, Value};

fn leaf_type() -> impl Strategy<Value = Type> {
    prop_oneof![Just(Type::String), Just(Type::Number), Just(Type::Bool), Just(Type::Dynamic)]
}

/// A type with up to three levels.
pub(crate) fn any_type() -> impl Strategy<Value = Type> {
    leaf_type().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(Type::list),
            inner.clone().prop_map(Type::map),
            // The elements of a set are compared with each other, so they must have one type.
            inner.clone().prop_filter("dynamic in a set", |element| !element.has_dynamic()).prop_map(Type::set),
            vec(inner.clone(), 0..3).prop_map(Type::tuple),
            btree_map("[a-d]", inner, 0..4).prop_map(Type::object),
        ]
    })
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        (-100_i64..100).prop_map(Number::from),
        any::<f64>()
            .prop_filter_map("a number", Number::from_f64)
            // Larger integers are decoded from their shortest digits.
            .prop_filter("a fraction or an integer of 64 bits", |number| number.to_i64().is_some()
                || number.to_exact_fraction().is_some()),
        "-?[0-9]{1,40}(\\.[0-9]{1,30})?".prop_filter_map("a number", |text| Number::parse(&text)),
    ]
}

/// A value of the given type that may be or contain null and unknown.
pub(crate) fn value_of(ty: Type) -> BoxedStrategy<Value> {
    let known = match &ty {
        Type::String => prop_oneof!["[a-c<é\"\\n]{0,4}", any::<String>()].prop_map(|text| Value::string(&text)).boxed(),
        Type::Number => number().prop_map(Value::number).boxed(),
        Type::Bool => any::<bool>().prop_map(Value::bool).boxed(),
        Type::List(element) | Type::Set(element) => {
            let ty = ty.clone();
            vec(value_of((**element).clone()), 0..4).prop_map(move |items| Value::of_items(&ty, items)).boxed()
        }
        Type::Map(element) => {
            let element = (**element).clone();
            let entries = btree_map("[a-dé]{1,2}", value_of(element.clone()), 0..4);
            entries.prop_map(move |entries| Value::map(element.clone(), entries)).boxed()
        }
        Type::Tuple(elements) => {
            let ty = ty.clone();
            let items: Vec<_> = elements.iter().map(|element| value_of(element.clone())).collect();
            items.prop_map(move |items| Value::of_items(&ty, items)).boxed()
        }
        Type::Object(object) => {
            let ty = ty.clone();
            let names: Vec<Arc<str>> = object.attributes.keys().cloned().collect();
            let items: Vec<_> = object.attributes.values().map(|ty| value_of(ty.clone())).collect();
            items.prop_map(move |items| Value::of_entries(&ty, names.iter().cloned().zip(items).collect())).boxed()
        }
        Type::Dynamic => {
            any_type().prop_filter("its own type", |ty| *ty != Type::Dynamic).prop_flat_map(value_of).boxed()
        }
    };
    prop_oneof![8 => known, 1 => Just(Value::null(ty.clone())), 1 => Just(Value::unknown(ty))].boxed()
}

pub(crate) fn typed_value() -> impl Strategy<Value = (Type, Value)> {
    any_type().prop_flat_map(|ty| value_of(ty.clone()).prop_map(move |value| (ty.clone(), value)))
}
