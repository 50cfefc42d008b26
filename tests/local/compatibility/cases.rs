//! Every kind of incompatible change is found, and compatible changes are not reported.

use expect_test::{Expect, expect};
use serde_json::{Value as Json, json};

use super::definition::incompatible_changes;
use super::{parse, released};

/// A CRD with the schema of one field, `.spec.field`.
fn crd(field: &str) -> Json {
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th", "tng"], "categories": ["all"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.field"}],
                "additionalPrinterColumns": [{"name": "FIELD", "jsonPath": ".spec.field", "type": "string"}],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {"field": parse(field)}}},
                }},
            }],
        },
    })
}

fn check(before: &str, after: &str, expected: Expect) {
    expected.assert_eq(&incompatible_changes(&[crd(before)], &[crd(after)]).join("\n"));
}

fn check_compatible(before: &str, after: &str) {
    assert_eq!(incompatible_changes(&[crd(before)], &[crd(after)]), Vec::<String>::new(), "{before} -> {after}");
}

/// Compares a CRD with itself after a change of its definition.
fn check_definition(change: fn(&mut Json), expected: Expect) {
    let before = crd("type: string");
    let mut after = before.clone();
    change(&mut after);
    expected.assert_eq(&incompatible_changes(&[before], &[after]).join("\n"));
}

#[test]
fn a_removed_field() {
    let fields = "{type: object, properties: {a: {type: string}, b: {type: string}}}";
    let fewer = "{type: object, properties: {a: {type: string}}}";
    check(fields, fewer, expect!["things.example.com/v1 .spec.field.b: the field was removed"]);
    check_compatible(fewer, fields);
}

