//! One controller process, and the Pod object that represents it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::controlplane::{ControlPlane, wait_until};
use crate::installation::{LIMIT, NAMESPACE, chart};

/// A running `purlin controller`. Dropping it kills the process and leaves its Pod, as when a node is cut off: other replicas
/// then wait for the time limits of its operations.
pub(crate) struct Controller {
    child: Child,
    /// Kept open here because waiting for the child closes the handle inside `child`.
    _lifeline: Option<ChildStdin>,
    pod: String,
    log: PathBuf,
    port: u16,
}

/// Replaces itself with the given program, and kills it when the standard input is closed. Otherwise the controller
/// that all tests share would outlive them, because it is in a static variable and is never dropped.
pub(crate) const EXIT_WITH_PARENT: &str =
    r#"exec 3<&0; (cat <&3; kill -KILL $$) >/dev/null 2>&1 & exec 3<&- </dev/null "$0" "$@""#;

/// The number of shards in the chart.
#[allow(dead_code, reason = "the benchmarks have one replica")]
pub(crate) const SHARDS: usize = 16;

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What the controller that was started last has logged.
pub(crate) fn newest_log(plane: &ControlPlane) -> String {
    let number = COUNT.load(Ordering::Relaxed).saturating_sub(1);
    fs::read_to_string(log_file(plane, &pod_name(number))).unwrap_or_default()
}

fn pod_name(number: usize) -> String {
    format!("purlin-controller-{number}")
}

fn log_file(plane: &ControlPlane, pod: &str) -> PathBuf {
    plane.scratch().join(format!("{pod}.log"))
}

impl Controller {
    /// Starts a controller as the chart would, and waits until it is ready.
    pub(crate) fn start(plane: &ControlPlane) -> Self {
        Self::start_with(plane, &[])
    }

    /// As [`Self::start`], with arguments that are added to those of the chart or override them.
    pub(crate) fn start_with(plane: &ControlPlane, more: &[&str]) -> Self {
        let mut controller = Self::launch_with(plane, more);
        controller.wait_ready();
        controller
    }

    fn wait_ready(&mut self) {
        wait_until("the controller is ready", LIMIT, || {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "the controller ended before it was ready");
            self.http("/readyz").is_some_and(|(status, _)| status == 200)
        });
    }

    /// Starts a controller and does not wait until it is ready.
    pub(crate) fn launch(plane: &ControlPlane) -> Self {
        Self::launch_with(plane, &[])
    }

    /// As [`Self::launch`], with arguments that are added to those of the chart or override them.
    pub(crate) fn launch_with(plane: &ControlPlane, more: &[&str]) -> Self {
        Self::launch_over(plane, more, plane.service_account_kubeconfig(NAMESPACE, "purlin"))
    }

    /// As [`Self::launch_with`], with another kubeconfig.
    pub(crate) fn launch_over(plane: &ControlPlane, more: &[&str], kubeconfig: PathBuf) -> Self {
        let port = free_port();
        Self::spawn(plane, more, kubeconfig, port, &rendered_pod(plane, port, "purlin", &[]))
    }

    /// Starts a controller of another release, with the account of that release, and waits until it is ready.
    pub(crate) fn start_release(plane: &ControlPlane, release: &str, values: &[&str]) -> Self {
        let port = free_port();
        let template = rendered_pod(plane, port, release, values);
        let kubeconfig = plane.service_account_kubeconfig(NAMESPACE, account(&template));
        let mut controller = Self::spawn(plane, &[], kubeconfig, port, &template);
        controller.wait_ready();
        controller
    }

    fn spawn(plane: &ControlPlane, more: &[&str], kubeconfig: PathBuf, port: u16, template: &Value) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let pod = pod_name(number);
        let uid = create_pod(plane, &pod, template);
        let mut arguments: Vec<&str> = strings(&template["spec"]["containers"][0]["args"]);
        let flag = |argument: &str| argument.split('=').next().map(str::to_owned);
        arguments.retain(|argument| !more.iter().any(|other| flag(other) == flag(argument)));
        // The stand-in for the kubelet runs an image that is a path.
        arguments.retain(|argument| !argument.starts_with("--runner-image="));
        let image = concat!("--runner-image=", env!("CARGO_BIN_EXE_purlin"));
        let log = log_file(plane, &pod);
        let output = File::create(&log).expect("a log file");
        let mut child = Command::new("sh")
            .args(["-c", EXIT_WITH_PARENT, env!("CARGO_BIN_EXE_purlin")])
            .args(arguments)
            .arg(image)
            .args(more)
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAMESPACE", NAMESPACE)
            .env("POD_NAME", &pod)
            .env("POD_UID", uid)
            .env("POD_SERVICE_ACCOUNT", account(template))
            .envs(literal_env(template))
            .stdin(Stdio::piped())
            .stdout(output.try_clone().expect("a second handle"))
            .stderr(output)
            .spawn()
            .expect("the controller starts");
        Self { _lifeline: child.stdin.take(), child, pod, log, port }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    #[allow(dead_code, reason = "only the benchmark reads the process id")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn metrics(&self) -> String {
        self.http("/metrics").map(|(_, body)| body).unwrap_or_default()
    }

    #[allow(dead_code, reason = "the benchmarks have one replica")]
    pub(crate) fn shards_held(&self) -> usize {
        let metrics = self.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix("purlin_shards_held "));
        line.and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// Kills the process with SIGKILL and deletes its Pod, as the kubelet would do.
    pub(crate) fn kill(mut self, plane: &ControlPlane) {
        self.child.kill().expect("a running controller");
        self.child.wait().expect("an exit status");
        self.delete_pod(plane);
    }

    /// Sends SIGTERM, waits until the process has ended, and returns its exit code.
    pub(crate) fn terminate(&mut self, plane: &ControlPlane) -> Option<i32> {
        self.signal("TERM");
        self.wait_for_end(plane)
    }

    /// Waits until the process has ended, and returns its exit code.
    pub(crate) fn wait_for_end(&mut self, plane: &ControlPlane) -> Option<i32> {
        let mut status = None;
        wait_until("the controller ends", LIMIT, || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        self.delete_pod(plane);
        status.and_then(|status| status.code())
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "signal {name}");
    }

    fn delete_pod(&self, plane: &ControlPlane) {
        plane.kubectl_ok(&["-n", NAMESPACE, "delete", "pod", &self.pod, "--wait=true", "--ignore-not-found"]);
    }

    /// The HTTP port.
    #[allow(dead_code, reason = "only the tests of the live view use it")]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sends one request to the HTTP port, and returns the status and the body.
    pub(crate) fn http(&self, path: &str) -> Option<(u16, String)> {
        http(self.port, path)
    }
}

