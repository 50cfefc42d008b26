//! Tests the driver against a fake API server, for responses that are hard to provoke from a real one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};

use super::*;
use crate::tests::{context, recorded};
use process::SystemClock;

/// The responses in order: (method and path without query, status code, body).
type Lines = Vec<Line>;
type Line = (&'static str, u16, Json);

/// A server that plays its lines, and a driver of it. A request without a matching line fails the test.
struct Play {
    driver: KubernetesObject,
    lines: Arc<Mutex<VecDeque<Line>>>,
    /// Method, path with query, body.
    requests: Arc<Mutex<Vec<(String, Json)>>>,
}

fn play(lines: Lines) -> Play {
    let lines = Arc::new(Mutex::new(VecDeque::from(lines)));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (played, seen) = (Arc::clone(&lines), Arc::clone(&requests));
    let router = Router::new().fallback(move |request: Request| {
        let (played, seen) = (Arc::clone(&played), Arc::clone(&seen));
        async move { answer(request, &played, &seen).await }
    });
    let client = kube::Client::new(router, "default");
    let driver = KubernetesObject::impersonating(client, OwnerScope::Fixed("here".into()), Arc::new(SystemClock));
    Play { driver, lines, requests }
}

async fn answer(request: Request, lines: &Mutex<VecDeque<Line>>, requests: &Mutex<Vec<(String, Json)>>) -> Response {
    let (parts, body) = request.into_parts();
    let request_line = format!("{} {}", parts.method, parts.uri.path());
    // The service account `tenant` may not discover.
    let user = parts.headers.get("impersonate-user").and_then(|user| user.to_str().ok()).unwrap_or_default();
    if request_line == "GET /api/v1" && user.ends_with(":tenant") {
        requests.lock().unwrap().push((format!("{request_line} as {user}"), Json::Null));
        return axum_json(403, &json!({"message": "forbidden", "reason": "Forbidden"}));
    }
    if request_line == "GET /api/v1" {
        let resources = [
            json!({"name": "configmaps", "kind": "ConfigMap", "namespaced": true}),
            json!({"name": "pods", "kind": "Pod", "namespaced": true}),
            json!({"name": "namespaces", "kind": "Namespace", "namespaced": false}),
        ];
        return axum_json(200, &json!({"resources": resources}));
    }
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    requests.lock().unwrap().push((format!("{} {}", parts.method, parts.uri), body));
    match lines.lock().unwrap().pop_front() {
        Some((expected, code, body)) if expected == request_line => axum_json(code, &body),
        other => axum_json(418, &json!({"message": format!("{request_line}, but expected {other:?}")})),
    }
}

fn axum_json(code: u16, body: &Json) -> Response {
    let code = axum::http::StatusCode::from_u16(code).unwrap();
    let retry = [("retry-after", "0"), ("content-type", "application/json")];
    (code, retry, body.to_string()).into_response()
}

fn config() -> Value {
    Value::from_json(json!({"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"},
        "data": {"a": "1"}}}))
}

fn live(owner: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}, "metadata": {"name": "site",
        "namespace": "shop", "uid": "u-1", "resourceVersion": "5", "annotations": {"purlin.dev/owner": owner}}})
}

fn prior() -> Arc<RecordedObject> {
    let state = object::state(&live("here/shop/web/"), config().get("manifest").unwrap());
    Arc::new(RecordedObject { identity: state.identity, ..recorded(state.value) })
}

impl Play {
    async fn plan_create(&self, replaces: Option<Arc<RecordedObject>>) -> Result<PlanResponse, DriverError> {
        let request = PlanRequest {
            prior: None,
            config: config(),
            entropy: [7; 16],
            previous_plan: None,
            ignored: None,
            replaces,
        };
        self.driver.plan(&context(TYPE_NAME), request).await
    }

    async fn create(&self) -> ApplyResponse {
        let object = Value::from_json(json!({"metadata": {"name": "site"}}));
        let planned = Some(Value::map([("object", object)]));
        let call = ApplyRequest { prior: None, config: config(), planned, private: Arc::from([]) };
        self.driver.apply(&context(TYPE_NAME), call).await
    }

    async fn destroy(&self) -> ApplyResponse {
        let call = ApplyRequest { prior: Some(prior()), config: Value::Null, planned: None, private: Arc::from([]) };
        self.driver.apply(&context(TYPE_NAME), call).await
    }

