//! The two formats of a plan: text and JSON.

use expect_test::{Expect, expect};

use super::fixture::Fixture;
use crate::plan::Plan;
use crate::plan::render::problems::{self, write_concerned};
use crate::plan::render::summary::Counts;
use crate::plan::render::{self, Detail, is_shown, write_change, write_legend};
use model::Text;

const SITUATION: &str = "
    want new input=1 secret=7
    want changed input=2 ports=[1,3]
    have changed input=1 ports=[1,2]
    want replaced force=2 cbd
    have replaced force=1 cbd
    deposed replaced 1 id=older
    have gone input=1
    want blocked force=2 protect
    have blocked force=1 protect
    want same input=1
    have same input=1
    want noted input=1 protect
    have noted input=1";

/// The text as the command line prints it, without colors in the problems.
fn text(plan: &Plan, color: bool) -> String {
    let mut text = Text::new(color);
    write_legend(plan.changes(), &mut text);
    plan.changes()
        .filter(|change| is_shown(change))
        .for_each(|change| write_change(change, Detail::default(), &mut text));
    text.put(Counts::of(plan.changes(), &plan.diagnostics)).end_line();
    for problem in problems::collect(plan.changes(), &plan.diagnostics) {
        text.put(&problem.diagnostic).end_line();
        write_concerned(&problem, &mut text);
    }
    text.as_str().to_owned()
}

#[track_caller]
fn check(found: &str, expected: &Expect) {
    expected.assert_eq(found);
}

