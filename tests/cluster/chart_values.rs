//! The values of the chart: what they render, which combinations are errors, and `helm test`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::controlplane::wait_until;
use crate::installation::*;

/// Every kind that the chart can create.
const EVERYTHING: [&str; 8] = [
    "metrics.serviceMonitor.enabled=true",
    "metrics.prometheusRule.enabled=true",
    "metrics.dashboard.enabled=true",
    "podDisruptionBudget.enabled=true",
    "networkPolicy.enabled=true",
    "cache.persistentVolumeClaim.enabled=true",
    "typeAuthorization.enabled=true",
    "controller.watchNamespaces={a,b}",
];

/// The objects that the chart renders, those of the test included.
fn rendered(values: &[&str]) -> Vec<Value> {
    let set = values.iter().flat_map(|value| ["--set", value]).collect::<Vec<_>>();
    let text = plane().helm_ok(&[&["template", "purlin", chart(), "-n", NAMESPACE], &set[..]].concat());
    let documents = text.split("\n---\n").filter(|text| text.lines().any(|line| line.starts_with("kind:")));
    documents.map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

fn of_test(object: &Value) -> bool {
    object["metadata"]["annotations"]["helm.sh/hook"] == "test"
}

/// Whether the selector of a Pod matches the labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value)
}

#[test]
fn common_labels_are_on_every_object_and_in_no_selector() {
    let all = rendered(&[&EVERYTHING[..], &["commonLabels.team=infra", "podLabels.team=pods"]].concat());
    let kinds: BTreeSet<&str> = all.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.len(), 17, "{kinds:?}");
    for object in &all {
        assert_eq!(object["metadata"]["labels"]["team"], "infra", "{} {}", object["kind"], object["metadata"]["name"]);
    }
    let pods = &of_kind(&all, "Deployment")["spec"]["template"]["metadata"]["labels"];
    assert_eq!(pods["team"], "pods", "the labels of Pods take precedence");
    let test = all.iter().find(|object| object["kind"] == "Pod").unwrap();
    for (kind, selector) in [
        ("Deployment", "/spec/selector/matchLabels"),
        ("Service", "/spec/selector"),
        ("ServiceMonitor", "/spec/selector/matchLabels"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
    ] {
        let selector = of_kind(&all, kind).pointer(selector).unwrap();
        assert_eq!(selector.as_object().unwrap().len(), 2, "{kind}: {selector}");
        assert!(selects(selector, pods), "{kind}");
        assert!(!selects(selector, &test["metadata"]["labels"]), "the Pod of the test is no controller: {kind}");
    }
}

#[test]
fn what_needs_more_than_kubernetes_is_off_by_default() {
    let default = rendered(&[]);
    let off = ["ServiceMonitor", "PrometheusRule", "PodDisruptionBudget", "NetworkPolicy", "PersistentVolumeClaim"];
    for kind in off {
        assert!(default.iter().all(|object| object["kind"] != kind), "{kind}");
    }
    assert!(default.iter().all(|object| object["kind"] != "ConfigMap" || of_test(object)), "no dashboard");
    let deployment = of_kind(&default, "Deployment");
    assert!(deployment["spec"]["strategy"].is_null() && deployment["spec"]["template"]["spec"]["affinity"].is_null());
}

#[test]
fn combinations_that_cannot_work_are_errors_with_a_hint() {
    let exclusive = "cache.persistentVolumeClaim.enabled=true";
    let shared = format!("{exclusive},replicas=2,cache.persistentVolumeClaim.accessMode=ReadWriteMany");
    rendered(&[&shared]);
    for (values, expected) in [
        (
            "replicas=2,cache.persistentVolumeClaim.enabled=true",
            "replicas is 2, but only one Pod can use a cache with the accessMode ReadWriteOnce",
        ),
        ("metrics.service.enabled=false,metrics.serviceMonitor.enabled=true", "a ServiceMonitor selects a Service"),
        (
            "metrics.prometheusRule.enabled=true,metrics.prometheusRule.disabled={PurlinTypo}",
            "there is no alert PurlinTypo",
        ),
        ("caBundle.configMap=a,caBundle.secret=b", "caBundle.configMap and caBundle.secret exclude each other"),
        (
            r"commonLabels.app\.kubernetes\.io/name=x",
            "commonLabels: app.kubernetes.io/name: the chart sets this label itself",
        ),
        (
            r"podLabels.app\.kubernetes\.io/instance=x",
            "podLabels: app.kubernetes.io/instance: the chart sets this label itself",
        ),
    ] {
        let output = plane().helm(&["template", "purlin", chart(), "--set", values]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(expected) && error.contains("(hint: "), "{values}: {error}");
    }
    // No value blocks a drain.
    for value in ["podDisruptionBudget.maxUnavailable=0", "podDisruptionBudget.maxUnavailable=0%"] {
        assert!(!plane().helm(&["template", "purlin", chart(), "--set", value]).status.success(), "{value}");
    }
}

