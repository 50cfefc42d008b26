//! Providers in Pods of their own. The stand-in for the kubelet starts the real command.

use serde_json::Value;

use crate::controlplane::{poll, wait_for, wait_until};
use crate::example_providers::example;
use crate::installation::*;
use crate::troubled::Bench;

/// A ProviderConfig that runs the provider `corner` in a Pod. `more`: other fields of the runner.
fn in_pod(bench: &Bench, more: &str) -> String {
    format!("{}  runner: {{ kind: Pod{more} }}\n", bench.config("corner", ""))
}

fn rbac(ns: &str) {
    plane().apply(&["-n", ns], &example("providers-in-pods/rbac.yaml"));
}

fn pods(ns: &str) -> Vec<Value> {
    let list = plane().get(&["-n", ns, "pods", "-l", "app.kubernetes.io/component=runner"]);
    list["items"].as_array().cloned().unwrap_or_default()
}

/// The only Pod of a provider, once it runs.
fn running_pod(ns: &str) -> Value {
    wait_for("a Pod runs a provider", LIMIT, || {
        let mut running = pods(ns).into_iter().filter(|pod| pod["status"]["phase"] == "Running");
        running.next().filter(|_| running.next().is_none())
    })
}

fn name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().expect("a name").to_owned()
}

#[test]
fn a_provider_in_a_pod_is_recovered_after_the_loss_of_the_pod_and_ends_when_it_is_idle() {
    let _guard = shared();
    let bench = Bench::new("pods");
    let ns = bench.ns.as_str();
    plane().kubectl_ok(&["-n", ns, "create", "serviceaccount", "cloud"]);
    let more = ", serviceAccountName: cloud, idleTimeout: 3s, env: [{ name: REGION, value: x }]";
    plane().apply(&["-n", ns], &in_pod(&bench, more));
    bench.trouble("web", "on_read: ''", "");

    // The account may not create Pods.
    let forbidden = wait_reason(ns, "web", "Ready", "Forbidden");
    let message = forbidden["message"].as_str().unwrap();
    assert!(message.contains("cannot create the Pod"), "{message}");
    let rules = "{apiGroups: [\"\"], resources: [pods], verbs: [create, delete, get, list, watch]} and \
                 {apiGroups: [\"\"], resources: [secrets], verbs: [create]} to the service account `default`";
    assert!(message.contains(rules), "{message}");
    rbac(ns);
    wait_ready(ns, &["web"]);
    assert_eq!(bench.created("web").len(), 1);

    // The Pod disappears in a call.
    bench.trouble("web", "on_update: hang", "");
    bench.wait_started();
    let pod = running_pod(ns);
    assert_eq!(pod["spec"]["serviceAccountName"], "cloud");
    assert_eq!(pod["spec"]["automountServiceAccountToken"], true);
    bench.stop_failures();
    plane().kubectl_ok(&["-n", ns, "delete", "pod", &name(&pod), "--grace-period=1"]);
    wait_ready(ns, &["web"]);
    assert_eq!(bench.created("web").len(), 1);

    wait_until("the idle Pod is deleted, and its keys with it", LIMIT, || {
        let secrets = plane().get(&["-n", ns, "secrets", "-l", "app.kubernetes.io/component=runner"]);
        pods(ns).is_empty() && secrets["items"].as_array().is_some_and(Vec::is_empty)
    });
    bench.clean();
}

#[test]
fn a_provider_config_says_which_pod_its_objects_wait_for() {
    let _guard = shared();
    let bench = Bench::new("unready");
    let ns = bench.ns.as_str();
    rbac(ns);
    // Rejects Pods that do not satisfy the standard.
    plane().kubectl_ok(&["label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted"]);
    plane().apply(&["-n", ns], &in_pod(&bench, ", nodeSelector: { disk: none }"));
    bench.trouble("web", "on_read: ''", "");
    let waiting = wait_for("the ProviderConfig waits for its Pod", LIMIT, || {
        let ready = condition(&plane().get(&["-n", ns, "providerconfig.purlin.dev", "corner"]), "Ready")?;
        ready["message"].as_str().is_some_and(|text| text.contains("waits for the Pod")).then_some(ready)
    });
    wait_until("the Resource says what it waits for", LIMIT, || {
        let resource = resource(ns, "web").unwrap_or_default();
        condition(&resource, "Ready").is_some_and(|ready| {
            ready["message"] == "waits for the ProviderConfig `corner`, whose status says why it is not ready"
        })
    });
    let pod = poll(LIMIT, || pods(ns).pop()).unwrap();
    let expected = format!("waits for the Pod {ns}/{}: Unschedulable: no node has the labels of the Pod", name(&pod));
    assert_eq!(waiting["reason"], "ProviderNotReady");
    assert!(waiting["message"].as_str().unwrap().contains(&expected), "{waiting}");

    // The start of another Pod replaces it, because its configuration is outdated.
    plane().apply(&["-n", ns], &in_pod(&bench, ""));
    wait_ready(ns, &["web"]);
    wait_until("the other Pod is deleted", LIMIT, || pods(ns).iter().all(|other| name(other) != name(&pod)));
    bench.clean();
}

#[test]
fn a_namespace_that_is_deleted_accepts_no_pod_and_its_objects_say_what_to_do() {
    let _guard = shared();
    let bench = Bench::new("gone");
    let ns = bench.ns.as_str();
    rbac(ns);
    plane().apply(&["-n", ns], &in_pod(&bench, ", idleTimeout: 1s"));
    bench.trouble("web", "on_read: ''", "");
    wait_ready(ns, &["web"]);
    wait_until("the idle Pod is deleted", LIMIT, || pods(ns).is_empty());
    plane().kubectl_ok(&["delete", "namespace", ns, "--wait=false"]);
    let expected =
        format!("the namespace `{ns}` is being deleted and accepts no Pods (hint: set `runner: {{kind: InProcess}}`");
    wait_until("the Resource says what to do", LIMIT, || {
        let ready = resource(ns, "web").and_then(|web| condition(&web, "Ready"));
        ready.is_some_and(|ready| ready["message"].as_str().unwrap().contains(&expected))
    });
    assert_eq!(bench.created("web").len(), 1);
    let patch = r#"{"spec":{"runner":{"kind":"InProcess","idleTimeout":null}}}"#;
    plane().kubectl_ok(&["-n", ns, "patch", "providerconfig", "corner", "--type=merge", "-p", patch]);
    wait_until("the namespace is deleted", LIMIT, || !plane().kubectl(&["get", "namespace", ns]).status.success());
    assert_eq!(bench.created("web"), Vec::<String>::new());
    assert!(records(ns).is_empty());
    plane().kubectl_ok(&["delete", "provider.purlin.dev", &bench.provider]);
}
