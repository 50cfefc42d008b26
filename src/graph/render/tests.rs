use expect_test::{Expect, expect};

use super::{dot, json, mermaid, text};
use crate::graph::situation::{graph, situation};

fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&text(&graph(situation)));
}

#[test]
fn what_is_created_is_a_list_in_order_with_reasons() {
    check(
        "web: create, wants db\n db: create\n cache: create",
        expect![[r#"
        cache create
        db create
        web create
          after db create: web refers to db
    "#]],
    );
}

#[test]
fn only_what_does_not_follow_from_the_rest_is_told() {
    check(
        "a: replace\n b: replace, wants a, used a\n c: update, wants a b, used a b",
        expect![[r#"
        b destroy
        a destroy
          after b destroy: a goes only after b, which uses it
        a create
          after a destroy: a is made anew only after the old one is gone
        b create
          after a create: b refers to a
        c update
          after b create: c refers to b
    "#]],
    );
}

#[test]
fn an_inherited_flag_is_told_with_the_object_that_requires_it() {
    check(
        "db: replace\n web: noop, cbd, wants db, used db",
        expect![[r#"
            db create
            db destroy
              after db create: db is create-before-destroy (required by web): the old object goes last
        "#]],
    );
}

#[test]
fn a_released_object_goes_after_who_let_go_of_it_and_a_change_below_it() {
    check(
        "a: update\n b: destroy, used a\n c: update, used b",
        expect![[r#"
        a update
        c update
        b destroy
          after a update: the old b stays until a, which it used, has changed
          after c update: c no longer uses b, which stays until c has let go of it
    "#]],
    );
}

#[test]
fn leftovers_have_names_of_their_own() {
    check(
        "a: update\n b: replace, cbd, wants a, used a, leftover 8e7cdf03 used a\n c: update, wants b, used b",
        expect![[r#"
            a update
            b create
              after a update: b refers to a
            c update
              after b create: c refers to b
            b destroy
              after c update: the old b stays until c, which used it, has changed
            b destroy (deposed 8e7cdf03)
              after c update: the leftover b (deposed 8e7cdf03) goes after c, which uses b
        "#]],
    );
}

#[test]
fn what_a_new_object_needs_anew_is_there_before_the_old_one_goes() {
    check(
        "a: create\n b: replace, wants a",
        expect![[r#"
        a create
        b destroy
          after a create: the old b stays until a, which the new one needs, is there
        b create
          after b destroy: b is made anew only after the old one is gone
    "#]],
    );
}

#[test]
fn untouched_objects_are_passed_through() {
    check(
        "a: update\n b: update\n hub: noop, wants a b\n x: update, wants hub",
        expect![[r#"
        a update
        b update
        x update
          after a update: x refers to a through others
          after b update: x refers to b through others
    "#]],
    );
}

#[test]
fn families_are_hubs() {
    check(
        "web[0]: create\n web[1]: create\n all: create, wants web",
        expect![[r#"
            web[0] create
            web[1] create
            all create
              after web[0] create: all refers to web[0]
              after web[1] create: all refers to web[1]
        "#]],
    );
}

#[test]
fn forgetting_takes_part_in_the_order() {
    check(
        "a: forget\n b: orphan, used a",
        expect![[r#"
            b create
            b forget
              after b create: b is create-before-destroy: the old object goes last
            a forget
              after b forget: a goes only after b, which uses it
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
          "a create" -> "a destroy" [label = "a is made anew only after the old one is gone"];
          "w[\"x\"] update" -> "a create" [label = "w[\"x\"] refers to a"];
        }
    "#]]
    .assert_eq(&dot(&graph(SMALL)));
}

#[test]
fn mermaid_escapes_names() {
    expect![[r#"
        flowchart RL
          s1["a destroy"]
          s0["a create"]
          s2["w[#quot;x#quot;] update"]
          s0 -->|"a is made anew only after the old one is gone"| s1
          s2 -->|"w[#quot;x#quot;] refers to a"| s0
    "#]]
    .assert_eq(&mermaid(&graph(SMALL)));
}

#[test]
fn json_has_nodes_and_edges_as_documented() {
    let (graph, _) = situation("a: replace, cbd, leftover 8e7cdf03\n w[\"x\"]: update, wants a, used a").graph();
    let value: serde_json::Value = serde_json::from_str(&json(&graph)).unwrap();
    expect![[r#"
        {
          "edges": [
            {
              "because": "a is create-before-destroy: the old object goes last",
              "from": "a destroy",
              "to": "a create"
            },
            {
              "because": "the old a stays until w[\"x\"], which used it, has changed",
              "from": "a destroy",
              "to": "w[\"x\"] update"
            },
            {
              "because": "the leftover of a goes after a is as it should be",
              "from": "a destroy (deposed 8e7cdf03)",
              "to": "a create"
            },
            {
              "because": "the leftover a (deposed 8e7cdf03) goes after w[\"x\"], which uses a",
              "from": "a destroy (deposed 8e7cdf03)",
              "to": "w[\"x\"] update"
            },
            {
              "because": "w[\"x\"] refers to a",
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
