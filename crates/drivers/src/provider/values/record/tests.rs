//! Round trips between values and records.

use std::collections::BTreeMap;

use proptest::prelude::*;

use cty::Number;
use cty::json::{self, UnsupportedAttributes};

use super::super::tests::builders::{block, nested, optional};
use super::super::tests::strategies::typed_value;
use super::*;

fn secret() -> Attribute {
    Attribute { sensitive: true, ..optional(Type::String) }
}

fn user(name: &str) -> Value {
    Value::object([("name", name.into()), ("token", "t".into())])
}

fn hidden() -> serde_json::Value {
    serde_json::json!({"sensitive": true})
}

#[test]
fn sensitive_attributes_are_marked_at_any_depth() {
    let keys = NestedType::new(Nesting::List, BTreeMap::from([("key".into(), secret())]));
    let outer = block(
        [
            ("keys", Attribute::new(Shape::Nested(keys))),
            ("none", secret()),
            ("password", secret()),
            ("unknown", secret()),
        ],
        [("user", nested(Nesting::Set, block([("name", optional(Type::String)), ("token", secret())], [])))],
    );
    let value = Value::object([
        ("keys", Value::list(Type::Dynamic, [Value::object([("key", "k".into())])])),
        ("none", Value::null(Type::String)),
        ("password", "p".into()),
        ("unknown", Value::unknown(Type::String)),
        ("user", Value::set(Type::Dynamic, [user("b"), user("a")])),
    ]);
    let kept = to_model(&outer, &value);
    assert_eq!(kept.get("unknown"), Some(&model::Value::Unknown.into_sensitive()));
    let shown = kept.to_public_json();
    assert_eq!(
        shown,
        serde_json::json!({
            "keys": [{"key": hidden()}],
            "none": null,
            "password": hidden(),
            "user": [{"name": "a", "token": hidden()}, {"name": "b", "token": hidden()}],
        })
    );
    assert_eq!(from_model(outer.ty(), &kept, &DynamicTypes::default()).unwrap(), value);
}

#[test]
fn numbers_keep_their_digits() {
    for text in ["0.1", "0.30000000000000004", "18446744073709551616", "1.10", "123456789.123456789123456789", "1e30"] {
        let number = Value::number(Number::parse(text).unwrap());
        let back = from_model(&Type::Number, &to_unmarked_model(&number), &DynamicTypes::default()).unwrap();
        assert_eq!(back, number, "{text}");
    }
}

#[test]
fn a_record_of_an_earlier_schema_is_read() {
    let ty = Type::object([("a", Type::String), ("new", Type::list(Type::Bool))]);
    let old = model::Value::map([("a", model::Value::from("x")), ("old", model::Value::from(1))]);
    let value = from_model(&ty, &old, &DynamicTypes::default()).unwrap();
    assert_eq!(value, Value::object([("a", "x".into()), ("new", Value::null(Type::list(Type::Bool)))]));
    let wrong = model::Value::map([("new", model::Value::list([model::Value::from(3)]))]);
    let error = from_model(&ty, &wrong, &DynamicTypes::default()).unwrap_err();
    assert_eq!(error.to_string(), "new[0]: must be a boolean, not a number");
}

#[test]
fn a_changed_value_gets_a_new_type() {
    let ty = Type::object([("a", Type::Dynamic)]);
    let before = Value::object([("a", Value::list(Type::Bool, [true.into()]))]);
    let types = DynamicTypes::of(&before, &ty);
    let changed = model::Value::map([("a", model::Value::from("x"))]);
    let value = from_model(&ty, &changed, &types).unwrap();
    assert_eq!(value, Value::object([("a", "x".into())]));
}

proptest! {
    #[test]
    fn a_value_round_trips_without_loss((ty, value) in typed_value()) {
        let types = DynamicTypes::of(&value, &ty);
        let kept = DynamicTypes::from_json(types.to_json().as_bytes()).unwrap();
        prop_assert_eq!(&kept, &types);
        prop_assert_eq!(from_model(&ty, &to_unmarked_model(&value), &kept).unwrap(), value);
    }

    #[test]
    fn the_raw_state_decodes_to_the_state((ty, value) in typed_value()) {
        let known = value.unknown_as_null();
        let raw = raw_state(&to_unmarked_model(&known), &DynamicTypes::of(&known, &ty));
        prop_assert_eq!(json::decode(raw.as_bytes(), &ty, UnsupportedAttributes::Reject).unwrap(), known);
    }
}
