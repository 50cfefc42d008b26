//! Deletions: of one object and of all, held and forced.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::scripted::Operation;

use super::changes::{apply_chain, on};
use super::play::{Play, config_map, plain, thing};
use crate::kubectl::{SHOP, create_namespace};

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
    play.until_says("a", "Synced", "InUse").await;
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
    play.until_up_to_date().await;
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

/// The finalizer is removed while nothing changes because the Resource is suspended. Purlin adds it again, so that the
/// deletion destroys the object.
pub(super) async fn finalizer_taken_off_while_suspended(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &thing("v0", "f0", json!({ "suspend": true })));
    play.until_says("a", "Synced", "Suspended").await;
    play.patch("a", &json!({ "metadata": { "finalizers": null } }));
    play.until("the finalizer is added again", || play.has_finalizer("a")).await;
    play.delete("a");
    play.patch("a", &json!({ "spec": { "suspend": false } }));
    play.ends(&[]).await;
}

/// The finalizer is removed by force while the object exists. The same Resource is created again and adopts the object.
pub(super) async fn finalizer_taken_off(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &thing("v0", "f0", json!({ "lifecycle": { "preventDestroy": true } })));
    play.until_up_to_date().await;
    play.delete("a");
    play.force("a");
    play.until("the Resource is deleted", || play.names().is_empty()).await;
    play.apply("a", &plain("v0", "f0"));
    play.ends(&["a v0 f0"]).await;
}

pub(super) async fn namespace_deleted(play: &Play) {
    apply_chain(play, &Value::Null);
    play.given().await;
    play.delete_namespace().await;
    play.ends(&[]).await;
}

/// An administrator removes a namespace by force while its objects are being destroyed, and creates it again. Its
/// Resources exist all the time, and can be changed again only then.
pub(super) async fn namespace_removed_by_force(play: &Play) {
    apply_chain(play, &Value::Null);
    play.given().await;
    play.hold("c", Operation::Destroy);
    play.begin_deleting_namespace();
    play.until_called("destroy c").await;
    play.env.judge.note("the namespace is removed by force");
    play.env.cluster.with(|server, now| server.force_namespace(now, SHOP));
    play.release();
    // Purlin tries again in the meantime.
    play.pass(Duration::from_secs(30)).await;
    play.expect("the Resources exist", play.names().len() == 3);
    play.env.cluster.with(|server, now| create_namespace(server, now, SHOP));
    play.until("the Resources are deleted", || play.names().is_empty()).await;
    play.until_forgotten().await;
    play.ends(&[]).await;
}

/// The ServiceAccount loses its permissions before its objects are destroyed.
pub(super) async fn namespace_deleted_rights_first(play: &Play) {
    play.grant_access();
    play.apply("m", &config_map("m"));
    play.apply("n", &config_map("n"));
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.delete_namespace_rights_first().await;
    play.ends(&[]).await;
}

/// An interrupted create is not repeated in a namespace that is being deleted.
pub(super) async fn namespace_deleted_while_created(play: &Play) {
    play.empty().await;
    play.apply("m", &config_map("m"));
    play.pass(std::time::Duration::from_secs(1)).await;
    play.delete_namespace().await;
    play.ends(&[]).await;
}

/// Like `namespace_deleted_while_created`, and Purlin may not read the object either.
pub(super) async fn namespace_deleted_while_created_rights_first(play: &Play) {
    play.grant_access();
    play.empty().await;
    play.apply("m", &config_map("m"));
    play.pass(std::time::Duration::from_secs(1)).await;
    play.delete_namespace_rights_first().await;
    play.ends(&[]).await;
}

/// The API server adds the finalizer, so a Resource that is deleted before its record is complete waits for the controller.
pub(super) async fn deleted_with_a_finalizer_from_the_beginning(play: &Play) {
    play.env.cluster.with(|server, _| server.adds_finalizer = true);
    play.empty().await;
    play.crash_after("create /api/v1/namespaces/purlin-system/secrets");
    play.apply("a", &thing("v0", "f0", json!({ "timeouts": { "create": "5s" } })));
    play.until_down().await;
    play.delete("a");
    play.apply("b", &plain("v0", "f0"));
    play.delete("b");
    play.start();
    play.until("the Resources are deleted", || play.names().is_empty()).await;
    play.until_forgotten().await;
    play.ends(&[]).await;
}

/// The record of a first create is written, but no call is made. The Resource has no finalizer yet, and is deleted.
pub(super) async fn deleted_before_it_was_held(play: &Play) {
    play.empty().await;
    play.crash_after("create /api/v1/namespaces/purlin-system/secrets");
    // Before this deadline Purlin does not assume that the create had no effect.
    play.apply("a", &thing("v0", "f0", json!({ "timeouts": { "create": "5s" } })));
    play.until_down().await;
    play.delete("a");
    play.until("the Resource is deleted", || play.names().is_empty()).await;
    play.start();
    play.until_forgotten().await;
    play.ends(&[]).await;
}

/// The finalizer is removed by force while the object is created. The created object is recorded.
pub(super) async fn forced_while_created(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.until_called("create a").await;
    play.delete("a");
    play.force("a");
    play.until("the Resource is deleted", || play.names().is_empty()).await;
    play.release();
    play.until_closed().await;
    let left = play.objects();
    play.ends(&left.iter().map(String::as_str).collect::<Vec<_>>()).await;
}
