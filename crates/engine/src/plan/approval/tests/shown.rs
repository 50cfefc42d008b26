//! What a Plan shows is what its digest covers.

use serde_json::json;

use super::*;
use crate::plan::approval::shown::{Coverage, Mismatch, coverage, provable};
use crate::plan::published;
use api::{PlanGraph, PlanSpec, PlanStatus};

fn value(json: serde_json::Value) -> Value {
    Value::from_json(json)
}

/// The Plan of a change of `a` that waits, as a client reads it, with a status of at most `limit` bytes.
fn offered(limit: usize, change: &Change) -> (PlanSpec, PlanStatus) {
    offered_with(limit, change, &Plan::default())
}

fn offered_with(limit: usize, change: &Change, plan: &Plan) -> (PlanSpec, PlanStatus) {
    let (digest, proof) = Digester::new(b"s", plan, &Config::default(), &Value::Null).change(change);
    let other = Change { address: Address::single("other"), ..update(1, 2) };
    let proofs = BTreeMap::from([(&digest.address, &proof)]);
    let mut status = published::status(limit, &[change.clone(), other], &[], PlanGraph::default(), &proofs);
    let all = digest_of([&digest]);
    status.approvals = vec![RequiredApproval { digest: all.clone(), changes: vec![digest.clone()] }];
    let json = serde_json::to_string(&status).unwrap();
    (PlanSpec { digest: Some(all), ..PlanSpec::default() }, serde_json::from_str(&json).unwrap())
}

fn secret(text: &str) -> Value {
    Value::from(text).into_sensitive()
}

/// One change of each kind that a status shows differently.
fn changes() -> Vec<Change> {
    let before = value(json!({
        "id": "i-1", "size": 1, "tags": ["a", null, "b"], "ratio": 0.1, "large": 1.5e300, "url": "https://x:old@y",
    }));
    let before = before.with("password", secret("old"));
    let after =
        value(json!({"size": 2, "tags": ["a"], "ratio": 1.0, "large": 18_446_744_073_709_551_615_u64, "on": true}));
    let after = after.with("id", Value::Unknown).with("password", secret("new")).with("url", "https://x:new@y".into());
    let mut deep = json!("end");
    for _ in 0..60 {
        deep = json!({ "in": deep });
    }
    let of = |action| change(action, Some(before.clone()), Some(after.clone()));
    vec![
        of(Action::Update),
        Change { order: Some(ReplaceOrder::CreateFirst), forget: true, ..of(Action::Replace) },
        change(Action::Create, None, Some(after)),
        change(Action::Destroy, Some(before), None),
        change(Action::Update, Some(value(json!({"deep": 1}))), Some(value(json!({ "deep": deep })))),
    ]
}

#[test]
fn what_the_controller_shows_is_covered() {
    for change in changes() {
        for limit in [usize::MAX, 0, 1500] {
            let (spec, status) = offered(limit, &change);
            let covered = coverage(&spec, &status).unwrap_or_else(|_| panic!("{status:#?}"));
            let is_shown = status.changes.iter().any(|change| change.address == Address::single("a"));
            assert_eq!(covered.not_shown.is_empty(), is_shown);
            assert!(!covered.unlisted && covered.not_covered.iter().all(|one| *one == Address::single("other")));
        }
    }
}

/// Where a status shows a change of `a` that is not the one of the digest.
fn found(spec: &PlanSpec, status: &PlanStatus) -> bool {
    coverage(spec, status) == Err(Mismatch::Change(Address::single("a")))
}

#[test]
fn a_status_that_shows_another_change_than_its_digest_is_found() {
    let (spec, honest) = offered(usize::MAX, &changes()[1]);
    let forge = |with: &dyn Fn(&mut api::PlannedChange)| {
        let mut status = honest.clone();
        with(&mut status.changes[0]);
        assert_ne!(status, honest);
        assert!(found(&spec, &status), "{:#?}", status.changes[0]);
    };
    forge(&|change| change.action = Action::Update);
    forge(&|change| change.order = Some(ReplaceOrder::DestroyFirst));
    forge(&|change| change.forget = false);
    forge(&|change| change.type_name = "other".to_owned());
    forge(&|change| change.proof = None);
    forge(&|change| change.proof.as_mut().unwrap().sealed = "0".repeat(64));
    forge(&|change| change.before.as_mut().unwrap()["id"] = json!("i-2"));
    forge(&|change| change.before.as_mut().unwrap()["size"] = json!(2));
    for (name, other) in [
        ("size", json!(3)),
        ("size", json!("2")),
        ("size", json!("(known after apply)")),
        ("tags", json!(["a", null, "b"])),
        ("on", json!(false)),
        ("ratio", json!(0.2)),
        ("added", json!({})),
    ] {
        forge(&|change| {
            change.after.as_mut().unwrap()[name] = other.clone();
            change.unknown_paths.clear();
        });
    }
    forge(&|change| change.unknown_paths.push(Path::of(&["size"])));
    forge(&|change| change.sensitive_paths.push(Path::of(&["size"])));
    forge(&|change| change.sensitive_paths.clear());
    forge(&|change| change.changed_sensitive_paths.clear());
    forge(&|change| (change.before, change.after, change.values_omitted) = (None, None, true));
    // A second one beside the true one.
    let mut status = honest.clone();
    let mut other = status.changes[0].clone();
    other.action = Action::Update;
    status.changes.push(other);
    assert!(found(&spec, &status));
}

