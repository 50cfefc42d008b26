//! A healthy Kubernetes object is not destroyed for one that cannot be created, or that is the same object.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value as Json;

use crate::controlplane::wait_until;
use crate::installation::*;
use crate::kubernetes_objects::{may_edit, object};

fn config_map(name: &str, data: &str) -> String {
    format!("{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name} }}, data: {data} }}")
}

fn found(namespace: &str, kind: &str, name: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", namespace, "get", kind, name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

fn uid(namespace: &str, kind: &str, name: &str) -> Json {
    found(namespace, kind, name).map(|found| found["metadata"]["uid"].clone()).unwrap_or_default()
}

fn message(condition: &Json) -> &str {
    condition["message"].as_str().unwrap_or_default()
}

/// Manifests in a directory, applied by the administrator.
struct Files {
    directory: tempfile::TempDir,
    namespace: String,
}

impl Files {
    fn new(prefix: &str) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), namespace: plane().namespace(prefix) }
    }

    fn write(&self, manifests: &str) {
        let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {} }}\n", self.namespace);
        fs::write(self.directory.path().join("files.yaml"), namespace + manifests).unwrap();
    }

    fn purlin(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        command.args(arguments).current_dir(self.directory.path()).env("KUBECONFIG", plane().kubeconfig());
        command.output().unwrap()
    }

    /// The output of `apply` of these manifests.
    fn apply(&self, manifests: &str) -> (bool, String) {
        self.write(manifests);
        shown(&self.purlin(&["apply", "-f", "files.yaml", "--yes"]))
    }

    #[track_caller]
    fn apply_ok(&self, manifests: &str) -> String {
        let (succeeded, text) = self.apply(manifests);
        assert!(succeeded, "{text}");
        text
    }

    fn plan(&self, manifests: &str) -> String {
        self.write(manifests);
        shown(&self.purlin(&["plan", "-f", "files.yaml"])).1
    }
}

