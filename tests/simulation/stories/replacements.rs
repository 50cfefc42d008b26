//! Replacements, in both orders.

use serde_json::{Value, json};

use super::changes::{CHAIN, apply_chain, on};
use super::play::{Play, plain, thing};

fn create_first() -> Value {
    json!({ "lifecycle": { "createBeforeDestroy": true } })
}

pub(super) async fn replace_destroy_first(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &plain("v0", "f1"));
    play.ends(&["a v0 f1"]).await;
}

pub(super) async fn replace_create_first(play: &Play) {
    play.apply("a", &thing("v0", "f0", create_first()));
    play.given().await;
    play.apply("a", &thing("v0", "f1", create_first()));
    play.ends(&["a v0 f1"]).await;
}

/// The direct dependent is updated with the new id, and the last object is replaced as well.
pub(super) async fn replace_chain_destroy_first(play: &Play) {
    apply_chain(play, &Value::Null);
    play.given().await;
    play.apply("a", &plain("v0", "f1"));
    play.apply("c", &on("b", "f1", Value::Null));
    play.ends(&["a v0 f1", "b ->a f0", "c ->b f1"]).await;
}

pub(super) async fn replace_chain_create_first(play: &Play) {
    apply_chain(play, &create_first());
    play.given().await;
    play.apply("a", &thing("v0", "f1", create_first()));
    play.apply("c", &on("b", "f1", create_first()));
    play.ends(&["a v0 f1", "b ->a f0", "c ->b f1"]).await;
}

/// The dependencies inherit create-before-destroy from the last object.
pub(super) async fn create_first_is_inherited(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.apply("c", &on("b", "f0", create_first()));
    play.given().await;
    play.apply("a", &plain("v0", "f1"));
    play.apply("b", &on("a", "f1", Value::Null));
    play.ends(&["a v0 f1", "b ->a f1", "c ->b f0"]).await;
}

pub(super) async fn replacement_requested(play: &Play) {
    apply_chain(play, &Value::Null);
    play.given().await;
    play.annotate("a", "purlin.dev/replace-requested-at", "now");
    play.until_called("destroy a").await;
    play.ends(&CHAIN).await;
}

pub(super) async fn triggered_replacement(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &thing("v0", "f0", json!({ "lifecycle": { "replaceTriggeredBy": ["a.value"] } })));
    play.given().await;
    play.apply("a", &plain("v1", "f0"));
    play.until_called("destroy b").await;
    play.ends(&["a v1 f0", "b v0 f0"]).await;
}