#[test]
fn alerts_and_dashboard_are_those_of_the_files() {
    let values = [
        "metrics.prometheusRule.enabled=true",
        "metrics.prometheusRule.alertLabels.team=infra",
        "metrics.prometheusRule.disabled={PurlinPanics}",
        "metrics.dashboard.enabled=true",
        "metrics.dashboard.namespace=grafana",
    ];
    let set = values.iter().flat_map(|value| ["--set", value]).collect::<Vec<_>>();
    let read = |name: &str| fs::read_to_string(Path::new(chart()).join("files").join(name)).unwrap();
    let show = |template: &str| -> Value {
        let shown = ["template", "purlin", chart(), "-n", "elsewhere", "-s", template];
        serde_saphyr::from_str(&plane().helm_ok(&[&shown[..], &set].concat())).unwrap()
    };
    let text = read("alerts.yaml").replace(r#"namespace="purlin-system""#, r#"namespace="elsewhere""#);
    assert!(!text.contains("{namespace=\"purlin-system\""));
    let mut expected: Value = serde_saphyr::from_str(&text).unwrap();
    for group in expected["groups"].as_array_mut().unwrap() {
        let rules = group["rules"].as_array_mut().unwrap();
        rules.retain(|rule| rule["alert"] != "PurlinPanics");
        rules.iter_mut().for_each(|rule| rule["labels"]["team"] = "infra".into());
    }
    assert_eq!(show("templates/prometheusrule.yaml")["spec"], expected);
    let config = show("templates/dashboard.yaml");
    assert_eq!(
        (&config["metadata"]["namespace"], &config["metadata"]["labels"]["grafana_dashboard"]),
        (&json!("grafana"), &json!("1"))
    );
    let dashboard: Value = serde_json::from_str(config["data"]["purlin.json"].as_str().unwrap()).unwrap();
    assert_eq!(dashboard, serde_json::from_str::<Value>(&read("dashboard.json")).unwrap());
}

/// The API server checks the Deployment, too.
#[test]
fn a_deployment_with_all_values_is_valid() {
    let values = [
        "replicas=2",
        "proxy.https=http://proxy.example.com:3128",
        "caBundle.configMap=company",
        "caBundle.key=bundle.pem",
        "podSecurityContext.runAsUser=null",
        "securityContext.readOnlyRootFilesystem=false",
        "livenessProbe.initialDelaySeconds=7",
        "extraEnv[0].name=HTTP_PROXY,extraEnv[0].value=http://other",
        "priorityClassName=system-cluster-critical",
    ];
    let set = values.iter().flat_map(|value| ["--set", value]).collect::<Vec<_>>();
    let shown = ["template", "other", chart(), "-n", NAMESPACE, "-s", "templates/deployment.yaml"];
    let text = plane().helm_ok(&[&shown[..], &set].concat());
    let created = plane().kubectl_with_stdin(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &text);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let pod = serde_json::from_slice::<Value>(&created.stdout).unwrap()["spec"]["template"]["spec"].clone();
    let container = &pod["containers"][0];
    let env =
        |name: &str| container["env"].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap().clone();
    assert_eq!(env("HTTPS_PROXY")["value"], "http://proxy.example.com:3128");
    assert_eq!(env("NO_PROXY")["value"], "$(KUBERNETES_SERVICE_HOST),localhost,127.0.0.1,.svc,.cluster.local");
    assert_eq!(env("SSL_CERT_FILE")["value"], "/etc/ssl/certs/ca-certificates.crt");
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|mount| mount["name"] == "ca-bundle").unwrap();
    assert_eq!(mount["mountPath"], env("SSL_CERT_DIR")["value"]);
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|volume| volume["name"] == "ca-bundle").unwrap();
    assert_eq!(volume["configMap"]["items"], json!([{ "key": "bundle.pem", "path": "ca.crt" }]));
    assert!(pod["securityContext"]["runAsUser"].is_null() && pod["securityContext"]["runAsNonRoot"] == true);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], false);
    assert_eq!(container["livenessProbe"]["initialDelaySeconds"], 7);
    let term = &pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(term["podAffinityTerm"]["topologyKey"], "kubernetes.io/hostname");
}

