//! A plan in a status: nothing sensitive is in it, and it has the same text as the plan.

use serde_json::json;

use super::*;
use crate::plan::render::{Detail, write_change};
use model::{Address, ChangeCause, Reason, ReplaceOrder, Text};

fn status(limit: usize, changes: &[Change], diagnostics: &[Diagnostic], graph: PlanGraph) -> PlanStatus {
    super::status(limit, changes, diagnostics, graph, &BTreeMap::new())
}

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
        because: Some(ChangeCause::Published("it must be".to_owned())),
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

fn step(id: &str) -> api::PlanStep {
    api::PlanStep {
        id: id.repeat(50),
        address: Address::single("a"),
        operation: model::Operation::Create,
        deposed_key: None,
        replaces: false,
    }
}

#[test]
fn the_largest_values_are_left_out_and_then_the_graph_and_changes_that_lose_nothing() {
    let text = |length: usize| value(json!({"text": "x".repeat(length)}));
    let mut changes: Vec<Change> =
        (0..20).map(|number| change(&format!("a{number}"), Action::Create, None, Some(text(100 * number)))).collect();
    changes.push(change("z", Action::Destroy, Some(text(10)), None));
    let graph = || PlanGraph { nodes: (0..20).map(|_| step("a")).collect(), edges: Vec::new() };
    let of = |limit| {
        let status = status(limit, &changes, &[], graph());
        assert!(size(&status) <= limit, "{} of {limit}", size(&status));
        assert_eq!(status.summary.as_ref().unwrap().create, 20, "the numbers remain");
        status
    };
    assert_eq!(of(1 << 20).omitted, None);
    let without_values = of(12_000);
    let omitted: Vec<bool> = without_values.changes.iter().map(|one| one.values_omitted).collect();
    assert!(!omitted[0] && omitted[19] && !omitted[20] && without_values.graph.is_some(), "{omitted:?}");
    let left = without_values.omitted.unwrap();
    assert!(left.values > 0 && left.changes == 0 && !left.graph, "{left:?}");
    assert!(
        without_values.changes.iter().all(|one| one.after.is_none() == (one.values_omitted || one.before.is_some()))
    );
    let without_graph = of(2_700);
    assert!(without_graph.omitted.unwrap().graph && without_graph.graph.is_none());
    assert_eq!(without_graph.changes.len(), 21);
    let cut = of(900);
    assert_eq!(cut.omitted.unwrap().changes + i32::try_from(cut.changes.len()).unwrap(), 21);
    assert!(cut.changes.iter().any(|one| one.action == Action::Destroy), "a destroy is shown before creates");
    let said = not_shown(&cut).join("\n");
    assert!(said.contains(" changes, and the order of the steps. The digest covers it"), "{said}");
    assert!(message("Plan: 20 to create", &cut).contains("not shown because of its size: "));
    assert_eq!(not_shown(&of(1 << 20)), Vec::<String>::new());
}

#[test]
fn thousands_of_messages_leave_room_for_changes() {
    let changes: Vec<Change> =
        (0..10).map(|number| change(&format!("a{number}"), Action::Create, None, None)).collect();
    let problem =
        |number: usize| Diagnostic::error(&Address::single(format!("b{number}")), Reason::InvalidConfig, "wrong");
    let problems: Vec<Diagnostic> = (0..10_000).map(problem).collect();
    let status = status(MAX_STATUS, &changes, &problems, PlanGraph::default());
    let left = status.omitted.unwrap();
    assert!(size(&status) <= MAX_STATUS && status.changes.len() == 10 && left.diagnostics > 0 && left.changes == 0);
}

#[test]
fn a_value_that_is_nested_too_deep_is_cut_and_the_change_says_so() {
    let deep = (0..90).fold(Value::from("x"), |inner, _| Value::map([("a", inner)]));
    let shallow = value(json!({"a": {"b": 1}}));
    let changes =
        [change("deep", Action::Create, None, Some(deep)), change("shallow", Action::Create, None, Some(shallow))];
    let status = status(MAX_STATUS, &changes, &[], PlanGraph::default());
    let json = serde_json::to_string(&status).unwrap();
    assert!(json.contains(TOO_DEEP));
    assert_eq!(serde_json::from_str::<PlanStatus>(&json).unwrap(), status);
    assert_eq!(status.changes.iter().map(|one| one.values_omitted).collect::<Vec<_>>(), [true, false]);
    assert_eq!(not_shown(&status)[1], "Changes whose values are not shown: deep.");
}

fn approval(count: usize) -> PlanStatus {
    use sha2::Digest as _;
    let changes = (0..count)
        .map(|number| api::ChangeDigest {
            address: Address::single(format!("resource-{number}")),
            action: Action::Update,
            digest: model::text::hex(&sha2::Sha256::digest(number.to_le_bytes())),
            unknown_paths: (0..number % 5).map(|place| Path::of(&["block"]).index(place)).collect(),
            applied: number.is_multiple_of(2),
        })
        .collect();
    let approvals = vec![api::RequiredApproval { digest: "d".to_owned(), changes }];
    PlanStatus { approvals, ..PlanStatus::default() }
}

#[test]
fn the_changes_of_a_large_approval_are_compressed_and_complete() {
    for (count, is_compressed) in [(100, false), (7_000, true), (10_000, true)] {
        let status = approval(count);
        let packed = pack(status.clone());
        assert_eq!(packed.approvals_zstd.is_some(), is_compressed);
        assert!(size(&packed) < MAX_APPROVALS + 1000);
        assert_eq!(unpack(packed), status);
    }
    let packed = pack(approval(30_000));
    assert_eq!((guarded_changes(&packed), size(&packed) < 300), (30_000, true), "the digest alone remains");
}

#[test]
fn a_refused_status_becomes_small_and_says_why() {
    let changes = [change("a", Action::Create, None, Some(value(json!({"a": 1}))))];
    let full =
        PlanStatus { approvals: approval(3).approvals, ..status(MAX_STATUS, &changes, &[], PlanGraph::default()) };
    let reduced = refused(&full, "too long", true);
    assert_eq!(reduced.approvals, full.approvals);
    assert!(reduced.changes.is_empty() && reduced.graph.is_none());
    assert_eq!(reduced.omitted.unwrap().changes, 1);
    assert_eq!(reduced.conditions[0].message, "the API server refused the list of the changes: too long");
    let smallest = refused(&full, "too long", false);
    assert!(smallest.approvals[0].changes.is_empty() && guarded_changes(&smallest) == 3);
}
