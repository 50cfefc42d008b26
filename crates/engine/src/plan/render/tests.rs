//! Differences of single values.

use expect_test::{Expect, expect};
use serde_json::json;

use super::{Detail, nodes, tree};
use model::{Action, Address, Change, Drift, Path, Text, Value};

fn change(before: Value, after: Value) -> Change {
    Change { before: Some(before), after: Some(after), ..Change::plain(Address::single("a"), "thing", Action::Update) }
}

/// The lines without the indentation that they have in common, which `expect!` removes too.
fn rendered(change: &Change, full: bool) -> String {
    let mut text = Text::new(false);
    tree::write(&nodes(change, Detail { full }), 0, &mut text);
    text.as_str().lines().map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line))).collect()
}

#[track_caller]
fn check(before: serde_json::Value, after: serde_json::Value, expected: &Expect) {
    expected.assert_eq(&rendered(&change(Value::from_json(before), Value::from_json(after)), false));
}

#[test]
fn lists_are_compared_by_content() {
    check(
        json!({"a": ["b", "c", "d", "e", "f", "g"], "m": [{"name": "x", "v": 1}, {"name": "y", "v": 1}]}),
        json!({"a": ["a", "b", "c", "d", "f", "g"], "m": [{"name": "y", "v": 2}]}),
        &expect![[r#"
              ~ a = [
                  + "a"
                    "b"
                    # (1 unchanged item)
                    "d"
                  - "e"
                    "f"
                    # (1 unchanged item)
                ]
              ~ m = [
                  - {
                      - name = "x"
                      - v    = 1
                    }
                  ~ {
                        name = "y"
                      ~ v    = 1 -> 2
                    }
                ]
        "#]],
    );
}

#[test]
fn only_the_lines_around_a_change_are_shown() {
    let lines = |changed: &str| {
        (1..=20).map(|n| if n == 10 { changed.to_owned() } else { format!("{n}\n") }).collect::<String>()
    };
    check(
        json!({"a": lines("ten\n")}),
        json!({"a": lines("10\nplus\n")}),
        &expect![[r#"
          ~ a = |
                # (6 unchanged lines)
                7
                8
                9
              - ten
              + 10
              + plus
                11
                12
                13
                # (7 unchanged lines)
    "#]],
    );
    check(
        json!({"a": "x\ny"}),
        json!({"a": "x\ny\n"}),
        &expect![[r#"
          ~ a = |
                x
              - y
              + y
                # (a line break is added at the end)
    "#]],
    );
}

#[test]
fn json_in_strings_is_compared_by_structure() {
    check(
        json!({"p": r#"{"v":1,"list":["a","b"],"big":12345678901234567890123}"#}),
        json!({"p": r#"{"v":1,"list":["b"],"big":12345678901234567890124}"#}),
        &expect![[r#"
              ~ p = json.marshal({
                  ~ big  = 12345678901234567890123 -> 12345678901234567890124
                  ~ list = [
                      - "a"
                        "b"
                    ]
                    # (1 unchanged entry)
                })
        "#]],
    );
    check(
        json!({"p": r#"{"v": 1}"#}),
        json!({"p": r#"{"v":1}"#}),
        &expect![[r#"
          ~ p = "{\"v\": 1}" -> "{\"v\":1}"
    "#]],
    );
    check(
        json!({"p": null}),
        json!({"p": r#"[{"v":1}]"#}),
        &expect![[r#"
          + p = json.marshal([
              + {
                  + v = 1
                }
            ])
    "#]],
    );
}

#[test]
fn values_of_other_types_are_shown_before_and_after() {
    check(
        json!({"a": "80", "b": "x", "c": {"k": 1}, "d": {"e": null, "f": 1}, "g": [], "h": "one\ntwo\n"}),
        json!({"a": 80, "b": ["x", {"y": 1}], "c": "k", "d": {"e": 1, "f": null}, "g": {}, "h": 2}),
        &expect![[r#"
              ~ a = "80" -> 80
              - b = "x"
              + b = [
                  + "x"
                  + {
                      + y = 1
                    }
                ]
              - c = {
                  - k = 1
                }
              + c = "k"
              ~ d = {
                  ~ e = null -> 1
                  ~ f = 1 -> null
                }
              ~ g = [] -> {}
              - h = |
                    one
                    two
              + h = 2
        "#]],
    );
}

#[test]
fn replacements_name_the_attribute_that_forces_them() {
    let before = json!({"name": "a", "rule": [{"port": 1}, {"port": 2}], "zone": {"a": 1}, "tags": ["x"], "same": 1});
    let after = json!({"name": "b", "rule": [{"port": 1}, {"port": 3}], "zone": {"a": 2}, "tags": ["x"], "same": 1});
    let replace_paths = ["name", "rule[1].port", "zone", "same"].map(|path| path.parse().unwrap()).to_vec();
    let change = Change { replace_paths, ..change(Value::from_json(before), Value::from_json(after)) };
    expect![[r#"
          ~ name = "a" -> "b" # forces replacement
          ~ rule = [
                # (1 unchanged item)
              ~ {
                  ~ port = 2 -> 3 # forces replacement
                }
            ]
            same = 1 # forces replacement
          ~ zone = { # forces replacement
              ~ a = 1 -> 2
            }
            # (1 unchanged attribute)
    "#]]
    .assert_eq(&rendered(&change, false));
}

#[test]
fn drift_is_shown_at_the_attribute() {
    let drift = Some(Drift::Changed(vec![Path::of(&["text"])]));
    let change =
        Change { drift, ..change(Value::from_json(json!({"text": "x"})), Value::from_json(json!({"text": "y"}))) };
    expect![[r#"
          ~ text = "x" -> "y" # changed outside of Purlin
    "#]]
    .assert_eq(&rendered(&change, false));
}

#[test]
fn long_strings_are_cut_around_their_first_difference() {
    let long = "x".repeat(1_000);
    check(
        json!({"a": format!("{long}1"), "b": "short"}),
        json!({"a": format!("{long}22"), "b": long}),
        &expect![[r#"
          ~ a = …"xxxxxxxxxxxxxxxxxxxx1" (1,001 characters) -> …"xxxxxxxxxxxxxxxxxxxx22" (1,002 characters)
          ~ b = "short" -> "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… (1,000 characters)
    "#]],
    );
    let whole = change(Value::from_json(json!({"a": "b"})), Value::from_json(json!({"a": long})));
    assert!(rendered(&whole, true).contains(&long));
}

#[test]
fn a_secret_is_shown_in_no_difference() {
    let secret = || Value::from("correct-horse");
    let marked = || secret().into_sensitive();
    let of = |value: Value| Value::map([("a", value), ("id", Value::from("1"))]);
    let list = |items: Vec<Value>| of(Value::list(items));
    let text = |text: &str| Value::from(text);
    let pairs = [
        (of(secret()), of(marked())),
        (of(marked()), of(secret())),
        (of(text("x")), of(marked())),
        (of(Value::list([secret(), marked()])), of(text("x"))),
        // The secret moves within a list, alone and in a map.
        (list(vec![secret(), text("b")]), list(vec![text("b"), marked()])),
        (list(vec![text("a"), marked()]), list(vec![secret(), text("c")])),
        (list(vec![of(secret())]), list(vec![text("b"), of(marked())])),
        // It is a part of another string, or of JSON in one.
        (of(marked()), of(Value::map([("url", text("db://app:correct-horse@host")), ("p", marked())]))),
        (
            of(Value::map([("json", text(r#"{"p":"correct-horse","v":1}"#)), ("p", marked())])),
            of(Value::map([("json", text(r#"{"p":"correct-horse","v":2}"#)), ("p", marked())])),
        ),
        (
            of(Value::map([("lines", text("a\ncorrect-horse\n")), ("p", marked())])),
            of(Value::map([("lines", text("b\ncorrect-horse\n")), ("p", marked())])),
        ),
        (of(text(r#"{"p":"x"}"#).into_sensitive()), of(text(r#"{"p":"correct-horse"}"#).into_sensitive())),
    ];
    for (before, after) in pairs {
        for full in [false, true] {
            for action in [Action::Update, Action::Replace, Action::Create, Action::Destroy, Action::Record] {
                let change = Change { action, ..change(before.clone(), after.clone()) };
                let text = rendered(&change, full);
                // Without a new value, an object is shown as it was recorded.
                let is_recorded_open = action == Action::Destroy && !change.before.as_ref().unwrap().has_sensitive();
                assert!(is_recorded_open || !text.contains("correct-horse"), "{action:?} {full}: {text}");
            }
        }
    }
}
