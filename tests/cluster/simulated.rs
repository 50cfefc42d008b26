//! Compares the simulated API server with the real one: both must return the same responses to the same requests.
//!
//! Each test sends one sequence in its own namespace and compares codes and bodies. `normal` first replaces values that
//! always differ: versions and UIDs are numbered in the order of their appearance, and times are removed. It also lists
//! what the simulated server does not have, with the reason.

mod more;
mod normal;
mod player;

use http::Method;
use serde_json::{Value, json};

use player::{Step, apply, delete, get, json_patch, merge, play, post, put, wait_deleted, watch};

const CM: &str = "/api/v1/namespaces/{ns}/configmaps";
const SECRETS: &str = "/api/v1/namespaces/{ns}/secrets";
const RESOURCES: &str = "/apis/purlin.dev/v1alpha1/namespaces/{ns}/resources";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
const NAMESPACES: &str = "/api/v1/namespaces";

fn at(collection: &str, name: &str) -> String {
    format!("{collection}/{name}")
}

fn cm(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn resource(name: &str, input: &str) -> Value {
    json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": name},
        "spec": {"type": "terraform_data", "config": {"input": input}}})
}

#[test]
fn objects_are_created_changed_and_deleted() {
    play(
        "life",
        &[
            post(CM, cm("a", json!({"k": "1"}))),
            post(CM, cm("a", json!({"k": "2"}))),
            get(&at(CM, "a")),
            get(&at(CM, "b")),
            merge(&at(CM, "a"), json!({"data": {"k": "2", "l": "3"}})),
            merge(&at(CM, "a"), json!({"data": {"k": "2"}})),
            merge(&at(CM, "a"), json!({"data": {"l": null}, "metadata": {"labels": {"x": "y"}, "annotations": {}}})),
            merge(&at(CM, "a"), json!({"metadata": {"resourceVersion": "1"}, "data": {"k": "9"}})),
            merge(&at(CM, "b"), json!({"data": {}})),
            put(
                &at(CM, "a"),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "4"}}),
            ),
            put(
                &at(CM, "a"),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "5"},
            "metadata": {"name": "a", "resourceVersion": "1"}}),
            ),
            put(
                &at(CM, "a"),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "5"},
            "metadata": {"name": "a", "resourceVersion": "{rv:a}"}}),
            ),
            put(
                &at(CM, "a"),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "6"},
            "metadata": {"name": "a", "uid": "00000000-1111-2222-3333-444444444444"}}),
            ),
            put(&at(CM, "c"), cm("c", json!({}))),
            put(&at(CM, "a"), cm("other", json!({}))),
            merge(&at(CM, "a"), json!({"metadata": {"uid": "00000000-1111-2222-3333-444444444444"}})),
            get(&at(CM, "a")).metadata_only(),
            delete(&at(CM, "a"), json!({"preconditions": {"uid": "00000000-1111-2222-3333-444444444444"}})),
            delete(&at(CM, "a"), json!({"preconditions": {"resourceVersion": "1"}})),
            delete(&at(CM, "a"), json!({"preconditions": {"uid": "{uid:a}", "resourceVersion": "{rv:a}"}})),
            delete(&at(CM, "a"), Value::Null),
        ],
    );
}

#[test]
fn invalid_requests_are_rejected_with_the_same_messages() {
    let in_other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "other"}});
    play(
        "wrong",
        &[
            post(CM, cm("Bad_Name", json!({}))),
            post(CM, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})),
            post(CM, in_other),
            post(CM, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})),
            post(
                CM,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "7"}}),
            ),
            post(
                CM,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "no good"}}}),
            ),
            post("/api/v1/namespaces/{ns}-nowhere/configmaps", cm("a", json!({}))),
            get("/api/v1/namespaces/{ns}/nonsense"),
            get("/apis/nonsense.dev/v1"),
            get("/apis/nonsense.dev/v1/namespaces/{ns}/things"),
            get("/apis/purlin.dev/v1alpha1/namespaces/{ns}/things"),
            get("/apis/purlin.dev/v9"),
            post(&at(CM, "a"), cm("a", json!({}))),
            post("/apis/purlin.dev/v1alpha1/resources", resource("a", "1")),
            merge(CM, json!({})),
            get(CM).query("labelSelector=x%3D1&fieldSelector=spec.nonsense%3D1"),
            get(&format!("{CM}/a/nonsense")),
        ],
    );
}

