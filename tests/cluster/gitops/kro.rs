//! kro: a ResourceGraphDefinition whose instances consist of Resources, with kro's own controller.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::example;
use crate::controlplane::{poll, wait_until};
use crate::installation::*;
use crate::kubernetes_objects::may_edit;
use crate::pages::root;
use crate::programs::{Program, ensure};

const KRO: Program =
    Program { module: "gitops", package: "github.com/kubernetes-sigs/kro/cmd/controller", name: "kro" };

/// kro's controller. It ends when this value is dropped, or when this process ends for any reason.
struct Kro(Child);

impl Kro {
    fn start() -> Self {
        // The controller reads no stdin: the shell ends it.
        let script = "\"$0\" \"$@\" & controller=$!; cat > /dev/null; kill $controller; wait $controller";
        let mut command = plane().command("sh".as_ref());
        command
            .args(["-c", script])
            .arg(ensure(&KRO))
            .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"]);
        let log = std::fs::File::create(plane().scratch().join("kro.log")).expect("a log");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
        Self(child.expect("kro starts"))
    }
}

impl Drop for Kro {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if poll(LIMIT, || self.0.try_wait().ok().flatten()).is_none() {
            let _ = self.0.kill();
        }
    }
}

/// The directory of a Go module that `tests/gitops` uses.
fn module(name: &str) -> PathBuf {
    let mut command = Command::new("go");
    // `go list` would return no directory if only the programs built from the module are still cached.
    command.args(["mod", "download", "-json", name]).current_dir(root().join("tests/gitops")).env("GOWORK", "off");
    let output = command.output().expect("go runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let module: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    PathBuf::from(module["Dir"].as_str().expect("a directory"))
}

#[test]
fn an_instance_of_a_graph_is_ready_when_its_resources_are() {
    let _guard = shared();
    let plane = plane();
    let crds = module("github.com/kubernetes-sigs/kro").join("helm/crds");
    plane.kubectl_ok(&["apply", "--server-side", "-f", crds.to_str().expect("UTF-8")]);
    let _kro = Kro::start();
    plane.apply(&[], &example("kro/graph.yaml"));
    plane.kubectl_ok(&["wait", "--for=condition=Ready", "resourcegraphdefinition/shop", "--timeout=90s"]);
    let ns = plane.namespace("kro");
    may_edit(&ns);
    let shop = example("kro/shop.yaml");
    plane.apply(&["-n", &ns], &shop);
    let wait = || {
        plane.kubectl_ok(&["-n", &ns, "wait", "--for=condition=Ready", "shop/garden", "--timeout=90s"]);
        wait_ready(&ns, &["garden-site", "garden-copy"]);
    };
    wait();
    let settings = || {
        let name =
            plane.get(&["-n", &ns, "shop", "garden"])["status"]["settings"].as_str().unwrap_or_default().to_owned();
        let found = plane.kubectl(&["-n", &ns, "get", "configmap", &name, "-o", "jsonpath={.data.color}"]);
        (name, String::from_utf8(found.stdout).expect("UTF-8"))
    };
    let before = settings();
    assert_eq!(before.1, "green");

    // The replacement exists before the old settings are destroyed, and the dependent follows.
    plane.apply(&["-n", &ns], &shop.replace("green", "blue"));
    wait_until("the settings are replaced", LIMIT, || settings().1 == "blue");
    wait();
    let copy = resource(&ns, "garden-copy").unwrap();
    assert_eq!(copy["status"]["attributes"]["output"], settings().0.as_str());
    assert!(!plane.kubectl(&["-n", &ns, "get", "configmap", &before.0]).status.success());

    plane.kubectl_ok(&["-n", &ns, "delete", "shop", "garden", "--timeout=90s"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}
