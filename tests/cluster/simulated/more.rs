//! Less common requests: owners, cluster-scoped objects, dry runs, events, lists with keys.

use serde_json::{Value, json};

use super::player::{apply, delete, get, json_patch, merge, play, post, put, wait_deleted};
use super::{CM, RESOURCES, at, cm, resource};

const PROVIDERS: &str = "/apis/purlin.dev/v1alpha1/providers";
const PROVIDER_CONFIGS: &str = "/apis/purlin.dev/v1alpha1/namespaces/{ns}/providerconfigs";
const ACCOUNTS: &str = "/api/v1/namespaces/{ns}/serviceaccounts";

fn owned(name: &str, owner: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": format!("{{uid:{owner}}}"),
        "blockOwnerDeletion": true}]}})
}

#[test]
fn dependents_are_deleted_with_their_owner_or_before_it() {
    let deployments = "/apis/apps/v1/namespaces/{ns}/deployments";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}});
    play(
        "owners",
        &[
            post(CM, cm("a", json!({}))),
            post(CM, owned("b", "a")),
            delete(&at(CM, "a"), json!({"propagationPolicy": "Background"})),
            wait_deleted(&at(CM, "b")),
            post(CM, cm("c", json!({}))),
            post(CM, owned("d", "c")),
            delete(&at(CM, "c"), json!({"propagationPolicy": "Foreground"})),
            wait_deleted(&at(CM, "c")),
            get(&at(CM, "d")),
            post(CM, cm("e", json!({}))),
            post(CM, owned("f", "e")),
            delete(&at(CM, "e"), json!({"propagationPolicy": "Orphan"})).code_only(),
            wait_deleted(&at(CM, "e")),
            get(&at(CM, "f")).code_only(),
            post(deployments, deployment),
            delete(&at(deployments, "web"), json!({"propagationPolicy": "Foreground"})).code_only(),
            wait_deleted(&at(deployments, "web")),
        ],
    );
}

#[test]
fn cluster_scoped_objects_have_no_namespace() {
    let provider = at(PROVIDERS, "{ns}");
    let lock = json!({"hashes": [], "version": "1.0.0"});
    play(
        "cluster",
        &[
            post(
                PROVIDERS,
                json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Provider", "metadata": {"name": "{ns}"},
            "spec": {"source": "hashicorp/random"}}),
            ),
            get(&provider),
            merge(
                &format!("{provider}/status"),
                json!({"status": {"observedGeneration": 1, "conditions": [],
            "version": null, "protocol": null, "resourceTypes": null, "lock": null}}),
            ),
            merge(&format!("{provider}/status"), json!({"status": {"version": "3.6.0", "lock": lock}})),
            merge(&format!("{provider}/status"), json!({"status": {"version": null}})),
            delete(&provider, Value::Null),
            get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/none.purlin.dev").metadata_only(),
            get("/apis/purlin.dev/v1alpha1/namespaces/{ns}/providers"),
            get("/api/v1/namespaces/{ns}-none"),
            merge("/api/v1/namespaces/{ns}", json!({"metadata": {"labels": {"team": "a"}}})).code_only(),
            post(
                PROVIDER_CONFIGS,
                json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": "random"},
            "spec": {}}),
            ),
            json_patch(
                &at(PROVIDER_CONFIGS, "random"),
                json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "{rv:random}"},
            {"op": "add", "path": "/metadata/finalizers", "value": ["purlin.dev/in-use"]}]),
            ),
            json_patch(
                &at(PROVIDER_CONFIGS, "random"),
                json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "1"}]),
            ),
            merge(
                &at(PROVIDER_CONFIGS, "random"),
                json!({"metadata": {"resourceVersion": "{rv:random}", "finalizers": null}}),
            ),
            delete(&at(PROVIDER_CONFIGS, "random"), json!({"preconditions": {"uid": "other"}})),
            delete(&at(PROVIDER_CONFIGS, "random"), Value::Null),
        ],
    );
}