#[test]
fn json_patches_test_versions() {
    let path = at(RESOURCES, "web");
    play(
        "jsonpatch",
        &[
            post(RESOURCES, resource("web", "1")),
            json_patch(
                &path,
                json!([
            {"op": "test", "path": "/metadata/uid", "value": "{uid:web}"},
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": ["purlin.dev/destroy"]},
            {"op": "test", "path": "/metadata/annotations", "value": null},
            {"op": "add", "path": "/metadata/annotations", "value": {"purlin.dev/record": "{uid:web}"}}]),
            ),
            json_patch(&path, json!([{"op": "test", "path": "/metadata/finalizers", "value": null}])),
            json_patch(&path, json!([{"op": "test", "path": "/metadata/uid", "value": "other"}])),
            json_patch(&path, json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "other.dev/wait"}]))
                .metadata_only(),
            json_patch(&path, json!([{"op": "remove", "path": "/metadata/annotations/nonsense"}])),
            json_patch(&path, json!([{"op": "replace", "path": "/spec/nonsense/deep", "value": 1}])),
            json_patch(
                &path,
                json!([{"op": "remove", "path": "/metadata/annotations/purlin.dev~1record"},
            {"op": "test", "path": "/metadata/finalizers/0", "value": "purlin.dev/destroy"},
            {"op": "remove", "path": "/metadata/finalizers/0"}]),
            ),
            json_patch(&path, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])),
            json_patch(&at(RESOURCES, "none"), json!([{"op": "test", "path": "/metadata/uid", "value": "u"}])),
        ],
    );
}

#[test]
fn status_writes_do_not_change_the_generation() {
    let (path, status) = (at(RESOURCES, "web"), format!("{RESOURCES}/web/status"));
    let condition = |message: &str| {
        json!([{"type": "Ready", "status": "True", "reason": "Available", "message": message,
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    };
    play(
        "status",
        &[
            post(
                RESOURCES,
                json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "web"},
            "spec": {"type": "terraform_data"}, "status": {"observedGeneration": 7}}),
            ),
            json_patch(
                &status,
                json!([
            {"op": "test", "path": "/metadata/uid", "value": "{uid:web}"},
            {"op": "add", "path": "/status", "value": {"observedGeneration": 1, "conditions": condition("well")}}]),
            ),
            json_patch(
                &status,
                json!([
            {"op": "test", "path": "/metadata/uid", "value": "{uid:web}"},
            {"op": "add", "path": "/status", "value": {"observedGeneration": 1, "conditions": condition("well")}}]),
            ),
            merge(&path, json!({"spec": {"config": {"input": "2"}}})),
            merge(&path, json!({"metadata": {"labels": {"x": "y"}}, "status": {"observedGeneration": 9}})),
            merge(
                &status,
                json!({"metadata": {"labels": {"x": "z"}}, "spec": {"config": {"input": "3"}},
            "status": {"observedGeneration": 2}}),
            ),
            merge(&status, json!({"status": {"conditions": condition(&"x".repeat(40_000))}})).metadata_only(),
            merge(&status, json!({"status": {"conditions": [{"type": "Ready", "status": "Perhaps"}]}})).metadata_only(),
            merge(&status, json!({"status": {"nonsense": 1}})),
            merge(&status, json!({"status": {"observedGeneration": "text"}})).metadata_only(),
            put(
                &path,
                json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "web"},
            "spec": {"type": "terraform_data"}}),
            ),
            put(
                &path,
                json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
            "metadata": {"name": "web", "resourceVersion": "{rv:web}"}, "spec": {"type": "terraform_data"}}),
            ),
            get(&status),
            merge("/apis/purlin.dev/v1alpha1/providers/{ns}/status", json!({"status": {}})),
            merge(&format!("{CM}/a/status"), json!({})),
            delete(&path, Value::Null),
        ],
    );
}

