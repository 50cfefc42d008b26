//! JSON as go-cty writes it, malformed JSON, and random input.

use proptest::prelude::*;

use super::{UnsupportedAttributes, decode, encode};
use crate::tests::typed_value;
use crate::{Type, Value};

fn read(json: &str, ty: &Type) -> Result<Value, String> {
    decode(json.as_bytes(), ty, UnsupportedAttributes::Reject).map_err(|error| error.to_string())
}

#[test]
fn states_keep_every_digit_and_type() {
    let ty = Type::object([
        ("any", Type::Dynamic),
        ("big", Type::Number),
        ("set", Type::set(Type::String)),
        ("text", Type::String),
    ]);
    let json = r#"{"any":{"value":["a",null],"type":["list","string"]},"big":123456789012345678901234567890.5,"set":["a","b"],"text":"\u003cx\u003e \"é\"\n"}"#;
    let value = read(json, &ty).unwrap();
    assert_eq!(encode(&value, &ty).unwrap(), json);
    let other_order = r#" { "any" : { "type": ["list","string"], "value": ["a", null] }, "set": ["b","a","b"],
        "text": "<x> \"\u00e9\"\n", "big": 1.234567890123456789012345678905e29 } "#;
    assert_eq!(read(other_order, &ty).unwrap(), value);
}

#[test]
fn missing_attributes_are_null_and_unsupported_ones_are_rejected_or_ignored() {
    let ty = Type::object([("a", Type::String), ("b", Type::Bool)]);
    assert_eq!(read(r#"{"a":"x"}"#, &ty).unwrap(), Value::object([("a", "x".into()), ("b", Value::null(Type::Bool))]));
    assert_eq!(read(r#"{"c":{"d":[1]}}"#, &ty).unwrap_err(), "c: the schema has no such attribute");
    let left_out = decode(br#"{"a":"x","c":{"d":[1,"]"]}}"#, &ty, UnsupportedAttributes::Ignore).unwrap();
    assert_eq!(left_out, Value::object([("a", "x".into()), ("b", Value::null(Type::Bool))]));
}

#[test]
fn scalars_are_converted_as_cty_does() {
    assert_eq!(read("\"1\"", &Type::Bool).unwrap(), true.into());
    assert_eq!(read("\"12\"", &Type::Number).unwrap(), 12.into());
    assert_eq!(read("12.50", &Type::String).unwrap(), "12.50".into());
    assert_eq!(read("1", &Type::Bool).unwrap_err(), "bool is required");
}

#[test]
fn errors_contain_the_path() {
    let ty = Type::object([("rule", Type::list(Type::object([("port", Type::Number)])))]);
    for (json, expected) in [
        ("", "malformed JSON at byte 0"),
        ("[]", "an object is required"),
        (r#"{"rule":[{"port":true}]}"#, "rule[0].port: number is required"),
        (r#"{"rule":[{"port":1}"#, "rule: malformed JSON at byte 19"),
        (r#"{"rule":{}}"#, "rule: list of object is required"),
        (r#"{"rule":[]} x"#, "malformed JSON at byte 12"),
        (r#"{"rule":[{"port":01}]}"#, "rule[0].port: malformed JSON at byte 17"),
        (r#"{"rule":nul}"#, "rule: malformed JSON at byte 8"),
        (r#"{"rule":[],}"#, "malformed JSON at byte 11"),
    ] {
        assert_eq!(read(json, &ty).unwrap_err(), expected, "{json}");
    }
    assert_eq!(encode(&Value::unknown(Type::Bool), &Type::Bool).unwrap_err().to_string(), "the value is not known");
}

#[test]
fn excessive_depth_is_rejected() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let ty = Type::object([("a", Type::String)]);
    let json = format!("{{\"x\":{deep}}}");
    let error = decode(json.as_bytes(), &ty, UnsupportedAttributes::Ignore).unwrap_err();
    assert!(error.message.contains("too deep"), "{error}");
    let nested = r#"{"type":"dynamic","value":"#.repeat(1000) + "null" + &"}".repeat(1000);
    assert!(read(&nested, &Type::Dynamic).unwrap_err().contains("too deep"));
}

proptest! {
    #[test]
    fn encoding_round_trips((ty, value) in typed_value()) {
        let known = value.unknown_as_null();
        let json = encode(&known, &ty).unwrap();
        prop_assert_eq!(read(&json, &ty).unwrap(), known);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
    }

    #[test]
    fn random_text_does_not_panic(json in "[\\[\\]{}\":,0-9eE.a-z \\\\u-]{0,40}", (ty, _) in typed_value()) {
        let _ = read(&json, &ty);
    }
}
