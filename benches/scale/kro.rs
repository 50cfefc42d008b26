//! kro with one ConfigMap in each instance of a graph. It runs as its chart has it: one replica, and the default rates.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::controller::EXIT_WITH_PARENT;
use crate::controlplane::ControlPlane;
use crate::processes::Process;
use crate::programs::{Program, built};
use crate::replicas::Processes;
use crate::workload::Workload;

const KRO: Program =
    Program { module: "gitops", package: "github.com/kubernetes-sigs/kro/cmd/controller", name: "kro" };

const NAMESPACE: &str = "kro-system";

/// A kind `Setting`: each instance has one ConfigMap with its name.
const GRAPH: &str = "
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: { name: setting }
spec:
  schema:
    apiVersion: v1alpha1
    kind: Setting
    spec: { value: string }
  resources:
    - id: settings
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: { name: '${schema.metadata.name}' }
        data: { value: '${schema.spec.value}' }
";

/// Returns the program, or why it could not be built.
pub(crate) fn program() -> Result<PathBuf, String> {
    built(&KRO)
}

pub(crate) fn workload() -> Workload {
    Workload {
        program: "kro 0.9.4",
        objects: "ConfigMaps",
        api: ApiResource::from_gvk(&GroupVersionKind::gvk("kro.run", "v1alpha1", "Setting")),
        user: "system:serviceaccount:kro-system:kro",
        manifest,
        change: |value| json!({"spec": {"value": value}}),
    }
}

fn manifest(name: &str) -> Value {
    json!({"apiVersion": "kro.run/v1alpha1", "kind": "Setting", "metadata": {"name": name}, "spec": {"value": "first"}})
}

/// The controller of kro. Dropping it kills the process.
pub(crate) struct Kro<'p> {
    plane: &'p ControlPlane,
    program: &'p Path,
    kubeconfig: PathBuf,
    child: Child,
}

impl<'p> Kro<'p> {
    /// Installs kro, and waits until the kind of the graph is served.
    pub(crate) fn start(plane: &'p ControlPlane, program: &'p Path) -> Self {
        let crds = module("github.com/kubernetes-sigs/kro").join("helm/crds");
        plane.kubectl_ok(&["apply", "--server-side", "-f", crds.to_str().expect("UTF-8")]);
        plane.kubectl_ok(&["create", "namespace", NAMESPACE]);
        plane.kubectl_ok(&["-n", NAMESPACE, "create", "serviceaccount", "kro"]);
        let account = format!("--serviceaccount={NAMESPACE}:kro");
        plane.kubectl_ok(&["create", "clusterrolebinding", "kro", "--clusterrole=cluster-admin", &account]);
        let kubeconfig = plane.service_account_kubeconfig(NAMESPACE, "kro");
        let child = launch(plane, program, &kubeconfig);
        let kro = Self { plane, program, kubeconfig, child };
        plane.apply(&[], GRAPH);
        plane.kubectl_ok(&["wait", "--for=condition=Ready", "resourcegraphdefinition/setting", "--timeout=90s"]);
        kro
    }
}

/// The directory of a Go module that `tests/gitops` uses.
fn module(name: &str) -> PathBuf {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gitops");
    let mut command = Command::new("go");
    command.args(["list", "-m", "-f", "{{.Dir}}", name]).current_dir(directory).env("GOWORK", "off");
    let output = command.output().expect("go runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).expect("UTF-8").trim())
}

fn launch(plane: &ControlPlane, program: &Path, kubeconfig: &Path) -> Child {
    let log = File::options().create(true).append(true).open(plane.scratch().join("kro.log")).expect("a log");
    let mut command = Command::new("sh");
    command.args(["-c", EXIT_WITH_PARENT]).arg(program);
    command.args(["--metrics-bind-address=0", "--health-probe-bind-address=0"]).env("KUBECONFIG", kubeconfig);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().expect("kro starts")
}

impl Processes for Kro<'_> {
    fn all(&self) -> Vec<Process> {
        vec![Process(self.child.id())]
    }

    fn kill(&mut self, _: usize) {
        self.child.kill().expect("a running controller");
    }

    fn replace(&mut self, _: usize) {
        self.child.wait().expect("an exit status");
        self.child = launch(self.plane, self.program, &self.kubeconfig);
    }
}

impl Drop for Kro<'_> {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