#[test]
fn finalizers_block_deletions() {
    let path = at(RESOURCES, "web");
    let held = json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "spec": {"type": "terraform_data"},
        "metadata": {"name": "web", "finalizers": ["purlin.dev/destroy"]}});
    play(
        "finalizers",
        &[
            post(RESOURCES, held),
            delete(&path, Value::Null).query("dryRun=All"),
            delete(&path, Value::Null),
            delete(&path, Value::Null),
            delete(&path, json!({"propagationPolicy": "Foreground"})),
            delete(&path, json!({"propagationPolicy": "Background"})),
            merge(&path, json!({"metadata": {"finalizers": ["purlin.dev/destroy", "other.dev/wait"]}})),
            merge(&path, json!({"metadata": {"deletionTimestamp": null}})),
            merge(&path, json!({"spec": {"suspend": true}})),
            json_patch(
                &format!("{path}/status"),
                json!([{"op": "add", "path": "/status", "value": {"observedGeneration": 2}}]),
            ),
            merge(&path, json!({"metadata": {"finalizers": []}})),
            get(&path),
            post(
                CM,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["bad"]}}),
            ),
            post(
                CM,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["x.dev/y"]}}),
            ),
            delete(&at(CM, "a"), Value::Null),
            put(&at(CM, "a"), cm("a", json!({"late": "1"}))),
            get(&at(CM, "a")),
        ],
    );
}

#[test]
fn field_managers_share_an_object() {
    let path = at(CM, "site");
    play(
        "apply",
        &[
            post(CM, cm("owner", json!({}))),
            apply(&path, "one", false, cm("site", json!({"a": "1", "b": "1"}))).query("dryRun=All"),
            get(&path),
            apply(&path, "one", false, cm("site", json!({"a": "1", "b": "1"}))),
            apply(&path, "one", false, cm("site", json!({"a": "1", "b": "1"}))),
            apply(&path, "two", false, cm("site", json!({"b": "1", "c": "1"}))),
            apply(&path, "two", false, cm("site", json!({"b": "2", "c": "1"}))),
            apply(&path, "two", false, cm("site", json!({"a": "2", "b": "2", "c": "1"}))).query("dryRun=All"),
            apply(&path, "one", false, cm("site", json!({"a": "1"}))),
            apply(&path, "two", true, cm("site", json!({"a": "2", "c": "1"}))).query("dryRun=All"),
            apply(&path, "two", true, cm("site", json!({"a": "2", "c": "1"}))),
            apply(&path, "one", false, cm("site", json!({"a": "1"}))),
            merge(&path, json!({"data": {"a": "3", "d": "3"}})),
            apply(&path, "two", false, cm("site", json!({"a": "2", "c": "1"}))),
            apply(&path, "two", false, cm("site", json!({"c": "1"}))),
            apply(&path, "one", false, cm("site", json!({"d": "3"}))),
            apply(&path, "one", false, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}})),
            apply(
                &path,
                "one",
                false,
                json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "site", "uid": "00000000-1111-2222-3333-444444444444"}, "data": {"e": "1"}}),
            ),
            apply(
                &path,
                "one",
                false,
                json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "site", "uid": "{uid:site}", "labels": {"x": "y"}, "annotations": {"purlin.dev/owner": "me"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "{uid:owner}"}]}}),
            ),
            apply(
                &path,
                "two",
                false,
                json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "site", "annotations": {"purlin.dev/owner": "you"}}, "data": {"c": "1"}}),
            ),
            apply(&path, "one", false, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}})),
            apply(
                &at(CM, "none"),
                "one",
                false,
                json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "none", "uid": "00000000-1111-2222-3333-444444444444"}}),
            ),
            apply(&path, "", false, cm("site", json!({}))),
            apply(&path, "one", false, cm("other", json!({}))),
            delete(&path, Value::Null),
        ],
    );
}

#[test]
fn built_in_objects_can_be_applied() {
    let deployment = |replicas: i64, image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    let service = |port: i64| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {
            "selector": {"app": "web"}, "ports": [{"port": port}]}})
    };
    let deployments = "/apis/apps/v1/namespaces/{ns}/deployments";
    let services = "/api/v1/namespaces/{ns}/services";
    let secret =
        |data: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": data}});
    play(
        "built-in",
        &[
            apply(&at(deployments, "web"), "one", false, deployment(0, "x:1")),
            apply(&at(deployments, "web"), "one", false, deployment(0, "x:2")),
            apply(&at(deployments, "web"), "two", false, deployment(0, "x:3")),
            apply(&at(services, "web"), "one", false, service(80)),
            apply(&at(services, "web"), "one", false, service(81)),
            apply(
                &at(services, "web"),
                "two",
                false,
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "other"}}}),
            ),
            apply(&at(SECRETS, "s"), "one", false, secret("MQ==")),
            apply(&at(SECRETS, "s"), "two", false, secret("Mg==")),
            delete(&at(services, "web"), json!({"propagationPolicy": "Background"})),
            delete(&at(SECRETS, "s"), json!({"propagationPolicy": "Background"})),
        ],
    );
}

