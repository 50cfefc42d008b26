//! Deletions: of one and of all, held and forced.

use serde_json::{Value, json};

use super::changes::{apply_chain, on};
use super::play::{Play, plain, thing};

pub(super) async fn delete(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.delete("a");
    play.ends(&[]).await;
}

pub(super) async fn delete_all_at_once(play: &Play) {
    apply_chain(play, &Value::Null);
    play.apply("f", &thing("${c.id}", "f0", json!({ "count": 2 })));
    play.given().await;
    ["a", "b", "c", "f"].into_iter().for_each(|name| play.delete(name));
    play.ends(&[]).await;
}

pub(super) async fn delete_what_is_used(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.delete("a");
    play.until_says("a", "Synced", "StillUsed").await;
    play.delete("b");
    play.ends(&[]).await;
}

pub(super) async fn orphan(play: &Play) {
    play.apply("a", &thing("v0", "f0", json!({ "deletionPolicy": "Orphan" })));
    play.given().await;
    play.give_up("a");
    play.delete("a");
    play.ends(&["- v0 f0"]).await;
}

pub(super) async fn protected_then_deleted(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &thing("v0", "f0", json!({ "lifecycle": { "preventDestroy": true } })));
    play.settled().await;
    play.delete("a");
    play.until_says("a", "Synced", "PreventDestroy").await;
    play.patch("a", &json!({ "spec": { "lifecycle": { "preventDestroy": false } } }));
    play.ends(&[]).await;
}

pub(super) async fn suspended_then_deleted(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &thing("v0", "f0", json!({ "suspend": true })));
    play.until_says("a", "Synced", "Suspended").await;
    play.delete("a");
    play.pass(std::time::Duration::from_secs(5)).await;
    play.patch("a", &json!({ "spec": { "suspend": false } }));
    play.ends(&[]).await;
}

/// The finalizer is taken off while the object is there, and the same Resource is made again: it has its object back.
pub(super) async fn finalizer_taken_off(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &thing("v0", "f0", json!({ "lifecycle": { "preventDestroy": true } })));
    play.settled().await;
    play.delete("a");
    play.force("a");
    play.until("the Resource is gone", || play.names().is_empty()).await;
    play.apply("a", &plain("v0", "f0"));
    play.ends(&["a v0 f0"]).await;
}

pub(super) async fn namespace_deleted(play: &Play) {
    apply_chain(play, &Value::Null);
    play.given().await;
    play.delete_namespace().await;
    play.ends(&[]).await;
}