#[test]
fn a_dry_run_returns_the_result_and_changes_nothing() {
    play(
        "dry",
        &[
            post(CM, cm("a", json!({"k": "1"}))).query("dryRun=All&fieldManager=one"),
            post(RESOURCES, resource("a", "1")).query("dryRun=All"),
            get(&at(CM, "a")),
            post(CM, cm("a", json!({"k": "1"}))),
            post(CM, cm("a", json!({"k": "1"}))).query("dryRun=All"),
            put(&at(CM, "a"), cm("a", json!({"k": "2"}))).query("dryRun=All"),
            merge(&at(CM, "a"), json!({"data": {"k": "3"}})).query("dryRun=All"),
            delete(&at(CM, "a"), json!({"dryRun": ["All"]})),
            get(&at(CM, "a")),
        ],
    );
}

#[test]
fn custom_objects_are_validated_against_their_schema() {
    let with = |spec: Value| json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "a"}, "spec": spec});
    let condition = |reason: &str| {
        json!([{"type": "Ready", "status": "True", "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    };
    let status = format!("{RESOURCES}/a/status");
    play(
        "schema",
        &[
            post(RESOURCES, with(json!({"config": {}}))).code_only(),
            post(RESOURCES, with(json!({"type": 7}))).code_only(),
            post(RESOURCES, with(json!({"type": "terraform_data", "nonsense": 1, "config": {"kept": {"deep": [1]}}}))),
            merge(&status, json!({"status": {"conditions": condition("")}})).code_only(),
            merge(&status, json!({"status": {"conditions": condition("no words")}})).code_only(),
            merge(&status, json!({"status": {"observedGeneration": null}})).code_only(),
            merge(&status, json!({"status": null})).code_only(),
            get(&at(RESOURCES, "a")),
            json_patch(&status, json!([{"op": "remove", "path": "/status"}])).code_only(),
            get(&at(RESOURCES, "a")),
            post(RESOURCES, json!({"kind": "Resource", "metadata": {"name": "b"}})).code_only(),
            post(RESOURCES, json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Other", "metadata": {"name": "b"}}))
                .code_only(),
        ],
    );
}

#[test]
fn items_of_lists_with_keys_have_separate_managers() {
    let path = at(ACCOUNTS, "robot");
    let account = |secrets: &[&str]| {
        let secrets: Vec<_> = secrets.iter().map(|name| json!({"name": name})).collect();
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}, "imagePullSecrets": secrets})
    };
    let held = |finalizers: &[&str]| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "finalizers": finalizers}});
    play(
        "keys",
        &[
            apply(&path, "one", false, account(&["a", "b"])),
            apply(&path, "two", false, account(&["b", "c"])),
            apply(&path, "one", false, account(&["a"])),
            apply(&path, "two", false, account(&[])),
            apply(&path, "three", false, held(&["x.dev/y"])),
            apply(&path, "four", false, held(&["x.dev/y", "x.dev/z"])),
            apply(&path, "three", false, held(&[])),
            apply(&path, "four", false, held(&[])),
            delete(&path, Value::Null),
        ],
    );
}

#[test]
fn events_are_accepted() {
    let events = "/apis/events.k8s.io/v1/namespaces/{ns}/events";
    play(
        "events",
        &[
            post(
                events,
                json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "web.1"},
            "type": "Normal", "reason": "Created", "action": "Create", "note": "made",
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "purlin.dev/controller",
            "reportingInstance": "a", "regarding": {"kind": "Resource", "name": "web", "namespace": "{ns}"}}),
            ),
            post(
                events,
                json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "web.1"},
            "type": "Normal", "reason": "Created", "action": "Create", "note": "made",
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "purlin.dev/controller",
            "reportingInstance": "a", "regarding": {"kind": "Resource", "name": "web", "namespace": "{ns}"}}),
            ),
            delete(&at(events, "web.1"), Value::Null),
        ],
    );
}
