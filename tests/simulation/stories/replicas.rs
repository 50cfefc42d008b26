//! Handover between replicas, and faults of a replica.

use std::time::Duration;

use purlin::driver::scripted::Operation;
use serde_json::{Value, json};

use super::changes::{CHAIN, apply_chain, on};
use super::play::{Play, plain, thing};

/// A Resource changes while the leader shuts down.
pub(super) async fn handed_over(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &plain("v1", "f1"));
    play.roll().await;
    play.ends(&["a v1 f1"]).await;
}

/// The leader shuts down while it creates the second object of a chain.
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

/// A turn panics while a call runs: the call continues, its result is recorded, and other changes are planned and
/// applied.
pub(super) async fn turn_panics_while_it_calls(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.until_called("create a").await;
    play.panic_next_turn();
    play.apply("b", &plain("v0", "f0"));
    play.until_panicked().await;
    play.apply("c", &plain("v0", "f0"));
    // The reconciler restarts after its back-off while the call runs.
    play.until_says("c", "Ready", "True").await;
    play.release();
    play.ends(&["a v0 f0", "b v0 f0", "c v0 f0"]).await;
}

/// The leader has no connection for longer than its lease lasts while it replaces an object. Another replica is
/// standby.
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
