use std::sync::Mutex;

use axum::extract::Request;
use axum::response::IntoResponse as _;
use serde_json::json;

use super::*;
use api::PlanGraph;
use model::{Action, Change, Value};
use process::lock;

#[tokio::test]
async fn only_the_plans_of_an_object_are_read() {
    let value = |size: i64| Some(Value::map([("size", Value::from(size))]));
    let change = |name: &str| Change {
        before: value(1),
        after: value(2),
        ..Change::plain(Address::single(name), "terraform_data", Action::Update)
    };
    let status = published::status(usize::MAX, &[change("app"), change("other")], &[], PlanGraph::default());
    let plan = json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan", "metadata": {"name": "held"},
        "spec": {"digest": "0".repeat(64), "changes": []}, "status": status,
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
