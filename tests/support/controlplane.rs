//! A real Kubernetes control plane for the cluster tests: etcd, kube-apiserver, kube-controller-manager, and a
//! simulated scheduler and kubelet, which `tests/controlplane/README.md` describes. The tests use `kubectl`, so that
//! the harness shares no client code with Purlin.
//!
//! Include it with `#[path = "../support/controlplane.rs"] mod controlplane;`, together with `programs`.
#![allow(dead_code, reason = "a test binary uses the part it needs")]

#[path = "controlplane/process.rs"]
mod process;
#[path = "controlplane/run_dir.rs"]
mod run_dir;
#[path = "controlplane/tools.rs"]
mod tools;
#[path = "controlplane/wait.rs"]
mod wait;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use process::Process;
use run_dir::RunDir;
use serde_json::{Value, json};

pub(crate) use tools::tools;
pub(crate) use wait::{poll, wait_for, wait_until};

/// A running control plane. Dropping it ends its processes.
pub(crate) struct ControlPlane {
    // Fields are dropped in this order: the directory is removed after the processes that write to it have ended.
    nodes: Process,
    controller_manager: Process,
    /// `None` while the API server is stopped.
    api_server: Mutex<Option<Process>>,
    port: String,
    namespaces: AtomicUsize,
    dir: RunDir,
}

