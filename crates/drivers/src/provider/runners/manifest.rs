//! The Pod of a runner and the Secret with its keys. Pure.

use serde_json::{Value as Json, json};

use model::PodRunner;
use tfprovider::plugin::remote::RunnerKeys;

/// The port of the runner.
pub const PORT: u16 = 8443;

/// Selects the Pods of all runners.
pub const SELECTOR: &str = "app.kubernetes.io%2Fmanaged-by%3Dpurlin%2Capp.kubernetes.io%2Fcomponent%3Drunner";

/// The label with the process that the Pod belongs to.
pub const CONTROLLER: &str = "purlin.dev/controller";

/// How long a runner that is asked to end goes on for calls that run. Few calls take longer. The deletion of a namespace with
/// such a Pod takes up to half as long, because Kubernetes looks again only then.
const GRACE_SECONDS: u32 = 300;

/// What a Pod is made from.
pub struct PodPlan<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    /// The process that the Pod belongs to.
    pub controller: &'a str,
    /// The name of the provider configuration.
    pub configuration: &'a str,
    pub image: &'a str,
    /// The checksum of the package.
    pub hash: &'a str,
    /// The service account that creates the Pod.
    pub creator: &'a str,
    pub runner: &'a PodRunner,
}

/// The rights that the creator needs, as the rules of a Role.
pub const RULES: &str = "{apiGroups: [\"\"], resources: [pods], verbs: [create, delete, get, list, watch]} and \
                                {apiGroups: [\"\"], resources: [secrets], verbs: [create]}";

impl PodPlan<'_> {
    /// The service account of the Pod.
    pub fn account(&self) -> &str {
        self.runner.service_account.as_deref().unwrap_or(self.creator)
    }

    fn metadata(&self) -> Json {
        json!({
            "name": self.name,
            "namespace": self.namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "purlin",
                "app.kubernetes.io/component": "runner",
                CONTROLLER: self.controller,
                "purlin.dev/provider-config": self.configuration,
            },
        })
    }

    fn secret_variable(&self, name: &str, key: &str) -> Json {
        json!({"name": name, "valueFrom": {"secretKeyRef": {"name": self.name, "key": key}}})
    }

    /// The Pod satisfies the Pod Security Standard `restricted`. It gets nothing of the controller's environment.
    pub fn pod(&self) -> Json {
        let mut env = vec![
            json!({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
            json!({"name": "HOME", "value": "/tmp"}),
            self.secret_variable("PURLIN_RUNNER_CERTIFICATE", "tls.crt"),
            self.secret_variable("PURLIN_RUNNER_KEY", "tls.key"),
            self.secret_variable("PURLIN_RUNNER_CLIENT", "client.crt"),
        ];
        env.extend(self.runner.environment.iter().map(|(name, value)| json!({"name": name, "value": value})));
        let mut container = json!({
            "name": "provider",
            "image": self.image,
            "args": ["runner", "--address", "$(POD_IP)", "--port", PORT.to_string(), "--package", self.hash],
            "env": env,
            "ports": [{"name": "runner", "containerPort": PORT}],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        });
        if !self.runner.resources.is_null() {
            container["resources"] = self.runner.resources.clone();
        }
        let mut metadata = self.metadata();
        // A call that an eviction ends has an unknown outcome.
        metadata["annotations"] = json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"});
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            // No owner: a foreground deletion of an owner would delete the Pod before the objects that need it.
            "metadata": metadata,
            "spec": {
                "serviceAccountName": self.account(),
                "automountServiceAccountToken": self.runner.service_account.is_some(),
                "enableServiceLinks": false,
                // A provider that has ended is not configured, so another Pod takes its place.
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE_SECONDS,
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
                "nodeSelector": self.runner.node_selector,
                "tolerations": self.runner.tolerations,
                "volumes": [{"name": "tmp", "emptyDir": {}}],
            },
        })
    }

    /// The keys of the runner, which are deleted with its Pod.
    pub fn secret(&self, pod_uid: &str, keys: &RunnerKeys) -> Json {
        let mut metadata = self.metadata();
        metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": pod_uid}]);
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "immutable": true,
            "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": keys.certificate, "tls.key": keys.key, "client.crt": keys.client},
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn plan(runner: &PodRunner) -> PodPlan<'_> {
        PodPlan {
            namespace: "shop",
            name: "purlin-random-1",
            controller: "c1",
            configuration: "random",
            image: "purlin:1",
            hash: "h1:x",
            creator: "deployer",
            runner,
        }
    }

    #[test]
    fn a_pod_has_the_fields_of_its_runner() {
        let runner = PodRunner {
            service_account: Some("cloud".into()),
            resources: json!({"limits": {"memory": "1Gi"}}),
            node_selector: BTreeMap::from([("disk".to_owned(), "ssd".to_owned())]),
            tolerations: vec![json!({"key": "spot"})],
            environment: BTreeMap::from([("REGION".to_owned(), "x".to_owned())]),
            ..PodRunner::default()
        };
        let pod = plan(&runner).pod();
        let spec = &pod["spec"];
        assert_eq!(spec["serviceAccountName"], "cloud");
        assert_eq!(spec["automountServiceAccountToken"], true);
        assert_eq!(spec["nodeSelector"], json!({"disk": "ssd"}));
        assert_eq!(spec["tolerations"], json!([{"key": "spot"}]));
        let container = &spec["containers"][0];
        assert_eq!(container["resources"], json!({"limits": {"memory": "1Gi"}}));
        assert_eq!(container["env"].as_array().unwrap().last().unwrap(), &json!({"name": "REGION", "value": "x"}));
    }

    #[test]
    fn without_an_account_the_provider_gets_no_token() {
        let pod = plan(&PodRunner::default()).pod();
        assert_eq!(pod["spec"]["serviceAccountName"], "deployer");
        assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    }

    #[test]
    fn a_pod_is_restricted_and_names_its_package() {
        let pod = plan(&PodRunner::default()).pod();
        let container = &pod["spec"]["containers"][0];
        let expected = json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(container["securityContext"], expected);
        let expected = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
        assert_eq!(pod["spec"]["securityContext"], expected);
        assert_eq!(pod["spec"]["restartPolicy"], "Never");
        assert!(container["args"].as_array().unwrap().contains(&json!("h1:x")));
        let text = pod.to_string();
        assert!(!text.contains("PRIVATE KEY") && !text.contains("ownerReferences"), "{text}");
    }

    #[test]
    fn the_keys_are_deleted_with_the_pod() {
        let keys = RunnerKeys { certificate: "C".into(), key: "K".into(), client: "D".into() };
        let secret = plan(&PodRunner::default()).secret("u1", &keys);
        assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "u1");
        assert_eq!(secret["stringData"], json!({"tls.crt": "C", "tls.key": "K", "client.crt": "D"}));
    }
}
