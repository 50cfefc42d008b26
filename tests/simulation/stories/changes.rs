//! Creates and updates, and a change of the process without any change of objects.

use std::time::Duration;

use serde_json::{Value, json};

use super::play::{Play, plain, thing};

/// A spec that references the id of `target`.
pub(super) fn on(target: &str, force: &str, more: Value) -> Value {
    thing(&format!("${{{target}.id}}"), force, more)
}

/// Applies `a`, `b` that depends on `a`, and `c` that depends on `b`.
pub(super) fn apply_chain(play: &Play, more: &Value) {
    play.apply("a", &thing("v0", "f0", more.clone()));
    play.apply("b", &on("a", "f0", more.clone()));
    play.apply("c", &on("b", "f0", more.clone()));
}

pub(super) const CHAIN: [&str; 3] = ["a v0 f0", "b ->a f0", "c ->b f0"];

pub(super) async fn create(play: &Play) {
    play.empty().await;
    play.apply("a", &plain("v0", "f0"));
    play.ends(&["a v0 f0"]).await;
}

pub(super) async fn create_chain(play: &Play) {
    play.empty().await;
    apply_chain(play, &Value::Null);
    play.ends(&CHAIN).await;
}

pub(super) async fn update(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &plain("v1", "f0"));
    play.ends(&["a v1 f0"]).await;
}

pub(super) async fn update_in_chain(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &thing("${a.value}", "f0", Value::Null));
    play.apply("c", &thing("${b.value}", "f0", Value::Null));
    play.given().await;
    play.apply("a", &plain("v1", "f0"));
    play.ends(&["a v1 f0", "b v1 f0", "c v1 f0"]).await;
}

pub(super) async fn dependency_comes_and_goes(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &plain("v0", "f0"));
    play.given().await;
    play.apply("b", &thing("v1", "f0", json!({ "dependsOn": [{ "name": "a" }] })));
    play.until_up_to_date().await;
    play.delete("a");
    play.until_says("a", "Synced", "InUse").await;
    play.apply("b", &plain("v2", "f0"));
    play.ends(&["b v2 f0"]).await;
}

pub(super) async fn disabled_and_enabled(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &thing("v0", "f0", json!({ "enabled": false })));
    play.until_up_to_date().await;
    play.apply("a", &plain("v1", "f0"));
    play.ends(&["a v1 f0"]).await;
}

/// An upgrade: the new process finds everything up to date.
pub(super) async fn nothing_changes(play: &Play) {
    apply_chain(play, &Value::Null);
    play.apply("f", &thing("v0", "f0", json!({ "count": 2 })));
    play.given().await;
    play.roll().await;
    play.pass(Duration::from_secs(5)).await;
    let [a, b, c] = CHAIN;
    play.ends(&[a, b, c, "f[0] v0 f0", "f[1] v0 f0"]).await;
    play.wrote_nothing();
}
