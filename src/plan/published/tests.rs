//! A plan in a status: nothing sensitive is in it, and it has the same text as the plan.

use serde_json::json;

use super::*;
use crate::model::{Address, Reason, ReplaceOrder, Text};
use crate::plan::render::{Detail, write_change};

fn change(name: &str, action: Action, before: Option<Value>, after: Option<Value>) -> Change {
    Change { before, after, ..Change::plain(Address::single(name), "thing", action) }
}

fn value(json: serde_json::Value) -> Value {
    Value::from_json(json)
}

fn secret(text: &str) -> Value {
    Value::from(text).into_sensitive()
}

/// An object with a sensitive attribute, which also occurs in another one.
fn with_secret(password: &str) -> Value {
    let url = Value::from(format!("https://user:{password}@host").as_str());
    value(json!({"size": 1, "tags": ["a", "b"], "nothing": null, "nested": {"nothing": null, "id": 1}}))
        .with("password", secret(password))
        .with("url", url)
}

fn text(change: &Change) -> String {
    let mut text = Text::new(false);
    write_change(change, Detail::default(), &mut text);
    text.as_str().to_owned()
}

#[test]
fn a_status_has_the_text_of_the_plan_and_no_sensitive_value() {
    let after = with_secret("new-password").with("size", Value::Unknown).with("id", Value::Unknown);
    let replaced = Change {
        order: Some(ReplaceOrder::CreateFirst),
        replace_paths: vec![Path::of(&["size"])],
        because: Some("it must be".to_owned()),
        ..change("a", Action::Replace, Some(with_secret("old-password")), Some(after))
    };
    let same = with_secret("old-password").with("size", Value::from(2));
    let changes = [
        replaced,
        change("b", Action::Update, Some(with_secret("old-password")), Some(same)),
        change("c", Action::Create, None, Some(with_secret("new-password"))),
        change("d", Action::Destroy, Some(with_secret("old-password")), None),
        change("e", Action::NoOp, Some(with_secret("old-password")), Some(with_secret("old-password"))),
    ];
    let status = status(MAX_STATUS, &changes, &[], PlanGraph::default());
    let json = serde_json::to_string(&status).unwrap();
    assert!(!json.contains("password@") && !json.contains("-password"), "{json}");
    assert!(!json.contains("null"), "a merge patch would remove it");
    let received: PlanStatus = serde_json::from_str(&json).unwrap();
    assert_eq!(received, status);
    let (restored, _) = read(&received);
    let shown: Vec<&Change> = changes.iter().filter(|change| is_shown(change)).collect();
    assert_eq!(restored.len(), shown.len());
    for (restored, original) in restored.iter().zip(shown) {
        // A string with a secret in it is masked as a whole.
        let masked = text(original);
        let expected: Vec<&str> = masked.lines().filter(|line| !line.contains("url")).collect();
        let found = text(restored);
        assert_eq!(found.lines().filter(|line| !line.contains("url")).collect::<Vec<_>>(), expected);
    }
    assert_eq!(status.changes[0].changed_sensitive_paths, [Path::of(&["password"]), Path::of(&["url"])]);
    assert_eq!(status.changes[1].changed_sensitive_paths, []);
}

#[test]
fn a_value_that_is_sensitive_in_one_version_is_masked_in_both() {
    let before = value(json!({"token": "first", "list": ["x", "second"], "map": {"a": "third"}}));
    let list = Value::list([secret("second"), Value::from("y")]);
    let map = Value::map([("a", secret("third"))]);
    let after = before.clone().with("token", secret("first")).with("list", list).with("map", map);
    let status =
        status(MAX_STATUS, &[change("a", Action::Update, Some(before), Some(after))], &[], PlanGraph::default());
    let json = serde_json::to_string(&status).unwrap();
    for hidden in ["first", "second", "third"] {
        assert!(!json.contains(hidden), "{json}");
    }
}

#[test]
fn the_result_and_the_diagnostics_are_kept() {
    let source = Source { file: "manifests".into(), line: 7 };
    let problem = Diagnostic::error(&Address::single("a"), Reason::InvalidConfig, "it is wrong");
    let problem = problem.at(Path::of(&["spec", "config"])).from_source(Some(source)).because("so").hint("correct it");
    let created = change("b", Action::Create, None, Some(value(json!({"a": 1}))));
    let outcome = |changes: &[Change], problems: &[Diagnostic]| {
        let status = status(MAX_STATUS, changes, problems, PlanGraph::default());
        assert_eq!(read(&status).1, problems);
        status.result.unwrap()
    };
    assert_eq!(outcome(&[], &[]), PlanOutcome::NoChanges);
    assert_eq!(outcome(std::slice::from_ref(&created), &[]), PlanOutcome::Changes);
    assert_eq!(outcome(std::slice::from_ref(&created), std::slice::from_ref(&problem)), PlanOutcome::Errors);
    let status = status(MAX_STATUS, &[created], &[problem], PlanGraph::default());
    assert_eq!((status.summary.unwrap().create, status.diagnostics[0].line), (1, Some(7)));
}

#[test]
fn values_and_then_the_graph_are_left_out_of_a_large_status() {
    let large = || value(json!({"text": "x".repeat(1000)}));
    let changes: Vec<Change> =
        (0..20).map(|number| change(&format!("a{number}"), Action::Create, None, Some(large()))).collect();
    let step = |id: &str| crate::api::PlanStep {
        id: id.repeat(50),
        address: Address::single("a"),
        operation: crate::model::Operation::Create,
        deposed_key: None,
        replaces: false,
    };
    let graph = || PlanGraph { nodes: (0..20).map(|_| step("a")).collect(), edges: Vec::new() };
    let of = |limit| status(limit, &changes, &[], graph());
    assert_eq!(of(1 << 20).omitted, None);
    let without_values = of(10_000);
    assert_eq!(without_values.omitted, Some(Omitted::Values));
    assert!(without_values.graph.is_some() && without_values.changes.iter().all(|one| one.after.is_none()));
    let without_graph = of(2_500);
    assert!(without_graph.omitted == Some(Omitted::Graph) && without_graph.graph.is_none());
    assert_eq!(without_graph.changes.len(), 20);
    let cut = of(700);
    assert!(cut.changes.len() < 20 && size(&cut) <= 700);
    assert_eq!(cut.summary.unwrap().create, 20, "the numbers remain");
}
