//! The usual changes of a user: apply, edit, replace, delete.

use serde_json::Value;

use crate::command_line::ok;
use crate::controlplane::wait_until;
use crate::installation::*;

fn id(namespace: &str, name: &str) -> String {
    let resource = resource(namespace, name).expect("a Resource");
    resource["status"]["id"].as_str().expect("an id").to_owned()
}

/// Gives the default ServiceAccount of the namespace the rights of a built-in ClusterRole.
fn grant(ns: &str, role: &str) {
    let (role_ref, account) = (format!("--clusterrole={role}"), format!("--serviceaccount={ns}:default"));
    plane().kubectl_ok(&["-n", ns, "create", "rolebinding", role, &role_ref, &account]);
}

#[test]
fn apply_edit_replace_delete() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("life");
    let three = [
        data("network", "10.0.0.0/16", ""),
        data("database", "\"db in ${network.output}\"", ""),
        data("app", "\"app on ${database.output}\"", "dependsOn: [{ name: network }]"),
    ];
    plane.apply(&["-n", &ns], &three.concat());
    wait_ready(&ns, &["network", "database", "app"]);
    let app = resource(&ns, "app").unwrap();
    assert_eq!(app["status"]["attributes"]["output"], "app on db in 10.0.0.0/16");
    assert_eq!(app["status"]["dependencies"], serde_json::json!(["database", "network"]));
    assert_eq!(records(&ns).len(), 3);

    // An update in place reaches every dependent.
    let before = (id(&ns, "network"), id(&ns, "app"));
    plane.apply(&["-n", &ns], &data("network", "10.1.0.0/16", ""));
    wait_until("the app is updated", LIMIT, || {
        resource(&ns, "app").unwrap()["status"]["attributes"]["output"] == "app on db in 10.1.0.0/16"
    });
    wait_ready(&ns, &["network", "database", "app"]);
    assert_eq!((id(&ns, "network"), id(&ns, "app")), before, "nothing was replaced");

    // A replacement creates a new object.
    let forcing = data("network", "10.1.0.0/16", "").replace("input:", "triggers_replace: v2\n    input:");
    plane.apply(&["-n", &ns], &forcing);
    wait_until("the network is replaced", LIMIT, || {
        resource(&ns, "network")
            .is_some_and(|network| is_ready(&network) && network["status"]["id"] != before.0.as_str())
    });

    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty(), "no record is left");
}

#[test]
fn create_before_destroy_is_inherited_and_reported() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("cbd");
    let base = data("base", "one", "");
    let top = data("top", "\"${base.id}\"", "lifecycle: { createBeforeDestroy: true }");
    plane.apply(&["-n", &ns], &format!("{base}{top}"));
    wait_ready(&ns, &["base", "top"]);
    let shown = resource(&ns, "base").unwrap();
    assert_eq!(shown["status"]["lifecycle"]["createBeforeDestroy"], true);
    assert_eq!(shown["status"]["lifecycle"]["because"], "required by top");

    let old = id(&ns, "base");
    plane.apply(&["-n", &ns], &base.replace("input:", "triggers_replace: v2\n    input:"));
    wait_until("base is replaced", LIMIT, || id(&ns, "base") != old);
    wait_ready(&ns, &["base", "top"]);
    let top = resource(&ns, "top").unwrap();
    assert_eq!(top["status"]["attributes"]["output"], id(&ns, "base").as_str());
    wait_until("no deposed object is left", LIMIT, || {
        resource(&ns, "base").unwrap()["status"].get("deposed").is_none()
    });
}