    #[track_caller]
    fn finished(&self) {
        assert!(self.lines.lock().unwrap().is_empty(), "unused lines: {:?}", self.lines.lock().unwrap());
    }
}

const GET: &str = "GET /api/v1/namespaces/shop/configmaps/site";
const PATCH: &str = "PATCH /api/v1/namespaces/shop/configmaps/site";
const DELETE: &str = "DELETE /api/v1/namespaces/shop/configmaps/site";
const CLUSTER: &str = "GET /api/v1/namespaces/kube-system";
const WATCH: &str = "GET /api/v1/namespaces/shop/configmaps";

fn nothing() -> Json {
    json!({"message": "configmaps \"site\" not found", "reason": "NotFound"})
}

#[tokio::test]
async fn strings_that_would_change_a_path_are_errors_and_are_never_sent() {
    let play = play(vec![]);
    let manifest = json!({"apiVersion": "../api/v1/namespaces/kube-system/secrets?x=", "kind": "Config/Map", "metadata": {
        "name": "../x", "namespace": "a/b", "labels": {"good": "a", "bad": "a b"}}});
    let config = Value::from_json(json!({"manifest": manifest}));
    let found = play.driver.validate(&context(TYPE_NAME), &config).await.unwrap();
    let paths: Vec<String> = found.iter().map(|one| one.path.as_ref().unwrap().to_string()).collect();
    let metadata = ["name", "namespace", "labels.bad"].map(|field| format!("manifest.metadata.{field}"));
    assert_eq!(paths[..2], ["manifest.apiVersion", "manifest.kind"]);
    assert_eq!(paths[2..], metadata);
    for version in ["../api/v1/namespaces/kube-system/secrets?x=", "v1/..", "", "a/b/c"] {
        let caller = Caller::ServiceAccount { namespace: "shop", name: "tenant" };
        let deadline = play.driver.server.deadline_in(std::time::Duration::from_secs(5));
        assert_eq!(play.driver.server.kind_in_any_version(caller, version, "Secret", deadline).await.unwrap(), None);
    }
    assert!(play.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn discovery_acts_as_the_tenant_unless_the_service_account_is_denied() {
    let play = play(vec![]);
    let caller = Caller::ServiceAccount { namespace: "shop", name: "tenant" };
    let deadline = play.driver.server.deadline_in(std::time::Duration::from_secs(5));
    let found = play.driver.server.kind(caller, "v1", "ConfigMap", deadline).await.unwrap();
    assert_eq!(found.unwrap().plural, "configmaps");
    let requests = play.requests.lock().unwrap().clone();
    assert_eq!(requests[0].0, "GET /api/v1 as system:serviceaccount:shop:tenant");
}

#[tokio::test]
async fn a_throttled_request_is_retried() {
    let play = play(vec![(GET, 404, nothing()), (PATCH, 429, json!({})), (PATCH, 201, live("here/shop/web/"))]);
    let response = play.create().await;
    assert!(response.error.is_none(), "{:?}", response.error);
    play.finished();
}

#[tokio::test]
async fn a_create_without_a_response_reads_the_object_before_it_is_repeated() {
    let play = play(vec![
        (GET, 404, nothing()),
        (PATCH, 500, json!({"message": "etcd timed out"})),
        (GET, 200, live("here/shop/web/")),
        (PATCH, 200, live("here/shop/web/")),
    ]);
    let response = play.create().await;
    assert_eq!(response.object.unwrap().value.get("id"), Some(&Value::from("u-1")));
    play.finished();
    assert_eq!(play.requests.lock().unwrap()[3].1["metadata"]["uid"], "u-1", "only this object is adopted");
}

#[tokio::test]
async fn an_object_that_another_client_created_concurrently_is_restored() {
    let play = play(vec![(GET, 404, nothing()), (PATCH, 200, live("here/shop/web/")), (PATCH, 200, live(""))]);
    let response = play.create().await;
    assert!(response.object.is_none());
    assert_eq!(response.error.unwrap().kind, ErrorKind::AlreadyExists);
    play.finished();
    let undo = &play.requests.lock().unwrap()[2];
    assert!(undo.0.contains("force=false") && undo.1.get("data").is_none(), "{undo:?}");
}

#[tokio::test]
async fn an_object_of_another_owner_is_not_changed() {
    for owner in ["", "here/shop/other/", "elsewhere/shop/web/"] {
        let play = play(vec![(GET, 200, live(owner))]);
        assert_eq!(play.create().await.error.unwrap().kind, ErrorKind::AlreadyExists);
        play.finished();
    }
}

#[tokio::test]
async fn a_create_waits_until_the_old_object_is_deleted() {
    let mut terminating = live("here/shop/web/");
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let play = play(vec![
        (GET, 200, terminating.clone()),
        (WATCH, 200, json!({"type": "DELETED", "object": terminating})),
        (PATCH, 201, live("here/shop/web/")),
    ]);
    assert!(play.create().await.error.is_none());
    play.finished();
}

/// The response to the delete of a Service contains the object before its deletion. A watch from its version would
/// never report the deletion.
#[tokio::test]
async fn a_delete_that_returns_the_object_may_be_complete() {
    let play = play(vec![(DELETE, 200, live("here/shop/web/")), (GET, 404, nothing())]);
    assert!(play.destroy().await.error.is_none());
    play.finished();
}

#[tokio::test]
async fn a_service_account_that_may_not_watch_polls() {
    let deleted = live("here/shop/web/");
    let play = play(vec![
        (DELETE, 200, deleted.clone()),
        (GET, 200, deleted.clone()),
        (WATCH, 403, json!({"message": "cannot watch", "code": 403, "reason": "Forbidden"})),
        (GET, 200, deleted),
        (GET, 404, nothing()),
    ]);
    assert!(play.destroy().await.error.is_none());
    play.finished();
}

#[tokio::test]
async fn a_delete_is_complete_when_the_uid_is_missing() {
    for (code, body) in [
        (404, nothing()),
        (409, json!({"message": "Precondition failed: UID in precondition: u-1, UID in object meta: u-2"})),
    ] {
        let play = play(vec![(DELETE, code, body)]);
        assert!(play.destroy().await.error.is_none());
        assert_eq!(play.requests.lock().unwrap()[0].1["preconditions"]["uid"], "u-1");
    }
}

#[tokio::test]
async fn an_object_with_another_uid_is_missing() {
    let mut other = live("here/shop/web/");
    other["metadata"]["uid"] = json!("u-2");
    let play = play(vec![(GET, 200, other)]);
    assert_eq!(play.driver.read(&context(TYPE_NAME), &prior()).await.unwrap(), None);
}

async fn plan_update(lines: Lines) -> (Play, Result<PlanResponse, DriverError>) {
    let play = play(lines);
    let config =
        Value::map([("manifest", config().get("manifest").unwrap().with("data", Value::map([("a", "2".into())])))]);
    let request = PlanRequest {
        prior: Some(prior()),
        config: config.clone(),
        entropy: [7; 16],
        previous_plan: None,
        ignored: None,
        replaces: None,
    };
    let response = play.driver.plan(&context(TYPE_NAME), request).await;
    (play, response)
}

fn conflict(field: &str) -> Json {
    json!({"reason": "Conflict", "message": "Apply failed with 1 conflict", "details": {"causes": [
        {"reason": "FieldManagerConflict", "message": "conflict with \"editor\" using v1", "field": field}]}})
}

#[tokio::test]
async fn only_conflicts_of_previously_applied_fields_are_forced() {
    let (play, response) = plan_update(vec![(PATCH, 409, conflict(".data.a")), (PATCH, 200, live("x"))]).await;
    assert!(response.is_ok());
    assert!(play.requests.lock().unwrap()[1].0.contains("force=true"));
    let (_, response) = plan_update(vec![(PATCH, 409, conflict(".data.b"))]).await;
    assert_eq!(response.unwrap_err().kind, ErrorKind::Terminal);
}

#[tokio::test]
async fn without_dry_runs_a_changed_part_is_unknown() {
    let body = json!({"reason": "BadRequest", "message": "admission webhook \"x\" does not support dry run"});
    let (_, response) = plan_update(vec![(PATCH, 400, body)]).await;
    let planned = response.unwrap().planned;
    assert_eq!(planned.get("object").unwrap().get("data"), Some(&Value::Unknown));
    assert_eq!(planned.get("id"), Some(&Value::from("u-1")));
}

#[tokio::test]
async fn a_final_plan_of_a_known_manifest_sends_no_request() {
    let play = play(Vec::new());
    let manifest = config().get("manifest").unwrap().clone();
    let before = Value::map([("manifest", manifest), ("object", Value::Unknown), ("id", "u-1".into())]);
    let request = PlanRequest {
        prior: Some(prior()),
        config: config(),
        entropy: [7; 16],
        previous_plan: Some(before.clone()),
        ignored: None,
        replaces: None,
    };
    assert_eq!(play.driver.plan(&context(TYPE_NAME), request).await.unwrap().planned, before);
    assert!(play.requests.lock().unwrap().is_empty());
}

fn drawn_config(data: Value) -> Value {
    let metadata = Value::map([("generateName", Value::from("site-"))]);
    Value::map([(
        "manifest",
        Value::map([("apiVersion", "v1".into()), ("kind", "ConfigMap".into()), ("metadata", metadata), ("data", data)]),
    )])
}

fn create_request(config: Value, entropy: u8, previous_plan: Option<Value>) -> PlanRequest {
    PlanRequest { prior: None, config, entropy: [entropy; 16], previous_plan, ignored: None, replaces: None }
}

#[tokio::test]
async fn the_final_plan_keeps_a_generated_name() {
    let play = play(Vec::new());
    let name =
        |response: &PlanResponse| response.planned.get("object").unwrap().get("metadata").unwrap().get("name").cloned();
    let context = context(TYPE_NAME);
    let first = create_request(drawn_config(Value::map([("a", Value::Unknown)])), 1, None);
    let first = play.driver.plan(&context, first).await.unwrap();
    assert!(name(&first).unwrap().as_str().unwrap().starts_with("site-"));
    assert_eq!(first.identity, None, "a generated name has no fixed identity");
    assert_eq!(first.refusal, None);
    let again = create_request(drawn_config(Value::map([("a", "1".into())])), 2, Some(first.planned.clone()));
    let again = play.driver.plan(&context, again).await.unwrap();
    assert_eq!(name(&again), name(&first));
    let data = again.planned.get("object").unwrap().get("data").unwrap().clone();
    assert_eq!(data, Value::map([("a", Value::from("1"))]));
}

#[tokio::test]
async fn an_object_of_another_scope_is_planned_as_a_replacement() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "site"}});
    let state = object::state(
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "site",
        "uid": "u-2"}}),
        &Value::from_json(namespace.clone()),
    );
    let wide = Arc::new(RecordedObject { identity: state.identity, ..recorded(state.value) });
    let namespace = Value::from_json(json!({"manifest": namespace}));
    for (prior, config) in [(prior(), namespace), (wide, config())] {
        let play = play(vec![]);
        let request = PlanRequest {
            prior: Some(prior.clone()),
            config,
            entropy: [7; 16],
            previous_plan: None,
            ignored: None,
            replaces: None,
        };
        let response = play.driver.plan(&context(TYPE_NAME), request).await.unwrap();
        let shown: Vec<String> = response.requires_replace.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["manifest.kind"]);
        for path in &response.requires_replace {
            let exists = prior.value.at(path).or(response.planned.at(path)).is_some();
            assert!(exists, "the engine takes any other path for a fault");
        }
        play.finished();
    }
}