impl ControlPlane {
    /// Returns the control plane that the tests of this run share, each with its own namespace.
    ///
    /// A static is never dropped: its processes end because their stdin is closed when this process exits.
    pub(crate) fn shared() -> &'static ControlPlane {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(ControlPlane::start)
    }

    /// Starts a control plane for one test, which may stop the API server. It takes about three seconds and 600 MB of
    /// memory.
    ///
    /// # Panics
    /// If a tool cannot be built, or the API server does not become ready.
    pub(crate) fn start() -> ControlPlane {
        let tools = tools();
        let dir = RunDir::create(&crate::programs::target_dir().join("purlin-test-runs"));
        let api_server = start_server(&dir, "0");
        let port = fs::read_to_string(dir.data().join("port")).expect("the API server's port");

        let kubeconfig = path_str(&dir.kubeconfig()).to_owned();
        let data = path_str(&dir.data()).to_owned();
        let mut arguments = vec!["controller-manager", "--kubeconfig", &kubeconfig, "--data-dir", &data];
        // A directory of assets often contains only an API server. Then the linked controller manager is used.
        let assets = tools.assets.as_deref().filter(|assets| assets.join("kube-controller-manager").is_file());
        if let Some(assets) = assets {
            arguments.extend(["--assets", path_str(assets)]);
        }
        let controller_manager = Process::start(&tools.controlplane, &arguments, &dir.log("controller-manager"));
        let nodes = Process::start(&tools.controlplane, &["nodes", "--kubeconfig", &kubeconfig], &dir.log("nodes"));
        ControlPlane {
            nodes,
            controller_manager,
            api_server: Mutex::new(Some(api_server)),
            port,
            namespaces: AtomicUsize::new(0),
            dir,
        }
    }

    /// The kubeconfig of an administrator (group `system:masters`, to which RBAC does not apply).
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.kubeconfig()
    }

    /// The audit log of the API server: one JSON object per line and request, with the body of the request.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.dir.audit_log()
    }

    /// A directory for files of the tests, which is removed with this control plane.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.dir.scratch()
    }

    /// Runs kubectl as administrator; `--kubeconfig` in the arguments selects another user.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Output {
        process::output(self.kubectl_command(args), None)
    }

    /// As [`Self::kubectl`], with this input.
    pub(crate) fn kubectl_with_stdin(&self, args: &[&str], stdin: &str) -> Output {
        process::output(self.kubectl_command(args), Some(stdin))
    }

    /// Starts kubectl as administrator with a piped stdout. The caller must wait for the process or kill it.
    pub(crate) fn kubectl_child(&self, args: &[&str]) -> Child {
        self.kubectl_command(args).stdout(Stdio::piped()).spawn().expect("kubectl starts")
    }

    /// Runs kubectl and returns its stdout.
    ///
    /// # Panics
    /// If it fails, with its stderr.
    pub(crate) fn kubectl_ok(&self, args: &[&str]) -> String {
        process::stdout_of_success(&format!("kubectl {}", args.join(" ")), &self.kubectl(args))
    }

    /// Binds a role (`--role=NAME` or `--clusterrole=NAME`) to a ServiceAccount of the namespace.
    ///
    /// # Panics
    /// If it fails, with its stderr.
    pub(crate) fn bind(&self, namespace: &str, name: &str, role: &str, account: &str) -> String {
        let account = format!("--serviceaccount={namespace}:{account}");
        self.kubectl_ok(&["-n", namespace, "create", "rolebinding", name, role, &account])
    }

    /// Returns the output of `kubectl get ARGS -o json`.
    ///
    /// # Panics
    /// If it fails, with its stderr.
    pub(crate) fn get(&self, args: &[&str]) -> Value {
        let text = self.kubectl_ok(&[&["get", "-o", "json"], args].concat());
        serde_json::from_str(&text).expect("JSON of kubectl")
    }

    /// Applies manifests in YAML or JSON; `args` are additional arguments, such as `["-n", "some-namespace"]`.
    ///
    /// # Panics
    /// If it fails, with its stderr.
    pub(crate) fn apply(&self, args: &[&str], manifests: &str) -> String {
        // Tests share cluster-scoped objects. kubectl fails if another program creates an object after kubectl has
        // looked for it.
        static CLUSTER_SCOPED: Mutex<()> = Mutex::new(());
        let _guard = args.is_empty().then(|| CLUSTER_SCOPED.lock().unwrap_or_else(PoisonError::into_inner));
        let output = self.kubectl_with_stdin(&[&["apply", "-f", "-"], args].concat(), manifests);
        process::stdout_of_success(&format!("kubectl apply of\n{manifests}\n"), &output)
    }

    /// Runs Helm as administrator, without the configuration of the user.
    pub(crate) fn helm(&self, args: &[&str]) -> Output {
        let mut command = self.command(&tools().helm);
        for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(home, self.dir.scratch().join(home.to_lowercase()));
        }
        command.args(args);
        process::output(command, None)
    }

    /// Runs Helm and returns its stdout.
    ///
    /// # Panics
    /// If it fails, with its stderr.
    pub(crate) fn helm_ok(&self, args: &[&str]) -> String {
        process::stdout_of_success(&format!("helm {}", args.join(" ")), &self.helm(args))
    }

    /// Creates a namespace for one test and returns its name. Pods can be created in it immediately.
    ///
    /// A test need not delete it, because the whole control plane is removed. A deletion takes at least five seconds.
    pub(crate) fn namespace(&self, prefix: &str) -> String {
        let name = format!("{prefix}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        self.kubectl_ok(&["create", "namespace", &name]);
        // A namespace rejects all Pods until a controller has created its default `ServiceAccount`.
        self.kubectl_ok(&["-n", &name, "wait", "--for=create", "serviceaccount/default", "--timeout=120s"]);
        name
    }

    /// Writes a kubeconfig for an existing `ServiceAccount`, with its namespace as the default.
    pub(crate) fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        let token = self.kubectl_ok(&["-n", namespace, "create", "token", name, "--duration=8h"]);
        let view = self.kubectl_ok(&["config", "view", "--raw", "-o", "json"]);
        let mut config: Value = serde_json::from_str(&view).expect("JSON of kubectl");
        config["users"][0]["user"] = json!({ "token": token.trim() });
        config["contexts"][0]["context"]["namespace"] = json!(namespace);
        let path = self.dir.scratch().join(format!("{namespace}.{name}.kubeconfig"));
        fs::write(&path, config.to_string()).expect("write a kubeconfig");
        path
    }

    /// Stops the API server. Not for a control plane that other tests use at the same time.
    pub(crate) fn stop_api_server(&self) {
        drop(self.api_server().take());
    }

    /// Starts the API server again on the same port with the same data, and returns when it is ready.
    pub(crate) fn start_api_server(&self) {
        let mut api_server = self.api_server();
        if api_server.is_none() {
            *api_server = Some(start_server(&self.dir, &self.port));
        }
    }

    fn api_server(&self) -> MutexGuard<'_, Option<Process>> {
        // A test that panicked while it held the lock has left a valid value.
        self.api_server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&tools().kubectl);
        command.args(args);
        command
    }

    /// A command that runs a client as administrator.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", self.dir.kubeconfig());
        command.env("KUBECACHEDIR", self.dir.scratch().join("kubectl-cache"));
        command
    }
}

fn start_server(dir: &RunDir, port: &str) -> Process {
    let tools = tools();
    let (data, audit_log) = (dir.data(), dir.audit_log());
    let mut arguments = vec!["serve", "--data-dir", path_str(&data), "--port", port];
    arguments.extend(["--audit-log", path_str(&audit_log)]);
    if let Some(assets) = &tools.assets {
        arguments.extend(["--assets", path_str(assets)]);
    }
    Process::start_and_wait_for(&tools.controlplane, &arguments, &dir.log("serve"), "ready ")
}

fn path_str(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
