//! Tests of each rule, and properties of all values.

use cty::Range;
use proptest::prelude::*;

use super::*;
use crate::schema::Attribute;
use crate::schema::builders::{block, computed, nested, optional};
use crate::schema::tests::strategies::{typed_value, value_of};

fn errors(planned: &Value, actual: &Value, ty: Type) -> Vec<String> {
    let outer = block([("a", optional(ty))], []);
    let of = |value: &Value| Value::of_entries(outer.ty(), [("a".into(), value.clone())].into());
    result_errors(&outer, &of(planned), &of(actual)).iter().map(ToString::to_string).collect()
}

fn strings(items: &[&str]) -> Vec<Value> {
    items.iter().map(|item| Value::from(*item)).collect()
}

fn list(items: Vec<Value>) -> Value {
    Value::list(Type::String, items)
}

#[test]
fn known_values_stay_and_unknown_values_may_become_anything() {
    let lists = || Type::list(Type::String);
    let (null, unknown) = (Value::NULL, Value::DYNAMIC);
    let not_null = Value::unknown_in(Type::String, Range::not_null());
    for (planned, actual, ty, expected) in [
        ("x".into(), "x".into(), Type::String, ""),
        ("x".into(), "y".into(), Type::String, "a: does not match the planned value"),
        ("x".into(), null.clone(), Type::String, "a: was planned, but is null"),
        (null.clone(), "x".into(), Type::String, "a: was planned to be null, but is not"),
        ("x".into(), unknown.clone(), Type::String, "a: was known, but is now unknown"),
        (unknown.clone(), "x".into(), Type::String, ""),
        (unknown.clone(), null.clone(), Type::String, ""),
        (unknown.clone(), unknown.clone(), Type::String, ""),
        (not_null.clone(), "x".into(), Type::String, ""),
        (not_null, null, Type::String, "a: does not match the refinement of the planned unknown value"),
        (list(strings(&["x"])), list(strings(&["x"])), lists(), ""),
        (list(strings(&["x", "y"])), list(strings(&["x", "z"])), lists(), "a[1]: does not match the planned value"),
        (list(strings(&["x"])), list(vec![]), lists(), "a: 1 elements were planned, but the result has 0"),
        (list(vec![unknown]), list(strings(&["x"])), lists(), ""),
    ] {
        assert_eq!(errors(&planned, &actual, ty).join("; "), expected, "{planned:?} {actual:?}");
    }
}

#[test]
fn map_keys_must_not_change() {
    let ty = Type::map(Type::String);
    let of = |key: &str| Value::map(Type::String, [(key, "x".into())]);
    let (planned, actual) = (of("k"), of("l"));
    assert_eq!(errors(&planned, &actual, ty), ["a: the key `l` has appeared", "a: the key `k` has vanished"]);
}

fn set(items: Vec<Value>) -> Value {
    Value::set(Type::String, items)
}

#[test]
fn sets_may_shrink_where_they_were_unknown_and_never_grow() {
    let ty = || Type::set(Type::String);
    let planned = set(vec!["x".into(), Value::DYNAMIC, Value::DYNAMIC]);
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
    let (text, number) = (Value::from("1"), Value::from(1));
    assert_eq!(errors(&Value::DYNAMIC, &number, Type::Dynamic), [""; 0]);
    assert_eq!(errors(&text, &number, Type::Dynamic), ["a: was planned as string, but is number"]);
    let promised = Value::unknown(Type::String);
    assert_eq!(errors(&promised, &text, Type::Dynamic), [""; 0]);
    assert_eq!(errors(&promised, &number, Type::Dynamic), ["a: was planned as string, but is number"]);
}

fn rule() -> Block {
    block([("id", computed(Type::String)), ("port", optional(Type::Number))], [])
}

#[test]
fn the_number_of_blocks_must_match_unless_it_was_unknown() {
    for nesting in [Nesting::List, Nesting::Set, Nesting::Map] {
        let rules = nested(nesting, rule());
        let wrap = |items: Vec<Value>| match nesting {
            Nesting::Map => Value::of_entries(&rules.ty(), (0..).map(|key| key.to_string()).zip(items).collect()),
            _ => Value::of_items(&rules.ty(), items),
        };
        let outer = block([], [("rule", rules.clone())]);
        let of = |rules: Value| Value::of_entries(outer.ty(), [("rule".into(), rules)].into());
        let one = |id: Value, port: i64| {
            Value::of_entries(rule().ty(), [("id".into(), id), ("port".into(), port.into())].into())
        };
        let planned = of(wrap(vec![one(Value::DYNAMIC, 1), one(Value::DYNAMIC, 2)]));
        let kept = of(wrap(vec![one("x".into(), 1), one("y".into(), 2)]));
        assert!(result_errors(&outer, &planned, &kept).is_empty());
        let other = of(wrap(vec![one("x".into(), 1), one("y".into(), 3)]));
        let fewer = of(wrap(vec![one("x".into(), 1)]));
        let more = of(wrap(vec![one("x".into(), 1), one("y".into(), 2), one("z".into(), 3)]));
        for wrong in [other, fewer, more] {
            assert!(!result_errors(&outer, &planned, &wrong).is_empty(), "{nesting:?} {wrong:?}");
            assert!(result_errors(&outer, &of(Value::DYNAMIC), &wrong).is_empty());
        }
    }
    let single = block([], [("rule", nested(Nesting::Single, rule()))]);
    let of = |rule: Value| Value::of_entries(single.ty(), [("rule".into(), rule)].into());
    assert!(result_errors(&single, &of(Value::DYNAMIC), &of(Value::NULL)).is_empty());
    let vanished = result_errors(&single, &of(rule().empty()), &of(Value::NULL));
    assert_eq!(vanished[0].to_string(), "rule: was planned to be present, but is absent");
}

#[test]
fn errors_do_not_reveal_sensitive_attributes() {
    let outer = block([("a", Attribute { sensitive: true, ..optional(Type::list(Type::String)) })], []);
    let of = |items: &[&str]| Value::object([("a", list(strings(items)))]);
    let found = result_errors(&outer, &of(&["x", "y"]), &of(&["x", "z"]));
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a: does not match the planned value"]);
}

/// The value with each unknown part replaced by a known one.
fn filled(value: &Value) -> Value {
    value.unknown_as_null()
}

/// Whether the type of a part is not determined by its elements, as that of an empty `map(dynamic)`. It matches a map of
/// any type, as in go-cty's `TestConformance`.
fn has_undetermined_type(value: &Value) -> bool {
    value.ty().has_dynamic()
}

proptest! {
    #[test]
    fn a_value_matches_itself_and_the_unknown_value((ty, value) in typed_value()) {
        prop_assert_eq!(errors(&value, &value, ty.clone()), [""; 0]);
        prop_assert_eq!(errors(&value, &filled(&value), ty.clone()), [""; 0]);
        prop_assert_eq!(errors(&Value::DYNAMIC, &value, ty), [""; 0]);
    }

    #[test]
    fn a_known_plan_allows_nothing_else((ty, planned, actual) in typed_value().prop_flat_map(|(ty, value)| {
        value_of(ty.clone()).prop_map(move |other| (ty.clone(), filled(&value), filled(&other)))
    })) {
        match errors(&planned, &actual, ty).is_empty() {
            true => prop_assert!(
                planned == actual || has_undetermined_type(&planned) || has_undetermined_type(&actual)
            ),
            false => prop_assert!(planned != actual),
        }
    }
}
