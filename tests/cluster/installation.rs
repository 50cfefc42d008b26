//! The chart, installed once for a test run, and the controller that all tests share.

use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use serde_json::Value;

use crate::controller::{self, Controller};
use crate::controlplane::{ControlPlane, poll, wait_for, wait_until};

/// Where the chart is installed.
pub(crate) const NAMESPACE: &str = "purlin-system";

/// How long a condition may take. Generous, because only a failing test waits this long.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// The directory of the chart.
pub(crate) fn chart() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/charts/purlin")
}

/// A new namespace whose ServiceAccount `default` may edit.
pub(crate) fn with_rights(prefix: &str) -> String {
    let namespace = plane().namespace(prefix);
    plane().bind(&namespace, "edit", "--clusterrole=edit", "default");
    namespace
}

/// The control plane with the chart installed. Its Deployment has no replicas: the tests start the controller.
pub(crate) fn plane() -> &'static ControlPlane {
    static INSTALLED: OnceLock<&'static ControlPlane> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let plane = ControlPlane::shared();
        install(plane);
        plane
    })
}

/// Installs the chart without replicas, and waits until its CRDs are served.
pub(crate) fn install(plane: &ControlPlane) {
    let place = ["-n", NAMESPACE, "--create-namespace", "--set", "replicas=0", "--wait"];
    plane.helm_ok(&[&["install", "purlin", chart()], &place[..]].concat());
    plane.kubectl_ok(&[
        "wait",
        "--for=condition=Established",
        "crd/resources.purlin.dev",
        "crd/datasources.purlin.dev",
        "crd/providers.purlin.dev",
        "crd/providerconfigs.purlin.dev",
        "crd/plans.purlin.dev",
        "--timeout=60s",
    ]);
}

fn controller_slot() -> &'static RwLock<Option<Controller>> {
    static CONTROLLER: OnceLock<RwLock<Option<Controller>>> = OnceLock::new();
    CONTROLLER.get_or_init(|| RwLock::new(None))
}

