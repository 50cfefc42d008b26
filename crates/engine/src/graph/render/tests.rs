use expect_test::{Expect, expect};

use super::{dot, json, mermaid, published, text};
use crate::graph::fixture::{fixture, graph};

fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&text(&graph(situation)));
}

#[test]
fn creates_are_listed_in_order_with_reasons() {
    check(
        "web: create, wants db\n db: create\n cache: create",
        expect![[r#"
        cache create
        db create
        web create
          after db create: web depends on db
    "#]],
    );
}

#[test]
fn implied_edges_are_omitted() {
    check(
        "a: replace\n b: replace, wants a, used a\n c: update, wants a b, used a b",
        expect![[r#"
        b destroy
        a destroy
          after b destroy: a is destroyed after b, which depends on it
        a create
          after a destroy: a is created after the old object is destroyed
        b create
          after a create: b depends on a
        c update
          after b create: c depends on b
    "#]],
    );
}

#[test]
fn an_inherited_flag_names_the_object_that_requires_it() {
    check(
        "db: replace\n web: noop, cbd, wants db, used db",
        expect![[r#"
            db create
            db destroy
              after db create: db is create-before-destroy (required by web): the old object is destroyed last
        "#]],
    );
}

#[test]
fn a_released_object_is_destroyed_after_its_former_dependents_and_dependencies_change() {
    check(
        "a: update\n b: destroy, used a\n c: update, used b",
        expect![[r#"
        a update
        c update
        b destroy
          after a update: the old b is kept until a, on which it depended, has changed
          after c update: b is kept until c, which no longer depends on it, has changed
    "#]],
    );
}

#[test]
fn deposed_objects_have_distinct_names() {
    check(
        "a: update\n b: replace, cbd, wants a, used a, deposed 8e7cdf03 used a\n c: update, wants b, used b",
        expect![[r#"
            a update
            b create
              after a update: b depends on a
            c update
              after b create: c depends on b
            b destroy
              after c update: the old b is kept until c, which depended on it, has changed
            b destroy (deposed 8e7cdf03)
              after c update: b (deposed 8e7cdf03) is destroyed after c, which depends on b
        "#]],
    );
}

#[test]
fn a_new_dependency_exists_before_the_old_object_is_destroyed() {
    check(
        "a: create\n b: replace, wants a",
        expect![[r#"
        a create
        b destroy
          after a create: the old b is kept until a, on which the new object depends, exists
        b create
          after b destroy: b is created after the old object is destroyed
    "#]],
    );
}

#[test]
fn unchanged_objects_are_not_shown() {
    check(
        "a: update\n b: update\n hub: noop, wants a b\n x: update, wants hub",
        expect![[r#"
        a update
        b update
        x update
          after a update: x depends on a through other objects
          after b update: x depends on b through other objects
    "#]],
    );
}

#[test]
fn families_are_junctions() {
    check(
        "web[0]: create\n web[1]: create\n all: create, wants web",
        expect![[r#"
            web[0] create
            web[1] create
            all create
              after web[0] create: all depends on web[0]
              after web[1] create: all depends on web[1]
        "#]],
    );
}

#[test]
fn a_forget_is_ordered_like_a_destroy() {
    check(
        "a: forget\n b: orphan, used a",
        expect![[r#"
            b create
            b forget
              after b create: b is create-before-destroy: the old object is destroyed last
            a forget
              after b forget: a is destroyed after b, which depends on it
        "#]],
    );
}

const SMALL: &str = "a: replace\n w[\"x\"]: update, wants a, used a";

#[test]
fn dot_quotes_names() {
    expect![[r#"
        digraph order {
          rankdir = RL;
          node [shape = box];
          "a destroy" [style = dashed];
          "a create";
          "w[\"x\"] update";
          "a create" -> "a destroy" [label = "a is created after the old object is destroyed"];
          "w[\"x\"] update" -> "a create" [label = "w[\"x\"] depends on a"];
        }
    "#]]
    .assert_eq(&dot(&graph(SMALL)));
}

#[test]
fn mermaid_escapes_names() {
    expect![[r#"
        flowchart RL
          s0["a destroy"]
          s1["a create"]
          s2["w[#quot;x#quot;] update"]
          s1 -->|"a is created after the old object is destroyed"| s0
          s2 -->|"w[#quot;x#quot;] depends on a"| s1
    "#]]
    .assert_eq(&mermaid(&published(&graph(SMALL))));
}

#[test]
fn json_has_nodes_and_edges_as_documented() {
    let (graph, _) = fixture("a: replace, cbd, deposed 8e7cdf03\n w[\"x\"]: update, wants a, used a").graph();
    let value: serde_json::Value = serde_json::from_str(&json(&graph)).unwrap();
    expect![[r#"
        {
          "edges": [
            {
              "because": "a is create-before-destroy: the old object is destroyed last",
              "from": "a destroy",
              "to": "a create"
            },
            {
              "because": "the old a is kept until w[\"x\"], which depended on it, has changed",
              "from": "a destroy",
              "to": "w[\"x\"] update"
            },
            {
              "because": "a (deposed 8e7cdf03) is destroyed after a is up to date",
              "from": "a destroy (deposed 8e7cdf03)",
              "to": "a create"
            },
            {
              "because": "a (deposed 8e7cdf03) is destroyed after w[\"x\"], which depends on a",
              "from": "a destroy (deposed 8e7cdf03)",
              "to": "w[\"x\"] update"
            },
            {
              "because": "w[\"x\"] depends on a",
              "from": "w[\"x\"] update",
              "to": "a create"
            }
          ],
          "nodes": [
            {
              "address": "a",
              "deposedKey": null,
              "id": "a create",
              "operation": "create",
              "replaces": true
            },
            {
              "address": "a",
              "deposedKey": null,
              "id": "a destroy",
              "operation": "destroy",
              "replaces": true
            },
            {
              "address": "a",
              "deposedKey": "8e7cdf03",
              "id": "a destroy (deposed 8e7cdf03)",
              "operation": "destroy",
              "replaces": false
            },
            {
              "address": "w[\"x\"]",
              "deposedKey": null,
              "id": "w[\"x\"] update",
              "operation": "update",
              "replaces": false
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn json_shows_no_junction() {
    let graph = graph("a: update\n b: update\n hub: noop, wants a b\n x: update, wants hub");
    let value: serde_json::Value = serde_json::from_str(&json(&graph)).unwrap();
    assert_eq!(value["nodes"].as_array().unwrap().len(), 3);
    assert_eq!(value["edges"].as_array().unwrap().len(), 2);
}