/// Sends one request to a local port, and returns the status and the body.
pub(crate) fn http(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let status = response.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, response.split_once("\r\n\r\n")?.1.to_owned()))
}

impl Drop for Controller {
    fn drop(&mut self) {
        // SIGKILL, because a paused process does not handle SIGTERM. Fails if the process has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(60).collect();
            eprintln!("--- the end of {}:", self.log.display());
            tail.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The environment variables of the container that have a literal value.
fn literal_env(template: &Value) -> Vec<(&str, &str)> {
    let entries = template["spec"]["containers"][0]["env"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry["name"].as_str()?, entry["value"].as_str()?))).collect()
}

/// The name of the ServiceAccount of a Pod template.
fn account(template: &Value) -> &str {
    template["spec"]["serviceAccountName"].as_str().expect("a name")
}

/// The Pod template of the chart's Deployment, with a separate metrics port.
fn rendered_pod(plane: &ControlPlane, port: u16, release: &str, values: &[&str]) -> Value {
    // A short lease, because many tests kill its holder.
    let lease = ["leaseDuration=3s", "renewDeadline=2s", "retryPeriod=500ms"];
    let lease = lease.map(|time| format!("controller.leaderElection.{time}")).join(",");
    let set = format!("metrics.port={port},{lease}");
    let shown = ["-s", "templates/deployment.yaml", "--set", &set];
    let yaml = plane.helm_ok(&[&["template", release, chart(), "-n", NAMESPACE], &shown[..], values].concat());
    let json = plane.kubectl_with_stdin(&["create", "--dry-run=client", "-o", "json", "-f", "-"], &yaml);
    let deployment: Value = serde_json::from_slice(&json.stdout).expect("a Deployment");
    deployment["spec"]["template"].clone()
}

/// Creates the Pod object that represents the process, and returns its UID. The test control plane acts as the kubelet.
fn create_pod(plane: &ControlPlane, name: &str, template: &Value) -> String {
    let mut pod = template.clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    plane.apply(&["-n", NAMESPACE], &pod.to_string());
    let pod = plane.get(&["-n", NAMESPACE, "pod", name]);
    pod["metadata"]["uid"].as_str().expect("a UID").to_owned()
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
