//! Strategies that generate types and values.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{Decimal, Type, Value};

fn leaf_type() -> impl Strategy<Value = Type> {
    prop_oneof![Just(Type::String), Just(Type::Number), Just(Type::Bool), Just(Type::Dynamic)]
}

/// A type with up to three levels.
pub(super) fn any_type() -> impl Strategy<Value = Type> {
    leaf_type().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|element| Type::List(Arc::new(element))),
            inner.clone().prop_map(|element| Type::Map(Arc::new(element))),
            // The elements of a set are compared with each other, so they must have one type.
            inner
                .clone()
                .prop_filter("dynamic in a set", |element| !element.has_dynamic())
                .prop_map(|element| { Type::Set(Arc::new(element)) }),
            vec(inner.clone(), 0..3).prop_map(|elements| Type::Tuple(elements.into())),
            btree_map("[a-d]", inner, 0..4).prop_map(Type::object),
        ]
    })
}

fn number() -> impl Strategy<Value = Decimal> {
    prop_oneof![
        any::<i64>().prop_map(Decimal::Int),
        (-100_i64..100).prop_map(Decimal::Int),
        any::<f64>().prop_filter_map("finite", Decimal::from_f64),
        "-?[0-9]{1,40}(\\.[0-9]{1,30})?".prop_filter_map("a number", |text| Decimal::parse(&text)),
    ]
}

/// A value of the given type that may be or contain null and unknown.
pub(super) fn value_of(ty: Type) -> BoxedStrategy<Value> {
    let known = match ty {
        Type::String => prop_oneof!["[a-c<é\"\\n]{0,4}", any::<String>()].prop_map(|text| Value::string(&text)).boxed(),
        Type::Number => number().prop_map(Value::Number).boxed(),
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::List(element) => vec(value_of((*element).clone()), 0..4).prop_map(Value::list).boxed(),
        Type::Set(element) => vec(value_of((*element).clone()), 0..4).prop_map(Value::set).boxed(),
        Type::Map(element) => btree_map("[a-dé]{1,2}", value_of((*element).clone()), 0..4).prop_map(Value::map).boxed(),
        Type::Tuple(elements) => elements
            .iter()
            .map(|element| value_of(element.clone()))
            .collect::<Vec<_>>()
            .prop_map(|items| Value::Tuple(items.into()))
            .boxed(),
        Type::Object(attributes) => {
            let names: Vec<Arc<str>> = attributes.keys().cloned().collect();
            let items: Vec<_> = attributes.values().map(|ty| value_of(ty.clone())).collect();
            items.prop_map(move |items| Value::object(names.iter().cloned().zip(items))).boxed()
        }
        Type::Dynamic => any_type()
            .prop_filter("its own type", |ty| *ty != Type::Dynamic)
            .prop_flat_map(|ty| value_of(ty.clone()).prop_map(move |value| Value::dynamic(ty.clone(), value)))
            .boxed(),
    };
    prop_oneof![8 => known, 1 => Just(Value::Null), 1 => Just(Value::UNKNOWN)].boxed()
}

pub(super) fn typed_value() -> impl Strategy<Value = (Type, Value)> {
    any_type().prop_flat_map(|ty| value_of(ty.clone()).prop_map(move |value| (ty.clone(), value)))
}
