//! Kubernetes objects that Purlin manages as a ServiceAccount of the namespace.

use std::fs;

use crate::controlplane::wait_until;
use crate::installation::*;

fn example(file: &str) -> String {
    let path = format!("{}/examples/kubernetes/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).expect("an example")
}

fn config_maps(namespace: &str) -> Vec<String> {
    let list = plane().get(&["-n", namespace, "configmaps"]);
    let names = list["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str());
    names.filter(|name| name.starts_with("site-")).map(str::to_owned).collect()
}

/// A `kubernetes_object` Resource over a manifest in flow style.
pub(crate) fn object(name: &str, manifest: &str, more: &str) -> String {
    let indented: String = more.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
         kubernetes_object\n  config:\n    manifest: {manifest}\n{indented}"
    )
}

pub(crate) fn may_edit(namespace: &str) {
    plane().bind(namespace, "edit", "--clusterrole=edit", "default");
}

#[test]
fn the_example_creates_new_settings_before_it_destroys_the_old_ones() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("shop");
    plane.apply(&["-n", &ns], &example("rbac.yaml"));
    plane.apply(&["-n", &ns], &example("shop.yaml"));
    wait_ready(&ns, &["site", "web", "address"]);
    let first = config_maps(&ns);
    assert_eq!(first.len(), 1);
    let web = plane.get(&["-n", &ns, "deployment", "web"]);
    assert_eq!(
        web["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"],
        first[0].as_str()
    );
    assert_eq!(plane.get(&["-n", &ns, "configmap", &first[0]])["data"]["greeting"], format!("Welcome to {ns}"));

    plane.apply(&["-n", &ns], &example("shop.yaml").replace("color: green", "color: blue"));
    wait_until("the settings are replaced", LIMIT, || {
        let now = config_maps(&ns);
        now.len() == 1 && now != first
    });
    wait_ready(&ns, &["site", "web", "address"]);
    let second = config_maps(&ns);
    let web = plane.get(&["-n", &ns, "deployment", "web"]);
    assert_eq!(
        web["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"],
        second[0].as_str()
    );
    let order = writes_of(&ns);
    let at = |verb: &str, what: &str| order.iter().position(|write| write == &format!("{verb} {what}"));
    let (created, patched, deleted) =
        (at("patch", &second[0]), order.iter().rposition(|write| write == "patch web"), at("delete", &first[0]));
    assert!(created < patched && patched < deleted && created.is_some(), "{order:?}");

    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(config_maps(&ns).is_empty());
    assert!(!plane.kubectl(&["-n", &ns, "get", "deployment", "web"]).status.success());
    assert!(records(&ns).is_empty());
}

/// Successful writes of ConfigMaps and Deployments in a namespace by Purlin, in the order of the audit log.
pub(crate) fn writes_of(namespace: &str) -> Vec<String> {
    let log = fs::read_to_string(plane().audit_log()).expect("the audit log");
    let entries = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let ours = entries.filter(|entry| {
        let target = &entry["objectRef"];
        let kind = target["resource"].as_str().unwrap_or_default();
        entry["stage"] == "ResponseComplete"
            && target["namespace"] == namespace
            && ["configmaps", "deployments"].contains(&kind)
            && target.get("subresource").is_none()
            && entry["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300)
            && entry["impersonatedUser"]["username"] == format!("system:serviceaccount:{namespace}:default")
            && !entry["requestURI"].as_str().unwrap_or_default().contains("dryRun")
    });
    let writes = ours.filter_map(|entry| {
        let verb = entry["verb"].as_str()?;
        ["patch", "create", "delete"]
            .contains(&verb)
            .then(|| format!("{verb} {}", entry["objectRef"]["name"].as_str().unwrap_or_default()))
    });
    writes.collect()
}

#[test]
fn an_ignored_field_of_a_manifest_is_not_changed() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("ignored");
    may_edit(&ns);
    let ours = |theirs: &str, ours: &str| {
        let manifest = format!(
            "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: shared }}, data: {{ theirs: {theirs}, ours: {ours} }} }}"
        );
        object("shared", &manifest, "lifecycle: { ignoreChanges: [manifest.data.theirs] }")
    };
    plane.apply(&["-n", &ns], &ours("first", "one"));
    wait_ready(&ns, &["shared"]);
    let data = |key: &str| plane.get(&["-n", &ns, "configmap", "shared"])["data"][key].as_str().map(str::to_owned);
    assert_eq!(data("theirs").as_deref(), Some("first"));

    plane.kubectl_ok(&[
        "-n",
        &ns,
        "patch",
        "configmap",
        "shared",
        "--type=merge",
        "-p",
        r#"{"data":{"theirs":"second"}}"#,
    ]);
    plane.apply(&["-n", &ns], &ours("third", "two"));
    wait_until("our own field is updated", LIMIT, || data("ours").as_deref() == Some("two"));
    wait_ready(&ns, &["shared"]);
    assert_eq!(data("theirs").as_deref(), Some("second"));

    // If another client removes the field, no later change of the Resource adds it again.
    let take_out = r#"{"data":{"theirs":null}}"#;
    plane.kubectl_ok(&["-n", &ns, "patch", "configmap", "shared", "--type=merge", "-p", take_out]);
    for value in ["three", "four"] {
        plane.apply(&["-n", &ns], &ours("fourth", value));
        wait_until("our own field is updated", LIMIT, || data("ours").as_deref() == Some(value));
        wait_ready(&ns, &["shared"]);
        assert_eq!(data("theirs"), None);
    }
}

