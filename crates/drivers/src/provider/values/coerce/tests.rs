//! Tests with configurations as users write them.

use expect_test::{Expect, expect};

use cty::{json, msgpack};

use super::super::tests::builders::{block, computed, nested, optional};
use super::*;

/// An attribute that the configuration or the provider may set.
fn optional_computed(ty: Type) -> Attribute {
    Attribute { computed: true, ..optional(ty) }
}

fn required(ty: Type) -> Attribute {
    Attribute { required: true, ..Attribute::new(Shape::Plain(ty)) }
}

fn schema() -> Block {
    let endpoint = BTreeMap::from([
        ("host".into(), required(Type::String)),
        ("id".into(), computed(Type::String)),
        ("port".into(), optional_computed(Type::Number)),
    ]);
    let endpoints = Shape::Nested(NestedType::new(Nesting::Map, endpoint));
    let rule = block([("action", required(Type::String)), ("ports", optional(Type::set(Type::Number)))], []);
    block(
        [
            ("anything", optional(Type::Dynamic)),
            ("enabled", optional(Type::Bool)),
            ("endpoints", Attribute { optional: true, ..Attribute::new(endpoints) }),
            ("id", computed(Type::String)),
            ("limits", optional(Type::object([("cpu", Type::Number), ("memory", Type::String)]))),
            ("name", required(Type::String)),
            ("tags", optional(Type::map(Type::String))),
        ],
        [
            ("lifetime", nested(Nesting::Group, block([("days", optional(Type::Number))], []))),
            ("network", nested(Nesting::Single, block([("subnet", required(Type::String))], []))),
            ("rule", NestedBlock { min_items: 1, max_items: 2, ..nested(Nesting::List, rule) }),
            ("step", nested(Nesting::List, block([("with", optional(Type::Dynamic))], []))),
        ],
    )
}

fn check(config: serde_json::Value, expected: &Expect) {
    let (value, found) = coerce_config(&schema(), &model::Value::from_json(config));
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    let json = json::encode(&value, schema().ty()).unwrap();
    expected.assert_eq(&if text.is_empty() { json } else { text.join("\n") });
}

#[test]
fn values_take_the_types_of_the_schema() {
    check(
        serde_json::json!({
            "anything": {"list": [1, "a", null], "flag": true},
            "enabled": "1",
            "endpoints": {"main": {"host": "h", "port": "80"}},
            "limits": {"cpu": "0.5", "memory": 512},
            "name": 7,
            "network": {"subnet": "s"},
            "rule": [{"action": true, "ports": [443, 80, "443"]}],
            "step": [{"with": "x"}, {"with": [1]}, {}],
            "tags": {"a": 1.5, "b": false},
        }),
        &expect![[
            r#"{"anything":{"value":{"flag":true,"list":[1,"a",null]},"type":["object",{"flag":"bool","list":["tuple",["number","string","dynamic"]]}]},"enabled":true,"endpoints":{"main":{"host":"h","id":null,"port":80}},"id":null,"lifetime":{"days":null},"limits":{"cpu":0.5,"memory":"512"},"name":"7","network":{"subnet":"s"},"rule":[{"action":"true","ports":[80,443]}],"step":{"value":[{"with":"x"},{"with":[1]},{"with":null}],"type":["tuple",[["object",{"with":"string"}],["object",{"with":["tuple",["number"]]}],["object",{"with":"dynamic"}]]]},"tags":{"a":"1.5","b":"false"}}"#
        ]],
    );
}

#[test]
fn every_problem_has_its_path() {
    check(
        serde_json::json!({
            "enabled": "TRUE",
            "endpoints": {"main": {"hots": "h", "id": "x"}},
            "id": "x",
            "limits": {"cpu": 1, "disk": 2},
            "network": [{"subnet": "s"}],
            "rule": {"action": "allow"},
            "step": [null],
            "tag": {},
            "tags": ["a"],
        }),
        &expect![[r#"
            tag: unsupported argument (hint: did you mean `tags`?)
            enabled: must be a boolean, not a string (hint: write it in lowercase)
            endpoints.main.hots: unsupported argument (hint: did you mean `host`?)
            endpoints.main.host: is required, but not set
            endpoints.main.id: is computed by the provider and cannot be set (hint: remove it; other Resources can reference it)
            id: is computed by the provider and cannot be set (hint: remove it; other Resources can reference it)
            limits.disk: unsupported argument (hint: supported arguments: `cpu`, `memory`)
            limits.memory: is required, but not set (hint: set it to null to leave it unset)
            name: is required, but not set
            tags: must be a map, not a list
            network: must be an object, not a list
            rule: must be a list of objects, not an object (hint: write it as a list with one element)
            step[0]: must be an object, not null"#]],
    );
    check(
        serde_json::json!({"name": "x", "rule": [{"action": "a"}, {"action": "b"}, {"action": "c", "ports": ["x"]}]}),
        &expect![[r#"
            rule[2].ports[0]: must be a number, not a string
            rule: must have at most 2 elements, not 3"#]],
    );
    check(serde_json::json!({"name": "x"}), &expect![[r#"rule: must have at least 1 element, not 0"#]]);
    check(serde_json::json!([]), &expect![[r#"must be an object, not a list"#]]);
}

#[test]
fn unknown_values_are_accepted_everywhere() {
    let config = model::Value::map([
        ("name", model::Value::Unknown),
        ("rule", model::Value::Unknown),
        ("endpoints", model::Value::map([("main", model::Value::map([("host", model::Value::Unknown)]))])),
        ("anything", model::Value::Unknown.into_sensitive()),
        ("network", model::Value::map([("subnet", model::Value::from("s").into_sensitive())])),
    ]);
    let (value, found) = coerce_config(&schema(), &config);
    assert!(found.is_empty(), "{found:?}");
    assert!(!value.child("rule").is_known());
    assert_eq!(value.get("anything"), Some(&Value::DYNAMIC));
    assert_eq!(value.get("network").and_then(|network| network.get("subnet")), Some(&"s".into()));
    assert!(msgpack::encode(&value, schema().ty()).is_ok());
}

#[test]
fn values_without_a_schema_are_converted_too() {
    let ty = Type::object([("id", Type::String)]);
    let (value, found) = convert(&ty, &model::Value::map([("id", model::Value::from(7))]));
    assert_eq!((value, found.len()), (Value::object([("id", "7".into())]), 0));
}
