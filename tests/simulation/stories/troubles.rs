//! Calls that fail, and objects and records that other clients change.

use serde_json::Value;
use testkit::scripted::{Operation, ScriptedOutcome};

use super::changes::on;
use super::play::{Play, plain};

fn fails(kind: &str) -> ScriptedOutcome {
    serde_json::from_value(serde_json::json!({ "fail": { "kind": kind } })).unwrap()
}

pub(super) async fn create_fails_then_succeeds(play: &Play) {
    play.empty().await;
    play.script("a", Operation::Create, vec![fails("transient"), fails("transient")]);
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.ends(&["a v0 f0", "b ->a f0"]).await;
}

/// The create fails permanently until the spec changes.
pub(super) async fn create_refused_then_corrected(play: &Play) {
    play.empty().await;
    play.script("a", Operation::Create, vec![fails("terminal")]);
    play.apply("a", &plain("v0", "f0"));
    // A process that crashed has not recorded the rejection, so the next process creates the object.
    play.until_says_any("a", "Ready", &["OperationRejected", "True"]).await;
    play.apply("a", &plain("v1", "f0"));
    play.ends(&["a v1 f0"]).await;
}

/// An object that was only partly created is replaced.
pub(super) async fn create_fails_half_way(play: &Play) {
    play.empty().await;
    let partly = serde_json::from_value(serde_json::json!({ "failPartly": {} })).unwrap();
    play.script("a", Operation::Create, vec![partly]);
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.ends(&["a v0 f0", "b ->a f0"]).await;
}

pub(super) async fn destroy_fails_then_succeeds(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.script("a", Operation::Destroy, vec![fails("transient")]);
    play.delete("a");
    play.ends(&[]).await;
}

pub(super) async fn drift_set_right(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.drift("a", "v9");
    play.annotate("a", "purlin.dev/reconcile-requested-at", "now");
    play.ends(&["a v0 f0", "b ->a f0"]).await;
}

pub(super) async fn lost_object_made_again(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.lose("a");
    play.annotate("a", "purlin.dev/reconcile-requested-at", "now");
    play.ends(&["a v0 f0", "b ->a f0"]).await;
}

pub(super) async fn records_touched_while_called(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.hold("a", Operation::Update);
    play.hold("b", Operation::Create);
    play.apply("a", &plain("v1", "f0"));
    play.apply("b", &plain("v0", "f0"));
    play.until_called("update a").await;
    play.until_called("create b").await;
    play.touch_records();
    play.release();
    play.ends(&["a v1 f0", "b v0 f0"]).await;
}