#[test]
fn a_tenant_cannot_create_through_purlin_what_it_may_not_create() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("tenant");
    let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: wanted }, data: { a: b } }";
    plane.apply(&["-n", &ns], &format!("{}{}", object("wanted", manifest, ""), data("other", "one", "")));
    let refused = wait_reason(&ns, "wanted", "Ready", "Forbidden");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains(&format!("in namespace `{ns}` to the service account `default`")), "{message}");
    wait_ready(&ns, &["other"]);
    assert!(!plane.kubectl(&["-n", &ns, "get", "configmap", "wanted"]).status.success());
    // The same applies to permissions.
    let role = "{ apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: { name: grab }, \
                roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin }, subjects: \
                [{ kind: ServiceAccount, name: default, namespace: default }] }";
    plane.apply(&["-n", &ns], &object("grab", role, ""));
    wait_reason(&ns, "grab", "Ready", "Forbidden");
    // After the permission is granted, the object is created without another change.
    may_edit(&ns);
    wait_ready(&ns, &["wanted"]);
}

#[test]
fn a_foreign_object_is_not_changed_and_can_be_imported() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("foreign");
    may_edit(&ns);
    plane.kubectl_ok(&["-n", &ns, "create", "configmap", "taken", "--from-literal=a=theirs"]);
    let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: taken }, data: { b: ours } }";
    plane.apply(&["-n", &ns], &object("taken", manifest, ""));
    wait_reason(&ns, "taken", "Ready", "AlreadyExists");
    assert!(plane.get(&["-n", &ns, "configmap", "taken"])["data"].get("b").is_none(), "it was not changed");
    let import = format!("import: {{ id: v1/ConfigMap/{ns}/taken }}");
    plane.apply(&["-n", &ns], &object("taken", manifest, &import));
    wait_ready(&ns, &["taken"]);
    let data = &plane.get(&["-n", &ns, "configmap", "taken"])["data"];
    assert_eq!((&data["a"], &data["b"]), (&"theirs".into(), &"ours".into()));
}