#[tokio::test]
async fn a_call_without_a_service_account_is_rejected() {
    let play = play(Vec::new());
    let context = CallContext { service_account: "".into(), ..context(TYPE_NAME) };
    let error = play.driver.read(&context, &prior()).await.unwrap_err();
    assert_eq!(error.message, "no service account is set");
}

#[tokio::test]
async fn a_delete_returns_at_its_deadline() {
    let refused = (WATCH, 403, json!({"message": "cannot watch", "code": 403, "reason": "Forbidden"}));
    let play = play(vec![(DELETE, 200, live("x")), (GET, 200, live("x")), refused, (GET, 200, live("x"))]);
    let deadline = process::Clock::now(&process::SystemClock) + jiff::SignedDuration::from_millis(300);
    let context = CallContext { deadline, ..context(TYPE_NAME) };
    let call = ApplyRequest { prior: Some(prior()), config: Value::Null, planned: None, private: Arc::from([]) };
    let error = play.driver.apply(&context, call).await.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Transient);
}

#[tokio::test]
async fn an_object_of_another_namespace_is_not_imported() {
    let import = |owner: &'static str| async move {
        let play = play(vec![(GET, 200, live(owner))]);
        let found = play.driver.import(&context(TYPE_NAME), &ImportRequest::Id("v1/ConfigMap/shop/site".into())).await;
        play.finished();
        found.map(|found| found.is_some()).map_err(|error| error.to_string())
    };
    assert_eq!(import("here/shop/other/").await, Ok(true), "the records show the owners in this namespace");
    assert_eq!(import("elsewhere/store/web/").await, Ok(true), "an owner in another installation");
    let refused = "ConfigMap `shop/site` belongs to the Resource `store/web`";
    assert_eq!(import("here/store/web/").await, Err(refused.to_owned()));
    assert_eq!(import("here/shopping/web/0").await.unwrap_err().matches("shopping/web/0").count(), 1);
}