fn shown(output: &Output) -> (bool, String) {
    let text = [&output.stdout[..], &output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn an_object_is_kept_if_the_server_refuses_its_replacement() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("kept");
    may_edit(&ns);
    let other = plane.namespace("kept-other");
    plane.kubectl_ok(&["-n", &ns, "create", "configmap", "taken", "--from-literal=a=theirs"]);
    plane.kubectl_ok(&["-n", &ns, "create", "quota", "services", "--hard=count/services=0"]);
    let mine = object("role", &config_map("mine", "{ precious: data }"), "");
    plane.apply(&["-n", &ns], &mine);
    wait_ready(&ns, &["role"]);
    let before = uid(&ns, "configmap", "mine");
    let service = "{ apiVersion: v1, kind: Service, metadata: { name: mine }, spec: { ports: [{ port: 80 }] } }";
    let refused = [
        (config_map("taken", "{ precious: data }"), "AlreadyExists"),
        (config_map(&format!("x, namespace: {other}"), "{}"), "Forbidden"),
        ("{ apiVersion: v1, kind: ConfigMapp, metadata: { name: mine } }".to_owned(), "InvalidConfig"),
        ("{ apiVersion: example.com/v1, kind: Missing, metadata: { name: mine } }".to_owned(), "OperationFailed"),
        (service.to_owned(), "OperationFailed"),
    ];
    for (manifest, reason) in &refused {
        plane.apply(&["-n", &ns], &object("role", manifest, ""));
        let refused = wait_reason(&ns, "role", "Ready", reason);
        assert!(!message(&refused).is_empty(), "{refused}");
        plane.apply(&["-n", &ns], &mine);
        wait_ready(&ns, &["role"]);
    }
    assert_eq!(uid(&ns, "configmap", "mine"), before);
    assert_eq!(found(&ns, "configmap", "taken").unwrap()["data"]["a"], "theirs");
}

#[test]
fn a_missing_namespace_and_a_taken_name_are_errors_of_the_plan() {
    let plane = plane();
    let files = Files::new("refused");
    let ns = &files.namespace;
    plane.kubectl_ok(&["-n", ns, "create", "configmap", "taken", "--from-literal=a=theirs"]);
    let (taken, missing) = (config_map("taken", "{}"), config_map("lost, namespace: no-such", "{}"));
    let text = files.plan(&(object("taken", &taken, "") + &object("lost", &missing, "")));
    assert!(text.contains(&format!("ConfigMap `{ns}/taken` already exists")), "{text}");
    assert!(text.contains("namespaces \"no-such\" not found"), "{text}");
    // The same of a replacement.
    files.apply_ok(&object("role", &config_map("mine", "{}"), ""));
    let before = uid(ns, "configmap", "mine");
    for manifest in [&taken, &missing] {
        let (succeeded, text) = files.apply(&object("role", manifest, ""));
        assert!(!succeeded && text.contains("the old object is kept"), "{text}");
    }
    assert_eq!(uid(ns, "configmap", "mine"), before);
}

#[test]
fn steps_of_the_same_plan_resolve_a_refusal() {
    let files = Files::new("resolved");
    let ns = &files.namespace;
    files.apply_ok(&(object("role", &config_map("mine", "{}"), "") + &object("old", &config_map("taken", "{}"), "")));
    // Nothing refers to the Namespace, and the name is freed in the same run.
    let target = format!("{ns}-new");
    let namespace = format!("{{ apiVersion: v1, kind: Namespace, metadata: {{ name: {target} }} }}");
    let moved = config_map(&format!("mine, namespace: {target}"), "{}");
    let second = object("second", &config_map("taken", "{ by: second }"), "dependsOn: [{ name: role }]");
    let text = files.apply_ok(
        &(object("role", &moved, "")
            + &object("space", &namespace, "")
            + &object("old", &config_map("renamed", "{}"), "")
            + &second),
    );
    assert!(found(&target, "configmap", "mine").is_some() && found(ns, "configmap", "mine").is_none(), "{text}");
    assert_eq!(found(ns, "configmap", "taken").unwrap()["data"]["by"], "second");
    // A definition and an object of its kind.
    let group = format!("{ns}.example.com");
    let definition = format!(
        "{{ apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{ name: widgets.{group} }}, spec: \
         {{ group: {group}, scope: Namespaced, names: {{ plural: widgets, singular: widget, kind: Widget, listKind: \
         WidgetList }}, versions: [{{ name: v1, served: true, storage: true, schema: {{ openAPIV3Schema: {{ type: object, \
         x-kubernetes-preserve-unknown-fields: true }} }} }}] }} }}"
    );
    let widget = format!("{{ apiVersion: {group}/v1, kind: Widget, metadata: {{ name: mine }} }}");
    files.apply_ok(&(object("role", &widget, "") + &object("definition", &definition, "")));
    assert!(found(ns, &format!("widgets.{group}"), "mine").is_some());
    let misspelt = widget.replace("Widget", "Wigdet");
    let text = files.apply(&(object("role", &misspelt, "") + &object("definition", &definition, ""))).1;
    assert!(text.contains("has no kind `Wigdet`"), "{text}");
    assert!(found(ns, &format!("widgets.{group}"), "mine").is_some(), "{text}");
}

#[test]
fn another_version_of_the_same_kind_updates_the_object() {
    let files = Files::new("versions");
    let ns = &files.namespace;
    let scaler = |version: &str, most: u32| {
        let manifest = format!(
            "{{ apiVersion: autoscaling/{version}, kind: HorizontalPodAutoscaler, metadata: {{ name: web }}, spec: {{ \
             maxReplicas: {most}, scaleTargetRef: {{ apiVersion: apps/v1, kind: Deployment, name: web }} }} }}"
        );
        object("web", &manifest, "lifecycle: { preventDestroy: true }")
    };
    let at = || found(ns, "hpa", "web").unwrap();
    files.apply_ok(&scaler("v1", 2));
    let before = at()["metadata"]["uid"].clone();
    for (version, most) in [("v2", 2), ("v2", 3), ("v1", 4)] {
        files.apply_ok(&scaler(version, most));
        assert_eq!((&at()["metadata"]["uid"], &at()["spec"]["maxReplicas"]), (&before, &most.into()));
        assert!(files.plan(&scaler(version, most)).contains("No changes"));
    }
    let (succeeded, text) = files.apply(&scaler("v3", 4));
    assert!(!succeeded && text.contains("v3"), "{text}");
    assert_eq!(at()["metadata"]["uid"], before);
}

#[test]
fn a_changed_import_destroys_nothing() {
    let files = Files::new("imports");
    let ns = &files.namespace;
    for name in ["first", "second"] {
        plane().kubectl_ok(&["-n", ns, "create", "configmap", name, &format!("--from-literal=url={name}")]);
    }
    let managed = |name: &str| {
        object(
            "shared",
            &config_map(name, &format!("{{ url: {name} }}")),
            &format!("import: {{ id: v1/ConfigMap/{ns}/{name} }}"),
        )
    };
    files.apply_ok(&managed("first"));
    let (succeeded, text) = files.apply(&managed("second"));
    let expected = format!("`v1/ConfigMap/{ns}/second` is not the object that this Resource manages");
    assert!(!succeeded && text.contains(&expected), "{text}");
    assert!(found(ns, "configmap", "first").is_some());
    // What the hint says works.
    assert!(files.purlin(&["state", "rm", "shared", "--yes"]).status.success());
    files.apply_ok(&managed("second"));
    assert!(files.plan(&managed("second")).contains("No changes"));
    assert!(found(ns, "configmap", "first").is_some());
}

#[test]
fn a_changed_import_of_an_observed_object_reads_the_new_object() {
    let files = Files::new("observed");
    let ns = &files.namespace;
    for (name, url) in [("first", "one"), ("second", "two")] {
        plane().kubectl_ok(&["-n", ns, "create", "configmap", name, &format!("--from-literal=url={url}")]);
    }
    let observed = |name: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: shared }}\nspec: {{ type: \
             kubernetes_object, managementPolicies: [Observe], import: {{ id: v1/ConfigMap/{ns}/{name} }} }}\n{}",
            data("user", "\"${shared.object.data.url}\"", "")
        )
    };
    files.write(&observed("first"));
    let (valid, text) = shown(&files.purlin(&["validate", "-f", "files.yaml"]));
    assert!(valid, "{text}");
    files.apply_ok(&observed("first"));
    files.apply_ok(&observed("second"));
    let (_, user) = shown(&files.purlin(&["state", "show", "user"]));
    assert!(user.contains("two"), "{user}");
    let (succeeded, text) = files.apply(&observed("third"));
    assert!(
        !succeeded && text.contains(&format!("the object to import does not exist: `v1/ConfigMap/{ns}/third`")),
        "{text}"
    );
    assert!(files.plan(&observed("second")).contains("No changes"));
}