#[test]
fn resources_deleted_together_are_destroyed_in_the_order_of_dependencies() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("all");
    let chain: String = (0..12)
        .map(|number| match number {
            0 => data("item-0", "start", ""),
            _ => data(&format!("item-{number}"), &format!("\"${{item_{}.output}}\"", number - 1), ""),
        })
        .collect();
    plane.apply(&["-n", &ns], &chain);
    wait_ready(&ns, &["item-11"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn the_deletion_of_an_object_in_use_is_blocked_by_its_dependent() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("used");
    plane.apply(&["-n", &ns], &format!("{}{}", data("base", "one", ""), data("top", "\"${base.id}\"", "")));
    wait_ready(&ns, &["base", "top"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "base", "--wait=false"]);
    let blocked = wait_reason(&ns, "base", "DeletionBlocked", "InUse");
    assert!(blocked["message"].as_str().unwrap().contains("top"), "{blocked}");
    assert!(is_ready(&resource(&ns, "top").unwrap()), "the dependent does not change");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "top", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn a_namespace_can_be_deleted() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("gone");
    plane.apply(&["-n", &ns], &format!("{}{}", data("base", "one", ""), data("top", "\"${base.id}\"", "")));
    wait_ready(&ns, &["base", "top"]);
    plane.kubectl_ok(&["delete", "namespace", &ns, "--timeout=90s"]);
    wait_until("its records are deleted", LIMIT, || records(&ns).is_empty());
}

#[test]
fn a_prevented_deletion_is_blocked_until_the_spec_allows_it() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("prevent");
    let protected = data("precious", "one", "lifecycle: { preventDestroy: true }");
    plane.apply(&["-n", &ns], &format!("{}{protected}", data("base", "zero", "")));
    wait_ready(&ns, &["precious", "base"]);
    let replace = protected.replace("input:", "triggers_replace: v2\n    input:");
    plane.apply(&["-n", &ns], &replace);
    let stalled = wait_reason(&ns, "precious", "Ready", "PreventDestroy");
    assert!(stalled["message"].as_str().unwrap().contains("triggers_replace"), "{stalled}");
    plane.apply(&["-n", &ns], &protected);
    wait_ready(&ns, &["precious"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_reason(&ns, "precious", "DeletionBlocked", "PreventDestroy");
    // To unblock the deletion, the user edits the spec, which is possible while the Resource is being deleted.
    let allow = r#"{"spec":{"lifecycle":{"preventDestroy":false}}}"#;
    plane.kubectl_ok(&["-n", &ns, "patch", "pres", "precious", "--type=merge", "-p", allow]);
    wait_empty(&ns);
}

#[test]
fn an_expression_over_the_namespace_protects_an_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("protect-when");
    plane.kubectl_ok(&["label", "namespace", &ns, "stage=live"]);
    let rule = "lifecycle: { preventDestroy: \"${ns.labels.stage == 'live'}\" }";
    plane.apply(&["-n", &ns], &data("kept", "one", rule));
    wait_ready(&ns, &["kept"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "kept", "--wait=false"]);
    let held = wait_reason(&ns, "kept", "DeletionBlocked", "PreventDestroy");
    assert!(held["message"].as_str().unwrap().contains("`preventDestroy` forbids"), "{held}");
    plane.kubectl_ok(&["label", "namespace", &ns, "stage=test", "--overwrite"]);
    wait_empty(&ns);
}

/// A Resource whose protection reads a ConfigMap.
fn protected_by_input(name: &str, key: &str) -> String {
    let more = format!(
        "inputs: [{{ name: protect, configMapKeyRef: {{ name: vars, key: '{key}' }} }}]\nlifecycle: {{ preventDestroy: \
         \"${{inputs.protect == 'true'}}\" }}"
    );
    data(name, "one", &more)
}

fn vars(on: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: vars }}\ndata: {{ 'off': 'false', 'on': '{on}' }}\n"
    )
}

#[test]
fn an_input_protects_an_object_while_its_resource_is_deleted_and_its_last_value_does_without_it() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("protect-input");
    grant(&ns, "view");
    let all = [
        vars("true"),
        protected_by_input("free", "off"),
        protected_by_input("kept", "on"),
        protected_by_input("last", "off"),
    ];
    plane.apply(&["-n", &ns], &all.concat());
    wait_ready(&ns, &["free", "kept", "last"]);
    // The ConfigMap remains, and is read.
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "free", "--timeout=60s"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "kept", "--wait=false"]);
    wait_reason(&ns, "kept", "DeletionBlocked", "PreventDestroy");
    // Both are deleted.
    plane.kubectl_ok(&["-n", &ns, "delete", "configmap", "vars"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "last", "--timeout=60s"]);
    wait_until("the message names the missing input", LIMIT, || {
        let held = resource(&ns, "kept").and_then(|kept| condition(&kept, "DeletionBlocked"));
        held.is_some_and(|held| {
            held["message"].as_str().unwrap().contains("InputNotFound: there is no ConfigMap `vars`")
        })
    });
    plane.apply(&["-n", &ns], &vars("false"));
    wait_empty(&ns);
}

