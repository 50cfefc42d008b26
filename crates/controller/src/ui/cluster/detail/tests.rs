use std::sync::Mutex;

use axum::extract::Request;
use axum::response::IntoResponse as _;
use serde_json::json;

use super::*;
use api::PlanGraph;
use engine::load::Config;
use engine::plan::Plan;
use engine::plan::approval::{Approvals, Digester};
use model::{Action, ApprovalKind, Change, Recorded, Value};
use process::lock;

#[tokio::test]
async fn only_the_plans_of_an_object_are_read() {
    let value = |size: i64| Some(Value::map([("size", Value::from(size))]));
    let change = |name: &str| Change {
        before: value(1),
        after: value(2),
        ..Change::plain(Address::single(name), "terraform_data", Action::Update)
    };
    let planned = Plan::from_iter([change("app"), change("other")]);
    let required = [ApprovalKind::Update].into_iter().collect();
    let approvals = Approvals { required, ..Approvals::default() };
    let names = ["app".into(), "other".into()].into();
    let guarded = approvals
        .guarded(&Digester::new(b"salt", &planned, &Config::default(), &Value::Null), &Recorded::new(), &names)
        .unwrap();
    let proofs = guarded.proofs().collect();
    let mut status = published::status(usize::MAX, planned.changes(), &[], PlanGraph::default(), &proofs);
    status.approvals = vec![guarded.published()];
    let plan = json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan", "metadata": {"name": "held"},
        "spec": {"digest": guarded.digest}, "status": status,
    });
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&requests);
    let answer = move |request: Request| {
        lock(&seen).push(request.uri().to_string());
        let plan = plan.to_string();
        async move { ([("content-type", "application/json")], plan).into_response() }
    };
    let client = Client::new(axum::Router::new().fallback(answer), "default");
    let reader = Reader { client: &client, records: &"purlin-system".into(), namespace: "shop" };
    let diffs = reader.diffs(&Address::single("app"), &["held".to_owned()]).await;
    assert_eq!(diffs.len(), 1);
    assert!(diffs[0].plan == "held" && diffs[0].text.contains("~ size = 1 -> 2"), "{}", diffs[0].text);
    assert_eq!(*lock(&requests), ["/apis/purlin.dev/v1alpha1/namespaces/shop/plans/held"]);
    let many: Vec<String> = (0..100).map(|number| format!("held-{number}")).collect();
    reader.diffs(&Address::single("app"), &many).await;
    assert_eq!(lock(&requests).len(), 1 + MAX_PLANS);
}

/// Its status was written by someone else.
#[tokio::test]
async fn a_plan_that_shows_other_changes_than_those_of_its_digest_shows_none() {
    let change = json!({"address": "app", "action": "Update", "digest": "0".repeat(64)});
    let digest = engine::plan::approval::digest_of([&serde_json::from_value(change.clone()).unwrap()]);
    let shown = json!({"address": "app", "type": "terraform_data", "action": "Update", "after": {"size": 2}});
    let plan = json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan", "metadata": {"name": "held"}, "spec": {"digest": digest},
        "status": {
            "result": "Changes", "changes": [shown], "approvals": [{"digest": digest, "changes": [change]}],
        },
    });
    let answer = move |_: Request| {
        let plan = plan.to_string();
        async move { ([("content-type", "application/json")], plan).into_response() }
    };
    let client = Client::new(axum::Router::new().fallback(answer), "default");
    let reader = Reader { client: &client, records: &"purlin-system".into(), namespace: "shop" };
    let detail = reader.plan("held").await.unwrap();
    assert!(detail.changes.is_empty(), "{:?}", detail.changes.iter().map(|change| &change.text).collect::<Vec<_>>());
    assert!(detail.problems[0].contains("shows a change of `app` that is not the one"), "{:?}", detail.problems);
    assert!(reader.diffs(&Address::single("app"), &["held".to_owned()]).await.is_empty());
}