#[test]
fn what_a_status_does_not_show_is_said() {
    let (spec, mut status) = offered(usize::MAX, &update(1, 2));
    let other = Address::single("other");
    assert_eq!(coverage(&spec, &status), Ok(Coverage { not_covered: vec![other], ..Coverage::default() }));
    let mut renamed = status.clone();
    renamed.changes[0].address = Address::single("other");
    assert_eq!(coverage(&spec, &renamed), Err(Mismatch::List), "it hides the true change");
    status.changes.clear();
    assert_eq!(coverage(&spec, &status), Err(Mismatch::List));
    status.omitted = Some(api::Omitted { changes: 2, ..api::Omitted::default() });
    let sentences = coverage(&spec, &status).unwrap().sentences();
    assert_eq!(sentences, ["The digest also covers changes that are not shown: the update of a."]);
    status.approvals[0].changes.clear();
    // Only a list that is too large is left out.
    assert_eq!(coverage(&spec, &status), Err(Mismatch::List));
    status.omitted = Some(api::Omitted { approvals: 1, ..api::Omitted::default() });
    let unlisted = coverage(&spec, &status).unwrap();
    assert!(unlisted.unlisted && unlisted.sentences()[0].contains("does not list the changes"), "{unlisted:?}");
    status.approvals.clear();
    assert_eq!(coverage(&spec, &status).unwrap(), unlisted);
    let (_, other) = offered(usize::MAX, &update(1, 3));
    assert_eq!(coverage(&spec, &other), Err(Mismatch::List));
}

/// The digest leaves open what an unknown value becomes, so no value is shown there.
#[test]
fn a_value_in_the_place_of_an_unknown_one_is_not_shown() {
    let (spec, mut status) = offered(usize::MAX, &update(1, Value::Unknown));
    status.changes[0].after.as_mut().unwrap()["size"] = json!("harmless");
    status.changes[0].unknown_paths.clear();
    let (shown, _) = provable(&spec, status).unwrap();
    let (changes, _) = published::read(&shown);
    assert_eq!(changes[0].after.as_ref().unwrap().get("size"), Some(&Value::Unknown));
}

/// The values that are left out have the digest that the proof names.
#[test]
fn the_kind_of_a_change_without_values_is_covered() {
    let large = |text: &str| value(json!({ "text": text.repeat(9000) }));
    let (spec, mut status) = offered(6000, &change(Action::Update, Some(large("a")), Some(large("b"))));
    assert!(status.changes[0].values_omitted && coverage(&spec, &status).is_ok(), "{status:#?}");
    let honest = status.clone();
    status.changes[0].after = Some(json!({"text": "harmless"}));
    assert!(found(&spec, &status));
    status.changes[0] = api::PlannedChange { action: Action::Create, ..honest.changes[0].clone() };
    assert!(found(&spec, &status));
}

#[test]
fn the_random_part_of_a_name_is_a_placeholder_and_nothing_else_is() {
    let name = format!("db-{}", generated_suffix([7; 16]));
    let created = change(Action::Create, None, Some(object(&[("name", Value::from(name.as_str()))])));
    let plan = prepared_plan(PreparedStep { entropy: [7; 16], ..prepared(Value::Null) });
    let (spec, mut status) = offered_with(usize::MAX, &created, &plan);
    assert!(coverage(&spec, &status).is_ok());
    status.changes[0].proof.as_mut().unwrap().generated = vec!["production".to_owned()];
    status.changes[0].after = Some(json!({"name": "db-production"}));
    assert!(found(&spec, &status));
}

#[test]
fn an_unknown_value_may_become_null() {
    let approved = digest(b"s", &update(1, Value::Unknown));
    let guarded = guarded(vec![approved], update(1, Value::Null), &Config::default(), &Recorded::new()).unwrap();
    assert!(guarded.held().is_none());
}
