use serde_json::{Value, json};

use super::*;
use api::Resource;

fn raw<K>(json: &Value) -> RawObject<K> {
    serde_json::from_str(&json.to_string()).unwrap()
}

/// A Resource with the condition Ready, and more of its status.
fn resource(name: &str, ready: (&str, &str, &str), more: Value) -> ObservedObject {
    let (status, reason, message) = ready;
    let condition = json!({
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    });
    let mut all = json!({ "observedGeneration": 2, "conditions": [condition] });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata = json!({ "name": name, "generation": 2 });
    let object = json!({ "metadata": metadata, "spec": { "type": "terraform_data" }, "status": all });
    super::object(&raw::<Resource>(&object), false)
}

const READY: (&str, &str, &str) = ("True", "Available", "the object matches its Resource");

fn state(ready: (&str, &str, &str), more: Value) -> State {
    resource("a", ready, more).shown.state
}

#[test]
fn the_state_follows_from_the_conditions() {
    let none = || json!({});
    assert_eq!(state(READY, none()), State::Ready);
    assert_eq!(state(("False", "Progressing", "creating the object"), none()), State::Running);
    assert_eq!(state(("False", "Progressing", "waiting until the object is ready"), none()), State::Running);
    assert_eq!(state(("False", "Progressing", "waiting to start: an update is planned"), none()), State::Waiting);
    let waits = json!({ "pending": { "action": "Create", "waitingFor": ["b create"] } });
    assert_eq!(state(("False", "Progressing", "waiting to create"), waits), State::Waiting);
    assert_eq!(state(("False", "DependencyNotReady", "b is not ready"), none()), State::Waiting);
    assert_eq!(state(("False", "ApprovalRequired", "waits"), none()), State::Approval);
    assert_eq!(state(("False", "Suspended", "suspended"), none()), State::Suspended);
    assert_eq!(state(("False", "OperationFailed", "no"), none()), State::Failed);
    assert_eq!(state(("False", "AReasonOfALaterVersion", "no"), none()), State::Failed);
    let outdated = resource("a", READY, json!({ "observedGeneration": 1 })).shown;
    assert_eq!((outdated.state, outdated.reason.as_str()), (State::Waiting, ""));
    let unread = json!({ "metadata": { "name": "a" }, "spec": { "type": "x" }, "status": { "conditions": 3 } });
    assert_eq!(super::object(&raw::<Resource>(&unread), false).shown.state, State::Waiting);
}

fn graph(objects: Vec<ObservedObject>, plans: &[Value]) -> Snapshot {
    let objects = objects.into_iter().map(|one| (one.shown.name.clone(), one)).collect();
    let plans = plans.iter().filter_map(|one| super::plan(&raw(one)));
    snapshot("shop", &objects, &plans.map(|one| (one.shown.name.clone(), one)).collect())
}

fn lines(edges: &[Edge]) -> Vec<String> {
    let kind = |edge: &Edge| match (edge.waits, edge.depends) {
        (true, true) => "waits",
        (true, false) => "waits against the order",
        (false, _) => "depends",
    };
    edges.iter().map(|edge| format!("{} -> {} ({}): {}", edge.from, edge.to, kind(edge), edge.why)).collect()
}

#[test]
fn an_edge_says_what_a_step_waits_for_or_else_what_the_object_depends_on() {
    let waiting = ("False", "Progressing", "waiting to update");
    let app = json!({
        "dependencies": ["database", "missing", "network"],
        "pending": { "action": "Update", "waitingFor": ["database create"] },
    });
    let old = json!([{ "key": "0a1b2c3d", "id": "i-1", "waitingFor": ["app"] }]);
    let database = json!({ "pending": { "action": "Replace" }, "deposed": old });
    let shown = graph(
        vec![
            resource("app", waiting, app),
            resource("database", ("False", "Progressing", "creating the replacement object"), database),
            resource("network", READY, json!({})),
        ],
        &[],
    );
    assert_eq!(
        lines(&shown.edges),
        [
            "app -> database (waits): database create must finish first",
            "app -> network (depends): app depends on network",
            "database -> app (waits against the order): app must finish first",
        ]
    );
    let steps: Vec<(&str, State)> = shown.steps.iter().map(|step| (step.id.as_str(), step.state)).collect();
    assert_eq!(
        steps,
        [
            ("app update", State::Waiting),
            ("database destroy (deposed 0a1b2c3d)", State::Waiting),
            ("database replace", State::Running),
        ]
    );
    assert_eq!(
        lines(&shown.step_edges),
        [
            "app update -> database replace (waits): database create must finish first",
            "database destroy (deposed 0a1b2c3d) -> app update (waits): app must finish first",
        ]
    );
}

