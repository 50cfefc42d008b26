use std::sync::Mutex;

use axum::extract::Request;
use axum::response::IntoResponse as _;
use serde_json::json;

use super::super::RunnerSettings;
use super::*;
use process::{SystemClock, lock};

/// A request: method, path with query, and the accepted form.
type Seen = (String, String, String);

fn pod(name: &str, controller: &str) -> Json {
    json!({"metadata": {"name": name, "uid": format!("uid of {name}"), "labels": {CONTROLLER: controller}}})
}

/// An API server with the Pods of two pages, which records its requests.
fn pods(requests: &Arc<Mutex<Vec<Seen>>>) -> Arc<RunnerPods> {
    let requests = Arc::clone(requests);
    let mut ending = pod("ending", "other");
    ending["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
    let first = json!({"metadata": {"continue": "more"}, "items": [pod("left", "other"), pod("own", "this"), ending]});
    let second = json!({"metadata": {"continue": ""}, "items": [pod("also-left", "another")]});
    let server = axum::Router::new().fallback(move |request: Request| {
        let accept = request.headers()["accept"].to_str().unwrap().to_owned();
        let (method, path) = (request.method().to_string(), request.uri().to_string());
        let page = if path.contains("continue=more") { second.clone() } else { first.clone() };
        lock(&requests).push((method, path, accept));
        async move { ([("content-type", "application/json")], page.to_string()).into_response() }
    });
    let client = kube::Client::new(server, "default");
    let settings =
        RunnerSettings { image: None, default_account: "default".into(), own_account: None, controller: "this".into() };
    Arc::new(RunnerPods::new(client, settings, Arc::new(SystemClock)))
}

#[tokio::test]
async fn the_pods_of_others_are_listed_in_small_pages_without_their_content() {
    let requests = Arc::default();
    let pods = pods(&requests);
    let caller = Caller::ServiceAccount { namespace: "shop", name: "default" };
    pods.delete_others(caller, "/api/v1/namespaces/shop/pods").await;
    let requests = lock(&requests);
    let (lists, deletes): (Vec<&Seen>, Vec<&Seen>) = requests.iter().partition(|(method, ..)| method == "GET");
    assert_eq!(lists.len(), 2);
    for (_, path, accept) in lists {
        assert!(path.contains("limit=20") && path.contains("status.phase%21%3DRunning"), "{path}");
        assert_eq!(accept, METADATA_LIST);
    }
    let deleted: Vec<&str> = deletes.iter().map(|(_, path, _)| path.rsplit('/').next().unwrap()).collect();
    assert_eq!(deleted, ["left", "also-left"]);
}