#[test]
fn another_type() {
    let at_string = expect![[r#"things.example.com/v1 .spec.field: type was "integer" and is "string""#]];
    check("type: integer", "type: string", at_string);
    check(
        "type: integer",
        "x-kubernetes-int-or-string: true",
        expect![[r#"
            things.example.com/v1 .spec.field: type was "integer" and is absent
            things.example.com/v1 .spec.field: x-kubernetes-int-or-string was absent and is true"#]],
    );
    check(
        "{type: integer, format: int64}",
        "{type: integer, format: int32}",
        expect![[r#"things.example.com/v1 .spec.field: format was "int64" and is "int32""#]],
    );
}

#[test]
fn a_new_required_field() {
    let optional = "{type: object, properties: {a: {type: string}}}";
    check(
        optional,
        "{type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}}",
        expect![[r#"
            things.example.com/v1 .spec.field: `a` is required now
            things.example.com/v1 .spec.field: `b` is required now"#]],
    );
    let with_default = "{type: object, required: [b], properties: {a: {type: string}, b: {type: string, default: x}}}";
    check_compatible(optional, with_default);
    let below = "{type: object, properties: {a: {type: string}, \
                 b: {type: object, required: [c], properties: {c: {type: string}}}}}";
    check_compatible(optional, below);
}

#[test]
fn a_removed_value() {
    let two = "{type: string, enum: [A, B]}";
    let values = expect![[r#"things.example.com/v1 .spec.field: the value "B" is not valid any more"#]];
    check(two, "{type: string, enum: [A, C]}", values);
    check("type: string", two, expect!["things.example.com/v1 .spec.field: only some values are valid now (enum)"]);
    check_compatible(two, "{type: string, enum: [C, B, A]}");
    check_compatible(two, "type: string");
}

#[test]
fn tighter_limits() {
    let limits = "{type: array, maxItems: 5, minItems: 1, items: {type: string, minLength: 1, maxLength: 9}}";
    let tighter = "{type: array, maxItems: 4, minItems: 2, items: {type: string, minLength: 2, maxLength: 8}}";
    check(
        limits,
        tighter,
        expect![[r#"
            things.example.com/v1 .spec.field: maxItems was 5 and is 4
            things.example.com/v1 .spec.field: minItems was 1 and is 2
            things.example.com/v1 .spec.field[]: maxLength was 9 and is 8
            things.example.com/v1 .spec.field[]: minLength was 1 and is 2"#]],
    );
    check_compatible(tighter, limits);
    check(
        "type: integer",
        "{type: integer, minimum: 0, maximum: 9, multipleOf: 3}",
        expect![[r#"
            things.example.com/v1 .spec.field: maximum was absent and is 9
            things.example.com/v1 .spec.field: minimum was absent and is 0
            things.example.com/v1 .spec.field: multipleOf was absent and is 3"#]],
    );
    let open = "{type: integer, minimum: 0, exclusiveMinimum: false}";
    check(
        open,
        "{type: integer, minimum: 0, exclusiveMinimum: true}",
        expect!["things.example.com/v1 .spec.field: exclusiveMinimum was false and is true"],
    );
    check(
        "{type: object, maxProperties: 3}",
        "{type: object, maxProperties: 2, minProperties: 1}",
        expect![[r#"
            things.example.com/v1 .spec.field: maxProperties was 3 and is 2
            things.example.com/v1 .spec.field: minProperties was absent and is 1"#]],
    );
    check_compatible("type: string", "{type: string, minLength: 0}");
}

#[test]
fn another_pattern() {
    let lower = "{type: string, pattern: '^[a-z]+$'}";
    check(
        "type: string",
        lower,
        expect![[r#"things.example.com/v1 .spec.field: pattern was absent and is "^[a-z]+$""#]],
    );
    check(
        lower,
        "{type: string, pattern: '^[a-z0-9]+$'}",
        expect![[r#"things.example.com/v1 .spec.field: pattern was "^[a-z]+$" and is "^[a-z0-9]+$""#]],
    );
    check_compatible(lower, "type: string");
}

#[test]
fn a_new_rule() {
    let rule = "{type: string, x-kubernetes-validations: [{rule: self != '', message: must not be empty}]}";
    check("type: string", rule, expect!["things.example.com/v1 .spec.field: the rule `self != ''` was added"]);
    check_compatible(rule, "type: string");
    check_compatible(rule, &rule.replace("must not be empty", "is empty"));
    let transition = "{type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}";
    let always = "{type: string, x-kubernetes-validations: [{rule: self == oldSelf, optionalOldSelf: true}]}";
    check(transition, always, expect!["things.example.com/v1 .spec.field: the rule `self == oldSelf` was added"]);
    let not = "{type: object, not: {required: [a, b]}}";
    check(
        "type: object",
        not,
        expect![[r#"things.example.com/v1 .spec.field: not was absent and is {"required":["a","b"]}"#]],
    );
    check_compatible(not, "type: object");
}

#[test]
fn another_default() {
    let five = "{type: integer, default: 5}";
    check(five, "{type: integer, default: 6}", expect!["things.example.com/v1 .spec.field: default was 5 and is 6"]);
    check(five, "type: integer", expect!["things.example.com/v1 .spec.field: default was 5 and is absent"]);
    check("type: integer", five, expect!["things.example.com/v1 .spec.field: default was absent and is 5"]);
}

#[test]
fn null_is_not_valid_any_more() {
    let nullable = "{type: string, nullable: true}";
    check(nullable, "type: string", expect!["things.example.com/v1 .spec.field: nullable was true and is absent"]);
    check_compatible("type: string", nullable);
}

#[test]
fn another_way_to_merge() {
    let list = "{type: array, items: {type: string}}";
    let set = "{type: array, items: {type: string}, x-kubernetes-list-type: set}";
    check(
        list,
        set,
        expect![[r#"things.example.com/v1 .spec.field: x-kubernetes-list-type was "atomic" and is "set""#]],
    );
    check_compatible(list, "{type: array, items: {type: string}, x-kubernetes-list-type: atomic}");
    check(
        "type: object",
        "{type: object, x-kubernetes-map-type: atomic}",
        expect![[r#"things.example.com/v1 .spec.field: x-kubernetes-map-type was "granular" and is "atomic""#]],
    );
    let keys = |keys: &str| {
        format!(
            "{{type: array, items: {{type: object}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [{keys}]}}"
        )
    };
    check(
        &keys("name"),
        &keys("name, kind"),
        expect![[
            r#"things.example.com/v1 .spec.field: x-kubernetes-list-map-keys was ["name"] and is ["name","kind"]"#
        ]],
    );
}

#[test]
fn content_that_is_not_free_any_more() {
    let free = "{type: object, x-kubernetes-preserve-unknown-fields: true}";
    check(
        free,
        "type: object",
        expect!["things.example.com/v1 .spec.field: x-kubernetes-preserve-unknown-fields was true and is absent"],
    );
    check(
        free,
        "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}",
        expect![[r#"things.example.com/v1 .spec.field.a: any value was valid, and now {"type":"string"}"#]],
    );
    check(
        "{type: object, additionalProperties: true}",
        "{type: object, additionalProperties: {type: string}}",
        expect![[r#"things.example.com/v1 .spec.field.*: any value was valid, and now {"type":"string"}"#]],
    );
    let map = "{type: object, additionalProperties: {type: string, maxLength: 5}}";
    check(map, "type: object", expect!["things.example.com/v1 .spec.field.*: the field was removed"]);
    check(
        map,
        "{type: object, additionalProperties: {type: string, maxLength: 4}}",
        expect!["things.example.com/v1 .spec.field.*: maxLength was 5 and is 4"],
    );
    check_compatible("type: object", free);
    check_compatible(map, free);
}

#[test]
fn a_keyword_without_a_rule_must_not_change() {
    let embedded = "{type: object, x-kubernetes-embedded-resource: true}";
    check(
        embedded,
        "type: object",
        expect!["things.example.com/v1 .spec.field: x-kubernetes-embedded-resource was true and is absent"],
    );
    check(
        "{type: object, x-new-keyword: 1}",
        "{type: object, x-new-keyword: 2}",
        expect!["things.example.com/v1 .spec.field: x-new-keyword was 1 and is 2"],
    );
}

#[test]
fn another_scope_name_or_version() {
    check_definition(
        |crd| crd["spec"]["scope"] = json!("Cluster"),
        expect![[r#"things.example.com: scope was "Namespaced" and is "Cluster""#]],
    );
    check_definition(
        |crd| crd["spec"]["names"]["kind"] = json!("Item"),
        expect![[r#"things.example.com: names/kind was "Thing" and is "Item""#]],
    );
    check_definition(
        |crd| crd["spec"]["names"] = json!({"kind": "Thing", "plural": "things", "shortNames": ["tng", "x"]}),
        expect![[r#"
            things.example.com: "th" was removed from shortNames
            things.example.com: "all" was removed from categories"#]],
    );
    check_definition(
        |crd| crd["spec"]["versions"][0]["name"] = json!("v2"),
        expect!["things.example.com/v1: the version was removed"],
    );
    check_definition(
        |crd| crd["spec"]["versions"][0]["served"] = json!(false),
        expect!["things.example.com/v1: the version is not served any more"],
    );
    check_definition(
        |crd| crd["spec"]["versions"][0]["storage"] = json!(false),
        expect!["things.example.com/v1: storage was true and is false"],
    );
    check_definition(
        |crd| crd["spec"]["versions"][0]["subresources"] = json!({}),
        expect!["things.example.com/v1: the status subresource was removed"],
    );
    check_definition(
        |crd| crd["spec"]["versions"][0]["selectableFields"] = json!([]),
        expect!["things.example.com/v1: .spec.field is not selectable any more"],
    );
    check_definition(
        |crd| crd["metadata"]["name"] = json!("items.example.com"),
        expect!["things.example.com: the CRD was removed"],
    );
}

#[test]
fn columns_descriptions_and_further_versions_may_change() {
    check_definition(
        |crd| {
            let version = &mut crd["spec"]["versions"][0];
            version["additionalPrinterColumns"] = json!([]);
            version["deprecated"] = json!(true);
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["description"] = json!("New words.");
            let mut second = version.clone();
            second["name"] = json!("v2");
            second["storage"] = json!(false);
            crd["spec"]["versions"].as_array_mut().unwrap().push(second);
        },
        expect![""],
    );
}

/// Returns the paths of all fields of a schema, as JSON pointers.
fn pointers(schema: &Json, at: &str, found: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}/properties/{name}");
        pointers(field, &at, found);
        found.push(at);
    }
    for keyword in ["items", "additionalProperties"] {
        if schema[keyword].is_object() {
            pointers(&schema[keyword], &format!("{at}/{keyword}"), found);
        }
    }
}

#[test]
fn every_removed_field_of_a_released_crd_is_found() {
    let (_, released) = released();
    let mut removed = 0;
    for crd in &released {
        let root = "/spec/versions/0/schema/openAPIV3Schema";
        let mut all = Vec::new();
        pointers(crd.pointer(root).unwrap(), root, &mut all);
        for pointer in all {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            let mut without = crd.clone();
            without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
            let found = incompatible_changes(std::slice::from_ref(crd), &[without]);
            let expected = format!(".{name}: the field was removed");
            assert!(found.len() == 1 && found[0].ends_with(&expected), "{pointer}: {found:?}");
            removed += 1;
        }
    }
    assert!(removed > 200, "only {removed} fields");
}