#[test]
fn two_unrelated_resources_cannot_manage_the_same_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("claimed");
    may_edit(&ns);
    plane.kubectl_ok(&["-n", &ns, "create", "configmap", "site", "--from-literal=a=theirs"]);
    let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: site }, data: { b: ours } }";
    let claim =
        |name: &str, more: &str| object(name, manifest, &format!("import: {{ id: v1/ConfigMap/{ns}/site }}{more}"));
    let orphan = "\ndeletionPolicy: Orphan";
    plane.apply(&["-n", &ns], &(claim("first", orphan) + &claim("second", "")));
    wait_ready(&ns, &["first"]);
    wait_reason(&ns, "second", "Ready", "IdentityConflict");
    // The same holds when the other Resource is up to date and is not planned.
    plane.apply(&["-n", &ns], &claim("third", ""));
    let conflict = wait_reason(&ns, "third", "Ready", "IdentityConflict");
    let message = conflict["message"].as_str().unwrap();
    assert!(message.starts_with("the object is already managed by `first` (hint: "), "{message}");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "second"]);
    let uid = |ns: &str| plane.get(&["-n", ns, "configmap", "site"])["metadata"]["uid"].clone();
    let before = uid(&ns);
    // After `first` releases the object, `third` adopts it.
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "first"]);
    wait_ready(&ns, &["third"]);
    assert_eq!(uid(&ns), before);
}

/// Both plans find the name free. While one object is replaced, the other one is not destroyed for the same name.
#[test]
fn only_one_of_two_resources_that_take_a_free_name_loses_its_old_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("names");
    may_edit(&ns);
    // The finalizer keeps an old object, so that both Resources are there while it is destroyed.
    let manifest = |name: &str| {
        format!(
            "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name}, finalizers: [example.com/kept] }}, data: {{ a: \
             b }} }}"
        )
    };
    let both = |left: &str, right: &str| object("left", &manifest(left), "") + &object("right", &manifest(right), "");
    plane.apply(&["-n", &ns], &both("one", "two"));
    wait_ready(&ns, &["left", "right"]);
    plane.apply(&["-n", &ns], &both("free", "free"));
    wait_until("one waits for the other", LIMIT, || {
        let waits = |name: &str| resource(&ns, name).and_then(|found| condition(&found, "Ready"));
        ["left", "right"].iter().any(|name| waits(name).is_some_and(|ready| ready["reason"] == "Waiting"))
    });
    let is_deleted =
        |name: &str| plane.get(&["-n", &ns, "configmap", name])["metadata"].get("deletionTimestamp").is_some();
    let (first, old, second, kept) = match is_deleted("one") {
        true => ("left", "one", "right", "two"),
        false => ("right", "two", "left", "one"),
    };
    let waits = condition(&resource(&ns, second).unwrap(), "Ready").unwrap();
    assert!(waits["message"].as_str().unwrap().starts_with(&format!("`{first}` is about to have")), "{waits}");
    let release = |name: &str| {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        plane.kubectl_ok(&["-n", &ns, "patch", "configmap", name, "--type=merge", "-p", patch]);
    };
    release(old);
    wait_ready(&ns, &[first]);
    wait_until("the other one finds the name taken", LIMIT, || {
        let ready = resource(&ns, second).and_then(|found| condition(&found, "Ready"));
        ready.is_some_and(|ready| ["AlreadyExists", "IdentityConflict"].iter().any(|reason| ready["reason"] == *reason))
    });
    assert!(!is_deleted(kept), "the object of `{second}` is healthy");
    // A name of its own ends the conflict.
    let apart = |name: &str| if name == first { "free" } else { "other" };
    plane.apply(&["-n", &ns], &both(apart("left"), apart("right")));
    wait_until("the old object is destroyed", LIMIT, || is_deleted(kept));
    release(kept);
    wait_ready(&ns, &["left", "right"]);
}

#[test]
fn a_changed_immutable_field_replaces_the_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("fixed");
    may_edit(&ns);
    let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: fixed }, immutable: true, data: { a: one } }";
    plane.apply(&["-n", &ns], &object("fixed", manifest, ""));
    wait_ready(&ns, &["fixed"]);
    let old = plane.get(&["-n", &ns, "configmap", "fixed"])["metadata"]["uid"].clone();
    plane.apply(&["-n", &ns], &object("fixed", &manifest.replace("one", "two"), ""));
    wait_until("it is replaced", LIMIT, || {
        let output = plane.kubectl(&["-n", &ns, "get", "configmap", "fixed", "-o", "json"]);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        found["data"]["a"] == "two" && found["metadata"]["uid"] != old
    });
    wait_ready(&ns, &["fixed"]);
    // With create-before-destroy, the fixed name makes a replacement impossible. The plan reports this.
    let first = object("fixed", &manifest.replace("one", "three"), "lifecycle: { createBeforeDestroy: true }");
    plane.apply(&["-n", &ns], &first);
    let refused = wait_reason(&ns, "fixed", "Ready", "CreateBeforeDestroyImpossible");
    assert!(refused["message"].as_str().unwrap().contains("generateName"), "{refused}");
    assert_eq!(plane.get(&["-n", &ns, "configmap", "fixed"])["data"]["a"], "two");
}

