//! Previews, as a user with few rights makes them with the command line, and as Plans that anyone may write.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::providers::{provider, typed};

/// A pipeline: a ServiceAccount that may create Plans and read them, and a directory of manifests.
pub(crate) struct Pipeline {
    pub(crate) namespace: String,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) directory: tempfile::TempDir,
}

impl Pipeline {
    pub(crate) fn new(namespace: &str) -> Self {
        let plane = plane();
        plane.kubectl_ok(&["-n", namespace, "create", "serviceaccount", "ci"]);
        plane.bind(namespace, "preview", "--clusterrole=purlin-preview", "ci");
        let kubeconfig = plane.service_account_kubeconfig(namespace, "ci");
        let can_create = ["--kubeconfig", kubeconfig.to_str().unwrap(), "auth", "can-i", "create", "pplan"];
        wait_until("the pipeline may create Plans", LIMIT, || plane.kubectl(&can_create).status.success());
        Self { namespace: namespace.to_owned(), kubeconfig, directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn write(&self, file: &str, manifests: &str) {
        fs::write(self.directory.path().join(file), manifests).unwrap();
    }

    /// Runs `purlin` in the directory.
    fn purlin(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        command.current_dir(self.directory.path()).env("KUBECONFIG", &self.kubeconfig);
        command.args(arguments).output().unwrap()
    }

    /// Previews the manifests, and returns the exit code and the output.
    fn plan(&self, more: &[&str]) -> (i32, String) {
        let target = ["plan", "-f", ".", "-n", &self.namespace, "--detailed-exitcode"];
        let output = self.purlin(&[&target[..], more].concat());
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }

    /// The exit code, and the actions of the objects that change.
    fn actions(&self, more: &[&str]) -> (i32, BTreeSet<String>) {
        let target = ["plan", "-f", ".", "-n", &self.namespace, "--detailed-exitcode", "-o", "json"];
        let output = self.purlin(&[&target[..], more].concat());
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let changes = plan["changes"].as_array().unwrap().iter();
        let text = |change: &Value, field: &str| change[field].as_str().unwrap().to_owned();
        let actions = changes.map(|change| text(change, "address") + " " + &text(change, "action"));
        (output.status.code().unwrap(), actions.collect())
    }
}

fn set(items: &[&str]) -> BTreeSet<String> {
    items.iter().map(ToString::to_string).collect()
}

/// The versions of all Resources and records of a namespace.
fn versions(namespace: &str) -> Vec<Value> {
    let resources = plane().get(&["-n", namespace, "pres"])["items"].as_array().unwrap().clone();
    let all = resources.into_iter().chain(records(namespace));
    all.map(|object| object["metadata"]["resourceVersion"].clone()).collect()
}

/// A Plan with these manifests and types.
fn plan(name: &str, manifests: &str, more: &Value) -> Value {
    let mut preview = json!({ "manifests": manifests, "types": ["terraform_data", "kubernetes_object"] });
    preview.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan", "metadata": { "name": name },
        "spec": { "preview": preview } })
}

/// Creates the Plan, and waits for its status.
fn computed(namespace: &str, plan: &Value) -> Value {
    plane().apply(&["-n", namespace], &plan.to_string());
    let name = plan["metadata"]["name"].as_str().unwrap();
    wait_for(&format!("{namespace}/{name} is computed"), LIMIT, || {
        let status = plane().get(&["-n", namespace, "pplan", name])["status"].clone();
        status["result"].is_string().then_some(status)
    })
}

