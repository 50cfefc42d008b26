//! Users who revert or change a Resource while a step runs.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::scripted::Operation;

use super::changes::{CHAIN, apply_chain, on};
use super::play::{Play, plain, thing};

pub(super) async fn reverted_while_it_runs(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.hold("a", Operation::Update);
    play.apply("a", &plain("v1", "f0"));
    play.until_called("update a").await;
    play.apply("a", &plain("v0", "f0"));
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.ends(&["a v0 f0"]).await;
}

/// The replacement of `a` destroys `c` and `b` first. The user reverts it while `c` is destroyed.
pub(super) async fn replacement_reverted(play: &Play) {
    apply_chain(play, &Value::Null);
    play.given().await;
    play.hold("c", Operation::Destroy);
    play.apply("a", &plain("v0", "f1"));
    play.apply("b", &on("a", "f1", Value::Null));
    play.apply("c", &on("b", "f1", Value::Null));
    play.until_called("destroy c").await;
    apply_chain(play, &Value::Null);
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.ends(&CHAIN).await;
}

pub(super) async fn changed_while_created(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.until_called("create a").await;
    play.apply("a", &plain("v1", "f0"));
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.ends(&["a v1 f0", "b ->a f0"]).await;
}

pub(super) async fn deleted_while_created(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.until_called("create a").await;
    play.delete("a");
    play.delete("b");
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.ends(&[]).await;
}

pub(super) async fn deleted_and_applied_again(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.delete("a");
    play.until("the Resource is deleted", || play.names().is_empty()).await;
    play.apply("a", &plain("v1", "f0"));
    play.ends(&["a v1 f0"]).await;
}

/// All Resources are deleted, and each is applied again when its name is free, as GitOps tools do.
pub(super) async fn all_deleted_and_applied_again(play: &Play) {
    apply_chain(play, &Value::Null);
    play.given().await;
    ["a", "b", "c"].into_iter().for_each(|name| play.delete(name));
    play.until("the last Resource is deleted", || !play.names().contains(&"c".to_owned())).await;
    play.apply("c", &on("b", "f0", Value::Null));
    play.until("the next Resource is deleted", || !play.names().contains(&"b".to_owned())).await;
    play.apply("b", &on("a", "f0", Value::Null));
    play.until("the first Resource is deleted", || !play.names().contains(&"a".to_owned())).await;
    play.apply("a", &plain("v0", "f0"));
    play.ends(&CHAIN).await;
}

/// All Resources are deleted. One is applied again while the destroy of another one delays that of their dependency.
pub(super) async fn applied_again_before_its_dependency_is_destroyed(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.apply("c", &on("a", "f0", Value::Null));
    play.given().await;
    play.hold("b", Operation::Destroy);
    ["a", "b", "c"].into_iter().for_each(|name| play.delete(name));
    play.until("a Resource is deleted", || !play.names().contains(&"c".to_owned())).await;
    play.apply("c", &on("a", "f0", Value::Null));
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.until("the other Resources are deleted", || play.names() == ["c"]).await;
    play.apply("a", &plain("v0", "f0"));
    play.ends(&["a v0 f0", "c ->a f0"]).await;
}

pub(super) async fn suspended_change(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &thing("v1", "f1", json!({ "suspend": true })));
    play.until_says("a", "Synced", "Suspended").await;
    play.apply("a", &plain("v1", "f1"));
    play.ends(&["a v1 f1"]).await;
}

/// `preventDestroy` blocks a replacement. The user then reverts the change that forces the replacement.
pub(super) async fn protected_replacement(play: &Play) {
    let protected = || json!({ "lifecycle": { "preventDestroy": true } });
    play.apply("a", &thing("v0", "f0", protected()));
    play.given().await;
    play.apply("a", &thing("v1", "f1", protected()));
    play.until_says("a", "Synced", "PreventDestroy").await;
    play.apply("a", &thing("v1", "f0", protected()));
    play.ends(&["a v1 f0"]).await;
}