#[test]
fn fields_of_former_tools_are_removed_and_those_of_controllers_are_reported() {
    let files = Files::new("owners");
    let (plane, ns) = (plane(), files.namespace.clone());
    let manifest = |labels: &str, data: &str| {
        format!(
            "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: cm, labels: {{ {labels} }} }}, data: {{ {data} }} }}"
        )
    };
    let adopt = |labels: &str, data: &str| {
        object("cm", &manifest(labels, data), &format!("import: {{ id: v1/ConfigMap/{ns}/cm }}"))
    };
    plane.apply(&["-n", &ns], &manifest("a: '1', old: x", "keep: '1', drop: '2'"));
    files.apply_ok(&adopt("a: '1', old: x", "keep: '1', drop: '2'"));
    let text = files.apply_ok(&adopt("a: '1'", "keep: '1'"));
    assert!(!text.contains("warning"), "{text}");
    let now = || found(&ns, "configmap", "cm").unwrap();
    assert_eq!(now()["data"], serde_json::json!({"keep": "1"}));
    assert_eq!(now()["metadata"]["labels"], serde_json::json!({"a": "1"}));
    assert!(files.plan(&adopt("a: '1'", "keep: '1'")).contains("No changes"));

    // A tool becomes an owner later.
    files.apply_ok(&adopt("a: '1'", "keep: '1', later: x"));
    let applied = ["-n", &ns, "apply", "--server-side", "-f", "-"];
    let later = manifest("", "later: x");
    assert!(plane.kubectl_with_stdin(&applied, &later).status.success());
    files.apply_ok(&adopt("a: '1'", "keep: '1'"));
    assert_eq!(now()["data"], serde_json::json!({"keep": "1"}));

    // A controller becomes an owner, and keeps the field.
    files.apply_ok(&adopt("a: '1'", "keep: '1', shared: x"));
    let by_controller = [&applied[..], &["--field-manager=scaler"]].concat();
    assert!(plane.kubectl_with_stdin(&by_controller, &manifest("", "shared: x")).status.success());
    let kept = "`data.shared` is no longer in the manifest, but stays, because `scaler` owns it too";
    for run in ["plan", "apply", "plan"] {
        let text = if run == "plan" {
            files.plan(&adopt("a: '1'", "keep: '1'"))
        } else {
            files.apply_ok(&adopt("a: '1'", "keep: '1'"))
        };
        assert!(text.contains(kept), "{run}: {text}");
    }
    plane.kubectl_ok(&[
        "-n",
        &ns,
        "patch",
        "configmap",
        "cm",
        "--type=json",
        "-p",
        r#"[{"op": "remove", "path": "/data/shared"}]"#,
    ]);
    files.apply_ok(&adopt("a: '1'", "keep: '1'"));
    assert!(!files.plan(&adopt("a: '1'", "keep: '1'")).contains(kept));
}

