//! Modules: a Terraform module as a custom resource, whose objects are reconciled one by one.

use serde_json::{Value as Json, json};

use crate::command_line::ok;
use crate::controlplane::{poll, wait_until};
use crate::installation::*;

/// A network with a subnet for each zone.
const NETWORK: &str = r#"
variable "cidr" {
  type = string
}

variable "zones" {
  type    = list(string)
  default = []
}

resource "terraform_data" "vpc" {
  input = var.cidr
}

resource "terraform_data" "subnet" {
  for_each = toset(var.zones)
  input    = "${terraform_data.vpc.output} ${each.key}"
}

output "vpc" {
  value = terraform_data.vpc.output
}
"#;

/// A Module of inline files, and of variables as YAML.
fn module(name: &str, files: &str, variables: &str) -> String {
    let files: String = files.lines().map(|line| format!("        {line}\n")).collect();
    format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Module\nmetadata:\n  name: {name}\nspec:\n  source:\n    inline:\n      \
         main.tf: |\n{files}  variables: {variables}\n---\n"
    )
}

fn found(namespace: &str, name: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", namespace, "get", "pmod", name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// Waits until all objects of a Module are ready, and returns it.
fn ready(namespace: &str, name: &str) -> Json {
    let ready = poll(LIMIT, || found(namespace, name).filter(is_ready));
    ready.unwrap_or_else(|| {
        let status = found(namespace, name).unwrap_or_default()["status"].clone();
        panic!("{namespace}/{name} is not ready: {status:#}\n{}", crate::controller::newest_log(plane()))
    })
}

/// Waits until a Module is not ready for this reason.
fn wait_reason_of(namespace: &str, name: &str, reason: &str) {
    let is_so = |module: &Json| condition(module, "Ready").is_some_and(|ready| ready["reason"] == reason);
    let waits = poll(LIMIT, || found(namespace, name).filter(is_so));
    assert!(waits.is_some(), "{reason} is not the reason: {:#}", found(namespace, name).unwrap_or_default()["status"]);
}

fn addresses(namespace: &str) -> Vec<String> {
    let heads = records(namespace).into_iter().filter(|one| one["metadata"]["labels"]["purlin.dev/record"] == "head");
    let mut all: Vec<String> =
        heads.map(|one| one["metadata"]["annotations"]["purlin.dev/address"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

fn delete_all(namespace: &str) {
    plane().kubectl_ok(&["-n", namespace, "delete", "pmod,pres", "--all", "--wait=false"]);
    wait_until("everything is gone", LIMIT, || {
        let left = plane().get(&["-n", namespace, "pmod,pres"])["items"].as_array().is_some_and(Vec::is_empty);
        left && records(namespace).is_empty()
    });
}

#[test]
fn a_module_is_created_changed_and_deleted_object_by_object() {
    let _guard = shared();
    let ns = plane().namespace("module");
    plane().apply(&["-n", &ns], &module("net", NETWORK, "{ cidr: 10.0.0.0/16, zones: [a, b] }"));
    let status = ready(&ns, "net")["status"].clone();
    assert_eq!(status["objects"], json!({"summary": "3/3", "desired": 3, "ready": 3, "deposed": 0}));
    let subnets = [r#"net/terraform_data.subnet["a"]"#, r#"net/terraform_data.subnet["b"]"#];
    assert_eq!(addresses(&ns), [&subnets[..], &["net/terraform_data.vpc"]].concat());

    plane().apply(&["-n", &ns], &module("net", NETWORK, "{ cidr: 10.1.0.0/16, zones: [b, c] }"));
    wait_until("the objects follow", LIMIT, || {
        addresses(&ns) == [subnets[1], r#"net/terraform_data.subnet["c"]"#, "net/terraform_data.vpc"]
    });
    ready(&ns, "net");
    let state: Json = serde_json::from_str(&ok(&["state", "list", "-o", "json", "-n", &ns])).unwrap();
    let b = state["objects"].as_array().unwrap().iter().find(|one| one["address"] == subnets[1]).unwrap();
    assert_eq!(b["values"]["output"], "10.1.0.0/16 b");
    delete_all(&ns);
}

#[test]
fn variables_read_resources_and_the_objects_wait_for_them() {
    let _guard = shared();
    let ns = plane().namespace("module-vars");
    plane().apply(&["-n", &ns], &module("net", NETWORK, r#"{ cidr: "${range.output}", zones: "${zones.output}" }"#));
    wait_reason_of(&ns, "net", "DependencyNotFound");
    plane().apply(&["-n", &ns], &format!("{}{}", data("range", "10.0.0.0/8", ""), data("zones", "[x]", "")));
    ready(&ns, "net");
    assert!(addresses(&ns).contains(&r#"net/terraform_data.subnet["x"]"#.to_owned()));
    plane().apply(&["-n", &ns], &data("range", "10.0.0.0/9", ""));
    wait_until("the change arrives", LIMIT, || {
        ok(&["state", "show", r#"net/terraform_data.subnet["x"]"#, "-n", &ns]).contains("10.0.0.0/9 x")
    });
    delete_all(&ns);
}

#[test]
fn a_source_that_cannot_be_read_destroys_nothing() {
    let _guard = shared();
    let ns = plane().namespace("module-bad");
    plane().apply(&["-n", &ns], &module("net", NETWORK, "{ cidr: 10.0.0.0/16 }"));
    ready(&ns, "net");
    let broken = NETWORK.replace("input = var.cidr", "input = var.cdir");
    plane().apply(&["-n", &ns], &module("net", &broken, "{ cidr: 10.0.0.0/16 }"));
    let stalled = poll(LIMIT, || condition(&found(&ns, "net")?, "Stalled")).unwrap();
    assert_eq!(stalled["reason"], "SourceFailed");
    assert!(stalled["message"].as_str().unwrap().contains("main.tf:"), "{stalled}");
    assert_eq!(addresses(&ns), ["net/terraform_data.vpc"]);
    plane().apply(&["-n", &ns], &module("net", NETWORK, "{ cidr: 10.0.0.0/16, zones: [a] }"));
    assert_eq!(ready(&ns, "net")["status"]["objects"]["summary"], "2/2");
    delete_all(&ns);
}

#[test]
fn outputs_are_read_by_resources_and_other_modules_and_everything_can_be_deleted_at_once() {
    let _guard = shared();
    let ns = plane().namespace("module-outputs");
    let reader = data("reader", "\"${modules.net.vpc} via ${modules.more.vpc}\"", "");
    let more = module("more", NETWORK, r#"{ cidr: "in ${modules.net.vpc}" }"#);
    let net = module("net", NETWORK, "{ cidr: 10.0.0.0/16, zones: [a] }");
    plane().apply(&["-n", &ns], &format!("{net}{more}{reader}"));
    wait_ready(&ns, &["reader"]);
    ready(&ns, "more");
    let output = || resource(&ns, "reader").unwrap()["status"]["attributes"]["output"].clone();
    assert_eq!(output(), "10.0.0.0/16 via in 10.0.0.0/16");
    assert_eq!(resource(&ns, "reader").unwrap()["status"]["dependencies"], json!(["more/", "net/"]));
    plane().apply(&["-n", &ns], &net.replace("10.0", "10.9"));
    wait_until("the change reaches the reader", LIMIT, || output() == "10.9.0.0/16 via in 10.9.0.0/16");

    // Who reads an output keeps the objects that it comes from, and no others.
    plane().kubectl_ok(&["-n", &ns, "delete", "pmod", "net", "--wait=false"]);
    wait_until("the subnet is gone", LIMIT, || {
        !addresses(&ns).iter().any(|one| one.contains("net/terraform_data.subnet"))
    });
    assert!(addresses(&ns).contains(&"net/terraform_data.vpc".to_owned()));
    let blocked = poll(LIMIT, || condition(&found(&ns, "net")?, "DeletionBlocked")).unwrap();
    assert_eq!(blocked["reason"], "InUse", "{blocked}");
    delete_all(&ns);
}
