//! Moves and imports.

use serde_json::{Value, json};

use super::changes::on;
use super::play::{Play, plain, thing};

pub(super) async fn rename(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.apply("c", &on("a", "f0", Value::Null));
    play.given().await;
    play.apply_with("b", &plain("v0", "f0"), &json!({ "purlin.dev/moved-from": "a" }));
    play.apply("c", &on("b", "f0", Value::Null));
    play.until_says("b", "Synced", "MoveBlocked").await;
    play.delete("a");
    play.ends(&["b v0 f0", "c ->b f0"]).await;
}

pub(super) async fn rename_family(play: &Play) {
    let family = || thing("v0", "f0", json!({ "count": 2 }));
    play.apply("f", &family());
    play.given().await;
    play.apply_with("g", &family(), &json!({ "purlin.dev/moved-from": "f" }));
    play.until_says("g", "Synced", "MoveBlocked").await;
    play.delete("f");
    play.ends(&["g[0] v0 f0", "g[1] v0 f0"]).await;
}

pub(super) async fn import(play: &Play) {
    play.empty().await;
    play.put("there", "v0", "f0");
    play.apply("a", &thing("v1", "f0", json!({ "import": { "id": "there" } })));
    play.ends(&["a v1 f0"]).await;
}