#[tokio::test]
async fn an_object_of_another_cluster_is_not_destroyed_here() {
    let play = play(vec![(CLUSTER, 200, json!({"metadata": {"uid": "this"}}))]);
    let prior = RecordedObject { provider_config: "cluster:that".into(), ..prior().as_ref().clone() };
    let call =
        ApplyRequest { prior: Some(Arc::new(prior)), config: Value::Null, planned: None, private: Arc::from([]) };
    let error = play.driver.apply(&context(TYPE_NAME), call).await.error.unwrap();
    assert!(error.message.contains("another cluster"), "{error}");
    play.finished();
}

fn status(code: u16, reason: &str, message: &str) -> Json {
    json!({"code": code, "reason": reason, "message": message})
}

/// The error kind of the refusal of a create, and the number of its remedies.
fn refused(response: &PlanResponse) -> (ErrorKind, usize) {
    let refusal = response.refusal.as_ref().expect("a refusal");
    (refusal.error.kind, refusal.remedies.len())
}

const POST: &str = "POST /api/v1/namespaces/shop/configmaps";

#[tokio::test]
async fn a_plan_shows_that_the_server_refuses_a_create() {
    let exists = conflict(".data.a");
    for (answers, expected) in [
        (vec![(PATCH, 409, exists.clone()), (GET, 200, live("here/shop/other/"))], (ErrorKind::AlreadyExists, 1)),
        (vec![(PATCH, 200, live("x")), (GET, 200, live(""))], (ErrorKind::AlreadyExists, 1)),
        (vec![(PATCH, 404, status(404, "NotFound", "namespaces \"shop\" not found"))], (ErrorKind::Transient, 1)),
        (vec![(PATCH, 403, status(403, "Forbidden", "User \"x\" cannot patch"))], (ErrorKind::Forbidden, 4)),
        (
            vec![(PATCH, 403, status(403, "Forbidden", "admission webhook \"x\" denied the request: no"))],
            (ErrorKind::Terminal, 0),
        ),
        (
            vec![(
                PATCH,
                403,
                status(403, "Forbidden", "exceeded quota: q, requested: configmaps=1, used: configmaps=1"),
            )],
            (ErrorKind::Transient, 2),
        ),
    ] {
        let play = play(answers);
        assert_eq!(refused(&play.plan_create(None).await.unwrap()), expected);
        play.finished();
    }
    let play = play(vec![(PATCH, 422, json!({"message": "X is invalid", "details": {"causes": [{"field": "data"}]}}))]);
    assert_eq!(play.plan_create(None).await.unwrap_err().kind, ErrorKind::InvalidConfig);
}

