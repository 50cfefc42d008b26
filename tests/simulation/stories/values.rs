//! Inputs, data sources, copies of outputs, and hooks.

use serde_json::{Value, json};

use super::changes::on;
use super::cluster::site;
use super::play::{Play, plain, thing};

fn published(value: &str) -> Value {
    let publish = json!([
        { "configMapRef": { "name": "out" }, "data": { "VALUE": "${self.value}" } },
        { "secretRef": { "name": "out" }, "data": { "ID": "${self.force}" } },
    ]);
    thing(value, "f0", json!({ "publish": publish }))
}

const SECRET: &str = "for a Secret out ID=f0";

pub(super) async fn publish(play: &Play) {
    play.empty().await;
    play.apply("a", &published("v0"));
    play.until_up_to_date().await;
    play.apply("a", &published("v1"));
    play.ends(&["a v1 f0", "for a ConfigMap out VALUE=v1", SECRET]).await;
}

pub(super) async fn publish_taken_away(play: &Play) {
    play.apply("a", &published("v0"));
    play.given().await;
    play.apply("a", &plain("v1", "f0"));
    play.ends(&["a v1 f0"]).await;
}

/// The copies are deleted with the object.
pub(super) async fn published_deleted(play: &Play) {
    play.apply("a", &published("v0"));
    play.given().await;
    play.delete("a");
    play.ends(&[]).await;
}

fn reader() -> Value {
    let inputs = json!([
        { "name": "host", "configMapKeyRef": { "name": "site", "key": "host" } },
        { "name": "port", "secretKeyRef": { "name": "login", "key": "port" } },
    ]);
    thing("${inputs.host}", "${inputs.port}", json!({ "inputs": inputs }))
}

/// One input is created later than the other.
pub(super) async fn inputs_come(play: &Play) {
    play.write("v1", "ConfigMap", "site", &json!({ "data": { "host": "v0" } }));
    play.empty().await;
    play.apply("a", &reader());
    play.until_says("a", "Ready", "InputNotFound").await;
    play.write("v1", "Secret", "login", &json!({ "stringData": { "port": "f0" } }));
    play.ends(&["a v0 f0"]).await;
}

/// A change of one input updates the object; a change of the other replaces it.
pub(super) async fn inputs_change(play: &Play) {
    play.write("v1", "ConfigMap", "site", &json!({ "data": { "host": "v0" } }));
    play.write("v1", "Secret", "login", &json!({ "stringData": { "port": "f0" } }));
    play.apply("a", &reader());
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.write("v1", "ConfigMap", "site", &json!({ "data": { "host": "v1" } }));
    play.until_up_to_date().await;
    play.write("v1", "Secret", "login", &json!({ "stringData": { "port": "f1" } }));
    play.ends(&["a v1 f1", "b ->a f0"]).await;
}

pub(super) fn hooked(when: &str) -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "c", "image": "x", "args": ["${self.id}"] }] } });
    thing("v0", "f0", json!({ "hooks": [{ "name": "warm", "when": when, "job": { "template": template } }] }))
}

/// Dependents of the object wait for the hook.
pub(super) async fn hook_after_create(play: &Play) {
    play.empty().await;
    play.apply("a", &hooked("AfterCreate"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.with_jobs(&["a v0 f0"], play.ends(&["a v0 f0", "b ->a f0"])).await;
}

/// The hook runs after the dependents are destroyed, and before the object is destroyed.
pub(super) async fn hook_before_destroy(play: &Play) {
    play.apply("a", &hooked("BeforeDestroy"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.delete("a");
    play.delete("b");
    play.with_jobs(&["a v0 f0"], play.ends(&[])).await;
}

/// A data source is read again when its dependency has changed. Its dependents are then updated.
pub(super) async fn data_read_again(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    let spec = json!({ "type": "scripted_thing", "config": { "value": "${a.value}" } });
    play.write("purlin.dev/v1alpha1", "DataSource", "d", &json!({ "spec": spec }));
    play.apply("b", &thing("${data.d.value}", "f0", Value::Null));
    play.given().await;
    play.apply("a", &plain("v1", "f0"));
    play.ends(&["a v1 f0", "b v1 f0"]).await;
    play.called_once("read_data data.d");
}

/// The data source reads an object of the cluster that another Resource creates and updates.
pub(super) async fn data_of_object(play: &Play) {
    play.empty().await;
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "${a.object.metadata.name}" });
    let spec = json!({ "type": "kubernetes_object", "config": config });
    play.write("purlin.dev/v1alpha1", "DataSource", "d", &json!({ "spec": spec }));
    play.apply("b", &thing("${data.d.object.data.text}", "f0", Value::Null));
    play.apply("a", &site("v0"));
    play.until_up_to_date().await;
    play.apply("a", &site("v1"));
    play.ends(&["a ConfigMap site text=v1", "b v1 f0"]).await;
}