#[test]
fn a_namespace_is_deleted_with_what_its_protections_read() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("protect-gone");
    grant(&ns, "view");
    let read = "---\napiVersion: purlin.dev/v1alpha1\nkind: DataSource\nmetadata: { name: read }\nspec: { type: \
                kubernetes_object, config: { apiVersion: v1, kind: ConfigMap, name: vars } }\n";
    let by_data = data("by-data", "one", "lifecycle: { preventDestroy: \"${data.read.object.data.off == 'true'}\" }");
    plane.apply(
        &["-n", &ns],
        &[&vars("true"), read, &by_data, &protected_by_input("by-input", "off")].map(String::from).concat(),
    );
    wait_ready(&ns, &["by-data", "by-input"]);
    plane.kubectl_ok(&["delete", "namespace", &ns, "--timeout=90s"]);
    wait_until("its records are deleted", LIMIT, || records(&ns).is_empty());
}

#[test]
fn removed_instances_are_protected_by_their_key_and_their_number() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("protect-key");
    let keys = |keys: &str| {
        let more = format!("forEach: {keys}\nlifecycle: {{ preventDestroy: \"${{each.key == 'b'}}\" }}");
        data("keyed", "one", &more)
    };
    let numbers = |count: u8| {
        let more = format!("count: {count}\nlifecycle: {{ preventDestroy: \"${{count.index == 9}}\" }}");
        data("numbered", "one", &more)
    };
    plane.apply(&["-n", &ns], &[keys("[a, b, c]"), numbers(2)].concat());
    wait_ready(&ns, &["keyed", "numbered"]);
    plane.apply(&["-n", &ns], &[keys("[c]"), numbers(1)].concat());
    wait_ready(&ns, &["numbered"]);
    let held = wait_reason(&ns, "keyed", "Synced", "PreventDestroy");
    assert!(held["message"].as_str().unwrap().contains("keyed[\"b\"]"), "{held}");
    wait_until("the others are destroyed", LIMIT, || records(&ns).len() == 2 + 1 + 2);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "numbered", "--timeout=60s"]);
    plane.apply(&["-n", &ns], &keys("[c]").replace("each.key == 'b'", "false"));
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "keyed", "--timeout=60s"]);
}

#[test]
fn a_family_that_is_deleted_by_mistake_names_its_users_and_both_ways_out() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("mistake");
    let app = data("app", "one", "count: 2");
    let users = [
        data("lb", "\"${app[1].id}\"", "lifecycle: { createBeforeDestroy: true }"),
        data("all", "\"${size(app)}\"", ""),
        data("top", "\"${lb.id}\"", ""),
    ];
    plane.apply(&["-n", &ns], &format!("{app}{}", users.concat()));
    wait_ready(&ns, &["app", "lb", "all", "top"]);
    let before = resource(&ns, "lb").unwrap()["status"]["attributes"]["output"].clone();
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "app", "--wait=false"]);
    let blocked = wait_reason(&ns, "app", "DeletionBlocked", "InUse");
    let message = blocked["message"].as_str().unwrap();
    for expected in ["the Resource is being deleted", "`all`", "delete", "purlin state release app"] {
        assert!(message.contains(expected), "{message}");
    }
    for name in ["lb", "all", "top"] {
        let user = resource(&ns, name).unwrap();
        assert!(is_ready(&user) && condition(&user, "Stalled").is_none(), "{:#}", user["status"]);
    }
    // It is kept.
    ok(&["state", "release", "app", "--yes", "-n", &ns]);
    plane.apply(&["-n", &ns], &app);
    wait_ready(&ns, &["app", "lb", "all", "top"]);
    assert_eq!(resource(&ns, "lb").unwrap()["status"]["attributes"]["output"], before, "it is the same object");
    // It is deleted with its users.
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "app", "--wait=false"]);
    wait_reason(&ns, "app", "DeletionBlocked", "InUse");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "lb", "all", "top", "--timeout=60s"]);
    wait_empty(&ns);
}

