//! Resources with several objects.

use purlin::store::secrets::{family_name, record_name};
use serde_json::{Value, json};

use super::play::{Play, plain, thing};
use crate::kubectl::SHOP;
use crate::replica::HOME;
use crate::state_rm::complete_indexes;

fn count(value: &str, count: u64) -> Value {
    thing(value, "f0", json!({ "count": count }))
}

pub(super) async fn family_grows(play: &Play) {
    play.apply("f", &count("v0", 1));
    play.given().await;
    play.apply("f", &count("v0", 3));
    play.ends(&["f[0] v0 f0", "f[1] v0 f0", "f[2] v0 f0"]).await;
}

pub(super) async fn family_shrinks(play: &Play) {
    play.apply("f", &count("v0", 3));
    play.given().await;
    play.apply("f", &count("v1", 1));
    play.ends(&["f[0] v1 f0"]).await;
}

pub(super) async fn family_changes_keys(play: &Play) {
    play.apply("f", &thing("${each.key}", "f0", json!({ "forEach": ["x", "y"] })));
    play.given().await;
    play.apply("f", &thing("${each.key}", "f0", json!({ "forEach": ["y", "z"] })));
    play.ends(&["f[\"y\"] y f0", "f[\"z\"] z f0"]).await;
}

pub(super) async fn family_deleted(play: &Play) {
    play.apply("f", &count("v0", 3));
    play.given().await;
    play.delete("f");
    play.ends(&[]).await;
}

/// The object of the lost record remains, and the Resource stays until the user has run `purlin state rm f`.
pub(super) async fn family_deleted_without_index(play: &Play) {
    play.apply("f", &count("v0", 3));
    play.given().await;
    lose_index(play);
    play.delete("f");
    play.until_says("f", "Ready", "RecordMissing").await;
    complete_indexes(&play.env).await;
    play.ends(&[]).await;
}

/// All of it happens while no controller runs, and one record is left.
pub(super) async fn family_deleted_without_index_while_stopped(play: &Play) {
    play.apply("f", &count("v0", 2));
    play.given().await;
    play.stop().await;
    lose_index(play);
    play.delete("f");
    play.start();
    play.until_says("f", "Ready", "RecordMissing").await;
    complete_indexes(&play.env).await;
    play.ends(&[]).await;
}

/// The index of `f`, the record of `f[1]` and its object are lost.
fn lose_index(play: &Play) {
    play.give_up("f[1]");
    play.lose("f[1]");
    for secret in [record_name(SHOP, &"f[1]".parse().unwrap()), family_name(SHOP, &"f".into())] {
        play.env.judge.spoiled(&secret);
        let path = format!("/api/v1/namespaces/{HOME}/secrets/{secret}");
        play.env.cluster.with(|server, now| server.erase(now, &path));
    }
}

/// The object without a key becomes the first instance of the family.
pub(super) async fn single_becomes_family(play: &Play) {
    play.apply("f", &plain("v0", "f0"));
    play.given().await;
    play.apply("f", &count("v0", 2));
    play.ends(&["f[0] v0 f0", "f[1] v0 f0"]).await;
}