#[test]
fn a_step_that_others_wait_for_is_shown_once() {
    let waiting = ("False", "Progressing", "waiting to update");
    let pending = |action: &str, waits: &[&str]| json!({ "pending": { "action": action, "waitingFor": waits } });
    let web = json!({
        "pending": { "action": "Create" }, "instances": { "desired": 2, "ready": 0, "deposed": 0 },
        "deposed": [{ "instance": "[0]", "key": "0a1b2c3d", "id": "i-1" }],
    });
    let shown = graph(
        vec![
            resource("app-0", ("False", "Progressing", "updating the object"), pending("Update", &[])),
            resource("web", ("False", "Progressing", "creating the object"), web),
            resource("last", waiting, pending("Update", &["app-0 update", "web[0] create", "web[1] create"])),
            resource("old", waiting, pending("Destroy", &["web[0] destroy (deposed 0a1b2c3d)"])),
        ],
        &[],
    );
    let steps: Vec<&str> = shown.steps.iter().map(|step| step.id.as_str()).collect();
    let deposed = "web[0] destroy (deposed 0a1b2c3d)";
    assert_eq!(steps, ["app-0 update", "last update", "old destroy", "web create", deposed]);
}

#[test]
fn a_kubernetes_object_has_its_kind_and_name() {
    let label = |name: &str, status: Value| {
        let manifest = json!({ "kind": "Deployment", "metadata": { "name": name } });
        let spec = json!({ "type": "kubernetes_object", "config": { "manifest": manifest } });
        let object = json!({ "metadata": { "name": "a" }, "spec": spec, "status": status });
        super::object(&raw::<Resource>(&object), false).shown.label
    };
    assert_eq!(label("web", json!({ "observedGeneration": 1 })), "Deployment/web");
    assert_eq!(label("${a.b}", json!({ "observedGeneration": 1 })), "");
    assert_eq!(label("${a.b}", json!({ "observedGeneration": 1, "displayId": "Deployment/c" })), "Deployment/c");
    assert_eq!(resource("a", READY, json!({ "displayId": "i-1" })).shown.label, "");
}

fn plan(name: &str, approval: &str) -> Value {
    let change = json!({ "address": "store", "action": "Update", "digest": "0".repeat(64) });
    let of_change: api::ChangeDigest = serde_json::from_value(change.clone()).unwrap();
    let digest = engine::plan::approval::digest_of([&of_change]);
    let node = |id: &str, address: &str| json!({ "id": id, "address": address, "operation": "update" });
    json!({
        "metadata": { "name": name, "uid": "u" },
        "spec": { "digest": digest, "changes": [] },
        "status": {
            "approval": approval,
            "approvals": [{ "digest": digest, "changes": [change] }],
            "graph": {
                "nodes": [node("store update", "store"), node("app update", "app")],
                "edges": [{ "from": "app update", "to": "store update", "because": "app depends on store" }],
            },
        },
    })
}

#[test]
fn a_held_plan_has_the_steps_of_its_objects() {
    let objects = || {
        vec![
            resource("store", ("False", "ApprovalRequired", "the update waits"), json!({})),
            resource("app", ("False", "Waiting", "waits for store"), json!({ "dependencies": ["store"] })),
        ]
    };
    let shown = graph(objects(), &[plan("store-1", "Waiting")]);
    assert_eq!(shown.plans[0].changes, [HeldChange { address: "store".to_owned(), action: "Update".to_owned() }]);
    let holder = |name: &str| shown.objects.iter().find(|one| one.name == name).unwrap().plan.clone();
    assert_eq!((holder("store").as_deref(), holder("app")), (Some("store-1"), None));
    let steps: Vec<(&str, State)> = shown.steps.iter().map(|step| (step.id.as_str(), step.state)).collect();
    assert_eq!(steps, [("app update", State::Waiting), ("store update", State::Approval)]);
    assert_eq!(lines(&shown.edges), ["app -> store (waits): app depends on store"]);
    let concerned = |name: &str| super::plan(&raw(&plan("store-1", "Waiting"))).unwrap().concerns(name);
    assert_eq!(["store", "app", "network"].map(concerned), [true, true, false]);

    let ended = graph(objects(), &[plan("old", "Superseded"), plan("older", "Applied")]);
    assert!(ended.plans.is_empty() && ended.steps.is_empty());
    let rejected = graph(objects(), &[plan("no", "Rejected")]);
    assert_eq!((rejected.plans[0].state.as_str(), rejected.steps.len()), ("Rejected", 0));
    let mut lying = plan("lie", "Waiting");
    lying["status"]["approvals"][0]["changes"][0]["action"] = "Replace".into();
    assert!(graph(objects(), &[lying]).plans.is_empty(), "it shows other changes than its digest approves");
    let preview = json!({ "metadata": { "name": "p" }, "spec": { "preview": { "manifests": "" } } });
    assert!(graph(objects(), &[preview]).plans.is_empty());
}
