//! The changes that users and administrators make with kubectl.

use serde_json::{Value, json};

use crate::apiserver::Cluster;
use crate::replica::HOME;
use crate::user::Kubectl;

/// The namespace of the users.
pub(crate) const SHOP: &str = "shop";

pub(crate) struct ClusterKubectl {
    pub(crate) cluster: Cluster,
}

pub(crate) fn path(name: &str) -> String {
    format!("/apis/purlin.dev/v1alpha1/namespaces/{SHOP}/resources/{name}")
}

impl Kubectl for ClusterKubectl {
    fn get(&self, name: &str) -> Option<Value> {
        self.cluster.with(|server, _| Some(server.object("purlin.dev", "resources", SHOP, name)?.value.clone()))
    }

    fn apply(&mut self, name: &str, spec: &Value, annotations: &Value) {
        let old = self.get(name);
        let collection = format!("/apis/purlin.dev/v1alpha1/namespaces/{SHOP}/resources");
        self.cluster.with(|server, now| {
            let Some(old) = old else {
                let resource = json!({
                    "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
                    "metadata": { "namespace": SHOP, "name": name, "annotations": annotations },
                    "spec": spec,
                });
                let created = server.send(now, &http::Method::POST, &collection, "application/json", &resource);
                // The server creates nothing in a namespace that is being deleted.
                assert!(matches!(created, Ok(_) | Err((403, _))), "{name}: {created:?}");
                return;
            };
            let mut new = old;
            new["spec"] = spec.clone();
            let kept = new["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            let own = |key: &String| key == "purlin.dev/record";
            let mut all: serde_json::Map<String, Value> = kept.into_iter().filter(|(key, _)| own(key)).collect();
            all.extend(annotations.as_object().cloned().unwrap_or_default());
            new["metadata"]["annotations"] = Value::Object(all);
            let done = server.send(now, &http::Method::PUT, &path(name), "application/json", &new);
            done.unwrap_or_else(|refusal| panic!("a user may write {name}: {refusal:?}"));
        });
    }

    fn delete(&mut self, name: &str) {
        self.cluster.with(|server, now| server.erase(now, &path(name)));
    }

    fn force(&mut self, name: &str) {
        self.cluster.with(|server, now| server.force_finalizers(now, &path(name)));
    }

    fn touch_records(&mut self, with: &str) {
        self.cluster.with(|server, now| {
            let names: Vec<String> = server
                .objects("", "secrets")
                .filter(|secret| secret.namespace() == HOME)
                .map(|secret| secret.name().to_owned())
                .collect();
            for name in names {
                let patch = json!({ "metadata": { "annotations": { "example.com/touched": with } } });
                server.modify(now, &format!("/api/v1/namespaces/{HOME}/secrets/{name}"), &patch);
            }
        });
    }

    fn names(&self) -> Vec<String> {
        self.cluster.with(|server, _| {
            server.objects("purlin.dev", "resources").map(|object| object.name().to_owned()).collect()
        })
    }
}