#[test]
fn the_text_has_signs_fields_reasons_and_a_summary() {
    check(
        &text(&Fixture::parse(SITUATION).plan(), false),
        &expect![[r#"
              + create
              ~ update in place
            +/- replace: create, then destroy
              - destroy
              . only the record changes, not the object

              # changed will be updated in place
              ~ thing changed
                    id     = "CHANGED"
                  ~ input  = 1 -> 2
                  + output = (known after apply)
                  ~ ports  = [
                        1
                      - 2
                      + 3
                    ]

              # gone will be destroyed (no longer configured)
              - thing gone
                  - id = "GONE"
                    # (1 more attribute; --full shows them)

              # new will be created
              + thing new
                  + id     = (known after apply)
                  + input  = 1
                  + output = (known after apply)
                  + secret = (sensitive value)

              # noted is unchanged; only its record is updated (`preventDestroy` changed)

              # replaced must be replaced: created, then destroyed
            +/- thing replaced
                  ~ force  = 1 -> 2 # forces replacement
                  ~ id     = "REPLACED" -> (known after apply)
                  + output = (known after apply)

              # replaced (deposed 00000001) will be destroyed (deposed by a replacement)
              - thing replaced (deposed 00000001)
                  - id = "older"

            Plan: 1 to create, 1 to update, 1 to replace, 2 to destroy. 1 object has errors.
            blocked: the object must be replaced, but `preventDestroy` forbids destroying it: `force` cannot be changed in place (hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect blocked` to destroy it without its manifest)
        "#]],
    );
}

#[test]
fn colors_do_not_change_the_text() {
    let plan = Fixture::parse(SITUATION).plan();
    let (plain, mut colored) = (text(&plan, false), text(&plan, true));
    for code in ["32", "33", "31", "2", "1", "0"] {
        colored = colored.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(plain, colored);
}

#[test]
fn a_plan_without_changes_says_so() {
    let text = text(&Fixture::parse("want a\nhave a").plan(), false);
    check(
        &text,
        &expect![[r#"
            No changes: every object is up to date.
        "#]],
    );
}

#[expect(clippy::too_many_lines, reason = "one plan with every kind of change, and its text")]
#[test]
fn the_json_has_the_documented_format() {
    let plan = Fixture::parse(SITUATION).plan();
    let mut written = Vec::new();
    render::json::write(&plan, &serde_json::json!({"nodes": [], "edges": []}), &mut written).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&written).unwrap();
    check(
        &serde_json::to_string_pretty(&value).unwrap(),
        &expect![[r#"
            {
              "changes": [
                {
                  "action": "Blocked",
                  "address": "blocked",
                  "after": null,
                  "afterUnknown": {},
                  "before": {
                    "force": 1,
                    "id": "BLOCKED"
                  },
                  "deposedKey": null,
                  "imported": false,
                  "order": null,
                  "reason": "PreventDestroy",
                  "replacePaths": [],
                  "type": "thing"
                },
                {
                  "action": "Update",
                  "address": "changed",
                  "after": {
                    "id": "CHANGED",
                    "input": 2,
                    "ports": [
                      1,
                      3
                    ]
                  },
                  "afterUnknown": {
                    "output": true
                  },
                  "before": {
                    "id": "CHANGED",
                    "input": 1,
                    "ports": [
                      1,
                      2
                    ]
                  },
                  "deposedKey": null,
                  "imported": false,
                  "order": null,
                  "reason": "",
                  "replacePaths": [],
                  "type": "thing"
                },
                {
                  "action": "Destroy",
                  "address": "gone",
                  "after": null,
                  "afterUnknown": {},
                  "before": {
                    "id": "GONE",
                    "input": 1
                  },
                  "deposedKey": null,
                  "imported": false,
                  "order": null,
                  "reason": "no longer configured",
                  "replacePaths": [],
                  "type": "thing"
                },
                {
                  "action": "Create",
                  "address": "new",
                  "after": {
                    "input": 1,
                    "secret": {
                      "sensitive": true
                    }
                  },
                  "afterUnknown": {
                    "id": true,
                    "output": true
                  },
                  "before": null,
                  "deposedKey": null,
                  "imported": false,
                  "order": null,
                  "reason": "",
                  "replacePaths": [],
                  "type": "thing"
                },
                {
                  "action": "Record",
                  "address": "noted",
                  "after": {
                    "id": "NOTED",
                    "input": 1
                  },
                  "afterUnknown": {},
                  "before": {
                    "id": "NOTED",
                    "input": 1
                  },
                  "deposedKey": null,
                  "imported": false,
                  "order": null,
                  "reason": "`preventDestroy` changed",
                  "replacePaths": [],
                  "type": "thing"
                },
                {
                  "action": "Replace",
                  "address": "replaced",
                  "after": {
                    "force": 2
                  },
                  "afterUnknown": {
                    "id": true,
                    "output": true
                  },
                  "before": {
                    "force": 1,
                    "id": "REPLACED"
                  },
                  "deposedKey": null,
                  "imported": false,
                  "order": "CreateFirst",
                  "reason": "attributes force replacement",
                  "replacePaths": [
                    "force"
                  ],
                  "type": "thing"
                },
                {
                  "action": "Destroy",
                  "address": "replaced",
                  "after": null,
                  "afterUnknown": {},
                  "before": {
                    "id": "older"
                  },
                  "deposedKey": "00000001",
                  "imported": false,
                  "order": null,
                  "reason": "deposed by a replacement",
                  "replacePaths": [],
                  "type": "thing"
                },
                {
                  "action": "NoOp",
                  "address": "same",
                  "after": {
                    "id": "SAME",
                    "input": 1
                  },
                  "afterUnknown": {},
                  "before": {
                    "id": "SAME",
                    "input": 1
                  },
                  "deposedKey": null,
                  "imported": false,
                  "order": null,
                  "reason": "",
                  "replacePaths": [],
                  "type": "thing"
                }
              ],
              "diagnostics": [
                {
                  "address": "blocked",
                  "detail": "hint: set `spec.lifecycle.preventDestroy: false`, or run `purlin state unprotect blocked` to destroy it without its manifest",
                  "severity": "error",
                  "summary": "the object must be replaced, but `preventDestroy` forbids destroying it: `force` cannot be changed in place"
                }
              ],
              "formatVersion": "1",
              "graph": {
                "edges": [],
                "nodes": []
              }
            }"#]],
    );
}

#[test]
fn neither_text_nor_json_shows_a_sensitive_value() {
    let plan = Fixture::parse("want a secret=hunter2\nhave a secret=letmein input=1").plan();
    let text = text(&plan, false);
    let mut written = Vec::new();
    render::json::write(&plan, &(), &mut written).unwrap();
    let all = text + &String::from_utf8(written).unwrap();
    assert!(!all.contains("hunter2") && !all.contains("letmein"), "{all}");
}

#[test]
fn the_headline_counts_imports() {
    let headline = |situation: &str| {
        let plan = Fixture::parse(situation).plan();
        Counts::of(plan.changes(), &plan.diagnostics).to_string()
    };
    assert_eq!(
        headline("want a input=1 import=X\nwant b input=1"),
        "Plan: 1 to import, 1 to create, 0 to update, 0 to replace, 0 to destroy."
    );
    let plan = Fixture::parse("want a input=1 import=X").plan();
    let import = Counts::of(plan.changes(), &plan.diagnostics);
    assert_eq!(import.to_string(), "Plan: 1 to import, 0 to create, 0 to update, 0 to replace, 0 to destroy.");
    assert_eq!(import.changes, 1, "as in OpenTofu, a plan that only imports is not empty");
    assert_eq!(headline("want a input=1\nhave a input=1 matching"), "No changes: every object is up to date.");
}