#[tokio::test]
async fn an_existing_object_of_the_instance_is_adopted() {
    let play = play(vec![(PATCH, 409, conflict(".data.a")), (GET, 200, live("here/shop/web/"))]);
    let response = play.plan_create(None).await.unwrap();
    assert_eq!(response.adopts, Some(ImportRequest::Id("v1/ConfigMap/shop/site".into())));
    assert_eq!(response.refusal, None);
}

#[tokio::test]
async fn the_old_object_does_not_stand_in_the_way_of_the_new_one() {
    let exists = status(409, "AlreadyExists", "configmaps \"site\" already exists");
    let play = play(vec![(POST, 409, exists.clone()), (GET, 200, live("here/shop/web/"))]);
    let response = play.plan_create(Some(prior())).await.unwrap();
    assert_eq!((response.refusal, response.adopts), (None, None));
    play.finished();
    let mut other = live("");
    other["metadata"]["uid"] = json!("u-2");
    let play = super::tests::play(vec![(POST, 409, exists), (GET, 200, other)]);
    assert_eq!(refused(&play.plan_create(Some(prior())).await.unwrap()).0, ErrorKind::AlreadyExists);
}

#[tokio::test]
async fn a_name_is_looked_up_if_the_server_supports_no_dry_run() {
    let unsupported = status(400, "BadRequest", "admission webhook \"x\" does not support dry run");
    let play = play(vec![(PATCH, 400, unsupported), (GET, 200, live(""))]);
    assert_eq!(refused(&play.plan_create(None).await.unwrap()).0, ErrorKind::AlreadyExists);
}

