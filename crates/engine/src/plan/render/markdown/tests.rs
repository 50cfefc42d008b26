//! Plans as Markdown.

use expect_test::expect;
use serde_json::json;

use super::*;
use model::{Address, ChangeCause, Reason, ReplaceOrder, Value};

fn change(name: &str, action: Action, before: Option<serde_json::Value>, after: Option<serde_json::Value>) -> Change {
    let (before, after) = (before.map(Value::from_json), after.map(Value::from_json));
    Change { before, after, ..Change::plain(Address::single(name), "thing", action) }
}

#[test]
fn dangerous_changes_are_first() {
    let replaced = Change {
        order: Some(ReplaceOrder::DestroyFirst),
        because: Some(ChangeCause::Published("`size` has changed".to_owned())),
        ..change("database", Action::Replace, Some(json!({"size": 1})), Some(json!({"size": 2})))
    };
    let changes = [
        change("app", Action::Create, None, Some(json!({"image": "a", "count": 1}))),
        replaced,
        change("old", Action::Destroy, Some(json!({"size": 1})), None),
        change("site", Action::Update, Some(json!({"color": "red"})), Some(json!({"color": "blue"}))),
        change("kept", Action::NoOp, Some(json!({})), Some(json!({}))),
    ];
    let problem = Diagnostic::error(&Address::single("wrong"), Reason::InvalidConfig, "a value is missing");
    let text = markdown(&changes, &[problem.hint("set it")], "flowchart RL\n  s0[\"app create\"]\n");
    expect![[r####"
        ### Purlin: Plan: 1 to create, 1 to update, 1 to replace, 1 to destroy.

        > [!CAUTION]
        > Existing objects are destroyed:
        > - `old` will be destroyed
        > - `database` will be replaced: destroyed, then created

        - **Error**: wrong: a value is missing (hint: set it)

        | | Object | Type | Change | Reason |
        | --- | --- | --- | --- | --- |
        | `-` | `old` | `thing` | will be destroyed |  |
        | `-/+` | `database` | `thing` | will be replaced: destroyed, then created | `size` has changed |
        | `+` | `app` | `thing` | will be created |  |
        | `~` | `site` | `thing` | will be updated in place |  |

        <details><summary>- <code>old</code> will be destroyed</summary>

        ```diff
             # (1 more attribute; --full shows them)
        ```

        </details>

        <details><summary>-/+ <code>database</code> will be replaced: destroyed, then created</summary>

        ```diff
        !    size = 1 -> 2
        ```

        </details>

        <details><summary>+ <code>app</code> will be created</summary>

        ```diff
        +    count = 1
        +    image = "a"
        ```

        </details>

        <details><summary>~ <code>site</code> will be updated in place</summary>

        ```diff
        !    color = "red" -> "blue"
        ```

        </details>

        <details><summary>Order of the steps</summary>

        ```mermaid
        flowchart RL
          s0["app create"]
        ```

        </details>
    "####]]
    .assert_eq(&text);
}

#[test]
fn no_text_of_a_plan_becomes_markup() {
    let name = "a|b`c<script>@team#1*[x](y)\n\u{1b}[31m";
    let because = Some(ChangeCause::Published(format!("`in|code` and {name}")));
    let row = Change { because, ..change("a", Action::Create, None, Some(json!({ name: "```\n</details>" }))) };
    let text = markdown(&[Change { type_name: name.into(), ..row }], &[], "");
    expect![[r####"
        ### Purlin: Plan: 1 to create, 0 to update, 0 to replace, 0 to destroy.

        | | Object | Type | Change | Reason |
        | --- | --- | --- | --- | --- |
        | `+` | `a` | <code>a&#124;b&#96;c&#60;script&#62;&#64;team&#35;1&#42;&#91;x&#93;&#40;y&#41;&#59; &#92;u001b&#91;31m</code> | will be created | <code>in&#124;code</code> and a&#124;bc&lt;script&gt;&#64;team\#1\*\[x\](y); \\u001b\[31m |

        <details><summary>+ <code>a</code> will be created</summary>

        ````diff
        +    ["a|b`c<script>@team#1*[x](y)\n\u001b[31m"] = |
                 ```
                 </details>
                 # (no line break at the end)
        ````

        </details>
    "####]].assert_eq(&text);
}

#[test]
fn a_plan_without_changes_is_one_line() {
    assert_eq!(markdown(&[], &[], ""), "### Purlin: No changes: every object is up to date.\n");
}

#[test]
fn a_large_plan_fits_into_a_comment() {
    let large = json!({"text": "x\n".repeat(2_000)});
    for (count, is_large) in [(10, false), (3_000, true)] {
        let changes: Vec<Change> =
            (0..count).map(|n| change(&format!("a{n}"), Action::Destroy, Some(large.clone()), None)).collect();
        let text = markdown(&changes, &[], &"s0\n".repeat(30_000));
        assert!(text.len() <= MAX_SIZE + 1_000, "{}", text.len());
        assert!(text.contains("graph of the steps is too large"));
        assert_eq!(text.contains("differences are too large"), is_large, "{count}");
        assert_eq!(text.contains("| | and "), is_large, "{count}");
    }
}
