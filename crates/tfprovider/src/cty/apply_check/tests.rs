//! Tests of each rule, and properties of all values.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cty::Refinement;
use crate::cty::schema::Attribute;
use crate::cty::schema::tests::{block, computed, nested, optional};
use crate::cty::tests::typed_value;
use crate::cty::value::Bounds;

fn errors(planned: &Value, actual: &Value, ty: Type) -> Vec<String> {
    let outer = block([("a", optional(ty))], []);
    let of = |value: &Value| Value::object([("a", value.clone())]);
    result_errors(&outer, &of(planned), &of(actual)).iter().map(ToString::to_string).collect()
}

fn strings(items: &[&str]) -> Vec<Value> {
    items.iter().map(|item| Value::from(*item)).collect()
}

#[test]
fn known_values_stay_and_unknown_values_may_become_anything() {
    let list = || Type::List(Type::String.into());
    let not_null = Value::Unknown(Refinement::new(Bounds { not_null: true, ..Bounds::default() }));
    for (planned, actual, ty, expected) in [
        ("x".into(), "x".into(), Type::String, ""),
        ("x".into(), "y".into(), Type::String, "a: does not match the planned value"),
        ("x".into(), Value::Null, Type::String, "a: was planned, but is null"),
        (Value::Null, "x".into(), Type::String, "a: was planned to be null, but is not"),
        ("x".into(), Value::UNKNOWN, Type::String, "a: was known, but is now unknown"),
        (Value::UNKNOWN, "x".into(), Type::String, ""),
        (Value::UNKNOWN, Value::Null, Type::String, ""),
        (Value::UNKNOWN, Value::UNKNOWN, Type::String, ""),
        (not_null.clone(), "x".into(), Type::String, ""),
        (not_null, Value::Null, Type::String, "a: does not match the refinement of the planned unknown value"),
        (Value::list(strings(&["x"])), Value::list(strings(&["x"])), list(), ""),
        (
            Value::list(strings(&["x", "y"])),
            Value::list(strings(&["x", "z"])),
            list(),
            "a[1]: does not match the planned value",
        ),
        (Value::list(strings(&["x"])), Value::list([]), list(), "a: 1 elements were planned, but the result has 0"),
        (Value::list([Value::UNKNOWN]), Value::list(strings(&["x"])), list(), ""),
    ] {
        assert_eq!(errors(&planned, &actual, ty).join("; "), expected, "{planned:?} {actual:?}");
    }
}

#[test]
fn map_keys_must_not_change() {
    let ty = Type::Map(Type::String.into());
    let (planned, actual) = (Value::map([("k", "x".into())]), Value::map([("l", "x".into())]));
    assert_eq!(errors(&planned, &actual, ty), ["a: the key `l` has appeared", "a: the key `k` has vanished"]);
}

#[test]
fn sets_may_shrink_where_they_were_unknown_and_never_grow() {
    let ty = || Type::Set(Type::String.into());
    let set = |items: Vec<Value>| Value::set(items);
    let planned = set(vec!["x".into(), Value::UNKNOWN, Value::UNKNOWN]);
    for actual in [strings(&["x", "y", "z"]), strings(&["x", "y"]), strings(&["x"])] {
        assert_eq!(errors(&planned, &set(actual), ty()), [""; 0]);
    }
    let grown = errors(&planned, &set(strings(&["x", "y", "z", "q"])), ty());
    assert_eq!(grown, ["a: 3 elements were planned, but the result has 4"]);
    let lost = errors(&planned, &set(strings(&["y"])), ty());
    assert_eq!(lost, ["a: 1 planned elements are missing, and 0 elements were not planned"]);
    let swapped = errors(&set(strings(&["x"])), &set(strings(&["y"])), ty());
    assert_eq!(swapped, ["a: 1 planned elements are missing, and 1 elements were not planned"]);
}

#[test]
fn dynamic_values_keep_the_planned_type() {
    let text = Value::dynamic(Type::String, "1".into());
    let number = Value::dynamic(Type::Number, 1.into());
    assert_eq!(errors(&Value::UNKNOWN, &number, Type::Dynamic), [""; 0]);
    assert_eq!(errors(&text, &number, Type::Dynamic), ["a: was planned as string, but is number"]);
    let promised = Value::dynamic(Type::String, Value::UNKNOWN);
    assert_eq!(errors(&promised, &text, Type::Dynamic), [""; 0]);
    assert_eq!(errors(&promised, &number, Type::Dynamic), ["a: was planned as string, but is number"]);
}