#[test]
fn the_cache_moves_to_a_volume_and_back() {
    let plane = plane();
    let ns = plane.namespace("cache");
    let own = "replicas=0,crds.install=false,rbac.create=false,protectRecords=false,\
               serviceAccountAuthorization.enabled=false,approvalAuthorization.enabled=false";
    let upgrade = |value: &str| {
        let set = format!("{own},{value}");
        plane.helm_ok(&["upgrade", "--install", "other", chart(), "-n", &ns, "--set", &set]);
        plane.get(&["-n", &ns, "deployment", "other-purlin"])["spec"].clone()
    };
    let surge = |spec: &Value| spec["strategy"]["rollingUpdate"]["maxSurge"].clone();
    let volume = |spec: &Value| spec["template"]["spec"]["volumes"][0].clone();
    let without = upgrade("cache.size=1Gi");
    assert_eq!((surge(&without), &volume(&without)["emptyDir"]["sizeLimit"]), (json!("25%"), &json!("1Gi")));
    let with = upgrade("cache.size=2Gi,cache.persistentVolumeClaim.enabled=true");
    assert_eq!(surge(&with), 0, "the new Pod would wait for the volume of the old one");
    assert_eq!(volume(&with)["persistentVolumeClaim"]["claimName"], "other-purlin-cache");
    let claim = plane.get(&["-n", &ns, "pvc", "other-purlin-cache"]);
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "2Gi");
    assert_eq!(surge(&upgrade("cache.size=1Gi")), "25%");
    let claims = || plane.get(&["-n", &ns, "pvc"])["items"].as_array().unwrap().len();
    wait_until("the claim is deleted", LIMIT, || claims() == 0);
    plane.helm_ok(&["uninstall", "other", "-n", &ns]);
}

/// The Pod of `helm test` as a process: with its arguments, its files and the token of its ServiceAccount.
struct TestPod {
    directory: tempfile::TempDir,
    arguments: Vec<String>,
}

impl TestPod {
    /// Creates the objects of the test except the Pod.
    fn create() -> Self {
        let objects: Vec<Value> = rendered(&[]).into_iter().filter(of_test).collect();
        let plane = plane();
        for object in objects.iter().filter(|object| object["kind"] != "Pod") {
            plane.apply(&[], &object.to_string());
        }
        let directory = tempfile::tempdir().unwrap();
        let account = directory.path().display().to_string();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("token", plane.kubectl_ok(&["-n", NAMESPACE, "create", "token", "purlin-test"]).trim());
        let root = plane.get(&["-n", NAMESPACE, "configmap", "kube-root-ca.crt"]);
        write("ca.crt", root["data"]["ca.crt"].as_str().unwrap());
        let server = plane.kubectl_ok(&["config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"]);
        for (name, text) in of_kind(&objects, "ConfigMap")["data"].as_object().unwrap() {
            let text = text.as_str().unwrap().replace("/var/run/secrets/kubernetes.io/serviceaccount", &account);
            write(name, &text.replace("https://kubernetes.default.svc", &server));
        }
        let pod = of_kind(&objects, "Pod");
        let arguments = pod["spec"]["containers"][0]["args"].as_array().unwrap().iter();
        let arguments = arguments.map(|one| one.as_str().unwrap().replace("/etc/purlin/test", &account)).collect();
        let allowed = ["auth", "can-i", "create", "pplan", "-n", NAMESPACE, "--as"];
        let allowed = [&allowed[..], &["system:serviceaccount:purlin-system:purlin-test"]].concat();
        wait_until("the test may create Plans", LIMIT, || plane.kubectl(&allowed).status.success());
        Self { directory, arguments }
    }

    fn run(&self, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        let kept =
            self.arguments.iter().filter(|one| !more.iter().any(|new| new.split('=').next() == one.split('=').next()));
        command.args(kept).args(more).current_dir(self.directory.path()).env_remove("KUBECONFIG");
        command.output().unwrap()
    }
}

#[test]
fn helm_test_succeeds_only_with_a_controller_that_plans() {
    {
        let _guard = shared();
        let output = TestPod::create().run(&[]);
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success() && text.contains("1 to create"), "{text}");
        assert!(resource(NAMESPACE, "helm-test").is_none(), "nothing is created");
        // The API server accepts the objects, and Helm removes those of a test that has succeeded.
        let reported = plane().helm_ok(&["test", "purlin", "-n", NAMESPACE]);
        assert!(reported.contains("Succeeded"), "{reported}");
        for kind in ["pod", "role", "rolebinding", "serviceaccount", "configmap"] {
            let found = plane().kubectl(&["-n", NAMESPACE, "get", kind, "purlin-test"]);
            assert!(!found.status.success(), "{kind} purlin-test remains");
        }
    }
    let _alone = exclusive();
    let output = TestPod::create().run(&["--timeout=1"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("the controller has not computed the Plan"), "{error}");
}