#[test]
fn a_kept_field_is_reported_on_its_resource() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("kept-field");
    may_edit(&ns);
    let cm = |data: &str| object("cm", &config_map("cm", data), "");
    plane.apply(&["-n", &ns], &cm("{ a: one, b: two }"));
    wait_ready(&ns, &["cm"]);
    let by_controller = ["-n", &ns, "apply", "--server-side", "--field-manager=scaler", "-f", "-"];
    assert!(plane.kubectl_with_stdin(&by_controller, &config_map("cm", "{ b: two }")).status.success());
    plane.apply(&["-n", &ns], &cm("{ a: one }"));
    wait_event(&ns, "cm", "FieldKept: ");
    wait_until("the status names field and manager", LIMIT, || {
        let ready = resource(&ns, "cm").and_then(|cm| condition(&cm, "Ready"));
        ready.is_some_and(|ready| message(&ready).contains("`data.b`") && message(&ready).contains("`scaler`"))
    });
}

#[test]
fn a_resource_that_is_renamed_without_a_move_keeps_its_object() {
    let files = Files::new("renamed");
    let ns = &files.namespace;
    files.apply_ok(&object("x", &config_map("dup", "{ a: b }"), ""));
    let before = uid(ns, "configmap", "dup");
    let (succeeded, text) = files.apply(&object("z", &config_map("dup", "{ a: b }"), ""));
    assert!(!succeeded && text.contains("purlin.dev/moved-from: x"), "{text}");
    let imports = object("z", &config_map("dup", "{ a: b }"), &format!("import: {{ id: v1/ConfigMap/{ns}/dup }}"));
    let (succeeded, text) = files.apply(&imports);
    assert!(!succeeded && text.contains("purlin.dev/moved-from: x"), "{text}");
    assert_eq!(uid(ns, "configmap", "dup"), before);
    // What the hint says works.
    let moved = object("z", &config_map("dup", "{ a: b }"), "");
    files.apply_ok(&moved.replace("name: z }", "name: z, annotations: { purlin.dev/moved-from: x } }"));
    assert_eq!(uid(ns, "configmap", "dup"), before);
}