#[test]
fn a_dependent_waits_until_the_object_is_ready() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("slow");
    may_edit(&ns);
    let deployment = "{ apiVersion: apps/v1, kind: Deployment, metadata: { name: slow }, spec: { replicas: 1, selector: \
                      { matchLabels: { app: slow } }, template: { metadata: { labels: { app: slow }, annotations: { \
                      test.purlin.dev/outcome: unready } }, spec: { containers: [{ name: c, image: x }] } } } }";
    plane.apply(
        &["-n", &ns],
        &format!(
            "{}{}",
            object("slow", deployment, ""),
            data("after", "\"${slow.object.metadata.name}\"", "dependsOn: [{ name: slow }]")
        ),
    );
    wait_until("the Deployment is created", LIMIT, || {
        plane.kubectl(&["-n", &ns, "get", "deployment", "slow"]).status.success()
    });
    wait_until("the status of the dependent shows what it waits for", LIMIT, || {
        resource(&ns, "after").is_some_and(|after| {
            after["status"]["pending"]["waitingFor"][0].as_str().is_some_and(|waits| waits.contains("slow"))
        })
    });
    wait_until("a Pod exists", LIMIT, || {
        plane
            .kubectl(&[
                "-n",
                &ns,
                "annotate",
                "--overwrite",
                "pod",
                "-l",
                "app=slow",
                "test.purlin.dev/outcome=running",
            ])
            .status
            .success()
    });
    wait_ready(&ns, &["slow", "after"]);
}

#[test]
fn objects_that_never_become_ready_do_not_block_the_creation_of_others() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("crowd");
    may_edit(&ns);
    // More than the limit of concurrent calls of the driver.
    let never = |number: usize| {
        let deployment = format!(
            "{{ apiVersion: apps/v1, kind: Deployment, metadata: {{ name: never-{number} }}, spec: {{ replicas: 1, paused: \
             true, selector: {{ matchLabels: {{ app: never-{number} }} }}, template: {{ metadata: {{ labels: {{ app: \
             never-{number} }} }}, spec: {{ containers: [{{ name: c, image: x }}] }} }} }} }}"
        );
        object(&format!("never-{number}"), &deployment, "")
    };
    plane.apply(&["-n", &ns], &(0..70).map(never).collect::<String>());
    let created = || plane.get(&["-n", &ns, "deployments"])["items"].as_array().map_or(0, Vec::len);
    wait_until("all are created", LIMIT, || created() == 70);
    let settings = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: settings } }";
    plane.apply(&["-n", &ns], &object("settings", settings, ""));
    wait_ready(&ns, &["settings"]);
    assert!(!is_ready(&resource(&ns, "never-0").unwrap()));
}

#[test]
fn values_of_a_secret_are_shown_nowhere() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("secret");
    may_edit(&ns);
    let canary = "canary-8f31c0";
    let secret =
        format!("{{ apiVersion: v1, kind: Secret, metadata: {{ name: key }}, stringData: {{ password: {canary} }} }}");
    let user = data("user", "\"login with ${key.object.data.password}\"", "");
    plane.apply(&["-n", &ns], &format!("{}{user}", object("key", &secret, "")));
    wait_ready(&ns, &["key", "user"]);
    let encoded = "Y2FuYXJ5LThmMzFjMA";
    for name in ["key", "user"] {
        let status = resource(&ns, name).unwrap()["status"].to_string();
        assert!(!status.contains(canary) && !status.contains(encoded), "{status}");
        for event in events(&ns, name) {
            assert!(!event.contains(canary) && !event.contains(encoded), "{event}");
        }
    }
}
