//! One replica after another.

use std::time::Duration;

use purlin::driver::scripted::Operation;
use serde_json::{Value, json};

use super::changes::{CHAIN, apply_chain, on};
use super::play::{Play, plain, thing};

/// A change comes in while the leader is asked to stop.
pub(super) async fn handed_over(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &plain("v1", "f1"));
    play.roll().await;
    play.ends(&["a v1 f1"]).await;
}

/// The leader is asked to stop in the middle of a chain, while it makes the second object.
pub(super) async fn handed_over_while_it_calls(play: &Play) {
    play.empty().await;
    play.hold("b", Operation::Create);
    apply_chain(play, &Value::Null);
    play.until_called("create b").await;
    futures::join!(play.roll(), async {
        play.pass(Duration::from_secs(3)).await;
        play.release();
    });
    play.ends(&CHAIN).await;
}

/// A turn panics while a call runs: the call goes on, its result is recorded, and what else changed is planned and made.
pub(super) async fn turn_panics_while_it_calls(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.until_called("create a").await;
    play.panic_next_turn();
    play.apply("b", &plain("v0", "f0"));
    play.until_panicked().await;
    play.apply("c", &plain("v0", "f0"));
    // Longer than the pause after a panic: the reconciler begins again while the call runs.
    play.until_says("c", "Ready", "True").await;
    play.release();
    play.ends(&["a v0 f0", "b v0 f0", "c v0 f0"]).await;
}

/// The leader reaches nothing for longer than its lease lasts, while it replaces; another replica stands by.
pub(super) async fn lease_lost_while_it_calls(play: &Play) {
    let create_first = || json!({ "lifecycle": { "createBeforeDestroy": true } });
    play.start();
    play.apply("a", &thing("v0", "f0", create_first()));
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.hold("a", Operation::Create);
    play.apply("a", &thing("v0", "f1", create_first()));
    play.until_called("create a").await;
    play.cut_off(Duration::from_secs(30));
    play.pass(Duration::from_secs(20)).await;
    play.release();
    play.ends(&["a v0 f1", "b ->a f0"]).await;
}