fn with_owners(owners: Json) -> Json {
    let mut live = live("here/shop/web/");
    live["data"]["b"] = json!("1");
    live["metadata"]["managedFields"] = owners;
    live
}

/// An update whose manifest has lost `data.b`, which another manager owns too.
async fn update_without_b(prior: Arc<RecordedObject>, lines: Lines) -> (Play, ApplyResponse, Diagnostics) {
    let play = play(lines);
    let context = context(TYPE_NAME);
    let call =
        ApplyRequest { prior: Some(prior), config: config(), planned: Some(Value::Unknown), private: Arc::from([]) };
    let response = play.driver.apply(&context, call).await;
    play.finished();
    (play, response, context.warnings.take())
}

fn prior_with_b() -> Arc<RecordedObject> {
    let data = Value::from_json(json!({"a": "1", "b": "1"}));
    let manifest = config().get("manifest").unwrap().with("data", data);
    let state = object::state(&with_owners(json!([])), &manifest);
    Arc::new(RecordedObject { identity: state.identity, ..recorded(state.value) })
}

fn owners(manager: &str) -> Json {
    json!([{"manager": "purlin", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}},
        {"manager": manager, "operation": "Update", "fieldsV1": {"f:data": {"f:b": {}}}}])
}

#[tokio::test]
async fn a_field_of_a_tool_is_taken_over_and_removed() {
    let (play, response, warnings) = update_without_b(
        prior_with_b(),
        vec![
            (PATCH, 200, with_owners(owners("kubectl-edit"))),
            (PATCH, 409, status(409, "Conflict", "the object has been modified")),
            (GET, 200, with_owners(owners("kubectl-edit"))),
            (PATCH, 200, with_owners(json!([]))),
            (PATCH, 200, live("here/shop/web/")),
        ],
    )
    .await;
    assert!(response.error.is_none() && warnings.is_empty(), "{warnings:?}");
    let requests = play.requests.lock().unwrap();
    let written = &requests[3].1[0]["value"];
    assert_eq!(written[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
    assert_eq!(written.as_array().unwrap().len(), 1);
    assert_eq!(requests[3].1[1]["value"], "5", "only this version is changed");
}

#[tokio::test]
async fn a_field_of_a_controller_stays_and_is_reported_until_it_is_gone() {
    let kept = with_owners(owners("scaler"));
    let (_, response, warnings) = update_without_b(prior_with_b(), vec![(PATCH, 200, kept.clone())]).await;
    let expected = "`data.b` is no longer in the manifest, but stays, because `scaler` owns it too";
    assert_eq!(warnings[0].summary, expected);
    let object = response.object.unwrap();
    let prior = Arc::new(RecordedObject { private: object.private, ..recorded(object.value) });
    for (live, reported) in [(kept, 1), (live("here/shop/web/"), 0)] {
        let (play, context) = (play(vec![(GET, 200, live)]), context(TYPE_NAME));
        let state = play.driver.read(&context, &prior).await.unwrap().unwrap();
        assert_eq!(context.warnings.take().len(), reported);
        assert_eq!(state.private.is_empty(), reported == 0);
    }
}

#[tokio::test]
async fn an_object_that_is_given_up_loses_the_owner_annotation() {
    let (play, context) = (play(vec![(GET, 200, live("here/shop/web/")), (PATCH, 200, live(""))]), context(TYPE_NAME));
    play.driver.release(&context, &prior()).await.unwrap();
    play.finished();
    assert_eq!(play.requests.lock().unwrap()[1].1[0]["path"], "/metadata/annotations/purlin.dev~1owner");
    let forbidden = json!({"message": "configmaps \"site\" is forbidden", "reason": "Forbidden"});
    let with_its_namespace = vec![(GET, 403, forbidden), ("GET /api/v1/namespaces/shop", 404, nothing())];
    let others = [(404, nothing()), (200, live("here/shop/other/"))].map(|(code, body)| vec![(GET, code, body)]);
    for lines in others.into_iter().chain([with_its_namespace]) {
        let play = super::tests::play(lines);
        play.driver.release(&context, &prior()).await.unwrap();
        play.finished();
    }
}
