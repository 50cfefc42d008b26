//! What others do in the cluster of a story: programs that write objects, controllers that report on them, kubelets that
//! run Jobs.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::play::Play;
use crate::apiserver::{Happened, Object, Server};
use crate::hands::SHOP;
use crate::made;

impl Play {
    /// Another program makes an object of the users' namespace, or changes it to this.
    pub(crate) fn write(&self, api_version: &str, kind: &str, name: &str, rest: &Value) {
        let mut object = rest.clone();
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "namespace": SHOP, "name": name });
        self.put_there(object);
    }

    /// The same with an object of any place.
    pub(crate) fn put_there(&self, object: Value) {
        self.around.judge.note(&format!("another program writes {object}"));
        self.around.cluster.with(|server, now| {
            let path = server.path_of(&object, true);
            if server.modify(now, &path, &object).is_none() {
                server.insert(now, object);
            }
        });
    }

    /// Another program deletes an object of the users' namespace. Gives what it was last.
    pub(crate) fn take_away(&self, api_version: &str, kind: &str, name: &str) -> Value {
        self.around.judge.note(&format!("another program deletes {kind} {name}"));
        let metadata = json!({ "namespace": SHOP, "name": name });
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        self.around.cluster.with(|server, now| {
            let path = server.path_of(&object, true);
            let last = server.ask(now, &Method::GET, &path, "application/json", &Value::Null);
            server.erase(now, &path);
            last.expect("it is there")
        })
    }

    /// A `ProviderConfig`.
    pub(crate) fn settings(&self, name: &str) -> Option<Value> {
        let of = |server: &mut Server| Some(server.object("purlin.dev", "providerconfigs", SHOP, name)?.value.clone());
        self.around.cluster.with(|server, _| of(server))
    }

    /// A driver must not have been called like this: `update b at v0`.
    pub(crate) fn was_never_called(&self, call: &str) {
        if self.strikes.was_called(call) {
            self.around.judge.object(&format!("a driver was called to {call}"));
        }
    }

    /// The object of an address in the cluster.
    pub(crate) fn made(&self, address: &str) -> Option<Arc<Object>> {
        let all = self.around.cluster.with(|server, _| made::all(server));
        all.into_iter().find(|one| made::is_object(&one.value) && made::address(&one.value).as_deref() == Some(address))
    }

    /// Another program changes the object of an address.
    pub(crate) fn change(&self, address: &str, patch: &Value) {
        self.around.judge.note(&format!("another program changes the object of {address}: {patch}"));
        let object = self.made(address).expect("it is there");
        self.around.cluster.with(|server, now| {
            let path = server.path_of(&object.value, true);
            server.modify(now, &path, patch);
        });
    }

    /// Another program deletes the object of an address.
    pub(crate) fn remove(&self, address: &str) {
        self.around.judge.note(&format!("another program deletes the object of {address}"));
        let object = self.made(address).expect("it is there");
        self.around.judge.give_up([object.uid().to_owned()]);
        self.around.cluster.with(|server, now| {
            let path = server.path_of(&object.value, true);
            server.erase(now, &path);
        });
    }

    /// The Pods of the Deployment of an address all run.
    pub(crate) fn runs(&self, address: &str) {
        self.around.judge.note(&format!("the Pods of {address} run"));
        let object = self.made(address).expect("it is there");
        let count = &object.value["spec"]["replicas"];
        self.report(
            &object.value,
            &json!({
                "observedGeneration": object.value["metadata"]["generation"],
                "replicas": count, "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count,
                "conditions": [{ "type": "Available", "status": "True" }],
            }),
        );
    }

    /// A controller writes a status.
    fn report(&self, object: &Value, status: &Value) {
        self.around.cluster.with(|server, now| {
            let path = format!("{}/status", server.path_of(object, true));
            let patch = json!({ "status": status });
            let done = server.ask(now, &Method::PATCH, &path, "application/merge-patch+json", &patch);
            // It may have gone meanwhile.
            assert!(matches!(done, Ok(_) | Err((404, _))), "{path}: {done:?}");
        });
    }

    /// Plays on while Jobs run, each for two seconds. `beside` is what has to exist all the time in which a Job runs.
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
        let made = |server: &mut Server| {
            server.changes(0).any(|change| &*change.what.1 == "jobs" && change.happened == Happened::Added)
        };
        if !self.around.cluster.with(|server, _| made(server)) {
            self.around.judge.object("no hook has run");
        }
    }

    fn end_jobs(&self, beside: &[&str]) {
        let running: Vec<Arc<Object>> = self.around.cluster.with(|server, _| {
            server.objects("batch", "jobs").filter(|job| job.value["status"]["conditions"].is_null()).cloned().collect()
        });
        for job in running {
            let there: Vec<String> = self.objects().into_iter().filter(|text| !text.contains(" Job ")).collect();
            if there != beside {
                self.around.judge.object(&format!("{} runs beside {there:?}, and not {beside:?}", job.name()));
            }
            self.around.judge.note(&format!("the Job {} is complete", job.name()));
            self.report(&job.value, &json!({ "conditions": [{ "type": "Complete", "status": "True" }] }));
        }
    }
}