#[test]
fn the_number_of_blocks_must_match_unless_it_was_unknown() {
    let rule = || block([("id", computed(Type::String)), ("port", optional(Type::Number))], []);
    for (nesting, wrap) in [
        (Nesting::List, (|items| Value::List(Arc::from(items))) as fn(Vec<Value>) -> Value),
        (Nesting::Set, |items| Value::set(items)),
        (Nesting::Map, |items| Value::map(items.into_iter().enumerate().map(|(key, item)| (key.to_string(), item)))),
    ] {
        let outer = block([], [("rule", nested(nesting, rule()))]);
        let of = |rules: Value| Value::object([("rule", rules)]);
        let one = |id: Value, port: i64| Value::object([("id", id), ("port", port.into())]);
        let planned = of(wrap(vec![one(Value::UNKNOWN, 1), one(Value::UNKNOWN, 2)]));
        let kept = of(wrap(vec![one("x".into(), 1), one("y".into(), 2)]));
        assert!(result_errors(&outer, &planned, &kept).is_empty());
        let other = of(wrap(vec![one("x".into(), 1), one("y".into(), 3)]));
        let fewer = of(wrap(vec![one("x".into(), 1)]));
        let more = of(wrap(vec![one("x".into(), 1), one("y".into(), 2), one("z".into(), 3)]));
        for wrong in [other, fewer, more] {
            assert!(!result_errors(&outer, &planned, &wrong).is_empty(), "{nesting:?} {wrong:?}");
            assert!(result_errors(&outer, &of(Value::UNKNOWN), &wrong).is_empty());
        }
    }
    let single = block([], [("rule", nested(Nesting::Single, rule()))]);
    let of = |rule: Value| Value::object([("rule", rule)]);
    assert!(result_errors(&single, &of(Value::UNKNOWN), &of(Value::Null)).is_empty());
    let vanished = result_errors(&single, &of(rule().empty()), &of(Value::Null));
    assert_eq!(vanished[0].to_string(), "rule: was planned to be present, but is absent");
}

#[test]
fn errors_do_not_reveal_sensitive_attributes() {
    let outer = block([("a", Attribute { sensitive: true, ..optional(Type::List(Type::String.into())) })], []);
    let of = |items: &[&str]| Value::object([("a", Value::list(strings(items)))]);
    let found = result_errors(&outer, &of(&["x", "y"]), &of(&["x", "z"]));
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a: does not match the planned value"]);
}

/// The value with each unknown part replaced by a known one.
fn filled(value: &Value) -> Value {
    value.unknown_as_null()
}

/// Whether the value has a part of a dynamic type without elements that determine it, such as an empty `map(dynamic)`.
/// It matches a map of any type, as in go-cty's `TestConformance`.
fn has_undetermined_type(value: &Value) -> bool {
    match value {
        Value::Dynamic(typed) => typed.ty.has_dynamic() || has_undetermined_type(&typed.value),
        Value::List(items) | Value::Tuple(items) => items.iter().any(has_undetermined_type),
        Value::Set(items) => items.iter().any(has_undetermined_type),
        Value::Map(entries) | Value::Object(entries) => entries.values().any(has_undetermined_type),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_value_matches_itself_and_the_unknown_value((ty, value) in typed_value()) {
        prop_assert_eq!(errors(&value, &value, ty.clone()), [""; 0]);
        prop_assert_eq!(errors(&value, &filled(&value), ty.clone()), [""; 0]);
        prop_assert_eq!(errors(&Value::UNKNOWN, &value, ty), [""; 0]);
    }

    #[test]
    fn a_known_plan_allows_nothing_else((ty, planned, actual) in typed_value().prop_flat_map(|(ty, value)| {
        crate::cty::tests::value_of(ty.clone()).prop_map(move |other| (ty.clone(), filled(&value), filled(&other)))
    })) {
        match errors(&planned, &actual, ty).is_empty() {
            true => prop_assert!(planned == actual || has_undetermined_type(&planned)),
            false => prop_assert!(planned != actual),
        }
    }
}