#[test]
fn names_are_generated_and_lists_are_paged() {
    let drawn = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "site-"}});
    let some = |name: &str, tier: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"t": tier, "app": "x"}}});
    let list = |query: &str| get(CM).query(query);
    play(
        "lists",
        &[
            post(CM, drawn),
            post(CM, some("a", "1")),
            post(CM, some("b", "2")),
            post(CM, some("a-b", "1")),
            list("labelSelector=app%3Dx"),
            list("labelSelector=t+in+(1,3),app"),
            list("labelSelector=t+notin+(1),app"),
            list("labelSelector=t!%3D1,app"),
            list("labelSelector=!t,app"),
            list("fieldSelector=metadata.name%3Da"),
            list("labelSelector=app%3Dx&fieldSelector=metadata.name!%3Da"),
            list("labelSelector=app%3Dx&limit=2"),
            post(CM, some("aa", "1")),
            list("labelSelector=app%3Dx&limit=2&continue={continue}"),
            list("labelSelector=app%3Dx&limit=2").metadata_only(),
            list("labelSelector=app%3Dx&resourceVersion=0"),
            list("continue=nonsense").code_only(),
            get(RESOURCES).query("limit=1"),
            post(RESOURCES, resource("a", "1")),
            post(RESOURCES, resource("b", "1")),
            get(RESOURCES).query("limit=1"),
            get(RESOURCES).metadata_only(),
        ],
    );
}

#[test]
fn watches_deliver_the_events_after_a_version() {
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "1"},
        "metadata": {"name": "a", "labels": {"app": "x"}, "finalizers": ["x.dev/y"]}});
    let since = |query: &str| watch(CM, &format!("resourceVersion={{rv:start}}&{query}"));
    play(
        "watch",
        &[
            post(CM, cm("start", json!({}))),
            post(CM, held),
            merge(&at(CM, "a"), json!({"data": {"k": "2"}})),
            merge(&at(CM, "a"), json!({"metadata": {"labels": {"app": "y"}}})),
            merge(&at(CM, "a"), json!({"metadata": {"labels": {"app": "x"}}})),
            delete(&at(CM, "a"), Value::Null),
            merge(&at(CM, "a"), json!({"metadata": {"finalizers": null}})),
            post(CM, cm("b", json!({}))),
            delete(&at(CM, "b"), Value::Null),
            post(CM, cm("b", json!({"again": "1"}))),
            since(""),
            since("labelSelector=app%3Dx"),
            since("fieldSelector=metadata.name%3Db"),
            since("fieldSelector=metadata.name%3Da").metadata_only(),
            watch(&at(CM, "b"), "resourceVersion={rv:start}"),
            watch(CM, "fieldSelector=metadata.name%3Db"),
            watch(CM, "fieldSelector=metadata.name%3Db&resourceVersion=0"),
            watch(CM, "resourceVersion=nonsense"),
        ],
    );
}

#[test]
fn secrets_are_replaced_with_a_version() {
    let record = |kind: &str, data: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "purlin.dev/record.v1", "data": {"record": data},
            "metadata": {"name": format!("r-{kind}"), "labels": {"purlin.dev/record": kind}}})
    };
    let list = "fieldSelector=type%3Dpurlin.dev/record.v1&labelSelector=purlin.dev/record+in+(head,family)&limit=500";
    let mut part = record("part", "MQ==");
    part["immutable"] = true.into();
    let mut new = record("head", "Mg==");
    new["metadata"]["resourceVersion"] = "{rv:r-head}".into();
    let mut old = record("head", "Mw==");
    old["metadata"]["resourceVersion"] = "1".into();
    play(
        "records",
        &[
            post(SECRETS, record("head", "MQ==")).metadata_only(),
            post(SECRETS, record("head", "MQ==")).metadata_only(),
            post(SECRETS, record("family", "MQ==")),
            post(SECRETS, part),
            post(
                SECRETS,
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "plain"}, "stringData": {"a": "b"}}),
            ),
            get(SECRETS).query(list),
            put(&at(SECRETS, "r-head"), new).metadata_only(),
            put(&at(SECRETS, "r-head"), old).metadata_only(),
            merge(&at(SECRETS, "r-part"), json!({"data": {"record": "Mg=="}})),
            merge(&at(SECRETS, "r-part"), json!({"immutable": false})),
            merge(&at(SECRETS, "r-head"), json!({"type": "Opaque"})),
            delete(&at(SECRETS, "r-head"), json!({"preconditions": {"resourceVersion": "1"}})),
            delete(&at(SECRETS, "r-head"), json!({"preconditions": {"resourceVersion": "{rv:r-head}"}})),
            delete(&at(SECRETS, "r-head"), json!({"preconditions": {"resourceVersion": "{rv:r-head}"}})),
            post(
                SECRETS,
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "large"},
            "data": {"a": "QUJD".repeat(360_000)}}),
            )
            .metadata_only(),
            get(SECRETS).query(list).metadata_only(),
        ],
    );
}