#[test]
fn a_deleted_resource_whose_object_another_one_claims_keeps_it() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("claimed-twice");
    may_edit(&ns);
    let dup = config_map("dup", "{ a: b }");
    for (more, name) in [("", "created"), ("import", "imported")] {
        plane.apply(&["-n", &ns], &object("x", &dup, ""));
        wait_ready(&ns, &["x"]);
        let before = uid(&ns, "configmap", "dup");
        let import = format!("import: {{ id: v1/ConfigMap/{ns}/dup }}");
        let more = if more.is_empty() { "" } else { &import };
        plane.apply(&["-n", &ns], &object(name, &dup, more));
        let reason = if more.is_empty() { "AlreadyExists" } else { "IdentityConflict" };
        wait_reason(&ns, name, "Ready", reason);
        plane.kubectl_ok(&["-n", &ns, "delete", "pres", "x", "--wait=false"]);
        let held = wait_reason(&ns, "x", "DeletionBlocked", "IdentityConflict");
        assert!(message(&held).contains(&format!("not destroyed, because `{name}` claims the same object")), "{held}");
        assert_eq!(uid(&ns, "configmap", "dup"), before);
        plane.kubectl_ok(&["-n", &ns, "annotate", "pres", name, "purlin.dev/moved-from=x"]);
        wait_until("the object is moved", LIMIT, || resource(&ns, "x").is_none());
        wait_ready(&ns, &[name]);
        assert_eq!(uid(&ns, "configmap", "dup"), before);
        plane.kubectl_ok(&["-n", &ns, "delete", "pres", name]);
    }
}

/// Each new object gets the name of an old one, in another component.
#[test]
fn a_chain_of_names_is_followed_from_its_end() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("name-chain");
    may_edit(&ns);
    let all = |names: [&str; 3]| -> String {
        let named = ["c1", "c2", "c3"].into_iter().zip(names);
        named
            .map(|(resource, name)| object(resource, &config_map(name, &format!("{{ of: {resource} }}")), ""))
            .collect()
    };
    plane.apply(&["-n", &ns], &all(["m1", "m2", "m3"]));
    wait_ready(&ns, &["c1", "c2", "c3"]);
    plane.apply(&["-n", &ns], &all(["m2", "m3", "m4"]));
    wait_until("every object has its new name", LIMIT, || {
        let owner = |name: &str| found(&ns, "configmap", name).map(|found| found["data"]["of"].clone());
        owner("m1").is_none() && ["m2", "m3", "m4"].map(owner) == ["c1", "c2", "c3"].map(|name| Some(name.into()))
    });
    wait_ready(&ns, &["c1", "c2", "c3"]);
    for name in ["c1", "c2", "c3"] {
        let found = events(&ns, name);
        assert!(!found.iter().any(|event| event.starts_with("InternalError")), "{name}: {found:#?}");
    }
}

#[test]
fn an_object_that_is_given_up_has_no_owner() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("orphaned");
    may_edit(&ns);
    plane.apply(&["-n", &ns], &object("cm", &config_map("cm", "{ a: b }"), "deletionPolicy: Orphan"));
    wait_ready(&ns, &["cm"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "cm"]);
    let left = found(&ns, "configmap", "cm").unwrap();
    assert_eq!(left["data"]["a"], "b");
    assert!(left["metadata"]["annotations"]["purlin.dev/owner"].is_null(), "{left}");
    plane.apply(&["-n", &ns], &object("cm", &config_map("cm", "{ a: c }"), ""));
    wait_reason(&ns, "cm", "Ready", "AlreadyExists");
    assert_eq!(found(&ns, "configmap", "cm").unwrap()["data"]["a"], "b");
}

#[test]
fn an_object_with_the_owner_annotation_is_adopted_by_the_plan() {
    let files = Files::new("adopted");
    let cm = object("cm", &config_map("cm", "{ a: b }"), "");
    files.apply_ok(&cm);
    let before = uid(&files.namespace, "configmap", "cm");
    assert!(files.purlin(&["state", "rm", "cm", "--yes"]).status.success());
    let changed = object("cm", &config_map("cm", "{ a: c }"), "");
    let text = files.plan(&changed);
    assert!(text.contains("adopts the existing object") && text.contains("0 to create"), "{text}");
    files.apply_ok(&changed);
    assert_eq!(uid(&files.namespace, "configmap", "cm"), before);
}