/// Otherwise its later deletion would leave the object behind.
#[test]
fn a_resource_that_is_released_while_nothing_changes_gets_its_finalizer_back() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("released");
    plane.apply(&["-n", &ns], &data("app", "one", ""));
    wait_ready(&ns, &["app"]);
    plane.apply(&["-n", &ns], &data("app", "two", "suspend: true"));
    wait_reason(&ns, "app", "Ready", "Suspended");
    let version = || resource(&ns, "app").unwrap()["metadata"]["resourceVersion"].clone();
    let before = version();
    ok(&["state", "release", "app", "--yes", "-n", &ns]);
    wait_until("the finalizer is added again", LIMIT, || {
        let finalizers = &resource(&ns, "app").unwrap()["metadata"]["finalizers"];
        version() != before && finalizers.as_array().is_some_and(|all| all.len() == 1)
    });
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "app", "--wait=false"]);
    wait_reason(&ns, "app", "DeletionBlocked", "Suspended");
    plane.kubectl_ok(&["-n", &ns, "patch", "pres", "app", "--type=merge", "-p", "{\"spec\":{\"suspend\":false}}"]);
    wait_empty(&ns);
}

#[test]
fn a_policy_without_replace_blocks_a_replacement_and_one_without_delete_forgets_the_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("policies");
    let policies = "managementPolicies: [Observe, Create, Update]";
    let object = |trigger: &str| {
        data("kept", "one", policies).replace("input: one", &format!("input: one\n    triggers_replace: {trigger}"))
    };
    plane.apply(&["-n", &ns], &object("one"));
    wait_ready(&ns, &["kept"]);
    plane.apply(&["-n", &ns], &object("two"));
    let refused = wait_reason(&ns, "kept", "Stalled", "ActionForbiddenByPolicy");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("triggers_replace") && message.contains("`Replace`"), "{message}");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "kept", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn a_change_of_a_trigger_replaces_the_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("triggers");
    let trigger = "lifecycle: { replaceTriggeredBy: [cause] }";
    let both = |input: &str| format!("{}{}", data("cause", input, ""), data("effect", "same", trigger));
    plane.apply(&["-n", &ns], &both("one"));
    wait_ready(&ns, &["cause", "effect"]);
    let (cause, effect) = (id(&ns, "cause"), id(&ns, "effect"));
    plane.apply(&["-n", &ns], &both("two"));
    wait_until("the effect is replaced", LIMIT, || {
        let now = resource(&ns, "effect").and_then(|resource| resource["status"]["id"].as_str().map(str::to_owned));
        now.is_some_and(|now| now != effect)
    });
    wait_ready(&ns, &["cause", "effect"]);
    assert_eq!(id(&ns, "cause"), cause, "the cause itself is only updated");
}

/// Waits until the status of the newest generation says that the Resource is suspended, and no more than that.
fn wait_suspended(namespace: &str, name: &str) {
    wait_until("it is suspended", LIMIT, || {
        let found = resource(namespace, name).unwrap();
        let is_suspended = |kind: &str| {
            let generation = &found["metadata"]["generation"];
            condition(&found, kind).is_some_and(|one| {
                (&one["status"], &one["reason"], &one["observedGeneration"])
                    == (&"Unknown".into(), &"Suspended".into(), generation)
            })
        };
        is_suspended("Ready") && is_suspended("Synced")
    });
}

#[test]
fn suspended_objects_are_not_changed() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("pause");
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    let suspend = |value: &str| {
        let patch = format!("{{\"spec\":{{\"suspend\":{value}}}}}");
        plane.kubectl_ok(&["-n", &ns, "patch", "pres", "item", "--type=merge", "-p", &patch]);
    };
    suspend("true");
    wait_suspended(&ns, "item");
    // An apply of a manifest without the field leaves it as it is.
    plane.apply(&["-n", &ns], &data("item", "two", ""));
    wait_suspended(&ns, "item");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "item", "--wait=false"]);
    wait_reason(&ns, "item", "DeletionBlocked", "Suspended");
    assert_eq!(records(&ns).len(), 1);
    suspend("null");
    wait_empty(&ns);
}

#[test]
fn requests_by_annotation_are_carried_out_once() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("ask");
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    let old = id(&ns, "item");
    reconcile(&ns, &["item"], "now");
    assert_eq!(id(&ns, "item"), old);
    plane.kubectl_ok(&["-n", &ns, "annotate", "pres", "item", "purlin.dev/replace-requested-at=now"]);
    wait_until("the object is replaced", LIMIT, || id(&ns, "item") != old);
    wait_ready(&ns, &["item"]);
    let new = id(&ns, "item");
    plane.apply(&["-n", &ns], &data("item", "two", ""));
    wait_until("it is updated", LIMIT, || {
        resource(&ns, "item").is_some_and(|item| is_ready(&item) && item["status"]["attributes"]["output"] == "two")
    });
    assert_eq!(id(&ns, "item"), new, "the request was carried out once");
}

