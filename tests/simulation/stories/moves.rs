//! Moves and imports.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::scripted::Operation;

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

/// The Resource gets another name while its object is created.
pub(super) async fn renamed_while_created(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.until_called("create a").await;
    play.apply_with("b", &plain("v0", "f0"), &json!({ "purlin.dev/moved-from": "a" }));
    play.delete("a");
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.ends(&["b v0 f0"]).await;
}

/// The family gets another name while an object that references one of its instances is updated.
pub(super) async fn family_renamed_while_a_dependent_is_updated(play: &Play) {
    let family = || thing("v0", "f0", json!({ "count": 2 }));
    play.apply("f", &family());
    play.apply("a", &on("f[1]", "f0", Value::Null));
    play.given().await;
    play.hold("a", Operation::Update);
    play.apply("a", &thing("v1 ${f[1].value}", "f0", Value::Null));
    play.until_called("update a").await;
    play.apply_with("g", &family(), &json!({ "purlin.dev/moved-from": "f" }));
    play.apply("a", &on("g[1]", "f0", Value::Null));
    play.delete("f");
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.ends(&["g[0] v0 f0", "g[1] v0 f0", "a ->g[1] f0"]).await;
}

/// The last instance of a family becomes the object of another Resource.
pub(super) async fn instance_leaves_its_family(play: &Play) {
    let family = |count: u64| thing("v0", "f0", json!({ "count": count }));
    play.apply("f", &family(2));
    play.apply("b", &on("f[1]", "f0", Value::Null));
    play.given().await;
    play.apply_with("a", &plain("v0", "f0"), &json!({ "purlin.dev/moved-from": "f[1]" }));
    play.apply("b", &on("a", "f0", Value::Null));
    play.until_says("a", "Synced", "MoveBlocked").await;
    play.apply("f", &family(1));
    play.ends(&["f[0] v0 f0", "a v0 f0", "b ->a f0"]).await;
}

pub(super) async fn import(play: &Play) {
    play.empty().await;
    play.put("there", "v0", "f0");
    play.apply("a", &thing("v1", "f0", json!({ "import": { "id": "there" } })));
    play.ends(&["a v1 f0"]).await;
}