/// The control plane with a running controller, shared with other tests.
pub(crate) struct Shared(RwLockReadGuard<'static, Option<Controller>>);

impl Shared {
    #[allow(dead_code, reason = "not every test uses it")]
    pub(crate) fn controller(&self) -> &Controller {
        self.0.as_ref().expect("the controller was started before the guard was returned")
    }
}

/// Exclusive access of one test to the control plane. No controller runs until the test starts one.
pub(crate) struct Exclusive(RwLockWriteGuard<'static, Option<Controller>>);

/// Joins the tests that share a controller, and starts the controller when there is none.
pub(crate) fn shared() -> Shared {
    plane();
    loop {
        let guard = controller_slot().read().unwrap_or_else(PoisonError::into_inner);
        if guard.is_some() {
            return Shared(guard);
        }
        drop(guard);
        let mut guard = controller_slot().write().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() {
            *guard = Some(Controller::start(plane()));
        }
    }
}

/// Waits until no other test is running, terminates the shared controller, and blocks other tests.
pub(crate) fn exclusive() -> Exclusive {
    plane();
    let mut guard = controller_slot().write().unwrap_or_else(PoisonError::into_inner);
    if let Some(mut controller) = guard.take() {
        controller.terminate(plane());
    }
    Exclusive(guard)
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        *self.0 = None;
    }
}

/// A Resource as kubectl returns it; `None` when it does not exist.
pub(crate) fn resource(namespace: &str, name: &str) -> Option<Value> {
    let output = plane().kubectl(&["-n", namespace, "get", "pres", name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON of kubectl"))
}

pub(crate) fn condition(resource: &Value, kind: &str) -> Option<Value> {
    let conditions = resource["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind).cloned()
}

/// Whether a Resource is ready in its current generation.
pub(crate) fn is_ready(resource: &Value) -> bool {
    let current = resource["status"]["observedGeneration"] == resource["metadata"]["generation"];
    current && condition(resource, "Ready").is_some_and(|ready| ready["status"] == "True")
}

pub(crate) fn wait_ready(namespace: &str, names: &[&str]) {
    for name in names {
        let ready = poll(LIMIT, || resource(namespace, name).filter(is_ready));
        assert!(ready.is_some(), "{namespace}/{name} is not ready:\n{}", what_is_known(namespace, name));
    }
}

/// The conditions of a Resource, and what the newest controller has logged of its namespace last: short, because a test runner
/// may show only the end of a message.
fn what_is_known(namespace: &str, name: &str) -> String {
    let found = resource(namespace, name).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = found["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|condition| {
            let [kind, status, reason, message] =
                ["type", "status", "reason", "message"].map(|field| text(&condition[field]));
            format!("{kind}={status} {reason}: {message}")
        })
        .collect();
    let log = controller::newest_log(plane());
    let of_namespace: Vec<&str> = log.lines().filter(|line| line.contains(namespace)).collect();
    let last = &of_namespace[of_namespace.len().saturating_sub(20)..];
    lines.extend(last.iter().map(|line| line.chars().take(300).collect()));
    lines.join("\n")
}

/// Waits until a condition of the Resource has the reason, and returns the condition.
pub(crate) fn wait_reason(namespace: &str, name: &str, kind: &str, reason: &str) -> Value {
    wait_for(&format!("{namespace}/{name}: {kind} has the reason {reason}"), LIMIT, || {
        condition(&resource(namespace, name)?, kind).filter(|condition| condition["reason"] == reason)
    })
}

/// Requests that Resources are reconciled, as `purlin reconcile` does, and waits until the requests are handled. Each
/// `round` is a new request.
pub(crate) fn reconcile(namespace: &str, names: &[&str], round: &str) {
    let request = format!("purlin.dev/reconcile-requested-at={round}");
    for name in names {
        plane().kubectl_ok(&["-n", namespace, "annotate", "--overwrite", "pres", name, &request]);
    }
    for name in names {
        wait_until(&format!("{namespace}/{name}: the request {round} is handled"), LIMIT, || {
            resource(namespace, name).is_some_and(|object| object["status"]["lastHandledReconcileAt"] == round)
        });
    }
}

/// Waits until no Resource is left in the namespace.
pub(crate) fn wait_empty(namespace: &str) {
    wait_until(&format!("no Resource is left in {namespace}"), LIMIT, || {
        plane().get(&["-n", namespace, "pres"])["items"].as_array().is_some_and(Vec::is_empty)
    });
}

/// The records of a namespace: their Secrets in the namespace of the controller.
pub(crate) fn records(namespace: &str) -> Vec<Value> {
    let selector = format!("purlin.dev/namespace={namespace}");
    let list = plane().get(&["-n", NAMESPACE, "secrets", "-l", &selector]);
    list["items"].as_array().cloned().unwrap_or_default()
}

/// A `terraform_data` Resource.
pub(crate) fn data(name: &str, input: &str, more: &str) -> String {
    let indented: String = more.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  \
         type: terraform_data\n  config:\n    input: {input}\n{indented}"
    )
}

/// The events of a Resource, as `reason: note`.
pub(crate) fn events(namespace: &str, name: &str) -> Vec<String> {
    let list = plane().get(&["-n", namespace, "events.events.k8s.io"]);
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let own = items.into_iter().filter(|event| event["regarding"]["name"] == name);
    own.map(|event| format!("{}: {}", text(&event["reason"]), text(&event["note"]))).collect()
}

/// Waits until an event about the object, as `events` returns it, contains `text`: an event is written after the status.
pub(crate) fn wait_event(namespace: &str, name: &str, text: &str) {
    wait_until(&format!("an event of {namespace}/{name} contains {text}"), LIMIT, || {
        events(namespace, name).iter().any(|event| event.contains(text))
    });
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