#[test]
fn an_unchanged_object_is_not_written_again() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("idle");
    plane.apply(&["-n", &ns], &format!("{}{}", data("base", "one", ""), data("other", "two", "")));
    wait_ready(&ns, &["base", "other"]);
    let version = |name: &str| resource(&ns, name).unwrap()["metadata"]["resourceVersion"].clone();
    let before = version("base");
    // A change of another object wakes the namespace; the unchanged one is not written.
    plane.apply(&["-n", &ns], &data("other", "three", ""));
    wait_until("the other is updated", LIMIT, || {
        resource(&ns, "other")
            .is_some_and(|other| is_ready(&other) && other["status"]["attributes"]["output"] == "three")
    });
    assert_eq!(version("base"), before);
}

#[test]
fn the_deletion_policy_orphan_forgets_the_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("orphan");
    grant(&ns, "edit");
    let manifest = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: kept }\nspec:\n  type: \
                    kubernetes_object\n  deletionPolicy: Orphan\n  config:\n    manifest: { apiVersion: v1, kind: \
                    ConfigMap, metadata: { name: kept }, data: { a: b } }\n";
    plane.apply(&["-n", &ns], manifest);
    wait_ready(&ns, &["kept"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "kept", "--timeout=60s"]);
    assert_eq!(plane.get(&["-n", &ns, "configmap", "kept"])["data"]["a"], "b");
    assert!(records(&ns).is_empty());
}

#[test]
fn kubectl_shows_the_columns_and_events_of_a_resource() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("show");
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    let table = plane.kubectl_ok(&["-n", &ns, "get", "pres"]);
    let header = table.lines().next().unwrap_or_default();
    for column in ["NAME", "READY", "SYNCED", "REASON", "TYPE", "ID", "ACTION", "AGE"] {
        assert!(header.contains(column), "{table}");
    }
    wait_event(&ns, "item", "Created");
    let by_type =
        plane.kubectl_ok(&["-n", &ns, "get", "pres", "--field-selector=spec.type=terraform_data", "-o", "name"]);
    assert_eq!(by_type.trim(), "resource.purlin.dev/item");
    let waited = plane.kubectl(&["-n", &ns, "wait", "--for=condition=Ready", "pres/item", "--timeout=10s"]);
    assert!(waited.status.success());
    let _: Value = plane.get(&["-n", &ns, "purlin"]);
}

#[test]
fn a_create_costs_four_writes() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("cost");
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    let record = records(&ns)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    // The intent, the finalizer and annotations, the result, and the status. There is also one event.
    let expected = ["create secrets", "patch resources", "update secrets", "patch resources/status"];
    assert_eq!(writes_about(&ns, &record), expected);
    wait_until("the event exists", LIMIT, || events(&ns, "item").len() == 1);
    // A reconcile request costs one write of the status.
    reconcile(&ns, &["item"], "now");
    assert_eq!(writes_about(&ns, &record), [&expected[..], &["patch resources/status"]].concat());
}

/// The writes of the controller to the Resources of a namespace and to a record, in the order of the audit log.
fn writes_about(namespace: &str, record: &str) -> Vec<String> {
    let log = std::fs::read_to_string(plane().audit_log()).expect("the audit log");
    let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours = entries.filter(|entry| {
        let target = &entry["objectRef"];
        let about = (target["resource"] == "resources" && target["namespace"] == namespace)
            || (target["resource"] == "secrets" && (target["name"] == record));
        about
            && entry["stage"] == "ResponseComplete"
            && entry["user"]["username"] == format!("system:serviceaccount:{NAMESPACE}:purlin")
            && ["create", "update", "patch", "delete"].iter().any(|verb| entry["verb"] == *verb)
    });
    let writes = ours.map(|entry| {
        let target = &entry["objectRef"];
        let part = target["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
        format!(
            "{} {}{part}",
            entry["verb"].as_str().unwrap_or_default(),
            target["resource"].as_str().unwrap_or_default()
        )
    });
    writes.collect()
}
