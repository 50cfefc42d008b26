//! The changes that users and administrators make with kubectl.

use apiserver::{Cluster, Server};
use http::Method;
use jiff::Timestamp;
use purlin::model::Record;
use serde_json::{Value, json};

use crate::convergence::all_records;
use crate::replica::HOME;
use crate::user::Kubectl;

/// The namespace of the users of most histories and stories.
pub(crate) const SHOP: &str = "shop";
/// The namespaces of users. If there are two shards, the second one is not in that of the first; of three or more, each is
/// in another one.
pub(crate) const NAMESPACES: [&str; 3] = [SHOP, "yard", "lab"];

/// The changes in one namespace.
pub(crate) struct ClusterKubectl {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: &'static str,
}

/// The path of a Resource.
pub(crate) fn path(namespace: &str, name: &str) -> String {
    format!("/apis/purlin.dev/v1alpha1/namespaces/{namespace}/resources/{name}")
}

/// Creates a namespace. Does nothing if it exists.
pub(crate) fn create_namespace(server: &mut Server, now: Timestamp, name: &str) {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let _ = server.send(now, &Method::POST, "/api/v1/namespaces", "application/json", &namespace);
}

impl Kubectl for ClusterKubectl {
    fn namespace(&self) -> &str {
        self.namespace
    }

    fn get(&self, name: &str) -> Option<Value> {
        let get = |server: &Server| Some(server.object("purlin.dev", "resources", self.namespace, name)?.value.clone());
        self.cluster.with(|server, _| get(server))
    }

    fn apply(&mut self, name: &str, spec: &Value, annotations: &Value) {
        let old = self.get(name);
        let namespace = self.namespace;
        let collection = format!("/apis/purlin.dev/v1alpha1/namespaces/{namespace}/resources");
        self.cluster.with(|server, now| {
            let Some(old) = old else {
                let resource = json!({
                    "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
                    "metadata": { "namespace": namespace, "name": name, "annotations": annotations },
                    "spec": spec,
                });
                let created = server.send(now, &Method::POST, &collection, "application/json", &resource);
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
            let done = server.send(now, &Method::PUT, &path(self.namespace, name), "application/json", &new);
            done.unwrap_or_else(|refusal| panic!("a user may write {name}: {refusal:?}"));
        });
    }

    fn delete(&mut self, name: &str) {
        self.cluster.with(|server, now| server.erase(now, &path(self.namespace, name)));
    }

    fn force(&mut self, name: &str) {
        self.cluster.with(|server, now| server.force_finalizers(now, &path(self.namespace, name)));
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
            let own = server.objects("purlin.dev", "resources").filter(|object| object.namespace() == self.namespace);
            own.map(|object| object.name().to_owned()).collect()
        })
    }

    fn records(&self, name: &str) -> Vec<Record> {
        let mut records = self.cluster.with(|server, _| all_records(server));
        records.retain(|one| (&*one.namespace, &**one.address.name()) == (self.namespace, name));
        records
    }
}