#[test]
fn a_pipeline_previews_changes_that_the_controller_would_make() {
    let _guard = shared();
    let ns = with_rights("preview");
    plane().kubectl_ok(&["-n", &ns, "create", "secret", "generic", "login", "--from-literal=password=hunter-2"]);
    let input = "inputs: [{ name: password, secretKeyRef: { name: login, key: password } }]";
    let secret = |value: &str| data("secret", value, input);
    let before = data("a", "one", "") + &data("b", "\"${a.output}\"", "") + &secret("\"${inputs.password}\"");
    plane().apply(&["-n", &ns], &before);
    wait_ready(&ns, &["a", "b", "secret"]);

    let pipeline = Pipeline::new(&ns);
    for right in [["list", "secrets"], ["list", "pres"], ["create", "pres"]] {
        let kubeconfig = pipeline.kubeconfig.to_str().unwrap();
        let output = plane().kubectl(&[&["--kubeconfig", kubeconfig, "auth", "can-i"], &right[..]].concat());
        assert!(!output.status.success(), "{right:?}");
    }
    pipeline.write("all.yaml", &before);
    let known = versions(&ns);
    assert_eq!(pipeline.actions(&[]), (0, set(&[])));
    pipeline.write(
        "all.yaml",
        &(data("a", "two", "") + &data("c", "\"${b.id}\"", "") + &secret("\"${inputs.password}!\"")),
    );
    let (code, text) = pipeline.plan(&[]);
    assert_eq!(code, 2, "{text}");
    for part in [
        "# a will be updated in place",
        "# c will be created",
        "Plan: 1 to create, 3 to update, 0 to replace, 0 to destroy.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(pipeline.actions(&[]), (2, set(&["a Update", "b Update", "c Create", "secret Update"])));
    let (code, markdown) = pipeline.plan(&["-o", "markdown"]);
    assert!(code == 2 && markdown.contains("```mermaid") && markdown.contains("| `+` | `c` |"), "{markdown}");
    let plans = plane().get(&["-n", &ns, "pplan"]).to_string();
    assert!(![text, markdown, plans].iter().any(|text| text.contains("hunter-2")));

    assert_eq!(versions(&ns), known, "a preview writes nothing but its Plan");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--timeout=60s"]);
    // Nothing is recorded anymore, so everything is created. `b` is not in the manifests.
    assert_eq!(pipeline.actions(&[]), (1, set(&["a Create", "c Blocked", "secret Create"])));
}

#[test]
fn a_preview_uses_the_provider_configurations_and_the_secrets_of_the_namespace() {
    let _guard = shared();
    let ns = plane().namespace("typed");
    plane().apply(&[], &provider("random", "random"));
    plane().apply(&["-n", &ns], &typed("pet", "random_pet", "{ length: 2 }", ""));
    wait_ready(&ns, &["pet"]);
    let pipeline = Pipeline::new(&ns);
    let config = "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: { name: random }\nspec: { \
                  provider: { name: random }, config: { address: evil.test } }\n";
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: { name: login }\nstringData: { password: hunter-3 }\n";
    let pet = typed("pet", "random_pet", "{ length: 3 }", "");
    let password = typed("password", "random_password", "{ length: 20, keepers: { pet: '${pet.id}' } }", "");
    pipeline.write("all.yaml", &(config.to_owned() + secret + &pet + &password));
    let (code, text) = pipeline.plan(&[]);
    assert_eq!(code, 2, "{text}");
    for part in [
        "Plan: 1 to create, 0 to update, 1 to replace, 0 to destroy.",
        "~ length = 2 -> 3 # forces replacement",
        "warning: ./all.yaml:2: the manifest of the ProviderConfig `random` is not part of the preview",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let plans = plane().get(&["-n", &ns, "pplan"]).to_string();
    assert!(!plans.contains("hunter-3") && !plans.contains("evil.test"), "{plans}");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn what_vanishes_is_previewed_with_prune() {
    let _guard = shared();
    let ns = plane().namespace("prune");
    let labelled = |name: &str, app: &str| {
        data(name, "one", "").replace("metadata: {", &format!("metadata: {{ labels: {{ app: {app} }},"))
    };
    plane().apply(&["-n", &ns], &(labelled("a", "shop") + &labelled("b", "shop") + &labelled("c", "bank")));
    wait_ready(&ns, &["a", "b", "c"]);
    let pipeline = Pipeline::new(&ns);
    pipeline.write("all.yaml", &labelled("a", "shop"));
    assert_eq!(pipeline.actions(&[]), (0, set(&[])));
    assert_eq!(pipeline.actions(&["--prune", "-l", "app=shop"]), (2, set(&["b Destroy"])));
    assert_eq!(pipeline.actions(&["--prune"]), (2, set(&["b Destroy", "c Destroy"])));
    let (code, text) = pipeline.plan(&["--prune", "-l", "app=(shop"]);
    assert!(code == 1 && text.contains("the controller could not compute the Plan: spec.preview.selector"), "{text}");
    let (code, markdown) = pipeline.plan(&["--prune", "-o", "markdown"]);
    assert!(code == 2 && markdown.contains("> - `b` will be destroyed"), "{markdown}");
    // A file that cannot be read is not one without Resources.
    pipeline.write("broken.yaml", "kind: [");
    let (code, text) = pipeline.plan(&["--prune"]);
    assert!(code == 1 && text.contains("broken.yaml:1") && !text.contains("destroy"), "{text}");
}

#[test]
fn errors_have_the_file_and_the_line() {
    let _guard = shared();
    let ns = plane().namespace("wrong");
    let pipeline = Pipeline::new(&ns);
    pipeline.write("a.yaml", &data("a", "one", ""));
    pipeline.write("b.yaml", &format!("# comment\n{}", data("b", "\"${missing.id}\"", "lifecycel: {}")));
    let (code, text) = pipeline.plan(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("./b.yaml:") && text.contains("b: spec.lifecycel: unknown field"), "{text}");

    let elsewhere = data("a", "one", "").replace("metadata: {", "metadata: { namespace: bank,");
    let problems = |status: &Value| status["diagnostics"].to_string();
    let status = computed(&ns, &plan("elsewhere", &elsewhere, &json!({})));
    assert!(problems(&status).contains("the namespace is `bank`, but the Plan is in"), "{status}");
    assert!(status["diagnostics"][0]["line"].is_number(), "{status}");
    let status = computed(&ns, &plan("unlisted", &data("a", "one", ""), &json!({ "types": [] })));
    assert!(problems(&status).contains("the type `terraform_data` is not listed"), "{status}");
    let status = computed(&ns, &plan("broken", "kind: [", &json!({})));
    assert!(status["result"] == "Errors" && problems(&status).contains("unclosed bracket"), "{status}");
    let status = computed(&ns, &plan("bomb", "", &json!({ "manifests": null, "manifestsZstd": "aGVsbG8=" })));
    let condition = &status["conditions"][0];
    assert_eq!([&condition["status"], &condition["reason"]], ["False", "InvalidManifest"], "{status}");

    for (what, wrong) in [
        ("both", json!({ "manifestsZstd": "" })),
        ("selector", json!({ "selector": "a=b" })),
        ("too large", json!({ "manifests": "#".repeat(1_000_000) })),
    ] {
        let create = ["-n", &ns, "create", "-f", "-"];
        let output = plane().kubectl_with_stdin(&create, &plan("wrong", "", &wrong).to_string());
        assert!(!output.status.success(), "{what} is rejected");
    }
    let change = r#"{"spec":{"preview":{"prune":"All"}}}"#;
    let output = plane().kubectl(&["-n", &ns, "patch", "pplan", "broken", "--type=merge", "-p", change]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("a preview cannot be changed"), "{output:?}");
}

#[test]
fn a_plan_is_deleted_when_it_expires() {
    let _guard = shared();
    let ns = plane().namespace("expiry");
    let mut kept = plan("kept", &data("a", "one", ""), &json!({}));
    computed(&ns, &kept);
    let mut brief = plan("brief", &data("a", "one", ""), &json!({}));
    brief["spec"]["ttlSecondsAfterFinished"] = 0.into();
    plane().apply(&["-n", &ns], &brief.to_string());
    let names = || {
        let list = plane().get(&["-n", &ns, "pplan"]);
        let names = list["items"].as_array().unwrap().iter();
        names.map(|plan| plan["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    wait_until("it is deleted", LIMIT, || names() == ["kept"]);
    kept["spec"]["ttlSecondsAfterFinished"] = 0.into();
    plane().apply(&["-n", &ns], &kept.to_string());
    wait_until("a shorter time to live applies to a computed Plan", LIMIT, || names().is_empty());
    assert!(plane().get(&["-n", &ns, "pres"])["items"].as_array().unwrap().is_empty());
}

#[test]
fn hundreds_of_plans_delay_neither_changes_nor_the_plans_of_others() {
    let _guard = shared();
    let (many, other) = (plane().namespace("many"), plane().namespace("other"));
    plane().apply(&["-n", &many], &data("a", "one", ""));
    wait_ready(&many, &["a"]);
    let plans: Vec<Value> =
        (0..300).map(|number| plan(&format!("p{number}"), &data("a", "two", ""), &json!({}))).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": plans });
    let created = plane().kubectl_with_stdin(&["-n", &many, "create", "-f", "-"], &list.to_string());
    assert!(created.status.success(), "{created:?}");
    computed(&other, &plan("alone", &data("a", "two", ""), &json!({})));
    plane().apply(&["-n", &many], &data("b", "one", ""));
    wait_ready(&many, &["b"]);
    let results = || {
        let list = plane().get(&["-n", &many, "pplan"]);
        let results = list["items"].as_array().unwrap().iter().map(|plan| plan["status"]["result"].clone());
        results.filter(|result| result == "Changes").count()
    };
    wait_until("all are computed", LIMIT, || results() == 300);
}

#[test]
fn another_controller_computes_what_the_first_one_did_not() {
    let _guard = exclusive();
    let ns = plane().namespace("restart");
    let first = Controller::start(plane());
    plane().apply(&["-n", &ns], &data("a", "one", ""));
    wait_ready(&ns, &["a"]);
    let plans: Vec<Value> =
        (0..40).map(|number| plan(&format!("p{number}"), &data("a", "two", ""), &json!({}))).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": plans });
    plane().apply(&["-n", &ns], &list.to_string());
    first.kill(plane());
    plane().kubectl_ok(&["-n", &ns, "delete", "pplan", "p39"]);

    let _second = Controller::start(plane());
    wait_until("all are computed with the records", LIMIT, || {
        let list = plane().get(&["-n", &ns, "pplan"]);
        let updates = list["items"].as_array().unwrap().iter().map(|plan| plan["status"]["summary"]["update"].clone());
        updates.filter(|count| count == 1).count() == 39
    });
}

#[test]
fn a_plan_in_a_terminating_namespace_creates_nothing() {
    let _guard = shared();
    let ns = plane().namespace("ending");
    // The finalizer keeps the namespace until the test ends it.
    let kept = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "kept", "finalizers": ["test.purlin.dev/keep"] } });
    plane().apply(&["-n", &ns], &kept.to_string());
    let waiting = plan("waiting", &data("a", "one", ""), &json!({}));
    computed(&ns, &waiting);
    plane().kubectl_ok(&["delete", "namespace", &ns, "--wait=false"]);
    wait_until("its Plans are deleted", LIMIT, || {
        plane().get(&["-n", &ns, "pplan"])["items"].as_array().is_some_and(Vec::is_empty)
    });
    let pipeline = plane().kubectl_with_stdin(&["-n", &ns, "create", "-f", "-"], &waiting.to_string());
    assert!(!pipeline.status.success(), "nothing can be created in it");
    plane().kubectl_ok(&["-n", &ns, "patch", "configmap", "kept", "-p", r#"{"metadata":{"finalizers":null}}"#]);
}