#[test]
fn leases_are_replaced_with_a_version() {
    let lease = |holder: Value, version: Value| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "purlin-controller", "resourceVersion": version},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "renewTime": "2026-01-01T00:00:00.000000Z"}})
    };
    let path = at(LEASES, "purlin-controller");
    play(
        "leases",
        &[
            get(&path),
            post(LEASES, lease("a".into(), Value::Null)),
            post(LEASES, lease("b".into(), Value::Null)),
            put(&path, lease("b".into(), "1".into())),
            put(&path, lease("b".into(), "{rv:purlin-controller}".into())),
            put(&path, lease("".into(), "{rv:purlin-controller}".into())),
            put(&path, lease(Value::Null, "{rv:purlin-controller}".into())),
            put(&path, lease("c".into(), Value::Null)),
            delete(&path, Value::Null),
            put(&path, lease("c".into(), "{rv:purlin-controller}".into())),
            put(&path, lease("d".into(), Value::Null)),
        ],
    );
}

#[test]
fn a_namespace_being_deleted_accepts_no_new_objects() {
    let gone = "/api/v1/namespaces/{ns}-gone";
    let inside = format!("{gone}/configmaps");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-gone"}});
    let held =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["x.dev/y"]}});
    let web = json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "web"}, "spec": {"type": "t"}});
    play(
        "namespaces",
        &[
            post(NAMESPACES, namespace.clone()),
            post(NAMESPACES, namespace),
            post(&inside, held),
            delete(gone, Value::Null),
            post(&inside, cm("late", json!({}))),
            post(&inside, cm("late", json!({}))).query("dryRun=All"),
            apply(&at(&inside, "late"), "one", false, cm("late", json!({}))),
            post("/apis/purlin.dev/v1alpha1/namespaces/{ns}-gone/resources", web),
            merge(&at(&inside, "held"), json!({"data": {"still": "works"}})).code_only(),
            merge(&at(&inside, "held"), json!({"metadata": {"finalizers": null}})).code_only(),
            wait_deleted(gone),
            get(gone),
            post(&inside, cm("late", json!({}))),
        ],
    );
}

#[test]
fn requests_without_permission_are_forbidden() {
    let unprivileged = |step: Step| step.by("system:serviceaccount:{ns}:unprivileged");
    play(
        "access",
        &[
            unprivileged(get(&at(CM, "a"))),
            unprivileged(get(CM)),
            unprivileged(watch(CM, "resourceVersion=0")),
            unprivileged(post(CM, cm("a", json!({})))),
            unprivileged(apply(&at(CM, "a"), "one", true, cm("a", json!({})))),
            unprivileged(delete(&at(CM, "a"), Value::Null)),
            unprivileged(merge(&format!("{RESOURCES}/web/status"), json!({}))),
            unprivileged(get("/api/v1/namespaces")),
            unprivileged(get("/api/v1/namespaces/{ns}")),
            unprivileged(get("/apis/purlin.dev/v1alpha1/resources")),
            unprivileged(get("/apis/purlin.dev/v1alpha1/providers/x")),
        ],
    );
}

#[test]
fn discovery_returns_the_same_groups_and_errors() {
    let deployments = "/apis/apps/v1/namespaces/{ns}/deployments";
    play(
        "discovery",
        &[
            get("/apis/purlin.dev"),
            get("/apis/nonsense.dev"),
            Step::of(Method::GET, "/apis/purlin.dev/v1alpha1", Value::Null).code_only(),
            get("/api/v2"),
            get(&at(deployments, "none")),
            delete(&at(deployments, "none"), json!({"propagationPolicy": "Foreground"})),
            delete(&at(CM, "none"), json!({"preconditions": {"uid": "u"}})),
        ],
    );
}
