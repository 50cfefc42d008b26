//! Other clients in the cluster of a story: programs that write objects, controllers that write status, and kubelets
//! that run Jobs.

use std::sync::Arc;
use std::time::Duration;

use apiserver::{Change, ChangeKind, Object, Server};
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::play::Play;
use crate::cluster_objects;
use crate::kubectl::{SHOP, path};

impl Play {
    /// Another client creates or changes an object in the users' namespace.
    pub(crate) fn write(&self, api_version: &str, kind: &str, name: &str, rest: &Value) {
        let mut object = rest.clone();
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "namespace": SHOP, "name": name });
        self.put_object(object);
    }

    /// Another client creates or changes an object.
    pub(crate) fn put_object(&self, object: Value) {
        self.env.judge.note(&format!("another program writes {object}"));
        self.env.cluster.with(|server, now| {
            let path = server.path_of(&object, true);
            if server.modify(now, &path, &object).is_none() {
                server.insert(now, object);
            }
        });
    }

    /// Another client deletes an object in the users' namespace. Returns its last state.
    pub(crate) fn delete_object(&self, api_version: &str, kind: &str, name: &str) -> Value {
        self.env.judge.note(&format!("another program deletes {kind} {name}"));
        let metadata = json!({ "namespace": SHOP, "name": name });
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        self.env.cluster.with(|server, now| {
            let path = server.path_of(&object, true);
            let last = server.send(now, &Method::GET, &path, "application/json", &Value::Null);
            server.erase(now, &path);
            last.expect("it is there")
        })
    }

    pub(crate) fn provider_config(&self, name: &str) -> Option<Value> {
        let of = |server: &mut Server| Some(server.object("purlin.dev", "providerconfigs", SHOP, name)?.value.clone());
        self.env.cluster.with(|server, _| of(server))
    }

    /// Checks that a driver was never called like this: `update b at v0`.
    pub(crate) fn was_never_called(&self, call: &str) {
        if self.strikes.was_called(call) {
            self.env.judge.object(&format!("a driver was called to {call}"));
        }
    }

    pub(crate) fn cluster_object(&self, address: &str) -> Option<Arc<Object>> {
        let all = self.env.cluster.with(|server, _| cluster_objects::all(server));
        all.into_iter().find(|one| {
            cluster_objects::is_object(&one.value) && cluster_objects::address(&one.value).as_deref() == Some(address)
        })
    }

    /// Another client changes the object of an address.
    pub(crate) fn change(&self, address: &str, patch: &Value) {
        self.env.judge.note(&format!("another program changes the object of {address}: {patch}"));
        let object = self.cluster_object(address).expect("it is there");
        self.env.cluster.with(|server, now| {
            let path = server.path_of(&object.value, true);
            server.modify(now, &path, patch);
        });
    }

    /// Another client deletes the object of an address.
    pub(crate) fn remove(&self, address: &str) {
        self.env.judge.note(&format!("another program deletes the object of {address}"));
        let object = self.cluster_object(address).expect("it is there");
        self.env.judge.give_up([object.uid().to_owned()]);
        self.env.cluster.with(|server, now| {
            let path = server.path_of(&object.value, true);
            server.erase(now, &path);
        });
    }

    /// Sets the status of the Deployment of an address to available.
    pub(crate) fn run_pods(&self, address: &str) {
        self.env.judge.note(&format!("the Pods of {address} run"));
        self.set_pods(address, "True");
    }

    /// The same, before the condition of the Deployment says so: it matches its Resource, and is still awaited.
    pub(crate) fn begin_to_run_pods(&self, address: &str) {
        self.env.judge.note(&format!("the Pods of {address} run, and its condition is late"));
        self.set_pods(address, "False");
    }

    fn set_pods(&self, address: &str, available: &str) {
        let Some(object) = self.cluster_object(address) else {
            return self.env.judge.object(&format!("{address} has no Deployment"));
        };
        let count = &object.value["spec"]["replicas"];
        self.report(
            &object.value,
            &json!({
                "observedGeneration": object.value["metadata"]["generation"],
                "replicas": count, "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count,
                "conditions": [{ "type": "Available", "status": available }],
            }),
        );
    }

    /// Sets the status of the Deployment of an address to failed: no Pod runs, and its deadline has passed.
    pub(crate) fn fail_pods(&self, address: &str) {
        self.env.judge.note(&format!("the Pods of {address} do not run"));
        let Some(object) = self.cluster_object(address) else {
            return self.env.judge.object(&format!("{address} has no Deployment"));
        };
        let late = json!({ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded" });
        self.report(
            &object.value,
            &json!({
                "observedGeneration": object.value["metadata"]["generation"],
                "replicas": 2, "updatedReplicas": 2, "readyReplicas": 0, "availableReplicas": 0,
                "conditions": [{ "type": "Available", "status": "False" }, late],
            }),
        );
    }

    /// Makes the cluster another one, in which these Resources were restored without their status.
    pub(crate) fn become_another_cluster(&self, names: &[&str]) {
        self.env.judge.note("it is another cluster");
        self.env.cluster.with(|server, now| {
            server.renew_namespace(now, "kube-system");
            for name in names {
                let status = json!({ "status": { "conditions": [], "observedGeneration": -1 } });
                let place = format!("{}/status", path(SHOP, name));
                let done = server.send(now, &Method::PATCH, &place, "application/merge-patch+json", &status);
                assert!(done.is_ok(), "{done:?}");
            }
        });
    }

    fn report(&self, object: &Value, status: &Value) {
        self.env.cluster.with(|server, now| {
            let path = format!("{}/status", server.path_of(object, true));
            let patch = json!({ "status": status });
            let done = server.send(now, &Method::PATCH, &path, "application/merge-patch+json", &patch);
            // The object may have been deleted meanwhile.
            assert!(matches!(done, Ok(_) | Err((404, _))), "{path}: {done:?}");
        });
    }

    /// Runs `story`, and completes each Job after two seconds. `beside` are the objects that must exist while a Job
    /// runs.
    pub(crate) async fn with_jobs(&self, beside: &[&str], story: impl Future<Output = ()>) {
        let run = async {
            loop {
                sleep(Duration::from_secs(2)).await;
                self.end_jobs(beside);
            }
        };
        tokio::select! {
            biased;
            () = run => {}
            () = story => {}
        }
        if !self.has_created_a_job() {
            self.env.judge.object("no hook has run");
        }
    }

    pub(crate) fn has_created_a_job(&self) -> bool {
        let is_new = |change: &Arc<Change>| &*change.what.1 == "jobs" && change.happened == ChangeKind::Added;
        self.env.cluster.with(|server, _| server.changes(0).any(is_new))
    }

    fn end_jobs(&self, beside: &[&str]) {
        let running: Vec<Arc<Object>> = self.env.cluster.with(|server, _| {
            server.objects("batch", "jobs").filter(|job| job.value["status"]["conditions"].is_null()).cloned().collect()
        });
        for job in running {
            let there: Vec<String> = self.objects().into_iter().filter(|text| !text.contains(" Job ")).collect();
            if there != beside {
                self.env.judge.object(&format!("{} runs while {there:?} exist, instead of {beside:?}", job.name()));
            }
            self.env.judge.note(&format!("the Job {} is complete", job.name()));
            self.report(&job.value, &json!({ "conditions": [{ "type": "Complete", "status": "True" }] }));
        }
    }
}
